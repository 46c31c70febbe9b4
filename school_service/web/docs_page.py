"""The OpenAPI document at /openapi.json, its page at /docs, also the target of /, and a guide at /docs/guide.

The page is Swagger UI from an installed package: it loads nothing from the network. The guide is a school's year, step
by step, with real answers; docs/write_api_guide.py writes it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import flask
import flask_smorest
from flask import Response, current_app, render_template, request, send_file, url_for
from markupsafe import Markup

# All that the page loads: from the package of Swagger UI, and our own.
_SWAGGER_UI = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
_OWN = {
    "docs.css": "text/css",
    "guide.css": "text/css",
    "docs.js": "text/javascript",
    "guide.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}

# Where the sign-in page leads back to from "Authorize": from the package of Swagger UI, by its own name.
_BACK = {"oauth2-redirect.html": "text/html", "oauth2-redirect.js": "text/javascript"}

_DAY, _YEAR = 24 * 3600, 365 * 24 * 3600  # seconds
# Swagger UI's style sheet embeds its icons as data: addresses.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def docs_blueprint(api: flask_smorest.Api) -> flask.Blueprint:
    """Make the blueprint of the document and its page."""
    pages = flask.Blueprint("docs", __name__, template_folder="templates")
    assets = _find_assets()
    digest = hashlib.sha256(b"".join(path.read_bytes() for path, _ in assets.values())).hexdigest()[:12]

    @cache
    def document() -> tuple[bytes, str]:
        # Written at the first request, when every feature has been registered.
        text = current_app.json.dumps(api.spec.to_dict()).encode()
        return text, hashlib.sha256(text).hexdigest()[:32]

    @pages.get("/openapi.json")
    def openapi() -> Response:
        text, tag = document()
        response = Response(text, mimetype="application/json")
        response.set_etag(tag)
        response.cache_control.no_cache = True
        return response.make_conditional(request)  # type: ignore[return-value]

    @pages.get("/", strict_slashes=False)
    def home() -> Response:
        # A proxy may have taken a prefix away, which is not known here: so the address is a relative one.
        prefix = request.script_root
        return Response(status=302, headers={"Location": f"{prefix}/docs" if prefix else "docs"})

    @pages.get("/docs")
    def page() -> Response:
        return _page_response(render_template("docs.html", beside=_beside))

    @pages.get(f"/docs/<any({','.join(map(repr, _BACK))}):name>")
    def back(name: str) -> Response:
        return _page_response(
            (files("flask_swagger_ui") / "dist" / name).read_text(encoding="utf-8"), _BACK[name]
        )

    @pages.get("/favicon.ico")
    def icon() -> Response:
        # Browsers ask for it beside every page that names no icon, such as the page for signing in.
        path, kind = assets["icon.svg"]
        response = Response(path.read_bytes(), mimetype=kind)
        response.cache_control.public = True
        response.cache_control.max_age = _DAY
        return response

    @pages.get("/docs/guide")
    def guide() -> Response:
        return _page_response(render_template("guide.html", beside=_beside_guide, guide=_guide()))

    @pages.get(f"/docs/assets/{digest}/<any({','.join(map(repr, assets))}):name>")
    def asset(name: str) -> Response:
        path, kind = assets[name]
        # The address changes with the content, so that it can be cached for ever.
        response = send_file(path, mimetype=kind, max_age=_YEAR)
        response.cache_control.public = True
        response.cache_control.immutable = True
        return response

    return pages


def _page_response(page: str, kind: str = "text/html") -> Response:
    response = Response(page, mimetype=kind)
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    response.cache_control.no_cache = True
    return response


@cache
def _guide() -> Markup:
    """Read the guide, our own HTML."""
    return Markup((files(__package__) / "documentation" / "guide.html").read_text(encoding="utf-8"))  # noqa: S704


def _beside_guide(endpoint: str, **values: Any) -> str:
    """Write an address relative to the guide's own, one step below the page's."""
    return f"../{_beside(endpoint, **values)}"


def _beside(endpoint: str, **values: Any) -> str:
    """Write an address relative to the page's own, so that it holds behind any prefix of a proxy."""
    return url_for(endpoint, **values).removeprefix(f"{request.script_root}/")


def _find_assets() -> dict[str, tuple[Path, str]]:
    """Find the files of the page, each with its media type."""
    folders = ((files("flask_swagger_ui") / "dist", _SWAGGER_UI), (files(__package__) / "static", _OWN))
    return {
        name: (Path(str(folder / name)), kind) for folder, names in folders for name, kind in names.items()
    }
