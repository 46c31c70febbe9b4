"""The installation for a verb to work on: a data folder's, or the one named by the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from school_service.cli.data_folder import DataFolderError, data_folder
from school_service.config import ConfigError, Settings, with_secrets_of_files
from school_service.serving import ServingError
from tenants.exceptions import TenancyError

if TYPE_CHECKING:
    from flask import Flask

    from tenants.progress import Progress
    from tenants.registry.schools import School
    from tenants.tenancy import Tenancy

REFUSALS = (ConfigError, DataFolderError, ServingError, TenancyError)
"""The errors that stop a verb, and say why in one line."""
DEFAULT_FOLDER = Path("school-data")
_CHOSEN_FOLDER = "school_service.data_dir"
_KEYS = ("SIGNING_KEY", "SIGNING_KEY_FILE")


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


def with_folder_option(command: click.Command) -> click.Command:
    """Let every verb below a command take --data-dir; the command itself stays as it is."""
    changed = copy(command)
    if isinstance(changed, click.Group):
        changed.commands = {name: with_folder_option(verb) for name, verb in changed.commands.items()}
        return changed
    return folder_option(changed)


def chosen_folder() -> Path:
    """Name the data folder of the command: by --data-dir, else the default one."""
    folder: Path | None = click.get_current_context().meta.get(_CHOSEN_FOLDER)
    return folder or DEFAULT_FOLDER


def settings_of(environment: Mapping[str, str], *, create: bool) -> tuple[Settings, bool]:
    """Read the settings for the database to work on: the named folder, DATABASE_URL, the default folder.

    A data folder stays in use until the command ends; `create` makes a missing one. The second value
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
    data = ctx.find_root().with_resource(data_folder(folder or DEFAULT_FOLDER, create=create))
    return data.settings(environment), True


def make_app() -> Flask:
    """Make the application; its import is here, since it takes longer than the work of most verbs."""
    from school_service.app import create_app

    return create_app(settings_of(os.environ, create=False)[0])


def load_tenancy() -> Tenancy:
    """Describe the schools to a verb; raises ConfigError, DataFolderError."""
    from school_service.tenancy import tenancy_of

    ctx = click.get_current_context()
    if ctx.info_name == "revision" and not with_secrets_of_files(os.environ).get("DATABASE_URL", "").strip():
        _choose_temporary_folder(ctx)
    return tenancy_of(_settings_without_key(create=ctx.info_name in {"init", "revision"}))


def _settings_without_key(*, create: bool = False) -> Settings:
    # The operator's verbs sign nothing: the key may be out of their reach.
    environment = {name: value for name, value in os.environ.items() if name not in _KEYS}
    return settings_of(environment, create=create)[0]


def fill_sample(tenancy: Tenancy, school: School, progress: Progress) -> dict[str, str]:
    """Fill a new school as a school of the demo; returns the names and secrets of its users and clients."""
    from school_service.demo.sample import fill_sample

    return fill_sample(tenancy, _settings_without_key(), school, progress)


def list_concerned() -> list[dict[str, Any]]:
    """List the roles and clients unable to give pupils or parents passwords; none if no database is named."""
    from sqlalchemy.exc import DBAPIError

    from school_service.seed.accounts import givers_without_results

    named = with_secrets_of_files(os.environ).get("DATABASE_URL", "").strip()
    if not (named or _CHOSEN_FOLDER in click.get_current_context().meta or DEFAULT_FOLDER.exists()):
        return []
    try:
        return givers_without_results(load_tenancy())
    except (ConfigError, DataFolderError, TenancyError, DBAPIError) as error:
        reason = str(error.orig if isinstance(error, DBAPIError) else error).partition("\n")[0]
        click.echo(f"Note: no roles and clients were looked at: {reason}", err=True)
        return []


def _choose_temporary_folder(ctx: click.Context) -> None:
    """Name a data folder for this command alone, unless one is named; it is removed when the command ends."""
    if _CHOSEN_FOLDER not in ctx.meta:
        folder = TemporaryDirectory(prefix="school-", ignore_cleanup_errors=True)
        ctx.meta[_CHOSEN_FOLDER] = Path(ctx.find_root().with_resource(folder))
