"""Pruning a school's audit log: the operator moves its oldest entries into a file."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO
from uuid import UUID

from sqlalchemy import Connection, Text, bindparam, cast, delete, exists, func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Uuid

from school_service.features.audit.models import AuditEntry, ChangeSet
from school_service.features.audit.numbering import number_by_operator
from tenants.atomic_file import atomic_file
from tenants.exceptions import AlreadyExists
from tenants.operator_connection import connected_to_school
from tenants.operator_log import record_operation
from tenants.tenancy import Tenancy

ENTITY = "audit-pruning"
BATCH = 5000  # entries that are read and deleted at once

_LINE = cast(
    func.json_build_object(*(part for column in AuditEntry.__table__.c for part in (column.name, column))),
    Text,
)
_OLDEST = (
    select(AuditEntry.id, _LINE)
    .where(AuditEntry.at < bindparam("before"))
    .order_by(AuditEntry.at, AuditEntry.id)
    .limit(BATCH)
    .with_for_update()
)
_DELETION = delete(AuditEntry).where(AuditEntry.id == func.any(bindparam("ids", type_=ARRAY(Uuid))))


def prune_audit(tenancy: Tenancy, school_id: UUID, *, before: datetime, path: Path) -> int:
    """Move the entries of a school's audit log from before a moment into a new file; returns their number.

    The file has a JSON object on each line, the oldest entry first, and is for its owner's eyes alone. It is on the
    disk before the transaction of the deletion commits: if that fails, the entries are in both. An entry of the log
    tells of it. The change sets go up to the newest to lose an entry, which stays as the oldest place to go on from.
    Without such entries there is no file. Raises AlreadyExists for a taken name, OSError, UnknownSchool,
    SchoolDeleting, SchoolUpgrading.
    """
    refuse = partial(_refuse_existing, path)
    refuse()
    with connected_to_school(tenancy, school_id, as_owner=True) as (connection, _):
        if not connection.scalar(select(exists().where(AuditEntry.at < before))):
            return 0
        newest = _newest_pruned(connection, before)
        with atomic_file(path, before_naming=refuse) as file:
            entries = _move(connection, before, file)
        connection.execute(delete(ChangeSet).where(ChangeSet.number < newest))
        gone = {"entries": entries, "before": before.isoformat(), "file": path.name}
        record_operation(connection, tenancy, school_id, ENTITY, old=gone)
    return entries


def _newest_pruned(connection: Connection, before: datetime) -> int:
    """Find the number of the newest change set to lose an entry; 0 if none does. All sets get a number before."""
    number_by_operator(connection)
    losing = select(AuditEntry.change_set).where(AuditEntry.at < before)
    numbers = select(func.max(ChangeSet.number)).where(ChangeSet.id.in_(losing))
    return connection.scalar(numbers) or 0


def _move(connection: Connection, before: datetime, file: IO[bytes]) -> int:
    """Write the entries from before a moment into a file, and delete them with all that goes with them."""
    moved = 0
    while batch := connection.execute(_OLDEST, {"before": before}).all():
        file.writelines(f"{line}\n".encode() for _, line in batch)
        connection.execute(_DELETION, {"ids": [entry_id for entry_id, _ in batch]})
        moved += len(batch)
    return moved


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise AlreadyExists(f"{path} exists already: name another file.")
