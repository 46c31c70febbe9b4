"""How input names a term, in whichever area."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from school_service.auth.principal import CANONICAL_UUID
from school_service.web.fields import Text


def term_text(whose: str, *, as_id: bool = False, **options: Any) -> Text:
    """A term, in a query or a body: its id, or its name in a session.

    `as_id`: the interface has it as a uuid, and so has the document; names are taken, too.
    """
    description = f"A term: FIRST, SECOND or THIRD of {whose} session, or the id of one."
    metadata = {"description": description, **({"format": "uuid"} if as_id else {})}
    return Text(metadata=metadata, **options)


def id_and_name(term: str | None) -> tuple[UUID | None, str | None]:
    """Tell the id of a term from its name: what a text is not is None."""
    if term is not None and CANONICAL_UUID.fullmatch(term):
        return UUID(term), None
    return None, term
