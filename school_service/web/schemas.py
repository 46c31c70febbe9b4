"""The base of all schemas, and the schemas common to all features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import marshmallow as ma
from marshmallow import fields

from school_service.core.columns import Enumeration
from school_service.core.errors import SAID_BACK
from school_service.sheets.days import DAY_ORDERS
from school_service.web.error_bounds import LEFT_OUT_HERE, MOST_MESSAGES
from school_service.web.fields import Choice, ListOf, QueryBoolean

Kind = TypeVar("Kind", bound=fields.Field[Any])


class Schema(ma.Schema):
    """A schema refusing unknown members."""

    class Meta:
        """Members without a field are an error."""

        unknown = ma.RAISE

    def load(self, data: Any, *, unknown: Any = None, **options: Any) -> Any:
        """Read an object. Of unknown members, errors tell MOST_MESSAGES, each by the first of its name.

        The others are counted, and no error of them is made.
        """
        refuses = isinstance(data, dict) and (unknown or self.unknown) == ma.RAISE
        names = {field.data_key or name for name, field in self.load_fields.items()} if refuses else ()
        strangers = [name for name in data if name not in names] if refuses else []
        told: dict[str, None] = {}
        if strangers:
            told = dict.fromkeys(name[:SAID_BACK] for name in strangers[:MOST_MESSAGES])
            data = {name: value for name, value in data.items() if name in names} | told
        try:
            return super().load(data, unknown=unknown, **options)
        except ma.ValidationError as error:
            if isinstance(error.messages, dict) and len(strangers) > len(told):
                error.messages[LEFT_OUT_HERE] = len(strangers) - len(told)
            # It has a frame of marshmallow's, which has it: such a circle, and with it the body and all frames of the
            # request, stays until the garbage collector looks, which it seldom does here.
            error.__traceback__ = None
            raise


class RecordSchema(Schema):
    """A record as it is answered: every field of it is always there, but those of `SOMETIMES`."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset()

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Make a field required, unless it is there only at times."""
        field_obj.required = field_name not in self.SOMETIMES


def described(kind: Callable[..., Kind], description: str, *arguments: Any, **options: Any) -> Kind:
    """Make a field of a record with its words in the document."""
    return kind(*arguments, metadata={"description": description}, **options)


class MineSchema(Schema):
    """A filter for callers with the whole school in reach: only the records in reach by their relations.

    The request's scope reads it (`Blueprint.requires`); a view and its services do not see it.
    """

    mine = QueryBoolean(
        required=False,
        metadata={
            "description": "Answer the records alone that the caller teaches, looks after, or is related to otherwise."
        },
    )

    @ma.post_load
    def leave_out(self, filters: dict[str, Any], **_options: Any) -> dict[str, Any]:
        """Leave it out of the filters."""
        filters.pop("mine", None)
        return filters


class Array(Schema):
    """A body of a bare array, made a list. An error of it as a whole is by the name `whole`, or by none."""

    def __init__(self, members: ListOf, *, whole: str | None = None) -> None:
        super().__init__()
        self._members = members
        self._whole = whole

    def load(self, data: Any, **_options: Any) -> Any:
        """Check the array."""
        try:
            return self._members.deserialize(data)
        except ma.ValidationError as error:
            if self._whole and isinstance(error.messages, list):
                raise ma.ValidationError({self._whole: error.messages}) from None
            raise


TOKEN_TYPES = Enumeration("TokenType", "Bearer")


class DeletedSchema(RecordSchema):
    """The answer of a delete."""

    id = fields.UUID()
    deleted = fields.Boolean()


class ImportOptionsSchema(Schema):
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


class UploadOptionsSchema(Schema):
    """How to enter a sheet."""

    dry_run = QueryBoolean(
        load_default=False,
        metadata={"description": "Answer what the upload would change, row by row, and store nothing."},
    )
    force = QueryBoolean(
        load_default=False,
        metadata={
            "description": "Replace what somebody changed since the sheet was downloaded, which is refused otherwise."
        },
    )


class _CellValue(fields.Raw):
    """The value of a cell: a number, a text, or null."""

    def __init__(self, description: str) -> None:
        either = [{"type": "number", "nullable": True}, {"type": "string"}]
        # OpenAPI 3.0 has null beside a type alone: one of the two says so.
        super().__init__(metadata={"anyOf": either, "description": description})


def warnings_field() -> fields.List[Any]:
    """The warnings of an upload."""
    return fields.List(
        fields.String(),
        metadata={
            "description": "Where there are any: what to look at, such as columns of which nothing was read."
        },
    )


class RowChangeSchema(RecordSchema):
    """The changes of an upload in a row."""

    row = fields.Integer(metadata={"description": "Its number in the sheet."})
    admission_number = fields.String()
    first_name = fields.String()
    last_name = fields.String()
    column = fields.String(metadata={"description": "The name of the column."})
    old = _CellValue("Null where there is nothing yet.")
    new = _CellValue("Null where it is taken away.")


class MissingStudentSchema(RecordSchema):
    """A student of the class without a row in the sheet."""

    admission_number = fields.String()
    first_name = fields.String()
    last_name = fields.String()


class UploadedRowsSchema(RecordSchema):
    """The effects of an uploaded sheet, by row: `rows` is the sum of the others."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset(
        {"changes", "not_in_sheet", "ignored_columns", "warnings"}
    )

    rows = fields.Integer(metadata={"description": "Empty rows do not count."})
    created = fields.Integer()
    updated = fields.Integer()
    unchanged = fields.Integer()
    blank = fields.Integer(metadata={"description": "Nothing filled in: what is there stays."})
    changes = fields.List(
        fields.Nested(RowChangeSchema),
        metadata={"description": "Of a dry run: what the upload would change."},
    )
    not_in_sheet = fields.List(
        fields.Nested(MissingStudentSchema),
        metadata={"description": "Of a dry run: who of the class has no row in the sheet."},
    )
    ignored_columns = fields.List(
        fields.String(),
        metadata={
            "description": "Where there are any: columns that are not known, of which nothing was read."
        },
    )
    warnings = warnings_field()


class RowErrorSchema(RecordSchema):
    """The error of a cell of an uploaded sheet."""

    class Meta:
        """Further help to find the cell may be told, too."""

        unknown = ma.INCLUDE

    row = fields.Integer(metadata={"description": "As Excel counts rows."})
    column = fields.String(metadata={"description": "The name of the column."})
    code = fields.String(
        metadata={
            "description": "What is wrong, for a program: `required`, `invalid`, `duplicate`, `taken`, `unknown`, or "
            "`changed` since the sheet was downloaded."
        }
    )
    message = fields.String(
        metadata={
            "description": "What is wrong, for a person: the cell, the value, whose row it is, what to do."
        }
    )


class ReplacedValueSchema(RecordSchema):
    """A value of the sheet stored as another, such as `F` as FEMALE."""

    column = fields.String(metadata={"description": "The name of the column."})
    value = fields.String(metadata={"description": "As the sheet has it."})
    stored = fields.String(metadata={"description": "What is stored in its place."})
    rows = fields.Integer(metadata={"description": "In how many rows."})


class ImportedRowsSchema(RecordSchema):
    """The outcome of an import."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"replaced_values", "ignored_columns", "warnings"})

    rows = fields.Integer(metadata={"description": "Rows of the sheet that are not empty."})
    created = fields.Integer(metadata={"description": "Records made of them."})
    errors = fields.List(
        fields.Nested(RowErrorSchema),
        metadata={"description": "Empty: a sheet with errors is refused with 422, which lists them by row."},
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


ERROR_TYPE = "ErrorType"
"""The name of the schema of an error's `type`."""


class ErrorDetailsSchema(Schema):
    """The faults of the input: by place, field and reason."""

    class Meta:
        """Some errors name something else."""

        unknown = ma.INCLUDE

    json = fields.Raw(
        metadata={
            "description": "Members of the body; reasons alone where the body as a whole is at fault. A member within "
            "a list stands at its place in the body, or by its path, such as `assignments.0.employee`."
        }
    )
    query = fields.Dict(keys=fields.String(), metadata={"description": "Parameters of the query."})
    files = fields.Dict(keys=fields.String(), metadata={"description": "Files of the form."})
    rows = fields.List(
        fields.Nested(RowErrorSchema), metadata={"description": "Cells of an uploaded sheet, by row."}
    )
    left_out = fields.Integer(
        metadata={"description": "Where not all is told: of how many members, parameters or rows nothing is."}
    )


class ErrorSchema(Schema):
    """The one shape of every error."""

    code = fields.Integer(required=True, metadata={"description": "The HTTP status."})
    status = fields.String(required=True, metadata={"description": "The name of the status."})
    type = fields.Raw(
        required=True,
        metadata={
            "description": "The reason, for a program: one of these, or one that a later version has added.",
            "anyOf": [{"$ref": f"#/components/schemas/{ERROR_TYPE}"}, {"type": "string"}],
        },
    )
    message = fields.String(required=True, metadata={"description": "What is wrong, for a person."})
    errors = fields.Nested(
        ErrorDetailsSchema,
        metadata={"description": "Where the input is at fault: by place, field and reason."},
    )
    request_id = fields.String(
        required=True, metadata={"description": "Names the request in the service's logs."}
    )
