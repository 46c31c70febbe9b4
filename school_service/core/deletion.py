"""Deleting unused records, and naming, counted, the records referring to a record in use.

References to a record are read off the foreign keys of the metadata, so that a new table is counted without anyone
having to think of it. A foreign key may declare its rows to go with their parent row, all of them or those meeting a
condition: `ForeignKey("cohorts.id", info=goes_with())`; those with ON DELETE CASCADE do so by themselves. Rows going
along count for nothing, but rows referring to them do.

The record is locked FOR UPDATE, and then the rows going with it, in the order of all locks (`core.lock_order`), before
anything is counted: a row referring to one of them was committed before and is counted, or is inserted afterwards and
finds nothing to refer to. The foreign keys are there all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    ForeignKey,
    ForeignKeyConstraint,
    Select,
    Table,
    and_,
    delete,
    func,
    literal_column,
    not_,
    select,
    true,
)

from school_service.core.database import db
from school_service.core.errors import InUse
from school_service.core.lock_order import rank
from school_service.core.read_models import Query, ReadModel, read_model
from school_service.core.records import not_found, record_name, singular
from school_service.core.statements import Executable, Lock, execute, statement

MOST_COUNTED = 10_000
"""Of each table: nobody needs to know it more exactly, and counting takes no longer with the years."""

WORDS = {
    "absences": "absences",
    "assessments": "assessments",
    "bank_accounts": "bank accounts",
    "batches": "batches",
    "cohort_subjects": "cohort subjects",
    "cohorts": "cohorts",
    "contacts": "contacts",
    "employees": "employees",
    "enrollments": "enrollments",
    "form_teachers": "form teachers",
    "gradebook_entries": "scores",
    "graduates": "graduates",
    "guardians": "guardians",
    "invitations": "invitations",
    "issued_transcripts": "issued transcripts",
    "left_out_students": "left-out students",
    "letterheads": "letterheads",
    "marks": "attendance marks",
    "metric_scores": "trait scores",
    "metrics": "metric records",
    "next_of_kin": "next of kin",
    "promotion_amendments": "amended promotion decisions",
    "promotion_batches": "promotion moves",
    "promotion_decisions": "promotion decisions",
    "promotion_rule_subjects": "promotion rules",
    "promotions": "promotions",
    "publications": "publications",
    "registers": "registers",
    "report_cards": "report cards",
    "role_permissions": "permissions",
    "student_guardians": "guardians",
    "students": "students",
    "subject_enrollments": "subject enrollments",
    "subject_teachers": "subject teachers",
    "submissions": "submissions",
    "term_calendars": "term calendars",
    "term_comments": "comments",
    "terms": "terms",
    "user_identities": "identities",
    "user_photos": "photos",
    "user_roles": "users",
    "user_sessions": "sign-ins",
}
"""The names that people use for the rows of each referring table."""

_GOES = "goes_with"
Condition = Callable[[Table], ColumnElement[bool]]
"""Tells of a row of a table whether it goes with its parent row."""


def goes_with(when: Condition | None = None) -> dict[str, Any]:
    """Make the `info` of a foreign key to let its rows go with their parent row when the parent is deleted.

    With a condition only the rows meeting it go, and only without references to them but for rows going along; the
    others are in the way.
    """
    return {_GOES: when or _always}


def _always(_table: Table) -> ColumnElement[bool]:
    return literal_column("true")


@dataclass(frozen=True, slots=True)
class _Reference:
    """A foreign key to the id of a table: the column with the id, and the condition of rows going along, if any do."""

    column: Column[Any]
    goes: Condition | None

    @property
    def table(self) -> Table:
        table: Table = self.column.table
        return table


@dataclass(slots=True)
class _Part:
    """Rows of a table: the record itself, with the id `record_id`, or rows going with it."""

    table: Table
    condition: ColumnElement[bool]
    record_id: Any = None

    def rows_that_refer(
        self, reference: _Reference, conditions: Iterable[ColumnElement[bool]]
    ) -> Select[Any]:
        """Select the keys of the rows of a table referring to one of these and meeting conditions."""
        keys = reference.table.primary_key
        if self.record_id is not None:
            return select(*keys).where(reference.column == self.record_id, *conditions).correlate(None)
        # Planned by themselves, by OFFSET 0, the rows are found by an index, however many may refer to each.
        chosen = select(self.table.c.id).where(self.condition).offset(literal_column("0"))
        rows = chosen.correlate(None).subquery()
        # With a limit of its own each is sought by the index: else PostgreSQL may read the whole table.
        referring = (
            select(*keys)
            .where(reference.column == rows.c.id, *conditions)
            .limit(MOST_COUNTED)
            .correlate(rows)
            .lateral()
        )
        return select(*referring.c).select_from(rows.join(referring, true()))

    def referring(self, reference: _Reference) -> ColumnElement[bool]:
        """Tell whether a row refers to one of these."""
        if self.record_id is not None:
            condition: ColumnElement[bool] = reference.column == self.record_id
            return condition
        chosen = select(self.table.c.id).where(self.condition).correlate(None)
        return reference.column.in_(chosen)


@dataclass(frozen=True, slots=True)
class Deletable:
    """A locked record: its values as they were asked for, and by table how many rows are in the way.

    Until the transaction ends no row referring to it is inserted.
    """

    record_id: UUID
    values: dict[str, Any]
    counts: Mapping[str, int]
    _name: str
    _deletions: Sequence[Executable]

    def refuse_if_in_use(self, *tables: str) -> None:
        """Raise Conflict naming, counted, the rows referring to the record: of all tables, or of these."""
        counts = {name: self.counts[name] for name in tables or self.counts}
        if in_use_by := list(_in_words(counts)):
            raise InUse(f"The {self._name} is in use by {', '.join(in_use_by)}.")

    def delete(self, *afterwards: Executable) -> UUID:
        """Delete the record and the rows going with it, in one round trip; returns the record's id.

        `afterwards` are further statements. Raises Conflict if anything refers to the record.
        """
        self.refuse_if_in_use()
        execute(*self._deletions, *afterwards)
        return self.record_id


@dataclass(frozen=True)
class Deletion:
    """How records of a model are deleted. `told` are columns, by name, asked for together with the count.

    `account` is a column of the model referring to one row of another table for each record alone, such as a student's
    user account: references to this row are counted too, and `deleting` deletes it in turn.
    """

    model: type[Any]
    told: Mapping[str, Any] = field(default_factory=dict)
    account: Any = None

    def lock(self, record_id: UUID, *before: Executable) -> Deletable:
        """Lock a record and the rows going with it, and count the references to them, in one round trip.

        Raises NotFound. `before` are locks to take first, in the same round trip.
        """
        row = execute(*before, *(lock(record_id) for lock in self._locks), self._counted(record_id))
        if row is None:
            raise not_found(self.model)
        counts = {name: row.pop(name) for name in self._counting}
        return Deletable(record_id, row, counts, record_name(self._table), deleting(self.model, record_id))

    @property
    def row_lock(self) -> Lock:
        """The lock of the record's row FOR UPDATE, for `if_match`."""
        return _row_lock(self._table)

    @property
    def _table(self) -> Table:
        table: Table = self.model.__table__
        return table

    @property
    def _owned(self) -> Column[Any] | None:
        return None if self.account is None else self._table.c[self.account.key]

    @cached_property
    def _locks(self) -> list[ReadModel[[UUID]]]:
        """The locks of the record and of the rows going with it, except rows of a table without foreign keys to it."""
        referred = [part.table for part in _parts(self._table, None, self._owned)]
        locked = [number for number, table in enumerate(referred) if number == 0 or _references_to(table)]
        in_order = sorted(locked, key=lambda number: rank(referred[number].name))
        return [_part_lock(self._table, self._owned, number) for number in in_order]

    @cached_property
    def _counting(self) -> list[str]:
        return [table.name for table in _referring(_parts(self._table, None, self._owned))]

    @cached_property
    def _counted(self) -> ReadModel[[UUID]]:
        table, owned, told = self._table, self._owned, self.told

        @read_model
        def counted(record_id: UUID) -> Query:
            parts = _parts(table, record_id, owned)
            counts = [
                _count(rows, parts, table.c.id != record_id if rows is table else None).label(rows.name)
                for rows in _referring(parts)
            ]
            values = [value.label(name) for name, value in told.items()]
            return select(*values, *counts).select_from(table).where(table.c.id == record_id)

        return counted


def deleting(model: type[Any], record_id: UUID) -> list[Executable]:
    """Make the statements to delete a locked record, and before it the rows going with it."""
    return [deletion(record_id) for deletion in _deletions(model.__table__)]


@cache
def _references_to(table: Table) -> tuple[_Reference, ...]:
    """Find the foreign keys referring to the ids of a table, also keys of several columns."""
    if "id" not in table.c:
        return ()
    return tuple(
        _Reference(element.parent, _goes_of(constraint, element))
        for other in sorted(db.Model.metadata.tables.values(), key=lambda each: each.name)
        for constraint in sorted(other.foreign_key_constraints, key=lambda each: str(each.name))
        for element in constraint.elements
        if element.column is table.c.id
    )


def _goes_of(constraint: ForeignKeyConstraint, key: ForeignKey) -> Condition | None:
    if constraint.ondelete == "CASCADE":
        return _always
    # A key of one column has its info itself.
    condition: Condition | None = (constraint.info or key.info).get(_GOES)
    return condition


def _parts(
    root: Table, record_id: Any, owned: Column[Any] | None = None, *, unhindered: bool = False
) -> list[_Part]:
    """List a record and all rows referring by a key that lets rows go with it, each after its parent.

    `unhindered` says that nothing is in the way: all that is left meets the conditions for going along.
    """
    parts = [
        _Part(root, root.c.id == record_id, record_id if record_id is not None else literal_column("null"))
    ]
    if owned is not None:
        (key,) = owned.foreign_keys
        of_root = select(owned).where(root.c.id == record_id).correlate(None)
        parts.append(_Part(key.column.table, key.column.in_(of_root)))
    for part in parts:  # which grows meanwhile
        parts.extend(
            _Part(reference.table, and_(part.referring(reference), *_conditions(reference, unhindered)))
            for reference in _references_to(part.table)
            if reference.goes is not None
        )
    return parts


def _conditions(reference: _Reference, unhindered: bool) -> list[ColumnElement[bool]]:
    """Tell the planner how few the rows are: without it PostgreSQL may read all of a table."""
    return [reference.goes(reference.table)] if unhindered and reference.goes else []


def _referring(parts: Iterable[_Part]) -> list[Table]:
    """List the tables with rows possibly in the way, in the order of their names."""
    tables = {
        reference.table
        for part in parts
        for reference in _references_to(part.table)
        if reference.goes is not _always
    }
    return sorted(tables, key=lambda table: table.name)


def _count(table: Table, parts: Sequence[_Part], but: ColumnElement[bool] | None) -> Any:
    """Count the rows of a table referring to the parts and not going along, each once and at most MOST_COUNTED."""
    rows = []
    for part in parts:
        for reference in _references_to(part.table):
            if reference.table is not table or reference.goes is _always:
                continue
            conditions = [] if but is None else [but]
            if reference.goes is not None:
                conditions.append(not_(_goes_along(table, reference.goes)))
            rows.append(part.rows_that_refer(reference, conditions).limit(MOST_COUNTED))
    # A row that refers by two ways, such as an enrollment to a cohort and to its batch, is counted once. Each way has
    # an index, which a condition of both could not use.
    together = rows[0] if len(rows) == 1 else select(rows[0].union(*rows[1:]).subquery()).limit(MOST_COUNTED)
    return select(func.count()).select_from(together.subquery()).correlate(None).scalar_subquery()


def unreferred(table: Table) -> ColumnElement[bool]:
    """Tell whether a row of a table is without references to it, but for rows going along."""
    # Scalars, and no EXISTS, for which PostgreSQL may read all of a table into a hash.
    referring = (
        select(literal_column("1"))
        .where(
            reference.column == table.c.id,
            *([not_(_goes_along(reference.table, reference.goes))] if reference.goes else []),
        )
        .limit(1)
        .correlate(table)
        .scalar_subquery()
        for reference in _references_to(table)
    )
    return and_(true(), *(reference.is_(None) for reference in referring))


def _goes_along(table: Table, goes: Condition) -> ColumnElement[bool]:
    return and_(goes(table), unreferred(table))


@cache
def _row_lock(table: Table) -> Lock:
    return _part_lock(table, None, 0)


@cache
def _part_lock(root: Table, owned: Column[Any] | None, number: int) -> ReadModel[[UUID]]:
    @statement
    def lock(record_id: UUID) -> Any:
        part = _parts(root, record_id, owned)[number]
        return select(part.table.c.id).where(part.condition).order_by(part.table.c.id).with_for_update()

    return lock


@cache
def _deletions(root: Table) -> list[ReadModel[[UUID]]]:
    return [_part_deletion(root, number) for number in reversed(range(len(_parts(root, None))))]


def _part_deletion(root: Table, number: int) -> ReadModel[[UUID]]:
    @statement
    def deletion(record_id: UUID) -> Any:
        part = _parts(root, record_id, unhindered=True)[number]
        return delete(part.table).where(part.condition)

    return deletion


def _in_words(counts: Mapping[str, int]) -> Iterator[str]:
    """Name the referring rows, counted: `12 assessments`, `1 score`; in the words of `WORDS`."""
    for table, count in sorted(counts.items(), key=lambda each: WORDS[each[0]]):
        if count:
            more = " or more" if count == MOST_COUNTED else ""
            yield f"{count:,}{more} {singular(WORDS[table]) if count == 1 else WORDS[table]}"
