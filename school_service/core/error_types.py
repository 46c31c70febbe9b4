"""The reasons of errors for programs: the member `type` of each error, of the document and of docs/api.md.

Types may be added. One that is here keeps its name and its meaning.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class ErrorType(StrEnum):
    """A reason: the statuses that it comes with, its meaning, and the remedy, a sentence for the client's developer.

    The OAuth endpoints answer the statuses of OAuth in place of these.
    """

    statuses: tuple[int, ...]
    meaning: str
    remedy: str

    def __new__(cls, slug: str, statuses: tuple[int, ...], meaning: str, remedy: str) -> Self:
        """Make a member."""
        made = str.__new__(cls, slug)
        made._value_ = slug
        made.statuses, made.meaning, made.remedy = statuses, meaning, remedy
        return made

    CONFLICT = (
        "conflict",
        (409,),
        "The state of the records does not allow it, for a reason that no other type names.",
        "Show the message.",
    )
    DUPLICATE = (
        "duplicate",
        (409,),
        "There is already such a record: of this name, number or key, or at a place that it overlaps.",
        "Take the one that is there, or ask for another name.",
    )
    FAILURE = ("failure", (500,), "The service failed.", "Report the `request_id` to the operator.")
    FORBIDDEN = (
        "forbidden",
        (403,),
        "The token may enter the school and may not do this, or may not enter the school.",
        "Show the message, which names the permission; do not send it again.",
    )
    GONE = (
        "gone",
        (410,),
        "The place among the changes is not there any more: records read before may lack changes.",
        "Read everything anew: GET /export, and go on from its cursor.",
    )
    IDEMPOTENCY_KEY = (
        "idempotency-key",
        (409, 422),
        "The Idempotency-Key was of another request, or of one whose answer is stored no more.",
        "Make a new key for each request; look whether the request was carried out before it is sent with another.",
    )
    IN_USE = (
        "in-use",
        (409,),
        "Other records rest on it: the message counts or names them.",
        "Show the message; delete or undo those first.",
    )
    INCOMPLETE = (
        "incomplete",
        (409,),
        "Something has to be entered, marked or submitted before.",
        "Show the message, which names it; send it again afterwards.",
    )
    INSUFFICIENT_SCOPE = (
        "insufficient-scope",
        (403,),
        "The token was granted less scope than this needs.",
        "Ask for the scope at the next sign-in.",
    )
    INVALID_TOKEN = (
        "invalid-token",
        (401,),
        "The token is not valid, has expired, or its session has ended.",
        "Refresh the token once, and send it again; else sign in anew.",
    )
    LOCKED = (
        "locked",
        (409,),
        "The record stays as it is: submitted, published, stopped, erased, graduated, or one of every school.",
        "Show the message: it names the act to be reopened or lifted first, if any.",
    )
    MALFORMED = (
        "malformed",
        (400, 501),
        "The request can't be read: no HTTP, no JSON, or a header that is none.",
        "Correct the program.",
    )
    MEDIA_TYPE = (
        "media-type",
        (415,),
        "The body is of a media type that is not accepted.",
        "Send the Content-Type that the document names.",
    )
    METHOD_NOT_ALLOWED = (
        "method-not-allowed",
        (405,),
        "The address has no such method.",
        "Correct the program; `Allow` names the methods.",
    )
    NO_TOKEN = ("no-token", (401,), "A bearer token is needed.", "Sign in.")
    NOT_LINKED = (
        "not-linked",
        (403,),
        "The outside sign-in is linked to no account of the school.",
        "Ask for the code of an invitation, or for username and password: POST /me/identities.",
    )
    NOT_PUBLISHED = (
        "not-published",
        (404, 409),
        "It is not published, or not shown to these readers; or rests on results that are not published.",
        "Show readers that there is nothing yet; show the office the message.",
    )
    OVERLOADED = (
        "overloaded",
        (503,),
        "There is more to do than is done at once.",
        "Send it again after `Retry-After` seconds, each time later.",
    )
    PASSWORD_CHANGE = (
        "password-change",
        (403,),
        "The password was given by somebody else, and has to be changed first.",
        "Ask for a new password: PUT /users/{id}/password.",
    )
    SCHOOL_HEADER = (
        "school-header",
        (400,),
        "X-SCHOOL-ID is missing where the token names no single school, or is no uuid.",
        "Let the person choose a school.",
    )
    SCHOOL_SUSPENDED = (
        "school-suspended",
        (403,),
        "The operator has suspended the school.",
        "Show the message.",
    )
    STALE = (
        "stale",
        (409, 412),
        "Somebody has changed it since it was read.",
        "Read it again, show both values, and let the person decide.",
    )
    TOO_LARGE = (
        "too-large",
        (413, 431),
        "The body, a file, or the header fields exceed a limit.",
        "Send less at once.",
    )
    TOO_MANY_TRIES = (
        "too-many-tries",
        (429,),
        "Too many wrong passwords or codes, or other tries.",
        "Wait for `Retry-After` seconds; tell the person how long that is.",
    )
    UNAVAILABLE = (
        "unavailable",
        (503,),
        "The database, the provider or the school can't be reached for the moment, or is being upgraded.",
        "Send it again after `Retry-After` seconds.",
    )
    UNDER_WAY = (
        "under-way",
        (409,),
        "A request with the same Idempotency-Key is being carried out.",
        "Send it again, with the same key, a moment later.",
    )
    UNKNOWN_ADDRESS = (
        "unknown-address",
        (404,),
        "No operation has this path; an id that is no uuid makes such a path, too.",
        "Correct the program.",
    )
    UNKNOWN_ID = (
        "unknown-id",
        (404, 422),
        "A thing that the path, the query, the body or each bad row of a sheet names is not here, or not in reach.",
        "Read the list anew, and let the person choose again.",
    )
    VALIDATION = (
        "validation",
        (400, 422),
        "The input is not valid: `errors` says which member and why.",
        "Show the reasons at the fields.",
    )
    WRONG_CREDENTIALS = (
        "wrong-credentials",
        (401,),
        "Username or password, code, or client id or secret is wrong; none says which.",
        "Ask for them again.",
    )
