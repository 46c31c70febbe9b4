"""The set of OneRoster files of an academic session, written into one zip."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection
from functools import reduce
from io import StringIO
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO
from uuid import UUID, uuid5
from zipfile import ZIP_DEFLATED, ZipFile

from sqlalchemy import Connection, select

from school_service.core.database import current_school, db
from school_service.core.permissions import Permission
from school_service.core.read_models import CompiledStatement
from school_service.features.audit.service import EXPORT, audit_change
from school_service.features.exchange.oneroster import reads, standard, version_1_1
from school_service.features.exchange.oneroster.reads import ExportScope, Rows
from school_service.features.school.cohorts.service import find_session
from school_service.features.school.models import AcademicSession
from tenants.connections.statements import copy_rows
from tenants.registry.schools import School

SYSTEM = "School Service"

_LINE = "\r\n"
# The files in which ids are made of others: in the first column, or in the first and the fourth.
_MADE_IDS = {"roles": 1, "enrollments": 1, "lineItems": 1, "results": 2}
_UUID = rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_IDS = rb"(" + _UUID + rb")((?>(?:/[0-9A-Za-z-]++)*))"
_FIRST = re.compile(rb"\A" + _IDS)
_FIRST_AND_FOURTH = re.compile(rb"\A" + _IDS + rb",,," + _IDS)


def export(
    *,
    permissions: Collection[Permission],
    session: str | None = None,
    version: str = standard.V1_2.number,
    files: Collection[str] = (),
) -> tuple[str, BinaryIO]:
    """Export the permitted records of a session, by default the current one; returns a file name and the file.

    The transaction should be a snapshot, so all files show the same moment. If no session is current, the files have
    only their headers. Raises Invalid for an unknown session.
    """
    session_id = None if session is None else find_session(session, "session")
    file = TemporaryFile()  # noqa: SIM115 -- closed when it has been sent
    try:
        exported, record = write_export(
            db.session.connection(),
            file,
            current_school(),
            permissions=permissions,
            session_id=session_id,
            version=version,
            files=files,
        )
    except BaseException:
        file.close()
        raise
    audit_change(EXPORT, exported, new=record)
    return "oneroster.zip", file


def _rows_of(name: str, exported: ExportScope, version: standard.Version) -> Rows:
    return version_1_1.rows_of(name, exported) if version is standard.V1_1 else reads.rows_of(name, exported)


def write_export(
    connection: Connection,
    file: IO[bytes],
    school: School,
    *,
    permissions: Collection[Permission],
    session_id: UUID | None = None,
    version: str = standard.V1_2.number,
    files: Collection[str] = (),
) -> tuple[UUID | None, dict[str, Any]]:
    """Write the zip of a session, by default the current one, into a file.

    `files` are the names of the wanted files, by default all. Returns the session, None without one, and the values for
    the audit log.

    The transaction of `connection` is bound to the school. Each file is one statement; its rows go from PostgreSQL into
    the zip as they come.
    """
    if session_id is None:
        session_id = connection.scalar(select(AcademicSession.id).where(AcademicSession.current))
    of_version = standard.VERSIONS[version]
    allowed = [name for name in reads.files_of(permissions) if name in of_version.columns]
    names = [name for name in allowed if not files or name in files]
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("manifest.csv", _manifest(school.id, names, of_version))
        for name in names:
            with archive.open(f"{name}.csv", "w") as out:
                out.write(_csv([of_version.columns[name]]))
                if session_id is not None:
                    exported = ExportScope(school.id, school.name, session_id, permissions)
                    statement = CompiledStatement(_rows_of(name, exported, of_version))
                    copy_rows(
                        connection,
                        statement.sql,
                        statement.parameters({}),
                        _Lines(out, _MADE_IDS.get(name, 0)),
                    )
    told = None if session_id is None else str(session_id)
    return session_id, {"format": f"OneRoster {version}", "session": told, "files": names}


def _manifest(school_id: UUID, present: Collection[str], version: standard.Version) -> bytes:
    files = {name: standard.BULK if name in present else standard.ABSENT for name in version.files}
    return _csv(
        [
            ("propertyName", "value"),
            ("manifest.version", standard.MANIFEST_VERSION),
            ("oneroster.version", version.number),
            *((f"file.{name}", file) for name, file in files.items()),
            ("source.systemName", SYSTEM),
            ("source.systemCode", str(school_id)),
        ]
    )


def _csv(rows: Collection[Collection[str]]) -> bytes:
    text = StringIO()
    csv.writer(text, lineterminator=_LINE).writerows(rows)
    return text.getvalue().encode()


class _Lines:
    """Writes each row as a line of the standard: with CRLF at its end, and ids made of others."""

    def __init__(self, out: IO[bytes], made_ids: int) -> None:
        self._out = out
        self._made = {1: _FIRST, 2: _FIRST_AND_FOURTH}.get(made_ids)

    def write(self, row: bytes) -> None:
        """Write a row with a line feed at its end."""
        if self._made is not None:
            row = self._made.sub(_make_ids, row, count=1)
        self._out.write(row[:-1] + _LINE.encode())


def _make_ids(match: re.Match[bytes]) -> bytes:
    groups = match.groups()
    pairs = zip(groups[::2], groups[1::2], strict=True)
    return b",,,".join(first if not others else derived_id(first, others) for first, others in pairs)


def derived_id(first: bytes, others: bytes) -> bytes:
    """Make one id of several: a UUID of version 5, with each id as the namespace of the next.

    Each of `others` begins with `/`.
    """
    parts = others.decode().split("/")[1:]
    return str(reduce(uuid5, parts, UUID(first.decode()))).encode()
