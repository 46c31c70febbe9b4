"""Cards as they were published: read through one class, since the oldest lack members of later ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from school_service.core.texts import GIVEN_FIRST, full_name
from school_service.features.scores.models import BATCH, BOTH, COHORT

Document = Mapping[str, Any]

_TERM_RESULT = (
    "student", "batch", "batch_name", "cohort", "classroom", "session", "term", "state", "version", "published_at",
    "subjects", "status", "total", "obtainable", "average", "grade", "remark", "passed", "failed", "batch_figures",
    "cohort_figures", "cumulative",
)  # fmt: skip
"""The members of a term result, in their order: all but the state are the card's."""

_SUBJECT_RESULT = (
    "subject", "scores", "status", "score", "points", "marks", "marks_sum", "weights_present", "percent",
    "grade", "remark", "batch", "cohort",
)  # fmt: skip

OF_STUDENT = {
    "id": "students.id",
    "admission_number": "students.admission_number",
    "first_name": "users.first_name",
    "middle_name": "students.middle_name",
    "last_name": "users.last_name",
    "gender": "users.gender",
    "dob": "students.dob",
}
"""The members of `student` of a card, and of a transcript, each with its column: all readers see all."""

_NO_POSITION = {"position": None, "of": None, "tied": False}
_SHOWN_BY = {"batch": (BOTH, BATCH), "cohort": (BOTH, COHORT)}
_OF_TERM = {"batch": "batch_figures", "cohort": "cohort_figures"}
_OF_SUBJECT = {"batch": "batch", "cohort": "cohort"}


@dataclass(frozen=True, slots=True)
class StoredCard:
    """A card as it is stored: its `document` has everything published of a student in a term."""

    document: Document

    def term_result(self, state: str) -> Document:
        """Give the term result of the card, as its publication's `state` is now."""
        subjects = [{**subject, **_lacking(subject)} for subject in self.subjects]
        return self._in_order(
            {**self.document, "subjects": subjects, "student": self.student, "state": state}
        )

    def own_term_result(self, state: str) -> Document:
        """Give as much of the term result as the school shows to the student: places, and scores published singly."""
        subjects = [
            {
                **self.as_own(subject, _OF_SUBJECT),
                **_lacking(subject),
                "scores": [score for score in subject["scores"] if score["publish"]],
                "marks": _published_singly(subject),
            }
            for subject in self.subjects
        ]
        cumulative = self.as_own(self.document["cumulative"], _OF_TERM)
        shown = {**self.as_own(self.document, _OF_TERM), "subjects": subjects, "cumulative": cumulative}
        return self._in_order({**shown, "student": self.student, "state": state})

    def as_own(self, part: Document, figures: Mapping[str, str]) -> dict[str, Any]:
        """Give a part of the card without the places hidden from its student."""
        hidden = {member for name, member in figures.items() if not self.shows(name)}
        return {name: {**value, **_NO_POSITION} if name in hidden else value for name, value in part.items()}

    def shows(self, name: str) -> bool:
        """Tell whether the card shows the position in the `batch`, or in the `cohort`."""
        return self.document.get("positions") in _SHOWN_BY[name]

    @property
    def subjects(self) -> Sequence[Document]:
        """The subject results."""
        subjects: Sequence[Document] = self.document["subjects"]
        return subjects

    @property
    def student(self) -> Document:
        """The student, as results name them: their date of birth is for paper alone."""
        return {name: value for name, value in self.document["student"].items() if name != "dob"}

    @property
    def printed_name(self) -> str:
        """The student's name as it is on paper: the surname last if the card gives no order."""
        return full_name(self.document["student"], self.document.get("name_order") or GIVEN_FIRST)

    @property
    def printed_class(self) -> str:
        """The class as it is on paper: with the arm in cards of the first layout, without `class_name`."""
        of = self.document
        name: str = of.get("class_name") or f"{of['classroom']} {of['batch_name']}"
        return name

    @staticmethod
    def _in_order(members: Document) -> Document:
        return {name: members.get(name) for name in _TERM_RESULT}


def _lacking(subject: Document) -> dict[str, None]:
    """Give the members that a subject result lacks, if its card is of an earlier release: null."""
    return {name: None for name in _SUBJECT_RESULT if name not in subject}


def _published_singly(subject: Document) -> list[Document] | None:
    """Give the marks of the categories with all of their scores published."""
    hidden = {score["category"] for score in subject["scores"] if not score["publish"]}
    marks: Sequence[Document] | None = subject.get("marks")
    return None if marks is None else [mark for mark in marks if mark["category"] not in hidden]


def stored_subject_result(subject: Document) -> dict[str, Any]:
    """Give a subject result of a card by the members of a live one, in their order: null where it lacks them."""
    return {name: subject.get(name) for name in _SUBJECT_RESULT}
