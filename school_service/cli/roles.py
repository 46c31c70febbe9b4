"""The operator's verb on a school's roles: `tenants switch-roles`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import click

from tenants.commands.arguments import NAME
from tenants.commands.printing import as_json, show
from tenants.commands.running import with_schools
from tenants.tenancy import Tenancy

# Modules with the tables of a school are imported by the verb: --help and wrong use are answered without.


@click.command("switch-roles", short_help="Let roles of a school reach one's own records alone.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.option(
    "--own", multiple=True, type=NAME, help="A role, by its name, to reach one's own records alone."
)
@click.option("--school", multiple=True, type=NAME, help="A role to reach the whole school's records.")
@click.option("--add-seeded", is_flag=True, help="Make the roles of a new school that are missing.")
@click.option("--yes", is_flag=True, help="Switch at once; without it, only show the changes.")
@as_json
@with_schools
def switch_roles(
    tenancy: Tenancy,
    school_id: UUID,
    own: tuple[str, ...],
    school: tuple[str, ...],
    add_seeded: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Switch roles between the whole school's records and the records of their bearers alone.

    Shows the losses and gains of users, and records that nobody would reach as their own. Nothing changes without
    --yes.
    """
    # Importing the application declares for which permissions anything serves one's own records.
    from school_service import app as app
    from school_service.features.role_reaches import operator_switch
    from school_service.web.blueprint import SERVES_OWN

    roles = {**dict.fromkeys(own, "OWN"), **dict.fromkeys(school, "SCHOOL")}
    if not roles and not add_seeded:
        raise click.UsageError("Name a role with --own or --school, or say --add-seeded.")
    if len(roles) < len(own) + len(school):
        raise click.UsageError("A role is named more than once.")
    answer = operator_switch.switch_roles(
        tenancy, school_id, roles, add_seeded=add_seeded, commit=yes, served=SERVES_OWN
    )
    if as_json:
        show({**answer, "switched": yes}, as_json=True)
    else:
        _show(answer, switched=yes)


def _show(answer: dict[str, Any], *, switched: bool) -> None:
    """Print the result for an operator's first look."""
    for role in answer["roles"]:
        click.echo(f"{role['name']}: {role['before']} -> {role['reach']}")
    for name in answer["added"]:
        click.echo(f"{name}: new")
    for role in answer["differs"]:
        click.echo(f"{role['name']} has other permissions than that of a new school.")
        for member, words in (("less", "lacks"), ("more", "has besides")):
            if role[member]:
                click.echo(f"  {words}: {', '.join(role[member])}")
    click.echo(
        f"Users whose answers change: {answer['users_total']}, of whom lose something: {answer['users_losing']}"
    )
    for user in answer["users"]:
        parts = (
            f"{words} {', '.join(user[member])}"
            for member, words in (("narrowed", "own alone:"), ("refused", "loses:"), ("widened", "gains:"))
            if user[member]
        )
        click.echo(f"  {user['username']} ({user['name']}): {'; '.join(parts)}")
    for access in answer.get("credentials", ()):
        fate = "ends" if access["ended"] else "stays"
        click.echo(
            f"  {access['username']}: {access['kind']} of {access['made_by_name'] or 'nobody knows who'} {fate}"
        )
    uncovered = answer["uncovered"]
    click.echo(f"Without a teacher in the current session, subjects and arms: {uncovered['subjects_total']}")
    click.echo(f"Without a form teacher, batches: {uncovered['batches_total']}")
    click.echo("Switched." if switched else "Nothing was changed. Say --yes to switch.")
