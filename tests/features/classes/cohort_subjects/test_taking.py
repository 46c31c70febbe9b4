"""The takers of a cohort subject: all of the cohort, or the students who chose it."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from school_service.core.database import db
from school_service.features.classes.models import SubjectEnrollment
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import UNKNOWN_ID
from tests.features.reach.conftest import Own, this_session
from tests.naming import name_with_number
from tests.threads import run_concurrently


def takers(api, subject):
    """Name who takes a cohort subject, in order."""
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        rows = db.session.query(SubjectEnrollment.student_id).filter_by(cohort_subject_id=subject["id"])
        return sorted(str(row.student_id) for row in rows)


def choose(api, subject, students):
    return api.patch(f"/cohort-subjects/{subject['id']}/students", students)


def drop(api, subject, student):
    return api.delete(f"/cohort-subjects/{subject['id']}/students/{student}")


def remove(api, cohort, students):
    return api.ok(api.patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": students}))


def test_enrolling_enrolls_into_the_compulsory_subjects_alone(api, make):
    cohort = make.cohort()
    compulsory = [make.cohort_subject(cohort) for _ in range(2)]
    elective, elsewhere = make.cohort_subject(cohort, elective=True), make.cohort_subject()

    students = sorted(make.enrolled(cohort, make.student(), make.student()))

    assert [takers(api, subject) for subject in compulsory] == [students, students]
    assert takers(api, elective) == takers(api, elsewhere) == []


def test_a_later_compulsory_subject_is_taken_by_students_now_in_the_cohort(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    students = make.enrolled(cohort) + make.enrolled(cohort, batch=arm["id"])
    remove(api, cohort, make.enrolled(cohort))
    make.enrolled(make.cohort())

    assert takers(api, make.cohort_subject(cohort)) == sorted(students)
    assert takers(api, make.cohort_subject(cohort, elective=True)) == []


def test_an_elective_is_taken_by_the_students_who_choose_it(api, make):
    cohort = make.cohort()
    elective = make.cohort_subject(cohort, elective=True)
    first, second, third = (make.enrolled(cohort)[0] for _ in range(3))

    assert api.ok(choose(api, elective, [first, second, first])) == elective
    assert takers(api, elective) == sorted([first, second])

    assert api.ok(choose(api, elective, [second, third])) == elective
    assert takers(api, elective) == sorted([first, second, third])


def test_an_empty_choice_changes_nothing(api, make):
    cohort = make.cohort()
    elective = make.cohort_subject(cohort, elective=True)
    students = make.enrolled(cohort)
    api.ok(choose(api, elective, students))

    assert api.ok(choose(api, elective, [])) == elective
    assert takers(api, elective) == students


def test_choosing_a_compulsory_subject_changes_nothing(api, make):
    cohort = make.cohort()
    compulsory = make.cohort_subject(cohort)
    students = make.enrolled(cohort)

    assert api.ok(choose(api, compulsory, students)) == compulsory
    assert takers(api, compulsory) == students


def test_a_student_outside_the_cohort_is_named_and_nobody_is_added(api, make, make_other):
    cohort = make.cohort()
    elective = make.cohort_subject(cohort, elective=True)
    (here,), (left,) = make.enrolled(cohort), make.enrolled(cohort)
    remove(api, cohort, [left])
    elsewhere = make.student()

    answer = choose(api, elective, [here, elsewhere["id"]])
    (reason,) = answer.get_json()["errors"]["json"]["students"]
    assert answer.status_code == 422
    assert reason == f"{name_with_number(api, elsewhere['id'])}: not in the cohort"

    for absent in (left, make.enrolled(make.cohort())[0]):
        answer = choose(api, elective, [here, absent])
        assert (answer.status_code, answer.get_json()["message"]) == (
            422,
            f"{name_with_number(api, absent)}: not in the cohort",
        )
    for unknown in (make_other.student()["id"], str(uuid4())):
        answer = choose(api, elective, [here, unknown])
        assert (answer.status_code, answer.get_json()["message"]) == (422, f"{unknown}: no such student")
    assert takers(api, elective) == []


@pytest.mark.parametrize(
    "body", [None, {}, "x", 7, ["x"], [None], [[]], [{}], {"students": []}, [str(uuid4())] * 1001]
)
def test_a_body_that_is_no_array_of_ids_is_refused(api, make, body):
    path = f"/cohort-subjects/{make.cohort_subject(elective=True)['id']}/students"

    assert api.patch(path, data=json.dumps(body), content_type="application/json").status_code == 422


def test_a_bad_id_is_named_by_its_place_in_the_array(api, make):
    elective = make.cohort_subject(elective=True)

    answer = choose(api, elective, [str(uuid4()), "x"])

    assert answer.get_json()["errors"] == {"json": {"1": ["Not a valid UUID."]}}


def test_the_body_is_documented_as_a_bare_array(document):
    operation = document.operations()["PATCH", "/cohort-subjects/{id}/students"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]

    assert schema == {"type": "array", "items": {"type": "string", "format": "uuid"}, "maxItems": 1000}


def test_an_elective_can_be_dropped_once(api, make):
    cohort = make.cohort()
    elective = make.cohort_subject(cohort, elective=True)
    students = make.enrolled(cohort, make.student(), make.student())
    api.ok(choose(api, elective, students))

    assert api.ok(drop(api, elective, students[0])) == {"id": students[0], "deleted": True}
    assert takers(api, elective) == [students[1]]
    answer = drop(api, elective, students[0])
    assert (answer.status_code, answer.get_json()["message"]) == (
        404,
        "The student does not take this subject.",
    )


def test_a_dropped_elective_can_be_chosen_again(api, make):
    cohort = make.cohort()
    elective = make.cohort_subject(cohort, elective=True)
    students = make.enrolled(cohort)
    api.ok(choose(api, elective, students))
    api.ok(drop(api, elective, students[0]))

    api.ok(choose(api, elective, students))

    assert takers(api, elective) == students


def test_a_compulsory_subject_can_not_be_dropped(api, make):
    cohort = make.cohort()
    compulsory = make.cohort_subject(cohort)
    (student,) = make.enrolled(cohort)

    assert drop(api, compulsory, student).status_code == 409
    assert takers(api, compulsory) == [student]
    assert drop(api, compulsory, make.student()["id"]).status_code == 404


def test_unknown_takers_and_subjects_are_not_found(api, make, make_other):
    cohort = make.cohort()
    elective = make.cohort_subject(cohort, elective=True)
    (student,) = make.enrolled(cohort)
    foreign = make_other.cohort_subject(elective=True)

    for unknown in (str(uuid4()), make_other.student()["id"]):
        assert drop(api, elective, unknown).status_code == 404
    for unknown in ({"id": str(uuid4())}, foreign):
        for answer in (drop(api, unknown, student), choose(api, unknown, [student])):
            assert (answer.status_code, answer.get_json()["message"]) == (404, "No such cohort subject.")


def test_leaving_the_cohort_ends_its_subjects_and_no_others(api, make):
    cohort, next_year = make.cohort(), make.cohort()
    compulsory, elective = make.cohort_subject(cohort), make.cohort_subject(cohort, elective=True)
    elsewhere = make.cohort_subject(next_year)
    staying, leaving = make.enrolled(cohort, make.student(), make.student())
    make.enrolled(next_year, {"id": leaving})
    api.ok(choose(api, elective, [staying, leaving]))

    remove(api, cohort, [leaving])

    assert takers(api, compulsory) == takers(api, elective) == [staying]
    assert takers(api, elsewhere) == [leaving]


def test_a_student_who_comes_back_takes_the_compulsory_subjects_alone(api, make):
    cohort = make.cohort()
    compulsory, elective = make.cohort_subject(cohort), make.cohort_subject(cohort, elective=True)
    students = make.enrolled(cohort)
    api.ok(choose(api, elective, students))
    remove(api, cohort, students)

    make.enrolled(cohort, {"id": students[0]})

    assert takers(api, compulsory) == students
    assert takers(api, elective) == []


def test_moving_to_another_arm_keeps_the_subjects(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    compulsory, elective = make.cohort_subject(cohort), make.cohort_subject(cohort, elective=True)
    students = make.enrolled(cohort)
    api.ok(choose(api, elective, students))

    make.enrolled(cohort, {"id": students[0]}, batch=arm["id"])

    assert takers(api, compulsory) == takers(api, elective) == students


def names(api, subject, **query):
    page = api.ok(api.get(f"/cohort-subjects/{subject['id']}/students", query_string=query))
    return page["total"], [student["last_name"] for student in page["data"]]


def test_takers_of_a_subject_are_listed_by_name_in_pages(api, make, messages):
    cohort = make.cohort()
    arm = make.batch(cohort)
    subject, elective = make.cohort_subject(cohort), make.cohort_subject(cohort, elective=True)
    students = make.enrolled(cohort, *(make.student(last_name=name) for name in ("Ẹniọlá", "Abara")))
    students += make.enrolled(cohort, make.student(last_name="Bello"), batch=arm["id"])

    with messages() as sent:
        assert names(api, subject) == (3, ["Abara", "Bello", "Ẹniọlá"])
    assert len(sent) == 1
    assert names(api, subject, pageNumber=1, pageSize=2) == (3, ["Ẹniọlá"])
    assert names(api, elective) == (0, [])
    api.ok(choose(api, elective, students[:1]))
    (chosen,) = api.ok(api.get(f"/cohort-subjects/{elective['id']}/students"))["data"]
    assert chosen == api.ok(api.get(f"/students/{students[0]}"))
    remove(api, cohort, students[:1])
    assert names(api, subject) == (2, ["Abara", "Bello"])
    assert names(api, elective) == (0, [])


def test_takers_of_an_unknown_subject_are_not_found(api, make, make_other):
    for subject in (UNKNOWN_ID, make_other.cohort_subject()["id"], make.cohort()["id"]):
        assert api.get(f"/cohort-subjects/{subject}/students").status_code == 404


def test_takers_of_a_subject_are_read_by_its_teachers_of_their_own_arms(api, make):
    own = Own(make)
    cohort = make.cohort(session=this_session(make))
    arm = make.batch(cohort)["id"]
    subject, other = make.cohort_subject(cohort), make.cohort_subject(cohort, elective=True)
    (abara, _) = make.enrolled(cohort, *(make.student(last_name=name) for name in ("Abara", "Adé")))
    make.enrolled(cohort, make.student(last_name="Bello"), batch=arm)
    reads = ("read:cohort-subjects", "read:students")
    path = f"/cohort-subjects/{subject['id']}/students"

    for permission in reads:
        assert make.caller(permission).get(path).status_code == 403
    assert names(own.subject_teacher(subject, None, *reads), subject)[0] == 3
    for teacher in (own.subject_teacher(subject, arm, *reads), own.form_teacher(arm, *reads)):
        assert names(teacher, subject) == (1, ["Bello"])
        assert "Abara" not in teacher.get(path).get_data(as_text=True)
    elsewhere = own.subject_teacher(other, None, *reads)
    unknown = elsewhere.get(f"/cohort-subjects/{UNKNOWN_ID}/students").get_json()
    for caller in (elsewhere, own.student(abara), own.teacher(*reads)[1]):
        answer = caller.get(path)
        assert (answer.status_code, answer.get_json()["message"]) == (404, unknown["message"])


def test_each_operation_asks_for_its_permission(make):
    cohort = make.cohort()
    elective = make.cohort_subject(cohort, elective=True)
    students = make.enrolled(cohort)
    writer, deleter = make.caller("write:cohort-subjects"), make.caller("delete:cohort-subjects")
    others = make.caller("read:cohort-subjects", "write:cohorts", "delete:cohorts")

    for caller in (deleter, others):
        assert choose(caller, elective, students).status_code == 403
    assert choose(writer, elective, students).status_code == 200
    for caller in (writer, others):
        assert drop(caller, elective, students[0]).status_code == 403
    assert drop(deleter, elective, students[0]).status_code == 200


def test_choosing_costs_the_same_however_many_they_are(api, make, messages):
    cohort = make.cohort()
    elective = make.cohort_subject(cohort, elective=True)
    costs = []
    for size in (2, 40):
        students = make.enrolled(cohort, *(make.student() for _ in range(size)))
        subject = make.subject()
        with messages() as sent:
            api.ok(choose(api, elective, students))
        costs.append(len(sent))
        with messages() as sent:
            make.cohort_subject(cohort, subject)
        costs.append(len(sent))

    assert costs[:2] == costs[2:]


# Many at once, in a school whose requests commit.


def test_a_student_enrolled_while_a_subject_is_added_takes_it(committing):
    api, cohort = committing.api, committing.cohort()
    students = [committing.student()["id"] for _ in range(12)]
    subjects = [committing.subject()["id"] for _ in range(8)]

    def change(number):
        if number < len(students):
            body = {"students": [students[number]], "batch": cohort["id"]}
            return api.using().post(f"/cohorts/{cohort['id']}/enrollment", body)
        body = {"cohort_id": cohort["id"], "subject_id": subjects[number - len(students)], "elective": False}
        return api.using().post("/cohort-subjects", body)

    answers = run_concurrently(20, change)

    assert {answer.status_code for answer in answers} == {200}
    for answer in answers[len(students) :]:
        assert takers(api, answer.get_json()) == sorted(students)


def test_a_student_who_leaves_while_subjects_are_added_takes_none(committing):
    api, cohort = committing.api, committing.cohort()
    students = committing.enrolled(cohort, *(committing.student() for _ in range(40)))
    subjects = [committing.subject()["id"] for _ in range(6)]

    def change(number):
        if number < 6:
            body = {"cohort_id": cohort["id"], "subject_id": subjects[number], "elective": False}
            return api.using().post("/cohort-subjects", body)
        if number < 13:
            leaving = students[:20][number - 6 :: 7]
            return api.using().patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": leaving})
        for leaving in students[20:][number - 13 :: 7]:
            answer = api.using().post("/graduates", {"student": leaving})
        return answer

    answers = run_concurrently(20, change)

    assert {answer.status_code for answer in answers} == {200}
    assert api.ok(api.get(f"/cohorts/{cohort['id']}/students")) == []
    assert [takers(api, answer.get_json()) for answer in answers[:6]] == [[]] * 6


def test_a_student_who_leaves_while_choosing_takes_nothing(committing):
    api, cohort = committing.api, committing.cohort()
    elective = committing.cohort_subject(cohort, elective=True)
    students = committing.enrolled(cohort, *(committing.student() for _ in range(50)))

    def change(number):
        own, answers = api.using(), []
        for student in students[number // 2 :: 10]:
            if number % 2:
                body = {"student_ids": [student]}
                answers.append(own.patch(f"/cohorts/{cohort['id']}/remove_students", body).status_code)
            else:
                answers.append(choose(own, elective, [student]).status_code)
        return answers

    answers = run_concurrently(20, change)

    assert {status for statuses in answers[1::2] for status in statuses} == {200}
    assert {status for statuses in answers[::2] for status in statuses} <= {200, 422}
    assert takers(api, elective) == []


def test_many_choosing_the_same_at_once_take_it_once(committing):
    api, cohort = committing.api, committing.cohort()
    elective = committing.cohort_subject(cohort, elective=True)
    students = committing.enrolled(cohort, *(committing.student() for _ in range(5)))

    answers = run_concurrently(
        20, lambda number: choose(api.using(), elective, students[number % 5 :] + students[: number % 5])
    )

    assert {answer.status_code for answer in answers} == {200}
    assert takers(api, elective) == sorted(students)
