"""How input names a term, in whichever area."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from marshmallow import ValidationError

from school_service.auth.principal import CANONICAL_UUID
from school_service.features.school.models import TERMS
from school_service.web.fields import Text


class TermOfInterface(Text):
    """A term as uuid of the interface: the names of terms are taken too, and all else is refused for its form."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **options: Any
    ) -> Any:
        text = super()._deserialize(value, attr, data, **options)
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
    return Text(metadata={"description": description}, **options)


def id_and_name(term: str | None) -> tuple[UUID | None, str | None]:
    """Tell the id of a term from its name: of the two, the absent one is None."""
    if term is not None and CANONICAL_UUID.fullmatch(term):
        return UUID(term), None
    return None, term
