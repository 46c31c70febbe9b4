"""Read models of settings."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, ReadModel, read_model
from school_service.features.school.models import (
    Department,
    EmployeeCategory,
    NamedSetting,
    Position,
    SchoolSettings,
)


@read_model
def school_settings() -> Query:
    """Read model of SchoolSettingsSchema."""
    return select(SchoolSettings.must_change_password_since.is_not(None).label("must_change_password"))


def _named(model: type[NamedSetting], *more: Any) -> tuple[ReadModel[[]], ReadModel[[UUID]]]:
    """Make the read models of a setting that is known by its name: of all of them, and of one."""

    @read_model
    def settings() -> Query:
        return select(model.id, model.name, *more).order_by(model.name, model.id)

    @read_model
    def setting(setting_id: UUID) -> Query:
        return settings.query().where(model.id == setting_id)

    settings.__doc__ = f"Read model of {model.__name__}Schema, by name."
    setting.__doc__ = f"Read model of {model.__name__}Schema, for one."
    return settings, setting


departments, department = _named(Department, Department.created_at.label("createdAt"))
employee_categories, employee_category = _named(EmployeeCategory)
positions, position = _named(Position)
