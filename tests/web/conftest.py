"""An application of the tests' own, whose views take input of every kind and fail in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from flask.views import MethodView
from marshmallow import fields
from sqlalchemy.exc import DataError, InternalError
from werkzeug.test import TestResponse

from school_service.app import create_app
from school_service.config import Settings
from school_service.web.blueprint import Blueprint
from school_service.web.fields import (
    Choice,
    Email,
    Id,
    IsoDate,
    Points,
    QueryBoolean,
    QueryInteger,
    StrictBoolean,
    StrictInteger,
    Text,
    free_text,
)
from school_service.web.schemas import RecordSchema, Schema
from tenants.tenancy import Tenancy
from tests.conftest import dispose

SECRET = 'SELECT secret FROM school_0123456789abcdef0123456789abcdef.users: relation "users" psycopg2'


class InnerSchema(Schema):
    """An object within a body."""

    text = Text()


class InputSchema(Schema):
    """One field of each kind."""

    text = Text(required=False)
    optional_text = Text(least=0, required=False)
    long_text = free_text(required=False)
    untrimmed = Text(trim=False, required=False)
    email = Email(required=False)
    id = Id(required=False)
    day = IsoDate(required=False)
    flag = StrictBoolean(required=False)
    whole = StrictInteger(0, 100, required=False)
    any_whole = StrictInteger(required=False)
    points = Points(required=False)
    choice = Choice(("FIRST", "SECOND"), required=False)
    inner = fields.Nested(InnerSchema)
    texts = fields.List(Text())


class QuerySchema(Schema):
    """One query parameter of each kind."""

    text = Text(required=False)
    id = Id(required=False)
    whole = QueryInteger(0, 100, required=False)
    flag = QueryBoolean(required=False)


class TakenSchema(RecordSchema):
    """The values understood of the input, as Python writes them."""

    taken = fields.Dict(keys=fields.String(), values=fields.String())


def _as_answer(given: dict[str, Any]) -> dict[str, Any]:
    return {"taken": {name: repr(value) for name, value in given.items()}}


def _driver_error(kind: type[Exception]) -> Callable[[], Exception]:
    return lambda: kind(SECRET, {"password": "hidden"}, ValueError(SECRET))


FAILURES: dict[str, Callable[[], Exception]] = {
    "python": lambda: RuntimeError(SECRET),
    "chained": lambda: ExceptionGroup(SECRET, [ValueError(SECRET)]),
    "key": lambda: KeyError(SECRET),
    "driver": _driver_error(InternalError),
    "value": _driver_error(DataError),
    "recursion": lambda: RecursionError(SECRET),
    "memory": lambda: MemoryError(SECRET),
}


def _probe() -> Blueprint:
    probe = Blueprint("probe", __name__, description="Takes everything, and fails.")

    @probe.route("/probe")
    class Probe(MethodView):
        @probe.public
        @probe.arguments(QuerySchema, location="query")
        @probe.returns(TakenSchema)
        def get(self, given: dict[str, Any]) -> Any:
            """Show the values understood of a query."""
            return _as_answer(given)

        @probe.public
        @probe.arguments(InputSchema)
        @probe.returns(TakenSchema)
        def post(self, given: dict[str, Any]) -> Any:
            """Show the values understood of a body."""
            return _as_answer(given)

    @probe.route("/probe/file")
    class ProbeFile(MethodView):
        @probe.public
        @probe.takes_file("sheet")
        @probe.returns(TakenSchema)
        def post(self, sheet: Any) -> Any:
            """Show the size of a file."""
            return _as_answer({"size": len(sheet.read())})

    @probe.route("/probe/failure/<string:kind>")
    class ProbeFailure(MethodView):
        @probe.public
        @probe.returns(TakenSchema)
        def get(self, kind: str) -> Any:
            """Fail."""
            raise FAILURES[kind]()

    return probe


@pytest.fixture(scope="session")
def probing(settings: Settings, tenancy: Tenancy) -> Iterator[Flask]:
    """An application with the probe; uploads are limited to 100,000 bytes."""
    app = create_app(replace(settings, max_upload_bytes=100_000))
    app.extensions["flask-smorest"]["apis"][""]["ext_obj"].register_blueprint(_probe())
    yield app
    dispose(app)


@pytest.fixture
def post(probing: Flask) -> Callable[..., TestResponse]:
    """Sends a body, as text or bytes, to the probe."""

    def send(
        body: str | bytes, content_type: str | None = "application/json", **options: Any
    ) -> TestResponse:
        raw = body.encode() if isinstance(body, str) else body
        return probing.test_client().post("/probe", data=raw, content_type=content_type, **options)

    return send
