"""Cohort subjects as the interface shows them."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import fields

from school_service.web.fields import Id, QueryBoolean, StrictBoolean, sought_text
from school_service.web.schemas import MineSchema, RecordSchema, Schema


class CohortSubjectSchema(RecordSchema):
    """A subject taught to a cohort."""

    id = fields.UUID()
    elective = fields.Boolean(metadata={"description": "Taken only by those who chose it."})
    subject = fields.String(metadata={"description": "The subject's name."})
    code = fields.String(metadata={"description": "The subject's code."})
    cohort = fields.UUID()


class CohortSubjectChangesSchema(Schema):
    """Whether a cohort subject is an elective from now on."""

    elective = StrictBoolean()


class ArmWithoutTeacherSchema(RecordSchema):
    """An arm in which a subject has takers and nobody teaches it."""

    batch = fields.UUID()
    batch_name = fields.String(metadata={"description": "The arm's name."})


class ListedCohortSubjectSchema(CohortSubjectSchema):
    """A cohort subject in a list of them."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"arms_without_teacher"})

    arms_without_teacher = fields.List(
        fields.Nested(ArmWithoutTeacherSchema),
        metadata={
            "description": "Where `without_teacher` is true: the arms in which somebody takes it and nobody teaches it "
            "today, by name."
        },
    )


class NewCohortSubjectSchema(Schema):
    """A subject to teach to a cohort."""

    cohort_id = Id()
    subject_id = Id()
    elective = StrictBoolean()


class CohortSubjectFilterSchema(MineSchema):
    """The cohort subjects to list."""

    batch = Id(required=False, metadata={"description": "A cohort, or any batch of it."})
    base = Id(required=False, metadata={"description": "The subject that is taught."})
    session = sought_text(required=False, metadata={"description": "The academic session's id or its name."})
    without_teacher = QueryBoolean(
        required=False,
        metadata={
            "description": "Those alone that nobody teaches today in an arm in which somebody takes them."
        },
    )
