"""The base of all schemas, and the schemas common to all features."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

import marshmallow as ma
from marshmallow import fields, validate

from school_service.core.columns import Enumeration
from school_service.core.errors import SAID_BACK, Invalid
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


class NamedSchema(RecordSchema):
    """A record with a name."""

    id = fields.UUID()
    name = fields.String()


def described(kind: Callable[..., Kind], description: str | None, *arguments: Any, **options: Any) -> Kind:
    """Make a field with its words in the document, if it has some."""
    metadata = {} if description is None else {"description": description}
    return kind(*arguments, metadata=metadata, **options)


def record_of(schema: type[ma.Schema], description: str | None = None, **options: Any) -> fields.Nested:
    """Make a field of a record, with its words in the document, if it has some."""
    return described(fields.Nested, description, schema, **options)


def list_of(schema: type[ma.Schema], description: str | None = None, **options: Any) -> fields.List[Any]:
    """Make a field of records, with its words in the document, if it has some."""
    return described(fields.List, description, fields.Nested(schema), **options)


def texts(description: str, **options: Any) -> fields.List[Any]:
    """Make a field of texts, with its words in the document."""
    return described(fields.List, description, fields.String(), **options)


def text_of(values: Iterable[Any], description: str | None = None, **options: Any) -> fields.String:
    """Make a field of a text that is one of some, with its words in the document, if it has some."""
    return described(fields.String, description, validate=validate.OneOf(values), **options)


class MineSchema(Schema):
    """A filter for callers with the whole school in reach: only the records in reach by their relations.

    The request's scope reads it (`Blueprint.requires`); a view and its services do not see it.
    """

    mine = described(
        QueryBoolean,
        "Answer the records alone that the caller teaches, looks after, or is related to otherwise.",
        required=False,
    )

    @ma.post_load
    def leave_out(self, filters: dict[str, Any], **_options: Any) -> dict[str, Any]:
        """Leave it out of the filters."""
        filters.pop("mine", None)
        return filters


def validated(schema: ma.Schema, record: dict[str, Any]) -> dict[str, Any]:
    """Validate a record of a sheet by a schema; raises Invalid, naming the fields."""
    try:
        loaded: dict[str, Any] = schema.load(record)
    except ma.ValidationError as error:
        messages: Any = error.messages
        raise Invalid("The record is not valid.", messages) from None
    return loaded


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

    dry_run = described(QueryBoolean, "Answer as the import would, and store nothing.", load_default=False)
    dates = described(
        Choice,
        "How dates in text are written: DMY as 31/05/2012, MDY as 05/31/2012. Without it the sheet "
        "itself shows it, and a date that can be read in both ways is an error of its row where it does not.",
        DAY_ORDERS,
        required=False,
    )


class UploadOptionsSchema(Schema):
    """How to enter a sheet."""

    dry_run = described(
        QueryBoolean,
        "Answer the changes of the upload, row by row, and store nothing.",
        load_default=False,
    )
    force = described(
        QueryBoolean,
        "Replace values changed since the sheet was downloaded, which are refused otherwise.",
        load_default=False,
    )


class _CellValue(fields.Raw):
    """The value of a cell: a number, a text, or null."""

    def __init__(self, description: str) -> None:
        either = [{"type": "number", "nullable": True}, {"type": "string"}]
        # OpenAPI 3.0 has null beside a type alone: one of the two says so.
        super().__init__(metadata={"anyOf": either, "description": description})


def warnings_field() -> fields.List[Any]:
    """The warnings of an upload."""
    return texts("Where there are any: points to look at, such as ignored columns.")


class RowChangeSchema(RecordSchema):
    """The changes of an upload in a row."""

    row = described(fields.Integer, "Its number in the sheet.")
    admission_number = fields.String()
    first_name = fields.String()
    last_name = fields.String()
    column = described(fields.String, "The name of the column.")
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

    rows = described(fields.Integer, "Empty rows do not count.")
    created = fields.Integer()
    updated = fields.Integer()
    unchanged = fields.Integer()
    blank = described(fields.Integer, "Nothing filled in: stored values stay.")
    changes = list_of(RowChangeSchema, "Of a dry run: the changes of the upload.")
    not_in_sheet = list_of(
        MissingStudentSchema, "Of a dry run: students of the class without a row in the sheet."
    )
    ignored_columns = texts("Where there are any: unknown columns, which were not read.")
    warnings = warnings_field()


class RowErrorSchema(RecordSchema):
    """The error of a cell of an uploaded sheet."""

    class Meta:
        """Further help to find the cell may be told, too."""

        unknown = ma.INCLUDE

    row = described(fields.Integer, "As Excel counts rows.")
    column = described(fields.String, "The name of the column.")
    code = described(
        fields.String,
        "The reason, for a program: `required`, `invalid`, `duplicate`, `taken`, `unknown`, or "
        "`changed` since the sheet was downloaded.",
    )
    message = described(
        fields.String, "The fault, for a person: the cell, the value, the owner of the row, the remedy."
    )


class ReplacedValueSchema(RecordSchema):
    """A value of the sheet stored as another, such as `F` as FEMALE."""

    column = described(fields.String, "The name of the column.")
    value = described(fields.String, "As the sheet has it.")
    stored = described(fields.String, "The value stored in its place.")
    rows = described(fields.Integer, "In how many rows.")


class ImportedRowsSchema(RecordSchema):
    """The outcome of an import."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"replaced_values", "ignored_columns", "warnings"})

    rows = described(fields.Integer, "Rows of the sheet that are not empty.")
    created = described(fields.Integer, "Records made of them.")
    errors = list_of(
        RowErrorSchema, "Empty: a sheet with errors is refused with 422, which lists them by row."
    )
    replaced_values = list_of(
        ReplacedValueSchema, "Where there are any: values that are stored as another, such as F as FEMALE."
    )
    ignored_columns = texts("Where there are any: unknown columns, which were not read.")
    warnings = warnings_field()


ERROR_TYPE = "ErrorType"
"""The name of the schema of an error's `type`."""


class ErrorDetailsSchema(Schema):
    """The faults of the input: by place, field and reason."""

    class Meta:
        """Some errors name something else."""

        unknown = ma.INCLUDE

    json = described(
        fields.Raw,
        "Members of the body; reasons alone where the body as a whole is at fault. A member within "
        "a list stands at its place in the body, or by its path, such as `assignments.0.employee`.",
    )
    query = described(fields.Dict, "Parameters of the query.", keys=fields.String())
    files = described(fields.Dict, "Files of the form.", keys=fields.String())
    rows = list_of(RowErrorSchema, "Cells of an uploaded sheet, by row.")
    left_out = described(
        fields.Integer, "Where not all is told: of how many members, parameters or rows nothing is."
    )


class ErrorSchema(Schema):
    """The one shape of every error."""

    code = described(fields.Integer, "The HTTP status.", required=True)
    status = described(fields.String, "The name of the status.", required=True)
    type = fields.Raw(
        required=True,
        metadata={
            "description": "The reason, for a program: one of these, or one that a later version has added.",
            "anyOf": [{"$ref": f"#/components/schemas/{ERROR_TYPE}"}, {"type": "string"}],
        },
    )
    message = described(fields.String, "The fault, for a person.", required=True)
    errors = record_of(ErrorDetailsSchema, "Where the input is at fault: by place, field and reason.")
    request_id = described(fields.String, "Names the request in the service's logs.", required=True)
