"""The cost of a read's first message to a caller whose permission is OWN: PostgreSQL plans the text for the school.

It is not run for them. Each read model that has a reach is planned in a school without records, with all of its filters
and with those alone that it always has. A read of computed figures of a class is no list: its planning is a part of
its time anyway. Each is planned in turn with a join of four tables, whose planning is the unit: a millisecond of
one machine is two of another.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from psycopg2.extensions import AsIs

from school_service.core.read_models import CompiledStatement, ReadModel, unwrapped
from tenants.registry.schools import schema_name
from tests.features.reach.test_scopes import NARROWED

UNIT = (
    b"SELECT count(*) FROM students s JOIN users u ON u.id = s.user_id JOIN enrollments e ON e.student_id = s.id"
    b" JOIN cohorts c ON c.id = e.cohort_id WHERE c.id = $1"
)
MOST = 8  # UNITs
RESULTS, OVERVIEWS = "school_service.features.results.", "school_service.features.attendance.overviews.reads."
# Read models that may take longer, with their bounds.
LONGER = {
    "school_service.features.observations.comments.reads.comments": 14,
    f"{RESULTS}transcripts.reads.transcript": 35,
    # A class is loaded by one statement, for each of its readings.
    f"{RESULTS}figures.reads.student_in_term": 100,
    f"{RESULTS}figures.reads.subject_in_term": 80,
    f"{RESULTS}figures.reads.class_in_term": 65,
    f"{RESULTS}submissions.reads.of_class": 65,
    # An arm is loaded by one statement, whichever assessments there are.
    "school_service.features.scores.marksheets.reads.marks": 10,
    f"{OVERVIEWS}attendance_of_day": 12,
    f"{OVERVIEWS}attendance_of_student": 12,
    f"{OVERVIEWS}missing_registers": 12,
}
# A view that writes, prints or makes a workbook begins a transaction, and sends the narrowed text alone.
IN_TRANSACTION = {
    f"{RESULTS}submissions.reads.submitting",
    f"{RESULTS}report_cards.reads.drafted_of_student",
    f"{RESULTS}report_cards.reads.drafted_of_batch",
    f"{RESULTS}report_cards.reads.printed_of_student",
    "school_service.features.attendance.registers.reads.facts_of_registers",
    "school_service.features.scores.scoresheets.reads.class_scores",
    "school_service.features.scores.marksheets.reads.sheet",
    "school_service.features.scores.marksheets.reads.sheets_of_arm",
}
TIMES = 20

pytestmark = pytest.mark.release


def statements_of(model: ReadModel[Any]) -> Iterator[CompiledStatement]:
    """Give the texts for the whole school, by which filters are given."""
    parameters = inspect.signature(model.query).parameters
    always = [name for name in model._names if parameters[name].default is inspect.Parameter.empty]
    for given in {frozenset(always), frozenset(model._names)}:
        yield model._make(given).statement(unwrapped)


def generic(cursor: Any, statement: CompiledStatement) -> bytes:
    """Write a statement with its constants, and with parameters in place of the values of its filters."""
    names = list(dict.fromkeys(statement._required + [name for name, _ in statement._computed]))
    values = [
        AsIs(f"${names.index(name) + 1}") if name in names else statement._constants[name]
        for name in statement._names
    ]
    written: bytes = cursor.mogrify(statement._text, values)
    return written


def planning_time(cursor: Any, statement: bytes) -> float:
    """The milliseconds that PostgreSQL plans a statement."""
    cursor.execute(b"EXPLAIN (GENERIC_PLAN, SUMMARY) " + statement)
    (line,) = [line for (line,) in cursor if line.startswith("Planning Time")]
    return float(line.split()[2])


def units(cursor: Any, statement: CompiledStatement) -> float:
    """The planning of a statement in UNITs: of both the least of several times, in turn, as on an idle machine."""
    text = generic(cursor, statement)
    times = [(planning_time(cursor, text), planning_time(cursor, UNIT)) for _ in range(TIMES)]
    its, unit = map(min, zip(*times, strict=True))
    return its / unit


def test_planning_the_text_that_is_not_run_takes_little(api, tenancy):
    times = {}
    with tenancy.admin.begin() as connection:
        connection.exec_driver_sql(f'SET LOCAL search_path TO "{schema_name(api.school)}"')
        with connection.connection.cursor() as cursor:
            for name in NARROWED.keys() - IN_TRANSACTION:
                times[name] = max(units(cursor, statement) for statement in statements_of(NARROWED[name]))

    assert {name: took for name, took in times.items() if took > LONGER.get(name, MOST)} == {}
