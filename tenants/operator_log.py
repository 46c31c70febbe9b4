"""The operator's work on a school, in the school's own audit log: backups, restores, closing and opening it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from tenants.connections.engines import execute_script, quote_identifier
from tenants.provisioning.create import insert_sql
from tenants.registry.schools import schema_name
from tenants.tenancy import Tenancy


def operator_name() -> str:
    """Name the user of this process, for the audit log: `operator:` and the operating system's user."""
    try:
        return f"operator:{getpass.getuser()}"
    except (KeyError, OSError):
        # A container's user may have a number and no name.
        return f"operator:{os.getuid()}"


def record_operation(
    connection: Connection,
    tenancy: Tenancy,
    school_id: UUID,
    entity: str,
    *,
    old: Mapping[str, Any] | None = None,
    new: Mapping[str, Any] | None = None,
) -> None:
    """Write an operation of the operator into a school's audit log, within the connection's transaction.

    `entity` is `school`, or the thing made, such as `backup`; values are of any type of JSON. A school of a revision
    without a log is left as it is, and so is a school whose program hands over no entries.
    """
    if tenancy.operator_entry is None:
        return
    table, rows = tenancy.operator_entry(operator_name(), entity, school_id, old, new)
    schema = schema_name(school_id)
    name = f"{quote_identifier(schema)}.{quote_identifier(table)}"
    if tenancy.becomes_roles:
        execute_script(connection, f"SET LOCAL ROLE {quote_identifier(schema)}")
    if connection.execute(text("SELECT to_regclass(:name)"), {"name": name}).scalar_one() is not None:
        driver: Any = connection.connection.dbapi_connection
        execute_script(connection, insert_sql(driver, name, rows))
    if tenancy.becomes_roles:
        execute_script(connection, "SET LOCAL ROLE NONE")
