"""Contacts as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.core.columns import EMAIL_LENGTH
from school_service.web.fields import Email, Id, Text, free_text, sought_text
from school_service.web.schemas import RecordSchema, Schema, described


class ContactSchema(RecordSchema):
    """How the owner of a user account can be reached."""

    id = fields.UUID()
    owner = described(fields.UUID, "The user.")
    email_address = fields.Email(allow_none=True)
    phone_number = fields.String(allow_none=True)
    physical_address = fields.String(allow_none=True)


class ContactDetailsSchema(Schema):
    """How somebody can be reached."""

    email_address = Email()
    phone_number = Text()
    physical_address = free_text()


class NewContactSchema(ContactDetailsSchema):
    """A contact to create."""

    owner = described(Id, "The user.")


class ContactChangesSchema(ContactDetailsSchema):
    """Changes of a contact: any of its members but the owner."""


class ContactFilterSchema(Schema):
    """The contact to show."""

    user_id = described(Id, "The owner.")
    email_address = described(sought_text, "Exactly this e-mail address.", most=EMAIL_LENGTH, required=False)
    phone_number = described(sought_text, "Exactly this phone number.", required=False)
