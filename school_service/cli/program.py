"""The program: its groups and verbs, and how it ends."""

from __future__ import annotations

import signal
import sys
from functools import cache
from types import FrameType
from typing import Any

import click
from flask.cli import FlaskGroup

from school_service.cli import accounts, checking, records, roles, serving
from school_service.cli.installation import (
    REFUSALS,
    fill_sample,
    folder_option,
    list_concerned,
    load_tenancy,
    make_app,
    with_folder_option,
)
from school_service.release import this_release
from tenants.commands.groups import clients_group, tenants_group
from tenants.commands.printing import show
from tenants.commands.running import CONCERNED, FILLER, LOADER


class Program(FlaskGroup):
    """Flask's group with our commands alone: no other packages' plugins, no application made for --help."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Find a command by its name."""
        if name == "openapi":
            return _openapi()
        return click.Group.get_command(self, ctx, name)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """List the names of the commands, the most used first."""
        return [*self.commands, "openapi"]

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command line; an error that stops it is told in one line, with exit status 1."""
        try:
            return super().main(*arguments, **options)
        except REFUSALS as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(1)


@cache
def _openapi() -> click.Command:
    # Imported here: flask_smorest takes long, and the operator's verbs do without.
    from flask_smorest.spec import openapi_cli

    return with_folder_option(openapi_cli)


def _show_version(ctx: click.Context) -> None:
    members = this_release().as_labels()
    click.echo(f"{ctx.find_root().info_name} {members.pop('version')}")
    show(members, as_json=False)
    ctx.exit()


@click.group(
    cls=Program,
    create_app=make_app,
    add_default_commands=False,
    add_version_option=False,
    load_dotenv=False,
    set_debug_flag=False,
    context_settings={"auto_envvar_prefix": None, "help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _parameter, wanted: _show_version(ctx) if wanted else None,
    help="Show the version, the commit and the revisions that it serves, and exit.",
)
@folder_option
@click.pass_context
def program(ctx: click.Context) -> None:
    """School administration for many schools, as a JSON API on PostgreSQL.

    All settings come from the environment, DATABASE_URL first of all. Without it, a verb works on the
    PostgreSQL of the data folder, which `demo`, `serve` and `tenants init` make where there is none.
    """
    ctx.meta[LOADER] = load_tenancy
    ctx.meta[CONCERNED] = list_concerned
    ctx.meta[FILLER] = fill_sample


# Flask's group brings options for choosing an application and debugging it; here the application is given.
program.params = [option for option in program.params if option.name not in {"app", "debug", "env_file"}]

for _verb in (
    accounts.end_sessions,
    accounts.reset_admin,
    roles.switch_roles,
    records.erase_audit,
    records.prune_audit,
    records.export,
    records.export_oneroster,
):
    tenants_group.add_command(_verb)
for _command in (serving.demo, serving.serve, checking.check, tenants_group, clients_group):
    program.add_command(with_folder_option(_command))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    # A verb that is stopped by a signal still leaves the data folder in order.
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _leave)
    program.main(args=arguments, prog_name="school-service")


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
