"""Students outside a class, as refusals of lists and sheets name them: by name, and leavers as such."""

from __future__ import annotations

import pytest

from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import UNKNOWN_ID
from tests.features.observations.comments.sheets import Said
from tests.features.results.submissions.classes import Class
from tests.naming import name_with_number


@pytest.fixture
def group(make):
    return Class(make, 2, marked=0)


def graduated(group):
    """A student of the school who has graduated."""
    student = group.make.student()["id"]
    with in_transaction(SchoolBinding(group.api.school)):
        change = "UPDATE students SET status = 'GRADUATED' WHERE id = %s"
        db.session.connection().exec_driver_sql(change, (student,))
    return student


def messages(answer):
    """The messages of rows on students."""
    assert answer.status_code == 422, answer.get_data(as_text=True)
    rows = answer.get_json()["errors"]["rows"]
    return [row["message"] for row in rows if row["column"] in ("student", "admission_number")]


def scores(group, *students, api=None):
    body = [{"student": student, "score": 5} for student in students]
    return (api or group.api).put(f"/assessments/{group.assessment['id']}/scores", body)


def test_a_list_of_scores_names_the_graduate_and_the_student_of_another_class(group):
    gone, elsewhere = graduated(group), group.make.student()["id"]

    assert messages(scores(group, gone, elsewhere)) == [
        f"{name_with_number(group.api, gone)}: has graduated",
        f"{name_with_number(group.api, elsewhere)}: does not take the subject",
    ]


def test_a_sheet_says_that_a_withdrawn_student_has_withdrawn(api, make):
    said = Said(make)
    api.ok(api.patch(f"/students/{said.students['C/2']}", {"status": "WITHDRAWN"}))
    name = name_with_number(api, said.students["C/2"]).partition(" (")[0]

    assert messages(said.send(("C/1", 1), ("C/2", 1))) == [f'A3: "C/2" is {name}, who has withdrawn']


def test_a_list_of_takers_says_graduated_of_a_graduate(api, make, group):
    elective = make.cohort_subject(group.cohort, elective=True)
    gone = graduated(group)

    answer = api.patch(f"/cohort-subjects/{elective['id']}/students", [gone, UNKNOWN_ID])

    assert (
        answer.get_json()["message"]
        == f"{name_with_number(api, gone)}: graduated; {UNKNOWN_ID}: no such student"
    )
    assert answer.get_json()["type"] == "unknown-id"


def test_nobody_of_another_school_is_named(group, make_other):
    foreign = make_other.student()["id"]

    assert messages(scores(group, foreign, UNKNOWN_ID)) == [
        f'scores.0.student: "{foreign}" is no student',
        f'scores.1.student: "{UNKNOWN_ID}" is no student',
    ]


def test_a_teacher_is_told_the_same_of_the_unknown_and_of_those_out_of_reach(api, make, group):
    employee = make.employee()
    row = {"cohort_subject": group.subject, "employee": employee["id"], "batch": None}
    api.ok(api.put("/subject-teachers", {"assignments": [row]}))
    account = make.account_of(employee)
    role = make.role("read:gradebooks", "write:gradebooks", reach="OWN")
    api.ok(api.put(f"/users/{account['id']}/roles", {"role": role["id"]}))
    api.ok(api.put(f"/users/{account['id']}/password", {"password": "a password of their own"}))
    teacher = make.signed_in(account, "a password of their own")
    elsewhere = make.student()["id"]

    why = "is no student of your classes now: they may have left, or be in another class"
    assert messages(scores(group, elsewhere, UNKNOWN_ID, api=teacher)) == [
        f'scores.0.student: "{elsewhere}" {why}',
        f'scores.1.student: "{UNKNOWN_ID}" {why}',
    ]
