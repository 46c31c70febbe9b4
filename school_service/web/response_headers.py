"""Header fields of every answer: what caches may store, and that nobody guesses a media type."""

from __future__ import annotations

FIELDS = (("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store"))
"""The fields of an answer that does not say otherwise.

Nothing may be stored by a cache unless its view says so: an answer has a person's data, or a token, or may have it
tomorrow. What is public and says so: the OpenAPI document, its page, and the keys of the built-in provider.
"""
