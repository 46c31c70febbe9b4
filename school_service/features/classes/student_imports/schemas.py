"""The import of students as the interface shows it."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import fields

from school_service.features.people.gains.schemas import PlantedSchema
from school_service.sheets.days import DAY_ORDERS
from school_service.web.fields import Choice, QueryBoolean
from school_service.web.schemas import RecordSchema, RowErrorSchema, Schema, warnings_field


class ImportFilterSchema(Schema):
    """How to import."""

    dry_run = QueryBoolean(
        load_default=False, metadata={"description": "Answer as the import would, and store nothing."}
    )
    dates = Choice(
        DAY_ORDERS,
        required=False,
        metadata={
            "description": "How dates in text are written: DMY as 31/05/2012, MDY as 05/31/2012. Without it the sheet "
            "itself shows it, and a date that can be read in both ways is an error of its row where it does not."
        },
    )


class ReplacedValueSchema(RecordSchema):
    """A value of the sheet stored as another, such as `F` as FEMALE."""

    column = fields.String(metadata={"description": "The name of the column."})
    value = fields.String(metadata={"description": "As the sheet has it."})
    stored = fields.String(metadata={"description": "What is stored in its place."})
    rows = fields.Integer(metadata={"description": "In how many rows."})


class ImportedSchema(PlantedSchema):
    """The outcome of an import."""

    SOMETIMES: ClassVar[frozenset[str]] = PlantedSchema.SOMETIMES | {
        *("enrolled", "replaced_values", "ignored_columns", "warnings"),
        *("guardians_created", "guardians_found"),
    }

    rows = fields.Integer(metadata={"description": "Rows of the sheet that are not empty."})
    created = fields.Integer(metadata={"description": "Students made of them."})
    errors = fields.List(
        fields.Nested(RowErrorSchema),
        metadata={"description": "Empty: a sheet with errors is refused with 422, which lists them by row."},
    )
    enrolled = fields.Integer(
        metadata={"description": "Where the sheet names classes: how many students were enrolled."}
    )
    guardians_created = fields.Integer(
        metadata={"description": "Where the sheet names guardians: how many were added as persons."}
    )
    guardians_found = fields.Integer(
        metadata={
            "description": "Where the sheet names guardians: how many persons of them were there, as a brother's or "
            "sister's; one of several rows counts once."
        }
    )
    replaced_values = fields.List(
        fields.Nested(ReplacedValueSchema),
        metadata={
            "description": "Where there are any: values that are stored as another, such as F as FEMALE."
        },
    )
    ignored_columns = fields.List(
        fields.String(),
        metadata={
            "description": "Where there are any: columns that are not known, of which nothing was read."
        },
    )
    warnings = warnings_field()
