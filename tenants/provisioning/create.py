"""Creating a school: one statement batch, run by PostgreSQL as one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID, uuid4

from psycopg2.extensions import connection as DriverConnection  # noqa: N812
from psycopg2.extras import register_uuid
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tenants.clock import now
from tenants.connections.engines import execute_script, mark_school, quote_identifier
from tenants.driver_errors import constraint_names, sqlstate
from tenants.exceptions import AlreadyExists, NotInstalled, TenancyError
from tenants.migrations.migration_sql import baseline
from tenants.provisioning.ownership import login_grant, table_grants
from tenants.registry.installation import check_expansion
from tenants.registry.schools import (
    SHORT_NAME_TAKEN,
    UNIQUE_SHORT_NAME,
    School,
    find_school,
    schema_name,
)
from tenants.tenancy import Administrator, SeedRows, Tenancy

register_uuid()


def create_school(
    tenancy: Tenancy,
    *,
    name: str,
    administrator: Administrator,
    school_id: UUID | None = None,
    details: Mapping[str, str | None] | None = None,
) -> School:
    """Create a school, ready to use, with its first user; `details` as `tenants.registry.details` checks them.

    Sends one statement batch without BEGIN: PostgreSQL runs it as one transaction, so a fault anywhere leaves no
    schema, no role and no row of the registry. Raises AlreadyExists if the id is taken; NotInstalled, also if
    `tenants init` of this program has not run.
    """
    school_id = school_id or uuid4()
    rows = list(tenancy.seed(administrator))
    tenancy.placement.prepare(tenancy.admin)
    with tenancy.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        check_expansion(connection)
        mark_school(connection, school_id)
        statements = creation_statements(
            tenancy, connection, school_id=school_id, name=name, rows=rows, details=details
        )
        try:
            execute_script(connection, ";\n".join(statements))
        except DBAPIError as error:
            refused = creation_refusal(error, school_id)
            if refused is None:
                raise
            raise refused from None
        return find_school(connection, school_id)


def creation_statements(
    tenancy: Tenancy,
    connection: Connection,
    *,
    school_id: UUID,
    name: str,
    rows: Iterable[SeedRows],
    details: Mapping[str, str | None] | None = None,
) -> list[str]:
    """Write the statements for creating a school: its row, role, schema, tables and first records."""
    driver: Any = connection.connection.dbapi_connection
    revision, tables = baseline(tenancy.history)
    school = {
        "id": school_id,
        "name": name,
        "status": "active",
        "revision": revision,
        "created_at": now(),
        **(details or {}),
    }
    statements = schema_statements(tenancy, connection, school)
    statements.append(tables)
    # Empty, so that there is nothing to copy.
    statements += tenancy.placement.placing_statements(schema_name(school_id))
    statements += [insert_sql(driver, table, records) for table, records in rows if records]
    return statements + grant_statements(tenancy, school_id)


def schema_statements(tenancy: Tenancy, connection: Connection, school: dict[str, Any]) -> list[str]:
    """Write the statements for a school's row as given, its role and its schema.

    They end as the schema's owner and in the schema: the next statements make and fill its tables, and then come
    `grant_statements`.
    """
    driver: Any = connection.connection.dbapi_connection
    schema = schema_name(school["id"])
    statements = [
        insert_sql(driver, "registry.schools", [school]),
        f'CREATE ROLE "{schema}" NOLOGIN NOINHERIT',
        login_grant(tenancy, schema),
    ]
    if not tenancy.one_login:
        # The creator of a role may administer it, but may become it only when granted so.
        statements.append(f'GRANT "{schema}" TO CURRENT_USER WITH INHERIT FALSE, SET TRUE')
    if tenancy.becomes_roles:
        owner = quote_identifier(tenancy.owner)
        statements += [f'CREATE SCHEMA "{schema}" AUTHORIZATION {owner}', f"SET LOCAL ROLE {owner}"]
    else:
        statements.append(f'CREATE SCHEMA "{schema}"')
    return [*statements, f'SET LOCAL search_path TO "{schema}", pg_temp']


def grant_statements(tenancy: Tenancy, school_id: UUID) -> list[str]:
    """Write the statements to let the serving role of a school at its tables, once all of them are there.

    They end as the login that provisions.
    """
    schema = schema_name(school_id)
    if tenancy.becomes_roles:
        owner = quote_identifier(tenancy.owner)
        return [f"SET LOCAL ROLE {owner}", *table_grants(schema), "SET LOCAL ROLE NONE"]
    return table_grants(schema)


def insert_sql(driver: DriverConnection, table: str, rows: Any) -> str:
    """Write an INSERT of many rows, each a mapping with the same keys, as SQL text."""
    columns = list(rows[0])
    pattern = "(" + ", ".join(["%s"] * len(columns)) + ")"
    with driver.cursor() as cursor:
        values = ",\n".join(
            cursor.mogrify(pattern, [row[column] for column in columns]).decode() for row in rows
        )
    return f"INSERT INTO {table} ({', '.join(map(quote_identifier, columns))}) VALUES\n{values}"


def creation_refusal(error: DBAPIError, school_id: UUID) -> TenancyError | None:
    """Translate PostgreSQL's refusal of a school's creation; None for any other error."""
    state = sqlstate(error)
    violated = constraint_names(error) if state == "23505" else ()
    if "pk_schools" in violated:
        return AlreadyExists(f"A school with the id {school_id} exists already.")
    if UNIQUE_SHORT_NAME in violated:
        return AlreadyExists(SHORT_NAME_TAKEN)
    if state in {"42710", "42P06"} or "pg_authid_rolname_index" in violated:
        # Roles belong to the server, not to the database.
        return AlreadyExists(
            f"The role or schema {schema_name(school_id)} exists already, "
            "of a school with this id in another database of this server, or left behind by hand."
        )
    if state == "42704" and "role " in str(error.orig):
        return NotInstalled(
            "The login that is to serve the school, or the role that is to own its tables, is missing. "
            "Run: school-service tenants init"
        )
    return None
