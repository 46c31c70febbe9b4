"""Absences: students away from an assessment, instead of a score."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from uuid import uuid4

import pytest

from tenants.registry.schools import schema_name
from tests.factories import UNKNOWN_ID
from tests.features.scores.scoresheets.test_killed_server import watching_schools
from tests.naming import name_with_number
from tests.prepared import prepared_for_each
from tests.threads import run_concurrently

original, taught = prepared_for_each(lambda make: make.taught(3))


@pytest.fixture
def assessment(make, taught):
    return make.assessment(taught.subject, taught.term, total_points=20)


def path(assessment):
    return f"/assessments/{assessment['id']}/absences"


def send(api, assessment, *absences):
    return api.put(path(assessment), {"absences": list(absences)})


def listed(api, assessment):
    return {
        absence["student"]["id"]: (absence["status"], absence["note"])
        for absence in api.ok(api.get(path(assessment)))
    }


def logged(api, assessment):
    """The audit log's changes of an assessment's absences, the first first."""
    entries = api.ok(api.get("/audit", query_string={"entity": "absence", "id": assessment["id"]}))["data"]
    return [(change["action"], change["old"], change["new"]) for change in reversed(entries)]


def refused(answer):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    assert list(answer.get_json()["errors"]["json"]) == ["absences"]
    return answer.get_json()["message"]


def test_absences_are_entered_and_listed_by_name(api, make, taught, assessment):
    names = {student: api.ok(api.get(f"/students/{student}")) for student in taught.students}
    first, second, _ = taught.students
    api.ok(api.patch(f"/students/{first}", {"last_name": "Ọ̀ṣun", "first_name": "Ɗanladi"}))
    api.ok(api.patch(f"/students/{second}", {"last_name": "Àbíọ̀dún"}))

    answer = api.ok(
        send(
            api,
            assessment,
            {"student": first, "status": "EXCUSED", "note": "  Ó ṣàìsàn\nìwé dókítà  "},
            {"student": second, "status": "ABSENT"},
        )
    )

    assert answer == api.ok(api.get(path(assessment)))
    assert [(absence["student"]["last_name"], absence["status"], absence["note"]) for absence in answer] == [
        ("Àbíọ̀dún", "ABSENT", None),
        ("Ọ̀ṣun", "EXCUSED", "Ó ṣàìsàn\nìwé dókítà"),
    ]
    assert answer[1]["student"] == {
        "id": first,
        "admission_number": names[first]["admission_number"],
        "first_name": "Ɗanladi",
        "last_name": "Ọ̀ṣun",
    }


def test_absences_not_named_stay_and_an_equal_one_is_no_change(api, taught, assessment):
    first, second, third = taught.students
    noted = {"student": first, "status": "EXCUSED", "note": "ill"}
    api.ok(send(api, assessment, noted, {"student": second, "status": "ABSENT"}))
    before = logged(api, assessment)

    api.ok(
        send(api, assessment, {"student": first, "status": "ABSENT"}, {"student": third, "status": "ABSENT"})
    )
    api.ok(send(api, assessment, noted | {"status": "ABSENT"}, {"student": second, "status": "ABSENT"}))

    assert listed(api, assessment) == {
        first: ("ABSENT", "ill"),
        second: ("ABSENT", None),
        third: ("ABSENT", None),
    }
    hand = {"source": "hand"}
    # Of one moment, in either order.
    assert sorted(logged(api, assessment)[len(before) :], key=itemgetter(0), reverse=True) == [
        ("update", {"student": first, "status": "EXCUSED"}, {"student": first, "status": "ABSENT", **hand}),
        ("create", None, {"student": third, "status": "ABSENT", **hand}),
    ]
    api.ok(send(api, assessment, noted | {"status": "ABSENT", "note": None}))
    assert listed(api, assessment)[first] == ("ABSENT", None)


def test_the_audit_log_says_of_a_note_that_it_changed_alone(api, taught, assessment):
    student = taught.students[0]

    api.ok(send(api, assessment, {"student": student, "status": "EXCUSED", "note": "malaria"}))

    new = {"student": student, "status": "EXCUSED", "source": "hand", "changed": ["note"]}
    assert logged(api, assessment) == [("create", None, new)]


def test_an_absence_is_taken_away(api, taught, assessment):
    first, second, _ = taught.students
    api.ok(
        send(api, assessment, {"student": first, "status": "ABSENT"}, {"student": second, "status": "ABSENT"})
    )

    assert api.ok(api.delete(f"{path(assessment)}/{first}")) == {"id": first, "deleted": True}

    assert listed(api, assessment) == {second: ("ABSENT", None)}
    assert logged(api, assessment)[-1] == ("delete", {"student": first, "status": "ABSENT"}, None)
    assert api.delete(f"{path(assessment)}/{first}").status_code == 404
    assert api.delete(f"{path(assessment)}/{uuid4()}").status_code == 404


def test_an_assessment_without_absences_has_an_empty_list_and_an_unknown_one_is_404(api, taught, assessment):
    row = {"student": taught.students[0], "status": "ABSENT"}
    assert api.ok(api.get(path(assessment))) == []
    for unknown in ({"id": str(uuid4())}, assessment):
        if unknown is assessment:
            api.ok(send(api, assessment, row))
            api.ok(api.delete(f"/assessments/{assessment['id']}"))
        assert api.get(path(unknown)).status_code == 404
        assert send(api, unknown, row).status_code == 404
        assert api.delete(f"{path(unknown)}/{taught.students[0]}").status_code == 404


# Students who can have an absence


def test_students_who_can_have_no_absence_are_named_and_nothing_is_stored(api, make, taught, assessment):
    first, second, withdrawn = taught.students
    cohort = taught.cohort
    elective = make.cohort_subject(cohort, elective=True)
    chosen = make.assessment(elective, taught.term)
    api.ok(api.patch(f"/cohort-subjects/{elective['id']}/students", [first, withdrawn]))
    api.ok(api.patch(f"/students/{withdrawn}", {"status": "WITHDRAWN"}))
    elsewhere, nobody = make.student()["id"], str(uuid4())

    students = (first, second, withdrawn, elsewhere, nobody)
    answer = send(api, chosen, *({"student": student, "status": "ABSENT"} for student in students))

    assert refused(answer) == (
        f"{nobody}: no such student; {name_with_number(api, withdrawn)}: withdrawn; "
        f"{name_with_number(api, elsewhere)}: not in the cohort; "
        f"{name_with_number(api, second)}: not taking the subject"
    )
    assert api.ok(api.get(path(chosen))) == []
    assert logged(api, chosen) == []
    api.ok(send(api, chosen, {"student": first, "status": "ABSENT"}))


def test_a_student_who_left_the_cohort_gets_no_absence_and_keeps_the_stored_one(api, taught, assessment):
    student = taught.students[0]
    api.ok(send(api, assessment, {"student": student, "status": "ABSENT"}))
    api.ok(api.patch(f"/cohorts/{taught.cohort['id']}/remove_students", {"student_ids": [student]}))

    assert refused(send(api, assessment, {"student": student, "status": "EXCUSED"})) == (
        f"{name_with_number(api, student)}: not in the cohort"
    )
    assert listed(api, assessment) == {student: ("ABSENT", None)}


def test_a_student_twice_is_refused(api, taught, assessment):
    row = {"student": taught.students[0], "status": "ABSENT"}

    assert refused(send(api, assessment, row, row)) == (
        f"{name_with_number(api, row['student'])}: named more than once"
    )
    assert listed(api, assessment) == {}


def test_the_other_schools_records_are_none(api, other_api, make, make_other, taught, assessment):
    theirs = make_other.taught()
    their_assessment = make_other.assessment(theirs.subject, theirs.term)
    row = {"student": taught.students[0], "status": "ABSENT"}
    their_row = {"student": theirs.students[0], "status": "ABSENT"}
    other_api.ok(send(other_api, their_assessment, their_row))

    assert api.get(path(their_assessment)).status_code == 404
    assert send(api, their_assessment, row).status_code == 404
    assert api.delete(f"{path(their_assessment)}/{theirs.students[0]}").status_code == 404
    assert refused(send(api, assessment, row, their_row)) == (f"{theirs.students[0]}: no such student")
    assert api.delete(f"{path(assessment)}/{theirs.students[0]}").status_code == 404
    for token, school in ((api.token, other_api.school), (other_api.token, api.school)):
        assert api.using(token=token, school=school).get(path(assessment)).status_code == 403
    assert listed(other_api, their_assessment) == {theirs.students[0]: ("ABSENT", None)}
    assert listed(api, assessment) == {}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"absences": []},
        {"absences": None},
        {"absences": {}},
        {"absences": ["ABSENT"]},
        {"absences": [{"status": "ABSENT"}]},
        {"absences": [{"student": "x", "status": "ABSENT"}]},
        {"absences": [{"student": UNKNOWN_ID, "status": "absent"}]},
        {"absences": [{"student": UNKNOWN_ID, "status": None}]},
        {"absences": [{"student": UNKNOWN_ID, "status": 0}]},
        {"absences": [{"student": UNKNOWN_ID, "status": "ABSENT", "note": ""}]},
        {"absences": [{"student": UNKNOWN_ID, "status": "ABSENT", "note": 5}]},
        {"absences": [{"student": UNKNOWN_ID, "status": "ABSENT", "note": "a\0"}]},
        {"absences": [{"student": UNKNOWN_ID, "status": "ABSENT", "note": "a" * 2001}]},
        {"absences": [{"student": UNKNOWN_ID, "status": "ABSENT", "score": 1}]},
        {"absences": [{"student": UNKNOWN_ID, "status": "ABSENT"}] * 1001},
    ],
)
def test_bad_input_is_422(api, assessment, body):
    assert api.put(path(assessment), body).status_code == 422


def test_a_thousand_are_not_too_many(api, assessment):
    rows = [{"student": str(uuid4()), "status": "ABSENT"} for _ in range(1000)]

    assert refused(send(api, assessment, *rows)).endswith(" and 994 others: no such student")


# An absence or a score


def score(api, taught, assessment, student, points=7):
    body = {
        "assessment": assessment["id"],
        "score": points,
        "student": student,
        "batch": taught.cohort["id"],
    }
    return api.post("/gradebooks", body)


def test_an_absence_of_a_student_with_a_score_is_409_naming_them(api, taught, assessment):
    first, second, _ = taught.students
    entry = api.ok(score(api, taught, assessment, first, 0))

    answer = send(
        api, assessment, {"student": first, "status": "ABSENT"}, {"student": second, "status": "ABSENT"}
    )

    assert answer.status_code == 409
    assert answer.get_json()["message"].startswith(f"{name_with_number(api, first)}: with a score already.")
    assert listed(api, assessment) == {}
    # Once the score is gone, it can be entered.
    api.ok(api.delete(f"/gradebooks/{entry['id']}"))
    api.ok(send(api, assessment, {"student": first, "status": "ABSENT"}))


def test_a_score_takes_the_absence_away_and_both_are_on_record(api, taught, assessment, messages):
    first, second, _ = taught.students
    api.ok(
        send(
            api, assessment, {"student": first, "status": "ABSENT"}, {"student": second, "status": "EXCUSED"}
        )
    )
    api.ok(score(api, taught, assessment, taught.students[2]))
    with messages() as sent:
        answer = score(api, taught, assessment, first)

    entry = api.ok(answer)
    assert listed(api, assessment) == {second: ("EXCUSED", None)}
    assert logged(api, assessment)[2:] == [("delete", {"student": first, "status": "ABSENT"}, None)]
    made = api.ok(api.get("/audit", query_string={"pageSize": 2}))["data"]
    assert {(change["entity"], change["entity_id"]) for change in made} == {
        ("absence", assessment["id"]),
        ("gradebook", entry["id"]),
    }
    for change in made:
        assert (change["request_id"], change["address"]) == (answer.headers["X-Request-ID"], "127.0.0.1")
    assert len({(change["actor"], change["actor_name"]) for change in made}) == 1
    # With an absence to take away as without.
    assert len(sent) == 3


def test_a_score_that_is_refused_leaves_the_absence(api, taught, assessment):
    student = taught.students[0]
    api.ok(send(api, assessment, {"student": student, "status": "ABSENT"}))

    assert score(api, taught, assessment, student, 21).status_code == 422

    assert listed(api, assessment) == {student: ("ABSENT", None)}
    assert len(logged(api, assessment)) == 1


def test_an_absence_of_another_assessment_stays(api, make, taught, assessment):
    student = taught.students[0]
    other = make.assessment(taught.subject, taught.term)
    for exam in (assessment, other):
        api.ok(send(api, exam, {"student": student, "status": "ABSENT"}))

    api.ok(score(api, taught, assessment, student))

    assert (listed(api, assessment), listed(api, other)) == ({}, {student: ("ABSENT", None)})


def test_of_scores_and_absences_at_once_each_student_has_one_or_the_other(committing):
    taught = committing.taught(6)
    assessment = committing.assessment(taught.subject, taught.term)
    api = committing.api

    def mark(number):
        student = taught.students[number // 2]
        if number % 2:
            return score(api.using(), taught, assessment, student).status_code
        return send(api.using(), assessment, {"student": student, "status": "ABSENT"}).status_code

    statuses = run_concurrently(12, mark)

    # The score is entered, whichever comes first; the absence is before it, or a conflict.
    assert statuses[1::2] == [200] * 6
    assert set(statuses[0::2]) <= {200, 409}
    assert listed(api, assessment) == {}
    entries = api.ok(api.get("/gradebooks", query_string={"assessment": assessment["id"]}))
    assert entries["total"] == 6
    actions = [action for action, _, _ in logged(api, assessment)]
    entered = statuses[0::2].count(200)
    assert (actions.count("create"), actions.count("delete")) == (entered, entered)


def test_a_score_that_waited_for_an_absence_takes_it_away(committing, tenancy):
    """The absence is committed after the score's transaction looked, and is seen by the statement that inserts."""
    taught = committing.taught()
    assessment = committing.assessment(taught.subject, taught.term)
    (student,) = taught.students
    absence = {"student": student, "status": "EXCUSED"}
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

    with (
        tenancy.admin.connect() as locking,
        watching_schools(tenancy) as watching,
        ThreadPoolExecutor(2) as threads,
    ):
        locked = f'SELECT id FROM "{schema_name(committing.api.school)}".assessments WHERE id = %s FOR UPDATE'
        locking.exec_driver_sql(locked, (assessment["id"],))
        marking = threads.submit(send, committing.api.using(), assessment, absence)
        while watching.exec_driver_sql(waiting).scalar_one() < 1:
            assert not marking.done()
        entering = threads.submit(score, committing.api.using(), taught, assessment, student)
        while watching.exec_driver_sql(waiting).scalar_one() < 2:
            assert not entering.done()
        locking.rollback()
        marked, entered = marking.result(), entering.result()

    # Whichever of the two comes first.
    assert entered.status_code == 200
    assert listed(committing.api, assessment) == {}
    log = [action for action, _, _ in logged(committing.api, assessment)]
    assert log == (["create", "delete"] if marked.status_code == 200 else [])
    assert marked.status_code in {200, 409}


def test_a_score_looks_for_an_absence_only_where_there_may_be_one(api, make, taught, assessment, messages):
    first, second, third = taught.students

    def entered(student):
        with messages() as sent:
            api.ok(score(api, taught, assessment, student))
        return any("DELETE FROM absences" in message for message in sent)

    assert not entered(third)
    api.ok(send(api, assessment, {"student": first, "status": "ABSENT"}))
    assert (entered(second), entered(first)) == (False, True)


# How many messages


@pytest.mark.parametrize("students", [1, 30])
def test_messages_do_not_depend_on_how_many(api, make, messages, students):
    taught = make.taught(students)
    assessment = make.assessment(taught.subject, taught.term)
    rows = [{"student": student, "status": "ABSENT", "note": "away"} for student in taught.students]

    with messages() as sent:
        answer = api.ok(send(api, assessment, *rows))
    with messages() as read:
        assert api.ok(api.get(path(assessment))) == answer

    assert (len(answer), len(sent), len(read)) == (students, 5, 1)
