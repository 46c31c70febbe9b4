"""Attendance codes: those of the school, or P, L, A and E until it sets its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import (
    SmallInteger,
    String,
    Text,
    cast,
    column,
    delete,
    select,
    values,
)

from school_service.core.errors import Invalid, names_in_words, refuse_named
from school_service.core.narrowing import everybodys
from school_service.core.read_models import BoundQuery, Query, array_of, json_object, read_model
from school_service.core.statements import fetch_one, in_one_round_trip, new_row, statement, table_lock
from school_service.features.attendance.models import (
    ABSENT,
    DEFAULT_CODES,
    PRESENT,
    AttendanceCode,
)
from school_service.features.audit.service import Change, audit_changes

ENTITY = "attendance-code"

_MEMBERS = ("position", "code", "name", "kind")

_lock = table_lock(AttendanceCode)


@everybodys
def attendance_codes() -> Query:
    """Read model of AttendanceCodeSchema, in their order: the school's own, or the defaults."""
    own = select(AttendanceCode.position, AttendanceCode.code, AttendanceCode.name, AttendanceCode.kind)
    defaults = values(
        column("position", SmallInteger),
        column("code", String),
        column("name", String),
        column("kind", String),
        name="defaults",
    ).data([(number, *code) for number, code in enumerate(DEFAULT_CODES, 1)])
    unset = select(defaults).where(~select(AttendanceCode.id).exists())
    every = own.union_all(unset).subquery("every")
    return select(every.c.code, every.c.name, every.c.kind).order_by(every.c.position)


@read_model
def _stored() -> Query:
    """Select the codes set by a school, a JSON array in their order."""
    code = json_object(**{name: getattr(AttendanceCode, name) for name in ("id", *_MEMBERS)})
    return select(cast(array_of(code, AttendanceCode.position), Text).label("codes"))


def set_codes(codes: Sequence[Mapping[str, Any]]) -> BoundQuery:
    """Replace the codes, in their order: each has `code`, `name` and `kind`; stored marks keep their code and kind.

    Returns their read model, stored and read in one round trip. Raises Invalid for a code with anything but letters or
    digits, or given twice without regard to case, and if no code counts as present or none as absent.
    """
    _refuse(codes)
    stored = orjson.loads(fetch_one(_lock(), _stored())["codes"])
    known = {row["code"].casefold(): row for row in stored}
    read = attendance_codes()
    rows = [
        {
            "id": UUID(known[row["code"].casefold()]["id"]) if row["code"].casefold() in known else None,
            "position": number,
            **row,
        }
        for number, row in enumerate(codes, 1)
    ]
    as_they_are = [_values(row) for row in stored] or [
        {"position": number, "code": code, "name": name, "kind": kind}
        for number, (code, name, kind) in enumerate(DEFAULT_CODES, 1)
    ]
    if [_values(row) for row in rows] == as_they_are:
        return read
    before = {row["id"]: _values(row) for row in stored}
    made = [
        new_row(AttendanceCode, **{name: value for name, value in row.items() if value is not None})
        for row in rows
    ]
    kept = {str(code.id) for code in made}
    audit_changes(
        ENTITY,
        [
            *(Change(UUID(row["id"]), _values(row), None) for row in stored if row["id"] not in kept),
            *(
                Change(code.id, before.get(str(code.id)), _values(code.values))
                for code in made
                if before.get(str(code.id)) != _values(code.values)
            ),
        ],
    )
    return in_one_round_trip(_delete_all(), *made, read=read)


@statement
def _delete_all() -> Any:
    return delete(AttendanceCode)


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _MEMBERS}


def _refuse(codes: Sequence[Mapping[str, Any]]) -> None:
    wrong = {f"{number}.code": row["code"] for number, row in enumerate(codes) if not row["code"].isalnum()}
    if wrong:
        reason = "is not of letters and digits alone"
        words = f"{names_in_words([*wrong.values()])}: a code {reason}"
        raise Invalid(words, {place: [reason] for place in wrong})
    named = Counter(row["code"].casefold() for row in codes)
    twice = [*dict.fromkeys(row["code"] for row in codes if named[row["code"].casefold()] > 1)]
    refuse_named({"_schema": {"there more than once": twice}})
    kinds = {row["kind"] for row in codes}
    for kind in (PRESENT, ABSENT):
        if kind not in kinds:
            raise Invalid(f"No code is {kind}.", {"_schema": [f"no code is {kind}"]})
