"""Holds the locks of every transaction that a test sends against the one order of locks (`core.lock_order`).

The locks of a statement are read off its text: the tables of `FOR UPDATE` and its weaker forms, the changed tables, and
the tables to which inserted rows refer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from school_service.core.database import db
from school_service.core.lock_order import LOCK_ORDER, rank

_FOREIGN_KEY = "KEY SHARE"

# A foreign key's lock waits for deletions alone. Of other tables these lock the row and nothing more, so that they wait
# for nobody while somebody waits for them.
_DELETED_WITH_MORE = {"terms", "cohorts", "batches", "cohort_subjects", "assessments", "students"}
# They are deleted under the lock of the cohort.
_OF_COHORT = {"batches", "cohort_subjects"}
# The form teachers that a session is given anew are employees, and the students who take its subjects are not.
_APART = {("employees", "students"), ("users", "students")}

_LOCKING = re.compile(r"\bFOR (NO KEY UPDATE|UPDATE|SHARE|KEY SHARE)(?: OF (\w+(?:, \w+)*))?(?! SKIP)(?!\w)")
_INSERTED = re.compile(r"INSERT INTO (\w+)\s*\(([^)]*)\)")
_UPDATED = re.compile(
    r"(?<!DO )UPDATE (\w+)(?: AS \w+)? SET (.*?)(?= FROM | \nFROM | WHERE | \nWHERE |$)", re.S
)
_DELETED = re.compile(r"DELETE FROM (\w+)")
_ALIASED = re.compile(r"(?:FROM|JOIN) (\w+)(?: AS (\w+))?")
_OF_ONE = re.compile(r"\b\w*id = %|\b\w*id = \(SELECT")

Lock = tuple[str, str]  # a table, and the mode


class LockOrder:
    """The locks of the transaction under way, by table, and the locks out of order in all of them."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self._counts = False
        self._held: list[str] = []
        self._new: set[str] = set()

    def take(self, message: str) -> None:
        """Follow the statements of a message; a transaction that no caller is judged in is the test's own."""
        if message.startswith(("SAVEPOINT", "ROLLBACK")):
            self._counts = "caller_state(" in message
            self._held, self._new = [], set()
        for statement in message.split(";\n") if self._counts else ():
            if not statement.startswith("\nINSERT INTO audit_entries"):
                locks, new, unordered = locks_of(statement)
                self.wrong += [f"{table} in no order of rows: {statement}" for table in unordered]
                for table, mode in locks:
                    self._take(table, mode, statement)
                self._new |= new

    def _take(self, table: str, mode: str, statement: str) -> None:
        if table in self._held or table in self._new:
            return
        if mode == _FOREIGN_KEY and table in _OF_COHORT and "cohorts" in self._held:
            return
        behind = [held for held in self._held if rank(held) > rank(table) and (held, table) not in _APART]
        if behind:
            self.wrong.append(f"{table} ({mode}) after {', '.join(behind)}: {statement}")
        self._held.append(table)


@lru_cache(maxsize=4096)
def locks_of(statement: str) -> tuple[tuple[Lock, ...], frozenset[str], tuple[str, ...]]:
    """Give the locks of a statement in their order, the tables of its new rows, and the tables in no order of rows.

    Tables without a place in the order, and locks that no deletion waits with, are left out.
    """
    places: list[tuple[int, list[Lock]]] = []
    unordered: list[str] = []
    for lock in _LOCKING.finditer(statement):
        query = _query_before(statement, lock.start())
        tables = _tables_of(lock[2], query)
        places.append((lock.start(), [(table, lock[1]) for table in tables]))
        if "ORDER BY" not in query and "WHERE" in query and not _OF_ONE.search(query):
            unordered += [table for table in tables if table in LOCK_ORDER]
    new: set[str] = set()
    for row in _INSERTED.finditer(statement):
        new.add(row[1])
        columns = {column.strip(' "\n') for column in row[2].split(",")}
        places.append(
            (row.start(), [(parent, _FOREIGN_KEY) for parent in _parents(row[1], frozenset(columns))])
        )
    for row in _UPDATED.finditer(statement):
        columns = set(re.findall(r"(\w+)\s*=", row[2]))
        parents = [(parent, _FOREIGN_KEY) for parent in _parents(row[1], frozenset(columns))]
        places.append((row.start(), [(row[1], "UPDATE"), *parents]))
    places += [(row.start(), [(row[1], "UPDATE")]) for row in _DELETED.finditer(statement)]
    locks = [lock for _, some in sorted(places, key=lambda each: each[0]) for lock in some]
    counted = [
        (table, mode)
        for table, mode in locks
        if table in LOCK_ORDER and (mode != _FOREIGN_KEY or table in _DELETED_WITH_MORE)
    ]
    return tuple(counted), frozenset(new), tuple(unordered)


def _tables_of(of: str | None, query: str) -> list[str]:
    """Name the tables locked by a query: the named ones, or all that it reads."""
    # Queries in brackets stand by themselves: a lock without names does not reach them.
    number = 1
    while number:
        query, number = re.subn(r"\([^()]*\)", "", query)
    names = {alias or table: table for table, alias in _ALIASED.findall(query)}
    return [names.get(alias, alias) for alias in of.split(", ")] if of else [*names.values()]


def _query_before(statement: str, end: int) -> str:
    """Cut out the query that ends in a lock, from its FROM on."""
    depth = 0
    for place in range(end - 1, -1, -1):
        character = statement[place]
        if character == ")":
            depth += 1
        elif character == "(":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and statement.startswith("FROM ", place):
            return statement[place:end]
    return ""


@cache
def _parents(table: str, columns: frozenset[str]) -> tuple[str, ...]:
    """Name the tables to which a row refers by foreign keys of these columns."""
    if table not in db.Model.metadata.tables:
        return ()
    keys = db.Model.metadata.tables[table].foreign_key_constraints
    return tuple(_referred(keys, columns))


def _referred(keys: object, columns: frozenset[str]) -> Iterator[str]:
    for key in sorted(keys, key=lambda each: str(each.name)):  # type: ignore[call-overload]
        if {column.name for column in key.columns} <= columns:
            yield key.referred_table.name
