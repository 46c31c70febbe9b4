"""Result settings as the interface shows them."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from marshmallow import fields

from school_service.features.scores.models import (
    COUNTING,
    FULL,
    MAX_PLACES,
    MAX_SUBJECTS,
    MAX_TERMS,
    NAME_ORDERS,
    PERCENT_FROM,
    RANKINGS,
    SHOWN_POSITIONS,
    SIGNATURES,
    WEIGHTINGS,
)
from school_service.web.fields import Choice, ListOf, Nested, Points, StrictBoolean, StrictInteger, Text
from school_service.web.schemas import RecordSchema, Schema, described, list_of, record_of, text_of

MAX_TERM_WEIGHT = Decimal("999.99")
MAX_WEIGHTS = 200
MAX_COMMENTS = 100
COMMENT_LENGTH = 500

_WORDS = {
    "weighting": "POINTS: the points of all assessments as they are; CATEGORIES: each category has its weight.",
    "weights": "With CATEGORIES. Those of a level sum to 100; null stands for every level without weights of its own.",
    "percent_places": "Decimal places to which a percentage is rounded, half up.",
    "pass_mark": "In percent: a subject is passed from this on.",
    "minimum_subjects": "Graded subjects without which a term has no position.",
    "minimum_terms": "Terms without which a session has no position.",
    "rank_by": "Whether the average or the total of the percentages decides about the position in a term.",
    "term_weights": "How much the terms count in the session's result.",
    "positions": "Which positions report cards and a student's own reading show.",
    "principal_comments": "The principal's comment where none is written, by the average: the comment of the highest "
    "threshold that is not above it.",
    "verification": "Whether report cards and transcripts can be verified by their code.",
    "name_order": "How names stand on papers: surname, first name, middle name; or first, middle name, surname.",
    "signatures": "The place for signatures on report cards. NONE: nothing. LINES: lines for form teacher and "
    "principal, and a space for the stamp. PICTURES: the letterhead's picture of the signature, and lines where there "
    "is none.",
    "show_teachers": "Whether report cards name, below each subject, its teachers.",
    "percent_from": "EXACT: a percent is computed of the scores, and rounded once; averages have two decimal places. "
    "MARKS: it is the sum of the marks of the categories as they are printed, and all else is computed of printed "
    "figures, to percent_places.",
    "show_ca_total": "Whether report cards have a column with the sum of the marks of CA1, CA2 and CA3.",
    "show_photo": "Whether report cards have the student's photo, as it is when they are published.",
}


_NULL = "pass_mark, positions and percent_places are null where the school's hold for it."
_MARKS = "whether it has marks; false for early years, whose cards have traits, comments and attendance. Null is true."
for _name in ("pass_mark", "positions", "percent_places"):
    _WORDS[_name] += " With a level, null stands for the school's."


class WeightSchema(RecordSchema):
    """The weight of a category, of 100, in the classrooms of a level."""

    level = fields.String(allow_none=True)
    category = text_of(COUNTING)
    weight = fields.Decimal()


class TermWeightsSchema(RecordSchema):
    """How much each term counts."""

    FIRST = fields.Decimal()
    SECOND = fields.Decimal()
    THIRD = fields.Decimal()


class PrincipalCommentSchema(RecordSchema):
    """The principal's comment on an average from a threshold on."""

    lower_threshold = described(fields.Decimal, "In percent.")
    comment = fields.String()


class ResultSettingsSchema(RecordSchema):
    """How results are computed, ranked and shown from now on; published ones stay as they are."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"level", "marks"})

    weighting = text_of(WEIGHTINGS, _WORDS["weighting"])
    weights = list_of(WeightSchema, _WORDS["weights"])
    percent_places = described(fields.Integer, _WORDS["percent_places"], allow_none=True)
    pass_mark = described(fields.Decimal, _WORDS["pass_mark"], allow_none=True)
    minimum_subjects = described(fields.Integer, _WORDS["minimum_subjects"])
    minimum_terms = described(fields.Integer, _WORDS["minimum_terms"])
    rank_by = text_of(RANKINGS, _WORDS["rank_by"])
    term_weights = record_of(TermWeightsSchema, _WORDS["term_weights"])
    positions = text_of([*SHOWN_POSITIONS, None], _WORDS["positions"], allow_none=True)
    principal_comments = list_of(PrincipalCommentSchema, _WORDS["principal_comments"])
    verification = described(fields.Boolean, _WORDS["verification"])
    name_order = text_of(NAME_ORDERS, _WORDS["name_order"])
    signatures = text_of(SIGNATURES, _WORDS["signatures"])
    show_teachers = described(fields.Boolean, _WORDS["show_teachers"])
    percent_from = text_of(PERCENT_FROM, _WORDS["percent_from"])
    show_ca_total = described(fields.Boolean, _WORDS["show_ca_total"])
    show_photo = described(fields.Boolean, _WORDS["show_photo"])
    level = described(fields.String, f"Of a level: its name. {_NULL}")
    marks = described(fields.Boolean, f"Of a level: {_MARKS}", allow_none=True)


class NewWeightSchema(Schema):
    """The weight of a category, in all levels or in one."""

    level = described(
        Text, "The level of classrooms; null for all others.", load_default=None, allow_none=True
    )
    category = Choice(COUNTING)
    weight = Points(FULL)


class NewTermWeightsSchema(Schema):
    """How much each term counts: one of them more than 0."""

    FIRST = Points(MAX_TERM_WEIGHT)
    SECOND = Points(MAX_TERM_WEIGHT)
    THIRD = Points(MAX_TERM_WEIGHT)


class NewPrincipalCommentSchema(Schema):
    """The principal's comment on an average from a threshold on."""

    lower_threshold = described(Points, "In percent; each once.", FULL)
    comment = Text(COMMENT_LENGTH, any_characters=True)


class ResultSettingsChangesSchema(Schema):
    """The settings to change: any of these. An array or an object is replaced as a whole."""

    weighting = described(Choice, _WORDS["weighting"], WEIGHTINGS, required=False)
    weights = described(ListOf, _WORDS["weights"], Nested(NewWeightSchema), most=MAX_WEIGHTS, required=False)
    percent_places = described(
        StrictInteger, _WORDS["percent_places"], 0, MAX_PLACES, required=False, allow_none=True
    )
    pass_mark = described(Points, _WORDS["pass_mark"], FULL, required=False, allow_none=True)
    minimum_subjects = described(StrictInteger, _WORDS["minimum_subjects"], 1, MAX_SUBJECTS, required=False)
    minimum_terms = described(StrictInteger, _WORDS["minimum_terms"], 1, MAX_TERMS, required=False)
    rank_by = described(Choice, _WORDS["rank_by"], RANKINGS, required=False)
    term_weights = described(Nested, _WORDS["term_weights"], NewTermWeightsSchema, required=False)
    positions = described(Choice, _WORDS["positions"], SHOWN_POSITIONS, required=False, allow_none=True)
    principal_comments = described(
        ListOf,
        _WORDS["principal_comments"],
        Nested(NewPrincipalCommentSchema),
        most=MAX_COMMENTS,
        required=False,
    )
    verification = described(StrictBoolean, _WORDS["verification"], required=False)
    name_order = described(Choice, _WORDS["name_order"], NAME_ORDERS, required=False)
    signatures = described(Choice, _WORDS["signatures"], SIGNATURES, required=False)
    show_teachers = described(StrictBoolean, _WORDS["show_teachers"], required=False)
    percent_from = described(Choice, _WORDS["percent_from"], PERCENT_FROM, required=False)
    show_ca_total = described(StrictBoolean, _WORDS["show_ca_total"], required=False)
    show_photo = described(StrictBoolean, _WORDS["show_photo"], required=False)
    marks = described(StrictBoolean, f"With a level alone: {_MARKS}", required=False, allow_none=True)


class OfLevelSchema(Schema):
    """The level whose settings are meant; without it the school's."""

    level = described(Text, "The level of a classroom.", required=False)
