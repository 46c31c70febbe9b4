"""Settings over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from marshmallow import fields

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.core.read_models import ReadModel
from school_service.core.statements import row_lock
from school_service.features.school.models import Department, EmployeeCategory, NamedSetting, Position
from school_service.features.school.settings import service
from school_service.web.blueprint import Blueprint
from school_service.web.fields import StrictBoolean, Text
from school_service.web.schemas import NamedSchema, RecordSchema, Schema, described

_MUST_CHANGE = (
    "Whether users whose account or password somebody else made must set another password before all else."
)
_TIME_ZONE = (
    "The time zone in which papers and pages tell days, by the IANA's name of it, such as Africa/Lagos."
)


class SchoolSettingsSchema(RecordSchema):
    """The choices of the school for itself."""

    must_change_password = described(fields.Boolean, _MUST_CHANGE)
    time_zone = described(fields.String, _TIME_ZONE)


class SchoolSettingsChangesSchema(Schema):
    """The changes: any of these."""

    must_change_password = described(StrictBoolean, _MUST_CHANGE)
    time_zone = described(Text, _TIME_ZONE)


class DepartmentSchema(NamedSchema):
    """A part of the school with its employees."""

    created_at = fields.AwareDateTime(data_key="createdAt")


class EmployeeCategorySchema(NamedSchema):
    """A kind of employee."""


class PositionSchema(NamedSchema):
    """A post of employees."""


class NewNamedSettingSchema(Schema):
    """A department, employee category or position to create."""

    name = Text()


class NamedSettingChangesSchema(NewNamedSettingSchema):
    """The changes of a department, employee category or position."""


blp = Blueprint(
    "settings", __name__, description="The choices of a school for itself, such as its departments."
)


@blp.route("/settings")
class SchoolSettings(MethodView):
    """The choices of the school for itself."""

    @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING)
    @blp.returns(SchoolSettingsSchema)
    def get(self) -> Any:
        """Show the school's choices for itself."""
        return service.school_settings()

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.arguments(SchoolSettingsChangesSchema(partial=True))
    @blp.returns(SchoolSettingsSchema)
    @blp.if_match(service.school_settings, service.lock_settings)
    def patch(self, changes: dict[str, Any]) -> Any:
        """Change the given members.

        `must_change_password` concerns accounts and passwords that are given from then on, `time_zone` papers that are
        published or issued from then on.
        """
        service.change_school_settings(**changes)
        return service.school_settings()


def _serve_names(
    path: str,
    noun: str,
    *,
    model: type[NamedSetting],
    schema: type[Schema],
    read_all: ReadModel[[]],
    read_one: ReadModel[[UUID]],
) -> None:
    """Serve a setting known by its name alone. `noun` is the word of the document for a record of it."""
    plural = path.strip("/")

    @blp.route(path, endpoint=plural)
    class Settings(MethodView):
        """All of them."""

        @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING)
        @blp.summary(f"List the school's {plural.replace('-', ' ')} by name.")
        @blp.returns_list(schema)
        def get(self) -> Any:
            return read_all()

        @blp.requires(Permission.SETTINGS_WRITE)
        @blp.summary(f"Create {noun}.")
        @blp.arguments(NewNamedSettingSchema)
        @blp.returns(schema)
        def post(self, setting: dict[str, Any]) -> Any:
            return read_one(service.create_named(model, **setting).id)

    @blp.route(f"{path}/<uuid:id>", endpoint=f"one-of-{plural}")
    class OneSetting(MethodView):
        """One of them."""

        @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING)
        @blp.summary(f"Show {noun}.")
        @blp.returns(schema)
        def get(self, id: UUID) -> Any:
            return read_one(id)

        @blp.requires(Permission.SETTINGS_WRITE)
        @blp.summary(f"Change the name of {noun}; employees keep it.")
        @blp.arguments(NamedSettingChangesSchema(partial=True))
        @blp.returns(schema)
        @blp.if_match(read_one, row_lock(model))
        def patch(self, changes: dict[str, Any], id: UUID) -> Any:
            return read_one(service.change_named(model, setting_id=id, **changes))

        @blp.requires(Permission.SETTINGS_DELETE)
        @blp.summary(f"Delete {noun} that no employee has.")
        @blp.returns_deleted()
        @blp.if_match(read_one, service.DELETIONS[model].row_lock)
        def delete(self, id: UUID) -> Any:
            return service.delete_named(model, setting_id=id)


_serve_names(
    "/departments",
    "a department",
    model=Department,
    schema=DepartmentSchema,
    read_all=service.departments,
    read_one=service.department,
)
_serve_names(
    "/employee-categories",
    "an employee category",
    model=EmployeeCategory,
    schema=EmployeeCategorySchema,
    read_all=service.employee_categories,
    read_one=service.employee_category,
)
_serve_names(
    "/positions",
    "a position",
    model=Position,
    schema=PositionSchema,
    read_all=service.positions,
    read_one=service.position,
)
