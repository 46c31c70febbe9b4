"""Credentials others made for gaining accounts, as the interface shows them."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import fields

from school_service.features.people.gains.reads import KINDS, MOST_SHOWN
from school_service.web.schemas import RecordSchema, described, list_of, record_of, text_of


class _Moment(fields.AwareDateTime):
    """A moment, as PostgreSQL has written it."""

    def _serialize(self, value: Any, *_arguments: Any, **_options: Any) -> Any:
        return value


class CredentialSchema(RecordSchema):
    """A way into an account, made by somebody else."""

    username = described(fields.String, "Of the account that gained.")
    kind = text_of(KINDS, "A password that was given, an open invitation, or a link to an outside identity.")
    made_by_name = described(
        fields.String, "The maker's name; null of a password of an unknown maker.", allow_none=True
    )
    made_at = described(_Moment, "Null as `made_by_name` is.", allow_none=True)
    ended = described(
        fields.Boolean, "Whether it ended, as its maker may not do all that the account now may."
    )


class CredentialNumbersSchema(RecordSchema):
    """How many of each kind."""

    PASSWORD = described(fields.Integer, "Passwords that were given.")
    INVITATION = described(fields.Integer, "Open invitations.")
    LINK = described(fields.Integer, "Links to outside identities, by an administrator.")


class PlantedSchema(RecordSchema):
    """The credentials somebody else made for accounts gaining by the request."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset(
        {"credentials", "credentials_total", "credentials_of_kind"}
    )

    credentials = list_of(
        CredentialSchema,
        "Where an account has gained: the ways into it that somebody else has made, those that "
        f"remain first, {MOST_SHOWN} at most; none without `read:users`.",
    )
    credentials_total = described(fields.Integer, "Where an account has gained: how many of these there are.")
    credentials_of_kind = record_of(
        CredentialNumbersSchema, "Where an account has gained: how many there are of each kind."
    )
