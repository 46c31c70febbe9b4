"""Restoring a school from its backup: here or elsewhere, under its own id or beside the original."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg2
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from tenants.backups.archive import DETAILS, Manifest, open_archive
from tenants.backups.backup import script_of
from tenants.backups.checksums import differences, table_checksums
from tenants.backups.restore_script import Step
from tenants.connections.engines import execute_script
from tenants.driver_errors import first_line
from tenants.exceptions import AlreadyExists, BackupRefused
from tenants.migrations.migration_sql import head, revisions, upgrade_statements
from tenants.operator_log import record_operation
from tenants.progress import Progress, no_progress
from tenants.provisioning.create import (
    check_distributed,
    creation_refusal,
    grant_statements,
    schema_statements,
)
from tenants.registry.schools import School, change_school, find_school, schema_name
from tenants.tenancy import Tenancy

# What the dump's statements and rows are written in, whatever this connection's own settings are.
_SETTINGS = (
    "SET LOCAL client_encoding TO 'UTF8'; SET LOCAL standard_conforming_strings TO on; "
    "SET LOCAL client_min_messages TO warning; SET LOCAL datestyle TO 'ISO'; SET LOCAL intervalstyle TO 'postgres'"
)


def restore(
    tenancy: Tenancy,
    path: Path,
    *,
    school_id: UUID | None = None,
    name: str | None = None,
    progress: Progress = no_progress,
) -> School:
    """Restore a school from its backup, under its own id and name unless others are given.

    All of it happens in one transaction, which ends by comparing every table with the manifest: whatever fails or is
    killed on the way leaves nothing. A backup of an older revision is brought to the newest in the same transaction.
    Raises BackupRefused where the file is no backup, damaged, newer than this program, or holds what no school
    needs; AlreadyExists where the id is taken; NotInstalled; ProgramMissing, ProgramFailed.
    """
    with open_archive(path) as archive:
        manifest = archive.manifest
        _refuse_unknown(manifest, tenancy)
        row = _row(manifest, school_id, name)
        with tenancy.admin.begin() as connection:
            _create_schema(tenancy, connection, row)
            with (
                progress(manifest.size) as advance,
                script_of(archive, schema=schema_name(row["id"]), advance=advance) as script,
            ):
                for step in script:
                    _run_step(connection, step)
            _compare(manifest, connection, schema_name(row["id"]))
            school = _finish(tenancy, connection, row)
            of = {"school": manifest.school_id, "created_at": manifest.created_at, "sha256": manifest.sha256}
            record_operation(connection, tenancy, school.id, "restore", new=of)
            return school


def _refuse_unknown(manifest: Manifest, tenancy: Tenancy) -> None:
    if manifest.revision not in revisions(tenancy.history):
        raise BackupRefused(
            f"The backup is of a school at revision {manifest.revision}, which this program does not know "
            f"(its newest is {head(tenancy.history)}): restore it with a newer program."
        )


def _row(manifest: Manifest, school_id: UUID | None, name: str | None) -> dict[str, Any]:
    """Write the registry's row of the school."""
    details = {detail: manifest.school[detail] for detail in DETAILS}
    return {
        **details,
        "id": school_id or manifest.school_id,
        "name": name or details["name"],
        "created_at": datetime.fromisoformat(details["created_at"]),
        "revision": manifest.revision,
    }


def _create_schema(tenancy: Tenancy, connection: Connection, row: dict[str, Any]) -> None:
    if tenancy.distributed:
        check_distributed(connection)
    try:
        execute_script(connection, ";\n".join([_SETTINGS, *schema_statements(tenancy, connection, row)]))
    except DBAPIError as error:
        refused = creation_refusal(error, row["id"])
        if refused is None:
            raise
        if isinstance(refused, AlreadyExists):
            refused = AlreadyExists(f"{refused} Give another id with --id to restore beside it.")
        raise refused from None


def _run_step(connection: Connection, step: Step) -> None:
    """Run a statement of the dump; raises BackupRefused where PostgreSQL does not take it."""
    driver: Any = connection.connection.dbapi_connection
    with driver.cursor() as cursor:
        try:
            if step.rows is None:
                cursor.execute(step.sql)
            else:
                cursor.copy_expert(step.sql, step.rows)
        except psycopg2.Error as error:
            if step.rows is not None and step.rows.error is not None:
                raise step.rows.error from None
            raise BackupRefused(f"The backup can't be restored here: {first_line(error)}") from None


def _compare(manifest: Manifest, connection: Connection, schema: str) -> None:
    found = differences(manifest.tables, table_checksums(connection, schema))
    if found:
        raise BackupRefused(f"What was restored is not what was backed up: {', '.join(found[:10])}.")


def _finish(tenancy: Tenancy, connection: Connection, row: dict[str, Any]) -> School:
    """Bring a restored school to the newest revision, and let the serving login in."""
    newest = head(tenancy.history)
    behind = row["revision"] != newest
    if behind:
        execute_script(connection, ";\n".join(upgrade_statements(row["revision"], newest, tenancy.history)))
    execute_script(connection, "SET LOCAL ROLE NONE")
    if tenancy.distributed:
        # The schema and its tables are ordinary ones until now: so they were filled.
        connection.execute(
            text("SELECT citus_schema_distribute(:schema)"), {"schema": schema_name(row["id"])}
        )
    last = grant_statements(tenancy, row["id"])
    if last:
        execute_script(connection, ";\n".join(last))
    if behind:
        return change_school(connection, row["id"], revision=newest)
    return find_school(connection, row["id"])
