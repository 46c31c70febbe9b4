"""Passwords that others gave have to be changed in a school that demands it: until then nothing else is allowed."""

from __future__ import annotations

import pytest

from school_service.auth.tokens import issue_client_token
from tests.conftest import PASSWORD as ADMINISTRATORS
from tests.factories import PASSWORD
from tests.features.classes.student_imports.test_import import LEAST, upload
from tests.sheets.workbooks import workbook

NEW = "another one of mine"
REFUSED = "Your password was given to you and must be changed first: PUT /users/{}/password."


def demand(api, value=True):
    assert api.ok(api.patch("/settings", {"must_change_password": value}))["must_change_password"] == value


def sign_in(api, username, password=PASSWORD):
    return api.ok(api.post("/users/login", {"username": username, "password": password}))


def caller_of(api, signed_in):
    client = api.using(token=signed_in["access_token"]["access_token"])
    client.user = signed_in["user"]
    return client


def is_shut_out(caller):
    """Tell whether a caller is refused everything; asserts that it is for the given password."""
    answer = caller.get("/states")
    if answer.status_code == 200:
        return False
    assert (answer.status_code, answer.get_json()["message"]) == (403, REFUSED.format(caller.user["id"]))
    assert answer.get_json()["type"] == "password-change"
    return True


def change_own(caller, password=NEW, current=PASSWORD):
    return caller.put(
        f"/users/{caller.user['id']}/password", {"password": password, "current_password": current}
    )


@pytest.fixture
def auth_user(api, make):
    """The AuthUser of an account that somebody else has just made, in a school that demands a change."""
    demand(api)
    return make.user()


class TestTheSetting:
    def test_it_is_off_until_it_is_switched_on(self, api, make):
        assert not api.ok(api.get("/settings"))["must_change_password"]

        made = make.user()

        assert made["must_change_password"] is False
        assert not is_shut_out(caller_of(api, made))
        signed_in = sign_in(api, made["user"]["username"])
        assert signed_in["must_change_password"] is False
        assert not is_shut_out(caller_of(api, signed_in))

    def test_it_is_shown_and_changed_with_the_permissions_of_settings(self, api, make):
        clerk, reader = make.caller("write:settings"), make.caller("read:settings")

        assert clerk.ok(clerk.patch("/settings", {"must_change_password": True}))["must_change_password"]
        assert reader.ok(reader.get("/settings"))["must_change_password"]
        assert reader.patch("/settings", {"must_change_password": False}).status_code == 403
        assert clerk.get("/settings").status_code == 403
        assert api.ok(api.patch("/settings", {}))["must_change_password"]

    @pytest.mark.parametrize(
        "body",
        [{"must_change_password": value} for value in (None, "true", 1, [], {})] + [{"other": True}, []],
        ids=repr,
    )
    def test_a_body_that_is_no_setting_is_invalid(self, api, body):
        assert api.patch("/settings", body).status_code == 422
        assert not api.ok(api.get("/settings"))["must_change_password"]

    def test_it_is_the_schools_own(self, api, other_api, make_other):
        demand(api)

        assert not other_api.ok(other_api.get("/settings"))["must_change_password"]
        assert not is_shut_out(caller_of(other_api, make_other.user()))

    def test_the_other_schools_token_changes_nothing(self, api, other_api, place):
        foreign = other_api.using(school=place.id)

        assert foreign.patch("/settings", {"must_change_password": True}).status_code == 403
        assert foreign.get("/settings").status_code == 403
        assert not api.ok(api.get("/settings"))["must_change_password"]

    def test_a_change_is_audited_and_an_equal_value_is_not(self, api):
        for value in (True, True, False):
            demand(api, value)

        entries = api.ok(api.get("/audit", query_string={"entity": "settings"}))["data"]

        said = sorted(
            (entry["old"]["must_change_password"], entry["new"]["must_change_password"]) for entry in entries
        )
        assert said == [(False, True), (True, False)]

    def test_changing_it_takes_few_messages(self, api, messages):
        with messages() as sent:
            demand(api)
        assert len(sent) <= 5
        with messages() as sent:
            api.ok(api.get("/settings"))
        assert len(sent) <= 3


class TestUsersWhoHaveToChange:
    def test_a_user_made_by_somebody_else(self, api, auth_user):
        assert auth_user["must_change_password"] is True
        assert is_shut_out(caller_of(api, auth_user))
        signed_in = sign_in(api, auth_user["user"]["username"])
        assert signed_in["must_change_password"] is True
        assert is_shut_out(caller_of(api, signed_in))

    def test_a_student_with_a_password(self, api, make):
        demand(api)
        student = make.student(password=PASSWORD)

        assert is_shut_out(caller_of(api, sign_in(api, student["admission_number"])))

    def test_the_students_of_a_sheet(self, api):
        demand(api)
        rows = [[*LEAST, "password"], ["Ada", "Obi", "QC/1", PASSWORD], ["Bisi", "Obi", "QC/2", PASSWORD]]
        api.ok(upload(api, workbook(rows)))

        for number in ("QC/1", "QC/2"):
            assert is_shut_out(caller_of(api, sign_in(api, number)))

    def test_an_employee_who_is_given_a_password(self, api, make):
        demand(api)
        user = make.account_of(make.employee())
        api.ok(api.put(f"/users/{user['id']}/password", {"password": PASSWORD}))

        assert is_shut_out(caller_of(api, sign_in(api, user["username"])))

    def test_a_user_whose_password_somebody_else_sets(self, api, make):
        user = make.user()["user"]
        demand(api)
        assert not is_shut_out(caller_of(api, sign_in(api, user["username"])))

        api.ok(api.put(f"/users/{user['id']}/password", {"password": "given"}))

        assert is_shut_out(caller_of(api, sign_in(api, user["username"], "given")))

    def test_a_user_made_by_a_machine_client(self, api, grant, place):
        demand(api)
        client_id, _ = grant(school_ids=[place.id], permissions=["write:users"])
        key = api.app.extensions["school-service"].verifier.key
        machine = api.using(token=issue_client_token(key, client_id, [place.id])["access_token"])
        body = {"username": "ada", "password": PASSWORD, "first_name": "A", "last_name": "O", "gender": "F"}

        made = machine.ok(machine.post("/users", body))

        assert is_shut_out(caller_of(api, made))
        assert machine.get("/states").status_code == 200

    def test_no_user_of_before_the_setting(self, api, make):
        caller = make.caller("read:roles")
        before = make.user()["user"]
        student = make.student(password=PASSWORD)

        demand(api)

        assert caller.get("/roles").status_code == 200
        for username in (before["username"], student["admission_number"]):
            assert not is_shut_out(caller_of(api, sign_in(api, username)))
        assert sign_in(api, "admin", ADMINISTRATORS)["must_change_password"] is False

    def test_nobody_once_it_is_switched_off(self, api, auth_user):
        caller = caller_of(api, sign_in(api, auth_user["user"]["username"]))
        assert is_shut_out(caller)

        demand(api, False)

        assert not is_shut_out(caller)
        assert sign_in(api, auth_user["user"]["username"])["must_change_password"] is False

    def test_switched_on_twice_it_counts_from_the_first(self, api, auth_user):
        demand(api)

        assert is_shut_out(caller_of(api, sign_in(api, auth_user["user"]["username"])))


class TestChanging:
    @pytest.fixture
    def caller(self, api, auth_user):
        return caller_of(api, sign_in(api, auth_user["user"]["username"]))

    def test_ones_own_password_is_set_and_then_all_is_as_it_was(self, api, make, caller):
        api.ok(api.put(f"/users/{caller.user['id']}/roles", {"role": make.role("read:roles")["id"]}))
        caller = caller_of(api, sign_in(api, caller.user["username"]))
        assert caller.get("/roles").status_code == 403

        assert caller.ok(change_own(caller))["id"] == caller.user["id"]

        assert caller.get("/roles").status_code == 401
        again = sign_in(api, caller.user["username"], NEW)
        assert again["must_change_password"] is False
        assert caller_of(api, again).get("/roles").status_code == 200

    def test_the_same_password_is_no_change(self, api, caller):
        answer = change_own(caller, PASSWORD)

        assert answer.status_code == 422
        assert answer.get_json()["errors"] == {"json": {"password": ["must be another than the current one"]}}
        assert is_shut_out(caller)

    def test_a_user_who_need_not_change_may_set_the_same_again(self, make):
        caller = make.caller()

        assert change_own(caller, PASSWORD).status_code == 200

    def test_a_wrong_current_one_changes_nothing(self, caller):
        assert change_own(caller, current="wrong").status_code == 422
        assert is_shut_out(caller)

    def test_anothers_password_is_not_set_meanwhile(self, api, make, caller):
        other = make.user()["user"]
        api.ok(api.put(f"/users/{caller.user['id']}/roles", {"role": make.role("write:users")["id"]}))
        caller = caller_of(api, sign_in(api, caller.user["username"]))

        answer = caller.put(f"/users/{other['id']}/password", {"password": NEW})

        assert (answer.status_code, answer.get_json()["message"]) == (403, REFUSED.format(caller.user["id"]))

    def test_signing_in_with_such_a_token_is_refused_too(self, caller):
        credentials = {"username": caller.user["username"], "password": PASSWORD}
        assert caller.post("/users/login", credentials).status_code == 403

    def test_given_anew_it_has_to_be_changed_anew(self, api, caller):
        assert change_own(caller).status_code == 200
        api.ok(api.put(f"/users/{caller.user['id']}/password", {"password": PASSWORD}))

        assert is_shut_out(caller_of(api, sign_in(api, caller.user["username"])))


def test_the_setting_is_known_without_a_further_message(api, make, messages):
    caller = make.caller("read:roles")
    with messages() as off:
        assert caller.get("/roles").status_code == 200
    demand(api)
    with messages() as on:
        assert caller.get("/roles").status_code == 200

    assert len(on) == len(off) <= 3
