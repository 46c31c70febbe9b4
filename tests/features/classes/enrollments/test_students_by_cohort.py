"""The list of students by the cohort and batch they are in."""

from __future__ import annotations

from uuid import uuid4

import pytest


def student_ids(api, **filters):
    return [student["id"] for student in api.ok(api.get("/students", query_string=filters))["data"]]


def test_a_cohort_filter_finds_the_students_of_all_its_batches(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    students = make.enrolled(cohort) + make.enrolled(cohort, batch=arm["id"])
    make.enrolled(make.cohort())
    make.student()

    assert sorted(student_ids(api, cohort=cohort["id"])) == sorted(students)


def test_a_batch_filter_finds_the_students_of_this_batch_alone(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    first, second = make.enrolled(cohort), make.enrolled(cohort, batch=arm["id"])

    assert student_ids(api, batch=arm["id"]) == second
    assert student_ids(api, batch=cohort["id"]) == first
    assert student_ids(api, batch=arm["id"], cohort=cohort["id"]) == second


def test_students_who_left_or_moved_are_not_found_there(api, make):
    cohort = make.cohort()
    arm = make.batch(cohort)
    left, moved = make.enrolled(cohort), make.enrolled(cohort)
    api.ok(api.patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": left}))
    make.enrolled(cohort, {"id": moved[0]}, batch=arm["id"])

    assert student_ids(api, batch=cohort["id"]) == []
    assert student_ids(api, cohort=cohort["id"]) == moved


def test_a_student_of_two_sessions_is_found_in_both(api, make):
    last_year, this_year = make.cohort(), make.cohort()
    (student,) = make.enrolled(last_year)
    make.enrolled(this_year, {"id": student})

    assert student_ids(api, cohort=last_year["id"]) == student_ids(api, cohort=this_year["id"]) == [student]


def test_the_filter_joins_the_others(api, make):
    cohort = make.cohort()
    sought, other = make.student(last_name="Ọ̀kánlàwọ́n"), make.student(last_name="Musa")
    make.enrolled(cohort, sought, other)
    make.student(last_name="Ọ̀kánlàwọ́n")
    api.ok(api.patch(f"/students/{other['id']}", {"status": "WITHDRAWN"}))

    assert student_ids(api, cohort=cohort["id"], search="kánlàwọ́n") == [sought["id"]]
    assert student_ids(api, cohort=cohort["id"], status="WITHDRAWN") == [other["id"]]


@pytest.mark.parametrize("name", ["batch", "cohort"])
def test_an_unknown_place_names_its_filter(api, make_other, name):
    for unknown in (str(uuid4()), make_other.cohort()["id"], "A", ""):
        answer = api.get("/students", query_string={name: unknown})
        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["query"]) == [name]


def test_a_batch_is_no_cohort(api, make):
    batch = make.batch(make.cohort())

    assert api.get("/students", query_string={"cohort": batch["id"]}).status_code == 422


def test_the_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    cohort = make.cohort()
    for size in (2, 20):
        for _ in range(size):
            make.enrolled(cohort)
        for filters in ({}, {"cohort": cohort["id"]}):
            student_ids(api, **filters)
            with messages() as sent:
                student_ids(api, **filters)
            assert len(sent) == 1, sent
