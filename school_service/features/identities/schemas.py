"""Links to outside identities as the interface shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from school_service.features.invitations.schemas import code_text
from school_service.features.people.models import ISSUER_LENGTH, SUBJECT_LENGTH, WAYS
from school_service.features.people.users.schemas import password_text
from school_service.web.fields import Text, sought_text
from school_service.web.schemas import RecordSchema, Schema, described, text_of


class IdentitySchema(RecordSchema):
    """The link of an account to an identity of an outside provider."""

    id = fields.UUID()
    issuer = described(fields.String, "`iss` of the tokens.")
    subject = described(fields.String, "`sub` of the tokens.")
    way = text_of(WAYS)
    created_at = fields.AwareDateTime()
    linked_by_name = fields.String()


class NewIdentitySchema(Schema):
    """An identity to link."""

    issuer = Text(ISSUER_LENGTH, trim=False, composed=False)
    # To the letter: a subject that differs in Unicode form alone is another person.
    subject = Text(SUBJECT_LENGTH, trim=False, composed=False)


class OwnIdentitySchema(Schema):
    """The proof, by the bearer of an outside token, of owning an account: a code, or username and password."""

    code = described(
        code_text,
        "Of an invitation. Without it and a username, an open invitation that was made with the "
        "token's verified e-mail address.",
        required=False,
    )
    username = sought_text(composed=False, required=False)
    password = password_text(required=False)

    @validates_schema
    def check_ways(self, given: dict[str, Any], **_options: Any) -> None:
        """Refuse a username without a password, and the reverse."""
        for name, other in (("password", "username"), ("username", "password")):
            if other in given and name not in given:
                raise ValidationError("Missing data for required field.", name)
