"""Read models of settings."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, ReadModel, read_model
from school_service.features.settings.models import (
    Department,
    EmployeeCategory,
    GradeConfiguration,
    NamedSetting,
    Position,
)


def _named(model: type[NamedSetting], *more: Any) -> ReadModel:
    """Make the read model of a kind of setting: all of them by name, or one."""

    @read_model
    def settings(setting_id: UUID | None = None) -> Query:
        found = select(model.id, model.name, *more).order_by(model.name, model.id)
        return found if setting_id is None else found.where(model.id == setting_id)

    return settings


departments = _named(Department, Department.created_at.label("createdAt"))
"""Read model of DepartmentSchema, by name: all, or one."""
employee_categories = _named(EmployeeCategory)
"""Read model of EmployeeCategorySchema, by name: all, or one."""
positions = _named(Position)
"""Read model of PositionSchema, by name: all, or one."""


@read_model
def grade_configurations(grade_configuration_id: UUID | None = None) -> Query:
    """Read model of GradeConfigurationSchema, the highest band first: all, or one."""
    found = select(
        GradeConfiguration.id,
        GradeConfiguration.lower_threshold,
        GradeConfiguration.upper_threshold,
        GradeConfiguration.letter_grade,
        GradeConfiguration.remarks,
    ).order_by(GradeConfiguration.lower_threshold.desc(), GradeConfiguration.id)
    if grade_configuration_id is None:
        return found
    return found.where(GradeConfiguration.id == grade_configuration_id)
