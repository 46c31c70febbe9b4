"""The operator's verbs, by the real program, and their effects on the service."""

import json
import re
from uuid import UUID, uuid4

import pytest
from sqlalchemy import make_url

from tenants import placement
from tenants.registry.schools import schema_name
from tests.cli.program import in_this_process, run
from tests.factories import UNKNOWN_ID
from tests.postgres import on_postgresql_alone
from tests.tenants.installations import execute

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
    assert [role["name"] for role in roles] == [
        "Administrator",
        "Bursar",
        "Guardian",
        "Principal",
        "Registrar",
        "Student",
        "Teacher",
        "Viewer",
    ]


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


def test_a_client_with_another_secret_gets_tokens_by_that_alone(printed, service):
    school = printed("tenants", "create", "Rotated College")
    name = f"client {uuid4()}"
    old = printed("clients", "create", name, "--school", school["id"], "--permission", "read:users")
    before = service.client_token(name, old["client_secret"])

    made = printed("clients", "rotate", name)

    def status_of(token):
        return service.request("GET", "/users", token=token, school=school["id"]).status

    assert set(made) == {"client_id", "client_secret"}
    assert made["client_secret"] != old["client_secret"]
    assert token_status(service, name, old["client_secret"]) == 401
    assert status_of(before) == 200  # until it expires
    after = service.client_token(name, made["client_secret"])
    assert status_of(after) == 200

    ended = printed("clients", "rotate", name, "--end-tokens")
    assert (status_of(before), status_of(after)) == (401, 401)
    assert token_status(service, name, made["client_secret"]) == 401
    assert status_of(service.client_token(name, ended["client_secret"])) == 200


def token_status(service, client_id, secret):
    credentials = {
        "client_id": client_id,
        "client_secret": secret,
        "audience": "school-service",
        "grant_type": "client_credentials",
    }
    return service.request("POST", "/auth/oauth/token", body=credentials).status


def test_the_id_of_a_revoked_client_can_be_granted_anew_and_revives_no_token(printed, cli, service):
    first, second = (printed("tenants", "create", name)["id"] for name in ("First College", "Second College"))
    name = f"client {uuid4()}"
    old = printed("clients", "create", name, "--school", first, "--permission", "read:users")
    token = service.client_token(name, old["client_secret"])
    printed("clients", "revoke", name)

    made = printed("clients", "create", name, "--school", second, "--permission", "read:roles")

    def status_of(token, path, school):
        return service.request("GET", path, token=token, school=school).status

    for path in ("/users", "/roles"):
        for school in (first, second):
            assert status_of(token, path, school) in {401, 403}
    body = {"username": "admin", "password": "wrong"}
    assert service.request("POST", "/users/login", token=token, school=first, body=body).status in {401, 403}
    assert token_status(service, name, old["client_secret"]) == 401
    new = service.client_token(name, made["client_secret"])
    assert status_of(new, "/roles", second) == 200
    assert status_of(new, "/users", second) == 403
    assert status_of(new, "/roles", first) == 403
    # And once it is granted the school of before again, the token of before is refused for itself.
    printed("clients", "revoke", name)
    again = printed("clients", "create", name, "--school", first, "--permission", "read:users")
    assert status_of(token, "/users", first) == 401
    assert status_of(new, "/users", first) in {401, 403}
    assert status_of(service.client_token(name, again["client_secret"]), "/users", first) == 200
    assert cli("clients", "create", name).exit_code == 1
    (listed,) = [client for client in printed("clients", "list") if client["id"] == name]
    assert listed == {
        "id": name,
        "schools": [first],
        "permissions": ["read:users"],
        "revoked": False,
        "tells_addresses": False,
        "name": None,
        "is_public": False,
        "redirect_uris": [],
        "post_logout_uris": [],
        "user_permissions": None,
        "idle_days": 14,
        "session_days": 90,
    }


@pytest.mark.parametrize("permission", ["read:student", "delete:everything", "write:audit"])
def test_an_unknown_permission_is_refused_with_the_list_of_permissions(cli, permission):
    name = f"client {uuid4()}"
    result = cli("clients", "create", name, "--permission", "read:students", "--permission", permission)

    assert (result.exit_code, result.stdout) == (2, "")
    assert f"There is no permission {permission}. Permissions: " in result.stderr
    assert "read:students, " in result.stderr
    assert name not in cli("clients", "list").stdout


DETAILS = {
    "address": "12 Ọba Road, Yàbá",
    "phone_number": "+234 803 555 0123, 01-555 0199",
    "email_address": "office@queens.example",
    "motto": "Pass on the torch",
    "website": "https://queens.example/",
    "logo_url": "https://queens.example/logo.png",
}
OPTIONS = {
    "address": "--address",
    "phone_number": "--phone",
    "email_address": "--email",
    "motto": "--motto",
    "website": "--website",
    "logo_url": "--logo-url",
}


def options(details):
    return [part for name, value in details.items() for part in (OPTIONS[name], value)]


def test_a_school_has_details_from_its_creation_on_and_users_see_them(printed, service, token):
    given = {**DETAILS, "motto": "  Pass on the torch ", "website": ""}
    school = printed("tenants", "create", "Detailed College", *options(given))
    other = printed("tenants", "create", "Plain College")

    shown = {**DETAILS, "website": None}
    assert {name: school[name] for name in DETAILS if name in school} == {
        name: value for name, value in shown.items() if value
    }
    listed = {record["id"]: record for record in printed("tenants", "list")}
    assert {name: listed[school["id"]][name] for name in DETAILS} == shown
    assert {listed[other["id"]][name] for name in DETAILS} == {None}
    body = {"username": "admin", "password": school["password"]}
    user = service.ok("POST", "/users/login", token=token, school=school["id"], body=body)["user"]
    # The interface has no website.
    assert user["school"] == {
        "id": school["id"],
        "name": "Detailed College",
        **{name: value for name, value in DETAILS.items() if name != "website"},
    }


def test_a_detail_is_changed_alone_taken_away_by_an_empty_text_and_on_record(printed, cli, service, token):
    school = printed("tenants", "create", "Moving College", *options(DETAILS))["id"]
    other = printed("tenants", "create", "Staying College", *options(DETAILS))["id"]

    edited = printed("tenants", "edit", school, "--phone", "01 555 0100", "--motto", " ", "--website", "")

    changed = {"phone_number": "01 555 0100", "motto": None, "website": None}
    assert {name: edited[name] for name in DETAILS} == {**DETAILS, **changed}
    assert printed("tenants", "show", school) == edited
    untouched = printed("tenants", "show", other)
    assert {name: untouched[name] for name in DETAILS} == DETAILS
    entry = service.ok("GET", "/audit", token=token, school=school)["data"][0]
    assert (entry["entity"], entry["new"]) == ("school", changed)
    assert entry["old"] == {name: DETAILS[name] for name in changed}
    assert cli("tenants", "edit", school, "--motto", "Onward").exit_code == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("address", "x" * 2001),
        ("address", "two\nlines"),
        ("address", "a\u200bb"),
        ("phone_number", "call us"),
        ("phone_number", "12"),
        ("phone_number", "0803 555 0123 ext nine"),
        ("phone_number", "1" * 121),
        ("email_address", "office"),
        ("email_address", "office@school"),
        ("email_address", "office@@school.example"),
        ("email_address", "a b@school.example"),
        ("email_address", f"a@{'x' * 250}.example"),
        ("motto", "\udcff"),
        ("website", "school.example"),
        ("website", "ftp://school.example"),
        ("website", "javascript:alert(1)"),
        ("website", "https://"),
        ("website", "https://user:word@school.example"),
        ("website", "https://school.example/a b"),
        ("website", 'https://school.example/"><script>'),
        ("website", "https://school.example:99999"),
        ("logo_url", "data:image/png;base64,AAAA"),
    ],
)
def test_a_detail_that_can_not_be_is_refused(cli, name, value):
    for verb in (("create", "Refused College"), ("edit", UNKNOWN_ID)):
        result = cli("tenants", *verb, OPTIONS[name], value)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert f"Invalid value for '{OPTIONS[name]}'" in result.stderr


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
        "tells_addresses": False,
        "name": None,
        "is_public": False,
        "redirect_uris": [],
        "post_logout_uris": [],
        "user_permissions": None,
        "idle_days": 14,
        "session_days": 90,
    }


def test_a_client_is_let_tell_addresses_by_the_operator_alone(cli):
    def tells_addresses(name):
        listed = json.loads(cli("clients", "list", "--json").stdout)
        return next(client["tells_addresses"] for client in listed if client["id"] == name)

    let, not_let = f"client {uuid4()}", f"client {uuid4()}"
    assert cli("clients", "create", let, "--tells-addresses").exit_code == 0
    assert cli("clients", "create", not_let).exit_code == 0
    assert (tells_addresses(let), tells_addresses(not_let)) == (True, False)

    edited = json.loads(cli("clients", "edit", not_let, "--tells-addresses", "--json").stdout)
    assert edited == {"id": not_let, "tells_addresses": True}
    assert cli("clients", "edit", let, "--tells-no-addresses").exit_code == 0
    assert (tells_addresses(let), tells_addresses(not_let)) == (False, True)
    # An id that is granted anew is let nothing that it was let before.
    assert cli("clients", "revoke", not_let).exit_code == 0
    assert cli("clients", "edit", not_let, "--tells-addresses").exit_code == 1
    assert cli("clients", "create", not_let).exit_code == 0
    assert tells_addresses(not_let) is False
    assert cli("clients", "edit", let).exit_code == 2


def test_a_school_or_client_that_is_there_already_is_refused(cli):
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
        ("tenants", "edit", UNKNOWN_ID, "--motto", "Onward"),
        ("clients", "rotate", "nobody"),
        ("clients", "revoke", "nobody"),
        ("clients", "edit", "nobody", "--tells-addresses"),
        ("clients", "create", "stranger", "--school", UNKNOWN_ID),
    ],
    ids=" ".join,
)
def test_an_unknown_school_or_client_is_said_in_one_line(cli, arguments):
    result = cli(*arguments)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1


def test_installing_again_changes_nothing(cli):
    before = cli("tenants", "list").stdout

    done = cli("tenants", "init")
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 1)
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


@in_this_process
def test_status_says_when_the_logins_are_too_few(cli, monkeypatch):
    assert cli("tenants", "create", "Somewhere").exit_code == 0
    assert "SERVING_LOGINS" not in cli("tenants", "status").stdout

    monkeypatch.setattr(placement, "SCHOOLS_PER_LOGIN", 0.01)

    said = cli("tenants", "status").stdout
    assert "Note: " in said
    assert "set SERVING_LOGINS to 99 and run: school-service tenants init." in said


@on_postgresql_alone
@pytest.mark.parametrize("verb", [("status", "--nodes"), ("move", UNKNOWN_ID, "elsewhere:5432")])
@pytest.mark.parametrize(
    ("switch", "said"),
    [
        ("off", "TENANT_DISTRIBUTED is off: all schools are on one server."),
        ("on", "TENANT_DISTRIBUTED is on, but the database has no extension citus: create it there"),
    ],
)
def test_nodes_and_moves_are_refused_where_citus_places_no_schools(cli, verb, switch, said):
    done = cli("tenants", *verb, TENANT_DISTRIBUTED=switch)

    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: {said}")


def test_old_entries_of_the_audit_log_are_moved_into_files(cli, printed, logins, tmp_path):
    school = printed("tenants", "create", "Orderly College")["id"]
    printed("tenants", "rename", school, "Orderly School")
    execute(
        make_url(logins["ADMIN_DATABASE_URL"]),
        f"UPDATE {schema_name(UUID(school))}.audit_entries SET at = at - interval '91 days'",
    )
    older = ("--older-than", "90")

    for wrong in (
        (school, "x", "--older-than", "89"),
        (school, *older),
        ("--all", str(tmp_path), school, *older),
    ):
        assert cli("tenants", "prune-audit", *wrong).exit_code == 2, wrong
    nowhere = cli("tenants", "prune-audit", school, str(tmp_path / "no" / "folder"), *older)
    assert (nowhere.exit_code, "can't be written: No such file" in nowhere.stderr) == (1, True)
    done = printed("tenants", "prune-audit", "--all", str(tmp_path), *older)

    (pruned,) = [record for record in done["pruned"] if record["id"] == school]
    (file,) = tmp_path.glob(f"{school}-*.ndjson")
    assert (pruned["file"], pruned["entries"]) == (str(file), len(file.read_text().splitlines()))
    assert (pruned["entries"] > 0, done["failed"]) == (True, [])
    # The entry that says so is new.
    assert printed("tenants", "prune-audit", school, str(tmp_path / "more"), *older) == {
        "id": school,
        "entries": 0,
        "file": None,
    }


def test_the_audit_log_is_emptied_of_erased_people(printed, service, token):
    school = printed("tenants", "create", "Forgetful College")
    body = {"first_name": "Ada", "last_name": "Obi-Zxqvjk", "admission_number": "1"}
    student = service.ok("POST", "/students", token=token, school=school["id"], body=body)
    service.ok("DELETE", f"/students/{student['id']}/data", token=token, school=school["id"])
    log = service.ok("GET", "/audit", token=token, school=school["id"])
    assert "Obi-Zxqvjk" in str(log)

    done = printed("tenants", "erase-audit", school["id"])

    assert done["id"] == school["id"]
    assert done["entries"] > 0
    assert "Obi-Zxqvjk" not in str(service.ok("GET", "/audit", token=token, school=school["id"]))
    assert printed("tenants", "erase-audit", school["id"])["entries"] == 0
