"""How input names a term, in whichever area."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from school_service.auth.principal import CANONICAL_UUID
from school_service.web.fields import Text


def term_text(whose: str, **options: Any) -> Text:
    """A term, in a query or a body: its id, or its name in a session."""
    return Text(
        metadata={"description": f"A term: FIRST, SECOND or THIRD of {whose} session, or the id of one."},
        **options,
    )


def id_and_name(term: str | None) -> tuple[UUID | None, str | None]:
    """Tell the id of a term from its name: what a text is not is None."""
    if term is not None and CANONICAL_UUID.fullmatch(term):
        return UUID(term), None
    return None, term
