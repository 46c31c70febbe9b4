"""Links to outside identities as the interface shows them."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.invitations.schemas import code_text
from school_service.features.people.models import ISSUER_LENGTH, SUBJECT_LENGTH, WAYS
from school_service.web.fields import Text
from school_service.web.schemas import RecordSchema, Schema


class IdentitySchema(RecordSchema):
    """The link of an account to an identity of an outside provider."""

    id = fields.UUID()
    issuer = fields.String(metadata={"description": "`iss` of the tokens."})
    subject = fields.String(metadata={"description": "`sub` of the tokens."})
    way = fields.String(validate=validate.OneOf(WAYS))
    created_at = fields.AwareDateTime()
    linked_by_name = fields.String()


class NewIdentitySchema(Schema):
    """An identity to link."""

    issuer = Text(ISSUER_LENGTH, trim=False, composed=False)
    # To the letter: what differs in form alone is another person.
    subject = Text(SUBJECT_LENGTH, trim=False, composed=False)


class OwnIdentitySchema(Schema):
    """The invitation by which the bearer of an outside token takes an account."""

    code = code_text(
        required=False,
        metadata={
            "description": "Without it, an open invitation that was made with the token's verified e-mail address."
        },
    )
