"""The placement of schools on the nodes of Citus: the program makes it if TENANT_DISTRIBUTED is on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar
from uuid import UUID

from sqlalchemy import URL, Connection, Table
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from tenants.connections.engines import execute_script
from tenants.connections.registry import RegistryConnections
from tenants.connections.statements import is_unreachable
from tenants.distribution import nodes, registry
from tenants.distribution.nodes import Location, Node, NodeState
from tenants.exceptions import RegistrySilent
from tenants.placement import Entry, Placement


class NodePlacement(Placement):
    """The schools of an installation on the nodes of Citus: each has the engine of its login on its node.

    The coordinator is asked once for a school's node, and for the names of its tables there. The answer may be
    outdated: a node tells each transaction whether the school is there (`registry.enter_node`), and a caller refused
    there forgets the answer and asks once more. If the coordinator can't be asked, its last answer holds.
    """

    several_servers: ClassVar[bool] = True
    # Citus signs in at the nodes as the role that runs a statement, and moves a table as its owner.
    roles_sign_in: ClassVar[bool] = True

    def __init__(self, login: str, logins: int = 1) -> None:
        super().__init__(login, logins)
        self._locations: dict[UUID, Location] = {}
        self._doubted: set[UUID] = set()
        self._engines_on_nodes: dict[tuple[Node | None, str], Engine] = {}
        self._lock = threading.Lock()

    def serve(
        self,
        url: URL,
        engines: Mapping[str | None, Engine],
        registry: RegistryConnections,
        make_engine: Callable[[URL], Engine],
    ) -> None:
        """Take the engines and the registry of a process that serves; `url` is the coordinator's."""
        super().serve(url, engines, registry, make_engine)
        self._url, self._registry, self._make_engine = url, registry, make_engine

    @property
    def entry(self) -> Entry:
        """The demand of a node on a transaction: that it has the school's first shard."""
        # Citus gives a query of the registry's tables no session to set a role in: a function reads them.
        return Entry(
            "SELECT registry.enter_node(%s::bigint)", self.first_shard, "registry.client_grant(%s) c ON true"
        )

    def engine_of(self, school_id: UUID) -> Engine:
        """Find the engine of a school; the coordinator's for a school unknown to Citus, or for none."""
        location = self._locate(school_id)
        place = (None if location is None else location.node, self.login_of(school_id))
        engine = self._engines_on_nodes.get(place)
        if engine is None:
            with self._lock:
                engine = self._engines_on_nodes.get(place)
                if engine is None:
                    engine = self._engines_on_nodes[place] = self.make_engine(*place)
        return engine

    def make_engine(self, node: Node | None, login: str) -> Engine:
        """Make the engine of a login on a node; None stands for the coordinator."""
        url = self._url if node is None else node.at(self._url)
        return self._make_engine(url.set(username=login))

    def engines_by_server(self) -> dict[str, Engine]:
        """Give the engines made so far, by node, and by login if there are several."""
        with self._lock:
            made = list(self._engines_on_nodes.items())
        return {
            f"{node or 'coordinator'}{f' {login}' * self.divided}": engine for (node, login), engine in made
        }

    def server_of(self, school_id: UUID) -> Node | None:
        """Name the node of a school without asking anybody; None if it is not known."""
        location = self._locations.get(school_id)
        return None if location is None else location.node

    def first_shard(self, school_id: UUID) -> int | None:
        """Tell the school's number on its node; None for a school unknown to Citus."""
        location = self._locate(school_id)
        return None if location is None else location.first_shard

    def table_names(self, school_id: UUID, tables: Collection[str]) -> dict[str, str] | None:
        """Name the shards of a school's tables; None for a school or a table unknown to Citus.

        Citus has a statement of its tables planned, writes it anew for their shards, and has that planned, too. A
        statement naming the shards is planned once, as on PostgreSQL alone. Citus 14.0 also writes an INSERT … SELECT
        anew if a function in it is not immutable (jsonb_build_object), with a condition that is no SQL. It refuses a
        statement that reads shards and changes a table: all tables of a statement are named so, or none. The shards
        change with a migration alone: if one is not known, the coordinator is asked again.
        """
        for _ in range(2):
            location = self._locate(school_id)
            if location is None:
                return None
            names = location.shards.names(tables)
            if names is not None:
                return names
            self.forget(school_id)
        return None

    def forget(self, school_id: UUID) -> None:
        """Doubt the known node of a school: the next question for it goes to the coordinator."""
        if school_id in self._locations:
            self._doubted.add(school_id)

    def locate(self, school_id: UUID) -> Location | None:
        """Ask the coordinator for the place of a school."""
        with self._registry.connect() as connection:
            return nodes.locate_school(connection, school_id)

    def _locate(self, school_id: UUID) -> Location | None:
        """Tell the place of a school: by the coordinator's last answer, if it can't be asked; the node knows."""
        known = self._locations.get(school_id)
        if known is not None and school_id not in self._doubted:
            return known
        try:
            location = self.locate(school_id)
        except (DBAPIError, RegistrySilent) as error:
            if known is None or (isinstance(error, DBAPIError) and not is_unreachable(error)):
                raise
            return known
        self._doubted.discard(school_id)
        # A missing school may come at any moment, so its absence is not cached.
        if location is None:
            self._locations.pop(school_id, None)
        else:
            self._locations[school_id] = location
        return location

    def check(self, connection: Connection) -> None:
        """See that the registry is on every node as this program needs it; raises NotInstalled."""
        registry.check_distributed_registry(connection)

    def prepare(self, admin: Engine) -> None:
        """See that each node has the registry's tables: a node joined since gets copies.

        In a transaction of its own: in one that has written to them Citus copies none.
        """
        nodes.provide_nodes(admin)

    def install(self, connection: Connection) -> None:
        """Put the registry on every node, within the connection's transaction; again, its new parts."""
        registry.distribute_registry(connection)

    def placing_statements(self, schema: str) -> list[str]:
        """Write the statements giving a school's schema to Citus, to choose the node; its tables are all there.

        Before them the schema is an ordinary one of the coordinator's. They come before its first rows, so there is
        nothing to copy, or after it has been filled as an ordinary one.
        """
        return registry.distribute_statements(schema)

    def migration_batches(self, schema: str, statements: Sequence[str]) -> list[str]:
        """Give the statements one by one, and at last a statement letting the schema's functions read new shards.

        The coordinator hands a batch on as it is, with all its statements, if one of them is of an index.
        """
        return [*statements, registry.read_shards_statement(schema)]

    def limit_waiting(self, seconds: float) -> str:
        """Write the statements letting a transaction wait so long for a lock, on the nodes too."""
        # Settings between the two are set on the nodes as well.
        handed_on = "SET LOCAL citus.propagate_set_commands TO"
        return f"{handed_on} 'local';\n{super().limit_waiting(seconds)};\n{handed_on} 'none'"

    def schools_to_lock(self, connection: Connection, schools: Table) -> Table:
        """Give the coordinator's own copy of the registry's schools.

        A row of the table itself can't be locked alone: Citus keeps all others from writing any row of a table present
        on every node.
        """
        return registry.own_copy(connection, schools)

    def keep_in_place(self, connection: Connection, school_id: UUID) -> None:
        """Keep a school on its node until the transaction, on the coordinator, ends; waits for a move under way.

        It comes first in the transaction: a move waits for every transaction with a locked row.
        """
        nodes.lock_out_moves(connection, school_id)

    def stay_here(self, connection: Connection) -> None:
        """Put the transaction's new tables on the coordinator alone."""
        execute_script(connection, "SET LOCAL citus.enable_ddl_propagation TO off")

    @contextmanager
    def admin_of(self, admin: Engine, school_id: UUID) -> Iterator[Engine]:
        """Lend an operator's engine on the node of a school; the coordinator's for a school on none."""
        with nodes.engine_of_school(admin, school_id) as engine:
            yield engine

    def servers_of_schools(self, connection: Connection) -> dict[str, str]:
        """Name the node of each school, by the name of its schema."""
        return {schema: str(node) for schema, node in nodes.nodes_of_schools(connection).items()}

    def list_servers(self, connection: Connection) -> list[NodeState]:
        """List the nodes, the coordinator first; raises UnfitPlacement if the database has no Citus."""
        return nodes.list_nodes(connection)
