"""Academic sessions and terms as the interface shows them."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.sessions.models import TERMS
from school_service.web.fields import Choice, Day, Flag, Id, Schema, Text


class SessionSchema(Schema):
    """An academic session."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    start_date = fields.Date(required=True)
    end_date = fields.Date(required=True)
    current = fields.Boolean(required=True, metadata={"description": "True for at most one session."})


class NewSessionSchema(Schema):
    """An academic session to create."""

    name = Text(required=True, metadata={"description": "Such as 2025/2026."})
    start_date = Day(required=True)
    end_date = Day(required=True, metadata={"description": "The last day; not before `start_date`."})
    current = Flag(metadata={"description": "True makes it the current session, and no other."})


class SessionChangesSchema(NewSessionSchema):
    """What to change of an academic session: any of its members."""


class TermSchema(Schema):
    """A term of an academic session."""

    id = fields.UUID(required=True)
    term = fields.String(required=True, validate=validate.OneOf(TERMS))
    sessionId = fields.String(required=True)  # noqa: N815
    displayName = fields.String(required=True)  # noqa: N815


class NewTermSchema(Schema):
    """A term to create."""

    session_id = Id(required=True)
    term = Choice(TERMS, required=True)
    display_name = Text(required=True)


class TermFilterSchema(Schema):
    """Which terms to list."""

    session_id = Id(metadata={"description": "Those of this academic session."})
