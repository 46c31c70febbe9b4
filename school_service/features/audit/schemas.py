"""The audit log as the interface shows it."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.audit.models import ACTIONS, LONGEST_ACTOR, LONGEST_ENTITY
from school_service.web.fields import Id, Schema, Text


class AuditEntrySchema(Schema):
    """A change."""

    id = fields.UUID(required=True)
    at = fields.AwareDateTime(required=True)
    actor = fields.String(required=True, metadata={"description": "The id of the user or client who acted."})
    actor_name = fields.String(required=True, metadata={"description": "The user's name at that time."})
    action = fields.String(required=True, validate=validate.OneOf(ACTIONS))
    entity = fields.String(required=True, metadata={"description": "What was changed, such as `gradebook`."})
    entity_id = fields.UUID(required=True)
    old = fields.Dict(required=True, allow_none=True, metadata={"description": "The values before."})
    new = fields.Dict(required=True, allow_none=True, metadata={"description": "The values after."})
    request_id = fields.String(
        required=True, allow_none=True, metadata={"description": "As in the service's logs."}
    )


class AuditFilterSchema(Schema):
    """Which changes to list."""

    entity = Text(LONGEST_ENTITY, metadata={"description": "What was changed, such as `gradebook`."})
    id = Id(metadata={"description": "The record that was changed; it may be gone."})
    actor = Text(LONGEST_ACTOR, metadata={"description": "The id of the user or client who acted."})
