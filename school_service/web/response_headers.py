"""Header fields of every answer: what caches may store, and that nobody guesses a media type."""

from __future__ import annotations

from flask import Flask, Response


def register(app: Flask) -> None:
    """Add the fields to every answer of an application.

    Nothing may be stored by a cache unless its view says so: an answer has a person's data, or a token, or may have
    it tomorrow. What is public and says so: the OpenAPI document, its page, and the keys of the built-in provider.
    """

    @app.after_request
    def add(response: Response) -> Response:
        headers = response.headers
        headers["X-Content-Type-Options"] = "nosniff"
        if "Cache-Control" not in headers:
            headers["Cache-Control"] = "no-store"
        return response
