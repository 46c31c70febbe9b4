"""Assignments of subject teachers as the interface shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from school_service.features.classes.models import UNCOPIED
from school_service.web.fields import MAX_IDS, Id, IsoDate, ListOf, Nested, QueryBoolean, sought_text
from school_service.web.schemas import RecordSchema, Schema

_SESSION = "The academic session's id or its name."
_STARTS = "The first day, by the school's day; null: since ever."
_ENDS = "The last day, by the school's day; null: without end."


def teacher_names() -> fields.Field[Any]:
    """Make the field for the names of a subject's teachers."""
    return fields.List(
        fields.String(),
        metadata={
            "description": "The names of who teaches it, with their titles, by last name: of those who are assigned to "
            "the arm or, where nobody is, to all arms."
        },
    )


class SubjectTeacherSchema(RecordSchema):
    """The assignment of an employee to teach a subject of a cohort, to one arm or to all."""

    id = fields.UUID()
    cohort_subject = fields.UUID(metadata={"description": "The id of the cohort subject."})
    base = fields.UUID(metadata={"description": "The subject that is taught."})
    subject = fields.String(metadata={"description": "Its name."})
    code = fields.String(metadata={"description": "The subject's code."})
    cohort = fields.UUID()
    classroom = fields.String(metadata={"description": "The classroom's name."})
    session = fields.String(metadata={"description": "The id of the academic session."})
    batch = fields.UUID(allow_none=True, metadata={"description": "The arm; null: all arms."})
    batch_name = fields.String(allow_none=True, metadata={"description": "The arm's name."})
    employee = fields.UUID(metadata={"description": "The id of the employee."})
    title = fields.String(metadata={"description": "The employee's title."})
    first_name = fields.String()
    last_name = fields.String()
    starts_on = fields.Date(allow_none=True, metadata={"description": _STARTS})
    ends_on = fields.Date(allow_none=True, metadata={"description": _ENDS})
    created_at = fields.AwareDateTime(data_key="createdAt")


class SubjectTeacherFilterSchema(Schema):
    """The assignments to list."""

    cohort_subject = Id(required=False, metadata={"description": "The cohort subject that is taught."})
    batch = Id(
        required=False,
        metadata={"description": "The arm that is taught, by its own assignments or those of all."},
    )
    employee = Id(required=False, metadata={"description": "Who teaches."})
    session = sought_text(required=False, metadata={"description": _SESSION})


class NewSubjectTeacherSchema(Schema):
    """An assignment, new or changed."""

    cohort_subject = Id(metadata={"description": "The cohort subject that is taught."})
    employee = Id(metadata={"description": "Who teaches, of whatever category."})
    batch = Id(
        load_default=None,
        allow_none=True,
        metadata={"description": "An arm of its cohort; without it, all arms."},
    )
    starts_on = IsoDate(load_default=None, allow_none=True, metadata={"description": _STARTS})
    ends_on = IsoDate(load_default=None, allow_none=True, metadata={"description": _ENDS})


class SubjectTeachersSchema(Schema):
    """Assignments to add or change: each is known by its cohort subject, employee and batch."""

    assignments = ListOf(
        Nested(NewSubjectTeacherSchema),
        validate=validate.Length(min=1, max=MAX_IDS),
        metadata={"description": "All or none of them; others stay as they are."},
    )


class LeavingSchema(Schema):
    """The future of what an employee who leaves teaches and looks after."""

    hand_over = Id(
        required=False,
        metadata={
            "description": "An employee who has the subjects and form classes from today on; needs write:teachers."
        },
    )
    release = QueryBoolean(
        load_default=False,
        metadata={"description": "Nobody has the subjects and form classes then; needs delete:teachers."},
    )

    @validates_schema
    def check_one(self, options: dict[str, Any], **_options: Any) -> None:
        """Let it be one of both at most."""
        if options["release"] and "hand_over" in options:
            raise ValidationError("Give either hand_over or release.", "hand_over")


class CopySchema(Schema):
    """The session to copy the assignments from, and the one to copy into."""

    from_session = sought_text(metadata={"description": _SESSION})
    to_session = sought_text(metadata={"description": _SESSION})


class CopyOptionsSchema(Schema):
    """Whether to copy at all."""

    dry_run = QueryBoolean(
        load_default=False, metadata={"description": "Answers what would be copied, and copies nothing."}
    )


class UncopiedSchema(RecordSchema):
    """An assignment left out of the copy."""

    classroom = fields.String(metadata={"description": "The classroom's name."})
    subject = fields.String(metadata={"description": "The subject's name."})
    batch_name = fields.String(allow_none=True, metadata={"description": "The arm's name; null: all arms."})
    employee_name = fields.String(metadata={"description": "First and last name."})
    code = fields.String(
        validate=validate.OneOf(UNCOPIED),
        metadata={
            "description": "What the other session lacks: the cohort, its subject or its arm; LEFT: the employee is "
            "deleted; ENDED: it ended before today, and before the last day of its session."
        },
    )


class CopiedSchema(RecordSchema):
    """The outcome of copying the assignments of a session."""

    rows = fields.Integer(metadata={"description": "How many the session has."})
    copied = fields.Integer(metadata={"description": "How many are new in the other session."})
    already_there = fields.Integer(metadata={"description": "How many the other session had already."})
    left_out = fields.List(
        fields.Nested(UncopiedSchema),
        metadata={"description": "Those that were not copied, each with the reason."},
    )
