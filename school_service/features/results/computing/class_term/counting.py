"""The assessments of classes that count in their term: to ask whether there is anything to publish."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CTE, FromClause, Numeric, Text, case, column, func, literal, not_, or_, select

from school_service.core.read_models import Query
from school_service.core.records import is_one_of
from school_service.features.results.computing.compute import OF_A_TERM
from school_service.features.scores.models import BY_CATEGORY, Assessment, LevelSettings, ResultSettings


def counted_by(classes: FromClause) -> CTE:
    """How categories count in classes, for `counts`: a row of each row of `classes`, with `id` and `level`."""
    weight = _weights_of_level(classes).lateral("weight")
    return (
        select(
            classes.c.id,
            func.coalesce(ResultSettings.weighting == BY_CATEGORY, False).label("by_category"),
            func.coalesce(LevelSettings.marks, True).label("has_marks"),
            *(weight.c[category] for category in OF_A_TERM),
        )
        .select_from(classes)
        .outerjoin(ResultSettings, literal(True))
        .outerjoin(LevelSettings, LevelSettings.level == classes.c.level)
        .join(weight, literal(True))
        .cte("counted_by")
    )


def counts(rules: CTE) -> tuple[Any, ...]:
    """Tell whether an assessment, not deleted, counts in its term: all of these conditions have to be met."""
    weight = case(*((Assessment.category == category, rules.c[category]) for category in OF_A_TERM))
    return (
        rules.c.has_marks,
        Assessment.include_in_final,
        is_one_of(Assessment.category, OF_A_TERM),
        or_(not_(rules.c.by_category), weight > 0),
    )


def _weights_of_level(classes: FromClause) -> Query:
    """Select the weights of categories, in a column of each: the level's own or, without any, those of all levels."""

    def listed(name: str) -> FromClause:
        rows = func.jsonb_to_recordset(ResultSettings.weights).table_valued(
            column("level", Text), column("category", Text), column("weight", Numeric)
        )
        return rows.render_derived(name=name, with_types=True)

    own, weights = listed("own"), listed("weights")
    # Of the row's own level: two queries in, `classes` would be read anew, and any row's level would do.
    has_own = select(literal(1)).where(own.c.level == classes.c.level).correlate_except(own).exists()
    level = case((has_own, classes.c.level))
    return (
        select(
            *(
                func.max(weights.c.weight).filter(weights.c.category == category).label(category)
                for category in OF_A_TERM
            )
        )
        .select_from(weights)
        .where(weights.c.level.is_not_distinct_from(level))
        .correlate(classes, ResultSettings)
    )
