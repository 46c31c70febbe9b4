"""Which login serves a school: answered here alone, and through it which engine, pool and server.

The login that serves may become the role of each school it serves. PostgreSQL works out all of these roles at a
connection's first transaction, and once more in each connection after any school was created or dropped: some 15 ms
for 10,000 schools (PostgreSQL 18; 29 ms on 16), more with each school. So the schools can be divided over several
logins, each a member of its own schools' roles alone. None of them has a power of its own, and none can become the
role of another's schools.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from uuid import UUID

MAX_LOGINS = 99
# Worked out in some 2 ms; beyond it a connection's first transaction begins to show.
SCHOOLS_PER_LOGIN = 1000


@dataclass(frozen=True, slots=True)
class Placement:
    """The schools of an installation, divided over `logins` logins (1: `login` itself serves them all).

    With more than one, `login` reads the registry alone, and the schools belong to `<login>_01`, `<login>_02`, ….
    """

    login: str
    logins: int = 1

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
        """Count the idle connections of each login in a process that has `pool_size` in use at most.

        Any login may serve most of what is under way, so that it has one connection more than its part.
        """
        return min(ceil(pool_size / self.logins) + 1, pool_size) if self.divided else pool_size

    def was_login(self, name: str) -> bool:
        """Tell whether a login is of this placement, or was while it had another number of logins."""
        rest = name.removeprefix(f"{self.login}_")
        return name == self.login or (rest != name and len(rest) == 2 and rest.isdecimal() and rest.isascii())

    def advice(self, schools: int) -> str | None:
        """Say that so many schools are too many for the logins; None where they are not."""
        if schools <= SCHOOLS_PER_LOGIN * self.logins:
            return None
        needed = min(ceil(schools / SCHOOLS_PER_LOGIN), MAX_LOGINS)
        if needed == self.logins:
            return None
        return (
            f"{schools} schools share {self.logins} serving login{'s' * self.divided}, which slows the first "
            f"transaction of a connection: set SERVING_LOGINS to {needed} and run: school-service tenants init"
        )
