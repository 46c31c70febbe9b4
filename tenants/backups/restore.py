"""Restoring a school from its backup: here or elsewhere, under its own id or beside the original.

The schema is built by our own migrations. From the file come rows alone (`table_rows`), copied in the name of the
school's role.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg2
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from tenants.backups.archive import DETAILS, LATER_DETAILS, Manifest, open_archive
from tenants.backups.backup import rows_of
from tenants.backups.checksums import differences, table_checksums
from tenants.backups.encryption import Identity
from tenants.backups.revision_tables import refuse_unknown, table_columns
from tenants.backups.table_rows import TableRows
from tenants.catalogue import table_statements
from tenants.connections.engines import execute_script, quote_identifier
from tenants.driver_errors import first_line
from tenants.exceptions import AlreadyExists, BackupRefused
from tenants.migrations.migration_sql import head, upgrade_statements
from tenants.operator_log import record_operation
from tenants.progress import Progress, no_progress
from tenants.provisioning.create import (
    creation_refusal,
    grant_statements,
    schema_statements,
)
from tenants.registry.installation import check_expansion
from tenants.registry.schools import School, change_school, find_school, schema_name
from tenants.relations import RELATIONS_OF_SCHEMA
from tenants.tenancy import Tenancy

# The settings of the file's rows, in place of this connection's own.
_SETTINGS = (
    "SET LOCAL client_encoding TO 'UTF8'; SET LOCAL standard_conforming_strings TO on; "
    "SET LOCAL client_min_messages TO warning; SET LOCAL datestyle TO 'ISO'; SET LOCAL intervalstyle TO 'postgres'"
)
_FOREIGN_KEYS = text(
    f"""
    SELECT c.relname, k.conname, pg_get_constraintdef(k.oid)
    FROM {RELATIONS_OF_SCHEMA} JOIN pg_constraint k ON k.conrelid = c.oid
    WHERE k.contype = 'f'
    ORDER BY c.relname, k.conname
    """  # noqa: S608 -- a text of our own
)


def restore(
    tenancy: Tenancy,
    path: Path,
    *,
    school_id: UUID | None = None,
    name: str | None = None,
    identities: Sequence[Identity] = (),
    progress: Progress = no_progress,
) -> School:
    """Restore a school from its backup, under its own id and name unless others are given.

    All of it happens in one transaction, with a comparison of every table with the manifest: a failure or a kill on the
    way leaves nothing. A backup of an older revision is brought to the newest in the same transaction. `identities` are
    the private keys for an encrypted one.

    Raises BackupRefused if the file is no backup, damaged, encrypted to another key, newer than this program, or holds
    data without a place in the school's revision; AlreadyExists if the id is taken; NotInstalled, also if
    `tenants init` of this program has not run; ProgramMissing, ProgramFailed.
    """
    with open_archive(path, identities) as archive:
        manifest = archive.manifest
        refuse_unknown(manifest.revision, tenancy.history)
        row = _row(manifest, school_id, name)
        schema = schema_name(row["id"])
        tenancy.placement.prepare(tenancy.admin)
        with tenancy.admin.begin() as connection:
            check_expansion(connection)
            owner = _create_schema(tenancy, connection, row)
            tables = table_columns(connection, schema)
            with (
                _empty_tables(connection, schema, list(tables)),
                progress(manifest.size) as advance,
                rows_of(archive, tables, advance=advance) as rows,
            ):
                _switch_role(connection, schema)
                for table in rows:
                    _run(connection, table.copy_statement(schema), table)
                _switch_role(connection, owner)
            _compare(manifest, connection, schema)
            school = _finish(tenancy, connection, row)
            of = {"school": manifest.school_id, "created_at": manifest.created_at, "sha256": manifest.sha256}
            record_operation(connection, tenancy, school.id, "restore", new=of)
            return school


def _row(manifest: Manifest, school_id: UUID | None, name: str | None) -> dict[str, Any]:
    """Write the registry's row of the school."""
    details = {detail: manifest.school[detail] for detail in DETAILS}
    details |= {detail: manifest.school.get(detail) for detail in LATER_DETAILS}
    return {
        **details,
        "id": school_id or manifest.school_id,
        "name": name or details["name"],
        "created_at": datetime.fromisoformat(details["created_at"]),
        "revision": manifest.revision,
    }


def _create_schema(tenancy: Tenancy, connection: Connection, row: dict[str, Any]) -> str:
    """Make the school's row, role and schema, and its tables at its revision; answer the role of their owner."""
    try:
        execute_script(connection, ";\n".join([_SETTINGS, *schema_statements(tenancy, connection, row)]))
    except DBAPIError as error:
        refused = creation_refusal(error, row["id"])
        if refused is None:
            raise
        if isinstance(refused, AlreadyExists):
            refused = AlreadyExists(f"{refused} Give another id with --id to restore beside it.")
        raise refused from None
    owner: str = connection.execute(text("SELECT current_setting('role')")).scalar_one()
    statements = table_statements(row["revision"], tenancy.history)
    # The school's role needs its grants for the rows to come.
    execute_script(connection, ";\n".join([*statements, *grant_statements(tenancy, row["id"])]))
    _switch_role(connection, owner)
    return owner


def _switch_role(connection: Connection, role: str) -> None:
    connection.execute(text("SELECT set_config('role', :role, true)"), {"role": role})


@contextmanager
def _empty_tables(connection: Connection, schema: str, tables: Sequence[str]) -> Iterator[None]:
    """Take out the migrations' own rows, and the foreign keys until the block has ended.

    The file has the tables in an order of its own, and they refer to each other.
    """
    drops, additions = [], []
    for table, key, meaning in connection.execute(_FOREIGN_KEYS, {"schema": schema}):
        alter = f"ALTER TABLE {quote_identifier(schema)}.{quote_identifier(table)}"
        drops.append(f"{alter} DROP CONSTRAINT {quote_identifier(key)}")
        additions.append(f"{alter} ADD CONSTRAINT {quote_identifier(key)} {meaning}")
    # Few rows, for which TRUNCATE would take longer: it makes every index anew.
    deletions = [
        f"DELETE FROM {quote_identifier(schema)}.{quote_identifier(table)}"  # noqa: S608 -- names of the catalogue
        for table in tables
    ]
    execute_script(connection, ";\n".join([*drops, *deletions]))
    yield
    _run(connection, ";\n".join(additions))


def _run(connection: Connection, sql: str, rows: TableRows | None = None) -> None:
    """Run a statement that the rows of the backup may break; raises BackupRefused if they do."""
    driver: Any = connection.connection.dbapi_connection
    with driver.cursor() as cursor:
        try:
            if rows is None:
                cursor.execute(sql)
            else:
                cursor.copy_expert(sql, rows.rows)
        except psycopg2.Error as error:
            if rows is not None and rows.rows.error is not None:
                raise rows.rows.error from None
            raise BackupRefused(f"The backup can't be restored here: {first_line(error)}") from None


def _compare(manifest: Manifest, connection: Connection, schema: str) -> None:
    differing = differences(manifest.tables, table_checksums(connection, schema))
    if differing:
        raise BackupRefused(f"What was restored is not what was backed up: {', '.join(differing[:10])}.")


def _finish(tenancy: Tenancy, connection: Connection, row: dict[str, Any]) -> School:
    """Bring a restored school to the newest revision, without rows not to be restored; let the serving login in."""
    newest = head(tenancy.history)
    behind = row["revision"] != newest
    if behind:
        execute_script(connection, ";\n".join(upgrade_statements(row["revision"], newest, tenancy.history)))
    schema = schema_name(row["id"])
    emptied = [
        f"DELETE FROM {quote_identifier(schema)}.{quote_identifier(table)}"  # noqa: S608 -- names of the metadata
        for table in table_columns(connection, schema)
        if table in tenancy.not_restored
    ]
    execute_script(connection, ";\n".join([*emptied, "SET LOCAL ROLE NONE"]))
    # The grants once more: the migrations may have made tables.
    placing = tenancy.placement.placing_statements(schema_name(row["id"]))
    last = [*placing, *grant_statements(tenancy, row["id"])]
    if last:
        execute_script(connection, ";\n".join(last))
    if behind:
        return change_school(connection, row["id"], revision=newest)
    return find_school(connection, row["id"])
