"""Schemas of people signed in."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import fields

from school_service.web.schemas import RecordSchema, described


class UserSessionSchema(RecordSchema):
    """One sign-in of a user by a client, still going on."""

    id = fields.UUID()
    client = described(fields.String, "The client's id.")
    client_name = described(fields.String, "The client's name, as people see it.")
    created_at = described(fields.AwareDateTime, "When the user signed in.")
    last_used_at = described(fields.AwareDateTime, "When its refresh token was used last.")
    expires_at = described(fields.AwareDateTime, "When it ends, however much it is used.")
    address = described(fields.String, "The network address that the user signed in from.", allow_none=True)
    user_agent = described(fields.String, "The browser, as its User-Agent named it then.", allow_none=True)
    current = described(fields.Boolean, "Whether the token of the request is of it.")


class UserInfoSchema(RecordSchema):
    """The user of a token (OpenID Connect Core, section 5.3); the names if it has the scope `profile`."""

    SOMETIMES: ClassVar = frozenset({"name", "given_name", "family_name", "preferred_username"})

    sub = described(fields.UUID, "The user's id.")
    school_id = described(fields.UUID, "The school that the user signed in to.")
    name = described(fields.String, "Of a token for `profile`: first and last name.")
    given_name = described(fields.String, "Of a token for `profile`: the first name.")
    family_name = described(fields.String, "Of a token for `profile`: the last name.")
    preferred_username = described(fields.String, "Of a token for `profile`: the username.")
