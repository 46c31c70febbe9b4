"""Read models of result settings."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, cast, func, literal, select, true
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from school_service.core.read_models import Query, read_model
from school_service.features.school.models import TERMS
from school_service.features.scores.models import DEFAULTS, GradeConfiguration, ResultSettings

_NOTHING = select(literal(1).label("one"))

_TERM_WEIGHTS = ("first_term_weight", "second_term_weight", "third_term_weight")


@read_model
def result_settings() -> Query:
    """Read model of ResultSettingsSchema: the school's own, or the defaults."""
    columns = _with_defaults()
    weights = (
        part for term, name in zip(TERMS, _TERM_WEIGHTS, strict=True) for part in (term, columns[name])
    )
    shown = [column.label(name) for name, column in columns.items() if name not in _TERM_WEIGHTS]
    return _of_school(*shown, func.json_build_object(*weights).label("term_weights"))


@read_model
def stored() -> Query:
    """Select the columns of the settings, with the defaults if the school has none."""
    return _of_school(*(column.label(name) for name, column in _with_defaults().items()))


def _of_school(*columns: Any) -> Select[Any]:
    """Select from the school's row, or from a row of nulls if it has none."""
    nothing = _NOTHING.subquery("nothing")
    return select(*columns).select_from(nothing).outerjoin(ResultSettings, true())


def _with_defaults() -> dict[str, Any]:
    columns: Any = ResultSettings.__table__.c
    return {
        name: func.coalesce(columns[name], literal(default, columns[name].type))
        for name, default in DEFAULTS.items()
    }


def setting(name: str) -> ColumnElement[Any]:
    """A result setting, or its default if the school has no row; for an outer join of ResultSettings to any row."""
    found: ColumnElement[Any] = _with_defaults()[name]
    return found


def bands() -> ColumnElement[Any]:
    """The grade bands, from high to low."""
    of = GradeConfiguration
    band = func.jsonb_build_object(
        "grade", of.letter_grade, "lower_threshold", of.lower_threshold, "remark", of.remarks
    )
    from_high = aggregate_order_by(band, of.lower_threshold.desc())
    return select(func.coalesce(func.jsonb_agg(from_high), cast("[]", JSONB))).scalar_subquery()
