"""Assignments of subject teachers as the interface shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from school_service.features.classes.models import UNCOPIED
from school_service.web.fields import MAX_IDS, Id, IsoDate, ListOf, Nested, QueryBoolean, sought_text
from school_service.web.schemas import RecordSchema, Schema, described, list_of, text_of, texts

_SESSION = "The academic session's id or its name."
_STARTS = "The first day, by the school's day; null: since ever."
_ENDS = "The last day, by the school's day; null: without end."


def teacher_names() -> fields.Field[Any]:
    """Make the field for the names of a subject's teachers."""
    return texts(
        "The names of its teachers, with their titles, by last name: of those who are assigned to "
        "the arm or, where nobody is, to all arms."
    )


class SubjectTeacherSchema(RecordSchema):
    """The assignment of an employee to teach a subject of a cohort, to one arm or to all."""

    id = fields.UUID()
    cohort_subject = described(fields.UUID, "The id of the cohort subject.")
    base = described(fields.UUID, "The subject that is taught.")
    subject = described(fields.String, "Its name.")
    code = described(fields.String, "The subject's code.")
    cohort = fields.UUID()
    classroom = described(fields.String, "The classroom's name.")
    session = described(fields.String, "The id of the academic session.")
    batch = described(fields.UUID, "The arm; null: all arms.", allow_none=True)
    batch_name = described(fields.String, "The arm's name.", allow_none=True)
    employee = described(fields.UUID, "The id of the employee.")
    title = described(fields.String, "The employee's title.")
    first_name = fields.String()
    last_name = fields.String()
    starts_on = described(fields.Date, _STARTS, allow_none=True)
    ends_on = described(fields.Date, _ENDS, allow_none=True)
    created_at = fields.AwareDateTime(data_key="createdAt")


class SubjectTeacherFilterSchema(Schema):
    """The assignments to list."""

    cohort_subject = described(Id, "The cohort subject that is taught.", required=False)
    batch = described(Id, "The arm that is taught, by assignments to it or to all arms.", required=False)
    employee = described(Id, "The teacher.", required=False)
    session = described(sought_text, _SESSION, required=False)


class NewSubjectTeacherSchema(Schema):
    """An assignment, new or changed."""

    cohort_subject = described(Id, "The cohort subject that is taught.")
    employee = described(Id, "The teacher, of any category.")
    batch = described(Id, "An arm of its cohort; without it, all arms.", load_default=None, allow_none=True)
    starts_on = described(IsoDate, _STARTS, load_default=None, allow_none=True)
    ends_on = described(IsoDate, _ENDS, load_default=None, allow_none=True)


class SubjectTeachersSchema(Schema):
    """Assignments to add or change: each is known by its cohort subject, employee and batch."""

    assignments = described(
        ListOf,
        "All or none of them; others stay as they are.",
        Nested(NewSubjectTeacherSchema),
        least=1,
        most=MAX_IDS,
    )


class LeavingSchema(Schema):
    """The future of the subjects and form classes of a leaving employee."""

    hand_over = described(
        Id,
        "An employee who has the subjects and form classes from today on; needs write:teachers.",
        required=False,
    )
    release = described(
        QueryBoolean,
        "Nobody has the subjects and form classes then; needs delete:teachers.",
        load_default=False,
    )

    @validates_schema
    def check_one(self, options: dict[str, Any], **_options: Any) -> None:
        """Let it be one of both at most."""
        if options["release"] and "hand_over" in options:
            raise ValidationError("Give either hand_over or release.", "hand_over")


class CopySchema(Schema):
    """The session to copy the assignments from, and the one to copy into."""

    from_session = described(sought_text, _SESSION)
    to_session = described(sought_text, _SESSION)


class AssignmentCopyOptionsSchema(Schema):
    """Whether to copy at all."""

    dry_run = described(
        QueryBoolean, "Answers the assignments to copy, and copies nothing.", load_default=False
    )


class UncopiedSchema(RecordSchema):
    """An assignment left out of the copy."""

    classroom = described(fields.String, "The classroom's name.")
    subject = described(fields.String, "The subject's name.")
    batch_name = described(fields.String, "The arm's name; null: all arms.", allow_none=True)
    employee_name = described(fields.String, "First and last name.")
    code = text_of(
        UNCOPIED,
        "The gap in the other session: the cohort, its subject or its arm; LEFT: the employee is "
        "deleted; ENDED: it ended before today, and before the last day of its session.",
    )


class CopiedSchema(RecordSchema):
    """The outcome of copying the assignments of a session."""

    rows = described(fields.Integer, "How many the session has.")
    copied = described(fields.Integer, "How many are new in the other session.")
    already_there = described(fields.Integer, "How many the other session had already.")
    left_out = list_of(UncopiedSchema, "Assignments that were not copied, each with the reason.")
