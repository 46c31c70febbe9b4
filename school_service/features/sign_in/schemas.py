"""Schemas of people signed in."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import fields

from school_service.web.schemas import RecordSchema


class UserSessionSchema(RecordSchema):
    """One sign-in of a user by a client, still going on."""

    id = fields.UUID()
    client = fields.String(metadata={"description": "The client's id."})
    client_name = fields.String(metadata={"description": "What people are shown of it."})
    created_at = fields.AwareDateTime(metadata={"description": "When the user signed in."})
    last_used_at = fields.AwareDateTime(metadata={"description": "When its refresh token was used last."})
    expires_at = fields.AwareDateTime(metadata={"description": "When it ends, however much it is used."})
    address = fields.String(
        allow_none=True, metadata={"description": "The network address that the user signed in from."}
    )
    user_agent = fields.String(
        allow_none=True, metadata={"description": "What the browser called itself then."}
    )
    current = fields.Boolean(metadata={"description": "Whether the token of the request is of it."})


class UserInfoSchema(RecordSchema):
    """The user of a token (OpenID Connect Core, section 5.3); the names if it has the scope `profile`."""

    SOMETIMES: ClassVar = frozenset({"name", "given_name", "family_name", "preferred_username"})

    sub = fields.UUID(metadata={"description": "The user's id."})
    school_id = fields.UUID(metadata={"description": "The school that the user signed in to."})
    name = fields.String(metadata={"description": "Of a token for `profile`: first and last name."})
    given_name = fields.String(metadata={"description": "Of a token for `profile`: the first name."})
    family_name = fields.String(metadata={"description": "Of a token for `profile`: the last name."})
    preferred_username = fields.String(metadata={"description": "Of a token for `profile`: the username."})
