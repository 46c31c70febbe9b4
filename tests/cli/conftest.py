"""An installation of its own for the command line: a database, its settings, and a folder to stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import URL

from school_service.auth.signing_key import SigningKey
from school_service.cli.program import program
from tests.cli.program import FRESH, Running, run, serving, serving_with_gunicorn
from tests.postgres import addresses, test_database

PUBLIC_URL = "https://results.example.org"
"""The address before the codes of printed report cards."""


@pytest.fixture(scope="package")
def logins(server: URL) -> Iterator[dict[str, str]]:
    """The addresses of an empty database."""
    with test_database(server) as (admin, login):
        yield addresses(admin, login)


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder without a data folder."""
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="package")
def installed(logins: dict[str, str], folder: Path) -> dict[str, str]:
    """The settings of an installation whose registry is in place."""
    done = run("tenants", "init", cwd=folder, settings=logins)
    assert (done.returncode, done.stderr) == (0, ""), done
    # Of a registry that it creates alone.
    assert "New passwords have 10 characters or more" in done.stdout
    return {**logins, "SIGNING_KEY": SigningKey.generate().to_pem()}


@pytest.fixture(scope="package")
def service(installed: dict[str, str], folder: Path) -> Iterator[Running]:
    """The service of this installation, with a client that may do everything."""
    settings = {**installed, "POOL_SIZE": "8", "METRICS_PORT": "0", "PUBLIC_URL": PUBLIC_URL}
    with serving(cwd=folder, settings=settings) as service:
        yield service


@pytest.fixture(scope="package", params=["waitress", pytest.param("gunicorn", marks=pytest.mark.operate)])
def each_server(request: pytest.FixtureRequest, installed: dict[str, str], folder: Path) -> Iterator[Running]:
    """The service under `serve`, and under gunicorn."""
    if request.param == "waitress":
        yield request.getfixturevalue("service")
        return
    with serving_with_gunicorn(cwd=folder, settings={**installed, "METRICS_PORT": "0"}) as service:
        yield service


@pytest.fixture
def cli(installed: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a verb in this process, with the settings of the installation, changed as given (None: not set).

    Where interpreters are to be fresh, it runs in one of its own.
    """

    def invoke(*arguments: str, stdin: bytes | None = None, **settings: str | None) -> Result:
        environment: dict[str, Any] = {**installed, **settings}
        if FRESH:
            given = {name: value for name, value in environment.items() if value is not None}
            done = run(*arguments, cwd=folder, settings=given, stdin=(stdin or b"").decode())
            out, err = done.stdout.encode(), done.stderr.encode()
            return Result(CliRunner(), out, err, out + err, None, done.returncode, None)
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            for name, value in environment.items():
                patch.setenv(name, value) if value is not None else patch.delenv(name, raising=False)
            result = CliRunner().invoke(program, arguments, input=stdin, prog_name="school-service")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke
