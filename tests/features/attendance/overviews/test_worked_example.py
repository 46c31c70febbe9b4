"""A class of six over three weeks of half days, whose sums are computed by hand.

School is open on fourteen days, since the Wednesday of the second week is a holiday: 28 times. The register of the last
afternoon stays a draft: 27 count in arm A. In arm B all ten of the third week are
submitted, and the morning of the second Friday, where R/5 is away there and present in arm A: that counts as present.

| | | opened | present | late | absent | excused |
|---|---|---|---|---|---|---|
| R/1 | is always there | 27 | 27 | 0 | 0 | 0 |
| R/2 | away on the first Monday; the office excuses the afternoon | 27 | 25 | 0 | 2 | 1 |
| R/3 | late on the first Tuesday | 27 | 27 | 1 | 0 | 0 |
| R/4 | comes after the first week, ten times less; the office says late once | 17 | 17 | 1 | 0 | 0 |
| R/5 | in arm B from the third week, away on its last afternoon; on the second Friday in both | 28 | 27 | 0 | 1 | 0 |
| R/6 | excused on the third Thursday; the absence of the first Wednesday was a mistake | 27 | 25 | 0 | 2 | 2 |
"""

from __future__ import annotations

from datetime import date, timedelta

from tests.features.attendance.classes import Kept, today
from tests.prepared import prepared_for_each

SUMS = {
    "R/1": (27, 27, 0, 0, 0),
    "R/2": (27, 25, 0, 2, 1),
    "R/3": (27, 27, 1, 0, 0),
    "R/4": (17, 17, 1, 0, 0),
    "R/5": (28, 27, 0, 1, 0),
    "R/6": (27, 25, 0, 2, 2),
}


class Worked(Kept):
    """The class, with its second arm."""

    def __init__(self, make):
        super().__init__(make, 3, parts="HALF_DAYS", weekdays=[1, 2, 3, 4, 5])
        self.first = today() - timedelta(days=today().weekday() + 28)
        self.other = make.batch(self.cohort)["id"]
        latecomer, _, _ = self.admit(3)
        # They are enrolled from the second week on.
        removed = {"student_ids": [self.students[latecomer]]}
        self.api.ok(self.api.patch(f"/cohorts/{self.cohort['id']}/remove_students", removed))
        self.say({"date": str(self.day(2, 3)), "status": "CLOSED", "name": "Democracy Day"})
        self.week(1, {(1, "MORNING"): {"R/2": "A"}, (1, "AFTERNOON"): {"R/2": "A"}, (2, "MORNING"): {"R/3": "L"},
                      (3, "MORNING"): {"R/6": "A"}})  # fmt: skip
        make.enrolled(self.cohort, {"id": self.students[latecomer]})
        self.week(2, {})
        self.move("R/5", self.other)
        self.api.ok(self.mark(2, 5, "MORNING", {"R/5": "A"}, batch=self.other))
        self.week(3, {(4, "MORNING"): {"R/6": "E"}, (4, "AFTERNOON"): {"R/6": "E"}}, draft=(5, "AFTERNOON"))
        self.week(3, {(5, "AFTERNOON"): {"R/5": "A"}}, batch=self.other)
        self.fix(1, 1, "AFTERNOON", "R/2", "E")
        self.fix(1, 3, "MORNING", "R/6", "P")
        self.fix(2, 1, "MORNING", "R/4", "L")

    def day(self, week: int, weekday: int) -> date:
        """A day, by the number of its week and by its own, from 1."""
        return self.first + timedelta(days=7 * (week - 1) + weekday - 1)

    def mark(self, week, weekday, part, codes, **body):
        key = {"date": str(self.day(week, weekday)), "part": part}
        return self.put(codes=codes, **{**key, "default": "P", "submit": True, **body})

    def week(self, week, codes, draft=None, **body):
        for weekday in range(1, 6):
            for part in ("MORNING", "AFTERNOON"):
                time = weekday, part
                answer = self.mark(week, *time, codes.get(time, {}), submit=time != draft, **body)
                assert answer.status_code == (409 if (week, weekday) == (2, 3) else 200)

    def fix(self, week, weekday, part, name, code):
        self.api.ok(self.correct(codes={name: code}, date=str(self.day(week, weekday)), part=part))


original, worked = prepared_for_each(Worked)


def test_the_sums_of_both_arms(worked):
    # R/5 is in the registers of both arms, and has the same sums in both.
    assert worked.sums() == SUMS
    assert worked.sums(worked.other) == {"R/5": SUMS["R/5"]}


def test_present_and_absent_make_up_the_times_opened(worked):
    for opened, present, late, absent, excused in worked.sums().values():
        assert present + absent == opened
        assert late <= present
        assert excused <= absent


def test_a_student_s_own_sums_weeks_and_marks(api, worked):
    for name, sums in SUMS.items():
        told = api.ok(worked.of_student(name))
        assert tuple(told[each] for each in ("opened", "present", "late", "absent", "excused")) == sums
        assert len(told["marks"]) == told["opened"] == sum(week["opened"] for week in told["weeks"])
        assert told["present"] == sum(week["present"] for week in told["weeks"])

    told = api.ok(worked.of_student("R/5"))
    assert told["percent"] == 96.43
    assert told["weeks"] == [
        {"monday": str(worked.day(1, 1)), "opened": 10, "present": 10},
        {"monday": str(worked.day(2, 1)), "opened": 8, "present": 8},
        {"monday": str(worked.day(3, 1)), "opened": 10, "present": 9},
    ]
    last = str(worked.day(3, 5))
    assert told["marks"][-2:] == [
        {"date": last, "part": "MORNING", "kind": "PRESENT"},
        {"date": last, "part": "AFTERNOON", "kind": "ABSENT"},
    ]


def test_students_away_too_often_are_listed(api, worked):
    def chronic(**query):
        page = api.ok(api.get("/attendance/chronic", query_string={"term": "FIRST", **query}))
        return [(row["student"]["admission_number"], row["absent"], row["percent"]) for row in page["data"]]

    assert chronic() == []
    assert chronic(percent=7) == [("R/2", 2, 92.59), ("R/6", 2, 92.59)]
    assert chronic(percent=1) == [("R/2", 2, 92.59), ("R/6", 2, 92.59), ("R/5", 1, 96.43)]
    assert chronic(percent=1, cohort=worked.cohort["id"]) == chronic(percent=1, term=worked.term["id"])
    worked.set(chronic_percent=7)
    assert len(chronic()) == 2


def test_missing_registers_and_a_day_of_the_school(api, worked):
    first, last = worked.day(1, 1), worked.day(3, 5)
    registers = api.ok(api.get("/registers/missing", query_string={"from": str(first), "to": str(last)}))

    # Arm B has a student now, and had registers from the third week on; one of the second was taken later.
    open_times = [
        (str(worked.day(week, day)), part)
        for week in (1, 2, 3)
        for day in range(1, 6)
        for part in ("MORNING", "AFTERNOON")
        if (week, day) != (2, 3)
    ]
    of_b = [time for time in open_times[:18] if time != (str(worked.day(2, 5)), "MORNING")]
    assert [
        (register["date"], register["part"]) for register in registers if register["batch"] == worked.other
    ] == of_b
    assert [
        (register["date"], register["part"], register["state"])
        for register in registers
        if register["batch"] == worked.batch
    ] == [(str(last), "AFTERNOON", "DRAFT")]
    for batch, there in ((worked.batch, SUMS.keys() - {"R/5"}), (worked.other, {"R/5"})):
        students = [worked.students[name] for name in there]
        begun = {"students": students, "batch": batch, "started_on": str(worked.day(3, 1))}
        api.ok(api.post(f"/cohorts/{worked.cohort['id']}/enrollment", begun))
    day = api.ok(api.get("/attendance/days", query_string={"date": str(worked.day(3, 5))}))
    assert [
        tuple(
            register[name] for name in ("batch", "part", "state", "enrolled", "present", "absent", "unmarked")
        )
        for register in day
    ] == [
        (worked.batch, "MORNING", "SUBMITTED", 5, 5, 0, 0),
        (worked.batch, "AFTERNOON", "DRAFT", 5, 0, 0, 5),
        (worked.other, "MORNING", "SUBMITTED", 1, 1, 0, 0),
        (worked.other, "AFTERNOON", "SUBMITTED", 1, 0, 1, 0),
    ]
    assert api.ok(api.get("/attendance/days", query_string={"date": str(worked.day(2, 3))})) == []
