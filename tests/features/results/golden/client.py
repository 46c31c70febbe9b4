"""A client whose requests are repeatable, and a factory whose records are."""

from __future__ import annotations

from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

from tests.client import ApiClient, Document
from tests.factories import Factory
from tests.features.results.golden.repeatable import Repeatable


class _Unchecked(Document):
    """No check of answers against the document: other tests have it, and large answers are most of the time here."""

    def __init__(self) -> None:
        super().__init__(spec={"paths": {}})

    def check(self, *_answer: Any) -> None:
        """Check nothing."""


class RepeatableClient(ApiClient):
    """Speaks to the API: each request is an act, and seven minutes pass before each but a GET."""

    def __init__(self, app: Flask, repeatable: Repeatable, token: str | None, school: Any) -> None:
        super().__init__(app, _Unchecked(), token, school)
        self.repeatable = repeatable

    def using(self, *, token: Any = ..., school: Any = ...) -> RepeatableClient:
        """Make another client with another token or school; None sends none."""
        return RepeatableClient(
            self.app,
            self.repeatable,
            self.token if token is ... else token,
            self.school if school is ... else school,
        )

    def request(self, method: str, path: str, **options: Any) -> TestResponse:
        """Send a request."""
        if method != "GET":
            self.repeatable.wait()
        self.repeatable.begin(f"{method} {path}")
        return super().request(method, path, **options)


class RepeatableFactory(Factory):
    """Makes records, each by an act; names are given."""

    api: RepeatableClient

    def _make(self, path: str, body: dict[str, Any]) -> Any:
        self.api.repeatable.begin(f"make {path}")
        return super()._make(path, body)
