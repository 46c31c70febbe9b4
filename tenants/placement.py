"""The places of the schools: the login and the server of each, answered here alone.

The login that serves may become the role of each school it serves. PostgreSQL works out all of these roles at a
connection's first transaction, and once more in each connection after any school was created or dropped: some 15 ms for
10,000 schools (PostgreSQL 18; 29 ms on 16), more with each school. So the schools can be divided over several logins,
each a member of its own schools' roles alone. None of them has a power of its own, and none can become the role of
another's schools.

`Placement` has the answers of one server. When Citus places the schools on several, the program makes the object of
`tenants.distribution` in its place, with answers to the same questions; nothing else tells the two apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import Any, ClassVar, NamedTuple, Protocol
from uuid import UUID

from sqlalchemy import URL, Connection, Table, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from tenants.connections.registry import RegistryConnections
from tenants.driver_errors import first_line, sqlstate
from tenants.exceptions import ServerAway, UnfitPlacement
from tenants.wording import counted

MAX_LOGINS = 99
# Worked out in some 2 ms; beyond it a connection's first transaction begins to show.
SCHOOLS_PER_LOGIN = 1000

ONE_SERVER = "TENANT_DISTRIBUTED is off: all schools are on one server."


class Entry(NamedTuple):
    """The demands of a server on a transaction beginning in a school.

    `statement` refuses a transaction if its school is on another server; its one parameter is the answer of `location`
    for the school. `grant` is joined by the query of a client's state, in place of the registry's table of clients.
    """

    statement: str
    location: Callable[[UUID], Any]
    grant: str


class Reaching:
    """The servers of schools in one run over all of them; each that is away is tried once.

    `servers` has the server of each school by its schema, as `Placement.servers_of_schools` names them; of the schools
    of one server alone none is reached without it, and the driver's error ends the run.
    """

    def __init__(self, servers: Mapping[str, str] | None) -> None:
        self._servers, self._away = servers or {}, dict[str, str]()

    @contextmanager
    def school(self, schema: str) -> Iterator[None]:
        """Work on a school in the block; raises ServerAway if its server can't be reached."""
        server = self._servers.get(schema)
        if server in self._away:
            raise ServerAway(self._away[server])
        try:
            yield
        except DBAPIError as error:
            if server is None or sqlstate(error) is not None:
                raise
            self._away[server] = f"{server} can't be reached: {first_line(error.orig)}"
            raise ServerAway(self._away[server]) from None


class OperatorRecord(Protocol):
    """A record shown to an operator."""

    def as_record(self) -> dict[str, Any]:
        """The record as shown, ready for JSON."""


@dataclass(eq=False)
class Placement:
    """The schools of an installation, divided over `logins` logins (1: `login` itself serves them all).

    With more than one, `login` reads the registry alone, and the schools belong to `<login>_01`, `<login>_02`, ….
    All of them are on one server.
    """

    several_servers: ClassVar[bool] = False
    """Whether the schools are on more servers than one."""
    roles_sign_in: ClassVar[bool] = False
    """Whether a role has to be able to sign in for the operator's work to be done as this role."""

    login: str
    logins: int = 1
    _engines: Mapping[str | None, Engine] = field(default_factory=dict, init=False, repr=False)

    @property
    def divided(self) -> bool:
        """Whether the schools have logins of their own, apart from the registry's."""
        return self.logins > 1

    @property
    def school_logins(self) -> tuple[str, ...]:
        """The logins whose transactions are bound to schools."""
        if not self.divided:
            return (self.login,)
        return tuple(f"{self.login}_{number:02}" for number in range(1, self.logins + 1))

    @property
    def all_logins(self) -> tuple[str, ...]:
        """The logins of this placement, the registry's first."""
        return (self.login, *self.school_logins) if self.divided else (self.login,)

    def login_of(self, school_id: UUID) -> str:
        """Name the login that serves a school; the same for ever, as long as the number of logins is."""
        return self.school_logins[school_id.int % self.logins]

    def idle_connections(self, pool_size: int) -> int:
        """Count the idle connections of each login in a process with at most `pool_size` in use.

        Any login may serve most of the work under way, so each has one connection more than its part.
        """
        return min(ceil(pool_size / self.logins) + 1, pool_size) if self.divided else pool_size

    def was_login(self, name: str) -> bool:
        """Tell whether a login is of this placement, or was while it had another number of logins."""
        rest = name.removeprefix(f"{self.login}_")
        return name == self.login or (rest != name and len(rest) == 2 and rest.isdecimal() and rest.isascii())

    def advice(self, schools: int) -> str | None:
        """Say that so many schools are too many for the logins; None if they are not."""
        if schools <= SCHOOLS_PER_LOGIN * self.logins:
            return None
        needed = min(ceil(schools / SCHOOLS_PER_LOGIN), MAX_LOGINS)
        if needed == self.logins:
            return None
        return (
            f"{schools} schools share {counted(self.logins, 'serving login')}, which slows the first "
            f"transaction of a connection: set SERVING_LOGINS to {needed} and run: school-service tenants init"
        )

    # Methods for a process that serves.

    def serve(
        self,
        url: URL,
        engines: Mapping[str | None, Engine],
        registry: RegistryConnections,
        make_engine: Callable[[URL], Engine],
    ) -> None:
        """Take the engines and the registry of a process that serves, before the first `engine_of`.

        `engines` has, on one server, the engine of each login (None: of the only one); `registry` lends connections to
        the registry; `make_engine` makes a further engine for the schools, of an address such as `url`.
        """
        self._engines = engines

    @property
    def entry(self) -> Entry | None:
        """The demands of a server on a transaction beginning in a school; None if there are none."""
        return None

    def engine_of(self, school_id: UUID) -> Engine:
        """Find the engine of a school: of its login, on its server."""
        return self._engines[self.login_of(school_id) if self.divided else None]

    def engines_by_server(self) -> dict[str, Engine]:
        """Give the engines made for the schools on further servers, by server and login."""
        return {}

    def server_of(self, school_id: UUID) -> Hashable | None:
        """Name the server of a school without asking anybody; None if it is unknown, or the only one."""
        return None

    def table_names(self, school_id: UUID, tables: Collection[str]) -> Mapping[str, str] | None:
        """Name a school's tables as its server does; None if they have their own names there."""
        return None

    def forget(self, school_id: UUID) -> None:
        """Forget the server of a school, so the next use asks for it again."""

    def check(self, connection: Connection) -> None:
        """See that the database places the schools as the settings say; raises UnfitPlacement, NotInstalled."""
        procedure = connection.execute(
            text("SELECT to_regprocedure('registry.enter_node(bigint)')")
        ).scalar_one()
        if procedure is not None:
            raise UnfitPlacement("Citus places the schools of this database: set TENANT_DISTRIBUTED to on.")

    # Methods for the operator's verbs.

    def prepare(self, admin: Engine) -> None:
        """See that every server has the registry's tables, before a transaction writing to them.

        Raises UnfitPlacement if the database does not place the schools as the settings say.
        """

    def install(self, connection: Connection) -> None:
        """Put the registry on every server, within the transaction that has made or upgraded it."""

    def placing_statements(self, schema: str) -> list[str]:
        """Write the statements to place a school of this schema on a server, once its tables are made."""
        return []

    def migration_batches(self, schema: str, statements: Sequence[str]) -> list[str]:
        """Write the statement batches that migrate a school of this schema by these statements."""
        return [";\n".join(statements)]

    def limit_waiting(self, seconds: float) -> str:
        """Write the statements letting a transaction wait so long for a lock, on every server."""
        return f"SET LOCAL lock_timeout = '{round(seconds * 1000)}ms'"

    def schools_to_lock(self, connection: Connection, schools: Table) -> Table:
        """Give the operator's table for locking the row of a school, from the registry's `schools`."""
        return schools

    def keep_in_place(self, connection: Connection, school_id: UUID) -> None:
        """Keep a school on its server until the transaction ends; comes first in the transaction."""

    def stay_here(self, connection: Connection) -> None:
        """Put the transaction's new tables on the server of its connection alone."""

    @contextmanager
    def admin_of(self, admin: Engine, school_id: UUID) -> Iterator[Engine]:
        """Lend the operator an engine on the server of a school; `admin` is the engine on the operator's own server."""
        yield admin

    def servers_of_schools(self, connection: Connection) -> Mapping[str, str] | None:
        """Name the server of each school, by the name of its schema; None if there is one server."""
        return None

    def list_servers(self, connection: Connection) -> Sequence[OperatorRecord]:
        """List the servers, and how many schools each has; raises UnfitPlacement if there is one."""
        raise UnfitPlacement(ONE_SERVER)
