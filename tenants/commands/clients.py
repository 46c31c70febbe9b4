"""Verbs on clients: other servers, apps and pages, with their grants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import click

from tenants.commands.arguments import ACCESS, NAME
from tenants.commands.client_options import PEOPLE, people_options, require_permissions
from tenants.commands.printing import as_json, show, show_table
from tenants.commands.running import with_tenancy
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
from tenants.registry.redirect_uris import origin_of
from tenants.tenancy import Tenancy

_HAS_RESERVED_NAMES = (
    "has a parameter of our answer in its own query, so that the client is sent two. It goes on; register another "
    "(clients edit --redirect-uri)."
)

_TELLS_ADDRESSES = "Believe the addresses of its end users, in the header X-End-User-Address."


@click.command("create", short_help="Grant a client schools and permissions.")
@click.argument("client_id", metavar="ID", type=NAME)
@click.option(
    "--school", "school_ids", metavar="ID", type=click.UUID, multiple=True, help="A school it may enter."
)
@click.option("--all-schools", is_flag=True, help="Let it enter every school, later ones too.")
@click.option("--permission", "permissions", type=ACCESS, multiple=True, help="Something it may do there.")
@click.option("--all-permissions", is_flag=True, help="Let it do everything.")
@click.option("--tells-addresses", is_flag=True, help=_TELLS_ADDRESSES)
@click.option(
    "--public", "is_public", is_flag=True, help="It can keep no secret: an app, or a page of a browser."
)
@as_json
@with_tenancy
@people_options
def create(
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
    require_permissions(tenancy, permissions)
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


@click.command("list")
@as_json
@with_tenancy
def list_(tenancy: Tenancy, as_json: bool) -> None:
    """List the clients and their grants."""
    with tenancy.admin.connect() as connection:
        records = [client.as_record() for client in list_clients(connection)]
        reserved = uris_with_reserved_names(connection)
    columns = ("id", "schools", "permissions", "revoked", "tells_addresses", "is_public", "redirect_uris")
    show_table(records, columns, as_json)
    _warn_of_reserved_names(reserved)


@click.command("edit", short_help="Change the options of a client.")
@click.argument("client_id", metavar="ID", type=NAME)
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
def edit(
    tenancy: Tenancy,
    client_id: str,
    tells_addresses: bool | None,
    is_public: bool | None,
    end_sessions: bool,
    of_people: dict[str, Any],
    as_json: bool,
) -> None:
    """Change the trust in a client, and its permissions for the people signed in by it.

    Each option replaces the value before, and an empty value takes it away; an option not named stays, and so do its
    tokens and sessions. A loss of permissions holds from each session's next refresh; --end-sessions ends them at once.
    """
    if is_public is not None:
        of_people = {**of_people, "is_public": is_public}
    if tells_addresses is None and not of_people and not end_sessions:
        flags = ["--tells-addresses", "--public", "--end-sessions", *(flag for flag, _ in PEOPLE.values())]
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


@click.command("rotate", short_help="Give a client another secret.")
@click.argument("client_id", metavar="ID", type=NAME)
@click.option("--end-tokens", is_flag=True, help="End its tokens, too: a thief of the secret may have some.")
@as_json
@with_tenancy
def rotate(tenancy: Tenancy, client_id: str, end_tokens: bool, as_json: bool) -> None:
    """Give a client another secret, printed this once; the one before gets no token from now on.

    Tokens that it has go on until they expire, so that the client has a day to learn its new secret.
    """
    with tenancy.admin.begin() as connection:
        secret = rotate_secret(connection, client_id, end_tokens=end_tokens)
    show({"client_id": client_id, **_secret(secret)}, as_json)


@click.command("revoke")
@click.argument("client_id", metavar="ID", type=NAME)
@as_json
@with_tenancy
def revoke(tenancy: Tenancy, client_id: str, as_json: bool) -> None:
    """Take a client's grant away; its tokens stop working at once."""
    with tenancy.admin.begin() as connection:
        revoke_client(connection, client_id)
    show({"id": client_id, "revoked": True}, as_json)


def _warn_of_origins(tenancy: Tenancy, uris: Sequence[str]) -> None:
    """Warn of web pages with scripts unable to read answers: CORS_ORIGINS does not have their origins."""
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
    """Warn of redirect URIs registered before such were refused: they have a parameter of our answer."""
    for uri in uris:
        click.echo(f"Note: {uri} {_HAS_RESERVED_NAMES}", err=True)
