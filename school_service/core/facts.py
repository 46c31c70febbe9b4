"""What a column of a person is, said where the column stands, in its `info`.

That is whether a copy of the person's data tells it and in which words docs/privacy.md names it, what erasing the
person does to it, by which relations somebody whose permission is OWN sees it, what the OpenAPI document says of it,
its heading in the import of students, and whether other systems get it. A column of a table whose rows refer to a
person has what its table says, unless it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Case, Column, ColumnElement, Table, select
from sqlalchemy.sql import visitors

from school_service.core.reach import RELATIONS, Reach

STAYS, EMPTIED, BY_SERVICE = "stays", "emptied", "by the service"
"""What erasing does to a column: nothing, null or an empty text in its place, or what the service has a rule for."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The column of a sheet that a column of a person is imported from.

    `meaning` tells who fills it in what to write, `also` has other headings that people give it, with commas between
    them, and `suggested` the values that are offered. `width`: in characters.
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
    """What a column of a person is.

    `words` name it in docs/privacy.md; None where it says nothing of the person, such as an id. `erased` says what
    erasing the person does to it. `own` are the letters of the relations by which OWN sees it; none: nobody does.
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
        """Refuse letters of no relation, and a way of erasing that there is not."""
        if not set(self.own) <= RELATIONS.keys() or self.erased not in {STAYS, EMPTIED, BY_SERVICE}:
            raise ValueError(f"{self!r} has a letter of no relation, or is erased in no known way.")


@dataclass(frozen=True, slots=True)
class Stored:
    """What a table stores of people: of whom, why, and with which permissions it is read; the row of docs/privacy.md.

    `fact` is that of each of its columns that does not differ; None where each column says what it is.
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
    """Make the `info` of a column that differs from its table in these members of `Fact`."""
    return {_FACT: members}


def stored(
    of: str, words: str | None, why: str, read_with: str, erased: str | None = None, own: str | None = None
) -> dict[str, Any]:
    """Make the last part of `__table_args__` of a table of people: the row of docs/privacy.md.

    With `words`, `erased` and `own` these are those of each of its columns; else each column says what it is.
    """
    of_each = None if words is None or erased is None or own is None else Fact(words, erased, own)
    return {"info": {_STORED: Stored(of, why, read_with, of_each)}}


def stored_in(table: Any) -> Stored | None:
    """Give what a table stores of people; None where it says nothing of that."""
    found: Stored | None = table.info.get(_STORED)
    return found


def fact_of(column: Any) -> Fact | None:
    """Give what a column of a table is; None where neither it nor its table says so."""
    said, of_table = column.info.get(_FACT), stored_in(column.table)
    if isinstance(said, Fact) or of_table is None or of_table.fact is None:
        return said if isinstance(said, Fact) else None
    return replace(of_table.fact, **said or {})


def emptied(model: type[Any]) -> dict[str, Any]:
    """Give the values of what erasing empties in a row of a model: null, or an empty text where null may not be."""
    columns: list[Column[Any]] = [*model.__table__.columns]
    facts = ((column, fact_of(column)) for column in columns)
    return {
        column.name: None if column.nullable else ""
        for column, found in facts
        if found is not None and found.erased == EMPTIED
    }


class Shown(Case[Any]):
    """A value that is shown to those alone who may see it, and null to others."""

    inherit_cache = True


def headed(model: type[Any]) -> list[tuple[Column[Any], Heading]]:
    """List the columns of a model that a sheet has, each with its heading, in their order."""
    columns: list[Column[Any]] = [*model.__table__.columns]
    facts = ((column, fact_of(column)) for column in columns)
    return [(column, found.heading) for column, found in facts if found and found.heading]


IsBy = Callable[[Reach, str], ColumnElement[bool]]
"""Makes the condition under which some of the relations of a reach lead to a row."""


def shown(value: Any, reach: Reach | None, is_by: IsBy, *, to: str = "".join(RELATIONS)) -> Any:
    """Show a value to whoever may see all columns of people that it is made of, and null to others.

    `to` are letters of relations, where fewer may see it here than its columns say. Without a reach, and where all its
    relations may see it, it is the value as it is.
    """
    if reach is None:
        return value
    own = set(to).intersection(*_seen_by(value))
    seeing = "".join(letter for letter in reach.relations if letter in own)
    if seeing == reach.relations:
        return value
    found: Any = Shown((is_by(reach, seeing), value))
    return found if value.key is None else found.label(value.key)


def _seen_by(value: Any) -> Iterator[str]:
    """Find by which relations each column of people in an expression is seen, also in conditions of its subqueries."""
    for element in visitors.iterate(select(value)):
        if isinstance(element, Column) and isinstance(element.table, Table) and stored_in(element.table):
            found = fact_of(element)
            # What says nothing is seen by nobody.
            yield "" if found is None else found.own
