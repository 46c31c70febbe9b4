"""The run of every verb of the operator's: with its Tenancy, and with words for its progress and its failures.

The command line of the verbs puts a function into the context's `meta` under LOADER; it returns the Tenancy to work on.
One under CONCERNED lists the schools' roles and clients that a rule of this release concerns, in records with a `text`;
there are none if no database is named. One under FILLER fills a new school with records to try it by, and returns the
names and secrets of its users and clients.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from tenants.driver_errors import first_line, sqlstate
from tenants.exceptions import NotInstalled, TenancyError
from tenants.progress import no_progress
from tenants.registry.installation import check_installed, check_roles
from tenants.tenancy import Tenancy

LOADER = "tenants.loader"

CONCERNED = "tenants.concerned"
FILLER = "tenants.filler"


def with_tenancy(verb: Callable[..., None]) -> Callable[..., None]:
    """Hand a verb the Tenancy, and turn its errors into one line and exit status 1."""

    @wraps(verb)
    def run(*arguments: Any, **options: Any) -> None:
        tenancy = click.get_current_context().meta[LOADER]()
        try:
            verb(tenancy, *arguments, **options)
        except ProgrammingError as error:
            if sqlstate(error) in {"42P01", "3F000", "42703"}:
                raise click.ClickException(_lacking(tenancy)) from None
            raise click.ClickException(first_line(error.orig)) from None
        except OperationalError as error:
            raise click.ClickException(f"The database can't be reached: {first_line(error.orig)}") from None
        except DBAPIError as error:
            raise click.ClickException(first_line(error.orig)) from None
        except TenancyError as error:
            raise click.ClickException(str(error)) from None
        finally:
            tenancy.admin.dispose()

    return run


def with_schools(verb: Callable[..., None]) -> Callable[..., None]:
    """Hand a verb on schools the Tenancy, as `with_tenancy` does, once each school has its role."""

    @wraps(verb)
    def run(tenancy: Tenancy, *arguments: Any, **options: Any) -> None:
        with tenancy.admin.connect() as connection:
            check_roles(connection)
        verb(tenancy, *arguments, **options)

    return with_tenancy(run)


def _lacking(tenancy: Tenancy) -> str:
    """Say why something of the registry was not found."""
    try:
        with tenancy.admin.connect() as connection:
            check_installed(connection)
    except NotInstalled as error:
        return str(error)
    return str(NotInstalled())


@contextmanager
def progress_bar(length: int, *, hidden: bool = False) -> Iterator[Callable[[int], None]]:
    """Show the progress of long work on standard error, if it is a terminal (`tenants.progress`)."""
    if hidden or not sys.stderr.isatty():
        with no_progress(length) as advance:
            yield advance
        return
    with click.progressbar(length=length, file=sys.stderr) as bar:
        yield bar.update
