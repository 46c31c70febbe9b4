"""The import of students as the interface shows it."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import fields

from school_service.web.fields import QueryBoolean
from school_service.web.schemas import RecordSchema, Schema


class ImportFilterSchema(Schema):
    """How to import."""

    dry_run = QueryBoolean(
        load_default=False, metadata={"description": "Answer as the import would, and store nothing."}
    )


class ReplacedValueSchema(RecordSchema):
    """A value of the sheet in place of which another is stored."""

    column = fields.String()
    value = fields.String(metadata={"description": "As the sheet has it."})
    stored = fields.String()
    rows = fields.Integer(metadata={"description": "In how many rows."})


class ImportedSchema(RecordSchema):
    """What an import did."""

    _SOMETIMES: ClassVar[frozenset[str]] = frozenset({"enrolled", "replaced_values", "ignored_columns"})

    rows = fields.Integer(metadata={"description": "Rows of the sheet that are not empty."})
    created = fields.Integer(metadata={"description": "Students made of them."})
    errors = fields.List(
        fields.Dict(),
        metadata={"description": "Empty: a sheet with errors is refused with 422, which lists them by row."},
    )
    enrolled = fields.Integer(
        metadata={"description": "Where the sheet names classes: how many students were enrolled."}
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

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Make a field required, but those that are there at times alone."""
        super().on_bind_field(field_name, field_obj)
        field_obj.required = field_name not in self._SOMETIMES
