"""Employees as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.contacts.schemas import ContactDetailsSchema
from school_service.web.fields import Day, Id, Schema, Text, Whole, free_text


class EmployeeSchema(Schema):
    """A member of staff."""

    id = fields.UUID(required=True)
    first_name = fields.String(required=True)
    middle_name = fields.String(required=True, metadata={"description": "Empty where there is none."})
    last_name = fields.String(required=True)
    title = fields.String(required=True)
    dob = fields.Date(required=True)
    join_date = fields.Date(required=True)
    gender = fields.String(required=True)
    marital_status = fields.String(required=True)
    department = fields.UUID(required=True)
    blood_group = fields.String(required=True)
    lga = fields.UUID(required=True)
    state = fields.UUID(required=True)
    nationality = fields.UUID(required=True)
    religion = fields.String(required=True)
    position = fields.UUID(required=True)
    category = fields.UUID(required=True)
    status = fields.String(required=True)
    bank_details = fields.UUID(required=True)
    next_of_kin = fields.UUID(required=True)
    contact = fields.UUID(required=True)
    username = fields.String(
        required=True, metadata={"description": "Of the user account, made of the name."}
    )
    role = fields.UUID(
        required=True,
        allow_none=True,
        metadata={"description": "The role that the user account was given first."},
    )


class BankAccountSchema(Schema):
    """The account that an employee is paid into."""

    id = fields.UUID(required=True)
    bank_name = fields.String(required=True)
    account_number = fields.String(required=True)
    account_name = fields.String(required=True)
    bank_sort_code = fields.String(required=True)
    employee = fields.UUID(required=True)
    account_type = fields.String(required=True)


class NextOfKinSchema(Schema):
    """Whom to tell when something happens to an employee."""

    id = fields.UUID(required=True)
    full_name = fields.String(required=True)
    relationship = fields.String(required=True)
    phone_number = fields.String(required=True)
    physical_address = fields.String(required=True)
    created_at = fields.AwareDateTime(required=True)


def employee_ref() -> Whole:
    """The number of an employee in the caller's own system."""
    meaning = "A number of the caller's own; kept as it is, and links nothing."
    return Whole(required=True, attribute="employee_ref", metadata={"description": meaning})


class NewBankAccountSchema(Schema):
    """The bank account of an employee to create."""

    bank_name = Text(required=True)
    account_name = Text(required=True)
    account_number = Text(required=True)
    bank_sort_code = Text(required=True)
    employee_no = Text(required=True)
    account_type = Text(required=True)
    employee = employee_ref()


class NewNextOfKinSchema(Schema):
    """The next of kin of an employee to create."""

    full_name = Text(required=True)
    relationship = Text(required=True)
    phone_number = Text(required=True)
    physical_address = free_text(required=True)
    employee = employee_ref()


class NewEmployeeSchema(Schema):
    """An employee to create, with a user account."""

    first_name = Text(required=True)
    middle_name = Text(least=0, required=True, metadata={"description": "May be empty."})
    last_name = Text(required=True)
    title = Text(required=True, metadata={"description": "Such as Mr, Mrs or Dr."})
    gender = Text(required=True)
    marital_status = Text(required=True)
    blood_group = Text(required=True)
    religion = Text(required=True)
    status = Text(required=True, metadata={"description": "Such as ACTIVE."})
    dob = Day(required=True, metadata={"description": "Date of birth; not after `join_date`."})
    join_date = Day(required=True)
    department = Id(required=True)
    category = Id(required=True)
    position = Id(required=True)
    lga = Id(required=True, metadata={"description": "A local government area, which lies in `state`."})
    state = Id(required=True)
    nationality = Id(required=True)
    bank_details = fields.Nested(NewBankAccountSchema, required=True)
    next_of_kin = fields.Nested(NewNextOfKinSchema, required=True)
    contact = fields.Nested(ContactDetailsSchema, required=True)
