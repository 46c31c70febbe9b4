"""A cohort with two arms, whose results are entered, submitted and published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from tests.factories import Factory

NAMES = ("Adébọ́lá", "Bọ́lá", "Chídí", "Ɗanladi", "Ẹfẹ́", "Folúkẹ́", "Gbénga", "Hawa")


class Arms:
    """Two arms of a cohort; its students take two subjects, with an examination of 100 points each.

    Scores are by student and subject: the first student of the first arm has the most.
    """

    def __init__(self, make: Factory, students: int = 2, subjects: int = 2) -> None:
        self.make, self.api = make, make.api
        self.cohort = make.cohort()
        self.first = self.cohort["id"]
        self.second = make.batch(self.cohort)["id"]
        self.subjects = [make.cohort_subject(self.cohort) for _ in range(subjects)]
        self.students: dict[str, list[str]] = {}
        for number, batch in enumerate((self.first, self.second)):
            names = [NAMES[(number * students + place) % len(NAMES)] for place in range(students)]
            made = [make.student(first_name=name) for name in names]
            self.students[batch] = make.enrolled(self.cohort, *made, batch=batch)
        self.terms: dict[str, dict[str, Any]] = {}
        self.papers: dict[tuple[str, str], dict[str, Any]] = {}
        self.submitted_terms: set[str] = set()

    @classmethod
    def with_results(cls, make: Factory, *sizes: int) -> Self:
        """Make them with the results of the first term, marked and submitted."""
        arms = cls(make, *sizes)
        arms.mark()
        arms.submit()
        return arms

    @property
    def everyone(self) -> list[tuple[str, str]]:
        """Each student with their batch."""
        return [(student, batch) for batch, students in self.students.items() for student in students]

    def mark(self, term: str = "FIRST", *, first: float = 90, step: float = 5, **fields: Any) -> None:
        """Enter a score in each subject for everyone, each lower by a step."""
        if term not in self.terms:
            name = f"{term.title()} term"
            self.terms[term] = self.make.term({"id": self.cohort["session"]}, term=term, display_name=name)
        for subject in self.subjects:
            options = {"category": "EXAM", "total_points": 100, "publish_scores": True, **fields}
            paper = self.make.assessment(subject, self.terms[term], **options)
            self.papers[term, subject["id"]] = paper
            scores = [
                {"student": student, "score": first - step * number}
                for number, (student, _) in enumerate(self.everyone)
            ]
            self.api.ok(self.api.put(f"/assessments/{paper['id']}/scores", {"scores": scores}))

    def submit(self, term: str = "FIRST") -> None:
        """Submit all subjects."""
        for subject in self.subjects:
            self.api.ok(self.api.post(f"/cohort-subjects/{subject['id']}/submission", {"term": term}))
        self.submitted_terms.add(term)

    def publish(self, *batches: str, term: str = "FIRST", query: str = "", **fields: Any) -> Any:
        """POST a publication of these batches, or of both."""
        body = {"term": term, "batches": batches or [self.first, self.second], **fields}
        return self.api.post(f"/publications{query}", body)

    def published(self, *batches: str, term: str = "FIRST") -> list[dict[str, Any]]:
        """Mark and submit where that is not done, and publish; answers the publications, in the order of `batches`."""
        if term not in self.terms:
            self.mark(term)
        if term not in self.submitted_terms:
            self.submit(term)
        made = {
            publication["batch"]: publication
            for publication in self.api.ok(self.publish(*batches, term=term))
        }
        return [made[batch] for batch in batches or (self.first, self.second)]

    def reopen(self, publication: dict[str, Any], **fields: Any) -> Any:
        """POST the reopening of a publication."""
        body = {"reason": "A paper was found", **fields}
        return self.api.post(f"/publications/{publication['id']}/reopening", body)

    def reopen_subject(self, number: int = 0, term: str = "FIRST") -> Any:
        """POST the reopening of a subject."""
        self.submitted_terms.discard(term)
        path = f"/cohort-subjects/{self.subjects[number]['id']}/reopening"
        return self.api.post(path, {"term": term, "reason": "A paper was found"})

    def correct(self, student: str, score: float, number: int = 0, term: str = "FIRST") -> None:
        """Reopen a subject, change a score, and submit it again."""
        self.api.ok(self.reopen_subject(number, term))
        paper = self.papers[term, self.subjects[number]["id"]]["id"]
        query = {"assessment": paper, "student": student}
        (entry,) = self.api.ok(self.api.get("/gradebooks", query_string=query))["data"]
        self.api.ok(self.api.patch(f"/gradebooks/{entry['id']}", {"score": score}))
        self.submit(term)

    def listed(self, **query: Any) -> list[dict[str, Any]]:
        """GET publications: the first page."""
        return self.api.ok(self.api.get("/publications", query_string=query))["data"]

    def admission_numbers(self, students: Sequence[str]) -> list[str]:
        return [self.api.ok(self.api.get(f"/students/{student}"))["admission_number"] for student in students]
