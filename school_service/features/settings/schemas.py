"""Settings as the interface shows them."""

from __future__ import annotations

from decimal import Decimal

from marshmallow import fields

from school_service.web.fields import Points, StrictBoolean, Text, free_text
from school_service.web.schemas import RecordSchema, Schema

ALL = Decimal(100)  # percent


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


class GradeConfigurationSchema(RecordSchema):
    """A band of percentages and the letter it is graded with."""

    id = fields.UUID()
    lower_threshold = fields.Decimal(metadata={"description": "In percent."})
    upper_threshold = fields.Decimal(metadata={"description": "In percent."})
    letter_grade = fields.String()
    remarks = fields.String()


class NewGradeConfigurationSchema(Schema):
    """A grade configuration to create; both thresholds are within its band."""

    lower_threshold = Points(ALL, metadata={"description": "In percent, with two decimal places at most."})
    upper_threshold = Points(ALL, metadata={"description": "In percent; not below `lower_threshold`."})
    letter_grade = Text(metadata={"description": "Such as A1."})
    remarks = free_text(metadata={"description": "Such as Excellent."})


class GradeConfigurationChangesSchema(NewGradeConfigurationSchema):
    """What to change of a grade configuration: any of its members."""
