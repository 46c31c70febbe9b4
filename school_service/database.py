"""The database as services see it: the session, and the few pieces that every model is made of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import JSON, BindParameter, Cast, ColumnElement, DateTime, Text, Uuid, bindparam, cast, or_
from sqlalchemy.orm import Mapped, mapped_column

from school_service.errors import NotFound
from school_service.extensions import db

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


def get(model: type[Record], record_id: UUID, *, lock: bool = False) -> Record:
    """Get a record of the school by id; `lock` holds it against changes until the transaction ends.

    Raises NotFound.
    """
    record = db.session.get(model, record_id, with_for_update=lock or None, populate_existing=lock)
    if record is None:
        raise missing(model)
    return record


def missing(model: type[Any]) -> NotFound:
    """Say that a record of this kind is not there: `No such classroom.`"""
    return NotFound(f"No such {kind_of_table(model.__table__)}.")


def kind_of_table(table: Any) -> str:
    """Name what a table holds one of, for messages: `cohort subject` for `cohort_subjects`."""
    words = table.name.replace("_", " ")
    for plural, singular in (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("s", "")):
        if words.endswith(plural):
            return str(words.removesuffix(plural) + singular)
    return str(words)


def matches(search: str, *texts: Any) -> ColumnElement[bool]:
    """Tell whether one of the texts holds `search`, without regard to case; `%` and `_` mean themselves."""
    return or_(*(text.icontains(search, autoescape=True) for text in texts))


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


def as_json(text: BindParameter[str]) -> Cast[Any]:
    """A text that holds JSON, as JSON."""
    return cast(text, JSON)
