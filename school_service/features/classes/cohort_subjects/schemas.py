"""Cohort subjects as the interface shows them."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import fields

from school_service.web.fields import Id, QueryBoolean, StrictBoolean, sought_text
from school_service.web.schemas import MineSchema, RecordSchema, Schema, described, list_of


class CohortSubjectSchema(RecordSchema):
    """A subject taught to a cohort."""

    id = fields.UUID()
    elective = described(fields.Boolean, "Taken only by students who chose it.")
    subject = described(fields.String, "The subject's name.")
    code = described(fields.String, "The subject's code.")
    cohort = fields.UUID()


class CohortSubjectChangesSchema(Schema):
    """Whether a cohort subject is an elective from now on."""

    elective = StrictBoolean()


class ArmWithoutTeacherSchema(RecordSchema):
    """An arm in which a subject has takers and nobody teaches it."""

    batch = fields.UUID()
    batch_name = described(fields.String, "The arm's name.")


class ListedCohortSubjectSchema(CohortSubjectSchema):
    """A cohort subject in a list of them."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"arms_without_teacher"})

    arms_without_teacher = list_of(
        ArmWithoutTeacherSchema,
        "Where `without_teacher` is true: the arms in which somebody takes it and nobody teaches it "
        "today, by name.",
    )


class NewCohortSubjectSchema(Schema):
    """A subject to teach to a cohort."""

    cohort_id = Id()
    subject_id = Id()
    elective = StrictBoolean()


class CohortSubjectFilterSchema(MineSchema):
    """The cohort subjects to list."""

    batch = described(Id, "A cohort, or any batch of it.", required=False)
    base = described(Id, "The subject that is taught.", required=False)
    session = described(sought_text, "The academic session's id or its name.", required=False)
    without_teacher = described(
        QueryBoolean,
        "Those alone that nobody teaches today in an arm in which somebody takes them.",
        required=False,
    )
