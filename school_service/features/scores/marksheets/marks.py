"""The marks of an arm in a subject and a term: the stored ones, their changes, and the reasons against a change.

A mark is the score of a student in an assessment, the status of their absence from it, or None for neither. A mark
sheet and a list of marks go through this alike. Both lock the assessments FOR NO KEY UPDATE, in order of id, and then
read the marks: so these do not change while they are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from school_service.auth.principal import Principal
from school_service.core.errors import Invalid, RowsForbidden, RowsScored
from school_service.core.narrowing import caller_has_own
from school_service.core.permissions import Permission
from school_service.core.read_models import BoundQuery, fetch_document
from school_service.core.records import not_found, unknown_reference
from school_service.core.statements import in_one_round_trip
from school_service.features.audit.service import PastChange
from school_service.features.classes.models import CohortSubject
from school_service.features.people.models import WITHDRAWN
from school_service.features.people.students.naming import name_with_number
from school_service.features.people.students.sheet_uploads import AuditTrail, Replaced, with_last_change
from school_service.features.school.models import Batch
from school_service.features.school.sessions.service import refuse_other_term
from school_service.features.scores.assessments.reads import lock_assessments
from school_service.features.scores.assessments.service import ABSENCE_ENTITY, refuse_submitted
from school_service.features.scores.gradebooks.service import storing
from school_service.features.scores.marksheets import reads
from school_service.features.scores.models import ABSENCES
from school_service.features.scores.scoresheets.class_scores import (
    ABSENCE,
    SCORE,
    SCORE_TRAIL,
    EnteredMarks,
    Mark,
    Taker,
    compare_with_stored,
    mark_text,
    plain,
)
from school_service.sheets.columns import words_of
from school_service.sheets.row_errors import INVALID, RowError, raise_refused_rows, raise_row_errors
from school_service.sheets.sheet_reader import MAX_HEADER_LENGTH, Row

Key = tuple[str, str]
"""The ids of a student and an assessment."""


class Assessed(NamedTuple):
    """An assessment, and the heading of its column."""

    id: str
    name: str
    abbreviation: str
    category: str
    total_points: Decimal
    heading: str


@dataclass(frozen=True, slots=True)
class SubjectMarks:
    """The marks of an arm's students in the assessments of a subject and a term.

    `about` is the row of the read model. `students` are without a mark; `mark_of` gives it beside. `withdrawn` are the
    ids of withdrawn students.
    """

    about: Mapping[str, Any]
    assessments: Mapping[str, Assessed]
    students: Sequence[Taker]
    withdrawn: frozenset[str]
    entries: Mapping[Key, tuple[str, Decimal]]
    absences: Mapping[Key, tuple[str, str | None]]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> SubjectMarks:
        """Take them from a row of the read model, numbers being Decimals."""
        nothing = None, None, None, None, ""
        students = [
            Taker._make((*person, student, batch, *nothing, held or []))
            for *person, student, batch, _, held in row["students"]
        ]
        return cls(
            row,
            {assessment.id: assessment for assessment in _with_headings(row["assessments"])},
            students,
            frozenset(student for *_, student, _, status, _ in row["students"] if status == WITHDRAWN),
            {
                (student, assessment): (entry, Decimal(score))
                for student, assessment, entry, score in row["entries"]
            },
            {(student, assessment): (status, note) for student, assessment, status, note in row["absences"]},
        )

    def mark_of(self, student: str, assessment: str) -> Mark:
        """Give the mark of a student in an assessment."""
        key = student, assessment
        if key in self.entries:
            return self.entries[key][1]
        return self.absences[key][0] if key in self.absences else None

    def taker(self, student: Taker, assessment: str) -> Taker:
        """Give a student with their mark in an assessment."""
        key = student.id, assessment
        entry, score = self.entries.get(key, (None, None))
        absence, note = self.absences.get(key, (None, None))
        stored = None if score is None else str(score)
        return student._replace(absence=absence, note=note, entry_id=entry, stored=stored)

    def answered(self, changed: Mapping[Key, Mark] | None = None) -> dict[str, Any]:
        """Answer SubjectMarksSchema; marks `changed` are shown in place of those stored."""
        after = changed or {}
        marks = [
            (student, assessment, after.get((student.id, assessment), self.mark_of(student.id, assessment)))
            for student in self.students
            for assessment in self.assessments
        ]
        return {
            "assessments": [
                {name: getattr(assessment, name) for name in Assessed._fields if name != "heading"}
                for assessment in self.assessments.values()
            ],
            "scores": [_answered(*mark) for mark in marks],
            "totals": self.totals(after),
        }

    def totals(self, after: Mapping[Key, Mark]) -> list[dict[str, Any]]:
        """Sum up the marks of each assessment, as they are after a change."""
        return [self._total(assessment, after) for assessment in self.assessments.values()]

    def _total(self, assessed: Assessed, after: Mapping[Key, Mark]) -> dict[str, Any]:
        keys = [(student.id, assessed.id) for student in self.students]
        marks = [after[key] if key in after else self.mark_of(*key) for key in keys]
        scores = [mark for mark in marks if isinstance(mark, Decimal)]
        absent, excused = (sum(mark == status for mark in marks) for status in ABSENCES)
        return {
            "assessment": assessed.id,
            "column": assessed.heading,
            "scored": len(scores),
            "sum": sum(scores, Decimal(0)),
            "absent": absent,
            "excused": excused,
            "blank": marks.count(None),
        }


def _with_headings(assessments: Iterable[Sequence[Any]]) -> Iterator[Assessed]:
    """Give each assessment a heading of its own: `CA1 (20)`, with its name where another has the same, and a number."""
    listed = [(*rest, Decimal(points)) for *rest, points in assessments]
    plainly = [f"{abbreviation} ({plain(points)})" for *_, abbreviation, _, points in listed]
    times = Counter(map(words_of, plainly))
    taken: set[str] = set()
    for assessment, heading in zip(listed, plainly, strict=True):
        named = heading if times[words_of(heading)] == 1 else f"{heading} {assessment[1]}"
        free = named = named[: MAX_HEADER_LENGTH - 5].strip()
        number = 1
        while words_of(free) in taken:
            number += 1
            free = f"{named} {number}"
        taken.add(words_of(free))
        yield Assessed._make((*assessment, free))


def _answered(student: Taker, assessment: str, mark: Mark) -> dict[str, Any]:
    names = ("id", "first_name", "last_name", "admission_number")
    is_score = isinstance(mark, Decimal)
    return {
        "student": {name: getattr(student, name) for name in names},
        "assessment": assessment,
        "score": mark if is_score else None,
        "absence": None if is_score else mark,
    }


def load_marks(
    *, cohort_subject_id: UUID, batch: UUID, term: str, lock: bool = False, sheet: bool = False
) -> SubjectMarks:
    """Read the marks of an arm, in one round trip; with `lock` behind the lock of the assessments.

    With `sheet` the row has words for Details. Raises NotFound for the cohort subject, and Invalid for a batch or a
    term that is unknown or of another cohort or session.
    """
    read = (reads.sheet if sheet else reads.marks)(cohort_subject_id, batch, term)
    if lock:
        read = in_one_round_trip(lock_assessments(cohort_subject_id, term), read=read)
    row = fetch_document(read)
    if row is None:
        raise not_found(CohortSubject)
    if row["of_cohort"] is None:
        raise unknown_reference(Batch, "batch")
    if not row["of_cohort"]:
        raise Invalid.field("batch", "is not of the subject's cohort")
    refuse_other_term(row["of_session"], "the cohort's")
    return SubjectMarks.of(row)


class Cell(NamedTuple):
    """A mark to be changed: the student with the stored one, a row with the new one alone, and where it stands.

    `column` names it in errors. `then` is the mark as it was read, with the id of its entry; it is not compared unless
    `judged`.
    """

    taker: Taker
    row: Row
    assessment: str
    column: str
    judged: bool = False
    then: Mark = None
    entry: str | None = None

    @property
    def stored(self) -> Mark:
        """The stored mark."""
        return self.taker.mark

    @property
    def new(self) -> Mark:
        """The mark to be stored, None to take the stored one away."""
        return self.row.values.get(SCORE) if SCORE in self.row.values else self.row.values.get(ABSENCE)

    @property
    def key(self) -> Key:
        """The ids of the student and the assessment."""
        return self.taker.id, self.assessment

    def replaced(self) -> Replaced:
        """Give the stored mark, as one to be replaced."""
        last = self.then if self.stored is None else self.stored
        of_absence = isinstance(last, str)
        return Replaced(
            self.row.number,
            self.column,
            name_with_number(self.taker),
            self.assessment if of_absence else self.taker.entry_id or self.entry,
            mark_text(self.stored),
            mark_text(self.new),
            ABSENCE if of_absence else SCORE,
            self.taker.id if of_absence else SCORE,
        )


@dataclass(kw_only=True)
class Entering:
    """Marks to be entered, all or none: those that differ from the stored ones, by assessment.

    `clears` tells whether a row takes a score or an absence away.
    """

    marks: SubjectMarks
    cells: Sequence[Cell]
    clears: Callable[[Row, str], bool]
    by_assessment: dict[str, EnteredMarks] = field(init=False)
    changed: list[Cell] = field(init=False)

    def __post_init__(self) -> None:
        matched: dict[str, list[tuple[Taker, Row]]] = {}
        for cell in self.cells:
            matched.setdefault(cell.assessment, []).append((cell.taker, cell.row))
        self.by_assessment = {
            assessment: compare_with_stored(rows, self.clears) for assessment, rows in matched.items()
        }
        changing = {assessment: entered.changing for assessment, entered in self.by_assessment.items()}
        self.changed = [cell for cell in self.cells if cell.taker.id in changing[cell.assessment]]

    def judge(
        self, principal: Principal, *, letters: Mapping[str, str] | None = None, member: str | None = None
    ) -> None:
        """Raise the reasons against it: an absence of a withdrawn student or beside a score, a removal, a submission.

        Raises InvalidRows, RowsScored, RowsForbidden and Conflict. `letters` and `member` are as in `raise_row_errors`.
        """
        people = {cell.row.number: name_with_number(cell.taker) for cell in self.changed}
        of_withdrawn = (
            _of_withdrawn(cell)
            for cell in self.changed
            if ABSENCE in cell.row.values and cell.taker.id in self.marks.withdrawn
        )
        raise_row_errors(of_withdrawn, letters=letters, people=people, member=member)
        refuse = partial(raise_refused_rows, letters=letters, people=people, member=member)
        refuse(RowsScored, (_scored(cell) for cell in self.changed if self._is_beside_score(cell)))
        may_delete = principal.may if caller_has_own() else principal.has
        if not may_delete(Permission.GRADEBOOKS_DELETE):
            away = {assessment: entered.taken_away for assessment, entered in self.by_assessment.items()}
            refuse(
                RowsForbidden,
                (_emptied(cell) for cell in self.changed if cell.taker.id in away[cell.assessment]),
            )
        held = {batch for cell in self.changed for batch in cell.taker.held}
        about = self.marks.about
        refuse_submitted(held, UUID(about["id"]), UUID(about["term_id"]))

    def _is_beside_score(self, cell: Cell) -> bool:
        return ABSENCE in cell.row.values and bool(cell.taker.entry_id) and not self.clears(cell.row, SCORE)

    def unexpected(self) -> list[tuple[Replaced, PastChange | None]]:
        """Find the stored marks other than those read before, each with its last change."""
        return _last_changes(
            cell.replaced() for cell in self.changed if cell.judged and cell.then != cell.stored
        )

    def replacing(self) -> list[tuple[Replaced, PastChange | None]]:
        """Find the stored marks to be replaced, as read before or not, each with its last change."""
        return _last_changes(cell.replaced() for cell in self.changed if cell.stored is not None)

    def storing(
        self,
        *,
        sheet: str | None = None,
        downloaded: str | None = None,
        forced: Mapping[str, set[str]] | None = None,
    ) -> list[BoundQuery]:
        """Store the marks: the statements. `forced` are the students with a mark replaced by force, by assessment."""
        pairs = [(UUID(assessment), of) for assessment, of in sorted(self.by_assessment.items())]
        source: dict[str, Any] = {"sheet": sheet, "downloaded": downloaded}
        # Scores lock the arm and then the students, absences the students alone.
        scores = [
            storing(
                assessment_id=assessment,
                scores=of.scores,
                **source,
                forced=(forced or {}).get(str(assessment), ()),
            )
            for assessment, of in pairs
        ]
        absences = [of.absence_writes(assessment, **source) for assessment, of in pairs]
        return [write for writes in (*scores, *absences) for write in writes]

    def after(self) -> dict[Key, Mark]:
        """Give the marks as they are afterwards, of those changed."""
        return {cell.key: cell.new for cell in self.changed}


def _last_changes(replaced: Iterable[Replaced]) -> list[tuple[Replaced, PastChange | None]]:
    """Find the last change of each of these marks in the audit log."""
    of_kind: dict[str, list[Replaced]] = {SCORE: [], ABSENCE: []}
    for each in replaced:
        of_kind[each.kind].append(each)
    return [
        *with_last_change(of_kind[SCORE], SCORE_TRAIL),
        *with_last_change(of_kind[ABSENCE], _ABSENCE_TRAIL),
    ]


def _status_of(values: Any, student: str) -> Any:
    return values["status"] if values and values.get("student") == student else None


# Of an assessment's absences 500 changes are looked through for the last of a student.
_ABSENCE_TRAIL = AuditTrail(ABSENCE_ENTITY, _status_of, 500, member=None)


def _scored(cell: Cell) -> RowError:
    problem = f"is instead of the score {mark_text(cell.stored)}"
    return RowError(cell.row.number, cell.column, INVALID, problem, str(cell.new), "remove the score first")


def _emptied(cell: Cell) -> RowError:
    problem = f"takes {mark_text(cell.stored)} away"
    return RowError(cell.row.number, cell.column, INVALID, problem, None, "leave it as it was")


def _of_withdrawn(cell: Cell) -> RowError:
    return RowError(cell.row.number, cell.column, INVALID, "is of a withdrawn student", str(cell.new))
