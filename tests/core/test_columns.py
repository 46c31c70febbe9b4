"""The rule of a score."""

from __future__ import annotations

from decimal import Decimal

import pytest

from school_service.core.columns import ScoreFault, score_fault


@pytest.mark.parametrize("score", ["0", "0.01", "12.5", "60", "60.00", "59.9900"])
def test_a_score_is_from_0_to_the_total_with_two_places_at_most(score):
    assert score_fault(Decimal(score), Decimal(60)) is None


@pytest.mark.parametrize(
    ("score", "fault"),
    [
        ("-0.01", ScoreFault.OUT_OF_RANGE),
        ("60.01", ScoreFault.OUT_OF_RANGE),
        ("60.001", ScoreFault.OUT_OF_RANGE),
        ("59.999", ScoreFault.MORE_THAN_TWO_PLACES),
        ("0.001", ScoreFault.MORE_THAN_TWO_PLACES),
    ],
)
def test_anything_else_breaks_the_rule(score, fault):
    assert score_fault(Decimal(score), Decimal(60)) is fault
