"""Reach: the records a permission of the caller leads to, the whole school's or only those of their relations.

The meaning of an operation for a caller with the permission OWN is declared with it (`Own`). While such a caller is
served, the request context has a `Reach`; a caller with a permission for the whole school has none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NoReturn

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    FromClause,
    Select,
    Text,
    Uuid,
    bindparam,
    cast,
    column,
    select,
    table,
)

from school_service.core.errors import Forbidden

_log = logging.getLogger(__name__)

SCHOOL_REACH, OWN_REACH = "SCHOOL", "OWN"
RELATIONS = {
    "T": "subject teacher",
    "F": "form teacher",
    "S": "student",
    "G": "guardian",
    "M": "one's own account and employee record",
}
"""The relations making records one's own, each with its letter."""


@dataclass(frozen=True, slots=True)
class Own:
    """The meaning of an operation for a caller with a permission for their own records alone.

    `relations` are the letters of the relations counting there. `refused`: it serves no such caller. If it is neither
    refused nor of relations, it answers everything, as to everybody.
    """

    relations: str = ""
    refused: bool = False

    def __str__(self) -> str:
        if self.refused:
            return "REFUSED"
        return " ".join(self.relations) or "EVERYTHING"


REFUSED = Own(refused=True)
EVERYTHING = Own()


def related(relations: str) -> Own:
    """Declare that an operation serves OWN with the records of these relations, such as `TF`."""
    if not relations or not set(relations) <= RELATIONS.keys():
        raise ValueError(f"Relations are some of {', '.join(RELATIONS)}, not {relations!r}.")
    return Own("".join(letter for letter in RELATIONS if letter in relations))


# The columns of relations in the caller's state, with their types, in the order in which a statement takes them.
_COLUMNS: dict[str, Any] = {
    "account": Uuid(),
    "student": Uuid(),
    "children": ARRAY(Uuid()),
    "employee": Uuid(),
    "form_batches": ARRAY(Uuid()),
    "taught_subjects": ARRAY(Uuid()),
    "taught_arms": ARRAY(Uuid()),
}
_CALLER = table("caller", *(column(name, kind) for name, kind in _COLUMNS.items()))
_ROW = ", ".join(
    f"%s::uuid{'[]' if isinstance(kind, ARRAY) else ''} AS {name}" for name, kind in _COLUMNS.items()
)


# The column of each relation in the caller's state; M is by the account, which is always there.
_SHOWN_BY = {"T": "taught_subjects", "F": "form_batches", "S": "student", "G": "children"}


def leading(relations: str, state: Mapping[str, Any]) -> str:
    """Name those of some relations with somebody or something in a user's state, read for these relations.

    PostgreSQL would plan the others for nothing.
    """
    return "".join([letter for letter in relations if letter not in _SHOWN_BY or state[_SHOWN_BY[letter]]])


@dataclass(frozen=True, slots=True)
class Reach:
    """The reach of a caller with the permission OWN for this operation: the relations that count and lead somewhere.

    `caller` is the table, of one row, with the relations for conditions (`features.reach.scopes`): in the text of a
    read model the CTE of this name. `made` are the CTEs shared by its conditions.
    """

    relations: str
    caller: FromClause = _CALLER
    made: dict[str, FromClause] = field(default_factory=dict, compare=False, repr=False)

    def by(self, letter: str) -> bool:
        """Tell whether a relation counts."""
        return letter in self.relations

    def once(self, name: str, make: Callable[[], Select[Any]]) -> FromClause:
        """Make a CTE of a query for several conditions, the same for all of them by its name."""
        table = self.made.get(name)
        # Another thread may have made it just now: then it is that one.
        return self.made.setdefault(name, make().cte(name)) if table is None else table


@cache
def reach_by(relations: str) -> Reach:
    """Give the reach by some relations; their texts are built once."""
    return Reach(relations)


@dataclass(frozen=True, slots=True)
class CallersRelations:
    """The relations of the caller, as the transaction's or request's state of them says."""

    values: tuple[Any, ...]
    made: dict[Reach, Reach] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> CallersRelations:
        """Take them from the row of a user's state."""
        return cls(tuple([state[name] for name in _COLUMNS]))

    def before(self, query: str, parameters: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        """Put them, as the table `caller`, before the text of a query reading this table."""
        # The text is a read model's, and values are parameters.
        text = f"WITH caller AS MATERIALIZED (SELECT {_ROW}) SELECT * FROM ({query}) AS answer"  # noqa: S608
        return text, (*self.values, *parameters)

    def reach(self, reach: Reach) -> Reach:
        """Make the reach with them as the values of its table `caller`, one for all statements of the session."""
        values = self.made.get(reach)
        if values is None:
            values = self.made[reach] = self._as_values(reach)
        return values

    def _as_values(self, reach: Reach) -> Reach:
        row = (
            cast(bindparam(None, value, type_=Text()), kind).label(name)
            for (name, kind), value in zip(_COLUMNS.items(), self.values, strict=True)
        )
        return replace(reach, caller=select(*row).cte("caller"), made={})


Scope = Callable[[Reach, Any], ColumnElement[bool]]
"""Makes the condition for a row of a table, of the given columns, to be in reach."""

SCOPES: dict[str, Scope] = {}
"""The condition of each table, by its name; of a table without one nothing is in reach."""


def scope_of(name: str) -> Callable[[Scope], Scope]:
    """Decorate the function making the condition of a table: `records.find` then finds its rows in reach."""

    def decorate(scope: Scope) -> Scope:
        SCOPES[name] = scope
        return scope

    return decorate


def refuse_unjudged(what: str) -> NoReturn:
    """Refuse a statement without a declared meaning for a caller with the permission OWN; raises Forbidden.

    It is a fault of the service: an error in the log names the statement.
    """
    _log.error("A statement does not say what it reads for a permission with reach OWN: %s.", what)
    raise Forbidden("This needs a permission for the whole school.")
