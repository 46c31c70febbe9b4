"""Settings as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import StrictBoolean, Text
from school_service.web.schemas import RecordSchema, Schema

_MUST_CHANGE = (
    "Whether users whose account or password somebody else made must set another password before all else."
)


class SchoolSettingsSchema(RecordSchema):
    """What the school has switched on."""

    must_change_password = fields.Boolean(metadata={"description": _MUST_CHANGE})


class SchoolSettingsChangesSchema(Schema):
    """What to switch on or off: any of these."""

    must_change_password = StrictBoolean(metadata={"description": _MUST_CHANGE})


class DepartmentSchema(RecordSchema):
    """A part of the school that employees belong to."""

    id = fields.UUID()
    name = fields.String()
    created_at = fields.AwareDateTime(data_key="createdAt")


class EmployeeCategorySchema(RecordSchema):
    """A kind of employee."""

    id = fields.UUID()
    name = fields.String()


class PositionSchema(RecordSchema):
    """A post that an employee holds."""

    id = fields.UUID()
    name = fields.String()


class NewNamedSettingSchema(Schema):
    """A department, employee category or position to create."""

    name = Text()
