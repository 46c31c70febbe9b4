"""`clients create` and `edit` for people who sign in, and the short names of schools."""

from __future__ import annotations

import json
from uuid import uuid4

import psycopg2
import pytest

BACK = "https://app.example.com/back"


def listed(cli, name):
    clients = json.loads(cli("clients", "list", "--json").stdout)
    return next(client for client in clients if client["id"] == name)


@pytest.fixture
def name():
    return f"client {uuid4()}"


def test_a_public_client_has_no_secret(cli, name):
    done = cli("clients", "create", name, "--public", "--all-schools", "--redirect-uri", BACK, "--json")

    assert json.loads(done.stdout) == {"client_id": name}
    assert "CORS_ORIGINS" in done.stderr
    assert "https://app.example.com" in done.stderr
    assert listed(cli, name) == {
        "id": name,
        "schools": "all",
        "permissions": [],
        "revoked": False,
        "tells_addresses": False,
        "name": None,
        "is_public": True,
        "redirect_uris": [BACK],
        "post_logout_uris": [],
        "user_permissions": None,
        "idle_days": 14,
        "session_days": 90,
    }
    assert cli("clients", "rotate", name).exit_code == 1
    assert cli("clients", "rotate", name, "--end-tokens").exit_code == 0
    assert cli("clients", "create", f"{name}2", "--public", "--permission", "read:users").exit_code == 2


def test_each_option_replaces_its_values_of_before(cli, name):
    local = "http://127.0.0.1/back"
    created = cli(
        *(
            "clients",
            "create",
            name,
            "--redirect-uri",
            BACK,
            "--redirect-uri",
            local,
            "--redirect-uri",
            local,
        ),
        *("--post-logout-uri", BACK, "--name", "  Ìwé  ", "--user-permission", "read:users"),
        *("--user-permission", "read:terms", "--idle-days", "7", "--session-days", "30", "--json"),
    )
    assert json.loads(created.stdout).keys() == {"client_id", "client_secret"}
    made = listed(cli, name)
    assert (made["redirect_uris"], made["name"]) == ([BACK, local], "Ìwé")
    assert made["user_permissions"] == ["read:terms", "read:users"]
    assert (made["idle_days"], made["session_days"]) == (7, 30)

    edited = json.loads(
        cli("clients", "edit", name, "--redirect-uri", local, "--sign-in-only", "--json").stdout
    )
    assert edited == {"id": name, "redirect_uris": [local], "user_permissions": []}
    now = listed(cli, name)
    assert now == {**made, "redirect_uris": [local], "user_permissions": []}
    emptied = ("--user-permission", "", "--name", "", "--post-logout-uri", "")
    assert cli("clients", "edit", name, *emptied).exit_code == 0
    now = listed(cli, name)
    assert (now["user_permissions"], now["name"], now["post_logout_uris"]) == (None, None, [])
    assert json.loads(cli("clients", "edit", name, "--public", "--json").stdout) == {
        "id": name,
        "is_public": True,
    }
    again = json.loads(cli("clients", "edit", name, "--confidential", "--json").stdout)
    assert again.keys() == {"id", "is_public", "client_secret"}
    assert "client_secret" not in json.loads(cli("clients", "edit", name, "--confidential", "--json").stdout)
    assert "redirect_uris" in cli("clients", "list").stdout


@pytest.mark.parametrize(
    "options",
    [
        ("--redirect-uri", "http://app.example.com/back"),
        ("--redirect-uri", "https://app.example.com/*"),
        ("--post-logout-uri", "javascript:alert(1)"),
        ("--redirect-uri", "https://app.example.com/#x"),
        ("--user-permission", "read:nothing"),
        ("--user-permission", "read:users", "--sign-in-only"),
        ("--idle-days", "0"),
        ("--session-days", "366"),
        ("--name", "x" * 121),
        tuple(part for number in range(11) for part in ("--redirect-uri", f"{BACK}/{number}")),
    ],
)
def test_wrong_options_are_refused(cli, name, options):
    refused = cli("clients", "create", name, *options)

    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "Traceback" not in refused.stderr


def test_a_client_that_is_not_there_is_not_edited(cli, name):
    assert cli("clients", "edit", name, "--name", "x").exit_code == 1
    assert cli("clients", "edit", name).exit_code == 2


def test_the_verb_says_when_sessions_end(cli, name):
    cli("clients", "create", name, "--public", "--all-schools", "--user-permission", "read:classrooms")
    for options, words, absent in (
        (("--user-permission", "read:classrooms", "--user-permission", "write:classrooms"), (), ("session",)),
        (("--user-permission", "write:classrooms"), ("next refresh", "--end-sessions"), ("are ended",)),
        (("--user-permission", "write:classrooms"), (), ("session",)),
        (("--user-permission", ""), (), ("session",)),
        (("--sign-in-only",), ("next refresh", "--end-sessions"), ("are ended",)),
        (("--end-sessions",), ("sessions are ended",), ("next refresh",)),
        (("--user-permission", "", "--end-sessions"), ("sessions are ended",), ("next refresh",)),
    ):
        done = cli("clients", "edit", name, *options, "--json")
        assert done.exit_code == 0, done.stderr
        assert all(word in done.stderr for word in words), (options, done.stderr)
        assert not any(word in done.stderr for word in absent), (options, done.stderr)
        assert (json.loads(done.stdout).get("sessions") == "ended") == ("--end-sessions" in options)
    assert cli("clients", "edit", "nobody", "--end-sessions").exit_code == 1


RESERVED = (
    f"{BACK}?code=1",
    f"{BACK}?a=1&state",
    f"{BACK}?%69ss=x",
    "org.example.app:/back?error=",
)


@pytest.mark.parametrize("uri", RESERVED)
def test_a_redirect_uri_with_a_parameter_of_the_answer_is_refused_and_one_that_is_there_goes_on(
    cli, name, uri, installed
):
    refused = cli("clients", "create", name, "--redirect-uri", uri)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "code, state, iss, error, scope" in refused.stderr
    assert cli("clients", "create", name, "--public", "--all-schools", "--redirect-uri", BACK).exit_code == 0
    assert cli("clients", "edit", name, "--redirect-uri", uri).exit_code == 2
    with psycopg2.connect(installed["ADMIN_DATABASE_URL"]) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE registry.clients SET redirect_uris = %s WHERE id = %s", ([BACK, uri], name))
    connection.close()

    for options in ((), ("--json",)):
        done = cli("clients", "list", *options)
        assert done.exit_code == 0
        assert f"{name}: {uri} has a parameter of our answer" in done.stderr
        assert f"{name}: {BACK} has" not in done.stderr
    assert listed(cli, name)["redirect_uris"] == [BACK, uri]
    assert cli("clients", "edit", name, "--name", "still edited").exit_code == 0
    assert cli("clients", "revoke", name).exit_code == 0
    assert uri not in cli("clients", "list").stderr


def test_schools_have_short_names_each_its_own(cli):
    short = f"s-{uuid4().hex[:12]}"
    first = json.loads(cli("tenants", "create", "First", "--short-name", short, "--json").stdout)
    assert first["short_name"] == short
    assert json.loads(cli("tenants", "show", first["id"], "--json").stdout)["short_name"] == short
    taken = cli("tenants", "create", "Second", "--short-name", short)
    assert (taken.exit_code, taken.stderr) == (1, "Error: Another school has this short name.\n")
    second = json.loads(cli("tenants", "create", "Second", "--json").stdout)["id"]
    assert cli("tenants", "edit", second, "--short-name", short).exit_code == 1
    assert cli("tenants", "edit", first["id"], "--short-name", "").exit_code == 0
    assert cli("tenants", "edit", second, "--short-name", short).exit_code == 0
    assert json.loads(cli("tenants", "show", first["id"], "--json").stdout)["short_name"] is None
    for wrong in ("ab", "-abc", "abc-", "ABC", "a_b", "ọbà", "a" * 41, "a b c"):
        assert cli("tenants", "edit", second, "--short-name", wrong).exit_code == 2
