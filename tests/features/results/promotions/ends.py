"""The end of a session: two arms whose results are published, and the classes of the next session."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import Factory
from tests.features.results.publications.arms import Arms


class End(Arms):
    """Two arms of a cohort, one term published, and the cohorts of the next session: the class above, and this again.

    The averages are 90, 85 in the first arm and 80, 75 in the second, unless `mark` says otherwise.
    """

    def __init__(self, make: Factory, students: int = 2, subjects: int = 2) -> None:
        super().__init__(make, students, subjects)
        self.session = self.cohort["session"]
        self.next_session = make.session()
        self.above = make.cohort(session=self.next_session)
        self.compulsory = make.cohort_subject(self.above)
        self.elective = make.cohort_subject(self.above, elective=True)
        self.again = make.cohort(self.classroom, self.next_session)
        self.overrides: list[dict[str, Any]] = []

    @classmethod
    def with_results(cls, make: Factory) -> End:
        """Make an end whose results are published."""
        end = cls(make)
        end.published()
        return end

    @property
    def classroom(self) -> dict[str, Any]:
        """The classroom of the cohort."""
        rooms = self.api.ok(self.api.get("/classrooms"))
        return next(room for room in rooms if room["name"] == self.cohort["classroom"])

    @property
    def everybody(self) -> list[str]:
        """The students, of the first arm and then of the second."""
        return [student for student, _ in self.everyone]

    def move(self, batch: str | None = None, **fields: Any) -> dict[str, Any]:
        """A move of the first batch, or another: up to the class above, or again in this."""
        targets = {"promote_to": self.above["id"], "repeat_in": self.again["id"]}
        return {"batch": batch or self.first, **targets, **fields}

    def body(self, *moves: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """The body of a promotion: of these moves, or of both arms."""
        given = list(moves) or [self.move(self.first), self.move(self.second)]
        return {"session": self.session, "moves": given, "overrides": self.overrides, **fields}

    def rehearse(self, *moves: dict[str, Any], **fields: Any) -> Any:
        """POST a dry run."""
        return self.api.post("/promotions?dry_run=true", self.body(*moves, **fields))

    def rehearsal(self, *moves: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """The answer of a dry run."""
        return self.api.ok(self.rehearse(*moves, **fields))

    def commit(self, *moves: dict[str, Any], **fields: Any) -> Any:
        """POST a promotion with the fingerprint of its dry run, unless another is given."""
        if "fingerprint" not in fields:
            fields["fingerprint"] = self.rehearsal(*moves, **fields)["fingerprint"]
        return self.api.post("/promotions", self.body(*moves, **fields))

    def promoted(self, *moves: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """The answer of a commit."""
        return self.api.ok(self.commit(*moves, **fields))

    def undo(self, promotion: dict[str, Any]) -> Any:
        """DELETE a promotion."""
        return self.api.delete(f"/promotions/{promotion['id']}")

    def amend(
        self, promotion: dict[str, Any], student: str, outcome: str, batch: str | None = None, **fields: Any
    ) -> Any:
        """PATCH the decision on a student."""
        place = {} if batch is None else {"batch": batch}
        body = {"outcome": outcome, "reason": "The staff met again", **place, **fields}
        return self.api.patch(f"/promotions/{promotion['id']}/decisions/{student}", body)

    def decide(self, student: str, outcome: str | None = None, **fields: Any) -> None:
        """Add an override."""
        given = {"student": student, "reason": "As the staff decided", **fields}
        self.overrides.append(given if outcome is None else {**given, "outcome": outcome})

    def base(self, cohort_subject: dict[str, Any]) -> str:
        """The subject of the school that a cohort subject is of."""
        subjects = self.api.ok(self.api.get("/templates"))
        return next(subject["id"] for subject in subjects if subject["name"] == cohort_subject["subject"])

    def rules(self, *rules: dict[str, Any]) -> list[dict[str, Any]]:
        """PUT rules of promotion."""
        return self.api.ok(self.api.put("/promotion-rules", list(rules)))

    def students_of(self, cohort: dict[str, Any]) -> set[str]:
        """The students of a cohort."""
        return {student["id"] for student in self.api.ok(self.api.get(f"/cohorts/{cohort['id']}/students"))}

    def stored(self) -> dict[str, Any]:
        """The rows of every table that a promotion changes, but for the tables of promotions themselves."""
        with self.api.app.app_context(), in_transaction(SchoolBinding(self.api.school)):
            return {table: db.session.execute(text(sql)).scalars().all() for table, sql in _ROWS.items()}


_ROWS = {
    table: f"SELECT row_to_json(t)::text FROM {table} t ORDER BY 1"
    for table in ("enrollments", "subject_enrollments", "students", "graduates", "counters")
}


def outcomes(promotion: dict[str, Any]) -> list[str | None]:
    """The outcomes of a promotion, in its order."""
    return [decision["outcome"] for decision in promotion["decisions"]]


def codes(decision: dict[str, Any]) -> list[str]:
    """Why a rule does not promote."""
    return [reason["code"] for reason in decision["reasons"]]


def of(promotion: dict[str, Any], student: str) -> dict[str, Any]:
    """The decision on a student."""
    return next(decision for decision in promotion["decisions"] if decision["student"]["id"] == student)
