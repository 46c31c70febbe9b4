"""The pages of docs/deployment: files, settings and commands that they name work."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest

from school_service.auth.signing_key import SigningKey, SigningKeys
from school_service.cli.program import program
from school_service.config import Settings
from school_service.features.invitations.codes import code_hasher, code_hashes, new_code
from tenants.pg_programs import find_program
from tenants.provisioning.create import create_school
from tests.postgres import on_postgresql_alone
from tests.tenants.installations import ADMINISTRATOR, execute, installation

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "deployment"
UNITS = FOLDER / "systemd"
PAGES = sorted(FOLDER.glob("**/*.md"))
EXPOSURE = 15  # tenths, of systemd's ten: the rest is the network, files that all may read, and other users

analyze = shutil.which("systemd-analyze")
with_systemd = pytest.mark.skipif(analyze is None, reason="systemd-analyze is not installed.")


def blocks(page: Path, kind: str = "sh") -> list[str]:
    """List the blocks of a kind on a page, as they are pasted."""
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)


def commands(page: Path) -> list[list[str]]:
    """List the words of each command of ours on a page."""
    lines = "\n".join(blocks(page)).replace("\\\n", " ").splitlines()
    uses = re.findall(r"(?:^|&& |/sbin/)(school-service (?!processor).*?)(?: <<.*|$)", "\n".join(lines), re.M)
    spans = re.findall(r"`(school-service [^`]+)`", page.read_text(encoding="utf-8").replace("\n  ", " "))
    return [shlex.split(command)[1:] for command in [*uses, *spans]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_command_and_option_of_ours_is_there(page):
    for words in commands(page):
        command: click.Command = program
        rest = iter(words)
        for word in rest:
            if not isinstance(command, click.Group) or word.startswith("--"):
                break
            assert word in command.commands, words
            command = command.commands[word]
        known = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, words


def test_the_commands_are_found():
    assert sum(len(commands(page)) for page in PAGES) > 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_file_of_ours_that_a_block_takes_exists(page):
    text = "\n".join(blocks(page))

    assert [name for name in re.findall(r"\bdocs/[\w./@-]+", text) if not (ROOT / name).exists()] == []


# The units


@pytest.fixture
def units(tmp_path):
    """The units as they would be installed, of the program that runs here."""
    program_here = tmp_path / "school-service"
    program_here.write_text(f"#!{sys.executable}\n", encoding="utf-8")
    program_here.chmod(0o755)
    for file in UNITS.glob("school-service*.*"):
        text = file.read_text(encoding="utf-8")
        name = file.name.replace("@", "@8000")
        (tmp_path / name).write_text(
            text.replace("/opt/school-service/bin/school-service", str(program_here)), encoding="utf-8"
        )
    return tmp_path


def analysed(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [analyze, *arguments], cwd=cwd, capture_output=True, text=True, timeout=180, check=False
    )


@with_systemd
@pytest.mark.program
@pytest.mark.operate
def test_systemd_has_nothing_to_say_against_the_units(units):
    names = sorted(file.name for file in units.glob("school-service*.*"))
    assert len(names) == 3

    done = analysed("verify", "--man=no", *(f"./{name}" for name in names), cwd=units)

    # Faults of other units of this machine are listed, too.
    assert [line for line in done.stderr.splitlines() if "school-service" in line] == []
    broken = units / "school-service@8000.service"
    broken.write_text(broken.read_text(encoding="utf-8") + "ProtectEverything=yes\n", encoding="utf-8")
    assert "ProtectEverything" in analysed("verify", "--man=no", f"./{broken.name}", cwd=units).stderr


@with_systemd
@pytest.mark.program
@pytest.mark.operate
@pytest.mark.parametrize("name", ["school-service@8000.service", "school-service-backup.service"])
def test_the_units_may_do_little(units, name):
    done = analysed("security", "--offline=true", f"--threshold={EXPOSURE}", f"./{name}", cwd=units)

    assert done.returncode == 0, done.stdout[-300:]


# debian.md


def settings_of(block: str) -> dict[str, str]:
    """The settings that a block writes into files, with a password in place of its variables."""
    return dict(
        re.findall(
            r"^([A-Z_]+)=(\S+)$",
            block.replace("$SERVICE_PASSWORD", "s").replace("$OPERATOR_PASSWORD", "o"),
            re.M,
        )
    )


def test_the_settings_of_the_page_are_settings(tmp_path):
    (block,) = [block for block in blocks(FOLDER / "debian.md") if "/etc/school-service/env <<" in block]
    key = tmp_path / "key.pem"
    key.write_text(SigningKey.generate().to_pem(), encoding="utf-8")
    key.chmod(0o600)

    values = settings_of(block)
    settings = Settings.load({**values, "SIGNING_KEY_FILE": str(key)})

    assert set(values) == {
        *("DATABASE_URL", "SIGNING_KEY_FILE", "TRUSTED_PROXIES", "PASSWORD_POLICY", "ADMIN_DATABASE_URL"),
    }
    assert settings.database_url.username != settings.admin_database_url.username
    assert settings.trusted_proxies


def test_the_operators_command_has_the_settings_of_both_files_and_hands_on_its_words(tmp_path):
    for name, line in (("env", "DATABASE_URL='postgresql://a b'"), ("operator.env", "ADMIN_DATABASE_URL=x")):
        (tmp_path / name).write_text(f"{line}\n", encoding="utf-8")
    text = (UNITS / "school-service").read_text(encoding="utf-8")
    text = text.replace("/etc/school-service", str(tmp_path)).replace(
        "/opt/school-service/bin/school-service", "-"
    )
    shown = 'printf "%s\\n" "$DATABASE_URL" "$ADMIN_DATABASE_URL" "$LOGNAME" "$HOME" "$@"'
    (tmp_path / "setpriv").write_text(f"#!/bin/sh\n{shown}\n", encoding="utf-8")
    (tmp_path / "setpriv").chmod(0o755)

    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SUDO_USER": "ada"}
    done = subprocess.run(
        ["/bin/sh", "-c", text, "school-service", "tenants", "create", "Queen's College, Yaba"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )

    lines = done.stdout.splitlines()
    assert lines[:4] == ["postgresql://a b", "x", "ada", "/nonexistent"]
    assert lines[4:7] == ["--reuid=school", "--regid=school", "--clear-groups"]
    assert lines[8:] == ["tenants", "create", "Queen's College, Yaba"]


# rotate-keys.md


def test_the_keys_change_in_three_steps_and_stay_readable_to_the_service(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed.")
    key = tmp_path / "key.pem"
    key.write_text(SigningKey.generate().to_pem(), encoding="utf-8")
    old = keys_of(key)[0]
    seen = []
    code = new_code()
    hashed = code_hasher(read_keys(key))(code)
    invited = []
    for block in blocks(FOLDER / "rotate-keys.md"):
        if block.startswith("# invitations\n"):
            continue
        script = block.replace("/etc/school-service", str(tmp_path))
        # The file's group, and processes of systemd's, are not of this machine.
        functions = "set -eu; chgrp() { :; }; systemctl() { printf '%s\\n' \"$*\"; }\n"
        done = subprocess.run(
            ["/bin/sh", "-c", functions + script], capture_output=True, text=True, timeout=180, check=True
        )
        assert done.stdout == "reload school-service@8000\n"
        assert stat.S_IMODE(key.stat().st_mode) == 0o640
        seen.append(keys_of(key))
        invited.append(hashed in code_hashes(code, read_keys(key)))

    # As the page says: an invitation from before ends with the third step.
    assert invited == [True, True, False, False]
    new = seen[2][0]
    assert seen[:3] == [[old, new], [new, old], [new]]
    assert len(seen) == 4
    assert seen[3] != seen[2]
    assert [file.name for file in tmp_path.iterdir()] == ["key.pem"]


def read_keys(file: Path) -> SigningKeys:
    return SigningKeys.from_pem(file.read_text(encoding="utf-8"), "SIGNING_KEY_FILE")


def keys_of(file: Path) -> list[str]:
    """The ids of the keys of a file: the first signs."""
    return [key["kid"] for key in read_keys(file).public_jwks]


@pytest.mark.program
@on_postgresql_alone
def test_the_page_says_how_long_invitations_of_the_old_key_are_open(server, tmp_path):
    (block,) = [block for block in blocks(FOLDER / "rotate-keys.md") if block.startswith("# invitations\n")]
    psql = find_program("psql", 16).path
    key = tmp_path / "key.pem"
    key.touch()
    with installation(server) as tenancy:
        schools = [
            create_school(tenancy, name=name, administrator=ADMINISTRATOR)
            for name in ("One", "Two", "Three", "Four")
        ]
        database = tenancy.admin_url.set(drivername="postgresql").render_as_string(hide_password=False)
        script = block.replace("/etc/school-service", str(tmp_path)).replace(" schools <<", ' "$SCHOOLS" <<')
        runuser = 'set -eu; runuser() { shift 4; "$PSQL" "$@"; }\n'

        def output() -> str:
            done = subprocess.run(
                ["bash", "-c", runuser + script],
                env={"PATH": os.environ["PATH"], "SCHOOLS": database, "PSQL": str(psql), "PGTZ": "UTC"},
                capture_output=True,
                text=True,
                timeout=180,
                check=True,
            )
            assert done.stderr == ""
            return done.stdout

        assert output() == ""
        # One of the new key, two of the old one, its newest among them, and an expired one.
        made = (
            ("2 minutes", "30 days"),
            ("-1 days", "3 days"),
            ("-2 days", "28 days"),
            ("-9 days", "-1 days"),
        )
        for number, (created, expires) in enumerate(made):
            invite = (
                f'INSERT INTO "{schools[number].schema}".invitations'
                " (id, user_id, code_hash, created_by, created_by_name, created_at, expires_at)"
                " SELECT gen_random_uuid(), id, %s, 'a', 'a', now() + %s::interval,"
                f" date_trunc('day', now()) + %s::interval FROM \"{schools[number].schema}\".users"
            )
            execute(tenancy.admin_url, invite, (str(number), created, expires))
        (newest,) = execute(
            tenancy.admin_url, "SELECT (date_trunc('day', now()) + interval '28 days')::date::text"
        )

        assert re.fullmatch(rf"{newest[0]} 00:00:00\+00\n", output())
