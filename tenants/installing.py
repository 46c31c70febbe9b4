"""The registry's own schema, and the login role that serves requests."""

from __future__ import annotations

from typing import Any

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from psycopg2.extensions import encrypt_password
from sqlalchemy import Connection, text
from sqlalchemy.exc import ProgrammingError

from tenants.database import quoted, send
from tenants.errors import NotInstalled, UnfitLogin
from tenants.migrating import history
from tenants.provisioning import admission
from tenants.registry import list_schools
from tenants.tenancy import Tenancy

# Any constant: two operators who install at the same moment take turns.
_INSTALLATION_LOCK = 7_203_114_225

_POWERS = {
    "rolsuper": "SUPERUSER",
    "rolcreaterole": "CREATEROLE",
    "rolcreatedb": "CREATEDB",
    "rolreplication": "REPLICATION",
    "rolbypassrls": "BYPASSRLS",
}


_CLOSED_ROLES = "SELECT rolname FROM pg_roles WHERE NOT pg_has_role(:login, oid, 'SET')"
_CLOSED_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE NOT has_schema_privilege(:login, oid, 'USAGE')"


def install(tenancy: Tenancy) -> None:
    """Create or upgrade the registry, its reference data and the serving login, in one transaction.

    The login can sign in and read the registry; it is a member of every school's role but inherits nothing of
    it, so that it reaches a school's tables only after switching to that school's role. Run again, it sets
    the login's password anew, and lets a login of another name into the schools that exist. Where the
    operator's login owns the database, temporary tables are forbidden to all others: they would outlive a
    transaction.

    Raises NotInstalled where the registry is of a later version, UnfitLogin where the login exists and has
    powers that reach around the schools' roles.
    """
    with tenancy.admin.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _INSTALLATION_LOCK})
        send(connection, "CREATE SCHEMA IF NOT EXISTS registry")
        _upgrade(connection)
        tenancy.reference(connection)
        _close_to_all(connection)
        if not tenancy.one_login:
            _provide_login(connection, tenancy)
            _open_to_login(connection, tenancy)


def check_installed(connection: Connection) -> None:
    """See that the registry is there, readable to this login and of this version; raises NotInstalled."""
    try:
        found = connection.execute(text("SELECT version_num FROM registry.revision")).scalars().all()
    except ProgrammingError:
        raise NotInstalled from None
    if found != [ScriptDirectory(str(history("registry"))).get_current_head()]:
        raise NotInstalled


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(history("registry")).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise NotInstalled(f"The registry is of a version that this program does not know: {error}") from None


def _close_to_all(connection: Connection) -> None:
    database = quoted(connection.execute(text("SELECT current_database()")).scalar_one())
    send(
        connection,
        "REVOKE ALL ON SCHEMA registry FROM PUBLIC;\n"
        "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA registry FROM PUBLIC;\n"
        f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC",
    )


def _provide_login(connection: Connection, tenancy: Tenancy) -> None:
    name = tenancy.serving_login
    login = quoted(name)
    found = connection.execute(
        text("SELECT * FROM pg_roles WHERE rolname = :name"), {"name": name}
    ).one_or_none()
    if found is None:
        send(connection, f"CREATE ROLE {login} LOGIN NOINHERIT")
    else:
        powers = [power for column, power in _POWERS.items() if found._mapping[column]]
        if powers:
            raise UnfitLogin(
                f"The login {name} has {' and '.join(powers)}, which reaches around the schools' roles: "
                "take that away, or give DATABASE_URL a login of its own."
            )
        if found.rolinherit or not found.rolcanlogin:
            send(connection, f"ALTER ROLE {login} LOGIN NOINHERIT")
    password = tenancy.serving_url.password
    if password:
        # Hashed here, so that the server's log never sees it.
        driver: Any = connection.connection.dbapi_connection
        send(connection, f"ALTER ROLE {login} PASSWORD '{encrypt_password(str(password), name, driver)}'")
    send(
        connection,
        # A transaction that was bound to no school finds no table at all.
        f"ALTER ROLE {login} SET search_path TO '';\n"
        f"ALTER ROLE {login} SET timezone TO 'UTC';\n"
        f"ALTER ROLE {login} SET statement_timeout TO '60s';\n"
        f"ALTER ROLE {login} SET idle_in_transaction_session_timeout TO '60s';\n"
        # No more than this, whatever was granted before.
        f"REVOKE ALL ON SCHEMA registry FROM {login};\n"
        f"REVOKE ALL ON ALL TABLES IN SCHEMA registry FROM {login};\n"
        f"GRANT USAGE ON SCHEMA registry TO {login};\n"
        f"GRANT SELECT ON ALL TABLES IN SCHEMA registry TO {login};\n"
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA registry TO {login}",
    )


def _open_to_login(connection: Connection, tenancy: Tenancy) -> None:
    """Let the login into the schools that were created for a login of another name."""
    closed = _CLOSED_ROLES if tenancy.roles else _CLOSED_SCHEMAS
    found = set(connection.execute(text(closed), {"login": tenancy.serving_login}).scalars())
    closed_schools = [school.schema for school in list_schools(connection) if school.schema in found]
    statements = [statement for schema in closed_schools for statement in admission(tenancy, schema)]
    if statements:
        send(connection, ";\n".join(statements))
