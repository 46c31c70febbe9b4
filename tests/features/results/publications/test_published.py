"""Readings of published results: made of the frozen cards alone, for staff and for the student's own account."""

from __future__ import annotations

from copy import deepcopy
from uuid import UUID, uuid4

import pytest

from school_service.core.database import db
from school_service.core.read_models import fetch_document
from school_service.features.results.figures.reads import subject_in_term
from school_service.features.results.models import ReportCard
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import PASSWORD
from tests.features.results.publications.arms import Arms
from tests.features.results.stored_settings import store_settings
from tests.features.results.submissions.classes import message
from tests.savepoint_engine import uncommitted

FIGURES = ("position", "of", "tied", "average", "lowest", "highest")


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


def of_student(api, student, term="FIRST", **query):
    return api.get(f"/students/{student}/results", query_string={"term": term, **query})


def of_subject(arms, term="FIRST", number=0, **query):
    path = f"/cohort-subjects/{arms.subjects[number]['id']}/results"
    return arms.api.get(path, query_string={"term": term, **query})


def as_student(make, student):
    """Sign in as a student."""
    user = make.api.ok(make.api.get(f"/students/{student}"))["user"]
    make.api.ok(make.api.put(f"/users/{user}/password", {"password": PASSWORD}))
    return make.signed_in(make.api.ok(make.api.get(f"/users/{user}")))


def settings(api, **values):
    with in_transaction(SchoolBinding(api.school)):
        store_settings(**values)


# A student's results


def test_published_results_are_the_live_ones_with_their_state(api, arms):
    student = arms.students[arms.first][0]
    live = api.ok(of_student(api, student))

    (published,) = api.ok(arms.publish(arms.first))

    shown = api.ok(of_student(api, student))
    at = published["published_at"]
    assert live["state"] == "PROVISIONAL"
    assert shown == {**live, "state": "PUBLISHED", "version": 1, "published_at": at}
    assert api.ok(of_student(api, student, arms.terms["FIRST"]["id"])) == shown
    assert api.ok(of_student(api, student, live="true")) == live
    other = arms.students[arms.second][0]
    assert api.ok(of_student(api, other))["state"] == "PROVISIONAL"


def test_published_results_of_a_class_of_one_arm_are_the_live_ones_too(api, make, rehearsed):
    cohort = make.cohort()
    students = make.enrolled(cohort, *(make.student() for _ in range(3)), batch=cohort["id"])
    subject = make.cohort_subject(cohort)
    term = make.term({"id": cohort["session"]}, term="FIRST")
    paper = make.assessment(subject, term, category="EXAM", total_points=100, publish_scores=True)
    for student, score in zip(students, (70, 90, 70), strict=True):
        make.entry(paper, student, cohort["id"], score)
    api.ok(api.post(f"/cohort-subjects/{subject['id']}/submission", {"term": term["id"]}))
    live = [api.ok(of_student(api, student)) for student in students]

    (published,) = api.ok(api.post("/publications", {"term": term["id"], "batches": [cohort["id"]]}))

    said = {"state": "PUBLISHED", "version": 1, "published_at": published["published_at"]}
    assert [api.ok(of_student(api, student)) for student in students] == [{**row, **said} for row in live]
    assert live[0]["cohort_figures"] == live[0]["batch_figures"]
    assert live[0]["batch_figures"] | {"position": 2, "tied": True, "of": 3} == live[0]["batch_figures"]


def test_a_version_under_review_is_shown_and_marked(api, arms):
    (first,) = arms.published(arms.first)
    student = arms.students[arms.first][1]
    published = api.ok(of_student(api, student))
    api.ok(arms.reopen(first))
    arms.correct(student, 99)

    reviewed = api.ok(of_student(api, student))

    assert reviewed == {**published, "state": "REOPENED"}
    assert api.ok(of_student(api, student, live="true"))["average"] == 92
    api.ok(arms.publish(arms.first))
    again = api.ok(of_student(api, student))
    assert (again["state"], again["version"], again["average"]) == ("PUBLISHED", 2, 92)


def test_withdrawn_results_are_shown_to_staff_alone(api, make, arms):
    (first,) = arms.published(arms.first)
    student = arms.students[arms.first][0]
    published = api.ok(of_student(api, student))
    own = as_student(make, student)
    assert of_student(own, student).status_code == 200

    api.ok(arms.reopen(first, withdraw=True))

    assert api.ok(of_student(api, student)) == {**published, "state": "WITHDRAWN"}
    answer = of_student(own, student)
    assert (answer.status_code, message(answer)) == (404, "Nothing is published.")
    api.ok(arms.publish(arms.first))
    assert of_student(own, student).get_json()["version"] == 2


def test_results_of_students_who_left_school_are_read_as_published(api, arms):
    arms.published(arms.first)
    withdrawn, graduate = arms.students[arms.first]
    before = [of_student(api, student).data for student in (withdrawn, graduate)]

    api.ok(api.patch(f"/students/{withdrawn}", {"status": "WITHDRAWN"}))
    arms.make.graduate({"id": graduate})

    assert [of_student(api, student).data for student in (withdrawn, graduate)] == before
    assert of_student(api, withdrawn, "SECOND").status_code == 422
    arms.make.term({"id": arms.cohort["session"]}, term="SECOND")
    assert of_student(api, withdrawn, "SECOND").status_code == 404


# Of a subject


def test_the_results_of_a_subject_are_published_arm_by_arm(api, arms):
    live = api.ok(of_subject(arms))

    api.ok(arms.publish(arms.first))

    shown = api.ok(of_subject(arms))
    states = [(result["student"]["id"], result["state"], result["version"]) for result in shown]
    assert states == [
        *((student, "PUBLISHED", 1) for student in arms.students[arms.first]),
        *((student, "PROVISIONAL", None) for student in arms.students[arms.second]),
    ]
    assert [{**result, "state": "PROVISIONAL", "version": None} for result in shown] == live
    assert api.ok(of_subject(arms, batch=arms.first)) == shown[:2]
    assert api.ok(of_subject(arms, batch=arms.second)) == shown[2:]
    assert api.ok(of_subject(arms, live="true")) == live
    api.ok(arms.publish(arms.second))
    assert {result["state"] for result in api.ok(of_subject(arms))} == {"PUBLISHED"}


def test_students_without_live_results_are_read_of_cards_alone(api, arms):
    api.ok(arms.publish(arms.first))

    def read(*batch):
        with in_transaction(SchoolBinding(api.school)):
            subject = UUID(arms.subjects[0]["id"])
            row = fetch_document(subject_in_term(subject, "FIRST", *map(UUID, batch)))
        return {of_card for of_card, _ in row["by_name"]}, row["held"] is None, row["entered"] is None

    assert read(arms.first) == ({True}, True, True)
    assert read() == ({True, False}, False, False)


def test_a_mover_between_arms_is_in_the_results_of_a_subject_once(api, arms):
    (of_first,) = arms.published(arms.first)
    student = arms.students[arms.first][0]
    api.ok(
        api.post(f"/cohorts/{arms.cohort['id']}/enrollment", {"students": [student], "batch": arms.second})
    )
    api.ok(arms.reopen(of_first))
    api.ok(arms.publish(arms.second))

    def states(**query):
        listed = api.ok(of_subject(arms, **query))
        return [result["state"] for result in listed if result["student"]["id"] == student]

    assert states() == ["REOPENED"]
    assert len(api.ok(of_subject(arms))) == len(arms.everyone)
    # A student with a card of one arm has none of the other.
    assert (states(batch=arms.first), states(batch=arms.second)) == (["REOPENED"], [])


def test_a_newcomer_after_a_publication_is_in_none_of_its_subjects(api, make, arms):
    arms.published()
    (late,) = make.enrolled(arms.cohort, batch=arms.first)
    assert late not in {result["student"]["id"] for result in api.ok(of_subject(arms))}
    # They have no part in the term, so they are not in live results either.
    assert late not in {result["student"]["id"] for result in api.ok(of_subject(arms, live="true"))}


# Once published


def readings(arms, terms=("FIRST",)):
    """The bytes of every answer that is made of published results."""
    paths = [f"/students/{student}/transcript" for student, _ in arms.everyone]
    for term in terms:
        term_id = arms.terms[term]["id"]
        paths += [f"/students/{student}/results?term={term_id}" for student, _ in arms.everyone]
        paths += [f"/cohort-subjects/{subject['id']}/results?term={term}" for subject in arms.subjects]
        paths += [
            f"/cohort-subjects/{arms.subjects[0]['id']}/results?term={term}&batch={batch}"
            for batch in arms.students
        ]
        paths += [f"/broadsheets?batch={batch}&term={term}" for batch in arms.students]
    paths += [f"/broadsheets?batch={batch}&session={arms.cohort['session']}" for batch in arms.students]
    answers = {}
    for path in paths:
        answer = arms.api.get(path)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        answers[path] = without_moment(answer.data)
    return answers


def answers(arms, term="FIRST"):
    """The bytes of all answers about publications, themselves and workbooks too; of an error its status."""
    of_student = [f"/students/{student}" for student, _ in arms.everyone]
    paths = [f"{path}/results?term={arms.terms[term]['id']}" for path in of_student]
    paths += [f"{path}/transcript" for path in of_student]
    for batch in arms.students:
        for query in (f"term={term}", f"session={arms.cohort['session']}"):
            paths += [f"/broadsheets{form}?batch={batch}&{query}" for form in ("", "/download")]
        paths += [f"/cohort-subjects/{row['id']}/results?term={term}&batch={batch}" for row in arms.subjects]
    for publication in arms.listed():
        paths += [f"/publications/{publication['id']}", f"/publications/{publication['id']}/changes"]
    responses = {path: arms.api.get(path) for path in ("/publications", *paths)}
    # An error names its request; a transcript without published results says the present state.
    return {
        path: without_moment(answer.data) if answer.status_code == 200 else answer.status_code
        for path, answer in responses.items()
        if b'"sessions":[]' not in answer.data
    }


def without_moment(answer):
    """An answer without the moment at which a transcript was asked for."""
    before, separator, after = answer.partition(b'"generated_at":"')
    return before + after.partition(b'"')[2] if separator else answer


def rename(arms):
    student = arms.students[arms.first][0]
    changes = {"first_name": "Changed", "last_name": "Àbíkẹ́", "middle_name": "X", "dob": "2012-01-31"}
    arms.api.ok(arms.api.patch(f"/students/{student}", {**changes, "gender": "FEMALE"}))


def change_bands(arms):
    for band in arms.api.ok(arms.api.get("/grade-configs")):
        changes = {"letter_grade": f"Z{band['letter_grade']}", "remarks": "Changed"}
        arms.api.ok(arms.api.patch(f"/grade-configs/{band['id']}", changes))


def change_settings(arms):
    values = {"percent_places": 0, "pass_mark": 100, "minimum_subjects": 40, "rank_by": "TOTAL"}
    settings(arms.api, **values, positions="NONE", first_term_weight=0)


def move(arms):
    arms.make.enrolled(arms.cohort, {"id": arms.students[arms.first][1]}, batch=arms.second)


def leave(arms):
    body = {"student_ids": [arms.students[arms.second][0]]}
    arms.api.ok(arms.api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", body))


def drop_elective(arms):
    for student in arms.electing:
        arms.api.ok(arms.api.delete(f"/cohort-subjects/{arms.subjects[-1]['id']}/students/{student}"))


def rename_classroom(arms):
    cohort = arms.api.ok(arms.api.get(f"/cohorts/{arms.cohort['id']}"))
    rooms = arms.api.ok(arms.api.get("/classrooms", query_string={"pageSize": 1000}))
    rooms = rooms["data"] if isinstance(rooms, dict) else rooms
    (room,) = (room for room in rooms if room["name"] == cohort["classroom"])
    arms.api.ok(arms.api.patch(f"/classrooms/{room['id']}", {"name": "Changed", "level": "Changed"}))


def rename_session(arms):
    arms.api.ok(arms.api.patch(f"/sessions/{arms.cohort['session']}", {"name": "Changed"}))


def rename_publisher(arms):
    me = arms.api.ok(arms.api.get("/publications"))["data"][0]["published_by"]
    arms.api.ok(arms.api.patch(f"/users/{me}", {"first_name": "Changed", "last_name": "Changed"}))


def change_letterhead(arms):
    arms.api.ok(arms.api.patch("/letterhead", {"name": "Changed", "motto": "Changed"}))


def change_calendar(arms):
    path = f"/terms/{arms.terms['FIRST']['id']}/calendar"
    arms.api.ok(arms.api.put(path, {"times_opened": 99, "notice": "Changed"}))


def correct_everything(arms):
    """Make the changes that are possible while nothing of a term is PUBLISHED."""
    for student, batch in arms.everyone:
        body = {
            "batch": batch,
            "term": "FIRST",
            "comments": [{"student": student, "form_teacher_comment": "X"}],
        }
        arms.api.ok(arms.api.put("/comments", body))
    for number in range(len(arms.subjects)):
        arms.api.ok(arms.reopen_subject(number))
    paper = arms.papers["FIRST", arms.subjects[0]["id"]]["id"]
    for entry in arms.api.ok(arms.api.get("/gradebooks", query_string={"assessment": paper}))["data"]:
        arms.api.ok(arms.api.patch(f"/gradebooks/{entry['id']}", {"score": 1}))


def enter_next_term(arms):
    arms.subjects.pop()
    arms.mark("SECOND", first=20, step=1)
    arms.subjects.append({"id": arms.elective})


CHANGES = (
    enter_next_term,  # before somebody moves or leaves
    rename,
    change_bands,
    change_settings,
    move,
    leave,
    drop_elective,
    rename_classroom,
    rename_session,
    rename_publisher,
    change_letterhead,
    change_calendar,
)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([CHANGES], id="all together"),
        pytest.param([(change,) for change in CHANGES], id="each alone", marks=pytest.mark.release),
    ],
)
def test_point_5_no_answer_changes_but_by_a_new_version(api, make, unmarked, uncommitted_engine, changes):
    elective = make.cohort_subject(unmarked.cohort, elective=True)
    unmarked.electing = [unmarked.students[unmarked.first][0], unmarked.students[unmarked.second][1]]
    api.ok(api.patch(f"/cohort-subjects/{elective['id']}/students", unmarked.electing))
    unmarked.mark()
    unmarked.subjects.append(elective)
    unmarked.elective = elective["id"]
    paper = make.assessment(elective, unmarked.terms["FIRST"], total_points=50)
    for student, batch in unmarked.everyone:
        if student in unmarked.electing:
            make.entry(paper, student, batch, 40)
    first, _ = unmarked.published()
    before, all_before = readings(unmarked), answers(unmarked)

    for made in changes:
        changed = deepcopy(unmarked)
        with uncommitted(uncommitted_engine):
            for change in made:
                change(changed)

            assert readings(changed) == before, made
            assert answers(changed) == all_before, made
            # The version before stays readable to staff.
            api.ok(changed.reopen(first))
            reviewed = readings(changed).items()
            shown = {path: answer.replace(b"REOPENED", b"PUBLISHED") for path, answer in reviewed}
            assert shown == before, made


@pytest.mark.parametrize("withdraw", [False, True])
def test_point_5_results_under_review_or_withdrawn_stay_as_they_were_published(api, arms, withdraw):
    arms.electing = []
    for publication in arms.published():
        api.ok(arms.reopen(publication, withdraw=withdraw))
    before = answers(arms)
    session = f"/broadsheets?batch={arms.first}&session={arms.cohort['session']}"
    assert (before[session] == 404) is withdraw
    assert len(before[f"/broadsheets/download?batch={arms.first}&term=FIRST"]) > 1000

    for change in (
        correct_everything,
        rename,
        change_bands,
        change_settings,
        rename_classroom,
        rename_session,
        rename_publisher,
        change_letterhead,
        change_calendar,
        move,
        leave,
    ):
        change(arms)

    assert answers(arms) == before
    live = api.ok(of_student(api, arms.students[arms.first][0], live="true"))
    assert (live["student"]["last_name"], live["classroom"]) == ("Àbíkẹ́", "Changed")


def test_point_5_a_version_that_was_replaced_stays_as_it_was(api, arms):
    (first,) = arms.published(arms.first)
    api.ok(arms.reopen(first))
    api.ok(arms.publish(arms.first))
    paths = [f"/publications/{first['id']}", f"/publications/{first['id']}/changes"]
    before = [api.get(path).data for path in paths]
    assert api.ok(api.get(paths[0]))["state"] == "SUPERSEDED"

    for change in (rename, change_settings, rename_classroom, rename_session, rename_publisher, leave):
        change(arms)

    assert [api.get(path).data for path in paths] == before


def test_point_5_a_subject_that_the_cohort_takes_up_later_changes_no_broadsheet(api, make, arms):
    """Of a session: a student from another cohort has its subjects there, by their own ids."""
    arms.published(arms.first, term="FIRST")
    api.ok(arms.publish(arms.second))
    student, session = arms.students[arms.first][0], {"id": arms.cohort["session"]}
    body = {"student_ids": [student]}
    api.ok(api.patch(f"/cohorts/{arms.cohort['id']}/remove_students", body))
    other = make.cohort(session=session)
    make.enrolled(other, {"id": student})
    taken, second = make.cohort_subject(other), make.term(session, term="SECOND")
    paper = make.assessment(taken, second, category="EXAM", total_points=100)
    make.entry(paper, student, other["id"], 50)
    api.ok(api.post(f"/cohort-subjects/{taken['id']}/submission", {"term": "SECOND"}))
    api.ok(api.post("/publications", {"term": "SECOND", "batches": [other["id"]]}))
    query = {"batch": other["id"], "session": session["id"]}
    before = api.get("/broadsheets", query_string=query)
    brought = [subject for subject in api.ok(before)["subjects"] if subject["id"] != taken["id"]]
    assert [subject["id"] == subject["base"] for subject in brought] == [True, True]

    make.cohort_subject(other, {"id": brought[0]["base"]}, elective=True)

    assert api.get("/broadsheets", query_string=query).data == before.data


def test_the_cards_of_earlier_terms_count_as_they_were_published(api, make, arms):
    arms.published()
    change_bands(arms)
    arms.mark("SECOND", first=70)
    arms.submit("SECOND")
    api.ok(arms.publish(term="SECOND"))
    student = arms.students[arms.first][0]

    cumulative = api.ok(of_student(api, student, "SECOND"))["cumulative"]

    assert (cumulative["terms"], cumulative["average"]) == (2, 80)
    assert [subject["terms"] for subject in cumulative["subjects"]] == [
        {"FIRST": 90, "SECOND": 70, "THIRD": None},
        {"FIRST": 90, "SECOND": 70, "THIRD": None},
    ]


# A student's own


def test_students_read_their_own_published_results_and_no_others(api, make, arms):
    student, classmate = arms.students[arms.first]
    own = as_student(make, student)
    # Of a term that the school does not have yet, too.
    for term in ("FIRST", "THIRD"):
        answer = own.get(f"/students/{student}/results", query_string={"term": term})
        assert (answer.status_code, message(answer)) == (404, "Nothing is published.")

    api.ok(arms.publish(arms.first))

    assert own.ok(of_student(own, student)) == api.ok(of_student(api, student))
    for other in (classmate, arms.students[arms.second][0], str(uuid4())):
        for path in ("results?term=FIRST", "transcript"):
            answer = own.get(f"/students/{other}/{path}")
            assert (answer.status_code, message(answer)) == (
                403,
                "This needs the permission read:results.",
            )
    answer = of_student(own, student, live="true")
    assert (answer.status_code, message(answer)) == (403, "Students see what is published of them alone.")
    assert own.get(f"/broadsheets?batch={arms.first}&term=FIRST").status_code == 403
    assert of_subject_as(own, arms).status_code == 403


def of_subject_as(client, arms):
    return client.get(f"/cohort-subjects/{arms.subjects[0]['id']}/results?term=FIRST")


def test_a_students_account_with_a_permission_sees_its_own_as_a_student_and_others_as_staff(
    api, make, unmarked
):
    unmarked.mark(publish_scores=False)
    unmarked.published(unmarked.first)
    student, classmate = unmarked.students[unmarked.first]
    user = api.ok(api.get(f"/students/{student}"))["user"]
    role = make.role("read:results")
    api.ok(api.put(f"/users/{user}/roles", {"role": role["id"]}))
    both = as_student(make, student)

    assert both.ok(of_student(both, student))["subjects"][0]["scores"] == []
    assert len(both.ok(of_student(both, classmate))["subjects"][0]["scores"]) == 1
    assert of_student(both, student, live="true").status_code == 403


def test_scores_that_are_not_published_singly_count_and_are_not_shown(api, make, unmarked):
    unmarked.mark(publish_scores=False)
    for subject in unmarked.subjects:
        paper = make.assessment(subject, unmarked.terms["FIRST"], total_points=100, publish_scores=True)
        for student, batch in unmarked.everyone:
            make.entry(paper, student, batch, 50)
    unmarked.published(unmarked.first)
    student = unmarked.students[unmarked.first][0]
    own = as_student(make, student)

    staff, shown = api.ok(of_student(api, student)), own.ok(of_student(own, student))

    assert [[score["publish"] for score in subject["scores"]] for subject in staff["subjects"]] == [
        [True, False],
        [True, False],
    ]
    for subject, all_of_it in zip(shown["subjects"], staff["subjects"], strict=True):
        assert subject == {**all_of_it, "scores": all_of_it["scores"][:1]}
        assert (subject["score"], subject["percent"]) == (140, 70)


def test_a_principals_comment_that_is_blank_is_filled_in_by_the_average(api, unmarked):
    unmarked.mark(first=90, step=20)
    first, *others = (student for student, _ in unmarked.everyone)
    comments = {31: "Work harder.", 70: "Ó dára púpọ̀.", 50.5: "Fair."}
    listed = [{"lower_threshold": threshold, "comment": comment} for threshold, comment in comments.items()]
    api.ok(api.patch("/result-settings", {"principal_comments": listed}))
    written = [{"student": first, "principal_comment": "Written by hand."}]
    api.ok(api.put("/comments", {"batch": unmarked.first, "term": "FIRST", "comments": written}))

    (publication, _) = unmarked.published()

    # 90, with a comment written by hand, 70, 50 and 30, which is below all thresholds.
    of_70, of_50, of_30 = others
    filled = {first: "Written by hand.", of_70: "Ó dára púpọ̀.", of_50: "Work harder.", of_30: None}
    assert principals(api) == filled
    # It is on the card alone, and stays as it was published until the next version.
    api.ok(api.patch("/result-settings", {"principal_comments": []}))
    stored = api.ok(api.get("/comments", query_string={"batch": unmarked.first, "term": "FIRST"}))
    assert {comment["student"]["id"]: comment["principal_comment"] for comment in stored}[of_70] is None
    assert principals(api) == filled
    api.ok(unmarked.reopen(publication))
    (again,) = api.ok(unmarked.publish(unmarked.first))
    assert (principals(api)[of_70], again["changed"]) == (None, 1)


def test_a_student_without_average_gets_no_comment_of_the_principals(api, unmarked):
    comments = [{"lower_threshold": 0, "comment": "See me."}]
    api.ok(api.patch("/result-settings", {"principal_comments": comments}))
    excused, marked = unmarked.students[unmarked.first]
    term = unmarked.terms["FIRST"] = unmarked.make.term({"id": unmarked.cohort["session"]}, term="FIRST")
    for subject in unmarked.subjects:
        paper = unmarked.make.assessment(subject, term, category="EXAM", total_points=100)
        everyone = [student for student, _ in unmarked.everyone if student != marked]
        api.ok(unmarked.make.absences(paper, dict.fromkeys(everyone, "EXCUSED")))
        unmarked.make.entry(paper, marked, unmarked.first, 50)

    unmarked.published(unmarked.first)

    assert {key: principals(api)[key] for key in (excused, marked)} == {excused: None, marked: "See me."}
    assert api.ok(of_student(api, excused))["status"] == "NONE"


def test_a_card_has_form_teacher_traits_and_bands(api, make, arms):
    """The latest form teacher with the title, traits by type in the order of the sheets, bands from high to low."""
    for title, name in (("Mrs", "Adaeze"), ("Dr", "Ngọzi")):
        teacher = make.employee(title=title, first_name=name, last_name="Ọkáfọ̀")
        api.ok(api.patch(f"/teachers/{arms.first}/add_to_batch", {"teacher_id": teacher["id"]}))
    student, _ = arms.students[arms.first]
    given = (
        ("PSYCHOMOTOR", {"painting": 2, "handwriting": 3}),
        ("AFFECTIVE", {"neatness": 4, "punctuality": 5}),
    )
    seen = [{"student": student, "metric_type": kind, "metric_scores": scores} for kind, scores in given]
    api.ok(api.put(f"/metrics?batch={arms.first}&term=FIRST", seen))

    arms.published(arms.first)

    with in_transaction(SchoolBinding(api.school, read_only=True)):
        card = db.session.scalars(
            db.select(ReportCard.card).where(ReportCard.student_id == UUID(student))
        ).one()
    assert card["form_teacher_name"] == "Dr Ngọzi Ọkáfọ̀"
    assert [(trait["type"], trait["name"], trait["value"]) for trait in card["traits"]] == [
        ("AFFECTIVE", "punctuality", 5), ("AFFECTIVE", "neatness", 4),
        ("PSYCHOMOTOR", "handwriting", 3), ("PSYCHOMOTOR", "painting", 2),
    ]  # fmt: skip
    thresholds = [band["lower_threshold"] for band in card["bands"]]
    assert thresholds == sorted(thresholds, reverse=True)
    assert card["number_in_class"] == 2
    # Where the letterhead says nothing, the registry's entry of the school counts.
    assert (card["letterhead"]["name"], card["letterhead"]["website"]) == ("Queen's College, Yaba", None)


def test_of_two_arms_in_which_a_card_was_withdrawn_the_later_is_shown(api, make, arms):
    (of_first,) = arms.published(arms.first)
    student = arms.students[arms.first][0]
    api.ok(arms.reopen(of_first, withdraw=True))
    make.enrolled(arms.cohort, {"id": student}, batch=arms.second)
    (of_second,) = api.ok(arms.publish(arms.second))
    api.ok(arms.reopen(of_second, withdraw=True))

    shown = api.ok(of_student(api, student))

    assert (shown["batch"], shown["state"]) == (arms.second, "WITHDRAWN")


def principals(api):
    """The principal's comment on the newest card of each student."""
    with in_transaction(SchoolBinding(api.school, read_only=True)):
        newest = ReportCard.card["version"].as_integer()
        rows = db.session.execute(db.select(ReportCard.student_id, ReportCard.card).order_by(newest)).all()
    return {str(student): card["comments"]["principal"] for student, card in rows}


@pytest.mark.parametrize("positions", ["BOTH", "BATCH", "COHORT", "NONE"])
def test_positions_are_shown_as_they_were_set_at_the_publication(api, make, arms, positions):
    settings(api, positions=positions)
    arms.published(arms.first)
    student = arms.students[arms.first][0]
    own = as_student(make, student)

    staff, shown = api.ok(of_student(api, student)), own.ok(of_student(own, student))

    assert set(staff["batch_figures"]) == set(FIGURES)
    hidden = {"position": None, "of": None, "tied": False}
    batch = {} if positions in {"BOTH", "BATCH"} else hidden
    cohort = {} if positions in {"BOTH", "COHORT"} else hidden

    def as_shown(of, batch_member, cohort_member):
        figures = {
            batch_member: {**of[batch_member], **batch},
            cohort_member: {**of[cohort_member], **cohort},
        }
        return {**of, **figures}

    expected = as_shown(staff, "batch_figures", "cohort_figures")
    expected["cumulative"] = as_shown(staff["cumulative"], "batch_figures", "cohort_figures")
    expected["subjects"] = [as_shown(subject, "batch", "cohort") for subject in staff["subjects"]]
    assert shown == expected
    transcript = own.ok(own.get(f"/students/{student}/transcript"))
    (session,) = transcript["sessions"]
    place = (1, 2) if positions in {"BOTH", "BATCH"} else (None, None)
    assert {(period["position"], period["of"]) for period in (session, *session["terms"])} == {place}


# The transcript


def test_the_tag_of_a_transcript_is_without_the_moment_at_which_it_is_asked_for(api, make, arms):
    student = arms.students[arms.first][0]
    arms.published()
    path = f"/students/{student}/transcript"
    for client in (api, as_student(make, student)):
        first = client.get(path)
        known = {"If-None-Match": first.headers["ETag"]}
        assert client.get(path, headers=known).status_code == 304
        assert client.get(path).get_json()["generated_at"] > first.get_json()["generated_at"]
    arms.published(arms.first, term="SECOND")
    assert api.get(path, headers=known).status_code == 200


def test_a_transcript_has_every_published_term_the_oldest_session_first(api, make, arms):
    student = arms.students[arms.first][0]
    arms.published()
    arms.published(arms.first, term="SECOND")
    later = Arms(make)
    later.make.enrolled(later.cohort, {"id": student}, batch=later.first)
    later.students[later.first].insert(0, student)
    (last,) = later.published(later.first)

    transcript = api.ok(api.get(f"/students/{student}/transcript"))

    shown = api.ok(of_student(api, student))
    unknown = dict.fromkeys(("dob", "admitted_on", "former_school", "left_on"))
    about = {**shown["student"], **unknown}
    assert transcript["student"] == about
    assert transcript["school"]["name"] == "Queen's College, Yaba"
    assert (transcript["graduation_class"], transcript["generated_at"] > last["published_at"]) == (None, True)
    first, second = transcript["sessions"]
    assert first["session"]["id"] == arms.cohort["session"]
    assert (first["classroom"], first["batch_name"]) == (arms.cohort["classroom"], "A")
    assert [(row["term"]["term"], row["average"], row["version"]) for row in first["terms"]] == [
        ("FIRST", 90, 1),
        ("SECOND", 90, 1),
    ]
    names = [subject["subject"] for subject in arms.subjects]
    assert [subject["name"] for subject in first["subjects"]] == sorted(names)
    assert first["subjects"][0] == {
        "name": sorted(names)[0],
        "code": first["subjects"][0]["code"],
        "FIRST": 90,
        "SECOND": 90,
        "THIRD": None,
        "percent": 90,
        "grade": "A1",
    }
    place = {name: first[name] for name in ("average", "grade", "position", "of", "outcome")}
    assert place == {"average": 90, "grade": "A1", "position": 1, "of": 2, "outcome": None}
    assert (second["session"]["id"], second["terms"][0]["of"]) == (later.cohort["session"], 3)


def test_a_transcript_without_published_results_is_empty_to_staff_and_unknown_to_the_student(api, make, arms):
    student = arms.students[arms.first][0]
    own = as_student(make, student)

    transcript = api.ok(api.get(f"/students/{student}/transcript"))

    assert (transcript["sessions"], transcript["student"]["id"]) == ([], student)
    answer = own.get(f"/students/{student}/transcript")
    assert (answer.status_code, message(answer)) == (404, "Nothing is published.")
    unknown = api.get(f"/students/{uuid4()}/transcript")
    assert (unknown.status_code, message(unknown)) == (404, "No such student.")


def test_withdrawn_results_are_in_no_transcript(api, make, arms):
    (first,) = arms.published(arms.first)
    student = arms.students[arms.first][0]
    own = as_student(make, student)
    assert len(own.ok(own.get(f"/students/{student}/transcript"))["sessions"]) == 1

    api.ok(arms.reopen(first, withdraw=True))

    assert api.ok(api.get(f"/students/{student}/transcript"))["sessions"] == []
    assert own.get(f"/students/{student}/transcript").status_code == 404


def test_a_graduate_has_a_class_in_the_transcript(api, make, arms):
    arms.published(arms.first)
    student = arms.students[arms.first][0]
    graduate = make.graduate({"id": student})

    transcript = api.ok(api.get(f"/students/{student}/transcript"))

    assert transcript["graduation_class"] == graduate["graduation_class"]


# The other school, and messages


def test_point_10_another_schools_student_is_unknown(api, make, other_api, make_other):
    theirs = Arms(make_other)
    theirs.published(theirs.first)
    student = theirs.students[theirs.first][0]
    foreigner = as_student(make_other, student)

    assert api.get(f"/students/{student}/transcript").status_code == 404
    assert of_student(api, student).status_code == 404
    assert of_student(foreigner.using(school=api.school), student).status_code == 403
    mine = Arms(make)
    mine.published(mine.first)
    answer = of_student(api, mine.students[mine.first][0], theirs.terms["FIRST"]["id"])
    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["term"])
    assert of_student(foreigner, student).status_code == 200


@pytest.mark.parametrize("students", [1, 5])
def test_point_11_every_reading_is_one_message_however_many_students(api, make, messages, students):
    arms = Arms(make, students, subjects=1)
    arms.published(arms.first)
    student = arms.students[arms.first][0]
    own = as_student(make, student)

    for read in (
        lambda: of_student(api, student),
        lambda: of_student(api, student, live="true"),
        lambda: of_student(own, student),
        lambda: of_subject(arms),
        lambda: api.get(f"/students/{student}/transcript"),
        lambda: own.get(f"/students/{student}/transcript"),
    ):
        with messages() as sent:
            assert read().status_code == 200
        assert len(sent) == 1
