"""Settings as the interface shows them."""

from __future__ import annotations

from decimal import Decimal

from marshmallow import fields

from school_service.web.fields import Points, Schema, Text, free_text

ALL = Decimal(100)  # percent


class DepartmentSchema(Schema):
    """A part of the school that employees belong to."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    createdAt = fields.AwareDateTime(required=True)  # noqa: N815


class EmployeeCategorySchema(Schema):
    """A kind of employee."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)


class PositionSchema(Schema):
    """A post that an employee holds."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)


class NewNamedSettingSchema(Schema):
    """A department, employee category or position to create."""

    name = Text(required=True)


class GradeConfigurationSchema(Schema):
    """A band of percentages and the letter it is graded with."""

    id = fields.UUID(required=True)
    lower_threshold = fields.Decimal(required=True, metadata={"description": "In percent."})
    upper_threshold = fields.Decimal(required=True, metadata={"description": "In percent."})
    letter_grade = fields.String(required=True)
    remarks = fields.String(required=True)


class NewGradeConfigurationSchema(Schema):
    """A grade configuration to create; both thresholds are within its band."""

    lower_threshold = Points(
        ALL, required=True, metadata={"description": "In percent, with two decimal places at most."}
    )
    upper_threshold = Points(
        ALL, required=True, metadata={"description": "In percent; not below `lower_threshold`."}
    )
    letter_grade = Text(required=True, metadata={"description": "Such as A1."})
    remarks = free_text(required=True, metadata={"description": "Such as Excellent."})


class GradeConfigurationChangesSchema(NewGradeConfigurationSchema):
    """What to change of a grade configuration: any of its members."""
