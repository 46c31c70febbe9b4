"""Contacts as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.contacts.models import EMAIL_LENGTH
from school_service.web.fields import Email, Id, Schema, Text, free_text


class ContactSchema(Schema):
    """How the owner of a user account can be reached."""

    id = fields.UUID(required=True)
    owner = fields.UUID(required=True, metadata={"description": "The user."})
    email_address = fields.Email(required=True)
    phone_number = fields.String(required=True)
    physical_address = fields.String(required=True)


class ContactDetailsSchema(Schema):
    """How somebody can be reached."""

    email_address = Email(required=True)
    phone_number = Text(required=True)
    physical_address = free_text(required=True)


class NewContactSchema(ContactDetailsSchema):
    """A contact to create."""

    owner = Id(required=True, metadata={"description": "The user."})


class ContactFilterSchema(Schema):
    """Which contact to show."""

    user_id = Id(required=True, metadata={"description": "The owner."})
    email_address = Text(EMAIL_LENGTH, metadata={"description": "Exactly this e-mail address."})
    phone_number = Text(metadata={"description": "Exactly this phone number."})
