"""The export of a school by the operator, into a file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any
from uuid import UUID

from school_service.core.permissions import Permission
from school_service.features.audit.service import EXPORT
from school_service.features.exchange.oneroster import standard
from school_service.features.exchange.oneroster.service import write_export
from school_service.features.school.cohorts.reads import session_by_id_or_name
from tenants.atomic_file import atomic_file
from tenants.exceptions import TenancyError
from tenants.operator_connection import connected_to_school
from tenants.operator_log import record_operation
from tenants.tenancy import Tenancy


class UnknownSession(TenancyError):
    """The school has no session of this id or name."""


def export_to_file(
    tenancy: Tenancy,
    school_id: UUID,
    path: Path,
    session: str | None = None,
    version: str = standard.V1_2.number,
    files: Collection[str] = (),
) -> dict[str, Any]:
    """Export everything of a session of a school, given by id or name; by default of the current session.

    `files` are the names of the wanted files, by default all.

    Only the owner of the file can read it, and it appears when it is complete; the school's audit log has an entry.
    Returns the ids of school and session, and the path of the file. Raises UnknownSchool, SchoolDeleting,
    SchoolUpgrading, UnknownSession.
    """
    with connected_to_school(tenancy, school_id, snapshot=True) as (connection, school):
        session_id = None
        if session is not None:
            session_id = connection.scalar(session_by_id_or_name(session))
            if session_id is None:
                raise UnknownSession(f"The school {school_id} has no session {session}.")
        with atomic_file(path) as file:
            _, record = write_export(
                connection,
                file,
                school,
                permissions=frozenset(Permission),
                session_id=session_id,
                version=version,
                files=files,
            )
            record_operation(connection, tenancy, school_id, EXPORT, new=record)
    return {"id": str(school_id), "session": record["session"], "file": str(path)}
