"""Overviews of registers: missing ones of many classes, the readings of families, days by the school's time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from school_service.features.reach import scopes
from tests.factories import UNKNOWN_ID
from tests.features.attendance.classes import Kept, today
from tests.features.reach.conftest import Own
from tests.prepared import prepared_for_each

original, class_ = prepared_for_each(Kept)


@pytest.fixture
def own(make):
    return Own(make)


def missing(api, **query):
    registers = api.ok(api.get("/registers/missing", query_string=query))
    return [
        (register["date"], register["batch"], register["part"], register["state"]) for register in registers
    ]


def test_missing_registers_of_twelve_arms_and_a_month(api, make, class_, messages):
    arms = [class_.batch]
    empty = make.batch(class_.cohort)["id"]
    for _ in range(11):
        arms.append(make.batch(class_.cohort)["id"])
        class_.admit(1, arms[-1])
    dates = [class_.key(back)["date"] for back in range(30, -1, -1)]
    class_.close(3)
    for number, arm in enumerate(arms):
        class_.take(number % 31 if number % 31 != 3 else 4, batch=arm)
    class_.api.ok(class_.put(5, batch=arms[7], default="P"))
    taken = {(dates[30 - (n % 31 if n % 31 != 3 else 4)], arm) for n, arm in enumerate(arms)}

    with messages() as sent:
        registers = missing(api, **{"from": dates[0], "to": dates[-1]})

    assert len(sent) == 1
    expected = {(day, arm) for day in dates for arm in arms if day != dates[27]} - taken
    assert {(day, arm) for day, arm, _, _ in registers} == expected
    assert len(registers) == len(expected)
    assert [day for day, *_ in registers] == sorted(day for day, *_ in registers)
    assert [register for register in registers if register[3] == "DRAFT"] == [
        (dates[25], arms[7], "DAY", "DRAFT")
    ]
    assert empty not in {arm for _, arm, _, _ in registers}
    # Of a day to come nothing is missing.
    to_come = str(today() + timedelta(days=1))
    assert missing(api, date=to_come) == []
    assert missing(api, **{"from": dates[-1], "to": to_come}) == missing(api, date=dates[-1])


@pytest.mark.parametrize(
    ("query", "field"),
    [("", "date"), ("from=2026-01-01", "to"), ("to=2026-01-01", "from"), ("from=2026-01-01&to=2026-02-01", "to"),
     ("from=2026-01-02&to=2026-01-01", "to"), ("date=2026-01-01&from=2026-01-01", "date"), ("date=x", "date")],
)  # fmt: skip
def test_missing_registers_are_asked_for_by_a_day_or_by_31(api, query, field):
    answer = api.get(f"/registers/missing?{query}")
    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, [field])


def test_form_teachers_are_named(api, make, class_):
    employee = make.employee(first_name="Àbíkẹ́", last_name="Ṣówándé")
    api.ok(api.patch(f"/teachers/{class_.batch}/add_to_batch", {"teacher_id": employee["id"]}))
    (register,) = api.ok(api.get("/registers/missing", query_string={"date": class_.key()["date"]}))
    assert register["form_teachers"] == ["Àbíkẹ́ Ṣówándé"]


NOT_THERE = (
    "/attendance/summary?term=FIRST", "/attendance/summary?term=FIRST&batch={b}&cohort_subject={b}",
    "/attendance/summary?batch={b}", "/attendance/summary?term=FOURTH&batch={b}",
    "/attendance/summary?term=THIRD&batch={b}",
    "/attendance/summary?term=FIRST&batch={x}", "/attendance/summary?term=FIRST&cohort_subject={x}",
    "/attendance/summary?term={x}&batch={b}", "/attendance/summary?term=FIRST&batch={o}",
    "/attendance/summary?term={p}&batch={b}", "/attendance/chronic?term=FIRST&cohort={o}",
    "/attendance/chronic?term={x}", "/attendance/chronic?term=FIRST&cohort={x}", "/attendance/chronic?term=SECOND",
    "/attendance/chronic?term=FIRST&percent=0", "/attendance/chronic?term=FIRST&percent=101", "/attendance/days",
    "/attendance/days?date=x", "/attendance/days?date=2026-01-01&cohort={x}",
    "/attendance/days?date=2026-01-01&cohort={o}",
    "/students/{s}/attendance", "/students/{s}/attendance?term=THIRD", "/students/{s}/attendance?term={x}",
    "/students/{s}/attendance?term={p}"
)  # fmt: skip


def test_unknown_ids_are_422(api, make_other, class_):
    other = make_other.taught()
    named = {"b": class_.batch, "x": UNKNOWN_ID, "o": other.cohort["id"], "p": other.term["id"]}

    statuses = {
        path: api.get(path.format(**named, s=class_.students["R/1"])).status_code for path in NOT_THERE
    }

    assert statuses == dict.fromkeys(NOT_THERE, 422)


def test_an_unknown_student_has_no_attendance(api, make_other, class_):
    for student in (UNKNOWN_ID, make_other.student()["id"]):
        assert api.get(f"/students/{student}/attendance?term=FIRST").status_code == 404


def test_families_read_by_the_setting_of_the_school(api, make, class_, own):
    subject = make.cohort_subject(class_.cohort)["id"]
    guardian = make.guardian({"id": class_.students["R/1"]})["id"]
    student, parent = (
        own.student(class_.students["R/1"], "read:students"),
        own.guardian(guardian, "read:students"),
    )
    class_.take(codes={"R/1": "A"})
    body = [{"student": class_.students["R/1"], "code": "L", "note": "the note of a teacher"}]
    class_.take(1, marks=body)
    api.ok(class_.correct(1, codes={"R/1": "E"}))
    api.ok(class_.put(2, codes={"R/1": "A"}))  # a draft
    class_.take(1, cohort_subject=subject, period=1)
    for family in (student, parent):
        class_.set(families_read="NOTHING")
        assert class_.of_student("R/1", family).status_code == 404
        class_.set(families_read="SUMS")
        sums = api.ok(class_.of_student("R/1", family))
        assert (sums["opened"], sums["present"], sums["absent"], sums["excused"], sums["marks"]) == (
            2,
            0,
            2,
            1,
            [],
        )
        assert sum(week["opened"] for week in sums["weeks"]) == 2
        class_.set(families_read="MARKS")
        shown = class_.of_student("R/1", family)
        assert api.ok(shown)["marks"] == [
            {"date": class_.key(1)["date"], "part": "DAY", "kind": "EXCUSED"},
            {"date": class_.key()["date"], "part": "DAY", "kind": "ABSENT"},
        ]
        assert "note" not in shown.get_data(as_text=True)
        assert "Told" not in shown.get_data(as_text=True)
        # A classmate's are not theirs, and registers are no families'.
        assert class_.of_student("R/2", family).status_code in {403, 404}
        assert class_.get(api=family).status_code == 403
    api.ok(
        api.put(
            f"/students/{class_.students['R/1']}/guardians/{guardian}/stop", {"reason": "A court said so."}
        )
    )
    assert class_.of_student("R/1", parent).status_code in {403, 404}
    class_.set(families_read="NOTHING")
    assert api.ok(class_.of_student("R/1"))["opened"] == 2


def test_a_subject_teacher_reaches_lessons_and_no_day(api, make, class_, own):
    base = make.cohort_subject(class_.cohort)
    other = make.cohort_subject(class_.cohort)["id"]
    teacher = own.subject_teacher(base, class_.batch, "read:attendance", "write:attendance")
    former = own.form_teacher(class_.batch, "read:attendance", "write:attendance")
    lesson, foreign = {"cohort_subject": base["id"], "period": 1}, {"cohort_subject": other, "period": 1}

    assert class_.put(api=teacher, default="P", **lesson).status_code == 200
    for send in (class_.get, class_.put):
        assert send(api=teacher).status_code == 422
        assert send(api=teacher, **foreign).status_code == 422
        assert send(api=former).status_code == 200
        assert send(api=former, **foreign).status_code == 200
    assert class_.correct(codes={"R/1": "A"}, api=former).status_code == 403
    days = teacher.get("/attendance/summary", query_string={"term": "FIRST", "batch": class_.batch})
    lessons = teacher.get("/attendance/summary", query_string={"term": "FIRST", "cohort_subject": base["id"]})
    assert (days.status_code, lessons.status_code) == (422, 200)
    assert teacher.ok(teacher.get("/registers/missing", query_string={"date": class_.key()["date"]})) == []
    assert len(former.ok(former.get("/registers/missing", query_string={"date": class_.key()["date"]}))) == 1


def test_a_guardian_who_reads_the_whole_school_reads_as_staff(api, make, class_):
    teacher = make.caller("read:attendance")
    guardian = make.guardian({"id": class_.students["R/1"]})["id"]
    api.ok(api.put(f"/guardians/{guardian}/account", {"user": teacher.user["id"]}))
    class_.take(codes={"R/1": "A"})
    class_.set(families_read="NOTHING")

    assert api.ok(class_.of_student("R/1", teacher)) == api.ok(class_.of_student("R/1"))


def test_a_students_term_by_name_is_of_the_latest_session_that_has_it(api, make, class_):
    last = make.session(start_date="2024-09-01", end_date="2025-07-31")
    make.term(last, term="FIRST")
    third = make.term(last, term="THIRD")
    make.enrolled(make.cohort(session=last), {"id": class_.students["R/1"]})
    class_.take()

    def opened(term):
        path = f"/students/{class_.students['R/1']}/attendance"
        return api.ok(api.get(path, query_string={"term": term}))["opened"]

    assert [opened(term) for term in ("FIRST", class_.term["id"], "THIRD", third["id"])] == [1, 1, 0, 0]


@pytest.fixture
def clock(monkeypatch):
    """Set the moment by which the school's day is computed."""
    return lambda moment: monkeypatch.setattr(scopes, "now", lambda: moment)


@pytest.mark.parametrize(
    ("zone", "moment", "day"),
    [
        # Half past midnight in Lagos; UTC says yesterday.
        ("Africa/Lagos", (23, 30), 1),
        ("Africa/Lagos", (22, 59), 0),
        # Ten hours behind.
        ("Pacific/Honolulu", (9, 59), -1),
        ("Pacific/Honolulu", (10, 0), 0),
        ("Pacific/Kiritimati", (10, 0), 1),
    ],
)
def test_a_day_to_come_is_one_of_the_school_s_zone(api, class_, clock, zone, moment, day):
    api.ok(api.patch("/settings", {"time_zone": zone}))
    utc = datetime.combine(today() - timedelta(days=10), datetime.min.time(), UTC)
    clock(utc + timedelta(hours=moment[0], minutes=moment[1]))
    there = utc.date() + timedelta(days=day)
    # The term's first and last day are days of the school, too.
    calendar = {"start_date": str(there), "end_date": str(there)}
    api.ok(api.put(f"/terms/{class_.term['id']}/calendar", calendar))
    class_.set(lock_after=0)

    assert class_.put(date=str(there), default="P").status_code == 200
    assert class_.put(date=str(there + timedelta(days=1)), default="P").status_code == 422
    assert class_.put(date=str(there - timedelta(days=1)), default="P").status_code == 409
    assert [
        register[0]
        for register in missing(
            api, **{"from": str(there - timedelta(days=5)), "to": str(there + timedelta(days=5))}
        )
    ] == [str(there)]
