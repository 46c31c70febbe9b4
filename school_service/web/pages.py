"""Pages for a browser in place of JSON: without scripts, and with no style but their own."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any

from flask import Response, render_template, request

HTML = "text/html"
_SHOWN = ("application/json", HTML)  # the first, where both will do
_NO_SCRIPTS = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_STYLE = re.compile("<style>(.*?)</style>", re.DOTALL)


def prefers_page() -> bool:
    """Tell whether the request prefers a page to JSON."""
    return request.accept_mimetypes.best_match(_SHOWN) == HTML


def show_page(template: str, **values: Any) -> Response:
    """Answer a page; its template gets the values, and a `nonce` for its style."""
    nonce = token_urlsafe(16)
    return _page(render_template(template, nonce=nonce, **values), f"'nonce-{nonce}'")


def show_error(error: Response, template: str) -> Response:
    """Answer a page in place of an error, with its status and its header fields.

    The template gets `status`, and `retry_after` in seconds where the error has it. The same error is the same page, to
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
