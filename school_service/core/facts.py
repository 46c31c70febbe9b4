"""Facts of a column of a person, in the `info` of the column itself.

The facts are whether a copy of the person's data tells it, its words in docs/privacy.md, the effect of erasing the
person on it, the relations showing it to a caller with the permission OWN, its description in the OpenAPI document, its
heading in the import of students, and whether other systems get it. In a table with rows referring to a person, a
column has the facts of the table, unless it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Case, Column, ColumnElement, Table, select
from sqlalchemy.sql import visitors

from school_service.core.reach import RELATIONS, Reach

STAYS, EMPTIED, BY_SERVICE = "stays", "emptied", "by the service"
"""The effects of erasing on a column: none, null or an empty text in its place, or a rule of the service."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The column of a sheet as the source of a column of a person.

    `meaning` explains the column to the person filling in the sheet, `also` has other headings in use for it, with
    commas between them, and `suggested` the offered values. `width`: in characters.
    """

    meaning: str
    required: bool = False
    width: int = 18
    also: str = ""
    suggested: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        """The other headings, each by itself."""
        return tuple(filter(None, self.also.split(", ")))


@dataclass(frozen=True, slots=True)
class Fact:
    """The facts of a column of a person.

    `words` name it in docs/privacy.md; None if the column says nothing of the person, such as an id. `erased` is the
    effect of erasing the person on it. `own` are the letters of the relations showing it to OWN; none: nobody sees it.
    `told`: the copy of the person's data has it. `says` is its description in the OpenAPI document. `exported`:
    OneRoster has it.
    """

    words: str | None
    erased: str
    own: str
    told: bool = True
    says: str | None = None
    heading: Heading | None = None
    exported: bool = False

    def __post_init__(self) -> None:
        """Refuse letters of no relation, and an unknown way of erasing."""
        if not set(self.own) <= RELATIONS.keys() or self.erased not in {STAYS, EMPTIED, BY_SERVICE}:
            raise ValueError(f"{self!r} has a letter of no relation, or is erased in no known way.")


@dataclass(frozen=True, slots=True)
class Stored:
    """The data of people in a table: whose, the purpose, and the permissions to read it; a row of docs/privacy.md.

    `fact` is the fact of each of its columns, unless one differs; None if each column has its own.
    """

    of: str
    why: str
    read_with: str
    fact: Fact | None = None


_FACT, _STORED = "fact", "stored"


def fact(words: str | None, erased: str, *, own: str, **more: Any) -> dict[str, Any]:
    """Make the `info` of a column of a person; `more` are the other members of `Fact`."""
    return {_FACT: Fact(words, erased, own, **more)}


def differing(**members: Any) -> dict[str, Any]:
    """Make the `info` of a column differing from its table in these members of `Fact`."""
    return {_FACT: members}


def stored(
    of: str, words: str | None, why: str, read_with: str, erased: str | None = None, own: str | None = None
) -> dict[str, Any]:
    """Make the last part of `__table_args__` of a table of people: the row of docs/privacy.md.

    With `words`, `erased` and `own` these are the facts of each of its columns; else each column has its own.
    """
    of_each = None if words is None or erased is None or own is None else Fact(words, erased, own)
    return {"info": {_STORED: Stored(of, why, read_with, of_each)}}


def stored_in(table: Any) -> Stored | None:
    """Give the declaration of a table about its data of people; None if it has none."""
    stored: Stored | None = table.info.get(_STORED)
    return stored


def fact_of(column: Any) -> Fact | None:
    """Give the fact of a column of a table; None if neither it nor its table has one."""
    said, of_table = column.info.get(_FACT), stored_in(column.table)
    if isinstance(said, Fact) or of_table is None or of_table.fact is None:
        return said if isinstance(said, Fact) else None
    return replace(of_table.fact, **said or {})


def emptied(model: type[Any]) -> dict[str, Any]:
    """Give the values of the columns emptied by erasing in a row of a model: null, or an empty text if never null."""
    columns: list[Column[Any]] = [*model.__table__.columns]
    facts = ((column, fact_of(column)) for column in columns)
    return {
        column.name: None if column.nullable else ""
        for column, fact in facts
        if fact is not None and fact.erased == EMPTIED
    }


class Shown(Case[Any]):
    """A value shown only to callers with a right to see it, and null to others."""

    inherit_cache = True


def headed(model: type[Any]) -> list[tuple[Column[Any], Heading]]:
    """List the columns of a model with a heading in sheets, each with this heading, in their order."""
    columns: list[Column[Any]] = [*model.__table__.columns]
    facts = ((column, fact_of(column)) for column in columns)
    return [(column, fact.heading) for column, fact in facts if fact and fact.heading]


IsBy = Callable[[Reach, str], ColumnElement[bool]]
"""Makes the condition for some of the relations of a reach to lead to a row."""


def shown(value: Any, reach: Reach | None, is_by: IsBy, *, to: str = "".join(RELATIONS)) -> Any:
    """Show a value to callers with a right to see all columns of people in it, and null to others.

    `to` are letters of relations, if fewer may see it here than its columns say. Without a reach, and if all its
    relations may see it, it is the value as it is.
    """
    if reach is None:
        return value
    own = set(to).intersection(*_seen_by(value))
    seeing = "".join(letter for letter in reach.relations if letter in own)
    if seeing == reach.relations:
        return value
    column: Any = Shown((is_by(reach, seeing), value))
    return column if value.key is None else column.label(value.key)


def _seen_by(value: Any) -> Iterator[str]:
    """Find the relations showing each column of people in an expression, also in conditions of its subqueries."""
    for element in visitors.iterate(select(value)):
        if isinstance(element, Column) and isinstance(element.table, Table) and stored_in(element.table):
            fact = fact_of(element)
            # A column without a fact is seen by nobody.
            yield "" if fact is None else fact.own
