"""Credentials others made for gaining accounts, as the interface shows them."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import fields, validate

from school_service.features.people.gains.reads import KINDS, MOST_SHOWN
from school_service.web.schemas import RecordSchema


class _Moment(fields.AwareDateTime):
    """A moment, as PostgreSQL has written it."""

    def _serialize(self, value: Any, *_arguments: Any, **_options: Any) -> Any:
        return value


class CredentialSchema(RecordSchema):
    """A way into an account, made by somebody else."""

    username = fields.String(metadata={"description": "Of the account that gained."})
    kind = fields.String(
        validate=validate.OneOf(KINDS),
        metadata={
            "description": "A password that was given, an open invitation, or a link to an outside identity."
        },
    )
    made_by_name = fields.String(
        allow_none=True, metadata={"description": "Who made it; null of a password where nobody knows that."}
    )
    made_at = _Moment(allow_none=True, metadata={"description": "Null as `made_by_name` is."})
    ended = fields.Boolean(
        metadata={"description": "Whether it ended, as who made it may not do all that the account now may."}
    )


class CredentialNumbersSchema(RecordSchema):
    """How many of each kind."""

    PASSWORD = fields.Integer(metadata={"description": "Passwords that were given."})
    INVITATION = fields.Integer(metadata={"description": "Open invitations."})
    LINK = fields.Integer(metadata={"description": "Links to outside identities, by an administrator."})


class PlantedSchema(RecordSchema):
    """The credentials somebody else made for accounts gaining by the request."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset(
        {"credentials", "credentials_total", "credentials_of_kind"}
    )

    credentials = fields.List(
        fields.Nested(CredentialSchema),
        metadata={
            "description": "Where an account has gained: the ways into it that somebody else has made, those that "
            f"remain first, {MOST_SHOWN} at most; none for who may not read users."
        },
    )
    credentials_total = fields.Integer(
        metadata={"description": "Where an account has gained: how many of these there are."}
    )
    credentials_of_kind = fields.Nested(
        CredentialNumbersSchema,
        metadata={"description": "Where an account has gained: how many there are of each kind."},
    )
