"""The checks before requests are let in: of the database, and of settings about it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from flask import Flask
from sqlalchemy import Connection, Row, text
from sqlalchemy.exc import DBAPIError

from school_service.auth.login_throttle import storage_failure
from school_service.auth.passwords import is_strict
from school_service.auth.tokens import own_issuer
from school_service.config import Settings
from school_service.core.database import registry_connection
from school_service.serving import ServingError
from tenants.driver_errors import first_line
from tenants.exceptions import MissingRole, NotInstalled, UnfitPlacement
from tenants.migrations.migration_sql import served_revisions
from tenants.placement import Placement
from tenants.registry.clients import uris_with_reserved_names
from tenants.registry.installation import check_installed, check_roles

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_log = logging.getLogger(__name__)


class Advice(NamedTuple):
    """A sentence about a setting, with its figures and names; `level` is its level in the log."""

    sentence: str
    details: dict[str, Any] = {}
    level: int = logging.WARNING


def check_database(
    app: Flask, settings: Settings, threads: int, *, workers: int = 1, warn: bool = True
) -> None:
    """Check the database, its presence and version, and `warn` of unwise settings in the log.

    `threads` and the settings are those of one of `workers`. Raises ServingError if the database can't be served.
    """
    for advice in examine(app, settings, threads, workers=workers):
        if warn:
            _log.log(advice.level, "%s", advice.sentence, extra=advice.details)


def examine(app: Flask, settings: Settings, threads: int, *, workers: int = 1) -> list[Advice]:
    """Check the database as `check_database` does, and return the advice on the settings."""
    placement: Placement = app.extensions["placement"]
    try:
        with app.app_context(), registry_connection() as connection:
            check_installed(connection)
            placement.check(connection)
            own_issuer()  # here, so that no request has to read it
            strict = is_strict()  # likewise
            login = _read_login(connection, placement)
            schools = _read_schools(connection)
            reserved = uris_with_reserved_names(connection)
            check_roles(connection, most=1)  # one that lacks its own is no reason to close all others
            app.extensions["health"]()  # here, so that nobody is told of a check that has not ended yet
    except (MissingRole, NotInstalled, UnfitPlacement) as error:
        raise ServingError(str(error)) from None
    except DBAPIError as error:
        reason = first_line(error.orig)
        raise ServingError(f"The database of DATABASE_URL can't be used: {reason}") from None
    if login.logins < len(placement.all_logins):
        raise ServingError(
            f"SERVING_LOGINS is {placement.logins}, and the database has not all of these logins. "
            "Run: school-service tenants init"
        )
    return [
        *_of_login(login),
        *_of_connections(login, placement, settings, threads, workers),
        *_of_settings(settings, placement.advice(schools.all_schools), strict=strict),
        *_of_address(settings),
        *_of_counts(app),
        *_of_records(reserved, schools.behind),
    ]


def _of_settings(settings: Settings, of_placement: str | None, *, strict: bool) -> Iterator[Advice]:
    """Advise on where schools are placed, the file of the key and the policy of passwords."""
    for sentence in (of_placement, settings.signing_key_warning):
        if sentence:
            yield Advice(sentence)
    if not strict:
        yield Advice(
            "PASSWORD_POLICY is not strict: users can have passwords of one character, and the most common ones"
        )


def _of_address(settings: Settings) -> Iterator[Advice]:
    """Say whether people can sign in by a browser or an app, and advise against doing so without https."""
    if settings.built_in_provider and settings.public_url is None:
        sentence = "PUBLIC_URL is not set: people can't sign in by a browser or an app here"
        yield Advice(sentence, level=logging.INFO)
    elif settings.issuer is not None:
        parts = urlsplit(settings.issuer)
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            yield Advice(
                "PUBLIC_URL is not https: whoever listens on the network reads the passwords that people type",
                {"issuer": settings.issuer},
            )


def _of_counts(app: Flask) -> Iterator[Advice]:
    """Say that wrong passwords can't be counted, so that nobody can sign in."""
    with app.app_context():
        failure = storage_failure()
    if failure is not None:
        fault = "does not answer: nobody can sign in until it does"
        if failure.refuses:
            fault = "does not let this process in: nobody can sign in, and /health/ready is not ready"
        yield Advice(f"RATE_LIMIT_STORAGE {fault}", {"reason": failure.reason}, logging.ERROR)


def _of_records(reserved: list[str], behind: int) -> Iterator[Advice]:
    """Advise on redirect URIs with names of our answer, and schools that are to be migrated."""
    if reserved:
        yield Advice(
            "redirect URIs have a parameter of our answer in their own query, so that the client is sent two: register "
            "others (clients edit --redirect-uri)",
            {"redirect_uris": reserved},
        )
    if behind:
        yield Advice(
            "schools are at a revision that this version does not serve: they answer 503",
            {"schools": behind},
        )


def _read_login(connection: Connection, placement: Placement) -> Row[Any]:
    """Read the rights of the login of DATABASE_URL, and PostgreSQL's connections and logins for it."""
    return connection.execute(
        text(
            "SELECT rolname, rolsuper OR rolbypassrls AS reads_everything,"
            # The right to create schools; nothing here names the login that provisions, nor need it.
            " has_database_privilege(current_database(), 'CREATE') AS provisions,"
            " current_setting('max_connections')::int AS connections,"
            " (SELECT count(*) FROM pg_roles WHERE rolcanlogin AND rolname = ANY (:logins)) AS logins"
            " FROM pg_roles WHERE rolname = current_user"
        ),
        {"logins": list(placement.all_logins)},
    ).one()


def _read_schools(connection: Connection) -> Row[Any]:
    """Count the schools, and those at a revision that this version does not serve.

    This is a statement of its own: tables of the registry are not joined with the catalogue.
    """
    return connection.execute(
        text(
            "SELECT count(*) AS all_schools, count(*) FILTER (WHERE revision <> ALL (:served) AND revision NOT IN"
            " (SELECT revision FROM registry.also_served WHERE served_by = ANY (:served))) AS behind"
            " FROM registry.schools"
        ),
        {"served": list(served_revisions())},
    ).one()


def _of_login(login: Row[Any]) -> Iterator[Advice]:
    """Advise against a login with more rights than needed to serve."""
    if login.reads_everything:
        yield Advice(
            "the login of DATABASE_URL is a superuser: the wall between schools does not hold for it; name "
            "another there, and the superuser in ADMIN_DATABASE_URL, then run: school-service tenants init",
            {"login": login.rolname},
        )
    elif login.provisions:
        yield Advice(
            "the same login serves and provisions: give DATABASE_URL one of its own",
            {"login": login.rolname},
        )


def _of_connections(
    login: Row[Any], placement: Placement, settings: Settings, threads: int, workers: int
) -> Iterator[Advice]:
    """Advise against a POOL_SIZE too small for the threads, or too large for PostgreSQL."""
    if settings.pool_size < threads:
        yield Advice(
            "POOL_SIZE is less than --threads: requests will wait for a database connection",
            {"pool_size": settings.pool_size, "threads": threads},
        )
    idle = workers * placement.logins * placement.idle_connections(settings.pool_size)
    if idle >= login.connections:
        yield Advice(
            "POOL_SIZE asks for more connections than PostgreSQL allows",
            {
                "pool_size": settings.pool_size,
                "workers": workers,
                "idle_connections": idle,
                "max_connections": login.connections,
            },
        )
