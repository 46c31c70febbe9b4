"""Columns common to the models, their bounds, and the rule of a score.

Points and scores are exact decimals with two places, never floats (docs/rules/scores.md, "Gradebook entries").
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum, auto
from typing import Any, Self
from uuid import UUID, uuid4

from sqlalchemy import DateTime, ForeignKeyConstraint, Index, Numeric, Uuid
from sqlalchemy.orm import Mapped, mapped_column

from tenants.clock import now
from tenants.names import LONGEST


class Enumeration(tuple[str, ...]):
    """The values of a text, such as a status; the OpenAPI document has one schema for them, of this name."""

    name: str

    def __new__(cls, name: str, *values: str) -> Self:
        """Name the values, in the order of their display."""
        made = super().__new__(cls, values)
        made.name = name
        return made


NAME_LENGTH = LONGEST
TEXT_LENGTH = 2000
EMAIL_LENGTH = 254
MIN_POINTS = Decimal(0)
MAX_POINTS = Decimal("99999.99")
POINTS = Numeric(7, 2)


def primary_key(info: dict[str, Any] | None = None) -> Mapped[UUID]:
    """Make the uuid primary key of a table, its first column; the id is made in Python."""
    return mapped_column(Uuid, primary_key=True, default=uuid4, info=info, sort_order=-1)


def created_at(info: dict[str, Any] | None = None) -> Mapped[datetime]:
    """Make the column of the moment of creation, UTC, bound from Python."""
    return mapped_column(DateTime(timezone=True), default=now, info=info)


def refers_to(
    table: str, key: str, beside: str, info: dict[str, Any] | None = None
) -> tuple[ForeignKeyConstraint, Index]:
    """Make the foreign key to a record by its id and a column `beside` it that both tables have, and the key's index.

    So a row with a batch and a cohort has a batch of this cohort, under concurrent writes, too.
    """
    referring = ForeignKeyConstraint([key, beside], [f"{table}.id", f"{table}.{beside}"], info=info)
    return referring, Index(None, key, beside)


class ScoreFault(Enum):
    """The broken part of the rule of a score."""

    OUT_OF_RANGE = auto()
    MORE_THAN_TWO_PLACES = auto()


def score_fault(score: Decimal, total_points: Decimal) -> ScoreFault | None:
    """Apply the rule of a score: it is from 0 to the total points and has at most two decimal places.

    None if the score, a finite number, keeps the rule.
    """
    if not MIN_POINTS <= score <= total_points:
        return ScoreFault.OUT_OF_RANGE
    # To round a number that is no larger takes a third of the time in which its digits are taken apart.
    return ScoreFault.MORE_THAN_TWO_PLACES if score != round(score, 2) else None


def more_than_two_places(number: Decimal) -> bool:
    """Tell whether a finite number needs more than two decimal places; zeros at the end do not count."""
    _sign, digits, exponent = number.as_tuple()
    return isinstance(exponent, int) and exponent < -2 and any(digits[exponent + 2 :])
