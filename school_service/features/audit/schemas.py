"""The audit log as the interface shows it."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.audit.models import ACTIONS, ACTOR_LENGTH, ENTITY_LENGTH
from school_service.web.fields import Id, Text
from school_service.web.schemas import RecordSchema, Schema, described, text_of


class AuditEntrySchema(RecordSchema):
    """A change, a sign-in, an export or a backup."""

    id = fields.UUID()
    at = fields.AwareDateTime()
    actor = described(fields.String, "The id of the user or client who acted.")
    actor_name = described(fields.String, "The user's name at that time.")
    action = text_of(ACTIONS)
    entity = described(fields.String, "The kind of record, such as `gradebook`.")
    entity_id = described(fields.UUID, "The record; null where a sign-in named no user.", allow_none=True)
    old = described(fields.Dict, "The values before.", allow_none=True)
    new = described(fields.Dict, "The values after.", allow_none=True)
    request_id = described(fields.String, "As in the service's logs.", allow_none=True)
    address = described(fields.String, "The network address that the request came from.", allow_none=True)


class AuditFilterSchema(Schema):
    """The filter of a list of changes."""

    entity = described(Text, "The kind of record, such as `gradebook`.", ENTITY_LENGTH, required=False)
    id = described(Id, "The record that was changed; it may be gone.", required=False)
    actor = described(Text, "The id of the user or client who acted.", ACTOR_LENGTH, required=False)
