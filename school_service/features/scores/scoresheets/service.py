"""The scores of a class: whether there is a score sheet, and a list of scores to enter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from school_service.auth.principal import Principal
from school_service.core.narrowing import caller_has_own
from school_service.core.permissions import Permission
from school_service.core.read_models import BoundQuery
from school_service.core.records import get
from school_service.core.statements import in_one_round_trip
from school_service.features.classes.models import CohortSubject
from school_service.features.people.students.list_rows import match_records
from school_service.features.people.students.naming import name_with_number
from school_service.features.people.students.sheet_uploads import Replaced, refuse_unexpected
from school_service.features.school.models import Cohort
from school_service.features.school.sessions.service import check_term
from school_service.features.scores.gradebooks.service import storing
from school_service.features.scores.scoresheets import reads
from school_service.features.scores.scoresheets.class_scores import (
    SCORE,
    SCORE_TRAIL,
    GivenMarks,
    Taker,
    absence_errors,
    compare_with_stored,
    lock_class,
    mark_text,
    score_errors,
    scored_errors,
)
from school_service.sheets.row_errors import RowError, raise_row_errors
from school_service.sheets.sheet_reader import Row

SCORES = "scores"
"""The name of the list of scores in errors."""


def check_scoresheet(*, id: UUID, term: str | None = None) -> None:
    """Tell whether there are the cohort subject and the term of a score sheet. Raises NotFound, Invalid."""
    subject = get(CohortSubject, id)
    if term is not None:
        check_term(term, get(Cohort, subject.cohort_id).session_id)


def enter_scores(
    *, assessment_id: UUID, scores: Sequence[Mapping[str, Any]], principal: Principal
) -> BoundQuery:
    """Enter scores and absences of a subject's students, all or none, by the rules of score sheets.

    Each has `student` and a `score` or an `absence`: a member left out stays, and None takes it away. A score takes an
    absence away. With `expected`, a score, the status of an absence or None for neither, it is entered only over that.
    Returns the read model of the class's scores, stored and read in one round trip. Raises NotFound, InvalidRows naming
    every wrong record, RowsChanged if something else than expected would be replaced, Forbidden if something is taken
    away and the caller may not delete, and Conflict if a record changes submitted results, or the results of all arms
    are submitted.
    """
    assessed = lock_class(assessment_id)
    given = GivenMarks(scores)
    matched = match_records(
        given.by_student,
        {UUID(taker.id): taker for taker in assessed.takers},
        list_name=SCORES,
        not_in_class="does not take the subject",
        validate=lambda row: _row_errors(row, assessed.total_points),
    )
    raise_row_errors(
        scored_errors(
            [(taker, row) for taker, row in matched if not given.clears(row, SCORE)],
            "remove the score, too: give it as null",
        ),
        people={row.number: name_with_number(taker) for taker, row in matched},
        member=SCORES,
    )
    entered = compare_with_stored(matched, given.clears)
    changing = entered.changing
    if entered.taken_away:
        # A caller with a reach of OWN takes away marks of their own students.
        require = principal.require_own if caller_has_own() else principal.require
        require((Permission.GRADEBOOKS_DELETE,), "Taking a score or an absence away")
    assessed.refuse_held(taker for taker, _ in matched if taker.id in changing)
    changed = ((taker, row) for taker, row in matched if taker.id in changing)
    refuse_unexpected(_replaced(changed, given), SCORE_TRAIL, list_name=SCORES)
    return in_one_round_trip(
        *storing(assessment_id=assessment_id, scores=entered.scores),
        *entered.absence_writes(assessment_id),
        read=reads.class_scores(assessment_id),
    )


def _row_errors(row: Row, total_points: Decimal) -> Iterator[RowError]:
    yield from score_errors(row, total_points)
    yield from absence_errors(row, "leave one of the two out")


def _replaced(changed: Iterable[tuple[Taker, Row]], given: GivenMarks) -> Iterator[Replaced]:
    """Find the stored marks other than expected, of records with a change."""
    for taker, row in changed:
        record, column = given.records[row.number], given.column(row)
        if "expected" in record and record["expected"] != taker.mark:
            stored, new = mark_text(taker.mark), mark_text(row.values.get(column))
            yield Replaced(row.number, column, name_with_number(taker), taker.entry_id, stored, new)
