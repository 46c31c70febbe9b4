"""A school that keeps registers: an arm with students, in a session whose first term is under way, and its days."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from werkzeug.test import TestResponse

from tests.client import ApiClient
from tests.factories import Factory

LAGOS = ZoneInfo("Africa/Lagos")


def today() -> date:
    """The day of a school in Lagos."""
    return datetime.now(UTC).astimezone(LAGOS).date()


class Kept:
    """An arm with the students R/1 … and the registers of its days; `half_days` and other settings may be given."""

    def __init__(self, make: Factory, students: int = 3, **settings: Any) -> None:
        self.make, self.api = make, make.api
        first, last = today() - timedelta(days=150), today() + timedelta(days=150)
        self.session = make.session(start_date=str(first), end_date=str(last), current=True)
        self.term = make.term(self.session)
        self.calendar = {"start_date": str(today() - timedelta(days=100)), "end_date": str(last)}
        self.api.ok(self.api.put(f"/terms/{self.term['id']}/calendar", self.calendar))
        self.cohort = make.cohort(session=self.session)
        self.batch = self.cohort["id"]
        self.students: dict[str, str] = {}
        self.admit(students)
        # None is too old, and each day is open: tests run on any day of the week.
        self.set(**{"lock_after": None, "weekdays": [1, 2, 3, 4, 5, 6, 7], **settings})

    def admit(self, number: int, batch: str | None = None) -> list[str]:
        """Enroll so many more students; gives their admission numbers."""
        names = [f"R/{len(self.students) + each}" for each in range(1, number + 1)]
        made = [self.make.student(admission_number=name) for name in names]
        self.students |= {student["admission_number"]: student["id"] for student in made}
        if made:
            self.make.enrolled(self.cohort, *made, batch=batch)
        return names

    def set(self, **settings: Any) -> Any:
        """Change settings of attendance."""
        return self.api.ok(self.api.patch("/attendance-settings", settings))

    def key(self, back: int = 0, **key: Any) -> dict[str, Any]:
        """Make the key of a register of a day, so many days ago; `key` overrides its members."""
        part = {} if "period" in key or "part" in key else {"part": "DAY"}
        named = {"batch": self.batch, "date": str(today() - timedelta(days=back)), **part, **key}
        return {name: value for name, value in named.items() if value is not None}

    def get(self, back: int = 0, *, api: ApiClient | None = None, **key: Any) -> TestResponse:
        """Show a register."""
        return (api or self.api).get("/registers", query_string=self.key(back, **key))

    def put(
        self,
        back: int = 0,
        *,
        api: ApiClient | None = None,
        codes: dict[str, Any] | None = None,
        **body: Any,
    ) -> TestResponse:
        """Mark a register: `codes` by admission number; `body` has further members, and overrides the key."""
        marks = [{"student": self.students[name], "code": code} for name, code in (codes or {}).items()]
        if marks:
            body = {"marks": marks, **body}
        return (api or self.api).put("/registers", self.key(back, **body))

    def take(self, back: int = 0, **body: Any) -> Any:
        """Mark and submit a register in which all others are present."""
        return self.api.ok(self.put(back, **{"default": "P", "submit": True, **body}))

    def correct(
        self, back: int = 0, *, codes: dict[str, Any], api: ApiClient | None = None, **key: Any
    ) -> TestResponse:
        """Correct marks, by admission number; None takes a correction back."""
        rows = [
            {"student": self.students[name], "code": code, **({} if code is None else {"reason": "Told"})}
            for name, code in codes.items()
        ]
        return (api or self.api).put("/registers/corrections", {**self.key(back, **key), "corrections": rows})

    def move(self, name: str, batch: str) -> None:
        """Move a student into another arm."""
        removed = {"student_ids": [self.students[name]]}
        self.api.ok(self.api.patch(f"/cohorts/{self.cohort['id']}/remove_students", removed))
        self.make.enrolled(self.cohort, {"id": self.students[name]}, batch=batch)

    def sums(self, batch: str | None = None) -> dict[str, tuple[Any, ...]]:
        """The sums of an arm: opened, present, late, absent, excused, by admission number."""
        query = {"term": self.term["id"], "batch": batch or self.batch}
        rows = self.api.ok(self.api.get("/attendance/summary", query_string=query))
        names = ("opened", "present", "late", "absent", "excused")
        return {row["student"]["admission_number"]: tuple(row[name] for name in names) for row in rows}

    def of_student(self, name: str, api: ApiClient | None = None) -> TestResponse:
        """The attendance of a student in the term."""
        path = f"/students/{self.students[name]}/attendance"
        return (api or self.api).get(path, query_string={"term": self.term["id"]})

    def say(self, *days: dict[str, Any]) -> Any:
        """Say of days that they are open or closed."""
        return self.api.ok(self.api.put("/school-days", {"days": list(days)}))

    def close(self, back: int, **about: Any) -> Any:
        """Close a day, or a part of it, so many days ago."""
        return self.say({"date": self.key(back)["date"], "status": "CLOSED", **about})

    def codes(self, register: Any) -> dict[str, Any]:
        """The teacher's codes of a register, by admission number."""
        return {mark["student"]["admission_number"]: mark["code"] for mark in register["marks"]}

    def log(self, entity: str = "register") -> list[Any]:
        """The audit log's entries of an entity, the first first: action, old and new."""
        entries = self.api.ok(self.api.get("/audit", query_string={"entity": entity, "pageSize": 1000}))[
            "data"
        ]
        return [(change["action"], change["old"], change["new"]) for change in reversed(entries)]
