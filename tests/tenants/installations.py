"""Installations of a test's own, and sessions on them without an application."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg2
import pytest
from sqlalchemy import URL
from sqlalchemy.engine import Engine
from sqlalchemy.orm import sessionmaker

from school_service.app import tenancy_of
from school_service.config import Settings
from tenants.connections.binding import BindingOptions, SchoolBinding
from tenants.connections.engines import quote_identifier
from tenants.connections.sessions import SchoolSession, bind_sessions, transaction
from tenants.distribution.nodes import locate_school
from tenants.migrations.migration_sql import head
from tenants.provisioning.create import create_school
from tenants.registry.installation import install
from tenants.registry.schools import School
from tenants.tenancy import Administrator, Seed, Tenancy
from tests.cli.program import wait_for
from tests.lent_schools import CommittedRows
from tests.postgres import addresses, nodes_of, on_citus, test_database

ADMINISTRATOR = Administrator("admin", "a password")
TEMPLATES = ExitStack()
"""Databases that installations are copied from: they last as long as the server."""


@contextmanager
def installation(
    server: URL,
    *,
    one_login: bool = False,
    superuser: bool = True,
    installed: bool = True,
    logins: int = 1,
    history: Path | None = None,
    seed: Seed = lambda administrator: (),
) -> Iterator[Tenancy]:
    """Make a database with a registry; `superuser`: whether the login that provisions is one, as it has to be on Citus.

    With a `history` of a test's own, its schools are made with that one's tables, and with the rows of `seed` alone.
    """
    if on_citus() and not superuser:
        pytest.skip("on Citus, who provisions is a superuser: the nodes sign in at each other as one")
    # The registry belongs to the provisioning login, and on Citus each node is told of its tables.
    options = f"TEMPLATE {template(server)}" if installed and superuser and not on_citus() else ""
    with (
        nullcontext("") if superuser else creator(server) as login,
        test_database(server, locale=options) as (admin, serving),
    ):
        if not superuser:
            execute(admin, f'GRANT CREATE ON DATABASE "{admin.database}" TO "{login}"')
            admin = admin.set(username=login, password="a password")
        tenancy = tenancy_of(
            Settings.load(
                {
                    **addresses(admin, admin if one_login else serving),
                    "SERVING_LOGINS": str(logins),
                }
            )
        )
        if history is not None:
            tenancy = replace(tenancy, history=history, seed=seed)
        if installed:
            install(tenancy)
        if options:
            execute(admin, "UPDATE registry.installation SET id = gen_random_uuid()")
        try:
            yield tenancy
        finally:
            tenancy.admin.dispose()


@cache
def template(server: URL) -> str:
    """Make a database with a registry and without logins; to install in a copy of it costs a third."""
    admin, _ = TEMPLATES.enter_context(test_database(server))
    tenancy = tenancy_of(Settings.load(addresses(admin, admin)))
    install(tenancy)
    tenancy.admin.dispose()
    return str(admin.database)


def served_by(tenancy: Tenancy, url: URL | None = None, *, logins: int = 1) -> Tenancy:
    """Describe an installation as served by another login, or divided over several."""
    url = url or tenancy.serving_url
    placement = replace(tenancy.placement, login=str(url.username), logins=logins)
    return replace(tenancy, serving_url=url, placement=placement)


@contextmanager
def emptied(shared: Tenancy) -> Iterator[Tenancy]:
    """Lend an installation to a test: with an engine of its own, and without schools and clients afterwards."""
    tenancy = replace(shared)
    try:
        yield tenancy
    finally:
        tenancy.admin.dispose()
        # Roles belong to the server: this database's schools are told by their schemas.
        schemas = execute(
            shared.admin_url, r"SELECT nspname FROM pg_namespace WHERE nspname LIKE 'school\_%'"
        )
        removed = [f'DROP SCHEMA "{schema}" CASCADE; DROP ROLE IF EXISTS "{schema}"' for (schema,) in schemas]
        execute(
            shared.admin_url,
            "; ".join(["DELETE FROM registry.clients", "DELETE FROM registry.schools", *removed]),
        )


class LentSchools:
    """Schools of an installation of some tests' own: each test has the ones that it asks for, as new, and no other."""

    def __init__(self, tenancy: Tenancy, server: URL) -> None:
        """Take the installation, and the superuser's login: the provisioning login need not be one."""
        self._tenancy = tenancy
        self._superuser = replace(tenancy, admin_url=server.set(database=tenancy.admin_url.database))
        self._kept: dict[str, tuple[School, str, CommittedRows]] = {}

    def clear(self) -> None:
        """Leave the registry without schools and clients, and drop the schools that are not lent again."""
        kept = {school.schema for school, *_ in self._kept.values()}
        self._run("DELETE FROM registry.clients; DELETE FROM registry.schools")
        for (schema,) in self._run(r"SELECT nspname FROM pg_namespace WHERE nspname LIKE 'school\_%'"):
            if schema not in kept:
                self._drop(schema)

    def lend(self, name: str) -> School:
        """Give the school of a name; it is another one where a test changed more than its rows."""
        if name in self._kept:
            school, row, rows = self._kept.pop(name)
            self._run(f"INSERT INTO registry.schools SELECT ({row}::registry.schools).*")
            if rows.restore():
                self._kept[name] = school, row, rows
                return school
            self._run(f"DELETE FROM registry.schools WHERE id = '{school.id}'")
            self._drop(school.schema)
        school = create_school(self._tenancy, name=name, administrator=ADMINISTRATOR)
        if not on_citus():
            ((row,),) = self._run(
                f"SELECT quote_literal(s::text) FROM registry.schools s WHERE id = '{school.id}'"
            )
            self._kept[name] = school, row, CommittedRows(self._superuser, school.id)
        return school

    def close(self) -> None:
        """Close the connections, with the installation."""
        self._superuser.admin.dispose()

    def _drop(self, schema: str) -> None:
        self._run(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE; DROP ROLE IF EXISTS "{schema}"')

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        return execute(self._superuser.admin_url, sql)


@contextmanager
def lending(server: URL, **options: Any) -> Iterator[tuple[Tenancy, LentSchools]]:
    """Make an installation, as `installation` does, that lends schools."""
    with installation(server, **options) as tenancy:
        schools = LentSchools(tenancy, server)
        try:
            yield tenancy, schools
        finally:
            schools.clear()
            schools.close()


@contextmanager
def creator(server: URL) -> Iterator[str]:
    """Make a login that may create roles, and is nothing more."""
    name = f"school_tests_creator_{uuid4().hex[:12]}"
    execute(server, f"CREATE ROLE {name} LOGIN CREATEROLE PASSWORD 'a password'")
    try:
        yield name
    finally:
        execute(server, f"DROP ROLE {name}")


def drop_login(admin: URL, name: str) -> None:
    """Drop a login, and its rights in a database."""
    for node in nodes_of(admin):
        by_itself = "SET citus.enable_ddl_propagation TO off;" if on_citus() else ""
        execute(node, f"{by_itself} DROP OWNED BY {quote_identifier(name)}")
    execute(admin, f"DROP ROLE {quote_identifier(name)}")


def execute(url: URL, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Run SQL on a connection of its own, outside of any pool; answer the rows, if it gives any."""
    connection = psycopg2.connect(url.set(drivername="postgresql").render_as_string(hide_password=False))
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def end_connections(admin: URL, login: str) -> int:
    """Let the server end the connections of a login, and see that they are gone; answer how many there were.

    Told to wait, the server itself looks ten times a second, at each after the other.
    """
    ended = execute(
        admin, "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (login,)
    )
    pids = [pid for pid, _ in ended]
    there = "SELECT FROM pg_stat_activity WHERE pid = ANY (%s)"
    wait_for(lambda: not execute(admin, there, (pids,)) or None, "the end of the connections")
    return len(pids)


def binding_options(tenancy: Tenancy) -> BindingOptions:
    """Give the options that an application on this installation would have."""
    entry = tenancy.placement.entry
    return BindingOptions(
        serves=(head(tenancy.history),),
        entry=entry and entry._replace(location=partial(first_shard, tenancy)),
    )


def first_shard(tenancy: Tenancy, school_id: UUID) -> int | None:
    """Ask Citus for the first shard of a school; None where it has none of this id."""
    with tenancy.admin.connect() as connection:
        location = locate_school(connection, school_id)
    return None if location is None else location.first_shard


def bound_sessions(engine: Engine, options: BindingOptions) -> sessionmaker[SchoolSession]:
    """Make sessions on one engine that are bound to schools, as the application's are."""

    class Bound(SchoolSession):
        def engine_of(self, school_id: UUID) -> Engine:
            return engine

    return _bind(Bound, options)


def routed_sessions(engines: Mapping[str, Engine], tenancy: Tenancy) -> sessionmaker[SchoolSession]:
    """Make such sessions for schools of all logins, each with its engine."""

    class Routed(SchoolSession):
        def engine_of(self, school_id: UUID) -> Engine:
            return engines[tenancy.placement.login_of(school_id)]

    return _bind(Routed, binding_options(tenancy))


def _bind(session_class: type[SchoolSession], options: BindingOptions) -> sessionmaker[SchoolSession]:
    bind_sessions(session_class, lambda: options)
    return sessionmaker(class_=session_class)


@contextmanager
def working(sessions: sessionmaker[SchoolSession], binding: SchoolBinding) -> Iterator[SchoolSession]:
    """Work in a school in one transaction: commits at the end, rolls back on any error."""
    with sessions() as session:
        transaction(session, binding)
        yield session
        session.commit()
