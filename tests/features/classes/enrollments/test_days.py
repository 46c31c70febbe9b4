"""The first and the last day of students in a class, as the school enters them."""

from __future__ import annotations

import pytest

from tests.factories import UNKNOWN_ID
from tests.naming import name_with_number

FIRST, LAST = "2025-09-08", "2026-07-24"


class Place:
    """A cohort with two arms, and the requests that change it."""

    def __init__(self, make):
        self.api, self.make = make.api, make
        self.session = make.session(start_date=FIRST, end_date=LAST)
        self.cohort = make.cohort(session=self.session)
        self.a, self.b = self.cohort["id"], make.batch(self.cohort)["id"]

    def enroll(self, *students, batch=None, **days):
        body = {"students": [student["id"] for student in students], "batch": batch or self.a, **days}
        return self.api.post(f"/cohorts/{self.a}/enrollment", body)

    def remove(self, *students, **days):
        body = {"student_ids": [student["id"] for student in students], **days}
        return self.api.patch(f"/cohorts/{self.a}/remove_students", body)

    def listed(self):
        """The students in the cohort, with the days there."""
        students = self.api.ok(self.api.get(f"/cohorts/{self.a}/students"))
        return {
            student["id"]: (student["batch"], student["started_on"], student["ended_on"])
            for student in students
        }

    def of(self, student):
        """The days of each enrollment of a student, and whether it has ended."""
        enrollments = self.api.ok(self.api.get(f"/students/{student['id']}/data"))["enrollments"]
        return [
            (enrollment["started_on"], enrollment["ended_on"], enrollment["ended_at"] is not None)
            for enrollment in enrollments
        ]


@pytest.fixture
def classes(make):
    return Place(make)


def refused(answer, field, reason):
    assert (answer.status_code, answer.get_json()["errors"]["json"]) == (422, {field: [reason]})


def test_a_first_day_is_of_all_or_of_each_and_null_where_nobody_entered_it(api, make, classes):
    ada, bisi, chi, dan = (make.student() for _ in range(4))
    each = [
        {"student": bisi["id"], "started_on": "2025-10-01"},
        {"student": chi["id"], "started_on": None},
    ]

    api.ok(classes.enroll(ada, bisi, chi, started_on=FIRST, started_on_each=each))
    api.ok(classes.enroll(dan, batch=classes.b))

    assert classes.listed() == {
        ada["id"]: (classes.a, FIRST, None),
        bisi["id"]: (classes.a, "2025-10-01", None),
        chi["id"]: (classes.a, None, None),
        dan["id"]: (classes.b, None, None),
    }


def test_enrolling_again_takes_a_day_that_is_given_and_leaves_one_that_is_not(api, make, classes):
    student = make.student()
    api.ok(classes.enroll(student))

    for given, stored in (({"started_on": FIRST}, FIRST), ({}, FIRST), ({"started_on": LAST}, LAST)):
        api.ok(classes.enroll(student, **given))
        assert classes.of(student) == [(stored, None, False)]
    entries = api.ok(api.get(f"/audit?entity=enrollment&id={student['id']}"))["data"]
    where = {"cohort": classes.a, "batch": classes.a}
    assert [(entry["action"], entry["old"], entry["new"]) for entry in entries] == [
        ("update", {**where, "started_on": FIRST}, {**where, "started_on": LAST}),
        ("update", {**where, "started_on": None}, {**where, "started_on": FIRST}),
        ("create", None, where),
    ]


def test_a_movers_first_day_ends_the_former_batch_the_day_before(api, make, classes):
    ada, bisi = make.student(), make.student()
    api.ok(classes.enroll(ada, bisi))

    api.ok(
        classes.enroll(
            ada, bisi, batch=classes.b, started_on_each=[{"student": ada["id"], "started_on": FIRST}]
        )
    )

    assert classes.of(ada) == [(None, "2025-09-07", True), (FIRST, None, False)]
    assert classes.of(bisi) == [(None, None, True), (None, None, False)]


def test_a_mover_begins_after_the_first_day_in_the_former_batch(api, make, classes):
    student = make.student(admission_number="QC/7")
    api.ok(classes.enroll(student, started_on="2025-10-01"))

    refused(
        classes.enroll(student, batch=classes.b, started_on="2025-10-01"),
        "started_on",
        f"{name_with_number(api, student['id'])}, there since 2025-10-01: "
        "the day is not after the first one in the former batch",
    )
    api.ok(classes.enroll(student, batch=classes.b, started_on="2025-10-02"))
    assert classes.of(student) == [("2025-10-01", "2025-10-01", True), ("2025-10-02", None, False)]


@pytest.mark.parametrize("day", ["2025-09-07", "2026-07-25"])
def test_a_first_day_is_within_the_session(api, make, classes, day):
    student = make.student()
    reason = f"is not within the session, {FIRST} to {LAST}: {day}"

    refused(classes.enroll(student, started_on=day), "started_on", reason)
    each = [{"student": student["id"], "started_on": day}]
    refused(classes.enroll(student, started_on_each=each), "started_on", reason)
    assert classes.listed() == {}


def test_days_of_each_are_of_students_of_the_request_once(api, make, classes):
    student, other = make.student(), make.student()
    day = {"student": other["id"], "started_on": FIRST}

    refused(
        classes.enroll(student, started_on_each=[day]),
        "started_on_each",
        f"{name_with_number(api, other['id'])}: not among the students",
    )
    refused(
        classes.enroll(other, started_on_each=[day, day]),
        "started_on_each",
        f"{name_with_number(api, other['id'])}: named more than once",
    )
    refused(
        classes.enroll(other, started_on_each=[{"student": UNKNOWN_ID, "started_on": FIRST}]),
        "started_on_each",
        f"{UNKNOWN_ID}: not among the students",
    )


@pytest.mark.parametrize("value", ["", "08/09/2025", "2025-02-30", 20250908, []])
def test_a_day_that_is_none_is_refused(make, classes, value):
    student = make.student()

    assert list(classes.enroll(student, started_on=value).get_json()["errors"]["json"]) == ["started_on"]
    assert list(classes.remove(student, ended_on=value).get_json()["errors"]["json"]) == ["ended_on"]


def test_a_last_day_is_taken_with_the_removal(api, make, classes):
    ada, bisi, chi = (make.student() for _ in range(3))
    api.ok(classes.enroll(ada, bisi, chi, started_on="2025-10-01"))

    api.ok(classes.remove(ada, bisi, ended_on="2025-10-01"))
    api.ok(classes.remove(chi))

    assert classes.of(ada) == classes.of(bisi) == [("2025-10-01", "2025-10-01", True)]
    assert classes.of(chi) == [("2025-10-01", None, True)]
    (entry, *_) = api.ok(api.get(f"/audit?entity=enrollment&id={ada['id']}"))["data"]
    assert entry["old"] == {"cohort": classes.a, "batch": classes.a, "ended_on": "2025-10-01"}


def test_a_last_day_is_not_before_the_first_nor_before_the_session(api, make, classes):
    ada, bisi = make.student(admission_number="QC/7"), make.student()
    api.ok(classes.enroll(ada, bisi, started_on_each=[{"student": ada["id"], "started_on": "2025-10-01"}]))

    refused(
        classes.remove(bisi, ended_on="2025-09-07"),
        "ended_on",
        f"is before the session begins, {FIRST}",
    )
    refused(
        classes.remove(ada, bisi, ended_on="2025-09-30"),
        "ended_on",
        f"{name_with_number(api, ada['id'])}: the day is before the first one in the class",
    )
    assert classes.of(ada) == [("2025-10-01", None, False)]
    assert classes.of(bisi) == [(None, None, False)]


def test_a_withdrawn_student_keeps_the_last_day_of_the_withdrawal(api, make, classes):
    student = make.student()
    api.ok(classes.enroll(student))
    api.ok(api.patch(f"/students/{student['id']}", {"status": "WITHDRAWN", "left_on": "2026-03-27"}))
    assert classes.listed() == {student["id"]: (classes.a, None, "2026-03-27")}

    api.ok(classes.remove(student))

    assert classes.of(student) == [(None, "2026-03-27", True)]


def test_nobody_leaves_the_school_before_the_first_day_in_the_class(api, make, classes):
    student = make.student()
    api.ok(classes.enroll(student, started_on="2026-01-12"))

    refused(
        api.patch(f"/students/{student['id']}", {"status": "WITHDRAWN", "left_on": "2026-01-11"}),
        "left_on",
        "is before the first day in the class, 2026-01-12",
    )
    assert api.ok(api.get(f"/students/{student['id']}"))["status"] == "ACTIVE"


def test_the_other_school_enters_no_day(make, classes, other_api):
    student = make.student()
    body = {"students": [student["id"]], "batch": classes.a, "started_on": FIRST}

    assert other_api.post(f"/cohorts/{classes.a}/enrollment", body).status_code == 404
    removal = {"student_ids": [student["id"]], "ended_on": LAST}
    assert other_api.patch(f"/cohorts/{classes.a}/remove_students", removal).status_code == 404
