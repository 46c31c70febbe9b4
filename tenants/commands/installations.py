"""Verbs on an installation: its registry and logins, the state of its schools, and whether they are whole."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click

from tenants.backups.encryption import read_identities
from tenants.commands.arguments import identity_option
from tenants.commands.printing import as_json, show_table
from tenants.commands.running import progress_bar, with_tenancy
from tenants.migrations.migrate import list_migration_states
from tenants.migrations.migration_sql import head
from tenants.registry import schools as registry
from tenants.registry.installation import install, revoke_unused_memberships
from tenants.registry.schools import STRICT_PASSWORDS
from tenants.tenancy import Tenancy
from tenants.verification import verify
from tenants.wording import counted


@click.command("init")
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


@click.command("status", short_help="Show the revision of each school, and schools behind.")
@click.option("--nodes", is_flag=True, help="Show the nodes of Citus instead, and how many schools each has.")
@as_json
@with_tenancy
def status(tenancy: Tenancy, nodes: bool, as_json: bool) -> None:
    """Show the revision of each school, the schools behind, failed migrations with their reasons, and old owners.

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


@click.command("verify", short_help="See that every school is whole, as after a recovery.")
@click.option(
    "--backups",
    "folder",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Compare each school's rows with the newest file of `tenants backup --all DIR`.",
)
@identity_option("of backups that are encrypted.")
@as_json
@with_tenancy
def verify_(tenancy: Tenancy, folder: Path | None, key_file: Path | None, as_json: bool) -> None:
    """See that every school has its role, owner, grants, and the schema of its revision, and count its rows.

    It changes nothing. Exits with status 1 for a fault; a finding that may be right is a note.
    """
    verification = verify(
        tenancy,
        folder=folder,
        identities=read_identities(key_file) if key_file else (),
        progress=partial(progress_bar, hidden=as_json),
    )
    if as_json:
        click.echo(json.dumps(verification.as_record(), ensure_ascii=False))
    else:
        records = [verified.as_record() for verified in verification.schools]
        show_table(records, ("id", "name", "revision", "rows", "state"), as_json)
        for verified in verification.schools:
            for note in verified.notes:
                click.echo(f"Note: {verified.school.id} {verified.school.name}: {note}.")
        for note in verification.notes:
            click.echo(f"Note: {note}.")
        wrong = sum(bool(verified.faults) for verified in verification.schools)
        click.echo(f"{counted(len(verification.schools), 'school')} verified, {wrong} of them wrong.")
    for verified in verification.schools:
        for fault in verified.faults:
            click.echo(f"Wrong: {verified.school.id} {verified.school.name}: {fault}.", err=True)
    for fault in verification.faults:
        click.echo(f"Wrong: {fault}.", err=True)
    if not verification.is_good:
        click.get_current_context().exit(1)
