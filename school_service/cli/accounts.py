"""The operator's verbs on the accounts of a school: `tenants end-sessions`, `tenants reset-admin`."""

from __future__ import annotations

import secrets
from uuid import UUID

import click

from tenants.commands.arguments import NAME, read_password
from tenants.commands.printing import as_json, show
from tenants.commands.running import with_schools
from tenants.tenancy import Administrator, Tenancy

# Modules with the tables of a school are imported by the verbs: --help and wrong use are answered without.


@click.command("end-sessions", short_help="Sign the users of a school out.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.option("--user", "username", type=NAME, help="The username of the one to sign out; default: all.")
@as_json
@with_schools
def end_sessions(tenancy: Tenancy, school_id: UUID, username: str | None, as_json: bool) -> None:
    """End the sessions of all users of a school, or of one: every token that they were issued is refused at once."""
    from school_service.seed import accounts
    from school_service.tenancy import import_models

    import_models()
    show({"id": str(school_id), "users": accounts.end_sessions(tenancy, school_id, username)}, as_json)


@click.command("reset-admin", short_help="Make or revive an administrator of a school.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.option("--user", "username", type=NAME, default="admin", show_default=True, help="Their username.")
@click.option("--password-stdin", is_flag=True, help="Read their password from standard input.")
@as_json
@with_schools
def reset_admin(
    tenancy: Tenancy, school_id: UUID, username: str, password_stdin: bool, as_json: bool
) -> None:
    """Give a school an administrator who has every permission; prints the password where it made one.

    The account is made where there is none and brought back where it was deleted. Its tokens, its links to outside
    sign-ins and its invitation end.
    """
    from school_service.seed.accounts import reset_administrator
    from school_service.tenancy import import_models

    import_models()
    password = read_password(tenancy, username) if password_stdin else secrets.token_urlsafe(12)
    reset_administrator(tenancy, school_id, Administrator(username, password))
    record = {"id": str(school_id), "admin": username}
    show(record if password_stdin else {**record, "password": password}, as_json)
