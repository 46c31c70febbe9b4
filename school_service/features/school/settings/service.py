"""Settings: the choices of a school for itself, its departments, employee categories and positions."""

from __future__ import annotations

from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

from sqlalchemy import column, func, literal, literal_column, select, table, update

from school_service.core.database import db
from school_service.core.deletion import Deletion
from school_service.core.errors import Invalid
from school_service.core.narrowing import everybodys
from school_service.core.read_models import Query, ReadModel, read_model
from school_service.core.records import get, record_name
from school_service.core.statements import NewRow, insert_row, statement
from school_service.core.texts import GIVEN_FIRST
from school_service.features.audit.service import audit_change, change_audited, delete_audited
from school_service.features.school.models import (
    Department,
    EmployeeCategory,
    NamedSetting,
    Position,
    SchoolSettings,
)
from tenants.clock import now

SCHOOL_ENTITY = "settings"

_NAMED: tuple[type[NamedSetting], ...] = (Department, EmployeeCategory, Position)
DELETIONS = {model: Deletion(model, {"name": model.name}) for model in _NAMED}

_NO_TIME_ZONE = "no such time zone: name one as IANA does, such as Africa/Lagos"
_TIME_ZONES = table("pg_timezone_names", column("name"))


@read_model
def school_settings() -> Query:
    """Read model of SchoolSettingsSchema."""
    return select(
        SchoolSettings.must_change_password_since.is_not(None).label("must_change_password"),
        SchoolSettings.time_zone,
    )


def time_zone() -> Any:
    """The school's time zone, for use within a statement."""
    return select(SchoolSettings.time_zone).limit(1).scalar_subquery()


def find_time_zone() -> ZoneInfo:
    """Find the school's time zone, for times in words to people."""
    return ZoneInfo(db.session.scalars(everybodys(select(SchoolSettings.time_zone))).one())


def name_order() -> Any:
    """How names stand on the school's papers, for use within a statement; as they are spoken if it has not said."""
    # Among the settings of results, which are of a wing above.
    settings = SchoolSettings.metadata.tables["result_settings"].alias()
    said = select(settings.c.name_order).limit(1).scalar_subquery()
    return func.coalesce(said, literal_column(f"'{GIVEN_FIRST}'"))


def _lists_of_names(model: type[NamedSetting], *more: Any) -> tuple[ReadModel[[]], ReadModel[[UUID]]]:
    """Make two read models of a model of named records: of all records, and of one."""

    @read_model
    def settings() -> Query:
        return select(model.id, model.name, *more).order_by(model.name, model.id)

    @read_model
    def setting(setting_id: UUID) -> Query:
        return settings.query().where(model.id == setting_id)

    settings.__doc__ = f"Read model of {model.__name__}Schema, by name."
    setting.__doc__ = f"Read model of {model.__name__}Schema, for one."
    return settings, setting


departments, department = _lists_of_names(Department, Department.created_at.label("createdAt"))
employee_categories, employee_category = _lists_of_names(EmployeeCategory)
positions, position = _lists_of_names(Position)


def change_school_settings(*, must_change_password: bool | None = None, time_zone: str | None = None) -> None:
    """Change settings of the school; None leaves a setting as it is.

    `must_change_password` concerns passwords given after it was switched on: nobody with one from before is shut out.
    Switching it off lets everybody in again. `time_zone` is a name of the IANA's list. Raises Invalid for a name
    outside the list, or unknown to PostgreSQL.
    """
    if time_zone is not None and time_zone not in available_timezones():
        raise Invalid.field("time_zone", _NO_TIME_ZONE)
    row = db.session.execute(
        select(
            SchoolSettings.id,
            SchoolSettings.must_change_password_since.is_not(None).label("must_change_password"),
            SchoolSettings.time_zone,
            literal(True)
            if time_zone is None
            else select(_TIME_ZONES.c.name).where(_TIME_ZONES.c.name == time_zone).exists(),
        ).with_for_update(key_share=True, of=SchoolSettings)
    ).one()
    settings_id, *stored, is_known = row
    if not is_known:
        raise Invalid.field("time_zone", _NO_TIME_ZONE)
    old = dict(zip(("must_change_password", "time_zone"), stored, strict=True))
    given = {"must_change_password": must_change_password, "time_zone": time_zone}
    new = {name: value for name, value in given.items() if value is not None and value != old[name]}
    if not new:
        return
    values: dict[str, Any] = dict(new)
    if "must_change_password" in values:
        values["must_change_password_since"] = now() if values.pop("must_change_password") else None
    db.session.execute(update(SchoolSettings).where(SchoolSettings.id == settings_id).values(values))
    audit_change(SCHOOL_ENTITY, settings_id, old={name: old[name] for name in new}, new=new)


@statement
def lock_settings() -> Any:
    """Make the statement for locking the school's row of settings until the transaction ends, for `execute`.

    Settings of other tables, with one row or none, are locked by it too: there may be no row of theirs to lock.
    """
    return select(SchoolSettings.id).with_for_update(key_share=True)


@statement
def share_settings() -> Any:
    """Make the statement for keeping settings as they are until the transaction ends, for `execute`.

    It locks the school's row of settings FOR SHARE: for reading settings in more than one statement. Many may do so at
    once.
    """
    return select(SchoolSettings.id).with_for_update(read=True)


def create_named(model: type[NamedSetting], *, name: str) -> NewRow:
    """Add a department, employee category or position; another one's name is a conflict."""
    setting = insert_row(model, name=name)
    audit_change(_entity_of(model), setting.id, new={"name": name})
    return setting


def change_named(model: type[NamedSetting], *, setting_id: UUID, **changes: Any) -> UUID:
    """Change the name of a department, employee category or position; another one's name is a conflict.

    Raises NotFound.
    """
    setting = get(model, setting_id, for_update=True)
    return change_audited(_entity_of(model), setting, changes)


def delete_named(model: type[NamedSetting], *, setting_id: UUID) -> UUID:
    """Remove a department, employee category or position.

    One of an employee is a conflict, even of a deleted employee, since the row stays. Raises NotFound.
    """
    return delete_audited(_entity_of(model), DELETIONS[model], setting_id)


def _entity_of(model: type[NamedSetting]) -> str:
    """Name a department, an employee category or a position as the audit log does."""
    table: Any = model.__table__
    return record_name(table).replace(" ", "-")
