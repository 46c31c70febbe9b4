"""The OpenAPI document at /openapi.json, and its page at /docs."""

from __future__ import annotations

from flask import Flask

from school_service.config import Settings
from school_service.web.errors import HouseApi

DESCRIPTION = """School administration: users, classes, subjects, students and their results.

Each school is a tenant, chosen for a request by the header `X-SCHOOL-ID`. Every operation but `GET /health` needs a
bearer token. `x-permission` names the permission that an operation asks for.
"""


def make_api(app: Flask, settings: Settings, version: str) -> HouseApi:
    """Make the Api that documents the blueprints registered with it."""
    app.config.update(
        API_TITLE="School Service",
        API_VERSION=version,
        OPENAPI_VERSION="3.0.3",
        OPENAPI_URL_PREFIX="/" if settings.docs else None,
        OPENAPI_JSON_PATH="openapi.json",
        API_SPEC_OPTIONS={"info": {"description": DESCRIPTION}},
    )
    api = HouseApi(app)
    api.spec.components.security_scheme("bearer", {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"})
    return api
