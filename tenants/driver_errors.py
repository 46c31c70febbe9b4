"""Reading PostgreSQL's errors: the SQLSTATE, the violated constraint, and the first line of a message."""

from __future__ import annotations

import re

from sqlalchemy.exc import DBAPIError

# PostgreSQL's words for a violation, and its SQLSTATE.
_VIOLATIONS = {
    "violates unique constraint": "23505",
    "violates foreign key constraint": "23503",
    "violates exclusion constraint": "23P01",
    "violates check constraint": "23514",
    "violates not-null constraint": "23502",
}


# PostgreSQL's words for one connection too many. libpq gives no SQLSTATE of a connection that was not made, so that a
# server whose messages are in another language is not understood here.
_NO_CONNECTION_LEFT = re.compile(
    r"too many clients already|remaining connection slots are reserved|too many connections for (role|database)"
    # PgBouncer's words.
    r"|no more connections allowed"
)
TOO_MANY_CONNECTIONS = "53300"


def sqlstate(error: DBAPIError) -> str | None:
    """Give the SQLSTATE of an error; None unless it came from the server.

    TOO_MANY_CONNECTIONS also if the server refused a new connection in words of this meaning.
    """
    code: str | None = getattr(error.orig, "pgcode", None)
    if code is None and _NO_CONNECTION_LEFT.search(str(error.orig)):
        return TOO_MANY_CONNECTIONS
    return code


def violated_state(error: DBAPIError) -> str:
    """Give the SQLSTATE of an error, of the violation behind an internal error if there is one; empty without any.

    A server reports an internal error, in PostgreSQL's words of the violation, when it hands a COPY or an INSERT …
    SELECT on to another.
    """
    state = sqlstate(error) or ""
    if state == "XX000":
        return next((meant for words, meant in _VIOLATIONS.items() if words in str(error.orig)), state)
    return state


def constraint_names(error: DBAPIError) -> tuple[str, ...]:
    """Give the possible names of the violated constraint: PostgreSQL's, then the same without a number behind it.

    A server passing the statement on to another leaves the name to the message alone, and the other's constraints have
    numbers behind their names. Empty if none is named.
    """
    name = error.orig.diag.constraint_name  # type: ignore[union-attr]
    if not name:
        match = re.search(r'constraint "([^"]++)"', str(error.orig))
        if match is None:
            return ()
        name = match[1]
    return name, re.sub(r"_\d++$", "", name)


def first_line(message: object, default: str = "no message") -> str:
    """Give the first line of a message, such as a driver's error; `default` for an empty one."""
    return (str(message).strip().splitlines() or [default])[0]
