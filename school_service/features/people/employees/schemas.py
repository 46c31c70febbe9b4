"""Employees as the interface shows them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from marshmallow import Schema as MarshmallowSchema
from marshmallow import ValidationError, fields, validates_schema

from school_service.features.people.contacts.schemas import ContactDetailsSchema
from school_service.features.people.employees.service import BORN_AFTER
from school_service.web.fields import Id, IsoDate, Nested, StrictInteger, Text, free_text
from school_service.web.schemas import RecordSchema, Schema, described, validated


class EmployeeSchema(RecordSchema):
    """A member of staff.

    Null are those members that the import of an employee left blank; PATCH fills them.
    """

    id = fields.UUID()
    first_name = fields.String()
    middle_name = described(fields.String, "Empty where there is none.")
    last_name = fields.String()
    title = fields.String(allow_none=True)
    dob = fields.Date(allow_none=True)
    join_date = fields.Date(allow_none=True)
    gender = fields.String()
    marital_status = fields.String(allow_none=True)
    department = fields.UUID(allow_none=True)
    blood_group = fields.String(allow_none=True)
    lga = fields.UUID(allow_none=True)
    state = fields.UUID(allow_none=True)
    nationality = fields.UUID(allow_none=True)
    religion = fields.String(allow_none=True)
    position = fields.UUID(allow_none=True)
    category = fields.UUID()
    status = fields.String(allow_none=True)
    bank_details = fields.UUID()
    next_of_kin = fields.UUID()
    contact = fields.UUID()
    username = described(fields.String, "Of the user account, made of the name.")
    role = described(fields.UUID, "The role that the user account was given first.", allow_none=True)
    user = described(fields.UUID, "The id of the user account.")


class BankAccountSchema(RecordSchema):
    """The account for an employee's pay."""

    id = fields.UUID()
    bank_name = fields.String(allow_none=True)
    account_number = fields.String(allow_none=True)
    account_name = fields.String(allow_none=True)
    bank_sort_code = fields.String(allow_none=True)
    employee = fields.UUID()
    account_type = fields.String(allow_none=True)


class NextOfKinSchema(RecordSchema):
    """The person to tell if something happens to an employee."""

    id = fields.UUID()
    full_name = fields.String(allow_none=True)
    relationship = fields.String(allow_none=True)
    phone_number = fields.String(allow_none=True)
    physical_address = fields.String(allow_none=True)
    created_at = fields.AwareDateTime()


def employee_ref() -> StrictInteger:
    """The number of an employee in the client's own system."""
    meaning = "A number of the caller's own; stored as it is, and links nothing."
    return described(StrictInteger, meaning, attribute="employee_ref")


class NewBankAccountSchema(Schema):
    """The bank account of an employee to create."""

    bank_name = Text()
    account_name = Text()
    account_number = Text()
    bank_sort_code = Text()
    employee_no = Text()
    account_type = Text()
    employee = employee_ref()


class BankAccountChangesSchema(NewBankAccountSchema):
    """Changes of an employee's bank account: any of its members."""


class NewNextOfKinSchema(Schema):
    """The next of kin of an employee to create."""

    full_name = Text()
    relationship = Text()
    phone_number = Text()
    physical_address = free_text()
    employee = employee_ref()


class NextOfKinChangesSchema(NewNextOfKinSchema):
    """Changes of an employee's next of kin: any of its members."""


class ParticularsSchema(Schema):
    """The particulars of an employee."""

    first_name = Text()
    middle_name = described(Text, "May be empty.", least=0)
    last_name = Text()
    title = described(Text, "Such as Mr, Mrs or Dr.")
    gender = Text()
    marital_status = Text()
    blood_group = Text()
    religion = Text()
    status = described(Text, "Such as ACTIVE.")
    dob = described(IsoDate, "Date of birth; not after `join_date`.")
    join_date = IsoDate()
    department = Id()
    category = Id()
    position = Id()
    lga = described(Id, "A local government area, which lies in `state`.")
    state = Id()
    nationality = Id()


class EmployeeChangesSchema(ParticularsSchema):
    """Changes of an employee: any of these.

    Bank account, next of kin and contact are changed at addresses of their own.
    """


class NewEmployeeSchema(ParticularsSchema):
    """An employee to create, with a user account."""

    bank_details = Nested(NewBankAccountSchema)
    next_of_kin = Nested(NewNextOfKinSchema)
    contact = Nested(ContactDetailsSchema)


_REFERENCES = frozenset({"category", "department", "position", "lga", "state", "nationality"})
_NEEDED = frozenset({"first_name", "last_name", "gender"})


class _ImportedEmployeeSchema(NewEmployeeSchema):
    """An employee in a sheet, without the names of other records; most members may be left out."""

    class Meta:
        """The sheet finds other records by their names."""

        exclude = tuple(_REFERENCES)

    @validates_schema(skip_on_field_errors=False)
    def check_dates(self, employee: dict[str, Any], **_options: Any) -> None:
        """Refuse a birth after joining."""
        if "dob" in employee and employee["dob"] > employee.get("join_date", employee["dob"]):
            raise ValidationError(f"{BORN_AFTER.capitalize()}.", "dob")


def _members(schema: MarshmallowSchema, prefix: str = "") -> Iterator[str]:
    for name, field in schema.fields.items():
        yield f"{prefix}{name}"
        if isinstance(field, Nested):
            yield from _members(field.schema, f"{prefix}{name}.")


validate_imported = partial(
    validated,
    _ImportedEmployeeSchema(
        partial=tuple(name for name in _members(_ImportedEmployeeSchema()) if name not in _NEEDED)
    ),
)
"""Validates an employee of a sheet."""


class FormTeacherSchema(RecordSchema):
    """An employee looking after a batch."""

    batch_id = fields.UUID()
    first_name = fields.String()
    last_name = fields.String()
    image_url = fields.Url(allow_none=True)
    teacher_id = described(fields.UUID, "The employee's id.")


class TeacherOfBatchSchema(Schema):
    """An employee to make a form teacher."""

    teacher_id = described(Id, "The employee's id.")
