"""The marks of an arm as a list: read, and entered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from school_service.auth.principal import Principal
from school_service.core.reach import Reach
from school_service.core.read_models import Made
from school_service.core.statements import execute
from school_service.features.people.students.list_rows import match_records
from school_service.features.people.students.sheet_uploads import refuse_unexpected_changes
from school_service.features.scores.marksheets import reads
from school_service.features.scores.marksheets.marks import (
    Cell,
    Entering,
    SubjectMarks,
    load_marks,
)
from school_service.features.scores.scoresheets.class_scores import (
    GivenMarks,
    absence_errors,
    score_errors,
)
from school_service.sheets.row_errors import UNKNOWN, RowError
from school_service.sheets.sheet_reader import Row

SCORES = "scores"
"""The name of the list in errors."""
MAX_MARKS = 20_000  # of one list


def shown_marks(cohort_subject_id: UUID, batch: UUID, term: str) -> Made:
    """Answer SubjectMarksSchema; nothing for a batch or a term of another cohort or session."""
    return Made(reads.marks(cohort_subject_id, batch, term), _answer)


def _answer(row: Mapping[str, Any], _reach: Reach | None) -> dict[str, Any] | None:
    return SubjectMarks.of(row).answered() if row["of_cohort"] and row["of_session"] else None


def check_marks(*, id: UUID, batch: UUID, term: str) -> None:
    """Tell whether there are the cohort subject, the batch and the term of marks. Raises NotFound, Invalid."""
    load_marks(cohort_subject_id=id, batch=batch, term=term)


def enter_marks(
    *,
    cohort_subject_id: UUID,
    batch: UUID,
    term: str,
    scores: Sequence[Mapping[str, Any]],
    principal: Principal,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Enter scores and absences of an arm in any assessments of a subject and term, all or none.

    Each has `student`, `assessment`, and a `score` or an `absence`: a member left out stays, and None takes it away. A
    score takes an absence away. With `expected`, a score, the status of an absence or None for neither, it is entered
    only over that. Answers all marks of the arm as they are then; with `dry_run` as they would be, and nothing is
    stored. Raises NotFound, Invalid, InvalidRows naming every wrong record, RowsScored for an absence beside a score,
    RowsChanged if something else than expected would be replaced, RowsForbidden if something is taken away and the
    caller may not delete, and Conflict if a record changes submitted results.
    """
    marks = load_marks(cohort_subject_id=cohort_subject_id, batch=batch, term=term, lock=True)
    given = GivenMarks(scores)
    matched = match_records(
        given.by_student,
        {UUID(student.id): student for student in marks.students},
        list_name=SCORES,
        not_in_class="does not take the subject in this arm",
        validate=lambda row: _errors(row, str(scores[row.number]["assessment"]), marks),
        key=lambda student, row: (student, scores[row.number]["assessment"]),
        twice="is there already with this assessment",
    )
    cells = []
    for student, row in matched:
        score = scores[row.number]
        assessment = str(score["assessment"])
        cells.append(
            Cell(
                marks.taker(student, assessment),
                row,
                assessment,
                given.column(row),
                "expected" in score,
                score.get("expected"),
            )
        )
    entering = Entering(marks=marks, cells=cells, clears=given.clears)
    entering.judge(principal, member=SCORES)
    refuse_unexpected_changes(entering.unexpected(), list_name=SCORES)
    if not dry_run and (writes := entering.storing()):
        execute(*writes)
    return marks.answered(entering.after())


def _errors(row: Row, assessment: str, marks: SubjectMarks) -> Iterator[RowError]:
    assessed = marks.assessments.get(assessment)
    if assessed is None:
        problem = "is no assessment of the subject in the term"
        yield RowError(row.number, "assessment", UNKNOWN, problem, assessment, of_person=False)
    else:
        yield from score_errors(row, assessed.total_points)
    yield from absence_errors(row, "leave one of the two out")
