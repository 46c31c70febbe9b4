"""Backing up every school, as often as a clock says: a folder for each school, a file for each moment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy.exc import DBAPIError

from tenants.backups.archive import Manifest, readable_errors
from tenants.backups.backup import back_up
from tenants.clock import now
from tenants.driver_errors import first_line, sqlstate
from tenants.exceptions import BackupRefused, SchoolDeleting, ServerAway, UnknownSchool
from tenants.placement import Reaching
from tenants.progress import Progress, no_progress
from tenants.registry.schools import School, list_schools
from tenants.tenancy import Tenancy

# Names sort as their moments do.
_MOMENT = "%Y%m%dT%H%M%S%fZ"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_NAME = re.compile(r"[0-9]{8}T[0-9]{12}Z\.zip", re.ASCII)


@dataclass
class BackupReport:
    """The results of a run over all schools.

    `made` has each school's file and its manifest, `failed` schools with the reason, `skipped` the schools deleted
    meanwhile, or being deleted; `removed` the older files in place of the new ones.
    """

    made: list[tuple[Path, Manifest]] = field(default_factory=list)
    failed: list[tuple[School, str]] = field(default_factory=list)
    skipped: list[School] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)

    def as_record(self) -> dict[str, Any]:
        """The report as an operator sees it, ready for JSON."""
        return {
            "made": [{"file": str(path), **manifest.as_record()} for path, manifest in self.made],
            "failed": [{**_id_and_name(school), "error": error} for school, error in self.failed],
            "skipped": [_id_and_name(school) for school in self.skipped],
            "removed": [str(path) for path in self.removed],
        }


def _id_and_name(school: School) -> dict[str, str]:
    return {"id": str(school.id), "name": school.name}


def back_up_all(
    tenancy: Tenancy,
    folder: Path,
    *,
    keep: int | None = None,
    encrypt_to: Sequence[str] = (),
    progress: Progress = no_progress,
) -> BackupReport:
    """Write every school into a new file, `folder`/ID/MOMENT.zip; a failing one does not hold up the others.

    `keep`: once a school's new file is complete, only so many of its files (1 or more) stay, this one and the newest
    before it; None: all of them. Nothing is removed but files of such names in such folders, older than the new one.
    Several runs at once each make files of their own. If the database itself goes away, the run stops with the driver's
    error; of several servers, the schools of one that is away fail. Raises also ValueError for a text that is no key.
    """
    report = BackupReport()
    with tenancy.admin.connect() as connection:
        schools = list_schools(connection)
        reaching = Reaching(tenancy.placement.servers_of_schools(connection))
    with progress(len(schools)) as advance:
        for school in schools:
            try:
                with reaching.school(school.schema):
                    _back_up(tenancy, school, folder, keep, encrypt_to, report)
            except (UnknownSchool, SchoolDeleting):
                report.skipped.append(school)
            except (BackupRefused, ServerAway) as error:
                report.failed.append((school, str(error)))
            except DBAPIError as error:
                if sqlstate(error) is None:
                    raise
                report.failed.append((school, first_line(error.orig)))
            advance(1)
    return report


def _back_up(
    tenancy: Tenancy,
    school: School,
    folder: Path,
    keep: int | None,
    encrypt_to: Sequence[str],
    report: BackupReport,
) -> None:
    own = folder / str(school.id)
    path = own / f"{now():{_MOMENT}}.zip"
    if school.deletion == "begun":
        raise SchoolDeleting(f"The school {school.id} is being deleted.")
    with readable_errors("written"):
        own.mkdir(mode=0o700, exist_ok=True)
    report.made.append((path, back_up(tenancy, school.id, path, encrypt_to=encrypt_to)))
    if keep is not None:
        _remove_older(path, keep, report)


def _remove_older(newest: Path, keep: int, report: BackupReport) -> None:
    """Remove a school's files older than the newest and the `keep` - 1 before it; raises BackupRefused."""
    try:
        older = sorted(
            path for path in newest.parent.iterdir() if _is_backup(path) and path.name < newest.name
        )
        for path in older[: max(0, len(older) - (keep - 1))]:
            try:
                path.unlink()
            except FileNotFoundError:
                # Another run was faster.
                continue
            report.removed.append(path)
    except OSError as error:
        raise BackupRefused(
            f"{newest} was made, but older files can't be removed: {error.strerror or error}."
        ) from None


def newest_backups(folder: Path) -> dict[UUID, Path]:
    """Find the newest file of each school in a folder of such backups; raises BackupRefused."""
    backups: dict[UUID, Path] = {}
    with readable_errors("read"):
        for own in folder.iterdir():
            if _ID.fullmatch(own.name) and own.is_dir():
                newest = max((path for path in own.iterdir() if _is_backup(path)), default=None)
                if newest is not None:
                    backups[UUID(own.name)] = newest
    return backups


def _is_backup(path: Path) -> bool:
    return _NAME.fullmatch(path.name) is not None and path.is_file() and not path.is_symlink()
