"""The serving verbs: `serve`, and `demo` with schools of its own making."""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

import click

from school_service.cli.installation import REFUSALS, chosen_folder, settings_of
from school_service.config import Settings
from school_service.release import log_release
from school_service.serving.listening import DEFAULT_HOST, DEFAULT_PORT, listen
from school_service.serving.parts import DEFAULT_THREADS, THREADS
from tenants.registry.installation import install

if TYPE_CHECKING:
    from school_service.serving.worker import Worker

# The application, and its server, are imported by the verbs that need them: they take longer than most verbs work.

MOST_WORKERS = 64

_log = logging.getLogger(__name__)

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
def demo(host: str, port: int, delete: bool, yes: bool) -> None:
    """Start PostgreSQL in the data folder, fill it with two sample schools, and serve them until stopped.

    Prints everything that is needed to try the service, and writes it to demo.json in the data folder.
    Nothing outside of that folder is touched, but for root's, whose data lie under /var/lib/school-service where
    PostgreSQL can't reach the folder; a second start finds everything again. --delete removes all of it.
    """
    from school_service.demo import command

    folder = chosen_folder()
    if delete:
        command.delete_demo(folder, ask=not yes)
    else:
        command.run(folder, host, port)


class WorkerCount(click.ParamType[int]):
    """A number of workers, or `auto`: one for each processor available to this process."""

    name = "INTEGER|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number from 1 to 64, or `auto`."""
        if value == "auto":
            from school_service.serving.supervisor import count_processors

            return min(MOST_WORKERS, count_processors())
        return click.IntRange(1, MOST_WORKERS).convert(value, param, ctx)


threads_option = click.option(
    "--threads",
    type=click.IntRange(1, 500),
    help="Requests that are worked on at once, in all workers together; POOL_SIZE should be no less.  "
    f"[default: {DEFAULT_THREADS}, and with more workers {THREADS} for each]",
)
workers_option = click.option(
    "--workers",
    type=WorkerCount(),
    default="1",
    show_default=True,
    help="Processes that serve, one for each processor it is to use; auto: as many as there are.",
)


@click.command("serve", short_help="Serve the API until stopped.")
@_host
@_port
@threads_option
@workers_option
@click.option("--worker", "sockets", type=(int, int, int), hidden=True)
def serve(
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
    from school_service.web.request_log import configure_logging

    if sockets is not None:
        configure_logging("INFO")  # until the settings are known
        try:
            _serve_as_worker(workers, threads or DEFAULT_THREADS, *sockets)
        except Exception as error:
            # The operator of a service reads the log, where each line is JSON.
            is_known = isinstance(error, REFUSALS)
            details = {"worker": sockets[0], "reason": str(error)}
            _log.error("a worker can't serve", extra=details, exc_info=not is_known)
            sys.exit(1)
        return
    with listen(host, port) as listener:
        settings, in_folder = settings_of(os.environ, create=True)
        configure_logging(settings.log_level)
        log_release()
        if in_folder:
            _install(settings)
        if workers > 1:
            from school_service.serving.supervisor import supervise

            supervise(listener, settings, workers, threads, chosen_folder() if in_folder else None)
        else:
            _serve(settings, listener, threads or DEFAULT_THREADS)


def _serve(settings: Settings, listener: socket.socket, threads: int, worker: Worker | None = None) -> None:
    """Serve until stopped, alone or as a worker; the first worker alone warns of unwise settings."""
    from school_service.app import create_app
    from school_service.serving import server
    from school_service.serving.checks import check_database

    app = create_app(settings)
    workers, number = (worker.count, worker.number) if worker else (1, 1)
    check_database(app, settings, threads, workers=workers, warn=number == 1)
    server.serve(app, settings, listener, threads=threads, worker=worker)


def _install(settings: Settings) -> None:
    """Create or upgrade the registry of a data folder."""
    from school_service.tenancy import tenancy_of

    install(tenancy_of(settings))


def _serve_as_worker(workers: int, threads: int, number: int, control: int, listener: int) -> None:
    """Serve as a worker, on sockets of its supervisor's."""
    from school_service.serving.worker import Worker
    from school_service.web.request_log import configure_logging

    for descriptor in (control, listener):
        os.set_inheritable(descriptor, False)
    worker = Worker.join(number, workers, socket.socket(fileno=control))
    with socket.socket(fileno=listener) as listening:
        settings, _ = settings_of(os.environ, create=False)
        configure_logging(settings.log_level)
        _serve(settings, listening, threads, worker)
