"""The current session: its term by the calendar, and its size for callers with the whole school in reach."""

from __future__ import annotations

from datetime import timedelta

import pytest

from school_service.core.permissions import Permission
from tenants.clock import now
from tests.features.reach.conftest import Own

PATH = "/sessions/current"


@pytest.fixture
def session(make):
    year = now().year
    return make.session(start_date=f"{year - 1}-12-01", end_date=f"{year + 1}-01-31", current=True)


def set_days(api, term, first, last):
    """Let a term last from so many days after today to so many."""
    today = now().date()
    days = {"start_date": str(today + timedelta(first)), "end_date": str(today + timedelta(last))}
    api.ok(api.put(f"/terms/{term['id']}/calendar", days))


def test_a_school_without_a_current_session_has_none_to_show(api, make):
    make.session(current=False)

    answer = api.get(PATH)

    assert answer.status_code == 404


def test_the_current_session_is_shown_with_its_size(api, make, session):
    other = make.session(start_date="2019-09-01", end_date="2020-07-31")
    cohort, past = make.cohort(session=session), make.cohort(session=other)
    arm = make.batch(cohort, name="B")
    make.cohort_subject(cohort)
    make.cohort_subject(past)
    students = [make.student() for _ in range(3)]
    make.enrolled(cohort, *students[:2])
    make.enrolled(cohort, students[2], batch=arm["id"])
    make.enrolled(past, make.student())
    before = api.ok(api.get(PATH))
    api.ok(api.patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": [students[0]["id"]]}))
    make.employee()

    answer = api.ok(api.get(PATH))

    assert answer["session"] == api.ok(api.get(f"/sessions/{session['id']}"))
    assert answer["term"] is None
    assert before["counts"] == {"students": 3, "classes": 1, "arms": 2, "subjects": 1, "staff": 0}
    assert answer["counts"] == {**before["counts"], "students": 2, "staff": 1}


def test_the_term_is_the_one_with_the_day_of_the_school(api, make, session):
    first, second = make.term(session), make.term(session, term="SECOND")
    set_days(api, first, -40, -10)
    set_days(api, second, -9, 2)

    assert api.ok(api.get(PATH))["term"] == api.ok(api.get(f"/terms/{second['id']}"))

    # A day of holidays is in no term.
    set_days(api, second, 1 + 1, 20)
    assert api.ok(api.get(PATH))["term"] is None


def test_a_caller_of_their_own_records_sees_the_session_without_counts(api, make, session):
    make.employee()
    teacher = Own(make).caller(make.user()["user"], Permission.TERMS_READ)

    answer = api.ok(teacher.get(PATH))

    assert answer["session"]["id"] == session["id"]
    assert answer["counts"] is None


def test_a_caller_without_the_permission_sees_no_session(make, session):
    assert make.caller().get(PATH).status_code == 403


def test_another_school_has_a_current_session_of_its_own(api, make, session, other_api):
    assert other_api.get(PATH).status_code == 404
    assert api.ok(api.get(PATH))["session"]["id"] == session["id"]
