"""The columns of a table within the stored data of a person: all but the ones marked as not told.

The hash of a password or token and the code of a paper say nothing of a person, and help anybody getting hold of the
document. The columns of a guardian in students hold nothing any more. The corrector of a mark is somebody else, and so
is the amender of a promotion. The author of a guardian's stop, and its reason, may harm others: a child, and the person
asking for the stop.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, LargeBinary, func

from school_service.core.facts import fact_of

OF_THE_ACTOR = frozenset({"actor", "actor_name", "address"})
"""Columns of the audit log on the author of a change: told if the person is the author, and null otherwise."""


def told_columns(model: type[Any]) -> list[Column[Any]]:
    """List the columns of a model's table told in the document, in their order; bytes as base64."""
    facts = ((column, fact_of(column)) for column in model.__table__.columns)
    told = [column for column, fact in facts if fact is not None and fact.told]
    return [_in_base64(column) if isinstance(column.type, LargeBinary) else column for column in told]


def _in_base64(column: Column[Any]) -> Any:
    # PostgreSQL divides it into lines.
    return func.replace(func.encode(column, "base64"), "\n", "").label(column.name)
