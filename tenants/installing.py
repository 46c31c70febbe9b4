"""The registry's own schema, and the login role that serves requests."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from tenants.migrating import history
from tenants.tenancy import Tenancy

# Any constant: two operators who install at the same moment take turns.
_INSTALLATION_LOCK = 7_203_114_225


def install(tenancy: Tenancy) -> None:
    """Create or upgrade the registry, its reference data and the serving login, in one transaction.

    The login can sign in and read the registry; it is a member of every school's role but inherits nothing of it, so
    that it reaches a school's tables only after switching to that school's role.
    """
    with tenancy.admin.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _INSTALLATION_LOCK})
        connection.execute(text("CREATE SCHEMA IF NOT EXISTS registry"))
        config = Config()
        config.set_main_option("script_location", str(history("registry")).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        tenancy.reference(connection)
        if not tenancy.one_login:
            _provide_login(connection, tenancy)


def _provide_login(connection: Connection, tenancy: Tenancy) -> None:
    name = tenancy.serving_login
    exists = connection.execute(text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": name}).scalar()
    quoted = connection.dialect.identifier_preparer.quote_identifier(name)
    words = "ALTER ROLE" if exists else "CREATE ROLE"
    connection.execute(text(f"{words} {quoted} LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS"))
    password = tenancy.serving_url.password
    if password is not None:
        literal = connection.execute(text("SELECT quote_literal(:password)"), {"password": password}).scalar_one()
        connection.exec_driver_sql(f"ALTER ROLE {quoted} PASSWORD {literal.replace('%', '%%')}")
    for statement in (
        # A transaction that was bound to no school finds no table at all.
        f"ALTER ROLE {quoted} SET search_path TO ''",
        f"ALTER ROLE {quoted} SET timezone TO 'UTC'",
        f"ALTER ROLE {quoted} SET statement_timeout TO '60s'",
        f"ALTER ROLE {quoted} SET idle_in_transaction_session_timeout TO '60s'",
        f"GRANT USAGE ON SCHEMA registry TO {quoted}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA registry TO {quoted}",
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA registry TO {quoted}",
    ):
        connection.exec_driver_sql(statement)
