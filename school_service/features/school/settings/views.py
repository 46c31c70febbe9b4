"""Settings over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.read_models import ReadModel
from school_service.features.school.models import Department, EmployeeCategory, NamedSetting, Position
from school_service.features.school.settings import reads, service
from school_service.features.school.settings.schemas import (
    DepartmentSchema,
    EmployeeCategorySchema,
    NewNamedSettingSchema,
    PositionSchema,
    SchoolSettingsChangesSchema,
    SchoolSettingsSchema,
)
from school_service.web.blueprint import Blueprint
from school_service.web.schemas import Schema

blp = Blueprint(
    "settings", __name__, description="What a school chooses for itself, such as its departments."
)


@blp.route("/settings")
class SchoolSettings(MethodView):
    """What the school has switched on."""

    @blp.requires(Permission.SETTINGS_READ)
    @blp.returns(SchoolSettingsSchema)
    def get(self) -> Any:
        """Show what the school has switched on."""
        return reads.school_settings()

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.arguments(SchoolSettingsChangesSchema(partial=True))
    @blp.returns(SchoolSettingsSchema)
    @blp.if_match(reads.school_settings, service.locking_settings)
    def patch(self, changes: dict[str, Any]) -> Any:
        """Switch on or off what is given.

        `must_change_password` concerns accounts and passwords that are given from then on.
        """
        service.change_school_settings(**changes)
        return reads.school_settings()


def _named(
    path: str,
    one: str,
    *,
    model: type[NamedSetting],
    schema: type[Schema],
    read_all: ReadModel[[]],
    read_one: ReadModel[[UUID]],
) -> None:
    """Serve a setting that is known by its name alone. `one` is what the document calls one of it."""
    plural = path.strip("/")

    @blp.route(path, endpoint=plural)
    class Settings(MethodView):
        """All of them."""

        @blp.requires(Permission.SETTINGS_READ)
        @blp.summary(f"List the school's {plural.replace('-', ' ')} by name.")
        @blp.returns_list(schema)
        def get(self) -> Any:
            return read_all()

        @blp.requires(Permission.SETTINGS_WRITE)
        @blp.summary(f"Create {one}.")
        @blp.arguments(NewNamedSettingSchema)
        @blp.returns(schema)
        def post(self, setting: dict[str, Any]) -> Any:
            return read_one(service.create_named(model, **setting).id)

    @blp.route(f"{path}/<uuid:id>", endpoint=f"one-of-{plural}")
    class OneSetting(MethodView):
        """One of them."""

        @blp.requires(Permission.SETTINGS_DELETE)
        @blp.summary(f"Delete {one} that no employee has.")
        @blp.returns_deleted()
        def delete(self, id: UUID) -> Any:
            return service.delete_named(model, setting_id=id)


_named(
    "/departments",
    "a department",
    model=Department,
    schema=DepartmentSchema,
    read_all=reads.departments,
    read_one=reads.department,
)
_named(
    "/employee-categories",
    "an employee category",
    model=EmployeeCategory,
    schema=EmployeeCategorySchema,
    read_all=reads.employee_categories,
    read_one=reads.employee_category,
)
_named(
    "/positions",
    "a position",
    model=Position,
    schema=PositionSchema,
    read_all=reads.positions,
    read_one=reads.position,
)
