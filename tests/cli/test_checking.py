"""`school-service check`: the settings, their consequences and faults, and the exit status."""

from __future__ import annotations

import json
import re

from sqlalchemy import make_url

from school_service.release import this_release
from tests.auth.outside_provider import OutsideProvider

SECRET = "b9z4-secret"


def test_sound_settings_are_reported_with_their_consequences(cli, installed):
    done = cli("check", "--json", PUBLIC_URL="https://schools.example.org/", POOL_SIZE="20")

    report = json.loads(done.stdout)
    assert (done.exit_code, done.stderr) == (0, "")
    given = {
        **dict.fromkeys(installed, "set"),
        "POOL_SIZE": "20",
        "PUBLIC_URL": "https://schools.example.org/",
    }
    assert report["settings"] == given
    assert (report["registry"], report["release"]) == (this_release().registry, this_release().as_text())
    assert report["reached"] == ["DATABASE_URL", "ADMIN_DATABASE_URL"]
    assert (report["note"], report["unwise"], report["wrong"]) == ([], [], [])
    assert all(re.fullmatch(r"\d+ at t\d{4}", at) for at in report["schools"])


def test_unwise_settings_leave_the_exit_status_and_the_workers_count(cli, installed):
    done = cli(
        "check", "--workers", "2", POOL_SIZE="6", ADMIN_DATABASE_URL=None, PUBLIC_URL="http://x.example.org"
    )

    assert (done.exit_code, done.stderr) == (0, "")
    unwise = [line for line in done.stdout.splitlines() if line.startswith("Unwise: ")]
    assert len(unwise) == 2
    assert any("(pool_size 3, threads 4)" in line for line in unwise)
    assert any("PUBLIC_URL is not https" in line for line in unwise)
    assert re.search(r"^POOL_SIZE +6$", done.stdout, re.MULTILINE)


def test_an_unreachable_server_is_named_without_a_secret_and_is_status_1(cli, installed):
    nowhere = (
        make_url(installed["DATABASE_URL"]).set(database="nowhere").render_as_string(hide_password=False)
    )
    lost = {
        "DATABASE_URL": nowhere,
        "ADMIN_DATABASE_URL": f"postgresql://u:{SECRET}@127.0.0.1:1/x",
        "AUTH_URL": "http://127.0.0.1:1/",
        "AUTH_JWKS_URL": f"http://127.0.0.1:1/keys?token={SECRET}",
    }

    done = cli("check", **lost)

    assert done.exit_code == 1
    for what in (
        "The database of DATABASE_URL can't be used: ",
        "The database of ADMIN_DATABASE_URL can't be used: ",
        "The keys of the provider of AUTH_URL can't be fetched.",
    ):
        assert f"Wrong: {what}" in done.stderr
    assert SECRET not in done.output
    assert make_url(nowhere).password not in done.output


def test_the_keys_of_a_provider_are_reached(cli):
    with OutsideProvider() as provider:
        done = cli("check", "--json", AUTH_URL=provider.url)

    assert "AUTH_URL" in json.loads(done.stdout)["reached"]


def test_a_setting_that_is_wrong_or_missing_is_one_line(cli):
    for wrong, said in (
        ({"POOL_SIZE": "x"}, "Error: POOL_SIZE must be a whole number"),
        ({"SIGNING_KEY": None}, "Error: SIGNING_KEY is not set"),
    ):
        done = cli("check", **wrong)
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert done.stderr.startswith(said)
