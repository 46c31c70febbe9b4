"""Reading errors: SQLSTATE and violated constraint of one that PostgreSQL raised, and the first line of a message."""

from __future__ import annotations

import re

from sqlalchemy.exc import DBAPIError


def sqlstate(error: DBAPIError) -> str | None:
    """Give the SQLSTATE of an error; None where it did not come from the server."""
    found: str | None = getattr(error.orig, "pgcode", None)
    return found


def constraint_names(error: DBAPIError) -> tuple[str, ...]:
    """Give what the violated constraint may be called: as PostgreSQL says, then without the number of a shard of Citus.

    A coordinator of Citus leaves the name to the message alone. Empty where none is named.
    """
    name = error.orig.diag.constraint_name  # type: ignore[union-attr]
    if not name:
        found = re.search(r'constraint "([^"]+)"', str(error.orig))
        if found is None:
            return ()
        name = found[1]
    return name, re.sub(r"_\d+$", "", name)


def first_line(message: object, default: str = "no message") -> str:
    """Give the first line of a message, such as a driver's error; `default` where it is empty."""
    return (str(message).strip().splitlines() or [default])[0]
