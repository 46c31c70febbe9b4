"""The audit log as the interface shows it."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.audit.models import ACTIONS, ACTOR_LENGTH, ENTITY_LENGTH
from school_service.web.fields import Id, Text
from school_service.web.schemas import RecordSchema, Schema


class AuditEntrySchema(RecordSchema):
    """A change, a sign-in, an export or a backup."""

    id = fields.UUID()
    at = fields.AwareDateTime()
    actor = fields.String(metadata={"description": "The id of the user or client who acted."})
    actor_name = fields.String(metadata={"description": "The user's name at that time."})
    action = fields.String(validate=validate.OneOf(ACTIONS))
    entity = fields.String(metadata={"description": "What was changed, such as `gradebook`."})
    entity_id = fields.UUID(
        allow_none=True, metadata={"description": "The record; null where a sign-in named no user."}
    )
    old = fields.Dict(allow_none=True, metadata={"description": "The values before."})
    new = fields.Dict(allow_none=True, metadata={"description": "The values after."})
    request_id = fields.String(allow_none=True, metadata={"description": "As in the service's logs."})
    address = fields.String(
        allow_none=True, metadata={"description": "The network address that the request came from."}
    )


class AuditFilterSchema(Schema):
    """The filter of a list of changes."""

    entity = Text(
        ENTITY_LENGTH, required=False, metadata={"description": "What was changed, such as `gradebook`."}
    )
    id = Id(required=False, metadata={"description": "The record that was changed; it may be gone."})
    actor = Text(
        ACTOR_LENGTH, required=False, metadata={"description": "The id of the user or client who acted."}
    )
