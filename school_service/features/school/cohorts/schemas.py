"""Cohorts and batches as the interface shows them."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import ValidationError, fields, validates

from school_service.web.fields import Id, ListOf, Text, sought_text
from school_service.web.schemas import MineSchema, RecordSchema, Schema, described, list_of

MAX_BATCHES = 50


class BatchSchema(RecordSchema):
    """An arm of a cohort."""

    id = fields.UUID()
    number = described(fields.Integer, "Counts the school's batches.")
    name = fields.String()
    cohort = fields.UUID()


class CohortSchema(RecordSchema):
    """A classroom in one academic session."""

    id = fields.UUID()
    classroom = described(fields.String, "The classroom's name.")
    session = described(fields.String, "The id of the academic session.")


class ListedCohortSchema(CohortSchema):
    """A cohort in a list of cohorts."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"batches"})

    batches = list_of(BatchSchema, "Where `session` is given: its arms by name.")


class CohortFilterSchema(MineSchema):
    """The filters of a list of cohorts."""

    session = described(Id, "The cohorts of this academic session, each with its arms.", required=False)


class CohortPlaceSchema(Schema):
    """The place of a cohort: its classroom and its session."""

    classroom = Id()
    session_id = described(sought_text, "The academic session's id or its name.")


class NewCohortSchema(CohortPlaceSchema):
    """The members of a new cohort."""

    batches = described(
        ListOf,
        "The names of its batches, such as Gold and Silver; without it there is one, A.",
        Text(),
        least=1,
        most=MAX_BATCHES,
        required=False,
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
