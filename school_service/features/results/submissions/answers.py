"""The progress of the subjects of a class, and the blanks of one: pure functions of the entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from school_service.core.reach import Reach
from school_service.core.read_models import Made, MadeTogether
from school_service.features.results.computing.class_term.loaded import ClassSubject, Loaded, Member
from school_service.features.results.computing.compute import Paper, TaughtSubject, blanks
from school_service.features.results.models import NOTHING_COUNTS, OPEN, SUBMITTED
from school_service.features.results.submissions import reads

Row = Mapping[str, Any]


class Arm(NamedTuple):
    """A batch of the cohort; `is_taught`: by the caller, if they may submit their own subjects alone."""

    id: str
    name: str
    is_taught: bool = True


class Submitted(NamedTuple):
    """The submission of a subject of a batch: its moment, in microseconds and as it is written, and the submitter."""

    microseconds: int
    at: str
    by: str
    by_name: str


class Handing:
    """The progress of the subjects of a class in a term: their takers in each arm, and the blanks.

    While an arm has a subject submitted, the takers and blanks of its other subjects are of the members once these are
    handed in.
    """

    def __init__(self, row: Row, loaded: Loaded) -> None:
        self.loaded = loaded
        self.arms = [Arm(*arm) for arm in row["arms"]]
        self._submitted = {(subject, batch): Submitted(*of) for subject, batch, *of in row["submissions"]}
        self._begun = {batch for _, batch in self._submitted}
        self._people = {person.id: person for person in loaded.everyone}

    def is_begun(self, arm: Arm) -> bool:
        """Tell whether a subject of an arm is submitted."""
        return arm.id in self._begun

    def submitted(self, subject: str, arm: Arm) -> Submitted | None:
        """Tell how a subject of an arm was submitted."""
        return self._submitted.get((subject, arm.id))

    def takers(self, taught: TaughtSubject, arm: Arm) -> list[Member]:
        """Give the takers of a subject in an arm."""
        return [person for person in map(self._people.__getitem__, taught.takers) if person.batch == arm.id]

    def blanks(self, taught: TaughtSubject, arm: Arm) -> list[tuple[Paper, Member]]:
        """Find the blanks of a subject in an arm."""
        pairs = ((paper, self._people[student]) for paper, student in blanks(self.loaded.entered, taught))
        return [(paper, person) for paper, person in pairs if person.batch == arm.id]

    def submission(self, subject: ClassSubject, taught: TaughtSubject, arm: Arm) -> dict[str, Any]:
        """Answer the submission of a subject and an arm."""
        submitted = self.submitted(subject.id, arm)
        is_open = submitted is None and self.is_begun(arm)
        return {
            **self._head(subject, arm),
            "state": _state(taught, submitted is not None),
            "takers": sum(is_open or taker.belongs for taker in self.takers(taught, arm)),
            "assessments": len(taught.papers),
            "blanks": sum(is_open or taker.belongs for _, taker in self.blanks(taught, arm)),
            **_by(submitted),
            "teachers": self.loaded.teachers(subject.id, arm.id),
        }

    def of_all(self, subject: ClassSubject, taught: TaughtSubject, teachers: Sequence[str]) -> dict[str, Any]:
        """Answer the submission of a subject in all arms together: submitted as the last one was."""
        each = [self.submission(subject, taught, arm) for arm in self.arms]
        done = [of for arm in self.arms if (of := self.submitted(subject.id, arm)) is not None]
        is_done = bool(done) and all(
            submission["submitted_at"] or not submission["takers"] for submission in each
        )
        return {
            **self._head(subject, None),
            "state": _state(taught, is_done),
            "takers": sum(submission["takers"] for submission in each),
            "assessments": len(taught.papers),
            "blanks": sum(submission["blanks"] for submission in each),
            **_by(max(done, key=lambda of: of.microseconds) if is_done else None),
            "teachers": teachers,
        }

    def _head(self, subject: ClassSubject, arm: Arm | None) -> dict[str, Any]:
        return {
            "cohort_subject": subject.id,
            "base": subject.base,
            "subject": subject.name,
            "batch": arm and arm.id,
            "batch_name": arm and arm.name,
            "term": self.loaded.term,
        }


def _state(taught: TaughtSubject, is_submitted: bool) -> str:
    if is_submitted:
        return SUBMITTED
    return OPEN if taught.papers else NOTHING_COUNTS


def _by(submitted: Submitted | None) -> dict[str, Any]:
    return {
        "submitted_at": submitted and submitted.at,
        "submitted_by": submitted and submitted.by,
        "submitted_by_name": submitted and submitted.by_name,
    }


def of_class(batch: UUID, term: str, *, cohort: bool = False, state: str | None = None) -> Made:
    """Answer ListedSubmissionSchema of a batch, or of all batches of a cohort, by the subject's name, then the batch's.

    The subjects with an assessment that counts or with takers, and the submitted ones in any case; those in a `state`,
    or all.
    """
    return _of_class(batch, term, cohort=cohort, state=state)


def of_classes(classes: Sequence[Row], *, state: str | None = None) -> MadeTogether:
    """Answer ListedSubmissionSchema of several classes, each in a term, with the name of the class."""
    return MadeTogether(
        [
            _of_class(UUID(each["cohort"]), each["term"], cohort=True, state=state, about=each)
            for each in classes
        ]
    )


def _of_class(batch: UUID, term: str, *, cohort: bool, state: str | None, about: Row | None = None) -> Made:
    named = {} if about is None else {name: about[name] for name in ("cohort", "classroom")}

    def make(row: Row, reach: Reach | None) -> list[dict[str, Any]]:
        listed = _listed(None if cohort else str(batch), row, reach)
        return [{**submission, **named} for submission in listed if state in (None, submission["state"])]

    return Made(reads.of_class(batch, term, cohort or None), make)


def _listed(batch: str | None, row: Row, reach: Reach | None) -> list[dict[str, Any]]:
    loaded = Loaded.of(row)
    if loaded is None:
        return []
    reached = None if reach is None else {(subject, arm) for subject, arm in row["reached"] or ()}
    handing = Handing(row, loaded)
    pairs = (
        (taught, handing.submission(subject, taught, arm))
        for subject, taught in loaded.taught
        for arm in handing.arms
        if (batch is None or arm.id == batch) and (reached is None or (subject.id, arm.id) in reached)
    )
    return [
        submission
        for taught, submission in pairs
        if taught.papers or submission["takers"] or submission["state"] == SUBMITTED
    ]


def of_subject(cohort_subject_id: UUID, term: str, batch: UUID | None = None) -> Made:
    """Answer SubmissionSchema of a subject, judged before: of a batch, or of all together."""
    read = reads.of_subject(cohort_subject_id, term)
    return Made(read, partial(_of_subject, None if batch is None else str(batch)))


def _of_subject(batch: str | None, row: Row, _reach: Reach | None) -> dict[str, Any] | None:
    loaded = Loaded.of(row)
    if loaded is None:
        return None
    handing = Handing(row, loaded)
    for subject, taught in loaded.taught:
        if batch is None:
            return handing.of_all(subject, taught, row["teachers"])
        for arm in handing.arms:
            if arm.id == batch:
                return handing.submission(subject, taught, arm)
    return None


def submitting(cohort_subject_id: UUID, term: str) -> Made:
    """Find the facts for a submission of results: None if the caller may submit nothing.

    `batches`: the cohort's, by name, each with the number of its students who take the subject (`takers`), whether any
    of them needs results handed in (`is_taken`), and whether it is `submitted` and `taught` by the caller; `blanks`:
    pairs of a paper, by abbreviation, and a person, by admission number; `counting`: how many papers count.
    """
    return Made(reads.submitting(cohort_subject_id, term), _submitting)


def _submitting(row: Row, _reach: Reach | None) -> dict[str, Any] | None:
    loaded = Loaded.of(row)
    if loaded is None or not loaded.subjects:
        return None
    handing = Handing(row, loaded)
    ((subject, taught),) = loaded.taught
    batches = []
    blank: list[tuple[Paper, Member]] = []
    for arm in handing.arms:
        takers = handing.takers(taught, arm)
        batches.append(
            {
                "id": arm.id,
                "takers": len(takers),
                "is_taken": any(handing.is_begun(arm) or taker.belongs for taker in takers),
                "submitted": handing.submitted(subject.id, arm) is not None,
                "taught": arm.is_taught,
            }
        )
        blank += handing.blanks(taught, arm)
    return {
        **{name: loaded.scope[name] for name in ("cohort_id", "session_id", "term_id")},
        "batches": batches,
        "counting": len(taught.papers),
        "blanks": sorted(blank, key=lambda pair: (pair[0].place, pair[1].place)),
    }
