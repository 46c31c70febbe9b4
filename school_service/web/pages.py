"""Pages for a browser in place of JSON: without scripts, and with no style but their own.

Pages with a form show a picture of ours at most. The fields of a form are taken from our own page alone
(`read_own_form`): nothing of another site can sign anybody in.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any
from urllib.parse import urlsplit

from flask import Response, render_template, request

from school_service.core.errors import ANSWER_LIMIT, Forbidden, TooLarge

HTML = "text/html"
FORM = "application/x-www-form-urlencoded"
FORM_LIMIT = 64 * 1024  # bytes
_LONGEST_ACCEPT = 1000  # characters; browsers send some 150
_SHOWN = ("application/json", HTML)  # the first, where both will do
_NO_SCRIPTS = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# No form-action: with 'self' Chromium drops a redirect to another site that answers a form.
_FORM_POLICY = (
    "default-src 'none'; img-src 'self'; style-src {style}; base-uri 'none'; frame-ancestors 'none'"
)
_FORM_FIELDS = (
    ("X-Frame-Options", "DENY"),
    # With no-referrer Chromium says of every form that it comes from nowhere: `Origin: null`.
    ("Referrer-Policy", "same-origin"),
    ("X-Robots-Tag", "noindex"),
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_STYLE = re.compile("<style>([^<]*+)</style>")


def preferred_type(media_types: Sequence[str]) -> str | None:
    """Find the media type preferred by the request; the first if any will do, and if Accept is too long.

    Werkzeug reads the header with an expression taking seconds for one of 64 KiB of spaces.
    """
    if len(request.headers.get("Accept", "")) > _LONGEST_ACCEPT:
        return media_types[0]
    return request.accept_mimetypes.best_match(media_types)


def prefers_page() -> bool:
    """Tell whether the request prefers a page to JSON."""
    return preferred_type(_SHOWN) == HTML


def show_page(template: str, **values: Any) -> Response:
    """Answer a page; its template gets the values, and a `nonce` for its style."""
    nonce = token_urlsafe(16)
    return _page(render_template(template, nonce=nonce, **values), f"'nonce-{nonce}'")


def show_form(template: str, *, status: int = 200, **values: Any) -> Response:
    """Answer a page with a form; its template gets the values, and a `nonce` for its style.

    Raises TooLarge if it is the page of an error, and is longer than an error may be, as with long values shown again.
    """
    nonce = token_urlsafe(16)
    page = render_template(template, nonce=nonce, **values).encode()
    if status >= 400 and len(page) > ANSWER_LIMIT:
        raise TooLarge("What was sent is too long to be shown again.")
    response = Response(page, status, mimetype=HTML)
    response.headers["Content-Security-Policy"] = _FORM_POLICY.format(style=f"'nonce-{nonce}'")
    response.headers.extend(_FORM_FIELDS)
    return response


class ForeignForm(Forbidden):
    """A form was sent by a page of another site, or by an unknown page."""


def read_own_form(public_url: str) -> dict[str, str]:
    """Read the fields of a form sent by a page of this service; a field given twice counts as left out.

    Raises ForeignForm, and RequestEntityTooLarge beyond FORM_LIMIT.
    """
    if not sent_by_own_page(public_url):
        raise ForeignForm("The form was not sent by a page of this service.")
    request.max_content_length = FORM_LIMIT
    if request.mimetype != FORM:
        return {}
    return {name: values[0] for name, values in request.form.lists() if len(values) == 1}


def sent_by_own_page(public_url: str) -> bool:
    """Tell whether a page of this service has sent the request, as its browser says.

    Browsers say so in Sec-Fetch-Site or, on a network without TLS, in Origin alone: it is then the origin of
    `public_url`.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    return request.headers.get("Origin") == origin_of(public_url)


@lru_cache(maxsize=8)
def origin_of(address: str) -> str:
    """Write the origin of an address as browsers do: in lower case, without the default port of its scheme."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def show_error(error: Response, template: str) -> Response:
    """Answer a page in place of an error, with its status and its header fields.

    The template gets `status`, and `retry_after` in seconds if the error has it. The same error is the same page, to
    the byte: its style is let through by its hash.
    """
    retry_after = error.headers.get("Retry-After", type=int)
    page = render_template(template, status=error.status_code, retry_after=retry_after)
    style = b64encode(sha256("".join(_STYLE.findall(page)).encode()).digest()).decode()
    response = _page(page, f"'sha256-{style}'")
    response.status_code = error.status_code
    for name, value in error.headers:
        response.headers.setdefault(name, value)
    return response


def _page(page: str, style: str) -> Response:
    response = Response(page, mimetype=HTML)
    response.headers["Content-Security-Policy"] = f"{_NO_SCRIPTS}; style-src {style}"
    return response
