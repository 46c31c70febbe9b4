"""Settings: departments, employee categories, positions and grade configurations."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Select, exists, select, update

from school_service.core.database import db
from school_service.core.errors import Conflict, Invalid
from school_service.core.read_models import BoundQuery
from school_service.core.records import get, lock_table, remove
from school_service.core.statements import NewRow, in_one_message, insert_row, new_row, statement
from school_service.core.wording import record_name
from school_service.features.assessments.models import NOT_DELETED, Assessment
from school_service.features.audit.service import audit_change
from school_service.features.gradebooks.models import GradebookEntry
from school_service.features.settings import reads
from school_service.features.settings.models import GradeConfiguration, NamedSetting, SchoolSettings
from tenants.clock import now

SCHOOL_ENTITY = "settings"
ENTITY = "grade-config"
AUDITED = ("lower_threshold", "upper_threshold", "letter_grade", "remarks")
"""What the audit log says of a grade configuration."""


def change_school_settings(*, must_change_password: bool | None = None) -> None:
    """Switch settings of the school on or off; what is None stays.

    `must_change_password` concerns the passwords that are given from now on: nobody who has one is shut out, and
    switched off, everybody is let in.
    """
    if must_change_password is None:
        return
    since = SchoolSettings.must_change_password_since
    changed = db.session.scalars(
        update(SchoolSettings)
        .where(since.is_(None) if must_change_password else since.is_not(None))
        .values(must_change_password_since=now() if must_change_password else None)
        .returning(SchoolSettings.id)
    ).one_or_none()
    if changed is not None:
        audit_change(
            SCHOOL_ENTITY,
            changed,
            old={"must_change_password": not must_change_password},
            new={"must_change_password": must_change_password},
        )


@statement
def locking_settings() -> Any:
    """Lock the school's row of settings until the transaction ends: the statement, for `execute`.

    For settings of which there is one row at most, and perhaps none yet that could be locked.
    """
    return select(SchoolSettings.id).with_for_update(key_share=True)


@statement
def sharing_settings() -> Any:
    """Let nobody change what `locking_settings` is taken for until the transaction ends: the statement, for `execute`.

    For who reads these settings in more than one statement; many may do so at once.
    """
    return select(SchoolSettings.id).with_for_update(read=True)


def create_named(model: type[NamedSetting], *, name: str) -> NewRow:
    """Add a department, employee category or position; a name that another of them has is a conflict."""
    setting = insert_row(model, name=name)
    audit_change(_entity_of(model), setting.id, new={"name": name})
    return setting


def delete_named(model: type[NamedSetting], *, setting_id: UUID) -> UUID:
    """Remove a department, employee category or position.

    One that an employee has, even a deleted one, whose row stays, is a conflict. Raises NotFound.
    """
    setting = get(model, setting_id, for_update=True)
    audit_change(_entity_of(model), setting.id, old={"name": setting.name})
    return remove(setting)


def create_grade_configuration(
    *, lower_threshold: Decimal, upper_threshold: Decimal, letter_grade: str, remarks: str
) -> BoundQuery:
    """Add a band of percentages, both thresholds within it, and its letter.

    Returns the read model of the band, which is inserted in one message with being read. Raises Invalid where the
    thresholds are the wrong way round, Conflict naming a band that it overlaps.
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
    return in_one_message(band, read=reads.grade_configuration(band.id))


def change_grade_configuration(*, grade_configuration_id: UUID, **changes: Any) -> UUID:
    """Change any member of a band, even of one in use: scores have no grade of their own that would be lost.

    Raises NotFound, and as `create_grade_configuration`.
    """
    lock_table(GradeConfiguration)
    band = get(GradeConfiguration, grade_configuration_id)
    old = _audited(band)
    new = {**old, **changes}
    _check_thresholds(new["lower_threshold"], new["upper_threshold"], apart_from=band)
    for name, value in changes.items():
        setattr(band, name, value)
    db.session.flush()
    if new != old:
        audit_change(ENTITY, band.id, old=old, new=new)
    return band.id


def delete_grade_configuration(*, grade_configuration_id: UUID) -> UUID:
    """Remove a band; one that is the grade of a score is a conflict. Raises NotFound."""
    lock_table(GradeConfiguration)
    band = get(GradeConfiguration, grade_configuration_id)
    if _grades_a_score(band):
        raise Conflict(f"The grade configuration {band} is in use: it is the grade of gradebook entries.")
    audit_change(ENTITY, band.id, old=_audited(band))
    return remove(band)


def grade_of(percentage: Decimal) -> GradeConfiguration | None:
    """Find the band of a percentage: the one with the highest lower threshold that is not above it.

    So nothing falls between two bands: 69.5 is in the band from 65 to 69. None below the lowest band.
    """
    band: GradeConfiguration | None = db.session.scalar(_grade(percentage))
    return band


def _grade(percentage: Any) -> Select[Any]:
    return (
        select(GradeConfiguration)
        .where(GradeConfiguration.lower_threshold <= percentage)
        .order_by(GradeConfiguration.lower_threshold.desc())
        .limit(1)
    )


def _grades_a_score(band: GradeConfiguration) -> bool:
    # A school has many scores and few percentages: each is graded once.
    scored = (
        select((GradebookEntry.score * 100 / Assessment.total_points).label("percentage"))
        .select_from(GradebookEntry)
        .join(Assessment, Assessment.id == GradebookEntry.assessment_id)
        .where(NOT_DELETED)
        .distinct()
        .subquery("scored")
    )
    grade = _grade(scored.c.percentage).with_only_columns(GradeConfiguration.id).scalar_subquery()
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
        raise Conflict(
            f"The band from {lower} to {upper} {reason}.",
            {"lower_threshold": [reason], "upper_threshold": [reason]},
        )


def _entity_of(model: type[NamedSetting]) -> str:
    """What the audit log calls a department, an employee category or a position."""
    table: Any = model.__table__
    return record_name(table).replace(" ", "-")


def _audited(band: GradeConfiguration) -> dict[str, Any]:
    return {name: getattr(band, name) for name in AUDITED}
