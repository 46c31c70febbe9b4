"""Invitations as the interface shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

from school_service.features.invitations.codes import MOST_TYPED
from school_service.features.invitations.service import FORMATS, MOST_AT_ONCE, PDF
from school_service.features.people.users.schemas import password_text
from school_service.web.fields import Choice, Email, Id, ListOf, StrictBoolean, StrictInteger, Text, id_list
from school_service.web.schemas import RecordSchema, Schema, described


class InvitationCodeSchema(RecordSchema):
    """An invitation with its code, answered once."""

    id = fields.UUID()
    user = fields.UUID()
    username = fields.String()
    name = described(fields.String, "First and last name.")
    code = described(fields.String, "In capitals and digits: K7QM-4TZ9-XDR2.")
    url = described(
        fields.Url, "The page that takes the code; null where the service has no such pages.", allow_none=True
    )
    expires_at = fields.AwareDateTime()


class InvitationSchema(RecordSchema):
    """An open invitation. Its code is known to its receiver alone."""

    id = fields.UUID()
    user = fields.UUID()
    username = fields.String()
    name = described(fields.String, "First and last name.")
    email = described(
        fields.String,
        "By whose outside sign-in, verified, the account is linked; A to Z in lower case.",
        allow_none=True,
    )
    created_at = fields.AwareDateTime()
    created_by_name = fields.String()
    expires_at = fields.AwareDateTime()


class NewInvitationsSchema(Schema):
    """The users to invite, or the batch of the students to invite."""

    users = id_list(least=1, most=MOST_AT_ONCE, required=False)
    batch = Id(required=False)
    everybody = described(
        StrictBoolean,
        "Users with a password, too, who then set another.",
        required=False,
        load_default=False,
    )
    days = described(
        StrictInteger, "For how long the codes are valid.", 1, 30, required=False, load_default=14
    )
    # To the letter: an address that differs in Unicode form alone is another mailbox.
    emails = described(
        ListOf,
        "One for each of the users, in their order.",
        Email(composed=False),
        least=1,
        most=MOST_AT_ONCE,
        required=False,
    )


class GuardianInvitationSchema(InvitationCodeSchema):
    """An invitation of a guardian to their new account, with its code, answered once."""

    guardian = fields.UUID()


class NewGuardianAccountsSchema(Schema):
    """The class whose guardians get accounts."""

    batch = described(Id, "A cohort's id is its first batch.")
    days = described(
        StrictInteger, "For how long the codes are valid.", 1, 30, required=False, load_default=14
    )


class InvitationFilterSchema(Schema):
    """The filter of a list of invitations."""

    batch = described(Id, "Of its students alone.", required=False)
    user = Id(required=False)


class SlipsFormatSchema(Schema):
    """The kind of the file."""

    format = described(
        Choice, "Slips to cut apart, or a workbook.", FORMATS, required=False, load_default=PDF
    )


def code_text(**options: Any) -> Text:
    """A code as somebody types it."""
    return Text(MOST_TYPED, any_characters=True, **options)


class TakenInvitationSchema(Schema):
    """A code, and its owner's new password."""

    code = described(code_text, "Without regard to case, spaces and hyphens.")
    password = password_text()
