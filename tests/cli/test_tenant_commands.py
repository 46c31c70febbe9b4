"""What an operator does, by the real program, and what the service makes of it."""

import json
import re
from uuid import uuid4

import pytest

from tenants import placement
from tests.cli.program import run
from tests.factories import UNKNOWN_ID

pytestmark = pytest.mark.program


@pytest.fixture
def operate(installed, folder):
    """Run a verb, which has to succeed; answers its JSON."""

    def operate(*arguments, **options):
        # The operator's verbs sign nothing.
        settings = {name: value for name, value in installed.items() if name != "SIGNING_KEY"}
        done = run(*arguments, "--json", cwd=folder, settings=settings, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return json.loads(done.stdout)

    return operate


@pytest.fixture
def printed(cli):
    """Run a verb in this process, which has to succeed; answers its JSON."""

    def printed(*arguments, **options):
        result = cli(*arguments, "--json", **options)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return json.loads(result.stdout)

    return printed


@pytest.fixture
def token(printed, service):
    """The token of a client that may do everything."""
    made = printed("clients", "create", f"client {uuid4()}", "--all-schools", "--all-permissions")
    yield service.client_token(made["client_id"], made["client_secret"])
    printed("clients", "revoke", made["client_id"])


def test_the_administrator_of_a_new_school_signs_in_with_the_printed_password(operate, service, token):
    school = operate("tenants", "create", "Ẹ̀kọ́ College", "--admin", "ọ̀gá")

    signed_in = service.ok(
        "POST",
        "/users/login",
        token=token,
        school=school["id"],
        body={"username": "ọ̀gá", "password": school["password"]},
    )

    own = signed_in["access_token"]["access_token"]
    roles = service.ok("GET", "/roles", token=own, school=school["id"])
    assert signed_in["user"]["school"]["name"] == "Ẹ̀kọ́ College"
    assert [role["name"] for role in roles] == ["Administrator", "Bursar", "Registrar", "Teacher", "Viewer"]


def test_the_password_can_come_from_standard_input_and_is_not_printed(printed, service, token):
    password = " pass wọ́rd \n".encode()
    school = printed("tenants", "create", "Quiet College", "--password-stdin", stdin=password)

    body = {"username": "admin", "password": " pass wọ́rd "}
    signed_in = service.ok("POST", "/users/login", token=token, school=school["id"], body=body)

    assert set(school) == {"id", "name", "admin"}
    assert signed_in["user"]["username"] == "admin"


def test_a_suspended_school_is_closed_at_once_and_opens_again(operate, printed, service, token):
    school = printed("tenants", "create", "Paused College")

    def status_of():
        return service.request("GET", "/users", token=token, school=school["id"]).status

    assert status_of() == 200
    assert operate("tenants", "suspend", school["id"])["status"] == "suspended"
    assert status_of() == 403
    assert printed("tenants", "resume", school["id"])["status"] == "active"
    assert status_of() == 200


def test_the_token_of_a_revoked_client_stops_at_once(operate, printed, service):
    school = printed("tenants", "create", "Guarded College")
    grant = ("--school", school["id"], "--permission", "read:users")
    made = printed("clients", "create", f"client {uuid4()}", *grant)
    token = service.client_token(made["client_id"], made["client_secret"])

    def status_of(path):
        return service.request("GET", path, token=token, school=school["id"]).status

    assert (status_of("/users"), status_of("/roles")) == (200, 403)
    assert operate("clients", "revoke", made["client_id"]) == {"id": made["client_id"], "revoked": True}
    assert status_of("/users") == 401


def test_lists_and_records(cli):
    school_id = str(uuid4())
    made = cli("tenants", "create", "First name", "--id", school_id)
    assert made.exit_code == 0
    assert made.stdout.splitlines()[:3] == [
        f"id        {school_id}",
        "name      First name",
        "admin     admin",
    ]

    assert json.loads(cli("tenants", "rename", school_id, "Ìlú Ọba", "--json").stdout)["name"] == "Ìlú Ọba"
    shown = json.loads(cli("tenants", "show", school_id, "--json").stdout)
    assert (shown["name"], shown["schema"]) == ("Ìlú Ọba", f"school_{school_id.replace('-', '')}")
    listed = {school["id"]: school for school in json.loads(cli("tenants", "list", "--json").stdout)}
    assert listed[school_id] == shown
    status = {school["id"]: school for school in json.loads(cli("tenants", "status", "--json").stdout)}
    assert status[school_id]["state"] == "current"
    assert f"{school_id}  Ìlú Ọba" in cli("tenants", "list").stdout
    assert f"{len(listed)} schools" in cli("tenants", "status").stdout


def test_clients_are_listed_with_their_grants(cli):
    name = f"client {uuid4()}"
    school = json.loads(cli("tenants", "create", "Granted College", "--json").stdout)["id"]
    granted = ("--school", school, "--permission", "write:users", "--permission", "read:users")
    assert cli("clients", "create", name, *granted).exit_code == 0

    listed = {client["id"]: client for client in json.loads(cli("clients", "list", "--json").stdout)}

    assert listed[name] == {
        "id": name,
        "schools": [school],
        "permissions": ["read:users", "write:users"],
        "revoked": False,
    }


def test_what_is_there_already_is_refused(cli):
    school_id, name = str(uuid4()), f"client {uuid4()}"
    for arguments in (("tenants", "create", "Twice", "--id", school_id), ("clients", "create", name)):
        assert cli(*arguments).exit_code == 0
        again = cli(*arguments)
        assert (again.exit_code, again.stdout) == (1, "")
        assert again.stderr.startswith("Error: A ")
        assert "exists already" in again.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("tenants", "show", UNKNOWN_ID),
        ("tenants", "suspend", UNKNOWN_ID),
        ("tenants", "resume", UNKNOWN_ID),
        ("tenants", "rename", UNKNOWN_ID, "Name"),
        ("clients", "revoke", "nobody"),
        ("clients", "create", "stranger", "--school", UNKNOWN_ID),
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_said_in_one_line(cli, arguments):
    result = cli(*arguments)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1


def test_installing_again_changes_nothing(cli):
    before = cli("tenants", "list").stdout

    assert cli("tenants", "init").exit_code == 0
    assert cli("tenants", "list").stdout == before


def test_dividing_the_schools_over_logins_and_back(cli):
    done = cli("tenants", "init", SERVING_LOGINS="2")
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.fullmatch(
        r"Registry ready, served by the login (\w+); schools by \1_01 to \1_02\.\n", done.stdout
    )

    done = cli("tenants", "init", "--withdraw")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Memberships taken away: " in done.stdout


def test_status_says_when_the_logins_are_too_few(cli, monkeypatch):
    assert cli("tenants", "create", "Somewhere").exit_code == 0
    assert "SERVING_LOGINS" not in cli("tenants", "status").stdout

    monkeypatch.setattr(placement, "SCHOOLS_PER_LOGIN", 0.01)

    said = cli("tenants", "status").stdout
    assert "Note: " in said
    assert "set SERVING_LOGINS to 99 and run: school-service tenants init." in said


def test_the_audit_log_is_emptied_of_people_who_were_erased(printed, service, token):
    school = printed("tenants", "create", "Forgetful College")
    body = {"first_name": "Ada", "last_name": "Obi-Zxq", "admission_number": "1"}
    student = service.ok("POST", "/students", token=token, school=school["id"], body=body)
    service.ok("DELETE", f"/students/{student['id']}/data", token=token, school=school["id"])
    log = service.ok("GET", "/audit", token=token, school=school["id"])
    assert "Obi-Zxq" in str(log)

    done = printed("tenants", "erase-audit", school["id"])

    assert done["id"] == school["id"]
    assert done["entries"] > 0
    assert "Obi-Zxq" not in str(service.ok("GET", "/audit", token=token, school=school["id"]))
    assert printed("tenants", "erase-audit", school["id"])["entries"] == 0
