"""The verbs on the records of a school: `tenants erase-audit`, `prune-audit`, `export` and `export-oneroster`."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import click
from sqlalchemy.exc import DBAPIError

from school_service.features.exchange.oneroster.standard import COLUMNS
from tenants.clock import now
from tenants.commands.printing import as_json, show
from tenants.commands.running import with_schools
from tenants.driver_errors import first_line, sqlstate
from tenants.exceptions import SchoolDeleting, TenancyError, UnknownSchool
from tenants.registry.schools import list_schools
from tenants.tenancy import Tenancy
from tenants.wording import counted

LEAST_DAYS = 90  # of the audit log that stay: `KNOWN_FOR` of users

# Modules with the tables of a school are imported by the verbs: --help and wrong use are answered without.


@click.command("erase-audit", short_help="Empty the values of erased people in the audit log.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_schools
def erase_audit(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Empty the values in a school's audit log that tell of people whose data were erased.

    Erasing a person by the API can't do this: requests can only add to the log. Action, time and author stay.
    Prints how many entries it changed.
    """
    from school_service.features.personal_data import audit_erasure
    from school_service.tenancy import import_models

    import_models()
    show({"id": str(school_id), "entries": audit_erasure.erase_audit(tenancy, school_id)}, as_json)


@click.command("prune-audit", short_help="Move old entries of the audit log into a file.")
@click.argument("school_id", metavar="ID", type=click.UUID, required=False)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option(
    "--all",
    "folder",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="In place of ID and FILE: of every school, into a new file of its own, DIR/ID-MOMENT.ndjson.",
)
@click.option(
    "--older-than",
    "days",
    metavar="DAYS",
    type=click.IntRange(LEAST_DAYS, 36500),
    required=True,
    help=f"Entries that are older; {LEAST_DAYS} at least, since addresses of sign-ins are known for so long.",
)
@as_json
@with_schools
def prune_audit(
    tenancy: Tenancy, school_id: UUID | None, file: Path | None, folder: Path | None, days: int, as_json: bool
) -> None:
    """Move the entries of a school's audit log that are older than DAYS into FILE, a JSON object on each line.

    They are deleted once FILE is on the disk. FILE must be new, and can be read by its owner alone. The school's audit
    log says that it was done; where there are no such entries nothing is.
    """
    if (folder is None) == (school_id is None) or (school_id is not None and file is None):
        raise click.UsageError("Name a school's ID and a FILE, or all schools with --all DIR.")
    before = now() - timedelta(days=days)
    if school_id is not None and file is not None:
        try:
            show(_pruned(tenancy, school_id, before, file), as_json)
        except OSError as error:
            raise click.ClickException(f"{file} can't be written: {error.strerror}") from None
    elif folder is not None:
        _prune_all(tenancy, before, folder, as_json)


def _prune_all(tenancy: Tenancy, before: datetime, folder: Path, as_json: bool) -> None:
    """Prune the log of every school; exits with status 1 if one failed, which holds up no other."""
    done, failed = [], []
    with tenancy.admin.connect() as connection:
        schools = list_schools(connection)
    for school in schools:
        path = folder / f"{school.id}-{now():%Y%m%dT%H%M%SZ}.ndjson"
        try:
            done.append(_pruned(tenancy, school.id, before, path))
        except (UnknownSchool, SchoolDeleting):
            continue
        except (TenancyError, OSError) as error:
            failed.append({"id": str(school.id), "name": school.name, "error": str(error)})
        except DBAPIError as error:
            if sqlstate(error) is None:
                raise
            failed.append({"id": str(school.id), "name": school.name, "error": first_line(error.orig)})
    if as_json:
        click.echo(json.dumps({"pruned": done, "failed": failed}, ensure_ascii=False))
    else:
        entries = sum(school["entries"] for school in done)
        click.echo(f"{entries} entries of {counted(len(done), 'school')} moved, {len(failed)} failed.")
    for failure in failed:
        click.echo(f"Failed: {failure['id']} {failure['name']}: {failure['error']}", err=True)
    if failed:
        click.get_current_context().exit(1)


def _pruned(tenancy: Tenancy, school_id: UUID, before: datetime, path: Path) -> dict[str, Any]:
    """Prune a school's log, and tell how many entries went, and into which file."""
    from school_service.features.audit import pruning
    from school_service.tenancy import import_models

    import_models()
    entries = pruning.prune_audit(tenancy, school_id, before=before, path=path)
    return {"id": str(school_id), "entries": entries, "file": str(path) if entries else None}


@click.command("export", short_help="Write all records of a school as lines of JSON.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@as_json
@with_schools
def export(tenancy: Tenancy, school_id: UUID, file: Path, as_json: bool) -> None:
    """Write all records of a school into FILE, as GET /export answers them: a JSON object on each line.

    They are of one moment, and pictures are not among them. FILE can be read by its owner alone, and replaces one of
    that name; the school's audit log says that it was made.
    """
    from school_service.features.exchange.copies.operator_export import export_records
    from school_service.tenancy import import_models

    import_models()
    try:
        show(export_records(tenancy, school_id, file), as_json)
    except OSError as error:
        raise click.ClickException(f"{file} can't be written: {error.strerror}") from None


@click.command("export-oneroster", short_help="Write a school's records as a OneRoster zip.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--session", help="The academic session's id or name.  [default: the current one]")
@click.option(
    "--version",
    type=click.Choice(["1.1", "1.2"]),
    default="1.2",
    show_default=True,
    help="The version of OneRoster that the receiver reads.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(COLUMNS)),
    metavar="NAME",
    help="This file alone, such as users; several times for several.  [default: all]",
)
@as_json
@with_schools
def export_oneroster(
    tenancy: Tenancy,
    school_id: UUID,
    file: Path,
    session: str | None,
    version: str,
    only: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write an academic session of a school into FILE, as a zip of OneRoster CSV files (bulk).

    Everything is in it that the school has of the session: people, classes, scores and published results. FILE can be
    read by its owner alone, and replaces one of that name; the school's audit log says that it was made.
    """
    from school_service.features.exchange.oneroster.operator_export import export_to_file
    from school_service.tenancy import import_models

    import_models()
    try:
        show(export_to_file(tenancy, school_id, file, session, version, only), as_json)
    except OSError as error:
        raise click.ClickException(f"{file} can't be written: {error.strerror}") from None
