"""Metric records, traits and metric sheets as the interface shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from marshmallow import fields, validate
from marshmallow.exceptions import ValidationError

from school_service.auth.principal import CANONICAL_UUID
from school_service.features.results.models import BEST, METRIC_TYPES, POOREST
from school_service.features.school.models import TERMS
from school_service.features.school.sessions.schemas import term_text
from school_service.web.fields import Choice, Id, Input, ObjectOf, QueryInteger, StrictInteger, Text
from school_service.web.schemas import (
    NamedSchema,
    RecordSchema,
    Schema,
    UploadOptionsSchema,
    described,
    text_of,
)

MAX_NUMBER = 2**31 - 1
MAX_TRAITS = 100  # of one record


class NumberOrId(Input, fields.Raw):
    """A record in a query, by its number in the school or by its id: becomes an int or a UUID."""

    def __init__(self, **options: Any) -> None:
        number = {"type": "integer", "minimum": 1, "maximum": MAX_NUMBER}
        either = [number, {"type": "string", "format": "uuid"}]
        super().__init__(metadata={"anyOf": either, **options.pop("metadata", {})}, **options)
        self._number = QueryInteger(
            1, MAX_NUMBER, error_messages={"invalid": "Neither a valid number nor a valid UUID."}
        )

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> int | UUID:
        if CANONICAL_UUID.fullmatch(value):
            return UUID(value)
        number: int = self._number.deserialize(value)
        return number


class MetricRecordSchema(RecordSchema):
    """The scores of a student in a term, of one type, trait by trait."""

    id = fields.UUID()
    student_name = fields.String()
    admission_number = fields.String()
    term = text_of(TERMS)
    batch = described(fields.UUID, "The batch on whose sheet it came last.")
    metric_type = text_of(METRIC_TYPES)
    metric_scores = described(
        fields.Dict,
        "By the name of the trait: from 5, excellent, to 1, poor.",
        keys=fields.String(),
        values=fields.Decimal(validate=validate.Range(POOREST, BEST)),
    )


class MetricFilterSchema(Schema):
    """The records to show."""

    batch_id = Id(data_key="batchId")


class _ScoresOfTraits(ObjectOf):
    """Scores by the name of the trait; null for none."""

    def __init__(self, **options: Any) -> None:
        score = StrictInteger(POOREST, BEST, required=False, allow_none=True)
        super().__init__(most=MAX_TRAITS, keys=Text(), values=score, **options)


def _not_empty(scores: Mapping[str, Any]) -> None:
    if not scores:
        raise ValidationError("Give a score at least.")


class MetricListSchema(Schema):
    """The class and term of the metrics to enter."""

    batch = described(Id, "A cohort's id is its first batch.")
    term = term_text("the batch's")


class NewMetricSchema(Schema):
    """The scores of a student, of one type: an omitted trait stays, null takes its score away."""

    student = described(Id, "In the batch.")
    metric_type = Choice(METRIC_TYPES)
    metric_scores = _ScoresOfTraits(
        validate=_not_empty,
        metadata={
            "minProperties": 1,
            "description": "By the name of the trait: from 5, excellent, to 1, poor.",
        },
    )
    expected = described(
        _ScoresOfTraits,
        "The scores that were there when they were read, null for none. Where a score that is to be "
        "replaced is another by now, nothing is stored (409).",
        required=False,
    )


class MetricSheetSchema(MetricFilterSchema):
    """The sheet to fill in."""

    term = term_text("the batch's")
    metric_type = Choice(METRIC_TYPES)


class MetricUploadSchema(UploadOptionsSchema):
    """The batch of a sheet, and how to enter it."""

    batch_id = described(NumberOrId, "The batch's number or its id.", data_key="batchId")
    term = described(
        Text, "As for the download; of a sheet without a sheet Details, such as a .csv file.", required=False
    )
    metric_type = described(Choice, "Of a sheet without a sheet Details.", METRIC_TYPES, required=False)


class MetricDefinitionSchema(NamedSchema):
    """A trait of students, to be scored."""

    metric_type = text_of(METRIC_TYPES)
    position = described(fields.Integer, "Orders the traits of a type, from 1.")


class NewMetricDefinitionSchema(Schema):
    """A trait to add."""

    name = Text()
    metric_type = Choice(METRIC_TYPES)


class MetricDefinitionChangesSchema(NewMetricDefinitionSchema):
    """Changes of a trait: any of its members."""
