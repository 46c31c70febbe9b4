"""Points and scores: exact decimals with two places, never floats (decisions.md, "Numbers")."""

from __future__ import annotations

from decimal import Decimal

from sqlalchemy import Numeric

MOST_POINTS = Decimal("99999.99")
POINTS = Numeric(7, 2)


def more_than_two_places(number: Decimal) -> bool:
    """Tell whether a finite number needs more than two decimal places; zeros at the end do not count."""
    _sign, digits, exponent = number.as_tuple()
    return isinstance(exponent, int) and exponent < -2 and any(digits[exponent + 2 :])
