"""The verification of a report card or a transcript, by the code printed on it, for the holder of the paper.

It tells nothing without the code. An unknown school, an unknown code, a school without an answer and a school without
verification are answered alike, and in the same time. The code is in no log: not in the service's (`web.request_log`),
nor in PostgreSQL's, with its failed and slow statements.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import Any
from uuid import UUID

from flask import Response
from flask.views import MethodView
from limits import RateLimitItemPerMinute

from school_service.auth.login_throttle import count_try
from school_service.auth.principal import CANONICAL_UUID
from school_service.core.errors import NotFound
from school_service.core.exact_json import read_json, write_json
from school_service.features.results.report_cards import reads
from school_service.features.results.report_cards.schemas import VerifiedPaperSchema
from school_service.features.results.report_cards.verifying import OF_PAGE, verified_card, verified_transcript
from school_service.printing.wording import long_date
from school_service.web.blueprint import Blueprint
from school_service.web.client_address import client_address
from school_service.web.pages import prefers_page
from school_service.web.reading import reading_without_token
from school_service.web.rendering import render_one
from tenants.exceptions import SchoolSuspended, SchoolUpgrading, UnknownSchool

LIMIT = RateLimitItemPerMinute(60, namespace="verification")
"""The codes of one address that verify nothing."""

_NOBODY = UUID(int=0)
_HIDDEN = 96  # bits of a code that no statement has

blp = Blueprint(
    "verification",
    __name__,
    description="Whether a report card on paper is as the school has published it.",
    template_folder="templates",
)
blp.add_app_template_filter(long_date)


@blp.route("/verify/<school>/<path:code>")
class Verification(MethodView):
    """The verification of a report card."""

    @blp.public
    @blp.answers(404, 429)
    @blp.returns_or_shows(VerifiedPaperSchema, template="verified.html", error_template="not_verified.html")
    def get(self, school: str, code: str) -> Any:
        """Verify a report card or a transcript by the address that is printed on it: JSON, or a page for a browser.

        It shows the figures that the paper must have. All codes without such a paper get the same 404, JSON or a page.
        Codes that can't be verified are counted by address, 60 in a minute; others are always answered.
        """
        answer = None
        # The same statements run for every address, so that each answer takes as long.
        with (
            suppress(UnknownSchool, SchoolSuspended, SchoolUpgrading),
            reading_without_token(_id(school)) as there,
        ):
            traces = _traces(_id(code))
            # Guessed codes cost no more work than this.
            if render_one(reads.verifiable(**traces)) is not None and there:
                answer = _verified(render_one(reads.paper_of_code(**traces)))
        if answer is None:
            count_try(LIMIT, client_address(), message="Too many codes from this address. Try again later.")
            raise NotFound("There is nothing at this address.")
        return answer


def _verified(row: bytes | None) -> bytes | None:
    """Give the contents of a paper of its row: with the members `OF_PAGE` for a page alone."""
    document = {} if row is None else read_json(row)
    if document.get("card") is not None:
        answer = verified_card(document["card"])
    elif document.get("transcript") is not None:
        answer = verified_transcript(document["transcript"])
    else:
        return None
    return write_json(
        {name: value for name, value in answer.items() if name not in OF_PAGE or prefers_page()}
    )


def _id(text: str) -> UUID:
    """Read an id; a malformed one is nobody's."""
    return UUID(text) if CANONICAL_UUID.fullmatch(text) else _NOBODY


def _traces(code: UUID) -> dict[str, Any]:
    """Describe a code to PostgreSQL, for its log may have the statement: its first 32 bits, and the SHA-256 of all.

    Nobody finds the other 90 random bits by them.
    """
    first = code.int >> _HIDDEN << _HIDDEN
    last = first | (1 << _HIDDEN) - 1
    return {"first": UUID(int=first), "last": UUID(int=last), "digest": sha256(code.bytes).hexdigest()}


@blp.after_request  # type: ignore[untyped-decorator]
def keep_private(response: Response) -> Response:
    """Keep the address, with the code, out of search engines and from other sites."""
    response.headers["X-Robots-Tag"] = "noindex"
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
