"""The present moment, bound from Python: PostgreSQL's `now()` is never called (a rule of sharding)."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)
