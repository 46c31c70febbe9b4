"""Records of a school, as services get, lock, insert and delete them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import urandom
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    JSON,
    ClauseElement,
    ColumnElement,
    FromClause,
    Select,
    TableValuedAlias,
    Text,
    Uuid,
    any_,
    bindparam,
    cast,
    column,
    func,
    literal,
    literal_column,
    select,
    text,
)

from school_service.core.database import Record, db
from school_service.core.errors import Invalid, NotFound, Unknown
from school_service.core.narrowing import caller_has_own, within
from school_service.core.reach import SCOPES, refuse_unjudged
from school_service.core.statements import advisory_lock

AnyRecord = TypeVar("AnyRecord", bound=Record)


def remove(record: Any) -> UUID:
    """Delete a record, whose row the caller has locked, now, and return its id. A record in use is a conflict."""
    db.session.delete(record)
    db.session.flush()
    record_id: UUID = record.id
    return record_id


def change(record: Any, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give attributes of a record, whose row the caller has locked, other values, now.

    Returns the differing attributes, with their values before and after. If none differs, both are empty and nothing is
    written.
    """
    new = {name: value for name, value in values.items() if getattr(record, name) != value}
    old = {name: getattr(record, name) for name in new}
    for name, value in new.items():
        setattr(record, name, value)
    db.session.flush()
    return old, new


def get(
    model: type[AnyRecord],
    record_id: UUID,
    *,
    for_update: bool = False,
    for_share: bool = False,
    judged_before: bool = False,
) -> AnyRecord:
    """Get a record of the school by id; raises NotFound.

    `for_update` locks its row FOR NO KEY UPDATE: records referring to it can still be written. `for_share` locks it FOR
    SHARE, which other transactions may do at the same time. Both locks last until the transaction ends. A caller with
    the permission OWN gets a record in reach, or one belonging to a record that was `judged_before`.
    """
    record = find(model, record_id, for_update=for_update, for_share=for_share, judged_before=judged_before)
    if record is None:
        raise not_found(model)
    return record


def find(
    model: type[AnyRecord],
    record_id: UUID,
    *,
    for_update: bool = False,
    for_share: bool = False,
    judged_before: bool = False,
) -> AnyRecord | None:
    """Find a record of the school by id, or None.

    `for_update` locks its row FOR NO KEY UPDATE, `for_share` FOR SHARE, both until the transaction ends. A caller with
    the permission OWN finds only the records in reach, or belonging to a record that was `judged_before`.
    """
    lock = {"key_share": True} if for_update else {"read": True} if for_share else None
    if not judged_before and caller_has_own():
        query = _within_reach(select(model).where(model.id == record_id), model)
        if lock is not None:
            query = query.with_for_update(**lock, of=model).execution_options(populate_existing=True)
        return db.session.scalars(query).one_or_none()
    return db.session.get(
        model,
        record_id,
        with_for_update=lock,
        populate_existing=lock is not None,
        execution_options={"judged": judged_before},
    )


def _within_reach(query: Select[Any], model: type[Any]) -> Select[Any]:
    """Narrow a query of records to the reach of a caller with the permission OWN.

    Raises Forbidden for a table without a scope.
    """
    scope = SCOPES.get(model.__table__.name)
    return refuse_unjudged(model.__table__.name) if scope is None else within(query, scope, model.__table__.c)


def get_referenced(
    model: type[AnyRecord], record_id: UUID, field: str, *, for_update: bool = False
) -> AnyRecord:
    """Get the record named by id in a field of the input; `for_update` locks its row FOR NO KEY UPDATE.

    Raises Invalid, naming the field, if there is none.
    """
    record = find(model, record_id, for_update=for_update)
    if record is None:
        raise unknown_reference(model, field)
    return record


def check_of_filters(**records: type[Any] | Callable[[Any, str], object]) -> Callable[..., None]:
    """Make the check of a list's filters that name records: in this order, those that are given.

    A record is given by its model, or by a function of the filter's value and name. The check raises Invalid, naming
    the filter.
    """

    def check(**filters: Any) -> None:
        for name, record in records.items():
            if filters.get(name) is None:
                continue
            if isinstance(record, type):
                get_referenced(record, filters[name], name)
            else:
                record(filters[name], name)

    return check


def lock_rows(model: type[AnyRecord], record_ids: Iterable[UUID]) -> dict[UUID, AnyRecord]:
    """Lock the rows of records FOR NO KEY UPDATE, in order of id, so that two transactions never deadlock.

    Returns the existing records by id; for a caller with the permission OWN, only the records in reach.
    """
    query = select(model).where(model.id.in_(record_ids)).order_by(model.id)
    has_own = caller_has_own()
    if has_own:
        query = _within_reach(query, model)
    locking = query.with_for_update(key_share=True, of=model if has_own else None)
    records = db.session.scalars(locking.execution_options(populate_existing=True))
    return {record.id: record for record in records}


def lock_in_order(model: type[Any], *conditions: Any, shared: bool = False) -> Select[Any]:
    """Select the rows of a table that meet conditions, to lock them in order of id: two transactions never deadlock.

    They are locked FOR NO KEY UPDATE; `shared`, FOR SHARE.
    """
    rows = select(model.id).where(*conditions).order_by(model.id)
    return rows.with_for_update(read=shared, key_share=not shared)


def once_locked(locking: Select[Any]) -> ColumnElement[bool]:
    """Make a condition, always true, to let a query lock its rows after another query has locked its own.

    The other query is a part of the same statement, without a further message or statement.
    """
    locked = select(func.count()).select_from(locking.subquery("locked"))
    condition: ColumnElement[bool] = locked.scalar_subquery() >= literal_column("0")
    return condition


def lock_table(model: type[Any]) -> None:
    """Lock a table of the school against other callers of this function, until the transaction ends; readers go on.

    It serves a rule about all rows of the table: the writer of a row calls it before any row is locked.
    """
    db.session.execute(text(advisory_lock(model.__table__)))


def not_found(model: type[Any]) -> NotFound:
    """Make the error of a missing record: `No such classroom.`"""
    return NotFound(f"No such {record_name(model.__table__)}.")


def unknown_reference(model: type[Any], field: str) -> Invalid:
    """Make the error of a field of the input referring to no record."""
    return Invalid.field(field, Unknown(f"no such {record_name(model.__table__)}"))


def unnest_rows(
    alias: str | None = None, numbered: str | None = None, /, **columns: tuple[Any, Any]
) -> TableValuedAlias:
    """Make rows from columns, each a type and its values. Each column is sent as one array, for any number of rows.

    The values are a list, or a parameter of a `statement` for a list, or the text of an array (`array_text`).
    `numbered` names a further column, counting the rows from 1.
    """
    arrays = [
        cast(values, ARRAY(kind))
        if isinstance(values, ClauseElement)
        else bindparam(None, values, type_=ARRAY(kind))
        for kind, values in columns.values()
    ]
    names = [column(name, kind) for name, (kind, _) in columns.items()]
    rows = func.unnest(*arrays).table_valued(*names, with_ordinality=numbered)
    return rows.render_derived(name=alias)


def json_rows(alias: str, document: Any, /, **columns: Any) -> TableValuedAlias:
    """Make rows of a text of JSON, an array of objects; `columns` are the types of the members to take."""
    named = [column(name, kind) for name, kind in columns.items()]
    rows = func.json_to_recordset(cast(document, JSON)).table_valued(*named)
    return rows.render_derived(name=alias, with_types=True)


def new_ids(number: int) -> list[str]:
    """Make ids for rows, random UUIDs (version 4) as texts, many in less time than `uuid4` takes for each."""
    drawn = urandom(16 * number).hex()
    return [
        f"{drawn[at : at + 12]}4{drawn[at + 13 : at + 16]}{_VARIANT[drawn[at + 16]]}{drawn[at + 17 : at + 32]}"
        for at in range(0, 32 * number, 32)
    ]


# The first of these four bits is 1, the second 0: RFC 9562.
_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


def array_text(values: Iterable[object]) -> str:
    """Write an array as PostgreSQL reads it, of numbers, uuids or truth values, to be sent as one text."""
    return f"{{{','.join(map(str, values))}}}"


def one_of(values: Any, kind: Any = Uuid) -> Any:
    """Make the right side of a comparison with many values: a list, or a parameter of a statement for a list."""
    return any_(cast(values, ARRAY(kind)))


def is_one_of(expression: Any, texts: Iterable[str]) -> ColumnElement[bool]:
    """Compare an expression with many texts, sent as one array: as single parameters they take longer."""
    escaped = (each.replace("\\", "\\\\").replace('"', '\\"') for each in texts)
    listed = ",".join(f'"{each}"' for each in escaped)
    compared: ColumnElement[bool] = expression == one_of(literal(f"{{{listed}}}", Text), Text)
    return compared


def record_name(table: FromClause) -> str:
    """Name one record of a table: `cohort subject` for `cohort_subjects`."""
    return singular(table.description.replace("_", " "))


def singular(words: str) -> str:
    """Give the singular of a plural: `cohort subject` for `cohort subjects`."""
    for plural, ending in (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("s", "")):
        if words.endswith(plural):
            return words.removesuffix(plural) + ending
    return words
