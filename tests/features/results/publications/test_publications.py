"""Publishing, reopening and withdrawing: each row of the table of cases."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.features.observations.metrics.sheets import TRAITS, Observed
from tests.features.results.publications.arms import Arms
from tests.features.results.submissions.classes import Class, message


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


def logged(api, publication):
    query = {"entity": "publication", "id": publication["id"]}
    entries = api.ok(api.get("/audit", query_string=query))["data"]
    return [(entry["action"], entry["old"], entry["new"]) for entry in entries]


def changes(api, publication):
    return api.ok(api.get(f"/publications/{publication['id']}/changes"))


# Publish


def test_two_arms_are_published(api, arms):
    first, second = arms.published()

    session = api.ok(api.get(f"/sessions/{arms.cohort['session']}"))
    me = api.ok(api.get("/users", query_string={"search": "admin"}))["data"][0]
    assert first == {
        "id": first["id"],
        "batch": arms.first,
        "batch_name": "A",
        "cohort": arms.cohort["id"],
        "session": {"id": session["id"], "name": session["name"]},
        "term": {"id": arms.terms["FIRST"]["id"], "term": "FIRST"},
        "version": 1,
        "state": "PUBLISHED",
        "published_at": first["published_at"],
        "published_by": me["id"],
        "published_by_name": f"{me['first_name']} {me['last_name']}",
        "reopened_at": None,
        "reopened_by_name": None,
        "reason": None,
        "students": 2,
        "changed": 0,
        "class_figures_changed": 0,
        "left": [],
    }
    assert (second["batch"], second["version"], second["published_at"]) == (
        arms.second,
        1,
        first["published_at"],
    )
    assert api.ok(api.get(f"/publications/{first['id']}")) == first
    assert changes(api, first) == []


def test_a_publication_is_in_the_audit_log(api, arms):
    first, second = arms.published()

    for publication, batch in ((first, arms.first), (second, arms.second)):
        new = {"state": "PUBLISHED", "batch": batch, "term": arms.terms["FIRST"]["id"], "version": 1}
        assert logged(api, publication) == [("create", None, {**new, "students": 2})]


def test_a_rehearsal_answers_as_the_publication_and_stores_nothing(api, arms):
    rehearsed = api.ok(arms.publish(query="?dry_run=true"))

    assert arms.listed(cohort=arms.cohort["id"]) == []
    assert api.ok(api.get("/audit", query_string={"entity": "publication"}))["total"] == 0
    published = api.ok(arms.publish())
    unknown = {"id": None, "published_at": None}
    for row in rehearsed:
        assert row.pop("without_assessments") == {"count": 0, "subjects": []}
        assert (
            row.pop("comments_missing")["count"] == row.pop("traits_missing")["count"] == row["students"] == 2
        )
        assert row.pop("photos_missing") is None
    assert rehearsed == [{**row, **unknown} for row in published]


def test_a_rehearsal_is_refused_as_the_publication_would_be(unmarked):
    unmarked.mark()

    answers = [unmarked.publish(query=query) for query in ("?dry_run=true", "")]

    assert [answer.status_code for answer in answers] == [409, 409]
    assert message(answers[0]) == message(answers[1])


def test_a_batch_named_twice_is_published_once(api, arms):
    (first,) = arms.published(arms.first)[:1]
    arms.reopen(first)

    published = api.ok(arms.publish(arms.first, arms.first))

    assert [publication["version"] for publication in published] == [2]


def test_a_subject_not_submitted_is_named_also_where_another_arm_alone_takes_it(api, make, unmarked):
    unmarked.mark()
    elective = make.cohort_subject(unmarked.cohort, elective=True)
    path = f"/cohort-subjects/{elective['id']}/students"
    api.ok(api.patch(path, [unmarked.students[unmarked.second][0]]))
    untaken = make.cohort_subject(unmarked.cohort, elective=True)
    for subject in (elective, untaken):
        make.assessment(subject, unmarked.terms["FIRST"])
    nothing = make.cohort_subject(unmarked.cohort)  # in which nothing counts
    unmarked.submit()

    answer = unmarked.publish(unmarked.first)

    assert (answer.status_code, message(answer)) == (409, f"Not submitted yet: {elective['subject']}.")
    assert answer.get_json()["errors"]["json"] == {"subjects": [elective["subject"]]}
    body = {"term": "FIRST", "blanks": "ABSENT"}
    api.ok(api.post(f"/cohort-subjects/{elective['id']}/submission", body))
    assert unmarked.publish(unmarked.first, without_subjects=[nothing["id"]]).status_code == 200


def test_a_taker_since_the_submission_of_a_subject_is_named(api, make, unmarked):
    electives = [make.cohort_subject(unmarked.cohort, elective=True) for _ in range(2)]
    taker, later = unmarked.students[unmarked.first]
    unmarked.mark()
    for elective in electives:
        api.ok(api.patch(f"/cohort-subjects/{elective['id']}/students", [taker]))
        make.entry(make.assessment(elective, unmarked.terms["FIRST"]), taker, unmarked.first)
        unmarked.subjects.append(elective)
    unmarked.submit()
    for elective in electives:
        api.ok(api.patch(f"/cohort-subjects/{elective['id']}/students", [taker, later]))
    (number,) = unmarked.admission_numbers([later])

    answer = unmarked.publish(unmarked.first)

    assert answer.status_code == 409
    incomplete = [
        {"subject": name, "students": [number]}
        for name in sorted(subject["subject"] for subject in electives)
    ]
    assert answer.get_json()["errors"]["json"]["incomplete"] == incomplete
    assert number in message(answer)
    assert unmarked.listed(cohort=unmarked.cohort["id"]) == []


def test_earlier_terms_come_first(api, unmarked):
    unmarked.mark("FIRST")
    unmarked.mark("SECOND")
    unmarked.submit("FIRST")
    unmarked.submit("SECOND")
    api.ok(unmarked.publish(unmarked.first, term="FIRST"))

    answer = unmarked.publish(term="SECOND")

    assert answer.status_code == 409
    arm = api.ok(api.get(f"/cohorts/{unmarked.cohort['id']}/batches"))
    (name,) = (batch["name"] for batch in arm if batch["id"] == unmarked.second)
    words = f"publish First term of {unmarked.cohort['classroom']} {name} first."
    assert message(answer) == f"The results of the session rest on earlier terms: {words}"
    assert unmarked.publish(unmarked.first, term="SECOND").status_code == 200


def test_a_term_in_which_nothing_counts_need_not_be_published(api, make, unmarked):
    unmarked.mark("FIRST", include_in_final=False)
    unmarked.mark("SECOND")
    unmarked.submit("SECOND")

    assert unmarked.publish(term="SECOND").status_code == 200


def test_a_published_batch_is_not_published_again(api, arms):
    arms.published(arms.first)

    answer = arms.publish()

    assert (answer.status_code, message(answer)) == (
        409,
        f"Published already: {arms.cohort['classroom']} A.",
    )
    assert [publication["batch"] for publication in arms.listed(cohort=arms.cohort["id"])] == [arms.first]
    assert arms.publish(arms.second).status_code == 200


def test_a_batch_with_nobody_in_it_is_not_published(api, make, arms):
    empty = make.batch(arms.cohort)
    left = make.enrolled(arms.cohort, batch=empty["id"])[0]
    api.ok(api.patch(f"/students/{left}", {"status": "WITHDRAWN"}))
    answer = arms.publish(arms.first, empty["id"])

    name = f"{arms.cohort['classroom']} {empty['name']}"
    assert (answer.status_code, message(answer)) == (409, f"There is nobody in: {name}.")
    assert arms.listed(cohort=arms.cohort["id"]) == []


def test_a_batch_of_another_cohort_is_refused(api, make, arms):
    elsewhere = Arms(make)
    for batches in ((arms.first, elsewhere.second), (arms.second, elsewhere.first)):
        answer = arms.publish(*batches, term=arms.terms["FIRST"]["id"])

        assert answer.status_code == 422
        (reason,) = answer.get_json()["errors"]["json"]["batches"]
        assert reason.startswith(elsewhere.cohort["classroom"])
        assert reason.endswith(": not of the same cohort")


def test_unknown_ids_are_named(api, make, arms):
    elsewhere = make.term()
    unknown = str(uuid4())

    for batches in ((unknown,), (arms.first, unknown)):
        answer = arms.publish(*batches)
        assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["batches"])
    for term in (unknown, elsewhere["id"], "SECOND", "first"):
        answer = arms.publish(term=term)
        assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["term"])
    answer = api.get(f"/publications/{unknown}")
    assert (answer.status_code, message(answer)) == (404, "No such publication.")
    assert api.get(f"/publications/{unknown}/changes").status_code == 404
    assert api.post(f"/publications/{unknown}/reopening", {"reason": "x"}).status_code == 404


@pytest.mark.parametrize("batches", [[], None, "x", ["x"], [1], [str(uuid4())] * 51, {}])
def test_batches_are_one_to_fifty_ids(api, batches):
    answer = api.post("/publications", {"term": "FIRST", "batches": batches})

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["batches"])


# Reopen, and publish again


def test_a_publication_is_reopened_corrected_and_published_again(api, arms):
    first, _ = arms.published()
    student, other = arms.students[arms.first]

    reopened = api.ok(arms.reopen(first, reason="Ìwé kan\nwas found"))

    after = {"state": "REOPENED", "reason": "Ìwé kan\nwas found"}
    named = {"reopened_at": reopened["reopened_at"], "reopened_by_name": first["published_by_name"]}
    assert reopened == {**first, **after, **named}
    assert reopened["reopened_at"] is not None
    assert logged(api, first)[0] == (
        "update",
        {"state": "PUBLISHED", "version": 1},
        {**after, "version": 1},
    )
    # The subject is the other arm's too: that has to be reopened as well.
    assert arms.reopen_subject().status_code == 409
    (second,) = arms.listed(batch=arms.second)
    api.ok(arms.reopen(second))
    arms.correct(other, 99)
    again = api.ok(arms.publish(arms.first))[0]
    assert (again["version"], again["state"], again["students"], again["changed"]) == (2, "PUBLISHED", 2, 2)
    assert api.ok(api.get(f"/publications/{first['id']}")) == {**reopened, "state": "SUPERSEDED"}
    shown = {change["student"]["id"]: (change["before"], change["after"]) for change in changes(api, again)}
    assert shown == {
        student: ({"average": 90, "position": 1}, {"average": 90, "position": 2}),
        other: ({"average": 85, "position": 2}, {"average": 92, "position": 1}),
    }
    assert changes(api, first) == []


def test_a_card_that_says_the_same_has_not_changed(api, arms):
    (first,) = arms.published(arms.first)
    api.ok(arms.reopen(first))

    (again,) = api.ok(arms.publish(arms.first))

    assert (again["version"], again["changed"]) == (2, 0)


def test_a_figure_that_is_written_with_fewer_places_has_not_changed(api, arms):
    """90.00 and 90 are one number, of the student and of the class."""
    (first,) = arms.published(arms.first)
    student = arms.students[arms.first][0]
    written = [api.get(f"/students/{student}/results?term=FIRST").get_data(as_text=True)]
    api.ok(arms.reopen(first))
    api.ok(api.patch("/result-settings", {"percent_places": 0, "percent_from": "EXACT"}))

    (again,) = api.ok(arms.publish(arms.first))

    written.append(api.get(f"/students/{student}/results?term=FIRST").get_data(as_text=True))
    assert [('"percent":90.00' in answer, '"percent":90,' in answer) for answer in written] == [
        (True, False),
        (False, True),
    ]
    assert (again["changed"], again["class_figures_changed"]) == (0, 0)


def test_only_a_later_version_is_compared_with_the_one_before(api, arms, messages):
    with messages() as first:
        (published,) = api.ok(arms.publish(arms.first))
    api.ok(arms.reopen(published))
    with messages() as second:
        api.ok(arms.publish(arms.first))

    assert [len(first), len(second)] == [4, 5]
    assert [any("SET changed=" in sent for sent in each) for each in (first, second)] == [False, True]


def test_a_newcomer_counts_as_changed_and_had_nothing_before(api, make, arms):
    (first,) = arms.published(arms.first)
    api.ok(arms.reopen(first))
    (late,) = make.enrolled(arms.cohort, make.student(first_name="Zainab"), batch=arms.first)
    for subject in arms.subjects:
        api.ok(api.post(f"/cohort-subjects/{subject['id']}/reopening", {"term": "FIRST", "reason": "late"}))
        make.entry(arms.papers["FIRST", subject["id"]], late, arms.first, 10)
    arms.submit()

    (again,) = api.ok(arms.publish(arms.first))

    assert (again["students"], again["changed"], again["class_figures_changed"]) == (3, 1, 2)
    shown = {change["student"]["id"]: change for change in changes(api, again)}
    assert (shown[late]["before"], shown[late]["after"]) == (None, {"average": 10, "position": 3})
    assert shown[late]["student"]["first_name"] == "Zainab"


def test_a_subject_of_published_results_is_not_reopened(api, arms):
    arms.published()

    answer = arms.reopen_subject()

    names = sorted(publication["batch_name"] for publication in arms.listed(cohort=arms.cohort["id"]))
    arms_named = ", ".join(f"{arms.cohort['classroom']} {name}" for name in names)
    words = f"The results of {arms_named} are published: reopen those publications first."
    assert (answer.status_code, message(answer)) == (409, words)


def test_a_publication_under_later_results_is_not_reopened(api, arms):
    (first,) = arms.published(arms.first)
    (second,) = arms.published(arms.first, term="SECOND")

    for withdraw in (False, True):
        answer = arms.reopen(first, withdraw=withdraw)
        words = f"Later results rest on it: reopen Second term of {arms.cohort['classroom']} A first."
        assert (answer.status_code, message(answer)) == (409, words)
    api.ok(arms.reopen(second))
    assert arms.reopen(first).status_code == 200


def test_later_results_of_a_mover_in_another_arm_rest_on_it_too(api, make, arms):
    first, _ = arms.published()
    student = arms.students[arms.first][0]
    make.enrolled(arms.cohort, {"id": student}, batch=arms.second)
    arms.students[arms.first].remove(student)
    arms.students[arms.second].append(student)
    arms.mark("SECOND")
    arms.submit("SECOND")
    api.ok(arms.publish(arms.second, term="SECOND"))

    assert arms.reopen(first).status_code == 409


def test_later_results_of_another_arm_do_not_rest_on_it(api, arms):
    first, second = arms.published()
    arms.mark("SECOND")
    arms.submit("SECOND")
    api.ok(arms.publish(arms.second, term="SECOND"))

    assert arms.reopen(second).status_code == 409
    assert arms.reopen(first).status_code == 200


@pytest.mark.parametrize("state", ["REOPENED", "SUPERSEDED", "WITHDRAWN"])
def test_a_publication_of_another_state_is_not_reopened(api, arms, state):
    (first,) = arms.published(arms.first)
    api.ok(arms.reopen(first, withdraw=state == "WITHDRAWN"))
    if state == "SUPERSEDED":
        api.ok(arms.publish(arms.first))
    before = api.ok(api.get(f"/publications/{first['id']}"))

    answer = arms.reopen(first, reason="Once more")

    words = f"This publication is {state}: only what is PUBLISHED can be reopened."
    assert (answer.status_code, message(answer), before["state"]) == (409, words, state)
    assert api.ok(api.get(f"/publications/{first['id']}")) == before


def test_a_publication_under_review_may_be_withdrawn(api, arms):
    (first,) = arms.published(arms.first)
    api.ok(arms.reopen(first))

    withdrawn = api.ok(arms.reopen(first, withdraw=True, reason="All of it is wrong"))

    assert (withdrawn["state"], withdrawn["reason"]) == ("WITHDRAWN", "All of it is wrong")
    new = {"state": "WITHDRAWN", "version": 1, "reason": "All of it is wrong"}
    assert logged(api, first)[0] == ("update", {"state": "REOPENED", "version": 1}, new)


def test_a_withdrawn_version_stays_withdrawn_when_the_next_is_published(api, arms):
    (first,) = arms.published(arms.first)
    api.ok(arms.reopen(first, withdraw=True))

    (again,) = api.ok(arms.publish(arms.first))

    assert (again["version"], again["state"]) == (2, "PUBLISHED")
    states = [(version["version"], version["state"]) for version in arms.listed(batch=arms.first)]
    assert states == [(2, "PUBLISHED"), (1, "WITHDRAWN")]
    assert arms.reopen(first, withdraw=True).status_code == 409


@pytest.mark.parametrize(
    ("field", "value"),
    [("reason", ""), ("reason", "x" * 2001), ("reason", None), ("withdraw", "true"), ("withdraw", None)],
)
def test_a_reopening_has_a_reason(api, arms, field, value):
    (first,) = arms.published(arms.first)

    answer = arms.reopen(first, **{field: value})

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])
    assert api.ok(api.get(f"/publications/{first['id']}"))["state"] == "PUBLISHED"


# Lists


def test_publications_are_listed_the_newest_first_by_every_filter(api, make, arms):
    first, second = arms.published()
    (later,) = arms.published(arms.first, term="SECOND")
    elsewhere = Class(make)
    session = arms.cohort["session"]
    name = api.ok(api.get(f"/sessions/{session}"))["name"]

    ids = [row["id"] for row in arms.listed(cohort=arms.cohort["id"])]

    assert ids[0] == later["id"]
    assert set(ids[1:]) == {first["id"], second["id"]}
    assert [row["id"] for row in arms.listed(batch=arms.first)] == [later["id"], first["id"]]
    assert [row["id"] for row in arms.listed(batch=arms.second, term="SECOND")] == []
    assert [row["id"] for row in arms.listed(term=arms.terms["SECOND"]["id"])] == [later["id"]]
    assert [row["id"] for row in arms.listed(session=session, term="SECOND")] == [later["id"]]
    assert len(arms.listed(session=name)) == 3
    assert arms.listed(batch=elsewhere.cohort["id"]) == []
    page = api.ok(api.get("/publications", query_string={"session": session, "pageSize": 2, "pageNumber": 1}))
    assert (page["total"], len(page["data"])) == (3, 1)


def test_a_filter_that_names_nothing_is_refused(api, arms):
    unknown = str(uuid4())
    for name in ("batch", "cohort", "term", "session"):
        answer = api.get("/publications", query_string={name: unknown})
        assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, [name])


def test_a_term_that_no_session_has_yet_is_an_empty_page(api, arms):
    arms.published(arms.first)

    assert [len(arms.listed(term=term)) for term in ("FIRST", "THIRD")] == [1, 0]
    assert api.get("/publications", query_string={"term": "FOURTH"}).status_code == 422


# Writes that it holds


def test_metric_sheets_are_held_while_results_are_published(api, make):
    seen = Observed(make, 2)
    batch, term = seen.cohort["id"], seen.term
    content = seen.sheet({number: dict.fromkeys(TRAITS, 3) for number in seen.students})
    api.ok(seen.upload(content))
    (publication,) = api.ok(api.post("/publications", {"term": term["id"], "batches": [batch]}))
    changed = seen.sheet({number: dict.fromkeys(TRAITS, 4) for number in seen.students})

    answer = seen.upload(changed)

    words = f"{seen.cohort['classroom']} A, First term, are published: reopen that publication first."
    assert (answer.status_code, message(answer)) == (409, f"The results of {words}")
    api.ok(api.post(f"/publications/{publication['id']}/reopening", {"reason": "Traits"}))
    api.ok(seen.upload(changed))
    (again,) = api.ok(api.post("/publications", {"term": term["id"], "batches": [batch]}))
    assert again["changed"] == 2


def test_a_list_of_metrics_and_comments_are_held_while_results_are_published(api, make):
    seen = Observed(make, 1)
    (student,) = seen.students.values()
    batch, term = seen.cohort["id"], seen.term["id"]
    (publication,) = api.ok(api.post("/publications", {"term": term, "batches": [batch]}))
    scores = [{"student": student, "metric_type": "PSYCHOMOTOR", "metric_scores": {TRAITS[0]: 4}}]
    comment = {"student": student, "form_teacher_comment": "Good"}

    def send():
        metrics = api.put("/metrics", scores, query_string={"batch": batch, "term": term})
        comments = api.put("/comments", {"batch": batch, "term": term, "comments": [comment]})
        return metrics.status_code, comments.status_code

    assert send() == (409, 409)
    api.ok(api.post(f"/publications/{publication['id']}/reopening", {"reason": "Traits"}))
    assert send() == (200, 200)


# The other school


def test_point_10_another_schools_ids_are_unknown(api, other_api, make, make_other):
    mine, theirs = Arms(make), Arms(make_other)
    (published,) = theirs.published(theirs.first)
    mine.mark()
    mine.submit()

    for path in ("", "/changes"):
        assert api.get(f"/publications/{published['id']}{path}").status_code == 404
    assert api.post(f"/publications/{published['id']}/reopening", {"reason": "x"}).status_code == 404
    for batches in ((theirs.second,), (mine.first, theirs.second)):
        answer = mine.publish(*batches)
        assert list(answer.get_json()["errors"]["json"]) == ["batches"]
    answer = mine.publish(term=theirs.terms["FIRST"]["id"])
    assert answer.get_json()["errors"]["json"] == {"term": ["no such term"]}
    ids = {
        "batch": theirs.first,
        "cohort": theirs.cohort["id"],
        "term": theirs.terms["FIRST"]["id"],
        "session": theirs.cohort["session"],
    }
    for name, value in ids.items():
        answer = api.get("/publications", query_string={name: value})
        assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, [name])
    assert mine.listed() == []
    assert [publication["id"] for publication in theirs.listed()] == [published["id"]]
    assert other_api.ok(theirs.reopen(published))["state"] == "REOPENED"
    assert mine.publish().status_code == 200


# Messages


@pytest.mark.parametrize("students", [1, 6])
def test_point_11_publishing_takes_few_messages_however_many_students(api, make, messages, students):
    arms = Arms(make, students, subjects=1)
    arms.mark(step=1)
    arms.submit()

    with messages() as published:
        first, _ = api.ok(arms.publish())
    with messages() as reopened:
        api.ok(arms.reopen(first))
    with messages() as listed:
        arms.listed(cohort=arms.cohort["id"])
    with messages() as shown:
        changes_path = f"/publications/{first['id']}"
        api.ok(api.get(changes_path))

    assert (len(published), len(reopened), len(listed), len(shown)) == (4, 4, 1, 1)
    # Four locks and the decision; replaced rows, new rows, the cards of each batch, and the answer.
    assert sum(sent.count(";\n") + 1 for sent in published[1:-1]) == 8 + 2
