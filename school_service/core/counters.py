"""Numbers within a school, without gaps: a counter's row is locked until the transaction ends."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CTE, String, update
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH
from school_service.core.database import Record
from school_service.core.read_models import fetch_row
from school_service.core.statements import statement

BATCHES = "batches"
CHANGES = "changes"
GRADUATES = "graduates"
STUDENTS = "students"
TRAITS = {"AFFECTIVE": "affective traits", "PSYCHOMOTOR": "psychomotor traits"}
"""By metric type."""
COUNTERS = (BATCHES, CHANGES, GRADUATES, STUDENTS, *TRAITS.values())


class Counter(Record):
    """The last number given. A sequence would leave gaps, and could not travel with a backup."""

    __tablename__ = "counters"

    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    value: Mapped[int]


def next_numbers(name: str, count: int = 1) -> range:
    """Take the next `count` numbers of a counter; the first ever is 1."""
    taken = fetch_row(_take(name, count))
    if taken is None:
        raise LookupError(f"The school has no counter of {name}.")
    last = taken["value"]
    return range(last - count + 1, last + 1)


def number_taken(name: str, *conditions: Any, count: Any = 1) -> CTE:
    """Make the CTE to take the next number of a counter if the conditions hold; its column is `value`.

    It takes `count` numbers; `value` is the last of them.
    """
    taking = update(Counter).where(Counter.name == name, *conditions).values(value=Counter.value + count)
    return taking.returning(Counter.value).cte("taken")


@statement
def numbers_taken(name: str, count: int) -> Any:
    """Make the statement to take the next `count` numbers of a counter; its value is then the last of them."""
    return _taking(name, count)


@statement
def numbers_given_back(name: str, count: int) -> Any:
    """Make the statement to give back the last `count` numbers of a counter, unused by records; for `execute`."""
    return _taking(name, -count)


def _taking(name: Any, count: Any) -> Any:
    return update(Counter).where(Counter.name == name).values(value=Counter.value + count)


@statement
def _take(name: str, count: int) -> Any:
    return _taking(name, count).returning(Counter.value)
