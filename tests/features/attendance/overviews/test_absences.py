"""Students away on a day, and the guardians to tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from school_service.features.reach import scopes
from tests.factories import UNKNOWN_ID
from tests.features.attendance.classes import Kept, today
from tests.features.reach.conftest import Own
from tests.prepared import prepared_for_each

PATH = "/attendance/absences"
READS = ("read:attendance", "read:students")


original, class_ = prepared_for_each(Kept)


def absences(api, **query):
    return api.ok(api.get(PATH, query_string=query))


def briefly(api, **query):
    """The students away: admission number, part, code and kind."""
    return [
        (absence["student"]["admission_number"], absence["part"], absence["code"], absence["kind"])
        for absence in absences(api, **query)
    ]


def test_the_absent_and_the_excused_are_listed_with_the_guardians_to_tell(api, make, class_, messages):
    child = {"id": class_.students["R/1"]}
    mother = make.guardian(child, full_name="Ngọzi Zubairu", phone_number="0803 123 4567")
    make.guardian(child, full_name="Àbíkẹ́ Adé", email_address="abike@example.com")
    silent, stopped = (make.guardian(child, full_name=name) for name in ("Not Told", "Stopped One"))
    link = f"/students/{child['id']}/guardians"
    api.ok(api.put(f"{link}/{mother['id']}", {"relationship": "mother", "primary": True}))
    api.ok(
        api.put(f"{link}/{silent['id']}", {"relationship": "uncle", "receives_reports": False}),
    )
    api.ok(api.put(f"{link}/{stopped['id']}/stop", {"reason": "A court said so."}))
    class_.take(codes={"R/1": "A", "R/2": "E", "R/3": "L"})

    with messages() as sent:
        absentees = absences(api)

    assert len(sent) == 1
    student = api.ok(api.get(f"/students/{child['id']}"))
    assert absentees[0] == {
        "student": {name: student[name] for name in ("id", "admission_number", "first_name", "last_name")},
        "batch": class_.batch,
        "batch_name": "A",
        "part": "DAY",
        "code": "A",
        "kind": "ABSENT",
        "guardians": [
            {
                "full_name": "Ngọzi Zubairu",
                "relationship": "mother",
                "phone_number": mother["phone_number"],
                "email_address": None,
            },
            {
                "full_name": "Àbíkẹ́ Adé",
                "relationship": "mother",
                "phone_number": None,
                "email_address": "abike@example.com",
            },
        ],
    }
    assert briefly(api) == [("R/1", "DAY", "A", "ABSENT"), ("R/2", "DAY", "E", "EXCUSED")]
    assert absentees[1]["guardians"] == []
    assert absentees == absences(api, date=str(today()))
    assert absences(api, date=class_.key(1)["date"]) == []


def test_an_absence_counts_as_corrected_once_the_register_is_submitted(api, make, class_):
    subject = make.cohort_subject(class_.cohort)["id"]
    class_.take(cohort_subject=subject, period=1, codes={"R/1": "A"})
    api.ok(class_.put(codes={"R/1": "A", "R/2": "A"}))
    assert absences(api) == []

    class_.take()
    assert [absence[0] for absence in briefly(api)] == ["R/1", "R/2"]

    api.ok(class_.correct(codes={"R/1": "P", "R/2": "E", "R/3": "A"}))
    assert briefly(api) == [("R/2", "DAY", "E", "EXCUSED"), ("R/3", "DAY", "A", "ABSENT")]
    api.ok(class_.correct(codes={"R/1": None, "R/2": None, "R/3": None}))
    assert briefly(api) == [("R/1", "DAY", "A", "ABSENT"), ("R/2", "DAY", "A", "ABSENT")]


def test_each_half_of_a_day_is_a_row_by_name_and_then_by_part(api, class_):
    class_.set(parts="HALF_DAYS")
    class_.take(part="AFTERNOON", codes={"R/1": "A", "R/2": "E"})
    class_.take(part="MORNING", codes={"R/1": "A"})

    assert [absence[:2] for absence in briefly(api)] == [
        ("R/1", "MORNING"),
        ("R/1", "AFTERNOON"),
        ("R/2", "AFTERNOON"),
    ]


def test_a_mover_present_in_one_arm_is_not_away(api, make, class_):
    arm = make.batch(class_.cohort)["id"]
    class_.admit(1, arm)
    class_.take(codes={"R/1": "A", "R/2": "A"})
    for name in ("R/1", "R/2"):
        class_.move(name, arm)
    class_.take(batch=arm, codes={"R/1": "P", "R/2": "E"})

    assert briefly(api) == [("R/2", "DAY", "E", "EXCUSED")]
    assert absences(api)[0]["batch"] == arm


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"date": str(today() + timedelta(days=2))}, ["is to come"]),
        ({"date": "9999-12-31"}, ["is to come"]),
        ({"date": "tomorrow"}, None),
        ({"date": ""}, None),
    ],
)
def test_a_day_to_come_and_no_day_are_refused(api, class_, query, told):
    class_.take(codes={"R/1": "A"})
    answer = api.get(PATH, query_string=query)

    assert answer.status_code == 422
    errors = answer.get_json()["errors"]["query"]
    assert list(errors) == ["date"]
    assert told is None or errors["date"] == told


def test_today_is_the_school_s(api, class_, monkeypatch):
    class_.take(codes={"R/1": "A"})
    before = datetime(today().year, today().month, today().day, tzinfo=UTC) - timedelta(minutes=30)
    monkeypatch.setattr(scopes, "now", lambda: before)
    # Of the day before in UTC, 23:30, and of this one in Lagos.

    assert briefly(api) == [("R/1", "DAY", "A", "ABSENT")]
    assert absences(api, date=str(today())) != []


def test_absences_need_both_permissions_and_the_narrower_reach_holds(api, make, class_, messages):
    own = Own(make)
    guardian = make.guardian({"id": class_.students["R/1"]})["full_name"]
    arm = make.batch(class_.cohort)["id"]
    class_.admit(1, arm)
    class_.take(codes={"R/1": "A", "R/2": "A"})
    class_.take(batch=arm, codes={"R/4": "A"})
    for permission in READS:
        assert make.caller(permission).get(PATH).status_code == 403
    assert [absence[0] for absence in briefly(make.caller(*READS))] == ["R/1", "R/2", "R/4"]

    employee, narrow = own.teacher("read:students")
    api.ok(api.patch(f"/teachers/{class_.batch}/add_to_batch", {"teacher_id": employee["id"]}))
    role = make.role("read:attendance")
    api.ok(api.put(f"/users/{make.account_of(employee)['id']}/roles", {"role": role["id"]}))
    for teacher in (narrow, own.form_teacher(class_.batch, *READS)):
        with messages() as sent:
            absentees = absences(teacher)
        assert len(sent) == 2
        assert [absence["student"]["admission_number"] for absence in absentees] == ["R/1", "R/2"]
        assert [person["full_name"] for person in absentees[0]["guardians"]] == [guardian]
    subject = make.cohort_subject(class_.cohort)
    for other in (
        own.subject_teacher(subject, None, *READS),
        own.student(class_.students["R/1"]),
        own.teacher(*READS)[1],
    ):
        assert absences(other) == []


def test_a_form_teacher_reads_no_guardians_of_a_student_who_moved_away(api, make, class_):
    make.guardian({"id": class_.students["R/1"]})
    teacher = Own(make).form_teacher(class_.batch, *READS)
    class_.take(codes={"R/1": "A"})
    class_.move("R/1", make.batch(class_.cohort)["id"])

    (absence,) = absences(teacher)

    assert (absence["student"]["admission_number"], absence["guardians"]) == ("R/1", [])
    assert len(absences(api)[0]["guardians"]) == 1


def test_another_school_has_absences_of_its_own(api, make_other, class_):
    class_.take(codes={"R/1": "A"})

    assert absences(make_other.api) == []
    assert api.get(PATH, query_string={"batch": UNKNOWN_ID}).status_code == 422
