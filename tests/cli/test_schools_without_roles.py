"""An installation of 0.3.0 with TENANT_ROLES=off: it is refused until roles are turned on, and nothing is lost."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from click.testing import CliRunner

from school_service.auth.signing_key import SigningKey
from school_service.cli.program import program
from tenants.commands.groups import tenants_group
from tenants.provisioning.create import create_school
from tenants.registry.schools import schema_name
from tests.cli.program import run
from tests.postgres import addresses, on_postgresql_alone
from tests.tenants.installations import ADMINISTRATOR, installation
from tests.tenants.without_roles import everything, take_roles_away, turn_roles_on

pytestmark = on_postgresql_alone

READING = {"list", "show", "status", "verify", "check", "revision", "baseline"}
"""Verbs that look at the registry or the catalogue alone, or at no installation."""


# The last test turns the roles on again.
@pytest.fixture(scope="module", params=["one login", "two logins"])
def here(server, request):
    """An installation with two schools, whose roles have been taken away."""
    with installation(server, one_login=request.param == "one login") as tenancy:
        for _ in range(2):
            create_school(tenancy, name="A school", administrator=ADMINISTRATOR)
        take_roles_away(tenancy)
        yield tenancy


@pytest.fixture
def cli(here, tmp_path, monkeypatch):
    """Run a verb on it, with an environment that still has the setting."""
    monkeypatch.chdir(tmp_path)
    settings = {**addresses(here.admin_url, here.serving_url), "TENANT_ROLES": "off"}

    def invoke(*arguments):
        return CliRunner().invoke(program, arguments, env=settings, prog_name="school-service")

    return invoke


def schools(cli):
    """The ids of the schools, which are listed as ever."""
    lines = cli("tenants", "list").stdout.splitlines()[1:]
    return [line.split()[0] for line in lines]


def verbs(school, folder):
    """Each verb that changes an installation, or works in a school, with arguments that it takes."""
    (folder / "backup.zip").touch()
    return {
        "init": (),
        "create": ("Another school",),
        "migrate": (),
        "suspend": (school,),
        "resume": (school,),
        "rename": (school, "Another name"),
        "move": (school, "node:5432"),
        "edit": (school, "--motto", "On"),
        "delete": (school, "--yes", "--no-backup"),
        "backup": (school, str(folder / "made.zip")),
        "restore": (str(folder / "backup.zip"), "--id", str(uuid4())),
        "end-sessions": (school,),
        "reset-admin": (school,),
        "switch-roles": (school, "--own", "Teacher"),
        "erase-audit": (school,),
        "prune-audit": (school, str(folder / "made.ndjson"), "--older-than", "365"),
        "export": (school, str(folder / "made.ndjson")),
        "export-oneroster": (school, str(folder / "made.zip")),
    }


def test_each_verb_refuses_and_changes_nothing(here, cli, tmp_path):
    ids = schools(cli)
    before = everything(here)
    given = verbs(ids[0], tmp_path)
    assert set(given) | READING == set(tenants_group.commands)

    for verb, arguments in given.items():
        done = cli("tenants", verb, *arguments)
        assert (done.exit_code, done.stdout) == (1, ""), verb
        said = f"Error: PostgreSQL does not know the role {schema_name(UUID(min(ids)))} of a school. "
        assert done.stderr.startswith(said), verb
        assert (
            "Turn roles on before the update, with the release before: docs/deployment/update.md"
            in done.stderr
        )
        assert done.stderr.count("\n") == 1, verb

    assert not (tmp_path / "made.zip").exists()
    assert everything(here) == before


@pytest.mark.program
def test_nothing_is_served(here, cli, tmp_path):
    before = everything(here)
    settings = {
        **addresses(here.admin_url, here.serving_url),
        "SIGNING_KEY": SigningKey.generate().to_pem(),
        "TENANT_ROLES": "off",
    }

    done = run("serve", "--port", "0", cwd=tmp_path, settings=settings)

    assert done.returncode == 1
    assert "Turn roles on before the update, with the release before" in done.stderr
    assert everything(here) == before


def test_roles_turned_on_by_the_step_of_the_update_lose_nothing(here, cli):
    """The last of this module: it turns them on."""
    rows = everything(here)[-1]

    for _ in range(2):  # again, it changes nothing
        turn_roles_on(here.admin_url, here.serving_url)

    done = cli("tenants", "init")
    assert (done.exit_code, everything(here)[-1]) == (0, rows)
    assert cli("tenants", "verify").stdout.endswith("2 schools verified, 0 of them wrong.\n")
