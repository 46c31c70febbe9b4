"""Domain errors, free of HTTP: services raise them, `web.error_responses` gives each its status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from school_service.core.error_types import ErrorType

ANSWER_LIMIT = 64 * 1024
"""The most bytes in the answer of an error."""

SAID_BACK = 60
"""The number of first characters of an unknown name or value, as errors say it back."""

MOST_NAMED = 6
"""The most names beside one reason in a message; its `errors` have all of them."""


class DomainError(Exception):
    """A refusal of a service, in words for the caller.

    `errors` names the fields at fault: `{"name": ["already taken"]}`. `type` is the reason for programs.
    """

    type: ErrorType

    def __init__(self, message: str, errors: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.errors = dict(errors or {})


class NotFound(DomainError):
    """The record does not exist in this school, or is out of reach."""

    type = ErrorType.UNKNOWN_ID


class NothingPublished(NotFound):
    """The record is not published, or not shown to such readers."""

    type = ErrorType.NOT_PUBLISHED


class Conflict(DomainError):
    """The state of the records does not allow the change."""

    type = ErrorType.CONFLICT


class Duplicate(Conflict):
    """There is such a record already."""

    type = ErrorType.DUPLICATE


class InUse(Conflict):
    """Other records rest on the record."""

    type = ErrorType.IN_USE


class Stale(Conflict):
    """The record was changed by somebody since it was read."""

    type = ErrorType.STALE


class Locked(Conflict):
    """The record stays as it is, for good or until something else is undone."""

    type = ErrorType.LOCKED


class Incomplete(Conflict):
    """Something has to be entered, marked or submitted before."""

    type = ErrorType.INCOMPLETE


class NotPublished(Conflict):
    """The change rests on results that are not published."""

    type = ErrorType.NOT_PUBLISHED


class Unknown(str):
    """A reason against a value that names nothing here, or nothing in reach: `no such role`."""

    __slots__ = ()


def joined(reasons: Iterable[str]) -> str:
    """Join reasons; they are Unknown together if each is."""
    there = [*reasons]
    words = "; ".join(there)
    return Unknown(words) if all(isinstance(reason, Unknown) for reason in there) else words


def names_in_words(names: Sequence[str]) -> str:
    """Join names, the first of many: `Ngọzi Eze (QAC/1), Ada Obi (QAC/2) and 12 others`."""
    others = len(names) - MOST_NAMED
    if others < 2:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMED])} and {others} others"


class Invalid(DomainError):
    """A member of the input is well-formed but can't be accepted, such as an unknown id.

    Its type is UNKNOWN_ID where each reason is Unknown.
    """

    type = ErrorType.VALIDATION

    def __init__(self, message: str, errors: Mapping[str, object] | None = None) -> None:
        super().__init__(message, errors)
        reasons = [*_reasons(self.errors)]
        if reasons and all(isinstance(reason, Unknown) for reason in reasons):
            self.type = ErrorType.UNKNOWN_ID

    @classmethod
    def field(cls, name: str, reason: str) -> Invalid:
        """Refuse one field: `Invalid.field("role", Unknown("no such role"))`."""
        return cls.fields({name: reason})

    @classmethod
    def fields(cls, reasons: Mapping[str, str]) -> Invalid:
        """Refuse several fields, each for its reason."""
        words = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        return cls(words, {name: [reason] for name, reason in reasons.items()})


Reasons = Mapping[str, Sequence[str]]
"""The refused names, by the reason against them: `{"not in the batch": ["Ngọzi Eze (QAC/1)"]}`."""


def refuse_named(wrong: Mapping[str, Reasons]) -> None:
    """Refuse the names listed by field and reason, unless there are none; raises Invalid.

    The message has the names first and no fields; the errors of a field are of one name each.
    """
    words = [
        f"{names_in_words(names)}: {reason}"
        for reasons in wrong.values()
        for reason, names in reasons.items()
        if names
    ]
    if not words:
        return
    errors = {
        field: [type(reason)(f"{name}: {reason}") for reason, names in reasons.items() for name in names]
        for field, reasons in wrong.items()
    }
    raise Invalid("; ".join(words), {field: of_field for field, of_field in errors.items() if of_field})


def _reasons(errors: Any) -> Iterator[str]:
    """Walk over the reasons in errors, at any depth."""
    if isinstance(errors, str):
        yield errors
    else:
        for part in errors.values() if isinstance(errors, Mapping) else errors:
            yield from _reasons(part)


class Forbidden(DomainError):
    """The caller is known but may not do this."""

    type = ErrorType.FORBIDDEN


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

    type = ErrorType.VALIDATION

    OF_SHEET = "The sheet has rows that can't be accepted; nothing was stored."
    OF_LIST = "The list has records that can't be accepted; nothing was stored."


class RowsOfUnknown(InvalidRows):
    """Each bad row names something that is not here, or not in reach, and has no other fault."""

    type = ErrorType.UNKNOWN_ID


class RowsChanged(RowsRefused, Stale):
    """A change made by somebody since the values were read would be lost."""

    OF_SHEET = (
        "Values have changed since the sheet was downloaded; nothing was stored. Download it again, or send it with "
        "force=true to replace them."
    )
    OF_LIST = (
        "Values are not as expected; nothing was stored. Read them again, or leave out what is expected."
    )


class RowsScored(RowsRefused, Conflict):
    """An absence is to stand where there is a score."""

    OF_SHEET = "The sheet has absences of students with a score; nothing was stored. Remove the scores first."
    OF_LIST = "The list has absences of students with a score; nothing was stored. Remove the scores first."


class RowsForbidden(RowsRefused, Forbidden):
    """The caller may not take the marks of these rows away."""

    OF_SHEET = (
        "Taking a score or an absence away needs the permission delete:gradebooks; nothing was stored. Leave the "
        "cells as they were."
    )
    OF_LIST = "Taking a score or an absence away needs the permission delete:gradebooks; nothing was stored."


class PrincipalsForbidden(RowsRefused, Forbidden):
    """The caller may not write the principal's comments of these rows."""

    OF_SHEET = (
        "Changing a principal's comment needs the permission write:results; nothing was stored. Leave the cells as "
        "they were."
    )
    OF_LIST = "Changing a principal's comment needs the permission write:results; nothing was stored."


class Busy(DomainError):
    """There is more to do than is done at once; a moment later it may succeed."""

    type = ErrorType.OVERLOADED

    def __init__(self) -> None:
        super().__init__("The service is overloaded. Try again shortly.")


class Gone(DomainError):
    """The place that the caller goes on from is not there any more."""

    type = ErrorType.GONE


class InvalidHeader(DomainError):
    """A header of the request is malformed or not acceptable."""

    type = ErrorType.MALFORMED


class PreconditionFailed(DomainError):
    """The record is not in the state named by the caller."""

    type = ErrorType.STALE


class TooLarge(DomainError):
    """The request exceeds a limit of the service."""

    type = ErrorType.TOO_LARGE


class InsufficientScope(Forbidden):
    """The token was granted less than this needs; `scope` names it (RFC 6750, section 3.1)."""

    type = ErrorType.INSUFFICIENT_SCOPE

    def __init__(self, scope: str) -> None:
        super().__init__(f"This needs a token with the scope {scope}.")
        self.scope = scope


class NotAuthenticated(DomainError):
    """The caller could not prove its identity."""

    type = ErrorType.INVALID_TOKEN


class NoToken(NotAuthenticated):
    """The request has no bearer token."""

    type = ErrorType.NO_TOKEN

    def __init__(self) -> None:
        super().__init__("A bearer token is needed.")


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

    type = ErrorType.WRONG_CREDENTIALS


class TooManyAttempts(DomainError):
    """Too many wrong passwords, or other tries; `retry_after` is in seconds."""

    type = ErrorType.TOO_MANY_TRIES

    def __init__(self, retry_after: int, message: str | None = None) -> None:
        super().__init__(message or "Too many wrong passwords. Try again later.")
        self.retry_after = retry_after
