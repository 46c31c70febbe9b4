"""Verbs on schools: making one, looking at them, changing and deleting one."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from tenants.commands.arguments import NAME, SHORT_NAME_OF_SCHOOL, detail, read_password
from tenants.commands.printing import as_json, show, show_table
from tenants.commands.running import FILLER, progress_bar, with_schools, with_tenancy
from tenants.exceptions import UnfitPlacement
from tenants.operator_log import record_operation
from tenants.placement import ONE_SERVER
from tenants.provisioning.create import create_school
from tenants.provisioning.delete import delete_school
from tenants.registry import schools as registry
from tenants.tenancy import Administrator, Tenancy

SAMPLE = "Sample"
"""The first word of the name of a sample school."""

short_name_option = click.option(
    "--short-name", type=SHORT_NAME_OF_SCHOOL, help="The name that people type where they sign in."
)

_DETAILS = {
    "address": ("--address", "Postal address."),
    "phone_number": ("--phone", "Telephone number, or several."),
    "email_address": ("--email", "E-mail address."),
    "motto": ("--motto", "Motto."),
    "website": ("--website", "Address of the school's own pages."),
    "logo_url": ("--logo-url", "Address of the picture of its logo."),
}


def details_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Let a verb take a school's details; the given ones are handed to it, as `details` (None: taken away)."""

    @wraps(verb)
    def with_details(*arguments: Any, **options: Any) -> None:
        given = {name: options.pop(name) for name in _DETAILS}
        details = {name: value or None for name, value in given.items() if value is not None}
        verb(*arguments, details=details, **options)

    for name, (flag, words) in reversed(_DETAILS.items()):
        with_details = click.option(flag, name, type=detail(name), help=words)(with_details)
    return with_details


@click.command("create", short_help="Create a school, ready to use.")
@click.argument("name", type=NAME)
@click.option("--id", "school_id", type=click.UUID, help="The school's id; default: a new one.")
@click.option("--admin", "username", type=NAME, default="admin", show_default=True, help="First user's name.")
@click.option("--password-stdin", is_flag=True, help="Read the first user's password from standard input.")
@click.option("--sample", is_flag=True, help="Fill it as a school of the demo; its name begins with Sample.")
@short_name_option
@details_options
@as_json
@with_schools
def create(
    tenancy: Tenancy,
    name: str,
    school_id: UUID | None,
    username: str,
    password_stdin: bool,
    sample: bool,
    short_name: str | None,
    details: dict[str, str | None],
    as_json: bool,
) -> None:
    """Create a school, ready to use; prints its id, and the administrator's password where it made one.

    With --sample it has a year of records to try the service by, and accounts of a teacher, a guardian and a student,
    and a client for it alone. Each password and secret is new, and is printed this once.
    """
    if sample:
        if password_stdin:
            raise click.UsageError("--sample makes every password itself: leave --password-stdin out.")
        name = name if f"{name} ".startswith(f"{SAMPLE} ") else NAME.convert(f"{SAMPLE} {name}", None, None)
    if short_name:
        details = {**details, "short_name": short_name}
    password = read_password(tenancy, username) if password_stdin else secrets.token_urlsafe(12)
    school = create_school(
        tenancy,
        name=name,
        administrator=Administrator(username, password),
        school_id=school_id,
        details=details,
    )
    shown = {detail: value for detail, value in details.items() if value}
    record = {"id": str(school.id), "name": school.name, **shown, "admin": username}
    entered = _fill(tenancy, school) if sample else {}
    show(record if password_stdin else {**record, "password": password, **entered}, as_json)


def _fill(tenancy: Tenancy, school: registry.School) -> dict[str, str]:
    """Fill a new school with records to try it by; if that fails, the school is deleted again."""
    try:
        entered: dict[str, str] = click.get_current_context().meta[FILLER](tenancy, school, progress_bar)
    except BaseException:
        delete_school(tenancy, school.id, backup_folder=None)
        raise
    return entered


@click.command("list")
@as_json
@with_tenancy
def list_(tenancy: Tenancy, as_json: bool) -> None:
    """List the schools."""
    with tenancy.admin.connect() as connection:
        records = [school.as_record() for school in registry.list_schools(connection)]
    show_table(records, ("id", "name", "status", "revision"), as_json)


@click.command("show")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_tenancy
def show_(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Show one school."""
    with tenancy.admin.connect() as connection:
        show(registry.find_school(connection, school_id).as_record(), as_json)


def _change(tenancy: Tenancy, school_id: UUID, as_json: bool, **values: Any) -> None:
    with tenancy.admin.begin() as connection:
        before = registry.lock_school(connection, school_id)
        school = registry.change_school(connection, school_id, **values)
        old = {name: getattr(before, name) for name in values}
        record_operation(connection, tenancy, school_id, "school", old=old, new=values)
    show(school.as_record(), as_json)


@click.command("suspend")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_schools
def suspend(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Close a school to its users; its records stay."""
    _change(tenancy, school_id, as_json, status="suspended")


@click.command("resume")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_schools
def resume(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Open a suspended school again, or one whose deletion ended before anything was dropped."""
    _change(tenancy, school_id, as_json, status="active", deletion=None)


@click.command("rename")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.argument("name", type=NAME)
@as_json
@with_schools
def rename(tenancy: Tenancy, school_id: UUID, name: str, as_json: bool) -> None:
    """Give a school another name."""
    _change(tenancy, school_id, as_json, name=name)


@click.command("move", short_help="Move a school to another node of Citus.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.argument("node", metavar="NODE")
@as_json
@with_schools
def move(tenancy: Tenancy, school_id: UUID, node: str, as_json: bool) -> None:
    """Move a school to another node of Citus, HOST:PORT as `tenants status --nodes` gives it.

    Its users go on working. At the end they wait until requests at work in the school have finished; where that takes
    too long, the school stays where it is.
    """
    if not tenancy.placement.several_servers:
        raise UnfitPlacement(ONE_SERVER)
    # Imported here: most installations do without.
    from tenants.distribution.moving import move_school

    moved = move_school(tenancy, school_id, node, progress=partial(progress_bar, hidden=as_json))
    show(moved.as_record(), as_json)


@click.command(
    "edit", short_help="Change a school's address, telephone, e-mail, motto, website, logo, short name."
)
@click.argument("school_id", metavar="ID", type=click.UUID)
@short_name_option
@details_options
@as_json
@with_schools
def edit(
    tenancy: Tenancy, school_id: UUID, short_name: str | None, details: dict[str, str | None], as_json: bool
) -> None:
    """Change details of a school; others stay, and an empty text takes one away."""
    if short_name is not None:
        details = {**details, "short_name": short_name or None}
    if not details:
        flags = ", ".join([*(flag for flag, _ in _DETAILS.values()), "--short-name"])
        raise click.UsageError(f"Name what changes: {flags}.")
    _change(tenancy, school_id, as_json, **details)


@click.command("delete", short_help="Delete a school, after a backup.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.option("--yes", is_flag=True, help="Needed: that it is meant.")
@click.option("--no-backup", is_flag=True, help="Make no backup before.")
@click.option(
    "--backup-dir",
    "folder",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="Folder of the backup; default: the current one.",
)
@as_json
@with_schools
def delete(
    tenancy: Tenancy, school_id: UUID, yes: bool, no_backup: bool, folder: Path | None, as_json: bool
) -> None:
    """Delete a school for good, after a backup; prints the backup's file.

    A deletion that was broken off goes on when it is run again.
    """
    if not yes:
        raise click.UsageError("This deletes a school and all its records. Add --yes if that is meant.")
    if no_backup and folder:
        raise click.UsageError("--no-backup and --backup-dir exclude each other.")
    deleted = delete_school(
        tenancy,
        school_id,
        backup_folder=None if no_backup else folder or Path(),
        progress=partial(progress_bar, hidden=as_json),
    )
    if deleted.resumed:
        made = f"made the backup {deleted.backup}" if deleted.backup else "made no backup"
        click.echo(f"Note: an earlier run had begun the deletion, and {made}.", err=True)
    show(deleted.as_record(), as_json)
