"""The command `school-service`: serving, the demo, and the operator's verbs of `tenants.commands`."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Mapping
from copy import copy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click
from flask.cli import FlaskGroup

from school_service import account_commands as account_commands  # adds its verbs to `tenants`
from school_service import role_commands as role_commands  # adds its verb to `tenants`
from school_service.config import ConfigError, Settings, with_secrets_of_files
from school_service.data_folder import DataFolderError, data_folder
from school_service.release import log_release, this_release
from school_service.serving import ServingError
from school_service.serving.listening import DEFAULT_HOST, DEFAULT_PORT, listen
from school_service.serving.parts import DEFAULT_THREADS, THREADS
from tenants.commands.groups import clients_group, tenants_group
from tenants.commands.printing import as_json, show
from tenants.commands.running import CONCERNED, LOADER, with_schools
from tenants.exceptions import TenancyError
from tenants.registry.installation import install

if TYPE_CHECKING:
    from flask import Flask

    from tenants.tenancy import Tenancy

DEFAULT_FOLDER = Path("school-data")
_CHOSEN_FOLDER = "school_service.data_dir"
_KEYS = ("SIGNING_KEY", "SIGNING_KEY_FILE")
MOST_WORKERS = 64


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
        """Run the command line; what stops it is said in one line, with exit status 1."""
        try:
            return super().main(*arguments, **options)
        except (ConfigError, DataFolderError, ServingError, TenancyError) as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(1)


def _remember_folder(ctx: click.Context, _parameter: click.Parameter, folder: Path | None) -> None:
    if folder is not None:
        ctx.meta[_CHOSEN_FOLDER] = folder


folder_option = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    expose_value=False,
    callback=_remember_folder,
    help="Work on the PostgreSQL of this data folder, whatever DATABASE_URL says.  "
    f"[default without DATABASE_URL: ./{DEFAULT_FOLDER}]",
)


def _with_folder_option(command: click.Command) -> click.Command:
    """Let every verb below a command take --data-dir; the command itself stays as it is."""
    changed = copy(command)
    if isinstance(changed, click.Group):
        changed.commands = {name: _with_folder_option(verb) for name, verb in changed.commands.items()}
        return changed
    return folder_option(changed)


@cache
def _openapi() -> click.Command:
    # Imported here: flask_smorest takes long, and the operator's verbs do without.
    from flask_smorest.spec import openapi_cli

    return _with_folder_option(openapi_cli)


def _settings(environment: Mapping[str, str], *, create: bool) -> tuple[Settings, bool]:
    """Read the settings for the database to work on: the named folder, DATABASE_URL, the default folder.

    A data folder stays in use until the command ends; `create` makes one that is not there. The second value
    tells whether it is a data folder. Raises ConfigError, DataFolderError.
    """
    ctx = click.get_current_context()
    folder: Path | None = ctx.meta.get(_CHOSEN_FOLDER)
    if folder is None:
        environment = with_secrets_of_files(environment)
        if environment.get("DATABASE_URL", "").strip():
            return Settings.load(environment), False
        if environment.get("ADMIN_DATABASE_URL", "").strip():
            raise ConfigError(f"ADMIN_DATABASE_URL is set, but {Settings.REQUIRED}")
    found = ctx.find_root().with_resource(data_folder(folder or DEFAULT_FOLDER, create=create))
    return found.settings(environment), True


# The application, and what serves it, are imported by the verbs that need them: they take longer than most verbs work.


def _make_app() -> Flask:
    from school_service.app import create_app

    return create_app(_settings(os.environ, create=False)[0])


def _tenancy() -> Tenancy:
    from school_service.tenancy import tenancy_of

    # The operator's verbs sign nothing: the key may be out of their reach.
    environment = {name: value for name, value in os.environ.items() if name not in _KEYS}
    ctx = click.get_current_context()
    if ctx.info_name == "revision" and not with_secrets_of_files(environment).get("DATABASE_URL", "").strip():
        _choose_temporary_folder(ctx)
    return tenancy_of(_settings(environment, create=ctx.info_name in {"init", "revision"})[0])


def _givers_without_results() -> list[dict[str, Any]]:
    """List the roles and clients that can't give pupils or parents passwords; none where no database is named."""
    from sqlalchemy.exc import DBAPIError

    from school_service.seed.accounts import givers_without_results

    named = with_secrets_of_files(os.environ).get("DATABASE_URL", "").strip()
    if not (named or _CHOSEN_FOLDER in click.get_current_context().meta or DEFAULT_FOLDER.exists()):
        return []
    try:
        return givers_without_results(_tenancy())
    except (ConfigError, DataFolderError, TenancyError, DBAPIError) as error:
        reason = str(error.orig if isinstance(error, DBAPIError) else error).partition("\n")[0]
        click.echo(f"Note: no roles and clients were looked at: {reason}", err=True)
        return []


def _choose_temporary_folder(ctx: click.Context) -> None:
    """Name a data folder for this command alone, unless one is named; it is removed when the command ends."""
    if _CHOSEN_FOLDER not in ctx.meta:
        folder = TemporaryDirectory(prefix="school-", ignore_cleanup_errors=True)
        ctx.meta[_CHOSEN_FOLDER] = Path(ctx.find_root().with_resource(folder))


def _show_version(ctx: click.Context) -> None:
    members = this_release().as_labels()
    click.echo(f"{ctx.find_root().info_name} {members.pop('version')}")
    show(members, as_json=False)
    ctx.exit()


@click.group(
    cls=Program,
    create_app=_make_app,
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
    ctx.meta[LOADER] = _tenancy
    ctx.meta[CONCERNED] = _givers_without_results


# Flask's group brings options for choosing an application and debugging it; here the application is given.
program.params = [option for option in program.params if option.name not in {"app", "debug", "env_file"}]

_host = click.option("--host", default=DEFAULT_HOST, show_default=True, help="Address to listen on.")
_port = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)


@click.command("demo", short_help="Try everything: a database, two schools and their data, served.")
@_host
@_port
@click.option(
    "--delete", is_flag=True, help="Delete the demo's data folder, with every school in it, and end."
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@click.pass_context
def demo(ctx: click.Context, host: str, port: int, delete: bool, yes: bool) -> None:
    """Start PostgreSQL in the data folder, fill it with two sample schools, and serve them until stopped.

    Prints everything that is needed to try the service, and writes it to demo.json in the data folder.
    Nothing outside of that folder is touched, but for root's, whose data lie under /var/lib/school-service where
    PostgreSQL can't reach the folder; a second start finds everything again. --delete removes all of it.
    """
    from school_service.demo import command

    folder = ctx.meta.get(_CHOSEN_FOLDER) or DEFAULT_FOLDER
    if delete:
        command.delete_demo(folder, ask=not yes)
    else:
        command.run(folder, host, port)


class WorkerCount(click.ParamType[int]):
    """A number of workers, or `auto`: one for each processor that this process may use."""

    name = "INTEGER|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number from 1 to 64, or `auto`."""
        if value == "auto":
            from school_service.serving.supervisor import count_processors

            return min(MOST_WORKERS, count_processors())
        return click.IntRange(1, MOST_WORKERS).convert(value, param, ctx)


@click.command("serve", short_help="Serve the API until stopped.")
@_host
@_port
@click.option(
    "--threads",
    type=click.IntRange(1, 500),
    help="Requests that are worked on at once, in all workers together; POOL_SIZE should be no less.  "
    f"[default: {DEFAULT_THREADS}, and with more workers {THREADS} for each]",
)
@click.option(
    "--workers",
    type=WorkerCount(),
    default="1",
    show_default=True,
    help="Processes that serve, one for each processor it is to use; auto: as many as there are.",
)
@click.option("--worker", "sockets", type=(int, int, int), hidden=True)
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int,
    threads: int | None,
    workers: int,
    sockets: tuple[int, int, int] | None,
) -> None:
    """Serve the API with waitress until SIGTERM or SIGINT, which let the requests under way end.

    It speaks HTTP alone: TLS ends at a proxy in front of it, which TRUSTED_PROXIES names, so that the address of
    the client is known. docs/operators.md has whole configurations of nginx and Caddy.

    With more than one worker, one that dies is started anew, SIGHUP replaces them one after the other, each with the
    program and the files of that moment, and POOL_SIZE, --threads and a school's share are divided among them.
    """
    from school_service.serving import server
    from school_service.serving.checks import check_database
    from school_service.serving.supervisor import supervise
    from school_service.web.request_log import configure_logging

    if sockets is not None:
        _serve_as_worker(workers, threads or DEFAULT_THREADS, *sockets)
        return
    with listen(host, port) as listener:
        settings, in_folder = _settings(os.environ, create=True)
        configure_logging(settings.log_level)
        log_release()
        if workers > 1:
            if in_folder:
                install(_tenancy_of(settings))
            folder = (ctx.meta.get(_CHOSEN_FOLDER) or DEFAULT_FOLDER) if in_folder else None
            supervise(listener, settings, workers, threads, folder)
            return
        from school_service.app import create_app

        app = create_app(settings)
        if in_folder:
            install(_tenancy_of(settings))
        check_database(app, settings, threads or DEFAULT_THREADS)
        server.serve(app, settings, listener, threads=threads or DEFAULT_THREADS)


def _tenancy_of(settings: Settings) -> Tenancy:
    from school_service.tenancy import tenancy_of

    return tenancy_of(settings)


def _serve_as_worker(workers: int, threads: int, number: int, control: int, listener: int) -> None:
    """Serve as a worker, on sockets of its supervisor's; what is unwise is said by the first of them alone."""
    from school_service.app import create_app
    from school_service.serving import server
    from school_service.serving.checks import check_database
    from school_service.serving.worker import Worker
    from school_service.web.request_log import configure_logging

    for descriptor in (control, listener):
        os.set_inheritable(descriptor, False)
    worker = Worker.join(number, workers, socket.socket(fileno=control))
    with socket.socket(fileno=listener) as listening:
        settings, _ = _settings(os.environ, create=False)
        configure_logging(settings.log_level)
        app = create_app(settings)
        check_database(app, settings, threads, workers=workers, warn=number == 1)
        server.serve(app, settings, listening, threads=threads, worker=worker)


@tenants_group.command("erase-audit", short_help="Empty what the audit log says of people who were erased.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@as_json
@with_schools
def erase_audit(tenancy: Tenancy, school_id: UUID, as_json: bool) -> None:
    """Empty the values in a school's audit log that tell of people whose data were erased.

    Erasing a person by the API can't do this: requests can only add to the log. What was done, when and by whom
    stays. Prints how many entries it changed.
    """
    from school_service.features.personal_data.audit_erasure import erase_audit
    from school_service.tenancy import import_models

    import_models()
    show({"id": str(school_id), "entries": erase_audit(tenancy, school_id)}, as_json)


@tenants_group.command("export-oneroster", short_help="Write a school's records as a OneRoster zip.")
@click.argument("school_id", metavar="ID", type=click.UUID)
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--session", help="The academic session's id or name.  [default: the current one]")
@as_json
@with_schools
def export_oneroster(
    tenancy: Tenancy, school_id: UUID, file: Path, session: str | None, as_json: bool
) -> None:
    """Write an academic session of a school into FILE, as a zip of OneRoster 1.2 CSV files (bulk).

    Everything is in it that the school has of the session: people, classes, scores and published results. FILE can be
    read by its owner alone, and replaces one of that name; the school's audit log says that it was made.
    """
    from school_service.features.exchange.oneroster.operator_export import export_to_file
    from school_service.tenancy import import_models

    import_models()
    try:
        show(export_to_file(tenancy, school_id, file, session), as_json)
    except OSError as error:
        raise click.ClickException(f"{file} can't be written: {error.strerror}") from None


for _command in (demo, serve, tenants_group, clients_group):
    program.add_command(_with_folder_option(_command))


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
