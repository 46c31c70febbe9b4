"""The OpenAPI document at /openapi.json, and its page at /docs.

The page is Swagger UI from an installed package: it loads nothing from the network.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import flask
from apispec import BasePlugin
from flask import Flask, Response, current_app, render_template, request, send_file
from marshmallow import fields

from school_service.config import Settings
from school_service.core.records import singular
from school_service.web.error_responses import HouseApi

DESCRIPTION = """School administration: users, classes, subjects, students, their results and behaviour, staff
and graduates.

**A school for each request.** Each school is a tenant, chosen by the header `X-SCHOOL-ID`. Where that
header is not required, a token that names exactly one school chooses it.

**Tokens.** Every operation but `GET /health` and those under `/auth` needs a bearer token.
`x-permission` names the permission that it asks for; `null` means that any token of the school will do.

**Answers.** Success is always 200. Every error has the one shape `Error`, and its `request_id` is the
answer's header `X-Request-ID`. Paged lists take `pageNumber` and `pageSize`; past the end `data` is empty.

**Input.** Texts are trimmed, and may neither be blank nor hold NUL. Members that an operation does not
know are refused.
"""

# All that the page loads: from the package of Swagger UI, and our own.
_SWAGGER_UI = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
_OWN = {"docs.css": "text/css", "docs.js": "text/javascript", "icon.svg": "image/svg+xml"}

_YEAR = 365 * 24 * 3600  # seconds
# Swagger UI's style sheet holds its icons as data: addresses.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Conventions(BasePlugin):
    """What the document says of an operation without its view having to: its id, its permission in words."""

    def operation_helper(
        self, path: str | None = None, operations: dict[str, Any] | None = None, **_rest: Any
    ) -> None:
        """Complete the operations of a path."""
        for method, operation in (operations or {}).items():
            operation.setdefault("operationId", operation_id(method, path or ""))
            if operation.get("x-permission"):
                need = f"Needs the permission `{operation['x-permission']}`."
                operation["description"] = "\n\n".join(filter(None, (operation.get("description"), need)))


def operation_id(method: str, path: str) -> str:
    """Name an operation by its method and path: `getUsers`, `getUser`, `putUserRoles`, `deleteUserRole`.

    What stands before an id is one of its kind, so it is in the singular; a verb that the path repeats is
    left out.
    """
    parts: list[str] = []
    for part in path.strip("/").split("/"):
        if part.startswith("{"):
            parts[-1] = singular(parts[-1])
        elif part != method:
            parts.append(part)
    words = re.findall(r"[A-Za-z0-9]+", " ".join(parts))
    return method + "".join(word[0].upper() + word[1:] for word in words)


def make_api(app: Flask, settings: Settings, version: str) -> HouseApi:
    """Make the Api that documents the blueprints registered with it, and show that unless DOCS is off."""
    app.config.update(
        API_TITLE="School Service",
        API_VERSION=version,
        OPENAPI_VERSION="3.0.3",
        API_SPEC_OPTIONS={
            "info": {"description": DESCRIPTION},
            # Relative to the document's own address, so that it holds behind a proxy that adds a prefix.
            "servers": [{"url": ".", "description": "This service"}],
        },
    )
    api = HouseApi(app, spec_kwargs={"extra_plugins": [Conventions()]})
    api.spec.components.security_scheme(
        "bearer",
        {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A token of the identity provider, or of `POST /users/login`.",
        },
    )
    api.ma_plugin.converter.add_attribute_function(_or_null)
    if settings.docs:
        app.register_blueprint(_pages(api))
    return api


def _or_null(
    _converter: Any, field: fields.Field[Any], *, ret: dict[str, Any], **_rest: Any
) -> dict[str, Any]:
    """Say of a nested record that it is the record or null, where apispec says the record or any object."""
    if not (isinstance(field, fields.Nested) and field.allow_none):
        return {}
    null = {"type": "object", "nullable": True, "enum": [None]}
    return {"anyOf": [*(shape for shape in ret["anyOf"] if "$ref" in shape), null]}


def _pages(api: HouseApi) -> flask.Blueprint:
    pages = flask.Blueprint("docs", __name__, template_folder="templates")
    assets = _find_assets()
    digest = hashlib.sha256(b"".join(path.read_bytes() for path, _ in assets.values())).hexdigest()[:12]

    @cache
    def document() -> tuple[bytes, str]:
        # Asked for by the first request, when every feature has been registered.
        text = current_app.json.dumps(api.spec.to_dict()).encode()
        return text, hashlib.sha256(text).hexdigest()[:32]

    @pages.get("/openapi.json")
    def openapi() -> Response:
        text, tag = document()
        response = Response(text, mimetype="application/json")
        response.set_etag(tag)
        response.cache_control.no_cache = True
        return response.make_conditional(request)  # type: ignore[return-value]

    @pages.get("/docs")
    def page() -> Response:
        response = Response(render_template("docs.html"))
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.cache_control.no_cache = True
        return response

    @pages.get(f"/docs/assets/{digest}/<any({','.join(map(repr, assets))}):name>")
    def asset(name: str) -> Response:
        path, kind = assets[name]
        # The address changes with the content, so that it never has to be asked for again.
        response = send_file(path, mimetype=kind, max_age=_YEAR)
        response.cache_control.public = True
        response.cache_control.immutable = True
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return pages


def _find_assets() -> dict[str, tuple[Path, str]]:
    """Find the files that the page loads, each with its media type."""
    folders = ((files("flask_swagger_ui") / "dist", _SWAGGER_UI), (files(__package__) / "static", _OWN))
    return {
        name: (Path(str(folder / name)), kind) for folder, names in folders for name, kind in names.items()
    }
