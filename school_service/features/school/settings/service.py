"""Settings: what a school has switched on, its departments, employee categories and positions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import select, update

from school_service.core.database import db
from school_service.core.read_models import Query, ReadModel, read_model
from school_service.core.records import change, get, record_name, remove
from school_service.core.statements import NewRow, insert_row, statement
from school_service.features.audit.service import audit_change
from school_service.features.school.models import (
    Department,
    EmployeeCategory,
    NamedSetting,
    Position,
    SchoolSettings,
)
from tenants.clock import now

SCHOOL_ENTITY = "settings"


@read_model
def school_settings() -> Query:
    """Read model of SchoolSettingsSchema."""
    return select(SchoolSettings.must_change_password_since.is_not(None).label("must_change_password"))


def _named(model: type[NamedSetting], *more: Any) -> tuple[ReadModel[[]], ReadModel[[UUID]]]:
    """Make two read models of a model whose records have a name: of all records, and of one."""

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


def change_school_settings(*, must_change_password: bool | None = None) -> None:
    """Switch settings of the school on or off; what is None stays.

    `must_change_password` concerns passwords that are given after it was switched on: nobody who has one already is
    shut out. Switching it off lets everybody in again.
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
def lock_settings() -> Any:
    """Make the statement that locks the school's row of settings until the transaction ends, for `execute`.

    Settings of other tables, which have one row or none, are locked by it too: there may be no row of theirs to lock.
    """
    return select(SchoolSettings.id).with_for_update(key_share=True)


@statement
def share_settings() -> Any:
    """Make the statement that keeps settings as they are until the transaction ends, for `execute`.

    It locks the school's row of settings FOR SHARE: for whoever reads settings in more than one statement. Many may do
    so at once.
    """
    return select(SchoolSettings.id).with_for_update(read=True)


def create_named(model: type[NamedSetting], *, name: str) -> NewRow:
    """Add a department, employee category or position; a name that another of them has is a conflict."""
    setting = insert_row(model, name=name)
    audit_change(_entity_of(model), setting.id, new={"name": name})
    return setting


def change_named(model: type[NamedSetting], *, setting_id: UUID, **changes: Any) -> UUID:
    """Change the name of a department, employee category or position; one that another has is a conflict.

    Raises NotFound.
    """
    setting = get(model, setting_id, for_update=True)
    old, new = change(setting, changes)
    if new:
        audit_change(_entity_of(model), setting.id, old=old, new=new)
    return setting.id


def delete_named(model: type[NamedSetting], *, setting_id: UUID) -> UUID:
    """Remove a department, employee category or position.

    One that an employee has, even a deleted one, whose row stays, is a conflict. Raises NotFound.
    """
    setting = get(model, setting_id, for_update=True)
    audit_change(_entity_of(model), setting.id, old={"name": setting.name})
    return remove(setting)


def _entity_of(model: type[NamedSetting]) -> str:
    """Name a department, an employee category or a position as the audit log does."""
    table: Any = model.__table__
    return record_name(table).replace(" ", "-")
