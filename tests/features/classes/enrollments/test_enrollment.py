"""Enrolling students into cohorts, moving them between arms, and taking them out."""

from __future__ import annotations

from uuid import uuid4

import pytest

from school_service.core.database import db
from school_service.features.school.models import Enrollment
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.naming import name_with_number


def enroll(api, cohort, students, batch=None):
    body = {"students": students, "batch": batch or cohort["id"]}
    return api.post(f"/cohorts/{cohort['id']}/enrollment", body)


def remove(api, cohort, students):
    return api.patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": students})


def ids_in(api, cohort):
    return [student["id"] for student in api.ok(api.get(f"/cohorts/{cohort['id']}/students"))]


def place_of(api, student_id):
    student = api.ok(api.get(f"/students/{student_id}"))
    return student["batch"], student["cohort"]


def history(api, student_id):
    """List a student's enrollments, the oldest first: batch, and whether it has ended."""
    with in_transaction(SchoolBinding(api.school, read_only=True)):
        rows = db.session.query(Enrollment).filter_by(student_id=student_id).order_by(Enrollment.started_at)
        return [(str(row.batch_id), row.ended_at is not None) for row in rows]


def test_enrolling_answers_the_students_with_their_cohort_and_batch(api, make):
    cohort = make.cohort()
    student = make.student()

    answered = api.ok(enroll(api, cohort, [student["id"]]))

    assert answered == [{**student, "batch": cohort["id"], "cohort": cohort["id"]}]
    days = {"started_on": None, "ended_on": None}
    assert api.ok(api.get(f"/cohorts/{cohort['id']}/students")) == [{**answered[0], **days}]
    assert api.ok(api.get(f"/students/{student['id']}")) == answered[0]
    assert api.ok(api.get("/students"))["data"] == answered


def test_students_of_all_arms_are_listed_by_name_then_admission_number(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    names = [
        ("Zainab", "Abubakar", "3"),
        ("Amaka", "Zubair", "1"),
        ("Amaka", "Abubakar", "2"),
        ("Amaka", "Abubakar", "0"),
    ]
    students = [
        make.student(first_name=first, last_name=last, admission_number=number)
        for first, last, number in names
    ]
    make.enrolled(cohort, *students[:2])
    make.enrolled(cohort, *students[2:], batch=arm["id"])

    listed = [student["admission_number"] for student in api.ok(api.get(f"/cohorts/{cohort['id']}/students"))]

    assert listed == ["0", "2", "3", "1"]


def test_the_answer_holds_the_students_of_the_request_alone_each_once(api, make):
    cohort = make.cohort()
    make.enrolled(cohort)
    student = make.student()

    answered = api.ok(enroll(api, cohort, [student["id"], student["id"].upper(), student["id"]]))

    assert [student["id"] for student in answered] == [student["id"]]
    assert history(api, student["id"]) == [(cohort["id"], False)]
    assert len(ids_in(api, cohort)) == 2


def test_enrolling_twice_changes_nothing(api, make):
    cohort = make.cohort()
    (student,) = make.enrolled(cohort)
    first = api.ok(api.get(f"/students/{student}"))

    assert api.ok(enroll(api, cohort, [student])) == [first]
    assert history(api, student) == [(cohort["id"], False)]


def test_enrolling_into_another_arm_moves(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    (student,) = make.enrolled(cohort)

    api.ok(enroll(api, cohort, [student], arm["id"]))

    assert place_of(api, student) == (arm["id"], cohort["id"])
    assert ids_in(api, cohort) == [student]
    assert history(api, student) == [(cohort["id"], True), (arm["id"], False)]


def test_the_cohorts_id_moves_back_into_the_first_arm(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    (student,) = make.enrolled(cohort, batch=arm["id"])

    api.ok(enroll(api, cohort, [student], cohort["id"]))

    assert place_of(api, student) == (cohort["id"], cohort["id"])


def test_some_new_some_moving_some_staying(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    staying, moving, new = (
        make.enrolled(cohort, batch=arm["id"])[0],
        make.enrolled(cohort)[0],
        make.student()["id"],
    )

    answered = api.ok(enroll(api, cohort, [new, staying, moving], arm["id"]))

    assert {student["batch"] for student in answered} == {arm["id"]}
    assert sorted(ids_in(api, cohort)) == sorted([staying, moving, new])
    assert history(api, staying) == [(arm["id"], False)]


def test_another_cohort_of_the_session_is_a_conflict_that_names_the_students(api, make):
    session = make.session()
    cohort, other = make.cohort(session=session), make.cohort(session=session)
    (there,) = make.enrolled(other)
    free = make.student()["id"]

    answer = enroll(api, cohort, [free, there])

    assert answer.status_code == 409
    assert (
        answer.get_json()["message"]
        == f"{name_with_number(api, there)}: in another cohort of this session already."
    )
    assert free not in answer.get_json()["message"]
    assert list(answer.get_json()["errors"]["json"]) == ["students"]
    assert ids_in(api, cohort) == []
    assert place_of(api, free) == (None, None)


def test_a_cohort_of_another_session_is_no_conflict(api, make):
    last_year, this_year = make.cohort(), make.cohort()
    (student,) = make.enrolled(last_year)

    api.ok(enroll(api, this_year, [student]))

    assert place_of(api, student) == (this_year["id"], this_year["id"])
    assert ids_in(api, last_year) == ids_in(api, this_year) == [student]


def test_leaving_the_latest_cohort_shows_the_one_before_if_it_is_open(api, make):
    last_year, this_year = make.cohort(), make.cohort()
    (student,) = make.enrolled(last_year)
    api.ok(enroll(api, this_year, [student]))

    api.ok(remove(api, this_year, [student]))
    assert place_of(api, student) == (last_year["id"], last_year["id"])

    api.ok(remove(api, last_year, [student]))
    assert place_of(api, student) == (None, None)


def test_a_student_removed_from_a_cohort_may_join_another_of_the_session(api, make):
    session = make.session()
    cohort, other = make.cohort(session=session), make.cohort(session=session)
    (student,) = make.enrolled(cohort)
    api.ok(remove(api, cohort, [student]))

    api.ok(enroll(api, other, [student]))

    assert history(api, student) == [(cohort["id"], True), (other["id"], False)]


@pytest.mark.parametrize("status", ["GRADUATED", "WITHDRAWN"])
def test_a_student_who_is_not_active_can_not_be_enrolled(api, make, status):
    cohort, active, gone = make.cohort(), make.student(), make.student()
    with in_transaction(SchoolBinding(api.school)):
        db.session.connection().exec_driver_sql(
            "UPDATE students SET status = %s WHERE id = %s", (status, gone["id"])
        )

    answer = enroll(api, cohort, [active["id"], gone["id"]])

    assert answer.status_code == 422
    (reason,) = answer.get_json()["errors"]["json"]["students"]
    assert reason == f"{name_with_number(api, gone['id'])}: {status.lower()}, and can't be enrolled"
    assert ids_in(api, cohort) == []


def test_unknown_students_are_named_and_nobody_is_enrolled(api, make, make_other):
    cohort, known = make.cohort(), make.student()["id"]
    unknown = [str(uuid4()), make_other.student()["id"]]

    answer = enroll(api, cohort, [unknown[0], known, unknown[1]])

    assert answer.status_code == 422
    assert answer.get_json()["errors"] == {
        "json": {"students": [f"{student_id}: no such student" for student_id in unknown]}
    }
    assert ids_in(api, cohort) == []


def test_a_batch_that_is_not_of_the_cohort_is_refused(api, make, make_other):
    cohort, student = make.cohort(), make.student()["id"]

    for batch in (
        str(uuid4()),
        make_other.cohort()["id"],
        make.cohort()["id"],
        make.batch(make.cohort())["id"],
    ):
        answer = enroll(api, cohort, [student], batch)
        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == ["batch"]
    assert place_of(api, student) == (None, None)


def test_removing_answers_the_remaining_students(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    staying = make.enrolled(cohort) + make.enrolled(cohort, batch=arm["id"])
    leaving = make.enrolled(cohort) + make.enrolled(cohort, batch=arm["id"])

    remaining = api.ok(remove(api, cohort, [*leaving, leaving[0]]))

    assert sorted(student["id"] for student in remaining) == sorted(staying)
    days = {"started_on": None, "ended_on": None}
    assert api.ok(api.get(f"/cohorts/{cohort['id']}/students")) == [
        {**student, **days} for student in remaining
    ]
    assert history(api, leaving[0]) == [(cohort["id"], True)]


def test_removing_the_last_leaves_an_empty_cohort(api, make):
    cohort = make.cohort()

    assert api.ok(remove(api, cohort, make.enrolled(cohort))) == []
    assert ids_in(api, cohort) == []


def test_removing_a_student_outside_the_cohort_removes_nobody(api, make, make_other):
    cohort, other = make.cohort(), make.cohort()
    (here,), (elsewhere,) = make.enrolled(cohort), make.enrolled(other)
    absent = [elsewhere, make.student()["id"], make_other.student()["id"], str(uuid4())]

    for student in absent:
        answer = remove(api, cohort, [here, student])
        assert answer.status_code == 422
        (reason,) = answer.get_json()["errors"]["json"]["student_ids"]
        assert reason == (
            f"{student}: no such student"
            if student in absent[2:]
            else f"{name_with_number(api, student)}: not in this cohort"
        )
    assert ids_in(api, cohort) == [here]
    assert ids_in(api, other) == [elsewhere]


def test_removing_twice_is_refused(api, make):
    cohort = make.cohort()
    students = make.enrolled(cohort)
    api.ok(remove(api, cohort, students))

    assert remove(api, cohort, students).status_code == 422
    assert len(history(api, students[0])) == 1


def test_a_removed_student_may_come_back(api, make):
    cohort = make.cohort()
    (student,) = make.enrolled(cohort)
    api.ok(remove(api, cohort, [student]))

    api.ok(enroll(api, cohort, [student]))

    assert ids_in(api, cohort) == [student]
    assert history(api, student) == [(cohort["id"], True), (cohort["id"], False)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"students": []},
        {"students": None},
        {"students": "x"},
        {"students": ["x"]},
        {"students": [None]},
        {"students": [1]},
        {"students": [[]]},
        {"students": {}},
        {"students": [str(uuid4())] * 1001},
        {"batch": None},
        {"batch": "A"},
        {"batch": 1},
        {"batch": ...},
        {"students": ...},
        {"when": "now"},
    ],
)
def test_a_body_that_is_no_enrollment_is_refused(api, make, wrong):
    cohort = make.cohort()
    body = {"students": [make.student()["id"]], "batch": cohort["id"], **wrong}
    body = {name: value for name, value in body.items() if value is not ...}

    assert api.post(f"/cohorts/{cohort['id']}/enrollment", body).status_code == 422
    assert ids_in(api, cohort) == []


@pytest.mark.parametrize(
    "wrong", [{}, {"student_ids": []}, {"student_ids": ["x"]}, {"student_ids": None}, {"students": []}]
)
def test_a_body_that_is_no_removal_is_refused(api, make, wrong):
    cohort = make.cohort()
    students = make.enrolled(cohort)

    assert api.patch(f"/cohorts/{cohort['id']}/remove_students", wrong).status_code == 422
    assert ids_in(api, cohort) == students


def test_an_unknown_cohort_is_not_found(api, make, make_other):
    student = make.student()["id"]

    for unknown in (str(uuid4()), make_other.cohort()["id"], make.batch(make.cohort())["id"]):
        cohort = {"id": unknown}
        for answer in (
            enroll(api, cohort, [student]),
            remove(api, cohort, [student]),
            api.get(f"/cohorts/{unknown}/students"),
        ):
            assert (answer.status_code, answer.get_json()["message"]) == (404, "No such cohort.")


def test_each_operation_asks_for_its_permission(make):
    cohort = make.cohort()
    students = make.enrolled(cohort)
    reader, writer = make.caller("read:cohorts"), make.caller("write:cohorts")
    others = make.caller("write:students", "delete:cohorts", "read:students")

    for caller, reads, writes in ((reader, 200, 403), (writer, 403, 200), (others, 403, 403)):
        assert caller.get(f"/cohorts/{cohort['id']}/students").status_code == reads
        assert enroll(caller, cohort, students).status_code == writes
        assert remove(caller, cohort, students).status_code == writes
        if writes == 200:
            make.enrolled(cohort, {"id": students[0]})


def test_the_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    cohort = make.cohort()
    for size in (2, 20):
        for _ in range(size):
            make.enrolled(cohort)
        ids_in(api, cohort)
        with messages() as sent:
            ids_in(api, cohort)
        assert len(sent) == 1, sent


@pytest.mark.parametrize("size", [2, 40])
def test_enrolling_and_removing_cost_the_same_however_many_they_are(api, make, messages, size):
    cohort = make.cohort()
    arm = make.batch(cohort)
    for _ in range(12):
        make.cohort_subject(cohort)
    students = [make.student()["id"] for _ in range(size)]
    costs = []
    for change in (
        lambda: enroll(api, cohort, students),
        lambda: enroll(api, cohort, students),
        lambda: enroll(api, cohort, students, arm["id"]),
        lambda: remove(api, cohort, students),
    ):
        with messages() as sent:
            api.ok(change())
        costs.append(len(sent))

    assert costs == [5, 5, 5, 7]
