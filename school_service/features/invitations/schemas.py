"""Invitations as the interface shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from school_service.features.invitations.codes import MOST_TYPED
from school_service.features.invitations.service import FORMATS, MOST_AT_ONCE, PDF
from school_service.features.people.users.schemas import password_text
from school_service.web.fields import Choice, Email, Id, ListOf, StrictBoolean, StrictInteger, Text
from school_service.web.schemas import RecordSchema, Schema


class InvitationCodeSchema(RecordSchema):
    """An invitation with its code, answered once."""

    id = fields.UUID()
    user = fields.UUID()
    username = fields.String()
    name = fields.String(metadata={"description": "First and last name."})
    code = fields.String(metadata={"description": "In capitals and digits: K7QM-4TZ9-XDR2."})
    url = fields.Url(
        allow_none=True,
        metadata={"description": "The page that takes the code; null where the service has no such pages."},
    )
    expires_at = fields.AwareDateTime()


class InvitationSchema(RecordSchema):
    """An open invitation. Its code is known to its receiver alone."""

    id = fields.UUID()
    user = fields.UUID()
    username = fields.String()
    name = fields.String(metadata={"description": "First and last name."})
    email = fields.String(
        allow_none=True,
        metadata={
            "description": "By whose outside sign-in, verified, the account is linked; A to Z in lower case."
        },
    )
    created_at = fields.AwareDateTime()
    created_by_name = fields.String()
    expires_at = fields.AwareDateTime()


class NewInvitationsSchema(Schema):
    """The users to invite, or the batch of the students to invite."""

    users = ListOf(Id(), required=False, validate=validate.Length(min=1, max=MOST_AT_ONCE))
    batch = Id(required=False)
    everybody = StrictBoolean(
        required=False,
        load_default=False,
        metadata={"description": "Those who have a password too, who then set another."},
    )
    days = StrictInteger(
        1,
        30,
        required=False,
        load_default=14,
        metadata={"description": "For how long the codes are valid."},
    )
    # To the letter: what differs in form alone is another mailbox.
    emails = ListOf(
        Email(composed=False),
        required=False,
        validate=validate.Length(min=1, max=MOST_AT_ONCE),
        metadata={"description": "One for each of the users, in their order."},
    )


class GuardianInvitationSchema(InvitationCodeSchema):
    """An invitation of a guardian to their new account, with its code, answered once."""

    guardian = fields.UUID()


class NewGuardianAccountsSchema(Schema):
    """The class whose guardians get accounts."""

    batch = Id(metadata={"description": "A cohort's id is its first batch."})
    days = StrictInteger(
        1,
        30,
        required=False,
        load_default=14,
        metadata={"description": "For how long the codes are valid."},
    )


class InvitationFilterSchema(Schema):
    """The filter of a list of invitations."""

    batch = Id(required=False, metadata={"description": "Of its students alone."})
    user = Id(required=False)


class SlipsFormatSchema(Schema):
    """The kind of the file."""

    format = Choice(
        FORMATS,
        required=False,
        load_default=PDF,
        metadata={"description": "Slips to cut apart, or a workbook."},
    )


def code_text(**options: Any) -> Text:
    """A code as somebody types it."""
    return Text(MOST_TYPED, any_characters=True, **options)


class TakenInvitationSchema(Schema):
    """A code, and its owner's new password."""

    code = code_text(metadata={"description": "Without regard to case, spaces and hyphens."})
    password = password_text()
