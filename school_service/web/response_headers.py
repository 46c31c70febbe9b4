"""Header fields of answers: rules for caches, and for pages of other origins calling the API (CORS, Fetch)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flask import Flask, Response, request
from flask_cors import CORS

from school_service.config import ALL_ORIGINS

FIELDS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
    # No page shows an answer in a frame of its own, a picture or a PDF either.
    ("Content-Security-Policy", "frame-ancestors 'none'"),
)
"""The fields of an answer, unless it has others.

Nothing may be stored by a cache unless its view says so: an answer has a person's data, or a token, or may have it
tomorrow. These are public and say so: the OpenAPI document, its page, and the keys of the built-in provider.
"""

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Fields of an answer's header that a script may read, beside the few that every script may.
EXPOSED = (
    "Allow",
    "Content-Disposition",
    "ETag",
    "Idempotency-Replayed",
    "Retry-After",
    "WWW-Authenticate",
    "X-Request-ID",
)
PREFLIGHT_MAX_AGE = 7200  # seconds: the most that Chromium stores one


NO_PAGE = r"/(?!auth/(?:authorize\Z|logout\Z|invitation\Z|[^/]+/invitation/))"
"""The paths for scripts of other origins to read: all but the pages for signing in."""


def answer_fields(origins: Sequence[str], origin: str | None) -> dict[str, str]:
    """Make the header fields to let a page read an answer made without the application.

    `origins` are those of the setting, `origin` is the request's, if it has one.
    """
    if not origins:
        return {}
    exposed = {"Access-Control-Expose-Headers": ", ".join(EXPOSED)}
    if ALL_ORIGINS in origins:
        return {"Access-Control-Allow-Origin": ALL_ORIGINS, **exposed}
    if origin is None or origin not in origins:
        return {"Vary": "Origin"}
    return {"Access-Control-Allow-Origin": origin, **exposed, "Vary": "Origin"}


def register(app: Flask, origins: Sequence[str]) -> None:
    """Let scripts of pages of these origins read answers, errors among them; of none, nothing changes.

    Never with credentials: the caller is known by a token alone, so that no page can use the cookies or certificate of
    its reader. For that reason any header field may be sent.
    """
    if not origins:
        return
    every = ALL_ORIGINS in origins
    CORS(
        app,
        resources=NO_PAGE,
        origins=ALL_ORIGINS if every else [re.compile(rf"{re.escape(origin)}\Z") for origin in origins],
        methods=METHODS,
        expose_headers=EXPOSED,
        max_age=PREFLIGHT_MAX_AGE,
        supports_credentials=False,
        send_wildcard=every,
        always_send=every,
        # Said below of every answer: one that was stored without an origin must not be shown to another.
        vary_header=False,
    )

    @app.before_request
    def answer_preflight() -> Response | None:
        # Before the address is looked up: a script learns of a wrong one from the request itself, as a 404.
        if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            return Response()
        return None

    @app.after_request
    def vary(response: Response) -> Response:
        if not every:
            response.vary.add("Origin")
        return response
