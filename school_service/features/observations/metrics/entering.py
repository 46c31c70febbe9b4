"""Metrics as a list: the scores of a class in a term, of the traits of both types, all or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from school_service.auth.principal import Principal
from school_service.core.permissions import Permission
from school_service.core.read_models import BoundQuery
from school_service.core.statements import fetch_one, in_one_round_trip
from school_service.features.observations.metrics import reads
from school_service.features.observations.metrics.service import (
    TRAIL,
    CommonColumns,
    ComparedTraitScores,
    compare_scores,
    storing,
)
from school_service.features.observations.published import lock_cohort_in_term, refuse_published
from school_service.features.people.students.list_rows import match_records
from school_service.features.people.students.naming import name_with_number
from school_service.features.people.students.sheet_uploads import Replaced, refuse_unexpected
from school_service.features.results.models import METRIC_TYPES
from school_service.features.school.cohorts.class_sheets import Place, find_place
from school_service.sheets.columns import composed_name
from school_service.sheets.row_errors import DUPLICATE, INVALID, UNKNOWN, RowError
from school_service.sheets.sheet_reader import Row

METRICS = "metrics"
"""The name of the list in errors."""

METRIC_TYPE, SCORES = "metric_type", "metric_scores"


@dataclass(frozen=True, slots=True)
class _Observed:
    """A student of the batch, with their record of the term and a type; its members are None without a record."""

    admission_number: str
    first_name: str
    middle_name: str | None
    last_name: str
    student_id: str
    metric_id: str | None
    batch_id: str | None
    sheet: str | None
    scores: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class _Class:
    """The traits of the school, and the students of a batch by type and id, each with their record of that type."""

    traits: Sequence[Mapping[str, Any]]
    students: Mapping[str, Mapping[UUID, _Observed]]

    def trait_ids(self, metric_type: str) -> dict[str, UUID]:
        """Find the ids of the traits of a type, by name."""
        return {
            trait["name"]: UUID(trait["id"]) for trait in self.traits if trait[METRIC_TYPE] == metric_type
        }


@dataclass(frozen=True, slots=True)
class _Record:
    """A record of the list with its student: the row has the scores by trait, and so has `expected`."""

    metric_type: str
    student: _Observed
    row: Row
    expected: Mapping[str, Any]


def enter_metrics(
    *, batch: UUID, term: str, metrics: Sequence[Mapping[str, Any]], principal: Principal
) -> BoundQuery:
    """Enter the scores of traits of students in a batch, all or none, by the rules of metric sheets.

    Each record has `student`, `metric_type` and `metric_scores` by the name of the trait: an omitted trait stays, None
    takes its score away. With `expected`, scores by trait as they were when they were read, a score is replaced only if
    it still is as expected. Returns the read model of the batch's records of the term; they are stored in its round
    trip. Raises Invalid for an unknown batch or term, InvalidRows naming every wrong record, RowsChanged if something
    else than expected would be replaced, Forbidden if a score is taken away and the caller may not delete, and Conflict
    while the batch's results of the term are published.
    """
    place = find_place(batch, term)
    listed = _lock_class(place)
    records = _matched(metrics, listed)
    compared = {
        kind: compare_scores(
            [(record.student, record.row.values) for record in records if record.metric_type == kind]
        )
        for kind in METRIC_TYPES
    }
    if any(None in scores.values() for of_type in compared.values() for scores in of_type.changed.values()):
        principal.require((Permission.METRICS_DELETE,), "Taking a score away")
    refuse_unexpected(
        (replaced for record in records for replaced in _replaced(record, compared[record.metric_type])),
        TRAIL,
        list_name=METRICS,
    )
    writes = [
        write
        for kind, scores in compared.items()
        for write in storing(
            scores=scores, trait_ids=listed.trait_ids(kind), common=CommonColumns(place, kind)
        )
    ]
    return in_one_round_trip(*writes, read=reads.metrics(place.batch_id, place.term_id))


def _lock_class(place: Place) -> _Class:
    """Lock the cohort in the term, and list the class as it is then.

    Raises Conflict while the batch's results of the term are published.
    """
    row = fetch_one(
        lock_cohort_in_term(place.cohort_id, place.term_id),
        reads.students_with_records(place.batch_id, place.term_id),
    )
    refuse_published(row["published"])
    return _Class(orjson.loads(row["traits"]), {kind: _students(row[kind]) for kind in METRIC_TYPES})


def _matched(metrics: Sequence[Mapping[str, Any]], listed: _Class) -> list[_Record]:
    """Find the student of each record; each student is named once with a type. Raises InvalidRows."""
    traits = listed.traits
    rows = [(given["student"], _row(number, given, traits)) for number, given in enumerate(metrics)]
    match_records(
        rows,
        listed.students[METRIC_TYPES[0]],
        list_name=METRICS,
        not_in_class="is not in the batch",
        validate=lambda row: _trait_errors(row, metrics[row.number], traits),
        key=lambda student, row: (student, metrics[row.number][METRIC_TYPE]),
        twice="is there already with this type of traits",
    )
    return [
        _Record(
            given[METRIC_TYPE],
            listed.students[given[METRIC_TYPE]][student],
            row,
            _by_stored_name(given.get("expected", {}), given, traits),
        )
        for given, (student, row) in zip(metrics, rows, strict=True)
    ]


def _students(rows: str) -> dict[UUID, _Observed]:
    return {UUID(row["student_id"]): _Observed(**row) for row in orjson.loads(rows)}


def _row(number: int, given: Mapping[str, Any], traits: Sequence[Mapping[str, Any]]) -> Row:
    return Row(number, _by_stored_name(given[SCORES], given, traits), frozenset())


def _by_stored_name(
    scores: Mapping[str, Any], given: Mapping[str, Any], traits: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Give scores by the names of the traits as they are stored, without unknown traits."""
    names = _names(given[METRIC_TYPE], traits)
    return {
        names[composed_name(name)]: score for name, score in scores.items() if composed_name(name) in names
    }


def _names(metric_type: str, traits: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {
        composed_name(trait["name"]): trait["name"] for trait in traits if trait[METRIC_TYPE] == metric_type
    }


def _trait_errors(
    row: Row, given: Mapping[str, Any], traits: Sequence[Mapping[str, Any]]
) -> Iterator[RowError]:
    """Find the names other than traits of the record's type, and the second names of one trait."""
    names = _names(given[METRIC_TYPE], traits)
    for member in (SCORES, "expected"):
        seen: set[str] = set()
        for name in given.get(member, {}):
            if composed_name(name) not in names:
                others = sorted(
                    {t[METRIC_TYPE] for t in traits if composed_name(t["name"]) == composed_name(name)}
                )
                problem = f"is {others[0]}" if others else "is no trait"
                yield RowError(row.number, member, INVALID if others else UNKNOWN, problem, name)
            elif composed_name(name) in seen:
                yield RowError(row.number, member, DUPLICATE, "is there already", name)
            seen.add(composed_name(name))


def _replaced(record: _Record, compared: ComparedTraitScores) -> Iterator[Replaced]:
    """Find the stored scores other than expected, of a record that changes them."""
    student, expected = record.student, record.expected
    stored = student.scores or {}
    for name, score in compared.changed.get(student.student_id, {}).items():
        if name in expected and expected[name] != stored.get(name):
            yield Replaced(
                record.row.number, name, name_with_number(student), student.metric_id, stored.get(name), score
            )
