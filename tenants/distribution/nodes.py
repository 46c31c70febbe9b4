"""The nodes of Citus, and the node of each school."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, create_engine, text
from sqlalchemy.engine import URL, Engine
from sqlalchemy.pool import NullPool

from tenants.connections.engines import admin_arguments, registry_url
from tenants.exceptions import TenancyError, UnfitPlacement
from tenants.registry.schools import schema_name

# All tables of a school are on one node.
_NODE_OF_SCHOOL = text(
    """
    SELECT n.nodename, n.nodeport, array_agg(c.relname::text ORDER BY c.relname) AS tables,
        array_agg(s.shardid ORDER BY c.relname) AS shards
    FROM pg_dist_schema d JOIN pg_dist_partition p USING (colocationid)
    JOIN pg_dist_shard s USING (logicalrelid) JOIN pg_dist_placement l USING (shardid)
    JOIN pg_dist_node n USING (groupid) JOIN pg_class c ON c.oid = p.logicalrelid
    WHERE d.schemaid = to_regnamespace(:schema) AND n.noderole = 'primary'
    GROUP BY n.nodename, n.nodeport
    """
)
# A table is enough of each school: the smallest of its colocation group.
_NODES = text(
    """
    SELECT n.nodename, n.nodeport, n.groupid = 0 AS coordinator, n.isactive AS active,
        n.shouldhaveshards AS takes_schools, count(t.colocationid) AS schools
    FROM pg_dist_node n
    LEFT JOIN pg_dist_placement l USING (groupid) LEFT JOIN pg_dist_shard s USING (shardid)
    LEFT JOIN (
        SELECT p.colocationid, min(p.logicalrelid::oid)::regclass AS logicalrelid
        FROM pg_dist_schema d JOIN pg_dist_partition p USING (colocationid) GROUP BY p.colocationid
    ) AS t USING (logicalrelid)
    WHERE n.noderole = 'primary'
    GROUP BY n.nodename, n.nodeport, n.groupid, n.isactive, n.shouldhaveshards
    ORDER BY n.groupid, n.nodename, n.nodeport
    """
)
_SCHOOLS = text(
    """
    SELECT DISTINCT d.schemaid::regnamespace::text AS schema, n.nodename, n.nodeport
    FROM pg_dist_schema d JOIN pg_dist_partition p USING (colocationid)
    JOIN pg_dist_shard s USING (logicalrelid) JOIN pg_dist_placement l USING (shardid)
    JOIN pg_dist_node n USING (groupid)
    WHERE n.noderole = 'primary'
    """
)


_REPLICATE = text("SELECT replicate_reference_tables('block_writes')")

_LOCK_KEY = "hashtextextended('move of ' || :school, 0)"
_TRY_LOCK = text(f"SELECT pg_try_advisory_xact_lock({_LOCK_KEY})")
_SHARE_LOCK = text(f"SELECT pg_advisory_xact_lock_shared({_LOCK_KEY})")


class UnknownNode(TenancyError):
    """Citus has no node of this address."""


@dataclass(frozen=True, slots=True)
class Node:
    """A server of Citus, by its address for the others."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def at(self, url: URL) -> URL:
        """Turn the coordinator's address into this node's, of the same login and database."""
        # libpq takes a server from the query of an address as well.
        return url.set(host=self.host, port=self.port).difference_update_query(["host", "port"])


class Shards:
    """The shards of a school's tables: one for each, of its name and a number, the same on every node.

    A process remembers the shards of thousands of schools: the numbers alone, by the tables' order, shared by schools.
    """

    __slots__ = ("_numbers", "_order")

    def __init__(self, tables: Sequence[str], numbers: Sequence[int]) -> None:
        self._order = _order_of(tuple(tables))
        self._numbers = array("q", numbers)

    @property
    def first(self) -> int:
        """The lowest number."""
        return min(self._numbers)

    def names(self, tables: Collection[str]) -> dict[str, str] | None:
        """Name the shards of tables, by the tables' names; None if one of them is not known."""
        try:
            return {table: f"{table}_{self._numbers[self._order[table]]}" for table in tables}
        except KeyError:
            return None


@lru_cache(100)
def _order_of(tables: tuple[str, ...]) -> dict[str, int]:
    return {table: place for place, table in enumerate(tables)}


@dataclass(frozen=True, slots=True)
class Location:
    """The place of a school: its node, and its shards; by the first of these the node tells that it has them."""

    node: Node
    shards: Shards

    @property
    def first_shard(self) -> int:
        """The lowest number of a shard."""
        return self.shards.first


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node: whether it is the coordinator, is in use, takes schools, and how many schools it has."""

    node: Node
    coordinator: bool
    active: bool
    takes_schools: bool
    schools: int

    def as_record(self) -> dict[str, Any]:
        """The node as an operator sees it, ready for JSON."""
        return {
            "node": str(self.node),
            "coordinator": self.coordinator,
            "active": self.active,
            "takes_schools": self.takes_schools,
            "schools": self.schools,
        }


def check_distributed(connection: Connection) -> None:
    """See that the database has Citus, and is its coordinator; raises UnfitPlacement."""
    if connection.execute(text("SELECT FROM pg_extension WHERE extname = 'citus'")).first() is None:
        raise UnfitPlacement(
            "TENANT_DISTRIBUTED is on, but the database has no extension citus: "
            "create it there (CREATE EXTENSION citus), or set TENANT_DISTRIBUTED to off."
        )
    if connection.execute(text("SELECT FROM pg_dist_node WHERE groupid = 0")).first() is None:
        raise UnfitPlacement(
            "The nodes of Citus do not know their coordinator: "
            "run there SELECT citus_set_coordinator_host('its name for the others')."
        )


def provide_nodes(admin: Engine) -> None:
    """See that each node has the registry's tables: a node joined since gets copies; raises UnfitPlacement.

    In a transaction of its own, before any other one that writes to them: within that one Citus copies none.
    """
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        check_distributed(connection)
        connection.execute(_REPLICATE)


def locate_school(connection: Connection, school_id: UUID) -> Location | None:
    """Ask for the node of a school; None if Citus has no school of this id."""
    row = connection.execute(_NODE_OF_SCHOOL, {"schema": schema_name(school_id)}).one_or_none()
    return None if row is None else Location(_node(row), Shards(row.tables, row.shards))


def nodes_of_schools(connection: Connection) -> dict[str, Node]:
    """Ask for the node of each school, by the name of its schema."""
    return {row.schema: _node(row) for row in connection.execute(_SCHOOLS)}


def list_nodes(connection: Connection) -> list[NodeState]:
    """List the nodes, the coordinator first; raises UnfitPlacement."""
    check_distributed(connection)
    return [
        NodeState(_node(row), row.coordinator, row.active, row.takes_schools, row.schools)
        for row in connection.execute(_NODES)
    ]


def find_node(connection: Connection, address: str) -> NodeState:
    """Find a node by its address as `list_nodes` gives it, `host:port`; raises UnknownNode, UnfitPlacement."""
    nodes = list_nodes(connection)
    node_state = next((state for state in nodes if str(state.node) == address), None)
    if node_state is None:
        known = ", ".join(str(state.node) for state in nodes)
        raise UnknownNode(f"There is no node {address}. The nodes are: {known}.")
    return node_state


def lock_out_backups(connection: Connection, school_id: UUID) -> bool:
    """Keep a school from being backed up until the transaction ends; False if it is being backed up, or moved.

    It is no lock of the school's row: a move waits for every transaction that has written anything, and such a lock is
    written on each node.
    """
    return bool(connection.execute(_TRY_LOCK, {"school": str(school_id)}).scalar_one())


def lock_out_moves(connection: Connection, school_id: UUID) -> None:
    """Keep a school on its node until the transaction, on the coordinator, ends; waits for a move under way."""
    connection.execute(_SHARE_LOCK, {"school": str(school_id)})


@contextmanager
def engine_of_school(admin: Engine, school_id: UUID) -> Iterator[Engine]:
    """Lend an engine like `admin`, of the coordinator, on the node of a school; `admin` if the school is on none."""
    with admin.connect() as connection:
        location = locate_school(connection, school_id)
    if location is None:
        yield admin
        return
    url = registry_url(location.node.at(admin.url))
    engine = create_engine(url, poolclass=NullPool, use_native_hstore=False, connect_args=admin_arguments())
    try:
        yield engine
    finally:
        engine.dispose()


def _node(row: Row[Any]) -> Node:
    return Node(row.nodename, row.nodeport)
