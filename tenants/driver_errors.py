"""Reading errors: the SQLSTATE of one that PostgreSQL raised, and the first line of a message."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError


def sqlstate(error: DBAPIError) -> str | None:
    """Give the SQLSTATE of an error; None where it did not come from the server."""
    found: str | None = getattr(error.orig, "pgcode", None)
    return found


def first_line(message: object, default: str = "no message") -> str:
    """Give the first line of a message, such as a driver's error; `default` where it is empty."""
    return (str(message).strip().splitlines() or [default])[0]
