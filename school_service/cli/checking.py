"""The verb `check`: the present settings, the servers they name and their faults, before they are served with."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError

from school_service.cli.installation import settings_of
from school_service.cli.serving import threads_option, workers_option
from school_service.config import IN_MEMORY, Settings
from school_service.release import this_release
from school_service.serving import ServingError
from school_service.serving.parts import Part
from tenants.commands.printing import as_json, show
from tenants.driver_errors import first_line
from tenants.exceptions import TenancyError
from tenants.registry.installation import read_revision
from tenants.registry.schools import schools

if TYPE_CHECKING:
    from school_service.serving.checks import Advice
    from school_service.web.application import Service

_log = logging.getLogger(__name__)


@click.command("check", short_help="List the settings, the servers they reach, and faults.")
@threads_option
@workers_option
@as_json
def check(threads: int | None, workers: int, as_json: bool) -> None:
    """List the given settings, the servers they reach, the revisions there, and unwise settings.

    For the settings and options with which `serve` is to run; nothing is changed, and no secret printed. The exit
    status is 1 where something keeps `serve` from serving, or can't be reached; unwise settings leave it 0.
    """
    from school_service.app import create_app

    settings, _ = settings_of(os.environ, create=False)
    part = Part.of(settings, os.environ, workers, threads)
    settings = replace(settings, pool_size=part.pool_size, school_requests=part.school_requests)
    app = create_app(settings)
    wrong, advice = _examine(app, settings, part.threads, workers)
    state, lost = _reach(app, settings)
    record = {
        "release": this_release().as_text(),
        "settings": settings.given,
        **state,
        "note": [_text_of(hint) for hint in advice if hint.level < logging.WARNING],
        "unwise": [_text_of(hint) for hint in advice if hint.level == logging.WARNING],
        "wrong": [*wrong, *lost, *(_text_of(hint) for hint in advice if hint.level > logging.WARNING)],
    }
    _print(record, as_json)
    if record["wrong"]:
        click.get_current_context().exit(1)


def _examine(app: Service, settings: Settings, threads: int, workers: int) -> tuple[list[str], list[Advice]]:
    """Check as `serve` does at its start; returns the obstacles to serving, and the advice."""
    from school_service.serving.checks import examine

    try:
        return [], examine(app, settings, threads, workers=workers)
    except (ServingError, TenancyError) as error:
        return [str(error)], []


def _reach(app: Service, settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """Ask the servers of the settings: the revisions, and the names of settings `reached`; and the faults.

    `examine` finds the faults of the database and of counted tries.
    """
    from school_service.auth.jwks import ProviderUnavailable
    from school_service.auth.login_throttle import storage_failure
    from school_service.core.database import registry_connection

    state: dict[str, Any] = {"registry": None, "schools": [], "reached": (reached := [])}
    wrong = []
    with app.app_context():
        try:
            with registry_connection() as connection:
                state |= _revisions(connection)
            reached.append("DATABASE_URL")
        except (DBAPIError, TenancyError) as error:
            _log.debug("the registry can't be read", extra={"reason": str(error)})
        if settings.rate_limit_storage != IN_MEMORY and storage_failure() is None:
            reached.append("RATE_LIMIT_STORAGE")
    if settings.admin_database_url != settings.database_url:
        try:
            _connect(settings)
            reached.append("ADMIN_DATABASE_URL")
        except DBAPIError as error:
            wrong.append(f"The database of ADMIN_DATABASE_URL can't be used: {first_line(error.orig)}")
    keys = app.extensions["school-service"].verifier.outside_keys
    if keys is not None:
        try:
            keys.find(None)
            reached.append("AUTH_URL")
        except ProviderUnavailable:
            wrong.append("The keys of the provider of AUTH_URL can't be fetched.")
    return state, wrong


def _connect(settings: Settings) -> None:
    """Sign in as the login that provisions."""
    from school_service.tenancy import tenancy_of

    tenancy = tenancy_of(settings)
    try:
        tenancy.admin.connect().close()
    finally:
        tenancy.admin.dispose()


def _revisions(connection: Connection) -> dict[str, Any]:
    """Read the registry's revision, and how many schools are at which."""
    revision = schools.c.revision
    counts = connection.execute(select(revision, func.count()).group_by(revision).order_by(revision))
    return {"registry": read_revision(connection), "schools": [f"{count} at {at}" for at, count in counts]}


def _text_of(advice: Advice) -> str:
    details = ", ".join(f"{name} {value}" for name, value in advice.details.items())
    return f"{advice.sentence} ({details})" if details else advice.sentence


def _print(record: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(record, ensure_ascii=False))
        return
    show(
        {name: record[name] for name in ("release", "registry", "schools", "reached")} | record["settings"],
        as_json=False,
    )
    for name in ("note", "unwise", "wrong"):
        for sentence in record[name]:
            click.echo(f"{name.capitalize()}: {sentence}", err=name == "wrong")
