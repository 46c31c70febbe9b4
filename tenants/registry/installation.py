"""The registry's own schema, and the login role for requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg2.extensions import encrypt_password
from sqlalchemy import Connection, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import ProgrammingError

import migrations.registry
import migrations.tenant
from tenants.connections.engines import execute_script, quote_identifier
from tenants.exceptions import MissingRole, NotInstalled, UnfitLogin
from tenants.migrations.migration_sql import head, history, registry_head, registry_revisions
from tenants.provisioning.ownership import login_grant
from tenants.registry.schools import (
    also_served,
    clients,
    installation,
    list_schools,
    schema_name,
    schools,
)
from tenants.tenancy import Tenancy

# Any constant: two operators who install at the same moment do so one after the other.
_INSTALLATION_LOCK = 7_203_114_225

POWERS = {
    "rolsuper": "SUPERUSER",
    "rolcreaterole": "CREATEROLE",
    "rolcreatedb": "CREATEDB",
    "rolreplication": "REPLICATION",
    "rolbypassrls": "BYPASSRLS",
}
"""The attributes of roles that reach around the schools' roles, by their columns of `pg_roles`."""


# Columns of a client that the login that serves may read: all but the hash of its secret.
READ_OF_CLIENTS = tuple(column.name for column in clients.columns if column is not clients.c.secret_hash)

# Statements of one transaction: each takes locks, on a role or on a school's tables.
_BATCH_SIZE = 100

_OPEN_ROLES = """
SELECT member.rolname, role.rolname FROM pg_auth_members m
JOIN pg_roles member ON member.oid = m.member JOIN pg_roles role ON role.oid = m.roleid
WHERE m.set_option AND member.rolname = ANY (:logins)
"""
# A membership is revoked in the name of its grantor.
_MEMBERS = """
SELECT member.rolname, role.rolname, grantor.rolname FROM pg_auth_members m
JOIN pg_roles member ON member.oid = m.member JOIN pg_roles role ON role.oid = m.roleid
JOIN pg_roles grantor ON grantor.oid = m.grantor
WHERE starts_with(member.rolname, :login)
"""
# By their ids: by name it fails where any other role, of a school that is deleted meanwhile, is gone again.
_MEMBER_LOGINS = """
SELECT login.rolname FROM pg_roles login JOIN pg_roles owner ON owner.rolname = :owner
WHERE login.rolname = ANY (:logins) AND pg_has_role(login.oid, owner.oid, 'MEMBER')
"""
_MISSING_ROLE = "SELECT min(name) FROM unnest(CAST(:names AS text[])) AS name WHERE to_regrole(name) IS NULL"
_ROLE = "SELECT * FROM pg_roles WHERE rolname = :name"
_LOGINS = "SELECT rolname FROM pg_roles WHERE rolcanlogin AND starts_with(rolname, :login)"


def install(tenancy: Tenancy, *, password_policy: str | None = None) -> bool:
    """Create or upgrade the registry, its reference data, the serving logins and the schools' owner.

    A created registry says from then on that `password_policy` holds unless a setting says otherwise; an existing one
    keeps its policy. Returns whether it was created.

    All of that in one transaction. A login can sign in and read the registry; it is a member of its schools' roles but
    inherits nothing of them, so it reaches a school's tables only after switching to that school's role. Run again, it
    sets the logins' password anew, and then lets them into the existing schools still closed to them: a login of
    another name, or more logins than before. If the operator's login owns the database or is a superuser, no other
    login may connect to it without a grant by name, or make temporary tables, since they would outlive a transaction.

    Raises NotInstalled if the registry is of a later version, UnfitLogin if a login exists and has powers that reach
    around the schools' roles, MissingRole if a school has no role, UnfitPlacement if the database does not place the
    schools as the settings say. Then nothing has changed.
    """
    if tenancy.one_login and tenancy.placement.divided:
        raise UnfitLogin(
            "SERVING_LOGINS divides the schools over logins without powers: "
            "give DATABASE_URL a login of its own, and this one as ADMIN_DATABASE_URL."
        )
    tenancy.placement.prepare(tenancy.admin)
    with _exclusive(tenancy) as connection:
        created: bool = connection.execute(
            text("SELECT to_regclass('registry.revision') IS NULL")
        ).scalar_one()
        if not created:
            check_roles(connection)
        execute_script(connection, "CREATE SCHEMA IF NOT EXISTS registry")
        _upgrade(connection, tenancy.release, created=created)
        if created:
            connection.execute(update(installation).values(password_policy=password_policy))
        tenancy.reference(connection)
        tenancy.placement.install(connection)
        _revoke_public(connection)
        if not tenancy.one_login:
            for login in tenancy.placement.all_logins:
                _provide_login(connection, tenancy, login)
            if tenancy.becomes_roles:
                _provide_owner(connection, tenancy.owner, list(tenancy.placement.all_logins))
    if not tenancy.one_login:
        with _exclusive(tenancy) as connection:
            closed = _closed_schools(connection, tenancy)
        _in_batches(tenancy, [login_grant(tenancy, schema) for schema in closed])
    return created


def revoke_unused_memberships(tenancy: Tenancy) -> int:
    """Take away the memberships of no use to the present number of logins; answer how many.

    For use after a change of that number, once every serving process has been started with the new one: until then the
    old memberships are in use. Logins beyond the number can't sign in any more; raising the number and installing again
    opens them.
    """
    placement = tenancy.placement
    with _exclusive(tenancy) as connection:
        logins = {school.schema: placement.login_of(school.id) for school in list_schools(connection)}
        unused = [
            f"REVOKE {quote_identifier(schema)} FROM {quote_identifier(login)} GRANTED BY {quote_identifier(grantor)}"
            for login, schema, grantor in connection.execute(text(_MEMBERS), {"login": placement.login})
            if placement.was_login(login) and logins.get(schema, login) != login
        ]
        for login in connection.execute(text(_LOGINS), {"login": placement.login}).scalars().all():
            if placement.was_login(login) and login not in placement.all_logins:
                execute_script(connection, f"ALTER ROLE {quote_identifier(login)} NOLOGIN")
    _in_batches(tenancy, unused)
    return len(unused)


def _in_batches(tenancy: Tenancy, statements: list[str]) -> None:
    """Send statements in transactions of a size fit for the server's table of locks."""
    for first in range(0, len(statements), _BATCH_SIZE):
        with _exclusive(tenancy) as connection:
            execute_script(connection, ";\n".join(statements[first : first + _BATCH_SIZE]))


@contextmanager
def _exclusive(tenancy: Tenancy) -> Iterator[Connection]:
    """Work in a transaction without any other operator's installing beside it."""
    with tenancy.admin.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _INSTALLATION_LOCK})
        yield connection


def check_installed(connection: Connection) -> None:
    """See that the registry is there, readable to this login, and of a revision fit for this program.

    Fit are its own revision, and a later one if its release says that programs of before go on. Raises NotInstalled,
    with advice.
    """
    try:
        revision = read_revision(connection)
    except ProgrammingError:
        raise NotInstalled from None
    if revision == registry_head():
        return
    if revision is None or revision in registry_revisions():
        raise NotInstalled(
            f"The registry is at the revision {revision}, and this program needs {registry_head()}. "
            "Run: school-service tenants init"
        )
    goes_on = select(also_served).where(
        also_served.c.revision == revision, also_served.c.served_by == registry_head()
    )
    if connection.execute(goes_on).first() is None:
        raise _newer(connection, revision)


def check_expansion(connection: Connection) -> None:
    """See that the registry is installed, and names the earlier programs of this release's schools, as `install` does.

    Before, these programs would be closed to each school that is made or migrated. Raises NotInstalled, with advice.
    """
    check_installed(connection)
    named = select(also_served.c.served_by).where(also_served.c.revision == head())
    if not set(migrations.tenant.SERVED_BY_EARLIER) <= set(connection.execute(named).scalars()):
        raise NotInstalled(
            f"The registry does not say yet which programs of before serve schools at {head()}. "
            "Run: school-service tenants init"
        )


def check_roles(connection: Connection, *, most: int | None = None) -> None:
    """See that each school has its role, or `most` of them; raises MissingRole for the first school without.

    Only the ids are read, present in a registry of each release.
    """
    ids = connection.execute(select(schools.c.id).order_by(schools.c.id).limit(most)).scalars()
    names = [schema_name(school_id) for school_id in ids]
    role = connection.execute(text(_MISSING_ROLE), {"names": names}).scalar_one()
    if role is not None:
        raise MissingRole(role)


def read_revision(connection: Connection) -> str | None:
    """Read the revision that the registry is at."""
    revision: str | None = connection.execute(
        text("SELECT version_num FROM registry.revision")
    ).scalar_one_or_none()
    return revision


def _newer(connection: Connection, revision: str) -> NotInstalled:
    """Say of a registry unknown to this program which release it needs."""
    release = connection.execute(select(installation.c.release)).scalar_one_or_none()
    return NotInstalled(
        f"The registry is at the revision {revision}, and this program knows {registry_head()} and older ones. "
        f"Use release {release or 'that made it'} or a newer one, or restore what was backed up before the update "
        '(docs/operators.md, "Going back").'
    )


def _upgrade(connection: Connection, release: str, *, created: bool) -> None:
    """Bring the registry to the newest revision, and note the release of this program."""
    before = None if created else read_revision(connection)
    if before is not None and before not in registry_revisions():
        raise _newer(connection, before)
    _run_migrations(connection)
    if before != registry_head():
        connection.execute(update(installation).values(release=release))
    pairs = [
        *(
            {"revision": registry_head(), "served_by": earlier}
            for earlier in migrations.registry.SERVED_BY_EARLIER
        ),
        *({"revision": head(), "served_by": earlier} for earlier in migrations.tenant.SERVED_BY_EARLIER),
    ]
    if pairs:
        connection.execute(insert(also_served).on_conflict_do_nothing(), pairs)


def _run_migrations(connection: Connection) -> None:
    # Imported here: the operator's other verbs do without, and it takes long.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(history("registry")).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _database(connection: Connection) -> str:
    return quote_identifier(connection.execute(text("SELECT current_database()")).scalar_one())


def _revoke_public(connection: Connection) -> None:
    database = _database(connection)
    execute_script(
        connection,
        "REVOKE ALL ON SCHEMA registry FROM PUBLIC;\n"
        "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA registry FROM PUBLIC;\n"
        f"REVOKE CONNECT, TEMPORARY ON DATABASE {database} FROM PUBLIC;\n"
        # Where another login owns the database.
        f"GRANT CONNECT ON DATABASE {database} TO CURRENT_USER",
    )


def _provide_login(connection: Connection, tenancy: Tenancy, name: str) -> None:
    login = quote_identifier(name)
    row = connection.execute(text(_ROLE), {"name": name}).one_or_none()
    if row is None:
        execute_script(connection, f"CREATE ROLE {login} LOGIN NOINHERIT")
    else:
        powers = [power for column, power in POWERS.items() if row._mapping[column]]
        if powers:
            raise UnfitLogin(
                f"The login {name} has {' and '.join(powers)}, which reaches around the schools' roles: "
                "take that away, or give DATABASE_URL a login of its own."
            )
        if row.rolinherit or not row.rolcanlogin:
            execute_script(connection, f"ALTER ROLE {login} LOGIN NOINHERIT")
    password = tenancy.serving_url.password
    if password:
        # Hashed here, so that the server's log never sees it.
        driver: Any = connection.connection.dbapi_connection
        execute_script(
            connection, f"ALTER ROLE {login} PASSWORD '{encrypt_password(str(password), name, driver)}'"
        )
    execute_script(
        connection,
        # A transaction that was bound to no school finds no table at all.
        f"ALTER ROLE {login} SET search_path TO '';\n"
        f"ALTER ROLE {login} SET timezone TO 'UTC';\n"
        f"ALTER ROLE {login} SET statement_timeout TO '60s';\n"
        f"ALTER ROLE {login} SET idle_in_transaction_session_timeout TO '60s';\n"
        # No more than this: earlier grants end.
        f"REVOKE ALL ON SCHEMA registry FROM {login};\n"
        f"REVOKE ALL ON ALL TABLES IN SCHEMA registry FROM {login};\n"
        f"GRANT CONNECT ON DATABASE {_database(connection)} TO {login};\n"
        f"GRANT USAGE ON SCHEMA registry TO {login};\n"
        f"GRANT SELECT ON ALL TABLES IN SCHEMA registry TO {login};\n"
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA registry TO {login}",
    )
    execute_script(
        connection,
        f"REVOKE ALL ON registry.clients FROM {login};\n"
        f"GRANT SELECT ({', '.join(READ_OF_CLIENTS)}) ON registry.clients TO {login}",
    )


def _provide_owner(connection: Connection, name: str, logins: list[str]) -> None:
    """See that the schools' owner is there, no login and without powers, and that this login may become it."""
    owner = quote_identifier(name)
    row = connection.execute(text(_ROLE), {"name": name}).one_or_none()
    if row is None:
        execute_script(connection, f"CREATE ROLE {owner} NOLOGIN NOINHERIT")
    else:
        attributes = {**POWERS, "rolcanlogin": "LOGIN"}
        powers = [power for column, power in attributes.items() if row._mapping[column]]
        if powers:
            raise UnfitLogin(
                f"The role {name}, which is to own the schools' tables, has {' and '.join(powers)}: take that away."
            )
    execute_script(connection, f"GRANT {owner} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE")
    members = connection.execute(text(_MEMBER_LOGINS), {"owner": name, "logins": logins}).scalars().all()
    if members:
        raise UnfitLogin(
            f"The login {members[0]} may become the role {name}, which owns the schools' tables: take that away."
        )


def _closed_schools(connection: Connection, tenancy: Tenancy) -> list[str]:
    """List the schemas of schools closed to their login.

    They were created for a login of another name, or for another number of logins.
    """
    placement = tenancy.placement
    closed = {
        tuple(row) for row in connection.execute(text(_OPEN_ROLES), {"logins": list(placement.school_logins)})
    }
    return [
        school.schema
        for school in list_schools(connection)
        if (placement.login_of(school.id), school.schema) not in closed
    ]
