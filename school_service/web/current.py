"""The current request, in one call: reading it through Flask's proxy takes five."""

from __future__ import annotations

from collections.abc import Callable

from flask import Request, request

current_request: Callable[[], Request] = request._get_current_object  # type: ignore[attr-defined]
"""Gives the request; raises RuntimeError if there is none."""
