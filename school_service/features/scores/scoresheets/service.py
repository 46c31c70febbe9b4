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
from school_service.features.scores.gradebooks.service import ENTITY
from school_service.features.scores.scoresheets import reads
from school_service.features.scores.scoresheets.class_scores import (
    ABSENCE,
    SCORE,
    Taker,
    absence_errors,
    compare_with_stored,
    lock_class,
    plain,
    score_errors,
    scored_errors,
)
from school_service.sheets.row_errors import raise_row_errors
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
    rows = [_row(number, given) for number, given in enumerate(scores)]
    matched = match_records(
        list(zip((given["student"] for given in scores), rows, strict=True)),
        {UUID(taker.id): taker for taker in assessed.takers},
        list_name=SCORES,
        not_in_class="does not take the subject",
        validate=lambda row: _row_errors(row, assessed.total_points),
    )
    raise_row_errors(
        scored_errors(
            [(taker, row) for taker, row in matched if not _clears(scores, row, SCORE)],
            "remove the score, too: give it as null",
        ),
        people={row.number: name_with_number(taker) for taker, row in matched},
        member=SCORES,
    )
    compared = compare_with_stored(matched, lambda row, name: _clears(scores, row, name))
    changing = compared.changing
    if compared.taken_away:
        # Whoever has been narrowed to their own records, takes away what is theirs.
        require = principal.require_own if caller_has_own() else principal.require
        require((Permission.GRADEBOOKS_DELETE,), "Taking a score or an absence away")
    assessed.refuse_held(taker for taker, _ in matched if taker.id in changing)
    refuse_unexpected(
        _replaced((taker, scores[row.number], row.number) for taker, row in matched if taker.id in changing),
        list_name=SCORES,
        entity=ENTITY,
        score_of=lambda score, _column: score,
        newest=1,  # each is of the score: a record has no other value
    )
    return in_one_round_trip(
        *compared.score_writes(assessment_id),
        *compared.absence_writes(assessment_id),
        read=reads.class_scores(assessment_id),
    )


def _row(number: int, given: Mapping[str, Any]) -> Row:
    values = {name: given[name] for name in (SCORE, ABSENCE) if given.get(name) is not None}
    return Row(number, values, frozenset())


def _clears(scores: Sequence[Mapping[str, Any]], row: Row, name: str) -> bool:
    """Tell whether a record gives a member as None."""
    given = scores[row.number]
    return name in given and given[name] is None


def _row_errors(row: Row, total_points: Decimal) -> Iterator[Any]:
    yield from score_errors(row, total_points)
    if ABSENCE in row.values:
        yield from absence_errors(row, "leave one of the two out")


def _replaced(changed: Iterable[tuple[Taker, Mapping[str, Any], int]]) -> Iterator[Replaced]:
    """Find the stored values other than expected, of records with a change."""
    for taker, given, number in changed:
        stored = taker.absence if taker.stored is None else Decimal(taker.stored)
        if "expected" in given and given["expected"] != stored:
            column = SCORE if given.get(ABSENCE) is None and SCORE in given else ABSENCE
            new = given.get(column)
            yield Replaced(
                number, column, name_with_number(taker), taker.entry_id, _plainly(stored), _plainly(new)
            )


def _plainly(value: Any) -> Any:
    return plain(value) if isinstance(value, Decimal) else value
