"""The scores and absences of a subject's students in an assessment: judged, and compared with the stored ones.

A score sheet and a list of scores go through this alike. Both lock the assessment FOR NO KEY UPDATE and then read the
students of the subject. So neither their scores nor their absences change while they are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from sqlalchemy import ARRAY, Text, cast, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.columns import ScoreFault, score_fault
from school_service.core.narrowing import caller_has_own
from school_service.core.reach import Reach
from school_service.core.read_models import BoundQuery, Query, read_model
from school_service.core.records import array_text, not_found
from school_service.core.statements import execute, row_lock
from school_service.features.audit.service import Change, audit_changes
from school_service.features.classes.models import SubjectEnrollment
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME
from school_service.features.people.students.sheet_uploads import AuditTrail
from school_service.features.reach import scopes
from school_service.features.school.models import CURRENT, Batch, Enrollment
from school_service.features.scores.absences.service import AbsenceChange, absence_values, delete_absences
from school_service.features.scores.absences.service import storing as storing_absences
from school_service.features.scores.assessments.reads import holding_batches, in_reach
from school_service.features.scores.assessments.service import ABSENCE_ENTITY, SCORE_ENTITY, refuse_submitted
from school_service.features.scores.gradebooks.service import ComparedScores, Score, compare_scores
from school_service.features.scores.models import (
    ABSENCES,
    ABSENT,
    EXCUSED,
    NOT_DELETED,
    Absence,
    Assessment,
    GradebookEntry,
)
from school_service.sheets.row_errors import INVALID, RowError
from school_service.sheets.sheet_reader import Row

SCORE = "score"
ABSENCE = "absence"

Mark = Decimal | str | None
"""The score of a student in an assessment, the status of their absence from it, or None for neither."""

SCORE_TRAIL = AuditTrail(SCORE_ENTITY, lambda score, _column: score, newest=1)
"""Each change is of the score: a record has no other value."""

STATUSES = {ABSENT: ABSENT, "ABS": ABSENT, EXCUSED: EXCUSED, "EXC": EXCUSED}
"""The words of a cell for an absence, in any case."""


class Taker(NamedTuple):
    """A student with the subject, their arm, their absence, and the entry with their score.

    `held` are the arms with a submission holding their score or absence.
    """

    admission_number: str
    first_name: str
    middle_name: str | None
    last_name: str
    id: str
    batch_id: str
    absence: str | None
    note: str | None
    entry_id: str | None
    stored: str | None
    arm: str
    held: list[str]

    @property
    def mark(self) -> Mark:
        """The stored mark."""
        return self.absence if self.stored is None else Decimal(self.stored)


MatchedRows = list[tuple[Taker, Row]]


class ClassScores(NamedTuple):
    """A locked assessment and the students with its subject, with their scores and absences in it.

    `submitted` are the arms with submitted results.
    """

    cohort_subject_id: UUID
    term_id: UUID
    total_points: Decimal
    submitted: list[str]
    takers: list[Taker]

    def refuse_held(self, changed: Iterable[Taker]) -> None:
        """Refuse to change scores or absences of these held by a submission; raises Conflict."""
        held = {batch for taker in changed for batch in taker.held}
        refuse_submitted(held, self.cohort_subject_id, self.term_id)


def lock_class(assessment_id: UUID, batch: UUID | None = None) -> ClassScores:
    """Lock an assessment FOR NO KEY UPDATE, and read the students of its subject; with a `batch` those in it alone.

    Raises NotFound, and Conflict if everything of all of them is submitted.
    """
    # The class is read after the lock, in one round trip with it: it has the commits made meanwhile.
    row = execute(_lock(assessment_id), _class_list(assessment_id))
    if row is None:
        raise not_found(Assessment)
    takers = list(_takers(row))
    if batch is not None:
        takers = [taker for taker in takers if taker.batch_id == str(batch)]
    scores = ClassScores(
        row["cohort_subject_id"], row["term_id"], row["total_points"], row["submitted"], takers
    )
    # A caller with a reach of OWN, without a student here, is not told of any arm.
    if all(taker.held for taker in takers) and (takers or not caller_has_own()):
        held = {batch for taker in takers for batch in taker.held}
        refuse_submitted(held or set(scores.submitted), scores.cohort_subject_id, scores.term_id)
    return scores


class EnteredMarks(NamedTuple):
    """The marks to store of a class in an assessment: scores, absences other than stored, and absences taken away."""

    scores: ComparedScores
    absences: list[AbsenceChange]
    cleared: list[Taker]

    @property
    def changing(self) -> set[str]:
        """The ids of the students with a change."""
        scores = (*self.scores.new, *self.scores.changed, *self.scores.removed)
        return {
            *(score.student_id for score in scores),
            *(str(change.student_id) for change in self.absences),
            *(taker.id for taker in self.cleared),
        }

    @property
    def taken_away(self) -> set[str]:
        """The ids of the students whose score or absence is taken away."""
        return {
            *(score.student_id for score in self.scores.removed),
            *(taker.id for taker in self.cleared),
        }

    def absence_writes(
        self, assessment_id: UUID, *, sheet: str | None = None, downloaded: str | None = None
    ) -> list[BoundQuery]:
        """Store the absences, and take those away that are to be none: the statements, behind those of scores.

        `sheet` is the file's name, None for a list; `downloaded` is the moment of its download.
        """
        writes = []
        if self.cleared:
            audit_changes(
                ABSENCE_ENTITY,
                [
                    Change(assessment_id, absence_values(taker.id, str(taker.absence)), None)
                    for taker in self.cleared
                ],
            )
            writes.append(delete_absences(assessment_id, array_text(taker.id for taker in self.cleared)))
        if self.absences:
            source = {"source": "hand"} if sheet is None else {"source": "sheet", "file_name": sheet}
            if downloaded is not None:
                source["downloaded"] = downloaded
            writes.append(storing_absences(assessment_id, self.absences, **source))
        return writes


def compare_with_stored(matched: MatchedRows, clears: Callable[[Row, str], bool]) -> EnteredMarks:
    """Compare rows with the stored scores and absences; `clears` tells whether a row takes one of them away."""
    scores = [_score_of(taker, row) for taker, row in matched if SCORE in row.values or clears(row, SCORE)]
    absences = [_absence_of(taker, row) for taker, row in matched if ABSENCE in row.values]
    cleared = [
        taker
        for taker, row in matched
        # A score, or another absence, takes its place by itself.
        if taker.absence and not row.values and clears(row, ABSENCE)
    ]
    changed = [change for change in absences if change.status != change.before]
    return EnteredMarks(compare_scores(scores), changed, cleared)


def _score_of(taker: Taker, row: Row) -> Score:
    """Read the score of a row, None without one, beside the stored one."""
    stored = None if taker.stored is None else Decimal(taker.stored)
    return Score(taker.id, taker.batch_id, row.values.get(SCORE), taker.entry_id, stored, taker.absence)


def _absence_of(taker: Taker, row: Row) -> AbsenceChange:
    """Read the absence of a row, beside the stored one."""
    return AbsenceChange(UUID(taker.id), STATUSES[_written(row)], taker.note, taker.absence)


def absence_errors(row: Row, remedy: str) -> Iterator[RowError]:
    """Find the errors in the absence of a row, if it has one; `remedy` is for one standing beside a score."""
    if ABSENCE not in row.values:
        return
    written = row.values[ABSENCE]
    if _written(row) not in STATUSES:
        status = f"write {' or '.join(ABSENCES)}, or leave the cell blank"
        yield RowError(row.number, ABSENCE, INVALID, "is no absence", written, status)
    elif SCORE in row.values:
        yield RowError(row.number, ABSENCE, INVALID, "is beside a score", written, remedy)


def _written(row: Row) -> str:
    return str(row.values[ABSENCE]).strip().upper()


def scored_errors(matched: MatchedRows, remedy: str) -> Iterator[RowError]:
    """Refuse an absence for a student with a stored score not shown by the row."""
    for taker, row in matched:
        if ABSENCE in row.values and taker.entry_id:
            problem = "is instead of a score that is stored"
            yield RowError(row.number, ABSENCE, INVALID, problem, row.values[ABSENCE], remedy)


def score_errors(row: Row, total_points: Decimal) -> tuple[RowError, ...]:
    """Find the errors in the score of a row, if it has one."""
    score = row.values.get(SCORE)
    fault = None if score is None else score_fault(score, total_points)
    if score is None or fault is None:
        return ()
    if fault is ScoreFault.OUT_OF_RANGE:
        problem, remedy = "is no score", f"write a number from 0 to {plain(total_points)}"
    else:
        problem, remedy = "has more than two decimal places", "round it to two"
    return (RowError(row.number, SCORE, INVALID, problem, plain(score), remedy),)


def plain(points: Decimal) -> str:
    """Points without zeros at the end: 100, 12.5."""
    return f"{points.normalize():f}"


def mark_text(mark: Mark) -> str | None:
    """Write a mark in words to people; None without one."""
    return plain(mark) if isinstance(mark, Decimal) else mark


class GivenMarks:
    """The records of a list: each has a student, and a score or an absence to give; None takes one away."""

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.records = records
        self.rows = [
            Row(
                number,
                {name: record[name] for name in (SCORE, ABSENCE) if record.get(name) is not None},
                frozenset(),
            )
            for number, record in enumerate(records)
        ]

    @property
    def by_student(self) -> list[tuple[UUID, Row]]:
        """The rows, each with the student of its record."""
        return [(record["student"], row) for record, row in zip(self.records, self.rows, strict=True)]

    def clears(self, row: Row, name: str) -> bool:
        """Tell whether a record gives a member as None."""
        record = self.records[row.number]
        return name in record and record[name] is None

    def column(self, row: Row) -> str:
        """Name the member that a record is about, in errors."""
        is_score = SCORE in self.records[row.number] and ABSENCE not in row.values
        return SCORE if is_score else ABSENCE


_lock = row_lock(Assessment)


@read_model
def _class_list(assessment_id: UUID, reach: Reach | None = None) -> Query:
    """Select the data to compare a sheet of an assessment with: the students of the subject, by name, for `_takers`.

    There is a row unless the assessment is deleted. Numbers are texts, as JSON has no decimals. Absences, entries and
    arms are not joined with the students: the more tables a statement joins, the longer PostgreSQL plans it.
    """
    student = func.json_build_array(
        Student.admission_number,
        User.first_name,
        Student.middle_name,
        User.last_name,
        Student.id,
        Enrollment.batch_id,
        holding_batches(Student.id),
    )
    query = (
        select(cast(func.json_agg(aggregate_order_by(student, *BY_NAME)), Text))
        .select_from(SubjectEnrollment)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .join(User, User.id == Student.user_id)
        .join(Enrollment, Enrollment.student_id == Student.id)
        .where(
            SubjectEnrollment.cohort_subject_id == Assessment.cohort_subject_id,
            Enrollment.cohort_id == Assessment.cohort_id,
            CURRENT,
        )
        .correlate(Assessment)
    )
    if reach is not None:
        query = query.where(scopes.scores_in_reach(reach, SubjectEnrollment.cohort_subject_id, Student.id))
    listed = select(
        Assessment.cohort_subject_id,
        Assessment.term_id,
        Assessment.total_points,
        cast(Assessment.submitted_batches, ARRAY(Text)).label("submitted"),
        query.scalar_subquery().label("students"),
        _by_id(Absence.student_id, Absence.status, Absence.note)
        .where(Absence.assessment_id == Assessment.id)
        .scalar_subquery()
        .label("absences"),
        _by_id(GradebookEntry.student_id, GradebookEntry.id, cast(GradebookEntry.score, Text))
        .where(GradebookEntry.assessment_id == Assessment.id)
        .scalar_subquery()
        .label("entries"),
        _by_id(Batch.id, Batch.name)
        .where(Batch.cohort_id == Assessment.cohort_id)
        .scalar_subquery()
        .label("arms"),
    ).where(Assessment.id == assessment_id, NOT_DELETED)
    return listed if reach is None else listed.where(in_reach(reach))


def _by_id(record_id: Any, *columns: Any) -> Query:
    """Select columns of records by an id, as a JSON object in a text."""
    by_id = func.json_object_agg(record_id, func.json_build_array(*columns))
    return select(cast(by_id, Text)).correlate(Assessment)


def _takers(row: Mapping[str, Any]) -> Iterator[Taker]:
    """Put together the students with the subject, by name."""
    names = ("students", "absences", "entries", "arms")
    students, absences, entries, arms = (orjson.loads(row[name] or "{}") for name in names)
    nothing = None, None
    for *named, student, batch, held in students:
        of_student = *absences.get(student, nothing), *entries.get(student, nothing)
        yield Taker._make((*named, student, batch, *of_student, *arms[batch], held))
