"""The cells of a student's guardians in the sheet of an update: the primary's, and another's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from school_service.core.errors import Invalid
from school_service.features.people.guardians.of_many import NewGuardian
from school_service.features.people.guardians.reads import primary_guardian, second_guardian
from school_service.sheets.sheet_reader import Row

MEMBERS = ("full_name", "relationship", "phone_number", "email_address")
PREFIXES = {"guardian_": "guardian", "guardian_2_": "guardian_2"}
"""The member of a record for a guardian, by the beginning of the columns."""
GUARDIANS = (primary_guardian().label("guardian"), second_guardian().label("guardian_2"))
"""The columns of a SELECT of students with their guardians, as JSON."""


def cells_of(*guardians: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give the stored values of the guardians' columns of a student, read with GUARDIANS."""
    return {
        prefix + name: (guardian or {}).get(name)
        for prefix, guardian in zip(PREFIXES, guardians, strict=True)
        for name in MEMBERS
    }


def texts_of(values: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """Give the texts of a guardian in a row, by member, without blank ones."""
    texts = {name: str(values.get(prefix + name, "")).strip() for name in MEMBERS}
    return {name: text for name, text in texts.items() if text}


def nested(written: Mapping[str, Any], values: Mapping[str, Any], student: Any) -> dict[str, Any]:
    """Nest the written cells of a row as the body of PATCH /students/{id} is nested, another guardian beside the first.

    A new name of a guardian brings all cells of the guardian with it. Raises Invalid for a guardian without a name.
    """
    record = {name: value for name, value in written.items() if not name.startswith("guardian_")}
    for prefix, member in PREFIXES.items():
        cells, names = texts_of(values, prefix), _written(written, prefix)
        if not names:
            continue
        full_name = cells.get("full_name") or getattr(student, f"{prefix}full_name")
        if full_name is None:
            raise Invalid("The record is not valid.", {member: {"full_name": ["Is missing."]}})
        given = cells if "full_name" in names else {name: cells[name] for name in names}
        record[member] = {"full_name": full_name, **given}
    return record


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Give the members of a record, or its errors, by column."""
    members = {member: prefix for prefix, member in PREFIXES.items()}
    by_column: dict[str, Any] = {}
    for name, value in record.items():
        if name not in members:
            by_column[name] = value
        else:
            of_guardian = value if isinstance(value, Mapping) else {"full_name": value}
            by_column |= {members[name] + part: text for part, text in of_guardian.items()}
    return by_column


@dataclass(frozen=True, slots=True)
class Written:
    """A guardian that a row sets, and the cell of the row for an error."""

    row: int
    column: str
    value: str
    guardian: NewGuardian


def guardians_of(student: Any, row: Row, changed: Mapping[str, Any]) -> Iterator[Written]:
    """Find the guardians that a row sets by its changed cells: another before the primary, who may become another."""
    for prefix in reversed(PREFIXES):
        names = _written(changed, prefix)
        if not names:
            continue
        cells = texts_of(row.values, prefix) if "full_name" in names else {}
        full_name = getattr(student, f"{prefix}full_name")
        texts = {"full_name": full_name, **cells, **{name: changed[prefix + name] for name in names}}
        column = prefix + ("full_name" if "full_name" in names else names[0])
        guardian = NewGuardian(str(student.id), texts, names, primary=prefix == "guardian_")
        yield Written(row.number, column, str(changed[column]), guardian)


def _written(names: Mapping[str, Any], prefix: str) -> list[str]:
    """Find the members of a guardian among names of columns."""
    return [name for name in MEMBERS if prefix + name in names]
