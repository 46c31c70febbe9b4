"""What psycopg2 says of an error that PostgreSQL raised."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError


def sqlstate(error: DBAPIError) -> str | None:
    """Give the SQLSTATE of an error; None where it did not come from the server."""
    found: str | None = getattr(error.orig, "pgcode", None)
    return found


def first_line(said: object) -> str:
    """Give the first line of what a driver's error says."""
    return (str(said).strip().splitlines() or ["no message"])[0]
