"""The operator's verbs: `tenants …` and `clients …`.

The command line that mounts these groups puts a function into the context's `meta` under LOADER; it returns
the Tenancy to work on. One under CONCERNED tells what of the schools a rule of this release concerns, in records with a
`text`; there are none where no database is named.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from tenants.backups.backup import back_up
from tenants.backups.backup_all import BackupReport, back_up_all
from tenants.backups.encryption import parse_recipient, read_identities
from tenants.backups.restore import restore
from tenants.driver_errors import first_line, sqlstate
from tenants.exceptions import NotInstalled, TenancyError, UnfitPlacement
from tenants.migrations.migrate import MAX_WORKERS, list_migration_states, migrate_schools, stopped_by_signals
from tenants.migrations.migration_rules import check_migrations
from tenants.migrations.migration_sql import TENANT, head, revisions, update_baseline
from tenants.names import LONGEST, TYPED_BYTES, composed, is_visible
from tenants.operator_log import record_operation
from tenants.placement import ONE_SERVER
from tenants.progress import no_progress
from tenants.provisioning.create import create_school
from tenants.provisioning.delete import delete_school
from tenants.registry import schools as registry
from tenants.registry.clients import (
    PeoplesOptions,
    change_client,
    create_client,
    find_client,
    is_lowered,
    list_clients,
    revoke_client,
    rotate_secret,
    uris_with_reserved_names,
)
from tenants.registry.details import check_detail
from tenants.registry.installation import check_installed, check_roles, install, revoke_unused_memberships
from tenants.registry.redirect_uris import MAX_REDIRECT_URIS, check_redirect_uri, origin_of
from tenants.registry.schools import STRICT_PASSWORDS
from tenants.tenancy import MAX_PASSWORD_LENGTH, Administrator, Tenancy
from tenants.verification import verify
from tenants.wording import counted

# What drafts a migration is imported by that verb: Alembic takes longer than other verbs work.
if TYPE_CHECKING:
    from tenants.migrations.new_revision import NewRevision

LOADER = "tenants.loader"
CONCERNED = "tenants.concerned"
_PERMISSION = re.compile(r"[a-z][a-z0-9-]*+:[a-z][a-z0-9-]*+")

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def history_option(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make the option that names another folder of migrations than the program's own."""
    return click.option(
        "--history",
        "folder",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=TENANT,
        help=f"{text}  [default: the program's own]",
    )


def with_tenancy(verb: Callable[..., None]) -> Callable[..., None]:
    """Hand a verb the Tenancy, and turn what goes wrong into one line and exit status 1."""

    @wraps(verb)
    def run(*arguments: Any, **options: Any) -> None:
        tenancy = click.get_current_context().meta[LOADER]()
        try:
            verb(tenancy, *arguments, **options)
        except ProgrammingError as error:
            if sqlstate(error) in {"42P01", "3F000", "42703"}:
                raise click.ClickException(_lacking(tenancy)) from None
            raise click.ClickException(first_line(error.orig)) from None
        except OperationalError as error:
            raise click.ClickException(f"The database can't be reached: {first_line(error.orig)}") from None
        except DBAPIError as error:
            raise click.ClickException(first_line(error.orig)) from None
        except TenancyError as error:
            raise click.ClickException(str(error)) from None
        finally:
            tenancy.admin.dispose()

    return run


def with_schools(verb: Callable[..., None]) -> Callable[..., None]:
    """Hand a verb that works in schools the Tenancy, as `with_tenancy` does, once each school has its role."""

    @wraps(verb)
    def run(tenancy: Tenancy, *arguments: Any, **options: Any) -> None:
        with tenancy.admin.connect() as connection:
            check_roles(connection)
        verb(tenancy, *arguments, **options)

    return with_tenancy(run)


def _lacking(tenancy: Tenancy) -> str:
    """Say why something of the registry was not found."""
    try:
        with tenancy.admin.connect() as connection:
            check_installed(connection)
    except NotInstalled as error:
        return str(error)
    return str(NotInstalled())


class Name(click.ParamType):  # type: ignore[type-arg]
    """A name of 1 to 120 characters, trimmed, its letters composed with their marks (NFC)."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Trim the name, or refuse it."""
        text = composed(str(value))
        if not text or len(text) > LONGEST or not is_visible(text):
            self.fail(f"a name has 1 to {LONGEST} characters that can be seen", param, ctx)
        return text


class Message(click.ParamType):  # type: ignore[type-arg]
    """What a migration changes, in words that its file can be named by."""

    name = "message"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a message with a letter or digit in it."""
        from tenants.migrations.new_revision import slug_of

        try:
            slug_of(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class Access(click.ParamType):  # type: ignore[type-arg]
    """A permission written ACCESS:SECTION, such as read:students."""

    name = "access:section"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a permission of the right form."""
        if not _PERMISSION.fullmatch(str(value)):
            self.fail(
                f"{str(value)[:100]!r} is not of the form ACCESS:SECTION, such as read:students", param, ctx
            )
        return str(value)


class Detail(click.ParamType):  # type: ignore[type-arg]
    """A detail of a school, as `tenants.registry.details` takes it; empty: none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Trim the detail, or refuse it; empty stays empty."""
        try:
            return check_detail(self.name, str(value)) or ""
        except ValueError as error:
            self.fail(f"{str(value)[:100]!r}: it {error}", param, ctx)


class ShortName(click.ParamType):  # type: ignore[type-arg]
    """The short name of a school, which people type: small letters, digits and hyphens."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a short name; empty stays empty."""
        if value and not registry.SHORT_NAME.fullmatch(str(value)):
            self.fail(
                f"{str(value)[:100]!r}: a short name has 3 to 40 small letters, digits and hyphens, and no hyphen at "
                "an end",
                param,
                ctx,
            )
        return str(value)


short_name_option = click.option(
    "--short-name", type=ShortName(), help="What people type for the school where they sign in."
)


class RedirectUri(click.ParamType):  # type: ignore[type-arg]
    """An address to which people are led back."""

    name = "uri"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept an address that a client may register; empty stays empty."""
        try:
            return check_redirect_uri(str(value)) if value else ""
        except ValueError as error:
            self.fail(f"{str(value)[:200]!r}: it {error}", param, ctx)


_DETAILS = {
    "address": ("--address", "Postal address."),
    "phone_number": ("--phone", "Telephone number, or several."),
    "email_address": ("--email", "E-mail address."),
    "motto": ("--motto", "Motto."),
    "website": ("--website", "Address of the school's own pages."),
    "logo_url": ("--logo-url", "Address of the picture of its logo."),
}


def details_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Let a verb take a school's details; it is handed those that were given, as `details` (None: taken away)."""

    @wraps(verb)
    def with_details(*arguments: Any, **options: Any) -> None:
        given = {name: options.pop(name) for name in _DETAILS}
        details = {name: value or None for name, value in given.items() if value is not None}
        verb(*arguments, details=details, **options)

    for name, (flag, words) in reversed(_DETAILS.items()):
        with_details = click.option(flag, name, type=Detail(name), help=words)(with_details)
    return with_details


class Recipient(click.ParamType):  # type: ignore[type-arg]
    """A public key of age, such as age1…"""

    name = "recipient"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a public key; the message does not repeat what could be a private one."""
        try:
            parse_recipient(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


def show(record: dict[str, Any], as_json: bool) -> None:
    """Print a record: a line for each member, or JSON."""
    if as_json:
        click.echo(json.dumps(record, ensure_ascii=False))
        return
    width = max(map(len, record))
    for key, value in record.items():
        click.echo(f"{key.ljust(width)}  {'' if value is None else _cell(value)}")


def show_table(records: Sequence[dict[str, Any]], columns: Sequence[str], as_json: bool) -> None:
    """Print records as a table with a header, or as a JSON array."""
    if as_json:
        click.echo(json.dumps(list(records), ensure_ascii=False))
        return
    rows = [list(columns), *[[_cell(record[column]) for column in columns] for record in records]]
    widths = [max(_width(row[index]) for row in rows) for index in range(len(columns))]
    for row in rows:
        cells = (cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def _width(text: str) -> int:
    """Count the columns of a text in a terminal: a mark stands above or below the letter before it."""
    return sum(not unicodedata.combining(letter) for letter in text)


class InOrder(click.Group):
    """A group whose help lists the verbs in the order in which they are needed."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """List the verbs as they were added."""
        return list(self.commands)


@click.group("tenants", cls=InOrder, help="Provision and look after schools.")
def tenants_group() -> None:
    """Hold the verbs of schools."""


@tenants_group.command("init")
@click.option(
    "--withdraw",
    "withdrawing",
    is_flag=True,
    help="Take away the memberships that this number of SERVING_LOGINS has no use for, once every server runs with it.",
)
@with_tenancy
def init(tenancy: Tenancy, withdrawing: bool) -> None:
    """Create or upgrade the registry, and the logins that serve."""
    created = install(tenancy, password_policy=STRICT_PASSWORDS)
    placement = tenancy.placement
    if placement.divided:
        first, *_, last = placement.school_logins
        click.echo(f"Registry ready, served by the login {placement.login}; schools by {first} to {last}.")
    else:
        click.echo(f"Registry ready; requests are served by the login {placement.login}.")
    if created:
        click.echo(
            "New passwords have 10 characters or more, and are none of the most common (PASSWORD_POLICY=any takes any)."
        )
    if withdrawing:
        click.echo(f"Memberships taken away: {revoke_unused_memberships(tenancy)}.")
    if tenancy.one_login:
        click.echo(
            "Note: the same login provisions and serves. Give DATABASE_URL a login of its own "
            "(and this one as ADMIN_DATABASE_URL) so that serving has no rights beyond the schools' roles, "
            "and the audit log can't be changed.",
            err=True,
        )


@tenants_group.command("create", short_help="Create a school, ready to use.")
@click.argument("name", type=Name())
@click.option("--id", "school_id", type=click.UUID, help="The school's id; default: a new one.")
@click.option(
    "--admin", "username", type=Name(), default="admin", show_default=True, help="First user's name."
)
@click.option("--password-stdin", is_flag=True, help="Read the first user's password from standard input.")
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
    short_name: str | None,
    details: dict[str, str | None],
    as_json: bool,
) -> None:
    """Create a school, ready to use; prints its id, and the administrator's password where it made one."""
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
    show(record if password_stdin else {**record, "password": password}, as_json)


def read_password(tenancy: Tenancy, username: str) -> str:
    """Read a user's new password from standard input, as it is but for the end of its line; raises UsageError."""
    most = TYPED_BYTES * MAX_PASSWORD_LENGTH
    content = sys.stdin.buffer.read(most + 1)
    try:
        password = content.decode("utf-8").removesuffix("\n") if len(content) <= most else ""
    except UnicodeDecodeError:
        raise click.UsageError("The password on standard input is no text in UTF-8.") from None
    if not 1 <= len(password) <= MAX_PASSWORD_LENGTH or "\0" in password:
        raise click.UsageError(
            f"The password on standard input must have 1 to {MAX_PASSWORD_LENGTH} characters, none of them NUL."
        )
    faults = tenancy.password_faults(password, username=username)
    if faults:
        raise click.UsageError(f"The password on standard input {', and '.join(faults)}.")
    return password


@tenants_group.command("list")
@as_json
@with_tenancy
def list_(tenancy: Tenancy, as_json: bool) -> None:
    """List the schools."""
    with tenancy.admin.connect() as connection:
        records = [school.as_record() for school in registry.list_schools(connection)]
    show_table(records, ("id", "name", "status", "revision"), as_json)


@tenants_group.command("show")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_tenancy
def show_(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Show one school."""
    with tenancy.admin.connect() as connection:
        show(registry.find_school(connection, school_id).as_record(), as_json)


@tenants_group.command("status", short_help="Show the revision of each school, and who is behind.")
@click.option("--nodes", is_flag=True, help="Show the nodes of Citus instead, and how many schools each has.")
@as_json
@with_tenancy
def status(tenancy: Tenancy, nodes: bool, as_json: bool) -> None:
    """Show the revision of each school, who is behind, whose migration failed, and why, and whose owner is old.

    Where Citus places the schools, also the node of each.
    """
    if nodes:
        with tenancy.admin.connect() as connection:
            records = [server.as_record() for server in tenancy.placement.list_servers(connection)]
        show_table(records, ("node", "coordinator", "active", "takes_schools", "schools"), as_json)
        return
    with tenancy.admin.connect() as connection:
        states = list_migration_states(connection, tenancy)
        records = [school.as_record() for school in states]
        columns = ["id", "name", "status", "revision", "state", "error"]
        servers = tenancy.placement.servers_of_schools(connection)
        if servers is not None:
            columns.insert(2, "node")
            for school, record in zip(states, records, strict=True):
                record["node"] = servers.get(registry.schema_name(school.id))
    show_table(records, columns, as_json)
    if not as_json:
        behind = sum(school.is_behind for school in states)
        failed = sum(school.state == "failed" for school in states)
        newest = head(tenancy.history)
        click.echo(
            f"{counted(len(states), 'school')}, newest revision {newest}, {behind} behind ({failed} failed)."
        )
        old = sum(school.old_owner for school in states)
        if old:
            click.echo(
                f"Note: requests can become the owner of the tables of {counted(old, 'school')}, so that what the "
                "audit log says there can be changed. Run: school-service tenants migrate"
            )
        advice = tenancy.placement.advice(len(states))
        if advice:
            click.echo(f"Note: {advice}.")


@tenants_group.command("migrate", short_help="Bring the schools to the newest revision.")
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    default=2,
    show_default=True,
    help="Schools to migrate at once, each on a connection of its own.",
)
@click.option("--school", "school_id", metavar="ID", type=click.UUID, help="Migrate this school alone.")
@click.option(
    "--retry-failed", is_flag=True, help="Migrate only schools whose last migration failed, no other."
)
@as_json
@with_schools
def migrate(
    tenancy: Tenancy, workers: int, school_id: UUID | None, retry_failed: bool, as_json: bool
) -> None:
    """Bring every school that is behind to the newest revision, those whose last migration failed too.

    A school that fails stays as it is and does not hold up the others; `tenants status` says why. A second
    run goes on where the first ended, however it ended. SIGINT and SIGTERM let what is under way end.
    """
    with stopped_by_signals() as stop:
        report = migrate_schools(
            tenancy,
            workers=workers,
            school_id=school_id,
            retry_failed=retry_failed,
            stop=stop,
            progress=partial(progress_bar, hidden=as_json),
        )
    if as_json:
        click.echo(json.dumps(report.as_record(), ensure_ascii=False))
    else:
        click.echo(
            f"{counted(len(report.migrated), 'school')} migrated to {report.revision} in {report.seconds:.1f} s, "
            f"{len(report.failed)} failed, {report.skipped} left as they were."
        )
    for school in report.newer:
        click.echo(
            f"Newer than this program: {school.id} {school.name}, at {school.revision}; left alone.", err=True
        )
    for school, error in report.failed:
        click.echo(f"Failed: {school.id} {school.name}: {error}", err=True)
    if report.stopped:
        click.echo(
            f"Stopped; {counted(report.remaining, 'school')} {'was' if report.remaining == 1 else 'were'} not begun.",
            err=True,
        )
    if not report.complete:
        click.get_current_context().exit(1)


@contextmanager
def progress_bar(length: int, *, hidden: bool = False) -> Iterator[Callable[[int], None]]:
    """Show the progress of long work on standard error, where that is a terminal (`tenants.progress`)."""
    if hidden or not sys.stderr.isatty():
        with no_progress(length) as advance:
            yield advance
        return
    with click.progressbar(length=length, file=sys.stderr) as bar:
        yield bar.update


def _change(tenancy: Tenancy, school_id: UUID, as_json: bool, **values: Any) -> None:
    with tenancy.admin.begin() as connection:
        before = registry.lock_school(connection, school_id)
        school = registry.change_school(connection, school_id, **values)
        old = {name: getattr(before, name) for name in values}
        record_operation(connection, tenancy, school_id, "school", old=old, new=values)
    show(school.as_record(), as_json)


@tenants_group.command("suspend")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_schools
def suspend(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Close a school to its users; its records stay."""
    _change(tenancy, school_id, as_json, status="suspended")


@tenants_group.command("resume")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_schools
def resume(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Open a suspended school again, or one whose deletion ended before anything was dropped."""
    _change(tenancy, school_id, as_json, status="active", deletion=None)


@tenants_group.command("rename")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.argument("name", type=Name())
@as_json
@with_schools
def rename(tenancy: Tenancy, school_id: UUID, name: str, as_json: bool) -> None:
    """Give a school another name."""
    _change(tenancy, school_id, as_json, name=name)


@tenants_group.command("move", short_help="Move a school to another node of Citus.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.argument("node", metavar="NODE")
@as_json
@with_schools
def move(tenancy: Tenancy, school_id: UUID, node: str, as_json: bool) -> None:
    """Move a school to another node of Citus, HOST:PORT as `tenants status --nodes` gives it.

    Its users go on working. At the end they wait until those who are at work in the school have finished; where that
    takes too long, the school stays where it is.
    """
    if not tenancy.placement.several_servers:
        raise UnfitPlacement(ONE_SERVER)
    # Imported here: most installations do without.
    from tenants.distribution.moving import move_school

    moved = move_school(tenancy, school_id, node, progress=partial(progress_bar, hidden=as_json))
    show(moved.as_record(), as_json)


@tenants_group.command(
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
    """Change what a school says of itself; what is not named stays, and an empty text takes a detail away."""
    if short_name is not None:
        details = {**details, "short_name": short_name or None}
    if not details:
        flags = ", ".join([*(flag for flag, _ in _DETAILS.values()), "--short-name"])
        raise click.UsageError(f"Name what changes: {flags}.")
    _change(tenancy, school_id, as_json, **details)


@tenants_group.command("check", short_help="Judge the migrations by the rules of schools' schemas.")
@history_option("Judge the migrations of this folder.")
@as_json
def check_(folder: Path, as_json: bool) -> None:
    """Judge the migrations: what a school's schema can't take; needs no database.

    Where one is named, lists roles and clients, too, that write users or students and do not read results: by them
    nobody gives a student or guardian a password. That is no fault.
    """
    findings = check_migrations(folder)
    concerned = click.get_current_context().meta.get(CONCERNED, list)()
    if as_json:
        click.echo(json.dumps([*(each.as_record() for each in findings), *concerned], ensure_ascii=False))
    for finding in [] if as_json else findings:
        click.echo(f"{finding.revision}  {finding.rule}: {finding.why}\n    {finding.statement}")
    for one in [] if as_json else concerned:
        click.echo(one["text"])
    if findings:
        click.get_current_context().exit(1)
    if not as_json:
        click.echo(f"{counted(len(revisions(folder)), 'revision')} and the baseline keep the rules.")


@tenants_group.command("delete", short_help="Delete a school, after a backup.")
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


@tenants_group.command("backup", short_help="Write a school, or every school, into a file each.")
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
    type=Recipient(),
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
    """Print what a run over all schools did; exits with status 1 where one failed."""
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


@tenants_group.command("verify", short_help="See that every school is whole, as after a recovery.")
@click.option(
    "--backups",
    "folder",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Compare each school's rows with the newest file of `tenants backup --all DIR`.",
)
@click.option(
    "--identity",
    "key_file",
    metavar="KEYFILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of the private key, as age-keygen writes it, of backups that are encrypted.",
)
@as_json
@with_tenancy
def verify_(tenancy: Tenancy, folder: Path | None, key_file: Path | None, as_json: bool) -> None:
    """See that every school has its role, owner, grants, and the schema of its revision, and count its rows.

    It changes nothing. Exits with status 1 where something is wrong; what may be as it should be is a note.
    """
    found = verify(
        tenancy,
        folder=folder,
        identities=read_identities(key_file) if key_file else (),
        progress=partial(progress_bar, hidden=as_json),
    )
    if as_json:
        click.echo(json.dumps(found.as_record(), ensure_ascii=False))
    else:
        records = [one.as_record() for one in found.schools]
        show_table(records, ("id", "name", "revision", "rows", "state"), as_json)
        for one in found.schools:
            for note in one.notes:
                click.echo(f"Note: {one.school.id} {one.school.name}: {note}.")
        for note in found.notes:
            click.echo(f"Note: {note}.")
        wrong = sum(bool(one.faults) for one in found.schools)
        click.echo(f"{counted(len(found.schools), 'school')} verified, {wrong} of them wrong.")
    for one in found.schools:
        for fault in one.faults:
            click.echo(f"Wrong: {one.school.id} {one.school.name}: {fault}.", err=True)
    for fault in found.faults:
        click.echo(f"Wrong: {fault}.", err=True)
    if not found.is_good:
        click.get_current_context().exit(1)


@tenants_group.command("restore", short_help="Restore a school from its backup.")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--id", "school_id", type=click.UUID, help="The school's new id; default: its own.")
@click.option("--name", type=Name(), help="The school's new name; default: its own.")
@click.option(
    "--identity",
    "key_file",
    metavar="KEYFILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of the private key, as age-keygen writes it, where the backup is encrypted.",
)
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


@tenants_group.command("revision", short_help="Draft the next migration (for developers).")
@click.argument("message", type=Message())
@click.option("--empty", is_flag=True, help="Write a migration to be filled by hand, where nothing differs.")
@history_option("Add to the migrations of this folder.")
@with_tenancy
def revision(tenancy: Tenancy, message: str, empty: bool, folder: Path) -> None:
    """Draft the next migration from what the models say beyond the baseline; writes baseline.sql anew.

    MESSAGE says what changes, such as "Seats of classrooms". The comparison needs a PostgreSQL, and leaves nothing in
    it: DATABASE_URL's, or one that is made for the moment. Read the draft before you keep it.
    """
    from tenants.migrations.new_revision import NOT_COMPARED, generate_revision

    if tenancy.models is None:
        raise click.ClickException("This program hands over no models to compare with the baseline.")
    with tenancy.admin.connect() as connection:
        made = generate_revision(connection, tenancy.models(), message, folder=folder, empty=empty)
    if made is None:
        click.echo(
            "The models say what baseline.sql does: nothing to migrate. --empty writes a migration even so."
        )
    else:
        click.echo(f"Wrote {made.path}.")
        click.echo(f"Wrote {made.baseline}.")
    click.echo(f"Not compared: {'; '.join(NOT_COMPARED)}. These are yours to write.")
    click.echo("tests/tenants/migrations/test_drift.py compares the whole catalogue: run it.")
    if made is not None:
        _advise(made, folder)


def _advise(made: NewRevision, folder: Path) -> None:
    """Say what of a drafted migration has to be edited; exits with status 1 where it breaks a rule."""
    if made.empty:
        click.echo("The migration is empty. Fill its upgrade(), then run: school-service tenants baseline")
    if made.drops:
        click.echo(
            "Note: it drops tables or columns, and their rows. One that was renamed is to be renamed here: "
            "op.rename_table, or op.alter_column with new_column_name.",
            err=True,
        )
    if made.requires:
        click.echo(
            'Note: it makes a column NOT NULL. Give the rows that are there a value first: op.execute("UPDATE …").',
            err=True,
        )
    if not made.formatted:
        click.echo(
            f"Note: ruff is not installed, so the file is not formatted: ruff format {made.path}", err=True
        )
    findings = [
        finding for finding in check_migrations(folder) if finding.revision in {made.revision, "baseline"}
    ]
    for finding in findings:
        click.echo(f"To edit: {finding.rule}: {finding.why}\n    {finding.statement}", err=True)
        if finding.rule == "not-null":
            click.echo(
                "    Give the column a server_default; where the model has none, take it away again in a second "
                "statement: op.alter_column(…, server_default=None).",
                err=True,
            )
    if findings:
        click.echo("Then run: school-service tenants baseline, and: school-service tenants check", err=True)
        click.get_current_context().exit(1)


@tenants_group.command("baseline", short_help="Write baseline.sql anew (for developers).")
@history_option("Write the baseline of this folder's migrations.")
def write_baseline_file(folder: Path) -> None:
    """Write baseline.sql anew from the migrations, after one was added or edited; needs no database."""
    click.echo(f"Wrote {update_baseline(folder)}.")


@click.group("clients", cls=InOrder, help="Grant other servers access by machine tokens.")
def clients_group() -> None:
    """Hold the verbs of machine clients."""


_HAS_RESERVED_NAMES = (
    "has a parameter of our answer in its own query, so that the client is sent two. It goes on; register another "
    "(clients edit --redirect-uri)."
)
_TELLS_ADDRESSES = "Believe what it says of its end users' addresses, in the header X-End-User-Address."


_DAYS = click.IntRange(1, 365)
_PEOPLE = {
    "name": (
        "--name",
        {"type": click.STRING, "help": "What people are shown where they sign in; default: its id."},
    ),
    "redirect_uris": (
        "--redirect-uri",
        {
            "type": RedirectUri(),
            "multiple": True,
            "help": "An address of its own, to which people are led back.",
        },
    ),
    "post_logout_uris": (
        "--post-logout-uri",
        {"type": RedirectUri(), "multiple": True, "help": "The same for whoever has signed out."},
    ),
    "user_permissions": (
        "--user-permission",
        {
            "type": click.STRING,
            "multiple": True,
            "metavar": "ACCESS:SECTION",
            "help": "What a person may do by it at most; default: what their roles allow.",
        },
    ),
    "sign_in_only": (
        "--sign-in-only",
        {"is_flag": True, "default": None, "help": "Let it know who signs in, and do nothing for them."},
    ),
    "idle_days": (
        "--idle-days",
        {"type": _DAYS, "help": "Days without use after which a person signs in again.  [default: 14]"},
    ),
    "session_days": (
        "--session-days",
        {"type": _DAYS, "help": "Days after which they do so anyway.  [default: 90]"},
    ),
}


def people_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Let a verb take what a client has for people; it is handed those that were given, as `of_people`.

    An empty value takes away what is there.
    """

    @wraps(verb)
    def with_options(tenancy: Tenancy, *arguments: Any, **options: Any) -> None:
        given = {name: options.pop(name) for name in _PEOPLE}
        verb(tenancy, *arguments, of_people=_of_people(tenancy, given), **options)

    for flag, kind in reversed(_PEOPLE.values()):
        with_options = click.option(flag, _parameter(flag), **kind)(with_options)  # type: ignore[arg-type]
    return with_options


def _parameter(flag: str) -> str:
    return next(name for name, (option, _) in _PEOPLE.items() if option == flag)


def _of_people(tenancy: Tenancy, given: dict[str, Any]) -> dict[str, Any]:
    """Make members of PeoplesOptions of what was given; raises UsageError."""
    only = given.pop("sign_in_only")
    found = {name: value for name, value in given.items() if value not in (None, ())}
    for name in ("redirect_uris", "post_logout_uris", "user_permissions"):
        if name in found:
            found[name] = tuple(dict.fromkeys(value for value in found[name] if value))
            if len(found[name]) > MAX_REDIRECT_URIS and name != "user_permissions":
                raise click.UsageError(f"A client has at most {MAX_REDIRECT_URIS} of {_PEOPLE[name][0]}.")
    if "name" in found:
        found["name"] = Name().convert(found["name"], None, None) if found["name"].strip() else None
    if only and "user_permissions" in found:
        raise click.UsageError("--user-permission and --sign-in-only exclude each other.")
    if "user_permissions" in found:
        _require_permissions(tenancy, found["user_permissions"])
        found["user_permissions"] = tuple(sorted(found["user_permissions"])) or None
    if only:
        found["user_permissions"] = ()
    return found


def _require_permissions(tenancy: Tenancy, permissions: Sequence[str]) -> None:
    """Refuse a permission that there is none of; raises UsageError."""
    unknown = sorted(set(permissions).difference(tenancy.permissions))
    if unknown:
        raise click.UsageError(
            f"There is no permission {', '.join(unknown)}. Permissions: {', '.join(sorted(tenancy.permissions))}."
        )


def _warn_of_origins(tenancy: Tenancy, uris: Sequence[str]) -> None:
    """Say of pages on the web that their scripts can't read answers: CORS_ORIGINS does not have them."""
    lacking = {origin for uri in uris if (origin := origin_of(uri)) is not None}.difference(
        tenancy.cors_origins
    )
    for origin in sorted(lacking) if "*" not in tenancy.cors_origins else ():
        click.echo(
            f"Note: scripts of {origin} can't read answers, as CORS_ORIGINS does not name it. A server needs no such "
            "setting.",
            err=True,
        )


def _warn_of_reserved_names(uris: Sequence[str]) -> None:
    """Say of redirect URIs that were registered before such were refused: they have a parameter of our answer."""
    for uri in uris:
        click.echo(f"Note: {uri} {_HAS_RESERVED_NAMES}", err=True)


@clients_group.command("create", short_help="Grant a client schools and permissions.")
@click.argument("client_id", metavar="ID", type=Name())
@click.option(
    "--school", "school_ids", metavar="ID", type=click.UUID, multiple=True, help="A school it may enter."
)
@click.option("--all-schools", is_flag=True, help="Let it enter every school, later ones too.")
@click.option("--permission", "permissions", type=Access(), multiple=True, help="Something it may do there.")
@click.option("--all-permissions", is_flag=True, help="Let it do everything.")
@click.option("--tells-addresses", is_flag=True, help=_TELLS_ADDRESSES)
@click.option(
    "--public", "is_public", is_flag=True, help="It can keep no secret: an app, or a page of a browser."
)
@as_json
@with_tenancy
@people_options
def create_client_(
    tenancy: Tenancy,
    client_id: str,
    school_ids: tuple[UUID, ...],
    all_schools: bool,
    permissions: tuple[str, ...],
    all_permissions: bool,
    tells_addresses: bool,
    is_public: bool,
    of_people: dict[str, Any],
    as_json: bool,
) -> None:
    """Grant a client schools and permissions; prints its secret this once.

    People sign in by a client that has a --redirect-uri, into its schools; a --public one has no secret, and no token
    of its own. The id of a client that was revoked can be granted anew; no token of before is valid then.
    """
    if all_schools and school_ids:
        raise click.UsageError("--school and --all-schools exclude each other.")
    if all_permissions and permissions:
        raise click.UsageError("--permission and --all-permissions exclude each other.")
    if is_public and (permissions or all_permissions):
        raise click.UsageError(
            "A client that is --public has no token of its own, so no --permission either."
        )
    _require_permissions(tenancy, permissions)
    options = PeoplesOptions(is_public=is_public, **of_people)
    with tenancy.admin.begin() as connection:
        secret = create_client(
            connection,
            client_id=client_id,
            school_ids=school_ids,
            all_schools=all_schools,
            permissions=permissions,
            all_permissions=all_permissions,
            tells_addresses=tells_addresses,
            of_people=options,
        )
    _warn_of_origins(tenancy, options.redirect_uris)
    show({"client_id": client_id, **_secret(secret)}, as_json)


def _secret(secret: str) -> dict[str, str]:
    return {"client_secret": secret} if secret else {}


@clients_group.command("list")
@as_json
@with_tenancy
def list_clients_(tenancy: Tenancy, as_json: bool) -> None:
    """List the clients and their grants."""
    with tenancy.admin.connect() as connection:
        records = [client.as_record() for client in list_clients(connection)]
        reserved = uris_with_reserved_names(connection)
    columns = ("id", "schools", "permissions", "revoked", "tells_addresses", "is_public", "redirect_uris")
    show_table(records, columns, as_json)
    _warn_of_reserved_names(reserved)


@clients_group.command("edit", short_help="Change what a client is believed, and has for people.")
@click.argument("client_id", metavar="ID", type=Name())
@click.option("--tells-addresses/--tells-no-addresses", default=None, help=_TELLS_ADDRESSES)
@click.option(
    "--public/--confidential",
    "is_public",
    default=None,
    help="Take its secret away, or give it one, which is printed this once.",
)
@click.option(
    "--end-sessions",
    is_flag=True,
    help="End the sessions of all who have signed in by it, and its own tokens, at once.",
)
@as_json
@with_tenancy
@people_options
def edit_client(
    tenancy: Tenancy,
    client_id: str,
    tells_addresses: bool | None,
    is_public: bool | None,
    end_sessions: bool,
    of_people: dict[str, Any],
    as_json: bool,
) -> None:
    """Change what a client is believed, and what it has for the people who sign in by it.

    Each option replaces what was there, and an empty value takes it away; what is not named stays, and so do its tokens
    and sessions. Where people may do less by it, that holds from each session's next refresh; --end-sessions ends them
    at once.
    """
    if is_public is not None:
        of_people = {**of_people, "is_public": is_public}
    if tells_addresses is None and not of_people and not end_sessions:
        flags = ["--tells-addresses", "--public", "--end-sessions", *(flag for flag, _ in _PEOPLE.values())]
        raise click.UsageError(f"Name what changes: {', '.join(flags)}.")
    with tenancy.admin.begin() as connection:
        before = find_client(connection, client_id).of_people.user_permissions
        secret = change_client(
            connection,
            client_id,
            tells_addresses=tells_addresses,
            of_people=of_people,
            end_sessions=end_sessions,
        )
    _warn_of_origins(tenancy, of_people.get("redirect_uris", ()))
    _tell_of_sessions(
        lowered=is_lowered(before, of_people.get("user_permissions", before)), ended=end_sessions
    )
    changed: dict[str, Any] = {} if tells_addresses is None else {"tells_addresses": tells_addresses}
    if end_sessions:
        changed["sessions"] = "ended"
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in of_people.items()}
    show({"id": client_id, **changed, **told, **_secret(secret)}, as_json)


def _tell_of_sessions(*, lowered: bool, ended: bool) -> None:
    """Tell the fate of an edited client's sessions."""
    if ended:
        click.echo("Note: all its sessions are ended, and its own tokens.", err=True)
    elif lowered:
        click.echo(
            "Note: a session may do less from its next refresh on, an access token goes on until then, for an hour at "
            "most. --end-sessions ends the sessions at once.",
            err=True,
        )


@clients_group.command("rotate", short_help="Give a client another secret.")
@click.argument("client_id", metavar="ID", type=Name())
@click.option(
    "--end-tokens", is_flag=True, help="End its tokens, too: whoever knew the secret may have some."
)
@as_json
@with_tenancy
def rotate(tenancy: Tenancy, client_id: str, end_tokens: bool, as_json: bool) -> None:
    """Give a client another secret, printed this once; the one before gets no token from now on.

    Tokens that it has go on until they expire, so that the client has a day to learn its new secret.
    """
    with tenancy.admin.begin() as connection:
        secret = rotate_secret(connection, client_id, end_tokens=end_tokens)
    show({"client_id": client_id, **_secret(secret)}, as_json)


@clients_group.command("revoke")
@click.argument("client_id", metavar="ID", type=Name())
@as_json
@with_tenancy
def revoke(tenancy: Tenancy, client_id: str, as_json: bool) -> None:
    """Take a client's grant away; its tokens stop working at once."""
    with tenancy.admin.begin() as connection:
        revoke_client(connection, client_id)
    show({"id": client_id, "revoked": True}, as_json)
