"""PASSWORD_POLICY: which new passwords are taken."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from school_service.auth.passwords import strict_faults
from tenants.registry.schools import installation
from tests.client import ApiClient
from tests.features.classes.student_imports.test_import import LEAST, row_errors, upload
from tests.sheets.workbooks import workbook

SHORT = "must have at least 10 characters"
COMMON = "is one of the most common passwords"
WORD = "must be more than a common password, word or name"
NAME = "must be more than the username"
GOOD = "harmattan over Jos"
USER = {"username": "adaeze.okafor", "first_name": "A", "last_name": "O", "gender": "FEMALE"}


@pytest.mark.parametrize(
    ("password", "faults"),
    [
        (GOOD, []),
        ("kọ́lápọ̀-9", []),
        ("    x     ", []),
        ("密码密码密码密码密码", []),
        ("😀" * 10, []),
        ("x" * 1000, []),
        ("adaeze.okafor plays chess", []),
        ("", [SHORT]),
        ("Ab3$efghi", [SHORT]),
        ("e\u0301" * 9, [SHORT]),  # nine letters, though of two characters each
        ("e\u0301" * 10, []),
        ("ﬃ" * 9, [SHORT]),
        ("123456", [SHORT, COMMON]),
        ("qwertyuiop", [COMMON]),
        ("QwertyUIOP", [COMMON]),
        ("\uff51\uff57ertyuiop", [COMMON]),
        ("qwerty\u00aduiop", [COMMON]),
        ("qwertyuiop and more", []),
        ("1234567890", [COMMON]),
        ("adaeze.okafor", [NAME]),
        ("ADAEZE.OKAFOR", [NAME]),
        ("2026-adaeze.okafor!", [NAME]),
        ("adaeze.okafox", []),
        # With digits and signs alone around it.
        ("Password2026!", [WORD]),
        ("...chelsea-2026", [WORD]),
        ("technology", [WORD]),
        ("okonkwo 1234567", []),
        ("a password", []),
        ("pass word 2026", []),
        ("jos 1234567", []),
        ("1234567890!", []),
        ("...........", []),
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_the_strict_policy(password, faults):
    assert strict_faults(password, username="adaeze.okafor") == faults


def test_a_username_that_is_not_seen_forbids_nothing():
    assert strict_faults(GOOD, username="\u3164") == []


@pytest.fixture
def strict(rehearsed, monkeypatch):
    """Lets the application take passwords of the strict policy alone."""
    monkeypatch.setitem(rehearsed.config, "STRICT_PASSWORDS", True)


def sign_in(api, username, password):
    return api.post("/users/login", {"username": username, "password": password}).status_code


def refused(answer, *faults):
    assert (answer.status_code, answer.get_json()["errors"]) == (422, {"json": {"password": list(faults)}})


class TestAnyPassword:
    def test_one_character_is_enough(self, api, make):
        student = make.student(password="x")
        user = api.ok(api.post("/users", {**USER, "password": USER["username"]}))["user"]

        assert sign_in(api, student["admission_number"], "x") == 200
        assert api.put(f"/users/{user['id']}/password", {"password": "1"}).status_code == 200
        rows = [[*LEAST, "password"], ["Ada", "Obi", "QC/1", "123456"]]
        assert api.ok(upload(api, workbook(rows)))["created"] == 1


@pytest.mark.usefixtures("strict")
class TestStrict:
    def test_a_users_password(self, api):
        refused(api.post("/users", {**USER, "password": "123456"}), SHORT, COMMON)
        refused(api.post("/users", {**USER, "password": "Adaeze.Okafor1"}), NAME)
        assert api.ok(api.get("/users?search=adaeze.okafor"))["total"] == 0

        api.ok(api.post("/users", {**USER, "password": GOOD}))
        assert sign_in(api, USER["username"], GOOD) == 200

    def test_a_students_password_and_their_admission_number(self, api):
        body = {"first_name": "A", "last_name": "O", "admission_number": "QC/2026/0042"}
        refused(api.post("/students", {**body, "password": "qc/2026/0042"}), NAME)
        refused(api.post("/students", {**body, "password": "qwertyuiop"}), COMMON)
        assert api.ok(api.get("/students?search=QC/2026/0042"))["total"] == 0

        api.ok(api.post("/students", {**body, "password": GOOD}))
        assert sign_in(api, "QC/2026/0042", GOOD) == 200
        assert api.post("/students", {**body, "admission_number": "QC/2"}).status_code == 200

    def test_anothers_password(self, api, make):
        user = make.user(password=GOOD)["user"]
        path = f"/users/{user['id']}/password"

        refused(api.put(path, {"password": "short"}), SHORT)
        refused(api.put(path, {"password": f"{user['username']}.1234567"}), NAME)
        assert sign_in(api, user["username"], GOOD) == 200
        assert api.put(path, {"password": f"{GOOD}!"}).status_code == 200
        assert sign_in(api, user["username"], f"{GOOD}!") == 200

    def test_ones_own_password(self, api, make):
        user = make.user(password=GOOD)["user"]
        caller, path = make.signed_in(user, GOOD), f"/users/{user['id']}/password"

        refused(caller.put(path, {"password": "1q2w3e4r5t", "current_password": GOOD}), COMMON)
        assert sign_in(api, user["username"], GOOD) == 200
        assert caller.put(path, {"password": f"{GOOD}!", "current_password": GOOD}).status_code == 200
        assert sign_in(api, user["username"], f"{GOOD}!") == 200

    def test_the_passwords_of_a_sheet(self, api):
        rows = [
            [*LEAST, "username", "password"],
            ["Ada", "Obi", "QC/1", None, GOOD],
            ["Bisi", "Obi", "QC/2", None, "secret"],
            ["Chi", "Obi", "QC/2026/0042", None, "QC/2026/0042"],
            ["Dan", "Obi", "QC/4", "dan.of.jss1", "Dan.of.JSS1"],
            ["Eze", "Obi", "QC/5", None, None],
        ]
        for query in ("", "?dry_run=true"):
            answer = upload(api, workbook(rows), query)
            assert row_errors(answer) == [(row, "password", "invalid") for row in (3, 4, 5)]
        messages = [row["message"] for row in answer.get_json()["errors"]["rows"]]
        assert messages[0] == f"E3: the password {SHORT}, and {COMMON}"
        assert api.ok(api.get("/students?search=QC/1"))["total"] == 0

        assert api.ok(upload(api, workbook([rows[0], rows[1], rows[5]])))["created"] == 2
        assert sign_in(api, "QC/1", GOOD) == 200

    def test_passwords_that_are_there_are_good_to_sign_in_with(self, api, make, monkeypatch):
        monkeypatch.setitem(api.app.config, "STRICT_PASSWORDS", False)
        user = make.user(password="x")["user"]
        monkeypatch.setitem(api.app.config, "STRICT_PASSWORDS", True)

        assert sign_in(api, user["username"], "x") == 200
        client = make.signed_in(user, "x")
        changed = client.put(f"/users/{user['id']}/password", {"password": GOOD, "current_password": "x"})
        assert changed.status_code == 200

    def test_the_other_school_has_the_same_policy(self, other_api, make_other):
        refused(other_api.post("/users", {**USER, "password": "short"}), SHORT)
        assert make_other.user(password=GOOD)["user"]["username"]


def test_where_no_setting_says_it_the_registry_decides(start, committing, document, tenancy):
    """A registry without a policy takes any password; its policy is read once, and a setting wins."""
    api, asked = committing.api, []

    def posted(**settings):
        client = ApiClient(start(**settings), document, api.token, api.school)
        asked.append(client.post("/users", {**USER, "username": f"n{len(asked)}", "password": "short"}))
        return asked[-1].status_code

    def say(policy):
        with tenancy.admin.begin() as connection:
            connection.execute(update(installation).values(password_policy=policy))

    assert posted() == 200
    for policy, status in (("strict", 422), ("any", 200), (None, 200)):
        say(policy)
        assert posted() == status
    say("strict")
    try:
        assert posted(PASSWORD_POLICY="any") == 200
        assert posted(PASSWORD_POLICY="strict") == 422
    finally:
        say(None)


def test_the_setting_decides(start, committing, document):
    """Over a whole application, which reads its settings as `serve` does."""
    api = committing.api
    for policy, status in (
        ({"PASSWORD_POLICY": "strict"}, 422),
        ({"PASSWORD_POLICY": "any"}, 200),
        ({}, 409),
    ):
        client = ApiClient(start(**policy), document, api.token, api.school)
        assert client.post("/users", {**USER, "password": "short"}).status_code == status
