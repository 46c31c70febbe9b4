"""Enrolling and removing from many threads at once, in a school whose requests commit."""

from __future__ import annotations

from itertools import pairwise

from school_service.core.database import db
from school_service.features.school.models import CURRENT, Enrollment
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.naming import name_with_number
from tests.threads import run_concurrently


def enroll(api, cohort, students, batch=None):
    body = {"students": students, "batch": batch or cohort["id"]}
    return api.using().post(f"/cohorts/{cohort['id']}/enrollment", body)


def remove(api, cohort, students):
    return api.using().patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": students})


def ids_in(api, cohort):
    return sorted(student["id"] for student in api.ok(api.get(f"/cohorts/{cohort['id']}/students")))


def history(api, student_id):
    """List a student's enrollments: the batch, and whether it has ended."""
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        rows = db.session.query(Enrollment).filter_by(student_id=student_id).order_by(Enrollment.started_at)
        return [(str(row.batch_id), row.ended_at is not None) for row in rows]


def test_one_of_two_cohorts_of_a_session_gets_a_student(committing):
    api, session = committing.api, committing.session()
    cohorts = [committing.cohort(session=session) for _ in range(2)]
    student = committing.student()["id"]
    name = name_with_number(api, student)

    answers = run_concurrently(20, lambda number: enroll(api, cohorts[number % 2], [student]))

    assert sorted(answer.status_code for answer in answers) == [200] * 10 + [409] * 10
    winners = {number % 2 for number, answer in enumerate(answers) if answer.status_code == 200}
    assert len(winners) == 1
    assert ids_in(api, cohorts[winners.pop()]) == [student]
    assert len(history(api, student)) == 1
    for answer in answers:
        assert answer.status_code == 200 or name in answer.get_json()["message"]


def test_many_of_two_cohorts_share_no_student_in_whichever_order_they_come(committing):
    api, session = committing.api, committing.session()
    cohorts = [committing.cohort(session=session) for _ in range(2)]
    students = [committing.student()["id"] for _ in range(6)]

    def work(number):
        turned = students[number % 6 :] + students[: number % 6]
        return enroll(api, cohorts[number % 2], turned if number % 3 else turned[::-1])

    answers = run_concurrently(20, work)

    assert sorted(answer.status_code for answer in answers) == [200] * 10 + [409] * 10
    assert sorted(len(ids_in(api, cohort)) for cohort in cohorts) == [0, 6]


def test_a_student_moved_to_and_fro_is_in_one_arm(committing):
    api, cohort = committing.api, committing.cohort()
    arms = [cohort["id"], committing.batch(cohort)["id"], committing.batch(cohort)["id"]]
    (student,) = committing.enrolled(cohort)

    answers = run_concurrently(20, lambda number: enroll(api, cohort, [student], arms[number % 3]))

    assert {answer.status_code for answer in answers} == {200}
    assert ids_in(api, cohort) == [student]
    past = history(api, student)
    assert [ended for _, ended in past] == [True] * (len(past) - 1) + [False]
    # Twice into the same arm, one after the other, changes nothing.
    assert all(before[0] != after[0] for before, after in pairwise(past))


def test_a_student_is_removed_once(committing):
    api, cohort = committing.api, committing.cohort()
    staying, leaving = committing.enrolled(cohort, committing.student(), committing.student())

    answers = run_concurrently(20, lambda _: remove(api, cohort, [leaving]))

    assert sorted(answer.status_code for answer in answers) == [200] + [422] * 19
    assert ids_in(api, cohort) == [staying]
    assert history(api, leaving) == [(cohort["id"], True)]


def test_enrolling_and_removing_follow_each_other(committing):
    api, cohort = committing.api, committing.cohort()
    subject = committing.cohort_subject(cohort)
    students = [committing.student()["id"] for _ in range(3)]

    def work(number):
        change = enroll if number % 2 else remove
        return change(api, cohort, students[number % 3 :] + students[: number % 3])

    answers = run_concurrently(20, work)

    assert {answer.status_code for answer in answers} <= {200, 422}
    assert {answer.status_code for answer in answers[1::2]} == {200}
    present = ids_in(api, cohort)
    assert present in ([], sorted(students))
    for student in students:
        past = history(api, student)
        assert [ended for _, ended in past][:-1] == [True] * (len(past) - 1)
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        taken = db.session.connection().exec_driver_sql(
            "SELECT student_id::text FROM subject_enrollments WHERE cohort_subject_id = %s", (subject["id"],)
        )
        assert sorted(row[0] for row in taken) == present


def test_nobody_is_enrolled_after_withdrawing(committing):
    api, cohort = committing.api, committing.cohort()
    students = [committing.student()["id"] for _ in range(10)]

    def work(number):
        student = students[number % 10]
        if number < 10:
            return enroll(api, cohort, [student])
        return api.using().patch(f"/students/{student}", {"status": "WITHDRAWN"})

    answers = run_concurrently(20, work)

    assert {answer.status_code for answer in answers[10:]} == {200}
    assert {answer.status_code for answer in answers[:10]} <= {200, 422}
    enrolled = [
        student for student, answer in zip(students, answers, strict=False) if answer.status_code == 200
    ]
    assert ids_in(api, cohort) == sorted(enrolled)


def test_a_cohort_changes_its_session_or_gets_students_not_both(committing):
    api, cohort, classroom = committing.api, committing.cohort(), committing.classroom()
    student, session = committing.student()["id"], committing.session()

    def work(number):
        if number % 2:
            return enroll(api, cohort, [student])
        body = {"classroom": classroom["id"], "session_id": session["id"]}
        return api.using().patch(f"/cohorts/{cohort['id']}", body)

    answers = run_concurrently(20, work)

    changes, enrollments = answers[::2], answers[1::2]
    assert {answer.status_code for answer in enrollments} == {200}
    assert {answer.status_code for answer in changes} <= {200, 409}
    shown = api.ok(api.get(f"/cohorts/{cohort['id']}"))
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        (enrollment,) = db.session.query(Enrollment).filter(CURRENT)
        assert str(enrollment.session_id) == shown["session"]


def test_a_student_who_leaves_the_school_is_in_no_cohort_and_takes_nothing(api, make):
    last_year, this_year = make.cohort(), make.cohort()
    subject = make.cohort_subject(this_year)
    make.cohort_subject(last_year)
    leaving, staying = make.student()["id"], make.student()["id"]
    for cohort in (last_year, this_year):
        make.enrolled(cohort, {"id": leaving}, {"id": staying})

    make.graduate({"id": leaving})

    assert ids_in(api, last_year) == ids_in(api, this_year) == [staying]
    assert history(api, leaving) == [(last_year["id"], True), (this_year["id"], True)]
    assert api.delete(f"/cohort-subjects/{subject['id']}/students/{leaving}").status_code == 404
    assert api.delete(f"/cohort-subjects/{subject['id']}/students/{staying}").status_code == 409
