"""When students were admitted and left: facts that the school enters."""

from __future__ import annotations

import pytest

from tests.factories import UNKNOWN_ID
from tests.threads import run_concurrently

LEFT = {"status": "WITHDRAWN", "left_on": "2026-03-27", "leaving_reason": "Moves to Jos.\nFees are paid."}


def change(api, student, **changes):
    return api.ok(api.patch(f"/students/{student['id']}", changes))


def refused(api, student, **changes):
    answer = api.patch(f"/students/{student['id']}", changes)
    assert answer.status_code == 422, answer.get_json()
    return answer.get_json()["errors"]["json"]


def dates(student):
    return [student[name] for name in ("admitted_on", "left_on", "leaving_reason", "former_school")]


def enrollments(api, student):
    history = api.ok(api.get(f"/students/{student['id']}/data"))["enrollments"]
    return [
        (enrollment["started_on"], enrollment["ended_on"], enrollment["ended_at"] is not None)
        for enrollment in history
    ]


@pytest.fixture
def session(make):
    return make.session(start_date="2025-09-08", end_date="2026-07-24")


@pytest.fixture
def cohort(make, session):
    return make.cohort(session=session)


def test_dates_and_texts_are_given_changed_and_taken_back(api, make):
    made = make.student(admitted_on="2024-09-16", former_school="Corona School")
    assert dates(made) == ["2024-09-16", None, None, "Corona School"]

    changed = change(api, made, admitted_on="2023-01-09", former_school=None, **LEFT)

    assert dates(changed) == ["2023-01-09", "2026-03-27", LEFT["leaving_reason"], None]
    assert api.ok(api.get(f"/students/{made['id']}")) == changed
    assert dates(change(api, made, left_on=None, leaving_reason=None)) == ["2023-01-09", None, None, None]


@pytest.mark.parametrize("name", ["left_on", "leaving_reason"])
def test_an_active_student_has_no_date_or_reason_of_leaving(api, make, name):
    made = make.student()
    said = {name: ["is of a student who has withdrawn or graduated"]}

    assert refused(api, made, **{name: LEFT[name]}) == said
    assert refused(api, made, status="ACTIVE", **{name: LEFT[name]}) == said
    change(api, made, **LEFT)
    assert refused(api, made, status="ACTIVE", **{name: LEFT[name]}) == said
    body = {"first_name": "Ada", "last_name": "Obi", "admission_number": "QC/9", name: LEFT[name]}
    answer = api.post("/students", body)
    assert (answer.status_code, answer.get_json()["errors"]["json"]) == (
        422,
        {name: ["Is of a student who has withdrawn or graduated."]},
    )


def test_nobody_leaves_before_the_admission(api, make):
    made = make.student(admitted_on="2026-03-28")

    assert refused(api, made, **LEFT) == {"left_on": ["is before admitted_on"]}
    change(api, made, **LEFT, admitted_on="2026-03-27")
    assert refused(api, made, admitted_on="2026-03-28") == {"admitted_on": ["is after left_on"]}
    assert refused(api, made, left_on="2026-03-26") == {"left_on": ["is before admitted_on"]}
    assert dates(change(api, made, left_on="2026-03-27"))[:2] == ["2026-03-27", "2026-03-27"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("admitted_on", "1899-12-31"),
        ("admitted_on", "16/09/2024"),
        ("admitted_on", 20240916),
        ("admitted_on", ""),
        ("left_on", "2026-02-30"),
        ("former_school", ""),
        ("former_school", "x" * 501),
        ("former_school", "nul\x00"),
        ("leaving_reason", "x" * 501),
        ("leaving_reason", 7),
    ],
)
def test_values_that_are_none_are_refused(api, make, name, value):
    made = change(api, make.student(), status="WITHDRAWN")

    assert list(refused(api, made, **{name: value})) == [name]


def test_texts_have_500_letters_as_they_are_shown(api, make):
    text = "ẹ́" * 250

    assert dates(change(api, make.student(), former_school=text))[3] == text


def test_the_date_of_leaving_is_the_last_day_in_the_class(api, make, cohort):
    made = make.student()
    make.enrolled(cohort, made)

    change(api, made, **LEFT)
    assert enrollments(api, made) == [(None, "2026-03-27", False)]
    change(api, made, left_on="2026-03-20")
    assert enrollments(api, made) == [(None, "2026-03-20", False)]
    change(api, made, left_on=None)
    assert enrollments(api, made) == [(None, None, False)]
    change(api, made, left_on="2026-03-20", former_school="Corona School")

    back = change(api, made, status="ACTIVE")

    assert dates(back) == [None, None, None, "Corona School"]
    assert back["batch"] == cohort["id"]
    assert enrollments(api, made) == [(None, None, False)]


def test_the_last_day_is_stored_in_the_class_of_the_session_that_had_begun(api, make, cohort):
    made = make.student()
    make.enrolled(cohort, made)
    make.enrolled(make.cohort(session=make.session(start_date="2026-09-07", end_date="2027-07-23")), made)

    change(api, made, status="WITHDRAWN", left_on="2026-07-24")
    assert enrollments(api, made) == [(None, "2026-07-24", False), (None, None, False)]
    change(api, made, left_on="2026-09-18")
    assert enrollments(api, made) == [(None, None, False), (None, "2026-09-18", False)]
    change(api, made, left_on="2025-06-01")
    assert enrollments(api, made) == [(None, None, False), (None, None, False)]


def test_an_enrollment_that_has_ended_keeps_its_last_day(api, make, cohort):
    made = make.student()
    make.enrolled(cohort, made)
    change(api, made, **LEFT)
    api.ok(api.patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": [made["id"]]}))

    change(api, made, status="ACTIVE")

    assert enrollments(api, made) == [(None, "2026-03-27", True)]


def test_the_audit_log_names_changed_fields_without_their_texts(api, make):
    made = make.student()
    change(api, made, former_school="Corona School", **LEFT)

    (entry, *_) = api.ok(api.get(f"/audit?entity=student&id={made['id']}"))["data"]

    assert entry["old"] == {"status": "ACTIVE"}
    assert entry["new"] == {"status": "WITHDRAWN", "changed": ["former_school", "leaving_reason", "left_on"]}


def test_the_copy_of_a_person_has_the_reason(api, make):
    made = make.student(former_school="Corona School")
    change(api, made, **LEFT)

    told = api.ok(api.get(f"/students/{made['id']}/data"))["student"]

    assert dates(told) == [None, "2026-03-27", LEFT["leaving_reason"], "Corona School"]


def test_a_graduate_has_a_date_of_leaving_too(api, make):
    made = make.student()
    make.graduate(made)

    assert dates(change(api, made, left_on="2026-07-24"))[1] == "2026-07-24"


def test_unknown_and_other_schools_students_stay_unknown(api, other_api, make):
    made = make.student()

    for caller, student in ((other_api, made["id"]), (api, UNKNOWN_ID)):
        assert caller.patch(f"/students/{student}", LEFT).status_code == 404


def test_withdrawing_and_admitting_at_once_leave_dates_in_order(committing):
    api, made = committing.api, committing.student()
    change(api, made, status="WITHDRAWN")
    works = [{"left_on": "2026-03-27"}, {"admitted_on": "2026-03-28"}] * 2

    def work(number):
        return api.patch(f"/students/{made['id']}", works[number]).status_code

    statuses = run_concurrently(len(works), work)

    assert set(statuses) == {200, 422}
    admitted_on, left_on, *_ = dates(api.ok(api.get(f"/students/{made['id']}")))
    assert (admitted_on, left_on) in {("2026-03-28", None), (None, "2026-03-27")}
