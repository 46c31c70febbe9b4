"""Rules of promotion and promotions as they are answered and taken."""

from __future__ import annotations

from typing import Any

import marshmallow as ma
from marshmallow import fields

from school_service.features.people.students.schemas import NamedStudentSchema, dated
from school_service.features.results.figures.schemas import ResultSessionSchema, figure, number, words
from school_service.features.results.models import (
    BY_RULE,
    GRADUATED,
    LEFT_OUT,
    MAX_FAILED,
    MAX_REQUIRED,
    OUTCOMES,
)
from school_service.features.results.promotions.rules import DEFAULT, REASONS
from school_service.features.scores.models import FULL, MAX_TERMS
from school_service.web.fields import (
    MAX_IDS,
    Choice,
    Id,
    ListOf,
    Nested,
    Points,
    QueryBoolean,
    StrictInteger,
    Text,
    free_text,
    id_list,
    sought_text,
)
from school_service.web.schemas import RecordSchema, Schema, described, list_of, record_of, text_of

MAX_RULES = 100
MAX_MOVES = 100

_WORDS = {
    "level": "The level of classrooms; null for all levels without a rule of their own.",
    "minimum_average": "In percent, of the session: students below are not promoted.",
    "trial_average": "In percent: students not promoted, with this or more, are promoted on trial; null: nobody is.",
    "required_subjects": "Subjects of the school: a student who has not taken each is not promoted.",
    "required_percent": "In percent, of the session: the least in each of the required subjects.",
    "maximum_failed": "How many subjects may be below the pass mark; null: any number.",
    "minimum_terms": "How many terms of the session need a result.",
}


class PromotionRuleSchema(RecordSchema):
    """The conditions for promotion in the classrooms of a level."""

    level = words(_WORDS["level"])
    minimum_average = described(fields.Decimal, _WORDS["minimum_average"])
    trial_average = figure(_WORDS["trial_average"])
    required_subjects = described(fields.List, _WORDS["required_subjects"], fields.UUID())
    required_percent = described(fields.Decimal, _WORDS["required_percent"])
    maximum_failed = number(_WORDS["maximum_failed"])
    minimum_terms = described(fields.Integer, _WORDS["minimum_terms"])


class NewPromotionRuleSchema(Schema):
    """The conditions for promotion to set in the classrooms of a level."""

    level = described(Text, _WORDS["level"], load_default=None, allow_none=True)
    minimum_average = described(Points, _WORDS["minimum_average"], FULL)
    trial_average = described(
        Points,
        f"{_WORDS['trial_average']} Less than minimum_average.",
        FULL,
        load_default=None,
        allow_none=True,
    )
    required_subjects = described(id_list, _WORDS["required_subjects"], most=MAX_REQUIRED, load_default=list)
    required_percent = described(
        Points, _WORDS["required_percent"], FULL, load_default=DEFAULT.required_percent
    )
    maximum_failed = described(
        StrictInteger, _WORDS["maximum_failed"], 0, MAX_FAILED, load_default=None, allow_none=True
    )
    minimum_terms = described(
        StrictInteger, _WORDS["minimum_terms"], 1, MAX_TERMS, load_default=DEFAULT.minimum_terms
    )


class PromotionCountsSchema(RecordSchema):
    """The number of students of each outcome."""

    PROMOTED = fields.Integer()
    PROMOTED_ON_TRIAL = fields.Integer()
    REPEATED = fields.Integer()
    GRADUATED = fields.Integer()
    LEFT_OUT = fields.Integer()


class PromotionSummarySchema(RecordSchema):
    """The move of the students of batches into the next session, or their graduation: without the outcome of each."""

    id = described(fields.UUID, "Null in a dry run.", allow_none=True)
    session = fields.Nested(ResultSessionSchema)
    next_session = record_of(ResultSessionSchema, "Null where no batch is named to go to.", allow_none=True)
    fingerprint = described(
        fields.String, "Of all facts behind the decisions: a commit brings the fingerprint of its dry run."
    )
    committed_at = described(fields.AwareDateTime, "Null in a dry run.", allow_none=True)
    committed_by_name = fields.String(allow_none=True)
    undone_at = fields.AwareDateTime(allow_none=True)
    undone_by_name = fields.String(allow_none=True)
    counts = fields.Nested(PromotionCountsSchema)


class PromotedStudentSchema(NamedStudentSchema):
    """A student of a decision."""


class PromotionReasonSchema(RecordSchema):
    """A reason against a student's promotion."""

    code = text_of(REASONS)
    message = described(fields.String, "In words, with the figures.")


class PromotionAmendmentSchema(RecordSchema):
    """A later decision on a student, and the reason."""

    outcome = text_of(OUTCOMES, "The student's outcome from then on.")
    to_batch = described(fields.UUID, "Null for GRADUATED and LEFT_OUT.", allow_none=True)
    reason = words("Null once the student was erased.")
    by_name = described(fields.String, "The name of the decider.")
    at = described(fields.AwareDateTime, "When.")


class PromotionDecisionSchema(RecordSchema):
    """The outcome of a student, and the reasons."""

    student = fields.Nested(PromotedStudentSchema)
    from_batch = fields.UUID()
    average = figure("Of the session, as published; null without a result.")
    terms = number("How many terms have a result.")
    by_rule = text_of(BY_RULE)
    outcome = text_of(
        [*OUTCOMES, None], "Null in a dry run, where somebody has to decide first.", allow_none=True
    )
    reasons = list_of(PromotionReasonSchema, "Why the rule does not promote.")
    reason = words("The reason for deciding otherwise, or for leaving the student out.")
    to_batch = described(
        fields.UUID, "Null for GRADUATED and LEFT_OUT, and while there is no class to go to.", allow_none=True
    )
    amended = list_of(PromotionAmendmentSchema, "Later decisions, the oldest first: the last one holds.")


class PromotionSchema(PromotionSummarySchema):
    """A promotion, and the outcome of each student: by batch in the order of the moves, then by name."""

    decisions = list_of(PromotionDecisionSchema)


class PromotionFilterSchema(Schema):
    """The promotions to list."""

    session = described(sought_text, "The session that ended, by id or name.", required=False)


class MoveSchema(Schema):
    """The next batches for the students of a batch, unless an override is given for one."""

    batch = described(Id, "A batch of the session; a cohort's id is its first batch.")
    promote_to = described(Id, "A batch of the next session; null: they graduate.", allow_none=True)
    repeat_in = described(Id, "A batch of the next session; null: nobody repeats.", allow_none=True)
    left_on = dated("Date of leaving of the graduates; `promote_to` is null.")


_INTO_NO_BATCH = "Who graduates or is left out goes into no batch."


class OverrideSchema(Schema):
    """A decision on a student against the rule: an outcome, a batch to go to, or both."""

    student = Id()
    outcome = Choice(OUTCOMES, required=False)
    batch = described(Id, "In place of the one of the move.", required=False)
    reason = described(free_text, "Stays with the decision.")

    @ma.validates_schema
    def _is_decided(self, override: dict[str, Any], **_options: Any) -> None:
        if "outcome" not in override and "batch" not in override:
            raise ma.ValidationError("Give an outcome, a batch, or both.", "outcome")
        if override.get("outcome") in (GRADUATED, LEFT_OUT) and "batch" in override:
            raise ma.ValidationError(_INTO_NO_BATCH, "batch")


class PromotionDecisionChangesSchema(Schema):
    """The decision on a student in place of the one before."""

    outcome = described(Choice, "The student's outcome.", OUTCOMES)
    batch = described(Id, "A batch of the next session; not with GRADUATED or LEFT_OUT.", required=False)
    reason = described(free_text, "Stays with the decision, and in the audit log.")

    @ma.validates_schema
    def _has_batch(self, decision: dict[str, Any], **_options: Any) -> None:
        goes_on = decision["outcome"] not in (GRADUATED, LEFT_OUT)
        if goes_on and "batch" not in decision:
            raise ma.ValidationError("Give the batch of the next session to go to.", "batch")
        if not goes_on and "batch" in decision:
            raise ma.ValidationError(_INTO_NO_BATCH, "batch")


class NewPromotionSchema(Schema):
    """The students to promote: all or none."""

    session = described(sought_text, "The session that ends, by id or name.")
    moves = ListOf(Nested(MoveSchema), least=1, most=MAX_MOVES)
    overrides = ListOf(Nested(OverrideSchema), most=MAX_IDS, load_default=list)
    fingerprint = described(
        sought_text, "The fingerprint of the dry run; without one nothing is committed.", required=False
    )


class PromotionOptionsSchema(Schema):
    """Whether to do it."""

    dry_run = described(
        QueryBoolean,
        "Answer the outcome of each student, or the obstacles, and store nothing.",
        load_default=False,
    )
