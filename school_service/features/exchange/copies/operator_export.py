"""The export of all records of a school by the operator, into a file."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

from school_service.features.audit.numbering import number_by_operator
from school_service.features.audit.service import EXPORT
from school_service.features.exchange.copies.exporting import write_export
from school_service.features.exchange.copies.resources import NAMES
from tenants.atomic_file import atomic_file
from tenants.operator_connection import connected_to_school
from tenants.operator_log import record_operation
from tenants.tenancy import Tenancy


def export_records(tenancy: Tenancy, school_id: UUID, path: Path) -> dict[str, Any]:
    """Export all records of a school, as GET /export does; returns the school's id, their number and the file.

    Only the owner of the file can read it, and it appears when it is complete; the school's audit log has an entry.
    Raises UnknownSchool, SchoolDeleting, SchoolUpgrading.
    """
    with connected_to_school(tenancy, school_id) as (connection, _):
        number_by_operator(connection)
    with (
        connected_to_school(tenancy, school_id, snapshot=True) as (connection, school),
        atomic_file(path) as file,
    ):
        exported, counts = write_export(connection, school.id, NAMES)
        with exported.lines as zipped, gzip.open(zipped) as lines:
            file.write(exported.head)
            shutil.copyfileobj(lines, file)
        record_operation(connection, tenancy, school_id, EXPORT, new={"records": dict(counts)})
    return {"id": str(school_id), "records": sum(counts.values()), "file": str(path)}
