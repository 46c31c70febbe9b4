"""Students as the interface shows them."""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

from school_service.core.genders import listed_gender
from school_service.features.people.gains.schemas import PlantedSchema
from school_service.features.people.guardians.schemas import WholeName
from school_service.features.people.models import ACTIVE, SCHOOLING_LENGTH, STUDENT_STATUSES, WITHDRAWN
from school_service.features.people.students.leaving import OF_LEAVERS
from school_service.features.people.users.schemas import password_text
from school_service.web.fields import Choice, Email, Id, IsoDate, Nested, Text, sought_text
from school_service.web.schemas import MineSchema, RecordSchema, Schema, described, text_of, validated
from tenants.clock import now

EARLIEST_DOB = date(1900, 1, 1)


class PrimaryGuardianSchema(RecordSchema):
    """The person looking after a student first of all."""

    full_name = fields.String()
    relationship = fields.String(allow_none=True)
    phone_number = fields.String(allow_none=True)
    email_address = fields.String(allow_none=True)


class NamedStudentSchema(RecordSchema):
    """A student, as other records name them."""

    id = fields.UUID()
    admission_number = fields.String()
    first_name = fields.String()
    last_name = fields.String()


class StudentSchema(RecordSchema):
    """A student."""

    id = fields.UUID()
    number = described(fields.Integer, "Counts the school's students.")
    first_name = fields.String()
    middle_name = fields.String(allow_none=True)
    last_name = fields.String()
    admission_number = fields.String()
    gender = fields.String(allow_none=True)
    dob = fields.Date(allow_none=True)
    admitted_on = fields.Date(allow_none=True)
    former_school = fields.String(allow_none=True)
    left_on = fields.Date(allow_none=True)
    leaving_reason = fields.String(allow_none=True)
    status = text_of(STUDENT_STATUSES)
    batch = fields.UUID(allow_none=True)
    cohort = fields.UUID(allow_none=True)
    user = described(fields.UUID, "The student's user account.")
    guardian = fields.Nested(PrimaryGuardianSchema, allow_none=True)
    created_at = fields.AwareDateTime(data_key="createdAt")
    photo = fields.Url(allow_none=True)


class EnrolledStudentSchema(StudentSchema):
    """A student in a class."""

    started_on = described(
        fields.Date, "The first day in the class; null where it is not known.", allow_none=True
    )
    ended_on = described(
        fields.Date, "The last day in the class, of a student who has left.", allow_none=True
    )


class WrittenStudentSchema(PlantedSchema, StudentSchema):
    """A student, with a guardian able to read of another child now."""


class WholeRecord(Nested):
    """A nested record to be given as a whole, even if the record around it may be given in part."""

    def _deserialize(self, *arguments: Any, **options: Any) -> Any:
        return super()._deserialize(*arguments, **{**options, "partial": False})


class NewGuardianSchema(Schema):
    """A person looking after a student; a name at least."""

    full_name = WholeName()
    relationship = Text(required=False, allow_none=True)
    phone_number = Text(required=False, allow_none=True)
    email_address = Email(required=False, allow_none=True)


def _validate_day(day: date) -> None:
    if not day >= EARLIEST_DOB:
        raise ma.ValidationError("Is before 1900.")


def _validate_dob(day: date) -> None:
    _validate_day(day)
    if day > now().date():
        raise ma.ValidationError("Is in the future.")


class Gender(Text):
    """A gender, by any of the words for it; FEMALE or MALE is stored."""

    default_error_messages = {"gender": "Is neither FEMALE nor MALE."}

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        text = super()._deserialize(value, *arguments, **options)
        listed = listed_gender(text)
        if text and listed is None:
            raise self.make_error("gender")
        return listed or text


def dated(description: str) -> IsoDate:
    """A date of a student's time at the school."""
    about = {"description": description}
    return IsoDate(required=False, allow_none=True, validate=_validate_day, metadata=about)


def schooling(description: str) -> Text:
    """A text about a student's time at a school."""
    about = {"description": description}
    return Text(SCHOOLING_LENGTH, any_characters=True, required=False, allow_none=True, metadata=about)


def _of_leavers(field: Any) -> Any:
    """Let a field of a new student be null alone."""
    field.validators.append(validate.OneOf([None], error=f"{OF_LEAVERS.capitalize()}."))
    return field


class PersonSchema(Schema):
    """The details of a student."""

    first_name = Text()
    middle_name = Text(least=0, required=False, allow_none=True)
    last_name = Text()
    admission_number = described(Text, "Unique in the school.")
    gender = described(
        Gender,
        "FEMALE or MALE; F, M, girl, boy and the like will do, in any case.",
        required=False,
        allow_none=True,
    )
    dob = described(
        IsoDate,
        "Date of birth: from 1900 on, and not in the future.",
        required=False,
        allow_none=True,
        validate=_validate_dob,
    )
    admitted_on = dated("Date of admission; not after `left_on`.")
    former_school = schooling("The school before this one.")
    left_on = dated("Date of leaving, the last day in the class too.")
    leaving_reason = schooling("The reason for leaving; shown to the school alone.")
    guardian = WholeRecord(NewGuardianSchema, required=False, allow_none=True)


class NewStudentSchema(PersonSchema):
    """A student to create, with a user account."""

    username = described(Text, "Of the user account; the admission number where not given.", required=False)
    password = described(password_text, "Without one, nobody can sign in to the account.", required=False)
    left_on = _of_leavers(dated("Null: a new student has not left."))
    leaving_reason = _of_leavers(schooling("Null: a new student has not left."))


class StudentChangesSchema(PersonSchema):
    """Changes of a student: any of these. A guardian is replaced as a whole, null takes it away.

    `left_on` and `leaving_reason` are of students who have withdrawn or graduated; ACTIVE again empties them.
    """

    status = Choice((ACTIVE, WITHDRAWN), required=False)


class StudentFilterSchema(MineSchema):
    """The students to list."""

    search = described(
        sought_text,
        "Words in any order, each part of a name or the admission number; case and accents do not count.",
        least=0,
        required=False,
    )
    status = Choice(STUDENT_STATUSES, required=False)
    batch = described(Id, "Students who are in this batch now; a cohort's id is its first.", required=False)
    cohort = described(Id, "Students who are in this cohort now, in any of its batches.", required=False)


class _ImportedStudentSchema(NewStudentSchema):
    """A student from a sheet, with a second guardian perhaps."""

    guardian_2 = WholeRecord(NewGuardianSchema, required=False)


class _ListedChangesSchema(StudentChangesSchema):
    """Changes of a student from a class list, with another guardian perhaps."""

    guardian_2 = WholeRecord(NewGuardianSchema, required=False)


validate_student = partial(validated, _ImportedStudentSchema())
"""Validates a record as `POST /students` validates its body, and its `guardian_2`, a second guardian, as the first."""
validate_changes = partial(validated, _ListedChangesSchema(partial=True))
"""Validates changes as `PATCH /students/{id}` validates its body, and `guardian_2` as the guardian."""
