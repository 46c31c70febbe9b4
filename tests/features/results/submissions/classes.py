"""A class with a subject and its assessments, some of them marked, whose results can be submitted."""

from __future__ import annotations

from typing import Any

from tests.factories import Factory

HELD = "The results of {}, First term, are submitted: reopen them first."


class Class:
    """Students of a cohort who take one subject, with an assessment of 20 points; `marked` of them have a score."""

    def __init__(self, make: Factory, students: int = 2, *, marked: int | None = None, **fields: Any) -> None:
        self.make, self.api = make, make.api
        self.taught = make.taught(students)
        self.students, self.term, self.cohort = self.taught.students, self.taught.term, self.taught.cohort
        self.subject = self.taught.subject["id"]
        self.assessment = make.assessment(self.taught.subject, self.term, **fields)
        for student in self.students[: students if marked is None else marked]:
            self.score(student)

    def score(self, student: str, score: float = 12.5, assessment: Any = None) -> dict[str, Any]:
        return self.make.entry(assessment or self.assessment, student, self.cohort["id"], score)

    def submit(self, **fields: Any) -> Any:
        """POST the submission."""
        body = {"term": "FIRST", **fields}
        return self.api.post(f"/cohort-subjects/{self.subject}/submission", body)

    def reopen(self, **fields: Any) -> Any:
        """POST the reopening."""
        body = {"term": "FIRST", "reason": "A paper was found", **fields}
        return self.api.post(f"/cohort-subjects/{self.subject}/reopening", body)

    def listed(self, **query: Any) -> Any:
        """GET the submissions of the class."""
        asked = {"batch": self.cohort["id"], "term": "FIRST", **query}
        return self.api.get("/submissions", query_string=asked)

    @property
    def refusal(self) -> str:
        """The answer to a write once the results are submitted."""
        return HELD.format(self.taught.subject["subject"])


def message(answer: Any) -> str:
    return str(answer.get_json()["message"])
