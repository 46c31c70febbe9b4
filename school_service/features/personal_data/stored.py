"""Which columns of a table belong to what is stored of a person: all but those that say they are not told.

The hash of a password or token and the code of a paper say nothing of a person, and help whoever gets hold of the
document. The columns of a guardian in students hold nothing any more. Who corrected a mark is somebody else. Who
stopped a guardian, and why, may harm others: a child, and whoever asked for it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, LargeBinary, func

from school_service.core.facts import fact_of

OF_THE_ACTOR = frozenset({"actor", "actor_name", "address"})
"""Columns of the audit log that tell of whoever made a change: told where that is the person, and null elsewhere."""


def told_columns(model: type[Any]) -> list[Column[Any]]:
    """List the columns of a model's table that the document tells, in their order; bytes as base64."""
    facts = ((column, fact_of(column)) for column in model.__table__.columns)
    told = [column for column, found in facts if found is not None and found.told]
    return [_in_base64(column) if isinstance(column.type, LargeBinary) else column for column in told]


def _in_base64(column: Column[Any]) -> Any:
    # PostgreSQL divides it into lines.
    return func.replace(func.encode(column, "base64"), "\n", "").label(column.name)
