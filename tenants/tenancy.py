"""What the operator's work needs to know, handed over by the application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import URL, Connection, MetaData
from sqlalchemy.engine import Engine

from tenants.connections.engines import admin_engine
from tenants.migrations.migration_sql import TENANT
from tenants.placement import Placement

MAX_PASSWORD_LENGTH = 1000
"""The most characters of a user's password, an administrator's too."""

OWNER_SUFFIX = "_owner"
"""What the name of the schools' owner adds to that of the serving login."""


@dataclass(frozen=True, slots=True)
class Administrator:
    """The first user of a new school."""

    username: str
    password: str


# Table name and rows: what a new school's tables hold from the start. Every column is given, none is
# defaulted.
SeedRows = tuple[str, Sequence[dict[str, Any]]]
Seed = Callable[[Administrator], Iterable[SeedRows]]
Reference = Callable[[Connection], None]
# Of the operator's name, the entity, its id, and the values before and after.
OperatorEntry = Callable[[str, str, UUID, Mapping[str, Any] | None, Mapping[str, Any] | None], SeedRows]


class PasswordFaults(Protocol):
    """Says what is wrong with a new password, in words that follow it; nothing where it is good enough."""

    def __call__(self, password: str, *, username: str) -> list[str]:
        """Judge a password for a user of this name."""


@dataclass(frozen=True)
class Tenancy:
    """The database of all schools.

    `admin_url` is the login that provisions, `serving_url` the one that serves requests. `placement` says
    which login serves which school, and which server has it. Each school has a role of its own.
    `seed` gives the first rows of a new school, `reference` fills the reference data that the registry keeps for all
    schools. `password_faults` judges passwords that the operator sets. `history` is the folder of the schools'
    migrations. `models` gives the tables of a school as the program's code knows them, from which a new migration is
    drafted. `operator_entry` gives the row of the audit log that says what the operator did.
    `release` is the version of the program, such as 0.3.0; `program` names it with all that is known of it, for
    the records that outlive it. `backup_recipients` are the public keys to which
    every backup is encrypted; none: backups are not encrypted. `permissions` are those that a client can be granted by
    name, `cors_origins` those of pages whose scripts may read answers. `not_restored` are the tables that a restored
    school begins without rows in: what has ended since the backup was made would be there again.
    """

    admin_url: URL
    serving_url: URL
    placement: Placement
    seed: Seed
    reference: Reference
    password_faults: PasswordFaults
    history: Path = field(default=TENANT, kw_only=True)
    models: Callable[[], MetaData] | None = field(default=None, kw_only=True)
    operator_entry: OperatorEntry | None = field(default=None, kw_only=True)
    release: str = field(default="unknown", kw_only=True)
    program: Callable[[], str] = field(default=lambda: "unknown", kw_only=True)
    backup_recipients: tuple[str, ...] = field(default=(), kw_only=True)
    permissions: tuple[str, ...] = field(default=(), kw_only=True)
    cors_origins: tuple[str, ...] = field(default=(), kw_only=True)
    not_restored: tuple[str, ...] = field(default=(), kw_only=True)

    @cached_property
    def admin(self) -> Engine:
        """The engine of the operator's work."""
        engine = admin_engine(self.admin_url)
        engine.update_execution_options(placement=self.placement)
        return engine

    @property
    def serving_login(self) -> str:
        """The role that serves requests; where schools are divided over several logins, the registry's."""
        return self.placement.login

    @property
    def one_login(self) -> bool:
        """Whether the login that serves is the one that provisions."""
        return self.serving_login == self.admin_url.username

    @property
    def owner(self) -> str:
        """The role that owns the schools' schemas and tables, made by `install`; no login serves with it.

        Where one login serves and provisions, or roles have to be able to sign in, it is the login that provisions.
        """
        if self.one_login or self.placement.roles_sign_in:
            return self.admin_url.username or ""
        return f"{self.serving_login}{OWNER_SUFFIX}"

    @property
    def becomes_roles(self) -> bool:
        """Whether what the operator does in a school's tables is done as its role, or the tables' owner.

        Where roles have to be able to sign in, which these can't, it is done as the login that provisions.
        """
        return not self.placement.roles_sign_in
