"""Academic sessions and terms as the interface shows them, and the names of terms in input of every area."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from marshmallow import ValidationError, fields

from school_service.auth.principal import CANONICAL_UUID
from school_service.features.school.models import TERMS
from school_service.web.fields import Choice, Id, IsoDate, StrictBoolean, Text
from school_service.web.schemas import NamedSchema, RecordSchema, Schema, described, text_of


class TermOfInterface(Text):
    """A term as uuid of the interface: the names of terms are taken too, and all else is refused for its form."""

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        text = super()._deserialize(value, *arguments, **options)
        if text not in TERMS and not CANONICAL_UUID.fullmatch(text):
            raise ValidationError("no such term")
        return text


def term_text(whose: str, *, as_id: bool = False, **options: Any) -> Text:
    """A term, in a query or a body: its id, or its name in a session.

    `as_id`: the interface has it as a uuid, and so has the document; names are taken, too.
    """
    description = f"A term: FIRST, SECOND or THIRD of {whose} session, or the id of one."
    if as_id:
        return TermOfInterface(metadata={"description": description, "format": "uuid"}, **options)
    return described(Text, description, **options)


def id_and_name(term: str | None) -> tuple[UUID | None, str | None]:
    """Tell the id of a term from its name: of the two, the absent one is None."""
    if term is not None and CANONICAL_UUID.fullmatch(term):
        return UUID(term), None
    return None, term


class SessionSchema(NamedSchema):
    """An academic session."""

    start_date = fields.Date()
    end_date = fields.Date()
    current = described(fields.Boolean, "True for at most one session.")


class NewSessionSchema(Schema):
    """An academic session to create."""

    name = described(Text, "Such as 2025/2026.")
    start_date = described(IsoDate, "The first day; not before 1900.")
    end_date = described(
        IsoDate, "The last day; not before `start_date`, in its year or one of the 20 after it."
    )
    current = described(StrictBoolean, "True makes it the current session, and no other.", required=False)


class SessionChangesSchema(NewSessionSchema):
    """The changes of an academic session: any of its members."""


class TermSchema(RecordSchema):
    """A term of an academic session."""

    id = fields.UUID()
    term = text_of(TERMS)
    session_id = fields.String(data_key="sessionId")
    display_name = fields.String(data_key="displayName")


class NewTermSchema(Schema):
    """A term to create."""

    session_id = Id()
    term = Choice(TERMS)
    display_name = Text()


class TermChangesSchema(Schema):
    """The changes of a term: any of these. The session stays."""

    term = Choice(TERMS)
    display_name = Text()


class TermFilterSchema(Schema):
    """The filter of a list of terms."""

    session_id = described(Id, "The terms of this academic session.", required=False)
