"""The operator's needs of an installation, handed over by the application."""

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
"""The suffix of the schools' owner, behind the name of the serving login."""


@dataclass(frozen=True, slots=True)
class Administrator:
    """The first user of a new school."""

    username: str
    password: str


# Table name and rows: the first rows of a new school's tables. Every column is given, none is defaulted.
SeedRows = tuple[str, Sequence[dict[str, Any]]]
Seed = Callable[[Administrator], Iterable[SeedRows]]
Reference = Callable[[Connection], None]
# Of the operator's name, the entity, its id, and the values before and after.
OperatorEntry = Callable[[str, str, UUID, Mapping[str, Any] | None, Mapping[str, Any] | None], SeedRows]


@dataclass(frozen=True, slots=True)
class NamedDeletions:
    """How the audit log names the rows deleted from a table.

    Of `each` of these entities an entry of a deletion stands for one row at most. An entry of a change or deletion of
    `some` of these entities may stand for any number of rows.
    """

    each: tuple[str, ...] = ()
    some: tuple[str, ...] = ()


class PasswordFaults(Protocol):
    """Says the faults of a new password, in words to follow it; nothing if it is good enough."""

    def __call__(self, password: str, *, username: str) -> list[str]:
        """Judge a password for a user of this name."""


@dataclass(frozen=True)
class Tenancy:
    """The database of all schools.

    `admin_url` is the login that provisions, `serving_url` the login for requests. `placement` knows the login and the
    server of each school. Each school has a role of its own.

    `seed` gives the first rows of a new school, `reference` fills the registry's reference data for all schools.
    `password_faults` judges the passwords set by the operator. `history` is the folder of the schools' migrations.
    `models` gives the tables of a school as the program's code knows them, the source of a new migration's draft.
    `operator_entry` gives the row of the audit log for an operation of the operator.

    `release` is the version of the program, such as 0.3.0; `program` names it with everything known of it, for records
    outliving it. `backup_recipients` are the public keys for the encryption of every backup; none: backups are not
    encrypted. `permissions` are the permissions grantable to a client by name, `cors_origins` the origins of pages with
    scripts permitted to read answers. `not_restored` are the tables without rows at the beginning of a restored school:
    rows ended since the backup was made would be there again. `deletions` are, by table, the deletions named by the
    audit log; of a table that is not among them rows go unnamed, as they expire.
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
    deletions: Mapping[str, NamedDeletions] = field(default_factory=dict, kw_only=True)

    @cached_property
    def admin(self) -> Engine:
        """The engine of the operator's work."""
        engine = admin_engine(self.admin_url)
        engine.update_execution_options(placement=self.placement)
        return engine

    @property
    def one_login(self) -> bool:
        """Whether one login both serves and provisions."""
        return self.placement.login == self.admin_url.username

    @property
    def owner(self) -> str:
        """The role that owns the schools' schemas and tables, made by `install`; no login serves with it.

        If one login serves and provisions, or roles have to be able to sign in, it is the login that provisions.
        """
        if self.one_login or self.placement.roles_sign_in:
            return self.admin_url.username or ""
        return f"{self.placement.login}{OWNER_SUFFIX}"

    @property
    def becomes_roles(self) -> bool:
        """Whether the operator works in a school's tables as its role, or as the tables' owner.

        These can't sign in. If roles have to be able to, the work is done as the login that provisions.
        """
        return not self.placement.roles_sign_in
