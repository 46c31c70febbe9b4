"""Guardians as the interface shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

from school_service.features.people.gains.schemas import PlantedSchema
from school_service.features.people.models import STOP_REASON_LENGTH
from school_service.features.people.users.schemas import password_text
from school_service.web.fields import (
    MAX_IDS,
    Email,
    Id,
    ListOf,
    Nested,
    StrictBoolean,
    Text,
    free_text,
    sought_text,
)
from school_service.web.schemas import RecordSchema, Schema, described, list_of

_RECEIVES = "Whether reports on this student are sent to the guardian; not while a stop holds."
_STOPPED = "Since when the guardian's access to this student is stopped."


class ChildSchema(RecordSchema):
    """A student looked after by a guardian."""

    student = fields.UUID()
    admission_number = fields.String()
    first_name = fields.String()
    last_name = fields.String()
    relationship = fields.String(allow_none=True)
    primary = described(fields.Boolean, "Whether the student's record shows this guardian.")
    receives_reports = described(fields.Boolean, _RECEIVES)
    stopped_at = described(fields.AwareDateTime, _STOPPED, allow_none=True)


class GuardianSchema(RecordSchema):
    """A person looking after students."""

    id = fields.UUID()
    full_name = fields.String()
    phone_number = fields.String(allow_none=True)
    email_address = fields.String(allow_none=True)
    physical_address = fields.String(allow_none=True)
    user = described(fields.UUID, "The account by which the guardian reads of the children.", allow_none=True)
    children = list_of(ChildSchema)
    created_at = fields.AwareDateTime(data_key="createdAt")


class StudentGuardianSchema(RecordSchema):
    """A guardian of a student."""

    guardian = fields.UUID()
    full_name = fields.String()
    phone_number = fields.String(allow_none=True)
    email_address = fields.String(allow_none=True)
    physical_address = fields.String(allow_none=True)
    user = described(fields.UUID, "The account by which the guardian reads of the children.", allow_none=True)
    relationship = fields.String(allow_none=True)
    primary = described(fields.Boolean, "Whether the student's record shows this guardian.")
    receives_reports = described(fields.Boolean, _RECEIVES)
    stopped_at = described(fields.AwareDateTime, _STOPPED, allow_none=True)
    stop_reason = fields.String(allow_none=True)


class GuardianWithAccountSchema(PlantedSchema, GuardianSchema):
    """A guardian with an account given to them."""


class LinkedGuardianSchema(PlantedSchema, StudentGuardianSchema):
    """A guardian of a student, able to read of the student now."""


class WholeName(Text):
    """A guardian's name; its words are one space apart, so that another space makes nobody else."""

    def _deserialize(self, *arguments: Any, **options: Any) -> Any:
        return " ".join(super()._deserialize(*arguments, **options).split())


class GuardianChangesSchema(Schema):
    """Changes of a guardian: any of these."""

    full_name = WholeName()
    phone_number = Text(required=False, allow_none=True)
    email_address = Email(required=False, allow_none=True)
    physical_address = free_text(required=False, allow_none=True)


class LinkSchema(Schema):
    """The guardianship of a student; values left out stay as they are."""

    relationship = Text(allow_none=True)
    primary = described(
        StrictBoolean, "Whether the student's record shows this guardian, and no other.", required=False
    )
    receives_reports = described(StrictBoolean, "By default true.", required=False)


class NewChildSchema(LinkSchema):
    """A student to be looked after by a new guardian."""

    student = Id()


class GuardianToAddSchema(GuardianChangesSchema):
    """A guardian to add, with the students they look after."""

    students = ListOf(Nested(NewChildSchema), most=MAX_IDS, required=False)


class StopSchema(Schema):
    """Why a guardian's access to a student is stopped."""

    reason = Text(STOP_REASON_LENGTH, any_characters=True)


class AccountOfGuardianSchema(Schema):
    """The account of a guardian: an existing one, or a new one by its username."""

    user = described(Id, "A user who is there, such as a teacher.", required=False)
    username = described(Text, "Of a new user.", required=False)
    password = described(
        password_text, "Of the new user. Without one, nobody can sign in to the account.", required=False
    )


class GuardianFilterSchema(Schema):
    """The guardians to list."""

    search = described(
        sought_text,
        "Words in any order, each part of the name, the phone number or the e-mail address; case "
        "and accents do not count.",
        least=0,
        required=False,
    )
    student = described(Id, "Guardians of this student.", required=False)
