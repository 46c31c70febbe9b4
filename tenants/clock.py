"""The present moment, bound from Python: ids, times and the actor are, and PostgreSQL's `now()` is never called."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)
