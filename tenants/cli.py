"""The operator's verbs: `tenants …` and `clients …`.

The command line that mounts these groups puts a function into the context's `meta` under LOADER; it returns
the Tenancy to work on.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import unicodedata
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any
from uuid import UUID

import click
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from tenants import registry
from tenants.clients import create_client, list_clients, revoke_client
from tenants.errors import NotInstalled, TenancyError
from tenants.installing import install
from tenants.migrating import head, history, write_baseline
from tenants.provisioning import create_school
from tenants.tenancy import Administrator, Tenancy

LOADER = "tenants.loader"
LONGEST_PASSWORD = 1000  # characters; the API's own limit
_PERMISSION = re.compile(r"[a-z][a-z0-9-]*:[a-z][a-z0-9-]*")

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def with_tenancy(verb: Callable[..., None]) -> Callable[..., None]:
    """Hand a verb the Tenancy, and turn what goes wrong into one line and exit status 1."""

    @wraps(verb)
    def run(*arguments: Any, **options: Any) -> None:
        tenancy = click.get_current_context().meta[LOADER]()
        try:
            verb(tenancy, *arguments, **options)
        except ProgrammingError as error:
            if getattr(error.orig, "pgcode", None) in {"42P01", "3F000"}:
                raise click.ClickException(
                    str(NotInstalled("The database has no registry. Run: school-service tenants init"))
                ) from None
            raise click.ClickException(_one_line(error)) from None
        except OperationalError as error:
            raise click.ClickException(f"The database can't be reached: {_one_line(error)}") from None
        except DBAPIError as error:
            raise click.ClickException(_one_line(error)) from None
        except TenancyError as error:
            raise click.ClickException(str(error)) from None
        finally:
            tenancy.admin.dispose()

    return run


def _one_line(error: DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0]


class Name(click.ParamType):  # type: ignore[type-arg]
    """A name of 1 to 120 characters, trimmed."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Trim the name, or refuse it."""
        text = str(value).strip()
        if not text or len(text) > 120 or not text.isprintable():
            self.fail("a name has 1 to 120 printable characters", param, ctx)
        return text


class Access(click.ParamType):  # type: ignore[type-arg]
    """A permission written ACCESS:SECTION, such as read:students."""

    name = "access:section"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a permission of the right form."""
        if not _PERMISSION.fullmatch(str(value)):
            self.fail(f"{value!r} is not of the form ACCESS:SECTION, such as read:students", param, ctx)
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
@with_tenancy
def init(tenancy: Tenancy) -> None:
    """Create or upgrade the registry, and the login role that serves."""
    install(tenancy)
    click.echo(f"Registry ready; requests are served by the login {tenancy.serving_login}.")
    if tenancy.one_login:
        click.echo(
            "Note: the same login provisions and serves. Give DATABASE_URL a login of its own "
            "(and this one as ADMIN_DATABASE_URL) so that serving has no rights beyond the schools' roles.",
            err=True,
        )


@tenants_group.command("create", short_help="Create a school, ready to use.")
@click.argument("name", type=Name())
@click.option("--id", "school_id", type=click.UUID, help="The school's id; default: a new one.")
@click.option(
    "--admin", "username", type=Name(), default="admin", show_default=True, help="First user's name."
)
@click.option("--password-stdin", is_flag=True, help="Read the first user's password from standard input.")
@as_json
@with_tenancy
def create(
    tenancy: Tenancy, name: str, school_id: UUID | None, username: str, password_stdin: bool, as_json: bool
) -> None:
    """Create a school, ready to use; prints its id, and the administrator's password where it made one."""
    password = _read_password() if password_stdin else secrets.token_urlsafe(12)
    school = create_school(
        tenancy, name=name, administrator=Administrator(username, password), school_id=school_id
    )
    record = {"id": str(school.id), "name": school.name, "admin": username}
    show(record if password_stdin else {**record, "password": password}, as_json)


def _read_password() -> str:
    """Read a password from standard input, as it is but for the end of its line; raises UsageError."""
    try:
        password = sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError:
        raise click.UsageError("The password on standard input is no text in UTF-8.") from None
    if not 1 <= len(password) <= LONGEST_PASSWORD or "\0" in password:
        raise click.UsageError(
            f"The password on standard input must have 1 to {LONGEST_PASSWORD} characters, none of them NUL."
        )
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


@tenants_group.command("status")
@as_json
@with_tenancy
def status(tenancy: Tenancy, as_json: bool) -> None:
    """Show the revision of each school, and who is behind."""
    with tenancy.admin.connect() as connection:
        schools = registry.list_schools(connection)
    records = [
        {
            "id": str(school.id),
            "name": school.name,
            "status": school.status,
            "revision": school.revision,
            "state": "current" if school.revision == head() else "behind",
        }
        for school in schools
    ]
    show_table(records, ("id", "name", "status", "revision", "state"), as_json)
    if not as_json:
        behind = sum(record["state"] == "behind" for record in records)
        click.echo(f"{len(records)} schools, newest revision {head()}, {behind} behind.")


def _change(tenancy: Tenancy, school_id: UUID, as_json: bool, **values: Any) -> None:
    with tenancy.admin.begin() as connection:
        show(registry.change_school(connection, school_id, **values).as_record(), as_json)


@tenants_group.command("suspend")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_tenancy
def suspend(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Close a school to its users; its records stay."""
    _change(tenancy, school_id, as_json, status="suspended")


@tenants_group.command("resume")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_tenancy
def resume(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Open a suspended school again."""
    _change(tenancy, school_id, as_json, status="active")


@tenants_group.command("rename")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.argument("name", type=Name())
@as_json
@with_tenancy
def rename(tenancy: Tenancy, school_id: UUID, name: str, as_json: bool) -> None:
    """Give a school another name."""
    _change(tenancy, school_id, as_json, name=name)


@tenants_group.command("baseline", hidden=True)
def write_baseline_file() -> None:
    """Write baseline.sql anew from the migrations (for developers, after adding a migration)."""
    path = history("tenant") / "baseline.sql"
    path.write_text(write_baseline(), encoding="utf-8")
    click.echo(f"Wrote {path}.")


@click.group("clients", cls=InOrder, help="Grant other servers access by machine tokens.")
def clients_group() -> None:
    """Hold the verbs of machine clients."""


@clients_group.command("create", short_help="Grant a client schools and permissions.")
@click.argument("client_id", metavar="ID", type=Name())
@click.option(
    "--school", "school_ids", metavar="ID", type=click.UUID, multiple=True, help="A school it may enter."
)
@click.option("--all-schools", is_flag=True, help="Let it enter every school, later ones too.")
@click.option("--permission", "permissions", type=Access(), multiple=True, help="Something it may do there.")
@click.option("--all-permissions", is_flag=True, help="Let it do everything.")
@as_json
@with_tenancy
def create_client_(
    tenancy: Tenancy,
    client_id: str,
    school_ids: tuple[UUID, ...],
    all_schools: bool,
    permissions: tuple[str, ...],
    all_permissions: bool,
    as_json: bool,
) -> None:
    """Grant a client schools and permissions; prints its secret this once."""
    if all_schools and school_ids:
        raise click.UsageError("--school and --all-schools exclude each other.")
    if all_permissions and permissions:
        raise click.UsageError("--permission and --all-permissions exclude each other.")
    with tenancy.admin.begin() as connection:
        secret = create_client(
            connection,
            client_id=client_id,
            school_ids=school_ids,
            all_schools=all_schools,
            permissions=permissions,
            all_permissions=all_permissions,
        )
    show({"client_id": client_id, "client_secret": secret}, as_json)


@clients_group.command("list")
@as_json
@with_tenancy
def list_clients_(tenancy: Tenancy, as_json: bool) -> None:
    """List the clients and their grants."""
    with tenancy.admin.connect() as connection:
        records = [client.as_record() for client in list_clients(connection)]
    show_table(records, ("id", "schools", "permissions", "revoked"), as_json)


@clients_group.command("revoke")
@click.argument("client_id", metavar="ID", type=Name())
@as_json
@with_tenancy
def revoke(tenancy: Tenancy, client_id: str, as_json: bool) -> None:
    """Take a client's grant away; its tokens stop working at once."""
    with tenancy.admin.begin() as connection:
        revoke_client(connection, client_id)
    show({"id": client_id, "revoked": True}, as_json)
