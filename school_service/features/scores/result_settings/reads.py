"""Read models of result settings."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Numeric, Select, Text, cast, column, func, literal, select, true
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from school_service.core.read_models import Query, json_object, one_row, read_model
from school_service.features.school.models import TERMS, Classroom
from school_service.features.scores.models import (
    DEFAULTS,
    OF_LEVEL,
    GradeConfiguration,
    GradeScale,
    LevelSettings,
    ResultSettings,
)

TERM_WEIGHTS = dict(zip(TERMS, ("first_term_weight", "second_term_weight", "third_term_weight"), strict=True))
"""The column of a term's weight, by the name of the term."""


@read_model
def result_settings() -> Query:
    """Read model of ResultSettingsSchema: the school's own, or the defaults."""
    return _of_school(*(column.label(name) for name, column in _of_school_shown().items()))


@read_model
def level_settings(level: str) -> Query:
    """Read model of ResultSettingsSchema, with `level` and `marks`: those of a level that a classroom has.

    Null stands where the school's hold.
    """
    columns = {**_of_school_shown(), **{name: getattr(LevelSettings, name) for name in OF_LEVEL}}
    has_level = select(Classroom.id).where(Classroom.level == level).exists()
    return (
        _of_school(
            *(column.label(name) for name, column in columns.items()), cast(level, Text).label("level")
        )
        .outerjoin(LevelSettings, LevelSettings.level == level)
        .where(has_level)
    )


@read_model
def stored_of_level(level: str) -> Query:
    """Select the settings that a level has of its own, with whether a classroom has it; null for each without."""
    has_level = select(Classroom.id).where(Classroom.level == level).exists()
    return (
        select(has_level.label("known"), *(getattr(LevelSettings, name) for name in OF_LEVEL))
        .select_from(one_row())
        .outerjoin(LevelSettings, LevelSettings.level == level)
    )


@read_model
def stored_settings() -> Query:
    """Select the columns of the settings, with the defaults if the school has none."""
    return _of_school(*(column.label(name) for name, column in _with_defaults().items()))


def _of_school_shown() -> dict[str, Any]:
    columns = _with_defaults()
    weights = {term: columns.pop(name) for term, name in TERM_WEIGHTS.items()}
    return {**columns, "term_weights": json_object(**weights)}


def _of_school(*columns: Any) -> Select[Any]:
    """Select from the school's row, or from a row of nulls if it has none."""
    return select(*columns).select_from(one_row()).outerjoin(ResultSettings, true())


def _with_defaults() -> dict[str, Any]:
    columns: Any = ResultSettings.__table__.c
    return {
        name: func.coalesce(columns[name], literal(default, columns[name].type))
        for name, default in DEFAULTS.items()
    }


def setting(name: str) -> ColumnElement[Any]:
    """A result setting, or its default if the school has no row; for an outer join of ResultSettings to any row."""
    column: ColumnElement[Any] = _with_defaults()[name]
    return column


OF_BAND = ("lower_threshold", "upper_threshold", "letter_grade", "remarks")
"""The members of a band of grades."""


def bands_of_level(level: Any) -> Select[Any]:
    """Select the bands that a level has of its own."""
    bands = func.jsonb_to_recordset(GradeScale.bands).table_valued(
        column("lower_threshold", Numeric),
        column("upper_threshold", Numeric),
        column("letter_grade", Text),
        column("remarks", Text),
    )
    band = bands.render_derived(name="band", with_types=True)
    return (
        select(*(band.c[name] for name in OF_BAND))
        .select_from(GradeScale)
        .join(band, literal(True))
        .where(GradeScale.level == level)
    )


def bands() -> ColumnElement[Any]:
    """The grade bands, from high to low."""
    of = GradeConfiguration
    band = func.jsonb_build_object(
        "grade", of.letter_grade, "lower_threshold", of.lower_threshold, "remark", of.remarks
    )
    from_high = aggregate_order_by(band, of.lower_threshold.desc())
    return select(func.coalesce(func.jsonb_agg(from_high), cast("[]", JSONB))).scalar_subquery()
