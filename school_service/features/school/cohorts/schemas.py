"""Cohorts and batches as the interface shows them."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import ValidationError, fields, validate, validates

from school_service.web.fields import Id, ListOf, Text, sought_text
from school_service.web.schemas import MineSchema, RecordSchema, Schema

MAX_BATCHES = 50


class BatchSchema(RecordSchema):
    """An arm of a cohort."""

    id = fields.UUID()
    number = fields.Integer(metadata={"description": "Counts the school's batches."})
    name = fields.String()
    cohort = fields.UUID()


class CohortSchema(RecordSchema):
    """A classroom in one academic session."""

    id = fields.UUID()
    classroom = fields.String(metadata={"description": "The classroom's name."})
    session = fields.String(metadata={"description": "The id of the academic session."})


class ListedCohortSchema(CohortSchema):
    """A cohort in a list of cohorts."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"batches"})

    batches = fields.List(
        fields.Nested(BatchSchema), metadata={"description": "Where `session` is given: its arms by name."}
    )


class CohortFilterSchema(MineSchema):
    """The filters of a list of cohorts."""

    session = Id(
        required=False, metadata={"description": "Those of this academic session, each with its arms."}
    )


class CohortPlaceSchema(Schema):
    """The place of a cohort: its classroom and its session."""

    classroom = Id()
    session_id = sought_text(metadata={"description": "The academic session's id or its name."})


class NewCohortSchema(CohortPlaceSchema):
    """The members of a new cohort."""

    batches = ListOf(
        Text(),
        required=False,
        validate=validate.Length(min=1, max=MAX_BATCHES),
        metadata={
            "description": "The names of its batches, such as Gold and Silver; without it there is one, A."
        },
    )

    @validates("batches")
    def check_names(self, names: list[str], **_options: Any) -> None:
        """Let no two batches have the same name."""
        if len(set(names)) < len(names):
            raise ValidationError("Names a batch more than once.")


class NewBatchSchema(Schema):
    """An arm to add to a cohort."""

    name = Text()


class BatchChangesSchema(NewBatchSchema):
    """The changes of an arm."""
