"""The import of students as the interface shows it."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import ValidationError, fields, validates_schema

from school_service.features.classes.student_imports.update_sheet import FORMATS, XLSX
from school_service.features.people.gains.schemas import PlantedSchema
from school_service.sheets.days import DAY_ORDERS
from school_service.web.fields import Choice, Id, Text
from school_service.web.schemas import (
    ImportedRowsSchema,
    Schema,
    UploadedRowsSchema,
    UploadOptionsSchema,
    described,
)


class ClassListSchema(Schema):
    """The students of a sheet, and its kind."""

    batch = described(Id, "Those now in this batch; a cohort's id is its first.", required=False)
    cohort = described(Id, "Those now in this cohort.", required=False)
    session = described(Text, "Those now in a class of this session, by its id or name.", required=False)
    format = described(
        Choice,
        "A workbook, or comma-separated values in UTF-8: a text that begins with =, +, - or @ has "
        "an apostrophe before it, which an upload takes away.",
        FORMATS,
        load_default=XLSX,
    )

    @validates_schema
    def check_one(self, filters: dict[str, Any], **_options: Any) -> None:
        """Let it be one of a batch, a cohort and a session."""
        if len(filters.keys() & {"batch", "cohort", "session"}) != 1:
            raise ValidationError("Give one of batch, cohort and session.", "batch")


class StudentUpdateSchema(UploadOptionsSchema):
    """How to enter a sheet of students who are there."""

    dates = described(
        Choice,
        "How dates in text are written: DMY as 31/05/2012, MDY as 05/31/2012.",
        DAY_ORDERS,
        required=False,
    )


class UpdatedSchema(PlantedSchema, UploadedRowsSchema):
    """The outcome of a class list that was sent back."""

    SOMETIMES: ClassVar[frozenset[str]] = UploadedRowsSchema.SOMETIMES | PlantedSchema.SOMETIMES


class ImportedSchema(ImportedRowsSchema, PlantedSchema):
    """The outcome of an import."""

    SOMETIMES: ClassVar[frozenset[str]] = (
        ImportedRowsSchema.SOMETIMES
        | PlantedSchema.SOMETIMES
        | {"enrolled", "guardians_created", "guardians_found"}
    )

    created = described(fields.Integer, "Students made of them.")
    enrolled = described(fields.Integer, "Where the sheet names classes: how many students were enrolled.")
    guardians_created = described(
        fields.Integer, "Where the sheet names guardians: how many were added as persons."
    )
    guardians_found = described(
        fields.Integer,
        "Where the sheet names guardians: how many persons of them were there, as a brother's or "
        "sister's; one of several rows counts once.",
    )
