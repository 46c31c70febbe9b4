"""Verbs on backups: writing schools into files, and one school back."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from uuid import UUID

import click

from tenants.backups.backup import back_up
from tenants.backups.backup_all import BackupReport, back_up_all
from tenants.backups.encryption import read_identities
from tenants.backups.restore import restore
from tenants.commands.arguments import NAME, RECIPIENT, identity_option
from tenants.commands.printing import as_json, show
from tenants.commands.running import progress_bar, with_schools
from tenants.tenancy import Tenancy
from tenants.wording import counted


@click.command("backup", short_help="Write a school, or every school, into a file each.")
@click.argument("school_id", metavar="ID", type=click.UUID, required=False)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path), required=False)
@click.option("--force", is_flag=True, help="Replace the file where it exists.")
@click.option(
    "--all",
    "folder",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="In place of ID and FILE: write every school into a new file of its own, DIR/ID/MOMENT.zip.",
)
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --all: leave each school's newest N files and remove older ones.  [default: all of them]",
)
@click.option(
    "--encrypt-to",
    "recipients",
    type=RECIPIENT,
    multiple=True,
    help="Encrypt to this public key of age, age1…; may be given again.  [default: BACKUP_RECIPIENT]",
)
@as_json
@with_schools
def backup(
    tenancy: Tenancy,
    school_id: UUID | None,
    path: Path | None,
    force: bool,
    folder: Path | None,
    keep: int | None,
    recipients: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write a school into a file, all of it as of one moment, while its users go on working.

    With --all DIR, which stands in the place of ID and FILE, every school, each into a new file; one that fails does
    not hold up the others, and makes the exit status 1.
    """
    progress = partial(progress_bar, hidden=as_json)
    if folder is not None:
        if school_id is not None or force:
            raise click.UsageError("--all takes neither ID and FILE nor --force.")
        report = back_up_all(tenancy, folder, keep=keep, encrypt_to=recipients, progress=progress)
        _show_report(report, as_json)
        return
    if school_id is None or path is None:
        raise click.UsageError("Name a school's ID and a FILE, or all schools with --all DIR.")
    if keep is not None:
        raise click.UsageError("--keep goes with --all.")
    manifest = back_up(tenancy, school_id, path, replace=force, encrypt_to=recipients, progress=progress)
    show({"file": str(path), **manifest.as_record()}, as_json)


def _show_report(report: BackupReport, as_json: bool) -> None:
    """Print the report of a run over all schools; exits with status 1 if one failed."""
    if as_json:
        click.echo(json.dumps(report.as_record(), ensure_ascii=False))
    else:
        click.echo(
            f"{counted(len(report.made), 'school')} backed up, {len(report.failed)} failed, "
            f"{len(report.skipped)} deleted meanwhile, {counted(len(report.removed), 'older file')} removed."
        )
    for school, error in report.failed:
        click.echo(f"Failed: {school.id} {school.name}: {error}", err=True)
    if report.failed:
        click.get_current_context().exit(1)


@click.command("restore", short_help="Restore a school from its backup.")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--id", "school_id", type=click.UUID, help="The school's new id; default: its own.")
@click.option("--name", type=NAME, help="The school's new name; default: its own.")
@identity_option("where the backup is encrypted.")
@as_json
@with_schools
def restore_(
    tenancy: Tenancy,
    path: Path,
    school_id: UUID | None,
    name: str | None,
    key_file: Path | None,
    as_json: bool,
) -> None:
    """Restore a school from its backup: all of it or nothing; beside the original with an --id of its own."""
    school = restore(
        tenancy,
        path,
        school_id=school_id,
        name=name,
        identities=read_identities(key_file) if key_file else (),
        progress=partial(progress_bar, hidden=as_json),
    )
    show(school.as_record(), as_json)
