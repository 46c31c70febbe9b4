"""Domain errors, free of HTTP: services raise them, `web.error_responses` gives each its status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

ANSWER_LIMIT = 64 * 1024
"""The most bytes in the answer of an error."""

SAID_BACK = 60
"""The number of first characters of an unknown name or value, as errors say it back."""


class DomainError(Exception):
    """A refusal of a service, in words for the caller.

    `errors` names the fields at fault: `{"name": ["already taken"]}`.
    """

    def __init__(self, message: str, errors: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.errors = dict(errors or {})


class NotFound(DomainError):
    """The record does not exist in this school."""


class Conflict(DomainError):
    """The change collides with an existing record, or with a use of it."""


class Invalid(DomainError):
    """A member of the input is well-formed but can't be accepted, such as an unknown id."""

    @classmethod
    def field(cls, name: str, reason: str) -> Invalid:
        """Refuse one field: `Invalid.field("role", "no such role")`."""
        return cls.fields({name: reason})

    @classmethod
    def fields(cls, reasons: Mapping[str, str]) -> Invalid:
        """Refuse several fields, each for its reason."""
        words = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        return cls(words, {name: [reason] for name, reason in reasons.items()})


class RowsRefused(DomainError):
    """Rows of an uploaded sheet are refused; `rows` lists row, column, code and message of each.

    Or records of a list in the body: then `member` is the name of the list, and an answer has the place of each, too,
    as it has for the errors of a schema. There may be more bad rows than are listed: `bad_rows` counts them all.
    """

    OF_SHEET: ClassVar[str]
    OF_LIST: ClassVar[str]

    def __init__(
        self,
        rows: Sequence[Mapping[str, object]],
        bad_rows: int,
        summary: str | None = None,
        *,
        member: str | None = None,
    ) -> None:
        message = self.OF_SHEET if member is None else self.OF_LIST
        super().__init__(f"{message} {summary}" if summary else message, {"rows": list(rows)})
        self.rows, self.bad_rows, self.member = rows, bad_rows, member


class InvalidRows(RowsRefused):
    """Rows of a sheet, or records of a list, are bad."""

    OF_SHEET = "The sheet has rows that can't be accepted; nothing was stored."
    OF_LIST = "The list has records that can't be accepted; nothing was stored."


class RowsChanged(RowsRefused, Conflict):
    """A change made by somebody since the values were read would be lost."""

    OF_SHEET = (
        "Values have changed since the sheet was downloaded; nothing was stored. Download it again, or send it with "
        "force=true to replace them."
    )
    OF_LIST = (
        "Values are not as expected; nothing was stored. Read them again, or leave out what is expected."
    )


class Busy(DomainError):
    """There is more to do than is done at once; a moment later it may succeed."""

    def __init__(self) -> None:
        super().__init__("The service is overloaded. Try again shortly.")


class InvalidHeader(DomainError):
    """A header of the request is malformed or not acceptable."""


class PreconditionFailed(DomainError):
    """The record is not in the state named by the caller."""


class TooLarge(DomainError):
    """The request exceeds a limit of the service."""


class Forbidden(DomainError):
    """The caller is known but may not do this."""


class InsufficientScope(Forbidden):
    """The token was granted less than this needs; `scope` names it (RFC 6750, section 3.1)."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"This needs a token with the scope {scope}.")
        self.scope = scope


class NotAuthenticated(DomainError):
    """The caller could not prove its identity."""


class TokenRefused(NotAuthenticated):
    """A token is not valid.

    For the log, and never for the sender: `check` is the failed check, in words, such as `signature`. `key_id` and
    `issuer` are the token's own statements, not verified; None if it has none.
    """

    def __init__(
        self, message: str, check: str, *, key_id: str | None = None, issuer: str | None = None
    ) -> None:
        super().__init__(message)
        self.check = check
        self.key_id = key_id
        self.issuer = issuer


class WrongPassword(NotAuthenticated):
    """The user or client, or its password or secret, is wrong; the error does not tell the two apart."""


class TooManyAttempts(DomainError):
    """Too many wrong passwords, or other tries; `retry_after` is in seconds."""

    def __init__(self, retry_after: int, message: str = "Too many wrong passwords. Try again later.") -> None:
        super().__init__(message)
        self.retry_after = retry_after
