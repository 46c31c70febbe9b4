"""Setting passwords: one's own with the current one, another's by holding every permission of theirs."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.conftest import PASSWORD


def signs_in(api, user, password):
    answer = api.post("/users/login", {"username": user["username"], "password": password})
    return answer.status_code == 200


def own(caller, password="new", **fields):
    return caller.put(f"/users/{caller.user['id']}/password", {"password": password, **fields})


class TestOnesOwn:
    def test_changing_needs_the_current_password_and_no_permission(self, api, make):
        caller = make.caller()

        answer = own(caller, current_password="a password")

        assert answer.status_code == 200
        assert answer.get_json() == caller.user
        assert signs_in(api, caller.user, "new")
        assert not signs_in(api, caller.user, "a password")

    def test_without_the_current_one_it_is_invalid(self, api, make, place):
        caller = make.caller("write:users")
        for answer in (own(caller), api.put(f"/users/{place.admin_id}/password", {"password": "new"})):
            assert answer.status_code == 422
            assert answer.get_json()["errors"] == {
                "json": {"current_password": ["is needed to set one's own password"]}
            }
        assert signs_in(api, caller.user, "a password")
        assert signs_in(api, {"username": "admin"}, PASSWORD)

    @pytest.mark.parametrize("wrong", ["wrong", "a password ", " a password", "A password", "new"])
    def test_a_wrong_current_password_is_invalid(self, make, wrong):
        caller = make.caller()

        answer = own(caller, current_password=wrong)

        assert answer.status_code == 422
        assert answer.get_json()["errors"] == {"json": {"current_password": ["is wrong"]}}
        assert signs_in(caller, caller.user, "a password")

    def test_wrong_ones_are_limited(self, make):
        caller, other = make.caller(), make.caller()
        for _ in range(10):
            assert own(caller, current_password="wrong").status_code == 422

        answer = own(caller, current_password="a password")

        assert answer.status_code == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert own(other, current_password="a password").status_code == 200

    def test_wrong_passwords_count_together_with_wrong_sign_ins(self, make):
        caller = make.caller()
        for _ in range(5):
            assert own(caller, current_password="wrong").status_code == 422
            assert not signs_in(caller, caller.user, "wrong")

        assert own(caller, current_password="a password").status_code == 429
        login = caller.post("/users/login", {"username": caller.user["username"], "password": "a password"})
        assert login.status_code == 429

    def test_a_user_without_a_password_is_given_one_by_others(self, api, make):
        user = api.ok(api.get("/users", query_string={"search": make.student()["admission_number"]}))["data"][
            0
        ]

        assert not signs_in(api, user, "new")
        api.ok(api.put(f"/users/{user['id']}/password", {"password": "new"}))
        assert signs_in(api, user, "new")


class TestAnothers:
    def test_setting_needs_the_permission(self, make):
        user = make.user()["user"]
        path, body = f"/users/{user['id']}/password", {"password": "new", "current_password": "a password"}

        answer = make.caller("read:users", "delete:users").put(path, body)

        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission write:users.",
        )
        assert signs_in(make.caller(), user, "a password")

    def test_the_current_password_is_not_required(self, make):
        caller, user = make.caller("write:users"), make.user()["user"]

        answer = caller.put(f"/users/{user['id']}/password", {"password": "new"})

        assert answer.status_code == 200
        assert answer.get_json() == user
        assert signs_in(caller, user, "new")

    def test_setting_needs_every_permission_of_the_user(self, api, make, place):
        clerk = make.caller("write:users", "read:students")
        target = make.caller("read:students", "write:students", "read:metrics")
        for path, lacking in (
            (f"/users/{target.user['id']}/password", "permissions read:metrics, write:students"),
            (f"/users/{place.admin_id}/password", "permissions "),
        ):
            answer = clerk.put(path, {"password": "new"})
            assert answer.status_code == 403
            assert f"needs the {lacking}" in answer.get_json()["message"]
        assert signs_in(api, target.user, "a password")
        assert signs_in(api, {"username": "admin"}, PASSWORD)

        equal = make.caller("write:users", "read:students", "write:students", "read:metrics")
        assert equal.put(f"/users/{target.user['id']}/password", {"password": "new"}).status_code == 200
        assert signs_in(api, target.user, "new")

    def test_the_permissions_of_all_their_roles_count(self, api, make):
        clerk, user = make.caller("write:users", "read:roles"), make.user()["user"]
        for permission in ("read:roles", "read:metrics"):
            api.ok(api.put(f"/users/{user['id']}/roles", {"role": make.role(permission)["id"]}))

        assert clerk.put(f"/users/{user['id']}/password", {"password": "new"}).status_code == 403

    def test_a_caller_who_lost_a_permission_may_not(self, api, make):
        user, role = make.user()["user"], make.role("read:metrics")
        clerk = make.caller("write:users")
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
        api.ok(api.put(f"/users/{clerk.user['id']}/roles", {"role": role["id"]}))
        assert clerk.put(f"/users/{user['id']}/password", {"password": "new"}).status_code == 200

        api.ok(api.delete(f"/users/{clerk.user['id']}/roles/{role['id']}"))

        assert clerk.put(f"/users/{user['id']}/password", {"password": "newer"}).status_code == 403

    def test_users_unknown_or_of_the_other_school_are_not_found(self, api, other_api, make_other):
        theirs = make_other.user()["user"]

        for user_id in (uuid4(), theirs["id"], "x"):
            assert api.put(f"/users/{user_id}/password", {"password": "new"}).status_code == 404
        assert signs_in(other_api, theirs, "a password")


class TestBody:
    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"password": ""},
            {"password": None},
            {"password": 5},
            {"password": "a\0b"},
            {"password": "\ud800"},
            {"password": "x" * 1001},
            {"password": "new", "current_password": ""},
            {"password": "new", "current_password": None},
            {"password": "new", "current_password": 5},
            {"password": "new", "username": "other"},
            [],
        ],
        ids=lambda body: repr(body)[:40],
    )
    def test_a_body_without_a_valid_password_is_invalid(self, api, make, body):
        user = make.user()["user"]

        assert api.put(f"/users/{user['id']}/password", body).status_code == 422
        assert signs_in(api, user, "a password")

    @pytest.mark.parametrize(
        "password", [" ", " x ", "e\u0301", "пароль", "😀", "x" * 1000], ids=lambda p: repr(p)[:12]
    )
    def test_a_password_is_taken_as_it_is(self, make, password):
        caller = make.caller()

        assert own(caller, password, current_password="a password").status_code == 200
        again = make.signed_in(caller.user, password)
        assert own(again, "next", current_password=password).status_code == 200
