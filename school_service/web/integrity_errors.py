"""Violated constraints as errors of the client: found by the constraint's name, also if two write at once.

The metadata has table and columns of each constraint, so no feature writes such a message. A constraint with words of
its own brings them: `UniqueConstraint(…, info={"message": "…"})`; one on a column computed by the service names the
field it is computed of: `info={"field": "…"}`. Where bodies have other members than the columns, it names those whose
value is taken: `info={"members": (…)}`. One whose violation is no duplicate brings its reason: `info={"type": …}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import CheckConstraint, Constraint, Index, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import ColumnCollectionConstraint

from school_service.core.database import db
from school_service.core.error_types import ErrorType
from school_service.core.records import record_name
from tenants import driver_errors

# Values that PostgreSQL can't store although validation let them pass.
_BAD_VALUE = re.compile(r"22...|23502|23514")


@dataclass(frozen=True, slots=True)
class Violation:
    """The violation of a constraint: the status, the reason, the message and the fields at fault of its answer."""

    status: int
    type: ErrorType
    message: str
    fields: dict[str, list[str]] = field(default_factory=dict)


def violation(error: DBAPIError) -> Violation | None:
    """Find the constraint violated by a failed statement; None if it failed for another reason."""
    state = driver_errors.violated_state(error)
    if state == "23505":
        return _duplicate(_constraint_name(error))
    if state == "23503":
        return _broken_reference(error)
    if state == "23P01":
        return _overlap(_constraint_name(error))
    if _BAD_VALUE.fullmatch(state):
        own = _own_message(_constraint_name(error)) if state == "23514" else None
        return Violation(422, ErrorType.VALIDATION, own or "A value can't be stored.")
    return None


@dataclass(frozen=True, slots=True)
class _Known:
    """A constraint of the metadata: its table, its columns, and its own members, message and reason, if it has them."""

    table: Table
    columns: tuple[str, ...]
    members: tuple[str, ...] | None
    message: str | None
    type: ErrorType | None


def _constraint_name(error: DBAPIError) -> str:
    """Name the violated constraint as the metadata does, if the metadata has it."""
    names = driver_errors.constraint_names(error) or ("",)
    return next((name for name in names if name in _constraints()), names[-1])


def _own_message(name: str) -> str | None:
    known = _constraints().get(name)
    return known.message if known else None


def _duplicate(name: str) -> Violation:
    known = _constraints().get(name)
    if known is None:
        return Violation(409, ErrorType.DUPLICATE, "A record with these values exists already.")
    names = [_field(column) for column in known.columns]
    fields = {name: ["already taken"] for name in known.members or names}
    columns = " and ".join(name.replace("_", " ") for name in names)
    words = _one_of(known.table)
    message = f"{words[0].upper()}{words[1:]} with this {columns} exists already."
    return Violation(409, known.type or ErrorType.DUPLICATE, known.message or message, fields)


def _overlap(name: str) -> Violation:
    known = _constraints().get(name)
    record = "record" if known is None else record_name(known.table)
    return Violation(
        409, ErrorType.DUPLICATE, (known and known.message) or f"It collides with another {record}."
    )


def _broken_reference(error: DBAPIError) -> Violation:
    """A reference was broken between the check and the write: the referenced record has gone, or is in use."""
    name = _constraint_name(error)
    known = _constraints().get(name)
    if str(error.orig).startswith("insert or update"):
        columns = known.columns if known else ()
        fields = {_field(column): ["does not exist"] for column in columns}
        return Violation(
            422, ErrorType.UNKNOWN_ID, "A record that the input refers to does not exist.", fields
        )
    if known is None:
        return Violation(409, ErrorType.IN_USE, "The record is in use.")
    used = next(key.referred_table for key in known.table.foreign_key_constraints if key.name == name)
    message = f"The {record_name(used)} is in use by {_one_of(known.table)}."
    return Violation(409, ErrorType.IN_USE, known.message or message)


@cache
def _constraints() -> dict[str, _Known]:
    """The constraints and unique indexes of all models, by name."""
    constraints: dict[str, _Known] = {}
    for table in db.Model.metadata.tables.values():
        for constraint in table.constraints:
            if isinstance(constraint, CheckConstraint):
                constraints[str(constraint.name)] = _describe(table, constraint, None)
            elif isinstance(constraint, ColumnCollectionConstraint):
                constraints[str(constraint.name)] = _describe(table, constraint, constraint.columns)
        for index in table.indexes:
            if index.unique:
                constraints[str(index.name)] = _describe(table, index, index.columns)
    return constraints


def _describe(table: Table, source: Constraint | Index, columns: Iterable[Any] | None) -> _Known:
    names = tuple(column.name for column in columns) if columns is not None else ()
    if "field" in source.info:
        names = (source.info["field"],)
    info = source.info
    return _Known(table, names, info.get("members"), info.get("message"), info.get("type"))


def _one_of(table: Table) -> str:
    name = record_name(table)
    # "A user": the names with a u begin with the sound of a consonant.
    return f"an {name}" if name[0] in "aeio" else f"a {name}"


def _field(column: str) -> str:
    return column.removesuffix("_id")
