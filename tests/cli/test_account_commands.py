"""Accounts in the operator's hands: sessions ended, an administrator again."""

import json
from contextlib import closing
from uuid import uuid4

import psycopg2
import pytest

from tenants.migrations.migration_sql import head
from tenants.operator_log import operator_name
from tests.factories import UNKNOWN_ID

pytestmark = pytest.mark.program


@pytest.fixture
def operate(cli):
    """Run a verb in this process, which has to succeed; answers its JSON."""

    def operate(*arguments, **options):
        result = cli("tenants", *arguments, "--json", **options)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return json.loads(result.stdout)

    return operate


@pytest.fixture
def token(cli, service):
    """The token of a client that may do everything."""
    made = json.loads(
        cli("clients", "create", f"client {uuid4()}", "--all-schools", "--all-permissions", "--json").stdout
    )
    return service.client_token(made["client_id"], made["client_secret"])


class School:
    """A school of the installation, over HTTP."""

    def __init__(self, service, token, made):
        self.service, self.token, self.id = service, token, made["id"]
        self.password = made["password"]

    def call(self, method, path, token=None, **options):
        return self.service.ok(method, path, token=token or self.token, school=self.id, **options)

    def sign_in(self, username, password):
        body = {"username": username, "password": password}
        return self.call("POST", "/users/login", body=body)["access_token"]["access_token"]

    def user(self, username, password="a password"):
        body = {
            "username": username,
            "password": password,
            "first_name": "A",
            "last_name": "B",
            "gender": "FEMALE",
        }
        return self.call("POST", "/users", body=body)["user"]

    def works(self, token):
        status = self.service.request("GET", "/states", token=token, school=self.id).status
        assert status in {200, 401}
        return status == 200


@pytest.fixture
def by_hand(installed):
    """Run a statement as the operator would in psql, in a school's schema."""

    def by_hand(statement, school=None):
        with (
            closing(psycopg2.connect(installed["ADMIN_DATABASE_URL"])) as connection,
            connection.cursor() as cursor,
        ):
            schema = "registry" if school is None else f"school_{school.replace('-', '')}"
            cursor.execute(f'SET search_path TO "{schema}"')
            cursor.execute(statement)
            connection.commit()

    return by_hand


@pytest.fixture
def school(operate, service, token):
    """A new school."""
    return School(service, token, operate("create", "Queen's College, Yaba"))


@pytest.fixture
def other_school(operate, service, token):
    """Another."""
    return School(service, token, operate("create", "Barewa College, Zaria"))


def test_the_sessions_of_all_users_end(operate, school, other_school):
    school.user("ada")
    tokens = [school.sign_in("admin", school.password), school.sign_in("ada", "a password")]
    theirs = other_school.sign_in("admin", other_school.password)
    assert all(map(school.works, tokens))

    assert operate("end-sessions", school.id) == {"id": school.id, "users": 2}

    assert not any(map(school.works, tokens))
    assert other_school.works(theirs)
    assert school.works(school.sign_in("ada", "a password"))


def test_the_sessions_of_one_user_end(operate, school):
    school.user("ada")
    admin, ada = school.sign_in("admin", school.password), school.sign_in("ada", "a password")

    assert operate("end-sessions", school.id, "--user", "ada") == {"id": school.id, "users": 1}

    assert school.works(admin)
    assert not school.works(ada)
    entry = school.call("GET", "/audit")["data"][0]
    assert (entry["actor"], entry["new"]) == (operator_name(), {"sessions": "ended"})


def test_an_administrator_gets_another_password(operate, school, other_school):
    before = school.sign_in("admin", school.password)

    made = operate("reset-admin", school.id)

    assert set(made) == {"id", "admin", "password"}
    assert (made["id"], made["admin"]) == (school.id, "admin")
    assert not school.works(before)
    token = school.sign_in("admin", made["password"])
    assert school.call("GET", "/roles", token=token)
    assert other_school.works(other_school.sign_in("admin", other_school.password))


def test_a_deleted_administrator_comes_back_with_every_permission(operate, school):
    second = operate(
        "reset-admin", school.id, "--user", "Ọ̀gá", "--password-stdin", stdin=b"a pass-word of theirs"
    )
    assert second == {"id": school.id, "admin": "Ọ̀gá"}
    token = school.sign_in("Ọ̀gá", "a pass-word of theirs")
    users = {user["username"]: user for user in school.call("GET", "/users", token=token)["data"]}
    school.call("DELETE", f"/users/{users['admin']['id']}/delete", token=token)
    roles = {role["name"]: role for role in school.call("GET", "/roles", token=token)}
    assert len(roles["Administrator"]["permissions"]) > 50

    made = operate("reset-admin", school.id)

    body = {"username": "admin", "password": made["password"]}
    signed_in = school.call("POST", "/users/login", body=body)
    assert signed_in["user"]["id"] == users["admin"]["id"]
    assert len(signed_in["permissions"]) == len(roles["Administrator"]["permissions"])


def test_a_school_whose_administrator_was_emptied_by_hand_gets_one(operate, school, by_hand):
    by_hand("TRUNCATE user_roles; DELETE FROM roles WHERE name = 'Administrator'", school.id)
    token = school.sign_in("admin", school.password)
    assert school.service.request("GET", "/roles", token=token, school=school.id).status == 403

    made = operate("reset-admin", school.id)

    token = school.sign_in("admin", made["password"])
    roles = {role["name"]: role for role in school.call("GET", "/roles", token=token)}
    assert len(roles["Administrator"]["permissions"]) > 50
    assert school.call("POST", "/roles", token=token, body={"name": "Cook", "avatar": 1})


@pytest.mark.parametrize("verb", ["end-sessions", "reset-admin"])
def test_an_unknown_school_is_reported(cli, verb):
    unknown = cli("tenants", verb, UNKNOWN_ID)
    no_id = cli("tenants", verb, "x")

    assert (unknown.exit_code, unknown.stderr) == (1, f"Error: No school has the id {UNKNOWN_ID}.\n")
    assert no_id.exit_code == 2


def test_an_unknown_user_is_reported(cli, school):
    result = cli("tenants", "end-sessions", school.id, "--user", "nobody")

    assert result.exit_code == 1
    assert result.stderr == f"Error: The school {school.id} has no account nobody.\n"


def test_a_school_of_an_older_revision_is_left_alone(operate, cli, school, by_hand):
    revision = operate("show", school.id)["revision"]
    by_hand(f"UPDATE schools SET revision = 't0003' WHERE id = '{school.id}'")

    for verb in ("end-sessions", "reset-admin"):
        result = cli("tenants", verb, school.id)
        assert result.exit_code == 1
        assert "is at revision t0003. Run: school-service tenants migrate" in result.stderr
    by_hand(f"UPDATE schools SET revision = '{revision}' WHERE id = '{school.id}'")
    assert operate("end-sessions", school.id) == {"id": school.id, "users": 1}


def test_roles_are_switched_after_a_look(operate, cli, school):
    user = school.user("ada")["id"]
    roles = {role["name"]: role["id"] for role in school.call("GET", "/roles")}
    school.call("PUT", f"/users/{user}/roles", body={"role": roles["Teacher"]})

    school.call("DELETE", f"/roles/{roles['Principal']}")

    seen = operate("switch-roles", school.id, "--school", "Teacher", "--add-seeded")
    assert [each["username"] for each in seen["users"]] == ["ada"]
    assert (seen["switched"], seen["added"]) == (False, ["Principal"])
    assert {role["name"] for role in school.call("GET", "/roles")} == {*roles} - {"Principal"}

    done = operate("switch-roles", school.id, "--school", "Teacher", "--add-seeded", "--yes")
    assert done == {**seen, "switched": True}
    reaches = {role["name"]: role["reach"] for role in school.call("GET", "/roles")}
    assert (reaches["Teacher"], reaches["Student"], reaches["Principal"]) == ("SCHOOL", "OWN", "SCHOOL")
    entry = school.call("GET", "/audit")["data"][0]
    assert (entry["actor"], entry["entity"]) == (operator_name(), "role")
    assert (seen["differs"], seen["users_losing"]) == ([], 0)
    teacher = school.call("GET", f"/roles/{roles['Teacher']}")
    kept = [each for each in teacher["permissions"] if each["section"] != "attendance"]
    permissions = {"permissionIds": [each["id"] for each in kept]}
    school.call("PATCH", f"/roles/{roles['Teacher']}/permissions", body=permissions)
    shown = cli("tenants", "switch-roles", school.id, "--own", "Teacher").output
    assert "Teacher: SCHOOL -> OWN" in shown
    assert "Teacher has other permissions than that of a new school." in shown
    assert "  lacks: read:attendance, write:attendance\n" in shown
    assert "Users whose answers change: 1, of whom lose something: 1" in shown
    assert "own alone: " in shown


def test_roles_that_can_not_be_switched(cli, school):
    for options in (
        [],
        ["--own", "Cook"],
        ["--own", "Administrator"],
        ["--own", "Teacher", "--school", "Teacher"],
    ):
        result = cli("tenants", "switch-roles", school.id, *options)

        assert result.exit_code != 0, options


def test_resetting_an_administrator_ends_invitation_and_links(operate, school, by_hand):
    user, other = school.user("ada"), school.user("bisi")
    body = {"users": [user["id"], other["id"]], "everybody": True}
    codes = [invitation["code"] for invitation in school.call("POST", "/invitations", body=body)]
    for way, each in (("ADMINISTRATOR", user), ("INVITATION", user), ("ADMINISTRATOR", other)):
        by_hand(
            "INSERT INTO user_identities (id, user_id, issuer, subject, way, created_at, created_by, created_by_name)"
            f" VALUES ('{uuid4()}', '{each['id']}', 'https://id.example.org', '{uuid4()}', '{way}', now(), 'a', 'A')",
            school.id,
        )

    operate("reset-admin", school.id, "--user", "ada")

    taken = {"code": codes[0], "password": "a password of mine"}
    assert (
        school.service.request(
            "POST", "/users/login/invitation", token=school.token, school=school.id, body=taken
        ).status
        == 401
    )
    assert school.call("GET", f"/users/{user['id']}/identities") == []
    assert [invitation["user"] for invitation in school.call("GET", "/invitations")["data"]] == [other["id"]]
    assert len(school.call("GET", f"/users/{other['id']}/identities")) == 1
    # Credentials given by the operator may do all, and stay when the account gains.
    told = school.call("POST", "/permissions", body={"section": "canteen", "access": "serve"})
    assert {
        credential["username"]: (credential["made_by_name"], credential["ended"])
        for credential in told["credentials"]
    } == {
        "ada": (operator_name(), False),
        "admin": (operator_name(), False),
    }


def test_check_lists_roles_and_clients_that_give_no_student_or_guardian_a_password(
    operate, cli, school, other_school, by_hand
):
    ids = {
        f"{permission['access']}:{permission['section']}": permission["id"]
        for permission in school.call("GET", "/permissions")
    }

    def role(name, *permissions, reach="SCHOOL"):
        made = school.call("POST", "/roles", body={"name": name, "avatar": 1, "reach": reach})
        body = {"permissionIds": [ids[each] for each in permissions]}
        school.call("PATCH", f"/roles/{made['id']}/permissions", body=body)

    role("Clerk", "write:users", "read:users")
    role("Admissions", "write:students")
    role("Office", "write:students", "write:users", "read:results")
    role("Reader", "read:students")
    role("Own", "write:users", reach="OWN")
    importer, reader = f"importer {uuid4()}", f"reader {uuid4()}"
    granted = ["--permission", "write:students"]
    cli("clients", "create", importer, "--school", school.id, *granted)
    cli("clients", "create", reader, "--school", school.id, *granted, "--permission", "read:results")

    findings = operate("check")

    roles = [(finding["school"], finding["role"]) for finding in findings if finding.get("role")]
    assert [role for role in roles if role[0] in (school.id, other_school.id)] == [
        (school.id, "Admissions"),
        (school.id, "Clerk"),
    ]
    clients = {finding["client"] for finding in findings if "client" in finding}
    assert (importer in clients, reader in clients) == (True, False)
    cli("clients", "revoke", importer)
    shown = cli("tenants", "check")
    assert (shown.exit_code, "keep the rules" in shown.output) == (0, True)
    assert f"({school.id}): the role Clerk writes users or students and lacks read:results" in shown.output
    assert importer not in shown.output


def test_check_looks_at_schools_that_are_to_be_migrated_and_names_older_ones(operate, cli, school, by_hand):
    for revision, text in (("t0022", None), ("t0012", "is at revision t0012")):
        by_hand(f"UPDATE schools SET revision = '{revision}' WHERE id = '{school.id}'")
        findings = [finding for finding in operate("check") if finding["school"] == school.id]
        assert [finding["text"].partition(": ")[2].partition(";")[0] for finding in findings] == (
            [text] if text else []
        )
    by_hand(f"UPDATE schools SET revision = '{head()}' WHERE id = '{school.id}'")


def test_check_says_where_the_database_is_silent(cli):
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"

    done = cli("tenants", "check", DATABASE_URL=nowhere, ADMIN_DATABASE_URL=nowhere)

    assert done.exit_code == 0
    assert "Note: no roles and clients were looked at" in done.stderr
    assert "keep the rules" in done.stdout
