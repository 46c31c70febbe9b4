"""Grade configurations: reading and changing the bands of percentages to grade scores by."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import exists, select

from school_service.core.database import db
from school_service.core.errors import Duplicate, InUse, Invalid
from school_service.core.read_models import BoundQuery, Query, read_model
from school_service.core.records import change, get, lock_table, remove
from school_service.core.statements import in_one_round_trip, new_row
from school_service.features.audit.service import audit_change
from school_service.features.scores.models import NOT_DELETED, Assessment, GradebookEntry, GradeConfiguration
from school_service.features.scores.result_settings.reads import OF_BAND

ENTITY = "grade-config"


@read_model
def grade_configurations() -> Query:
    """Read model of GradeConfigurationSchema, the highest band first."""
    members = (getattr(GradeConfiguration, name) for name in OF_BAND)
    highest_first = (GradeConfiguration.lower_threshold.desc(), GradeConfiguration.id)
    return select(GradeConfiguration.id, *members).order_by(*highest_first)


@read_model
def grade_configuration(grade_configuration_id: UUID) -> Query:
    """Read model of GradeConfigurationSchema, for one."""
    return grade_configurations.query().where(GradeConfiguration.id == grade_configuration_id)


def create_grade_configuration(
    *, lower_threshold: Decimal, upper_threshold: Decimal, letter_grade: str, remarks: str
) -> BoundQuery:
    """Add a band of percentages, both thresholds within it, and its letter.

    Returns the read model of the band, inserted and read in one round trip. Raises Invalid for thresholds the wrong way
    round, Conflict naming a band overlapping it.
    """
    lock_table(GradeConfiguration)
    _check_thresholds(lower_threshold, upper_threshold)
    values = {
        "lower_threshold": lower_threshold,
        "upper_threshold": upper_threshold,
        "letter_grade": letter_grade,
        "remarks": remarks,
    }
    band = new_row(GradeConfiguration, **values)
    audit_change(ENTITY, band.id, new=values)
    return in_one_round_trip(band, read=grade_configuration(band.id))


def change_grade_configuration(*, grade_configuration_id: UUID, **changes: Any) -> UUID:
    """Change any member of a band, even of one in use: scores have no grade of their own to lose.

    Raises NotFound, Invalid for thresholds the wrong way round, and Conflict naming a band overlapping it.
    """
    lock_table(GradeConfiguration)
    band = get(GradeConfiguration, grade_configuration_id)
    old = _audited(band)
    new = {**old, **changes}
    _check_thresholds(new["lower_threshold"], new["upper_threshold"], apart_from=band)
    change(band, changes)
    if new != old:
        audit_change(ENTITY, band.id, old=old, new=new)
    return band.id


def delete_grade_configuration(*, grade_configuration_id: UUID) -> UUID:
    """Remove a band; one in use as the grade of a score is a conflict. Raises NotFound."""
    lock_table(GradeConfiguration)
    band = get(GradeConfiguration, grade_configuration_id)
    if _grades_a_score(band):
        raise InUse(f"The grade configuration {band} is in use: it is the grade of gradebook entries.")
    audit_change(ENTITY, band.id, old=_audited(band))
    return remove(band)


def _grades_a_score(band: GradeConfiguration) -> bool:
    """Tell whether a band has the highest lower threshold that is not above a score: 69.5 is in that from 65 to 69."""
    # A school has many scores and few percentages: each is graded once.
    scored = (
        select((GradebookEntry.score * 100 / Assessment.total_points).label("percentage"))
        .select_from(GradebookEntry)
        .join(Assessment, Assessment.id == GradebookEntry.assessment_id)
        .where(NOT_DELETED)
        .distinct()
        .subquery("scored")
    )
    grade = (
        select(GradeConfiguration.id)
        .where(GradeConfiguration.lower_threshold <= scored.c.percentage)
        .order_by(GradeConfiguration.lower_threshold.desc())
        .limit(1)
        .scalar_subquery()
    )
    return bool(db.session.scalar(select(exists().select_from(scored).where(grade == band.id))))


def _check_thresholds(lower: Decimal, upper: Decimal, apart_from: GradeConfiguration | None = None) -> None:
    if upper < lower:
        raise Invalid.field("upper_threshold", "must not be below lower_threshold")
    others = select(GradeConfiguration).order_by(GradeConfiguration.lower_threshold)
    if apart_from is not None:
        others = others.where(GradeConfiguration.id != apart_from.id)
    overlapped = db.session.scalar(
        others.where(
            GradeConfiguration.lower_threshold <= upper, GradeConfiguration.upper_threshold >= lower
        ).limit(1)
    )
    if overlapped is not None:
        reason = f"overlaps {overlapped}"
        raise Duplicate(
            f"The band from {lower.normalize():f} to {upper.normalize():f} {reason}.",
            {"lower_threshold": [reason], "upper_threshold": [reason]},
        )


def _audited(band: GradeConfiguration) -> dict[str, Any]:
    return {name: getattr(band, name) for name in OF_BAND}
