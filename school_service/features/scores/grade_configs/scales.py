"""The grade bands of a level, in place of the school's: all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from sqlalchemy import delete, null, select

from school_service.core.database import request_context
from school_service.core.errors import Invalid
from school_service.core.exact_json import write_json
from school_service.core.read_models import BoundQuery, Query, read_model
from school_service.core.statements import execute, in_one_round_trip, put_row, statement
from school_service.features.audit.service import audit_change
from school_service.features.school.settings.service import lock_settings
from school_service.features.scores.models import GradeScale
from school_service.features.scores.result_settings.reads import OF_BAND, bands_of_level
from school_service.features.scores.result_settings.service import check_level

ENTITY = "grade-scale"
"""The name in the audit log; the id there is the school's."""


@read_model
def grade_scale(level: str) -> Query:
    """Read model of GradeConfigurationSchema, of a level, the highest band first: none has an id."""
    own = bands_of_level(level).subquery("bands_of_level")
    return select(null().label("id"), *own.c).order_by(own.c.lower_threshold.desc())


def put_grade_scale(*, level: str, bands: Sequence[dict[str, Any]]) -> BoundQuery:
    """Give a level grade bands of its own, or take them back by an empty list.

    Returns the read model of the bands, stored and read in one round trip. Raises Invalid for a level of no classroom,
    and for bands with thresholds the wrong way round or that overlap.
    """
    row = execute(lock_settings(), _stored(level))
    check_level(level=level)
    ordered = sorted(bands, key=lambda band: band["lower_threshold"], reverse=True)
    _check(ordered)
    old, new = _audited(row["bands"] if row else ()), _audited(ordered)
    read = grade_scale(level)
    if new == old:
        return read
    audit_change(
        ENTITY,
        request_context().school_id,
        old={"level": level, "bands": old} if old else None,
        new={"level": level, "bands": new} if new else None,
    )
    if not new:
        return in_one_round_trip(_take_back(level), read=read)
    stored = write_json([{name: band[name] for name in OF_BAND} for band in ordered]).decode()
    return in_one_round_trip(put_row(GradeScale, "level", level=level, bands=stored), read=read)


@read_model
def _stored(level: str) -> Query:
    return select(GradeScale.bands).where(GradeScale.level == level)


@statement
def _take_back(level: str) -> Any:
    return delete(GradeScale).where(GradeScale.level == level)


def _audited(bands: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: float(band[name]) if isinstance(band[name], Decimal) else band[name] for name in OF_BAND}
        for band in bands
    ]


def _check(bands: Sequence[dict[str, Any]]) -> None:
    """Raise Invalid for bands, the highest first, that can't grade every percent once."""
    for band in bands:
        if band["upper_threshold"] < band["lower_threshold"]:
            raise Invalid.field("bands", f"{_name(band)}: upper_threshold must not be below lower_threshold")
    for higher, lower in pairwise(bands):
        if lower["upper_threshold"] >= higher["lower_threshold"]:
            raise Invalid.field("bands", f"{_name(lower)} overlaps {_name(higher)}")


def _name(band: dict[str, Any]) -> str:
    lower, upper = (f"{band[name].normalize():f}" for name in ("lower_threshold", "upper_threshold"))
    return f"{band['letter_grade']} ({lower} to {upper})"
