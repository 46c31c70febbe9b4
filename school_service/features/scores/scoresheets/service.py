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
from school_service.core.records import array_text, get
from school_service.core.statements import in_one_round_trip
from school_service.features.audit.service import Change, audit_changes
from school_service.features.classes.models import CohortSubject
from school_service.features.people.students.list_rows import match_records
from school_service.features.people.students.sheet_rows import shown
from school_service.features.people.students.sheet_uploads import Replaced, refuse_unexpected
from school_service.features.school.models import Cohort
from school_service.features.school.sessions.service import check_term
from school_service.features.scores.absences.service import ENTITY as ABSENCE_ENTITY
from school_service.features.scores.absences.service import (
    absence_values,
    delete_absences,
)
from school_service.features.scores.absences.service import (
    storing as storing_absences,
)
from school_service.features.scores.gradebooks.service import ENTITY, Score, compare_scores, storing
from school_service.features.scores.scoresheets import reads
from school_service.features.scores.scoresheets.class_scores import (
    ABSENCE,
    SCORE,
    Taker,
    absence_errors,
    absence_of,
    lock_class,
    plain,
    score_errors,
    score_of,
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
        not_in_class="is a student who does not take the subject",
        validate=lambda row: _row_errors(row, assessed.total_points),
    )
    raise_row_errors(
        scored_errors(
            [(taker, row) for taker, row in matched if not _clears(scores, row, SCORE)],
            "remove the score, too: give it as null",
        ),
        people={row.number: shown(taker) for taker, row in matched},
        member=SCORES,
    )
    compared = compare_scores(
        [
            score_of(taker, row) if SCORE in row.values else _no_score(taker)
            for taker, row in matched
            if SCORE in row.values or _clears(scores, row, SCORE)
        ]
    )
    absences = [
        change
        for taker, row in matched
        if (change := absence_of(taker, row)) and change.status != change.before
    ]
    # A score takes the absence away by itself.
    cleared = [
        taker
        for taker, row in matched
        if taker.absence and SCORE not in row.values and _clears(scores, row, ABSENCE)
    ]
    changing = {score.student_id for score in (*compared.new, *compared.changed, *compared.removed)}
    changing |= {str(change.student_id) for change in absences} | {taker.id for taker in cleared}
    if compared.removed or cleared:
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
        *storing(assessment_id=assessment_id, scores=compared),
        *_deleting(assessment_id, cleared),
        *([storing_absences(assessment_id, absences, source="hand")] if absences else []),
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


def _no_score(taker: Taker) -> Score:
    stored = None if taker.stored is None else Decimal(taker.stored)
    return Score(taker.id, taker.batch_id, None, taker.entry_id, stored, taker.absence)


def _replaced(changed: Iterable[tuple[Taker, Mapping[str, Any], int]]) -> Iterator[Replaced]:
    """Find the stored values other than expected, of records with a change."""
    for taker, given, number in changed:
        stored = taker.absence if taker.stored is None else Decimal(taker.stored)
        if "expected" in given and given["expected"] != stored:
            column = SCORE if given.get(ABSENCE) is None and SCORE in given else ABSENCE
            new = given.get(column)
            yield Replaced(number, column, shown(taker), taker.entry_id, _shown(stored), _shown(new))


def _shown(value: Any) -> Any:
    return plain(value) if isinstance(value, Decimal) else value


def _deleting(assessment_id: UUID, takers: Sequence[Taker]) -> list[BoundQuery]:
    """Take the absences of students away, and write the deletions to the audit log: the statements."""
    if not takers:
        return []
    audit_changes(
        ABSENCE_ENTITY,
        [Change(assessment_id, absence_values(taker.id, str(taker.absence)), None) for taker in takers],
    )
    return [delete_absences(assessment_id, array_text(taker.id for taker in takers))]
