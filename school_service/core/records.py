"""The database as services see it: the session, and the few pieces that every model is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import (
    ARRAY,
    JSON,
    BindParameter,
    Cast,
    ColumnElement,
    DateTime,
    TableValuedAlias,
    Text,
    Uuid,
    bindparam,
    cast,
    column,
    func,
    insert,
    literal,
    or_,
    select,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.database import db
from school_service.core.errors import Invalid, NotFound

NAME_LENGTH = 120
TEXT_LENGTH = 2000

Record = TypeVar("Record")


def primary_key() -> Mapped[UUID]:
    """Make the uuid primary key that every table has; the id is made in Python."""
    return mapped_column(Uuid, primary_key=True, default=uuid4)


def created_at() -> Mapped[datetime]:
    """Make the column of the moment of creation, UTC, bound from Python."""
    return mapped_column(DateTime(timezone=True), default=now)


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)


def add(record: Record) -> Record:
    """Insert a record now, so that a collision is known here. A taken name or key becomes 409 in `web.errors`."""
    db.session.add(record)
    db.session.flush()
    return record


def remove(model: type[Any], record_id: UUID) -> UUID:
    """Delete a record by id, now, and answer the id. One in use becomes 409 in `web.errors`. Raises NotFound."""
    db.session.delete(get(model, record_id, lock=True))
    db.session.flush()
    return record_id


def get(model: type[Record], record_id: UUID, *, lock: bool = False, share: bool = False) -> Record:
    """Get a record of the school by id, held against changes until the transaction ends where asked for.

    `lock` holds it for oneself, `share` together with others that share it; records that refer to it can be written
    by anyone meanwhile. Raises NotFound.
    """
    record = find(model, record_id, lock=lock, share=share)
    if record is None:
        raise missing(model)
    return record


def referred(model: type[Record], record_id: UUID, field: str, *, lock: bool = False) -> Record:
    """Get the record that a field of the input refers to by id; `lock` as in `get`.

    Raises Invalid, naming the field.
    """
    record = find(model, record_id, lock=lock)
    if record is None:
        raise Invalid.field(field, f"no such {_kind_of(model)}")
    return record


def hold(model: type[Record], record_ids: Iterable[UUID]) -> dict[UUID, Record]:
    """Lock records until the transaction ends, in order of id, so that no two can wait for each other.

    Returns them by id, those that there are.
    """
    table: Any = model
    found = db.session.scalars(
        select(table)
        .where(table.id.in_(record_ids))
        .order_by(table.id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    )
    return {record.id: record for record in found}


def hold_all(model: type[Any]) -> None:
    """Lock all records of a kind, and new ones, against other writers until the transaction ends; readers go on.

    For a rule that concerns all of them. To be called before one of them is held alone.
    """
    db.session.execute(text(f"LOCK TABLE {model.__tablename__} IN SHARE ROW EXCLUSIVE MODE"))


def find(model: type[Record], record_id: UUID, *, lock: bool = False, share: bool = False) -> Record | None:
    """Find a record of the school by id, held as in `get`; None where there is none."""
    held = {"key_share": True} if lock else {"read": True} if share else None
    return db.session.get(model, record_id, with_for_update=held, populate_existing=held is not None)


def _kind_of(model: type[Any]) -> str:
    return kind_of_table(model.__table__)


def missing(model: type[Any]) -> NotFound:
    """Say that a record of this kind is not there: `No such classroom.`"""
    return NotFound(f"No such {_kind_of(model)}.")


def kind_of_table(table: Any) -> str:
    """Name what a table holds one of, for messages: `cohort subject` for `cohort_subjects`."""
    return singular(table.name.replace("_", " "))


def singular(words: str) -> str:
    """Name one of what the words name many of: `cohort subject` for `cohort subjects`."""
    for plural, one in (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("s", "")):
        if words.endswith(plural):
            return words.removesuffix(plural) + one
    return words


def matches(search: Any, *texts: Any) -> ColumnElement[bool]:
    """Tell whether one of the texts holds `search`, without regard to case; `%` and `_` mean themselves."""
    return or_(*(func.strpos(func.lower(text), func.lower(search)) > 0 for text in texts))


def unnested(**columns: tuple[Any, list[Any]]) -> TableValuedAlias:
    """Make rows of columns, each of a type and values: sent as one array, however many there are."""
    arrays = [bindparam(None, values, type_=ARRAY(kind)) for kind, values in columns.values()]
    names = [column(name, kind) for name, (kind, _) in columns.items()]
    return func.unnest(*arrays).table_valued(*names).render_derived()


def insert_rows(model: type[Any], rows: TableValuedAlias, **common: Any) -> None:
    """Insert rows in one statement, with the values that all of them have in common."""
    made = select(rows, *map(literal, common.values()))
    db.session.execute(insert(model).from_select([*rows.c.keys(), *common], made))


# The school of the transaction, as the layer above chose it. Read when a statement runs, so that a read model can be
# made once and serve every school.


def chosen_school() -> Any:
    """The school that the session works in, with its public details (id, name, address, …)."""
    school: Callable[[], Any] = db.session().info["school"]
    return school()


def school_id() -> BindParameter[UUID]:
    """The id of the transaction's school, for a read model."""
    return bindparam("school_id", callable_=lambda: db.session().info["entry"].school_id, type_=Uuid())


def school_value(name: str, value: Callable[[Any], str]) -> BindParameter[str]:
    """A text computed from the transaction's school, for a read model."""
    return bindparam(name, callable_=lambda: value(chosen_school()), type_=Text())


def as_json(written: BindParameter[str]) -> Cast[Any]:
    """A text that holds JSON, as JSON."""
    return cast(written, JSON)
