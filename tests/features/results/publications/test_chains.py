"""By which acts a publication is corrected: a dry run of its reopening says so, and each of them succeeds."""

from __future__ import annotations

from uuid import uuid4

import pytest

from school_service.core.database import db
from school_service.features.results.models import ReportCard
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.publications.arms import Arms


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


def chain(arms, publication, **fields):
    """GET the chain of a publication, as a dry run of its reopening answers it."""
    answer = arms.api.post(f"/publications/{publication['id']}/reopening?dry_run=true", fields)
    return arms.api.ok(answer)["chain"]


def do(arms, acts):
    """Do the acts of a chain, and change a score where one is open."""
    changed = False
    for act in acts:
        subject, body = act["cohort_subject"], {"term": act["term"], "batch": act["batch"]}
        reason = {"reason": "A paper was found"}
        match act["act"]:
            case "REOPEN_PUBLICATION":
                answer = arms.api.post(f"/publications/{act['publication']}/reopening", reason)
            case "REOPEN_SUBJECT":
                answer = arms.api.post(f"/cohort-subjects/{subject}/reopening", {**body, **reason})
            case "SUBMIT":
                if not changed:
                    change(arms, subject, act)
                    changed = True
                answer = arms.api.post(f"/cohort-subjects/{subject}/submission", body)
            case "PUBLISH":
                body = {"term": act["term"], "batches": [act["batch"]]}
                answer = arms.api.post("/publications", body)
        assert answer.status_code == 200, (act, answer.get_json())
    return changed


def change(arms, subject, act):
    term = next(name for name, record in arms.terms.items() if record["id"] == act["term"])
    query = {"assessment": arms.papers[term, subject]["id"], "student": arms.students[act["batch"]][0]}
    (entry,) = arms.api.ok(arms.api.get("/gradebooks", query_string=query))["data"]
    arms.api.ok(arms.api.patch(f"/gradebooks/{entry['id']}", {"score": 33}))


def summary(acts):
    return [(act["act"], act["batch"], act["term"], act["cohort_subject"]) for act in acts]


def in_force(arms):
    return {
        (publication["batch"], publication["term"]["term"]): (publication["state"], publication["version"])
        for publication in arms.listed()
        if publication["state"] in {"PUBLISHED", "REOPENED"}
    }


def test_a_publication_alone_is_reopened_and_published(api, arms):
    first, _ = arms.published()
    before = in_force(arms)

    acts = chain(arms, first)

    term = arms.terms["FIRST"]["id"]
    assert summary(acts) == [
        ("REOPEN_PUBLICATION", arms.first, term, None),
        ("PUBLISH", arms.first, term, None),
    ]
    assert [act["publication"] for act in acts] == [first["id"], None]
    assert in_force(arms) == before
    do(arms, acts)
    assert in_force(arms) == {**before, (arms.first, "FIRST"): ("PUBLISHED", 2)}


def test_later_terms_and_other_arms_are_in_the_chain_of_a_changed_subject(api, arms):
    first, _ = arms.published()
    arms.published(term="SECOND")
    arms.published(arms.second, term="THIRD")
    subject = arms.subjects[0]["id"]

    acts = chain(arms, first, subjects=[subject], reason="A paper was found")

    terms = {term["id"]: name for name, term in arms.terms.items()}
    names = {arms.first: "A", arms.second: "B"}
    assert [(act["act"], names[act["batch"]], terms[act["term"]]) for act in acts] == [
        ("REOPEN_PUBLICATION", "B", "THIRD"),
        ("REOPEN_PUBLICATION", "B", "SECOND"),
        ("REOPEN_PUBLICATION", "A", "SECOND"),
        ("REOPEN_PUBLICATION", "B", "FIRST"),
        ("REOPEN_PUBLICATION", "A", "FIRST"),
        ("REOPEN_SUBJECT", "A", "FIRST"),
        ("SUBMIT", "A", "FIRST"),
        ("PUBLISH", "A", "FIRST"),
        ("PUBLISH", "B", "FIRST"),
        ("PUBLISH", "A", "SECOND"),
        ("PUBLISH", "B", "SECOND"),
        ("PUBLISH", "B", "THIRD"),
    ]
    assert do(arms, acts)
    assert {*in_force(arms).values()} == {("PUBLISHED", 2)}


def test_acts_done_already_are_not_in_the_chain(api, arms):
    first, _ = arms.published()
    arms.published(arms.first, term="SECOND")
    subject = arms.subjects[0]["id"]
    acts = chain(arms, first, subjects=[subject])
    of_both = chain(arms, first)

    for number in range(1, len(acts) + 1):
        if acts[number - 1]["act"] == "PUBLISH":
            break
        do(arms, acts[number - 1 : number])
        if acts[number - 1]["act"] == "REOPEN_SUBJECT":
            # Without being named it is left to be submitted, since it was when this was published.
            submitting = [act for act in chain(arms, first) if act["act"] == "SUBMIT"]
            assert [act["cohort_subject"] for act in submitting] == [subject]
        left = [act["act"] for act in chain(arms, first, subjects=[subject])]
        opened = [act["act"] for act in acts[number:] if act["act"].startswith("REOPEN")]
        assert [act for act in left if act == "REOPEN_PUBLICATION"] == [
            act for act in opened if act == "REOPEN_PUBLICATION"
        ]
    assert [act["act"] for act in of_both] == ["REOPEN_PUBLICATION"] * 2 + ["PUBLISH"] * 2


def test_a_subject_in_which_nothing_counted_is_submitted_in_every_arm_and_not_reopened(api, make, arms):
    new = make.cohort_subject(arms.cohort)["id"]
    first, _ = api.ok(arms.publish(without_subjects=[new]))

    acts = chain(arms, first, subjects=[new])

    of_subject = [(act["act"], act["batch"]) for act in acts if act["cohort_subject"]]
    assert of_subject == [("SUBMIT", arms.first), ("SUBMIT", arms.second)]
    place = next(place for place, act in enumerate(acts) if act["act"] == "SUBMIT")
    do(arms, acts[:place])
    paper = make.assessment({"id": new}, arms.terms["FIRST"], total_points=100)
    for student, batch in arms.everyone:
        make.entry(paper, student, batch, 70)
    arms.papers["FIRST", new] = paper
    assert do(arms, acts[place:])


def test_an_elective_that_nobody_took_is_submitted_for_its_new_taker(api, make, arms):
    """A student who had withdrawn comes back to the published class, and takes an elective that nobody took."""
    elective = make.cohort_subject(arms.cohort, elective=True)["id"]
    paper = make.assessment({"id": elective}, arms.terms["FIRST"], total_points=100)
    _, back = arms.students[arms.first]
    api.ok(api.patch(f"/students/{back}", {"status": "WITHDRAWN"}))
    first, _ = arms.published()
    api.ok(api.patch(f"/students/{back}", {"status": "ACTIVE"}))
    api.ok(api.patch(f"/cohort-subjects/{elective}/students", [back]))
    make.entry(paper, back, arms.first, 70)

    acts = chain(arms, first, subjects=[arms.subjects[0]["id"]])

    assert [act["cohort_subject"] for act in acts if act["act"] == "SUBMIT"] == [
        arms.subjects[0]["id"],
        elective,
    ]
    assert do(arms, acts)
    assert api.ok(api.get(f"/students/{back}/results?term=FIRST"))["state"] == "PUBLISHED"


def test_an_arm_without_a_part_in_the_term_is_not_submitted_by_the_chain(api, arms):
    new = arms.make.batch(arms.cohort)["id"]
    first, _ = arms.published()
    arms.make.enrolled(arms.cohort, batch=new)
    (withdrawn,) = arms.make.enrolled(arms.cohort, batch=arms.make.batch(arms.cohort)["id"])
    api.ok(api.patch(f"/students/{withdrawn}", {"status": "WITHDRAWN"}))

    acts = chain(arms, first, subjects=[arms.subjects[0]["id"]])

    assert [act["batch"] for act in acts if act["act"] == "SUBMIT"] == [arms.first]
    assert do(arms, acts)


def test_an_arm_of_its_own_positions_is_corrected_by_itself(api, arms):
    api.ok(api.patch("/result-settings", {"positions": "BATCH"}))
    first, _ = arms.published()

    acts = chain(arms, first, subjects=[arms.subjects[1]["id"]])

    assert {act["batch"] for act in acts} == {arms.first}
    assert do(arms, acts)


def test_a_publication_that_can_not_be_reopened_has_no_chain(api, arms):
    first, second = arms.published()
    api.ok(arms.reopen(first))
    api.ok(arms.publish(arms.first))
    api.ok(arms.reopen(second, withdraw=True))

    for publication, state in ((first, "SUPERSEDED"), (second, "WITHDRAWN")):
        answer = api.post(f"/publications/{publication['id']}/reopening?dry_run=true", {})
        assert (answer.status_code, answer.get_json()["message"]) == (
            409,
            f"This publication is {state}: only what is PUBLISHED can be reopened.",
        )


def test_a_promotion_refuses_the_chain_as_it_refuses_the_reopening(api, make, arms):
    (first,) = arms.published(arms.first)
    above = make.cohort(session=make.session())
    body = {
        "session": arms.cohort["session"],
        "moves": [{"batch": arms.first, "promote_to": above["id"], "repeat_in": None}],
    }
    dry = api.ok(api.post("/promotions?dry_run=true", body))
    api.ok(api.post("/promotions", {**body, "fingerprint": dry["fingerprint"]}))

    answers = [
        api.post(f"/publications/{first['id']}/reopening{query}", {"reason": "Why"})
        for query in ("", "?dry_run=true")
    ]

    assert [answer.status_code for answer in answers] == [409, 409]
    assert answers[0].get_json()["message"] == answers[1].get_json()["message"]


def test_subjects_of_other_cohorts_and_wrong_members_are_refused(api, make, make_other, arms):
    (first,) = arms.published(arms.first)
    path = f"/publications/{first['id']}/reopening"
    strangers = [
        make.cohort_subject(make.cohort())["id"],
        make_other.cohort_subject(make_other.cohort())["id"],
        str(uuid4()),
    ]

    for stranger in strangers:
        answer = api.post(f"{path}?dry_run=true", {"subjects": [arms.subjects[0]["id"], stranger]})
        assert answer.status_code == 422
        assert stranger in answer.get_json()["errors"]["json"]["subjects"][0]
    for fields, query, field in (
        ({}, "", "reason"),
        ({"reason": "Why", "subjects": [arms.subjects[0]["id"]]}, "", "subjects"),
        ({"withdraw": True}, "?dry_run=true", "withdraw"),
        ({"subjects": "all"}, "?dry_run=true", "subjects"),
    ):
        answer = api.post(path + query, fields)
        assert (answer.status_code, [*answer.get_json()["errors"]["json"]]) == (422, [field])
    for unknown in (str(uuid4()), "x"):
        assert api.post(f"/publications/{unknown}/reopening?dry_run=true", {}).status_code == 404


def test_another_school_has_no_chain_of_it(other_api, arms):
    (first,) = arms.published(arms.first)

    assert other_api.post(f"/publications/{first['id']}/reopening?dry_run=true", {}).status_code == 404


# Differences


def test_changes_name_each_figure_that_differs(api, arms):
    first, second = arms.published()
    student = arms.students[arms.first][0]
    for publication in (first, second):
        api.ok(arms.reopen(publication))
    arms.correct(student, 44)
    comments = [{"student": student, "form_teacher_comment": "Good"}]
    api.ok(api.put("/comments", {"batch": arms.first, "term": "FIRST", "comments": comments}))
    again, _ = api.ok(arms.publish())

    changes = api.ok(api.get(f"/publications/{again['id']}/changes"))

    subject = arms.subjects[0]["subject"]
    of_student = next(row for row in changes if row["student"]["id"] == student)
    differs = {
        (row["member"], row["subject"]): (row["before"], row["after"]) for row in of_student["differs"]
    }
    assert differs["subjects.percent", subject] == (90, 44)
    assert differs["average", None] == (90, 67)
    assert differs["comments.form_teacher", None] == (None, "Good")
    before, after = differs["subjects.scores", subject]
    assert (before["score"], after["score"], before["abbreviation"]) == (90, 44, after["abbreviation"])
    assert differs["cumulative.subjects.percent", subject] == (90, 44)
    # Nothing that stayed, and nothing of the class.
    assert {key for key in differs if key[1] == arms.subjects[1]["subject"]} == set()
    assert not any(
        member.endswith((".average", ".of")) and "cumulative" not in member for member, _ in differs
    )
    other = next(row for row in changes if row["student"]["id"] != student)
    assert {row["member"].rpartition(".")[2] for row in other["differs"]} <= {"position", "tied"}


def test_a_newcomer_has_no_differences(api, make, arms):
    (first,) = arms.published(arms.first)
    api.ok(arms.reopen(first))
    for subject in range(2):
        api.ok(arms.reopen_subject(subject))
    come = make.enrolled(arms.cohort, make.student(), batch=arms.first)[0]
    for subject in arms.subjects:
        make.entry(arms.papers["FIRST", subject["id"]], come, arms.first)
    arms.submit()
    (again,) = api.ok(arms.publish(arms.first))

    changes = api.ok(api.get(f"/publications/{again['id']}/changes"))

    assert [(row["before"], row["differs"]) for row in changes if row["student"]["id"] == come] == [
        (None, [])
    ]


def test_marks_are_compared_by_category_although_the_percent_is_the_same(api, unmarked):
    """Half of the points in both categories: by any weights it is 50 percent, and the marks on paper are others."""
    weights = [{"level": None, "category": kind, "weight": of} for kind, of in (("CA1", 40), ("EXAM", 60))]
    for weight in weights:
        unmarked.mark(first=50, step=0, category=weight["category"])
    api.ok(api.patch("/result-settings", {"weighting": "CATEGORIES", "weights": weights}))
    first, second = unmarked.published()
    weights = [{**weight, "weight": 100 - weight["weight"]} for weight in weights]
    api.ok(api.patch("/result-settings", {"weights": weights}))
    for publication in (first, second):
        api.ok(unmarked.reopen(publication))

    again = api.ok(unmarked.publish())

    assert [publication["changed"] for publication in again] == [2, 2]
    changes = api.ok(api.get(f"/publications/{again[0]['id']}/changes"))
    name = unmarked.subjects[0]["subject"]
    differs = [row for row in changes[0]["differs"] if row["subject"] == name]
    assert [(row["member"], row["before"], row["after"]) for row in differs] == [
        (
            "subjects.marks",
            {"category": category, "mark": weight / 2, "weight": weight},
            {"category": category, "mark": (100 - weight) / 2, "weight": 100 - weight},
        )
        for category, weight in (("CA1", 40), ("EXAM", 60))
    ]


def test_a_card_that_was_frozen_without_marks_differs_in_none(api, arms):
    weights = [{"level": None, "category": "EXAM", "weight": 100}]
    api.ok(api.patch("/result-settings", {"weighting": "CATEGORIES", "weights": weights}))
    first, second = arms.published()
    with api.app.app_context(), in_transaction(SchoolBinding(api.school)):
        for card in db.session.query(ReportCard):
            subjects = [{name: row[name] for name in row if name != "marks"} for row in card.card["subjects"]]
            card.card = {**card.card, "subjects": subjects}
    for publication in (first, second):
        api.ok(arms.reopen(publication))

    assert [publication["changed"] for publication in api.ok(arms.publish())] == [0, 0]
