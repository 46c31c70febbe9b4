"""Reference data in the registry, the same for every school: its tables, filling them, and reading them.

It is read outside of any school, and a school's tables never refer to it by foreign key.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    Column,
    Connection,
    ForeignKey,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    Uuid,
    exists,
    select,
)
from sqlalchemy.dialects.postgresql import insert

from school_service.core.database import registry_connection
from school_service.core.errors import Invalid, Unknown
from school_service.core.read_models import Query
from school_service.core.records import unnest_rows
from school_service.features.school.geography import reference
from tenants.registry.schools import NAMING_CONVENTION

metadata = MetaData(schema="registry", naming_convention=NAMING_CONVENTION)

nationalities = Table(
    "nationalities",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", String(120), nullable=False, unique=True),
    Column("code", String(2), nullable=False, unique=True),
)

states = Table(
    "states",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", String(120), nullable=False, unique=True),
    Column("code", String(3), nullable=False, unique=True),
)

lgas = Table(
    "lgas",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", String(120), nullable=False),
    Column("state_id", ForeignKey(states.c.id), nullable=False),
    UniqueConstraint("state_id", "name"),
)


def fill(connection: Connection) -> None:
    """Write the reference data into the registry; existing rows are brought up to date."""
    for table, rows in (
        (nationalities, reference.nationalities()),
        (states, reference.states()),
        (lgas, reference.lgas()),
    ):
        _upsert(connection, table, rows)


def _upsert(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    columns = {column.name: column for column in table.columns}
    arrays = unnest_rows(
        **{name: (column.type, [row[name] for row in rows]) for name, column in columns.items()}
    )
    new = insert(table).from_select(list(columns), select(*(arrays.c[name] for name in columns)))
    changes = {name: new.excluded[name] for name, column in columns.items() if not column.primary_key}
    connection.execute(new.on_conflict_do_update(index_elements=[table.c.id], set_=changes))


def list_nationalities() -> list[dict[str, Any]]:
    """List the nationalities, by name."""
    return _rows(select(nationalities).order_by(nationalities.c.name, nationalities.c.id))


def list_states() -> list[dict[str, Any]]:
    """List Nigeria's 36 states and the Federal Capital Territory, by name."""
    return _rows(select(states).order_by(states.c.name, states.c.id))


def list_lgas(*, state: UUID | None = None) -> list[dict[str, Any]]:
    """List the local government areas, by name, all or those of a state. Raises Invalid for an unknown state."""
    query = select(lgas.c.id, lgas.c.name, lgas.c.state_id.label("state")).order_by(lgas.c.name, lgas.c.id)
    if state is None:
        return _rows(query)
    rows = _rows(query.where(lgas.c.state_id == state))
    if not rows:
        # Every state has local government areas.
        raise Invalid.field("state", Unknown("no such state"))
    return rows


def check_origin(*, lga: UUID | None, state: UUID | None, nationality: UUID | None) -> None:
    """Check that those given exist, and that the local government area lies in the state.

    Queries the registry once. Raises Invalid, naming every field at fault.
    """
    lies_in = select(lgas.c.state_id).where(lgas.c.id == lga).scalar_subquery()
    given = {"state": (states, state), "nationality": (nationalities, nationality)}
    known = {name: exists().where(table.c.id == value) for name, (table, value) in given.items()}
    (row,) = _rows(
        select(lies_in.label("lies_in"), *(is_there.label(name) for name, is_there in known.items()))
    )
    wrong: dict[str, str] = {
        name: Unknown(f"no such {name}")
        for name, (_, value) in given.items()
        if value is not None and not row[name]
    }
    if lga is not None and row["lies_in"] is None:
        wrong["lga"] = Unknown("no such local government area")
    elif lga is not None and state is None:
        wrong["lga"] = "lies in a state: give the state, too"
    elif lga is not None and row["lies_in"] != state and row["state"]:
        wrong["lga"] = "does not lie in the state"
    if wrong:
        raise Invalid.fields(wrong)


def _rows(query: Query) -> list[dict[str, Any]]:
    # The registry has a pool of its own: the role of the request's connection sees its school only.
    with registry_connection() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]
