"""How sessions end: with a password, a deletion, by order, and the creator's token when the account gets its user."""

from __future__ import annotations

import itertools
from uuid import uuid4

import pytest

from school_service.auth.tokens import issue_client_token
from school_service.core.permissions import Permission
from tests.client import ApiClient
from tests.conftest import PASSWORD as ADMIN_PASSWORD
from tests.conftest import make_place
from tests.factories import PASSWORD
from tests.features.invitations.test_invitations import in_school
from tests.threads import run_concurrently


def works(client):
    """Whether a token is accepted, with any permissions."""
    status = client.get("/states").status_code
    assert status in {200, 401}
    return status == 200


@pytest.fixture
def created(api, make):
    """A user, as a client with the token that its creator was given."""
    made = make.user()
    client = api.using(token=made["access_token"]["access_token"])
    client.user = made["user"]
    return client


def path(client, *parts):
    return "/".join(("/users", client.user["id"], *parts))


class TestTheCreatorsToken:
    """The token answered by POST /users goes to the creator of the account."""

    def test_it_works_and_goes_on_when_another_user_signs_in(self, api, created, make):
        assert works(created)
        api.ok(api.get(path(created)))
        make.signed_in(make.user()["user"])
        assert works(created)

    def test_it_ends_when_the_user_signs_in(self, created, make):
        user = make.signed_in(created.user)

        assert not works(created)
        assert works(user)
        assert works(make.signed_in(created.user))
        assert works(user), "a second sign-in ends nothing"

    def test_a_wrong_password_ends_nothing(self, api, created):
        wrong = {"username": created.user["username"], "password": "wrong"}
        assert api.post("/users/login", wrong).status_code == 401

        assert works(created)

    def test_it_ends_when_the_user_gets_another_password(self, api, created):
        api.ok(api.put(path(created, "password"), {"password": "new"}))

        assert not works(created)

    def test_it_ends_when_the_user_gets_a_role(self, api, created, make):
        api.ok(api.put(path(created, "roles"), {"role": make.role()["id"]}))

        assert not works(created)

    def test_it_ends_when_a_role_of_the_user_gets_a_permission(self, api, created, make):
        """So it was when the token was made by a version that let it live on with the role."""
        role = make.role()
        api.ok(api.put(path(created, "roles"), {"role": role["id"]}))
        signed_in = make.signed_in(created.user)
        permissions = {f"{p['access']}:{p['section']}": p["id"] for p in api.ok(api.get("/permissions"))}

        body = {"permissionIds": [permissions["read:roles"]]}
        api.ok(api.patch(f"/roles/{role['id']}/permissions", body))

        assert not works(created)
        assert signed_in.get("/roles").status_code == 200, "a session of the user's own goes on"

    def test_a_clerk_does_not_become_an_administrator(self, api, make):
        clerk = make.caller("write:users", "read:users")
        made = clerk.ok(clerk.post("/users", {"username": "head", "password": PASSWORD, "first_name": "A",
                                              "last_name": "B", "gender": "FEMALE"}))  # fmt: skip
        administrator = next(role for role in api.ok(api.get("/roles")) if role["name"] == "Administrator")
        api.ok(api.put(f"/users/{made['user']['id']}/roles", {"role": administrator["id"]}))

        stolen = clerk.using(token=made["access_token"]["access_token"])

        assert stolen.get("/users").status_code == 401
        # The clerk knows the password, which ended too.
        credentials = {"username": "head", "password": PASSWORD}
        assert clerk.post("/users/login", credentials).status_code == 401
        api.ok(api.put(f"/users/{made['user']['id']}/password", {"password": "another password"}))
        assert make.signed_in(made["user"], "another password").get("/users").status_code == 200

    def test_tokens_of_first_sign_ins_at_once_all_work(self, app, tenancy, document):
        place = make_place(app, tenancy, "St. Gregory's College, Lagos")
        api = ApiClient(app, document, place.admin_token, place.id)
        new = {"password": PASSWORD, "first_name": "A", "last_name": "B", "gender": "MALE"}
        for number in range(5):
            username = f"user {number}"
            made = api.ok(api.post("/users", {**new, "username": username}))
            credentials = {"username": username, "password": PASSWORD}

            answers = run_concurrently(
                4, lambda _, credentials=credentials: api.using().post("/users/login", credentials)
            )

            tokens = [answer.get_json()["access_token"]["access_token"] for answer in answers]
            assert all(works(api.using(token=token)) for token in tokens)
            assert not works(api.using(token=made["access_token"]["access_token"]))

    def test_a_first_sign_in_with_the_password_before_gives_no_session(self, app, tenancy, document):
        """It is refused, or its token has ended, when the password is changed at the same moment."""
        place = make_place(app, tenancy, "Loyola Jesuit College, Abuja")
        api = ApiClient(app, document, place.admin_token, place.id)
        new = {"password": PASSWORD, "first_name": "A", "last_name": "B", "gender": "MALE"}
        for number in range(8):
            user = api.ok(api.post("/users", {**new, "username": f"user {number}"}))["user"]
            steps = [
                lambda user=user: api.using().post(
                    "/users/login", {"username": user["username"], "password": PASSWORD}
                ),
                lambda user=user: api.using().put(f"/users/{user['id']}/password", {"password": "new"}),
            ]

            login, changed = run_concurrently(2, lambda turn, steps=steps: steps[turn]())

            assert changed.status_code == 200
            assert login.status_code in {200, 401}
            if login.status_code == 200:
                assert not works(api.using(token=login.get_json()["access_token"]["access_token"]))


class TestEnding:
    """Every token issued before ends, at once."""

    @pytest.fixture
    def sessions(self, make):
        """Two sessions of one user."""
        first = make.caller("read:roles")
        return first, make.signed_in(first.user)

    def test_a_password_that_another_sets(self, api, sessions, make):
        api.ok(api.put(path(sessions[0], "password"), {"password": "new"}))

        assert not any(map(works, sessions))
        assert works(make.signed_in(sessions[0].user, "new"))

    def test_a_password_of_ones_own(self, sessions, make):
        body = {"password": "new", "current_password": PASSWORD}
        sessions[0].ok(sessions[0].put(path(sessions[0], "password"), body))

        assert not any(map(works, sessions))
        assert works(make.signed_in(sessions[0].user, "new"))

    def test_a_password_that_is_refused_ends_none(self, sessions):
        body = {"password": "new", "current_password": "wrong"}
        assert sessions[0].put(path(sessions[0], "password"), body).status_code == 422

        assert all(map(works, sessions))

    def test_a_deletion_whose_restoration_brings_none_back(self, api, sessions, make):
        api.ok(api.delete(path(sessions[0], "delete")))
        assert not any(map(works, sessions))

        for _ in range(2):
            api.ok(api.put(path(sessions[0], "restore")))
            assert not any(map(works, sessions))
        assert works(make.signed_in(sessions[0].user))

    def test_restoring_a_user_who_is_not_deleted_ends_none(self, api, sessions):
        api.ok(api.put(path(sessions[0], "restore")))

        assert all(map(works, sessions))

    def test_by_order_of_ones_own(self, sessions):
        answer = sessions[1].delete(path(sessions[0], "sessions"))

        assert answer.status_code == 200
        assert answer.get_json() == {"id": sessions[0].user["id"], "deleted": True}
        assert not any(map(works, sessions))

    def test_by_order_of_another(self, api, sessions, make):
        api.ok(api.delete(path(sessions[0], "sessions")))

        assert not any(map(works, sessions))
        assert works(make.signed_in(sessions[0].user))
        entries = api.ok(api.get("/audit", query_string={"id": sessions[0].user["id"]}))
        assert {"sessions": "ended"} in [entry["new"] for entry in entries["data"]]

    def test_the_token_that_a_request_costs_is_read_with_the_callers_state(self, sessions, messages):
        with messages() as sent:
            assert sessions[0].get("/roles").status_code == 200
        accepted = len(sent)
        sessions[0].delete(path(sessions[0], "sessions"))
        with messages() as sent:
            assert sessions[0].get("/roles").status_code == 401

        assert (accepted, len(sent)) == (1, 1)


class TestCallers:
    """`DELETE /users/{id}/sessions` of another."""

    def test_ending_sessions_needs_the_permission(self, make):
        target = make.caller()

        answer = make.caller("read:users", "delete:users").delete(path(target, "sessions"))

        assert answer.status_code == 403
        assert answer.get_json()["message"] == "This needs the permission write:users."
        assert works(target)

    def test_ending_sessions_needs_every_permission_of_the_user(self, make):
        target = make.caller("read:roles", "read:metrics")

        answer = make.caller("write:users", "read:roles").delete(path(target, "sessions"))

        assert answer.status_code == 403
        assert (
            answer.get_json()["message"] == "Ending this user's sessions needs the permission read:metrics."
        )
        assert works(target)
        equal = make.caller("write:users", "read:roles", "read:metrics")
        assert equal.delete(path(target, "sessions")).status_code == 200
        assert not works(target)

    def test_users_unknown_deleted_or_of_another_school_are_not_found(self, api, make, other_api, make_other):
        gone, theirs = make.caller(), make_other.caller()
        api.ok(api.delete(path(gone, "delete")))

        for user_id in (uuid4(), gone.user["id"], theirs.user["id"], "x"):
            assert api.delete(f"/users/{user_id}/sessions").status_code == 404
        assert works(theirs)
        assert api.using(school=other_api.school).delete(path(theirs, "sessions")).status_code == 403
        assert works(theirs)


class TestTakingAway:
    """Each operation that takes permissions away, by a caller with all of them and by a caller who lacks one."""

    HELD = ("read:metrics", "write:metrics")
    NEEDED = ("write:users", "delete:users", "delete:employees", "write:roles", "read:users")

    @pytest.fixture(params=["user", "employee"])
    def target(self, request, make, api):
        """Somebody with permissions: a user, or an employee's user."""
        if request.param == "user":
            return make.caller(*self.HELD)
        employee = make.employee()
        user = make.account_of(employee)
        role = make.role(*self.HELD)
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
        api.ok(api.put(f"/users/{user['id']}/password", {"password": PASSWORD}))
        client = make.signed_in(user)
        client.employee = employee
        return client

    def operations(self, api, target):
        """Each with its path and body."""
        role = api.ok(api.get(f"/roles/{api.ok(api.get(path(target)))['roles'][0]['roleId']}"))
        calls = {
            "delete": ("DELETE", path(target, "delete"), None),
            "restore": ("PUT", path(target, "restore"), None),
            "role": ("DELETE", path(target, "roles", role["id"]), None),
            "permissions": ("PATCH", f"/roles/{role['id']}/permissions", {"permissionIds": []}),
            "password": ("PUT", path(target, "password"), {"password": "new"}),
            "sessions": ("DELETE", path(target, "sessions"), None),
        }
        if hasattr(target, "employee"):
            calls["employee"] = ("DELETE", f"/employees/{target.employee['id']}", None)
        return calls

    def test_a_caller_who_lacks_a_permission_is_refused(self, api, make, target):
        clerk = make.caller(*self.NEEDED, self.HELD[0])
        before = api.ok(api.get(path(target)))
        for name, (method, where, body) in self.operations(api, target).items():
            answer = clerk.request(method, where, **({} if body is None else {"json": body}))
            assert (name, answer.status_code) == (name, 403)
            assert answer.get_json()["message"].endswith(" needs the permission write:metrics.")
            assert api.ok(api.get(path(target))) == before
            assert works(target)

    @pytest.mark.parametrize(
        ("target", "name"),
        [
            *itertools.product(
                ("user", "employee"), ("delete", "restore", "role", "permissions", "password", "sessions")
            ),
            ("employee", "employee"),
        ],
        indirect=["target"],
    )
    def test_a_caller_with_all_permissions_may(self, api, make, target, name):
        method, where, body = self.operations(api, target)[name]
        equal = make.caller(*self.NEEDED, *self.HELD)

        assert equal.request(method, where, **({} if body is None else {"json": body})).status_code == 200

    def test_a_machine_client_takes_no_more_than_its_grant(self, api, make, grant, place, target):
        lacking, _ = grant(school_ids=[place.id], permissions=[*self.NEEDED, self.HELD[0]])
        key = api.app.extensions["school-service"].verifier.key
        machine = api.using(token=issue_client_token(key, lacking, [place.id])["access_token"])

        for name, (method, where, body) in self.operations(api, target).items():
            answer = machine.request(method, where, **({} if body is None else {"json": body}))
            assert (name, answer.status_code) == (name, 403)


class TestTheLastAdministrator:
    """Somebody who has every permission always stays."""

    @pytest.fixture
    def administrator(self, api):
        """The role."""
        return next(role for role in api.ok(api.get("/roles")) if role["name"] == "Administrator")

    def strip(self, place, administrator):
        return {
            "delete": ("DELETE", f"/users/{place.admin_id}/delete", None),
            "role": ("DELETE", f"/users/{place.admin_id}/roles/{administrator['id']}", None),
            "permissions": ("PATCH", f"/roles/{administrator['id']}/permissions", {"permissionIds": []}),
            "one permission": (
                "PATCH",
                f"/roles/{administrator['id']}/permissions",
                {"permissionIds": [permission["id"] for permission in administrator["permissions"][1:]]},
            ),
        }

    NAMES = ("delete", "role", "permissions", "one permission")

    @pytest.mark.parametrize("name", NAMES)
    def test_the_last_administrator_stays(self, api, place, administrator, name):
        method, where, body = self.strip(place, administrator)[name]

        answer = api.request(method, where, **({} if body is None else {"json": body}))

        assert answer.status_code == 409
        assert answer.get_json()["message"].endswith(" would leave nobody who has every permission.")
        assert api.ok(api.get(f"/users/{place.admin_id}"))["roles"] != []
        assert api.ok(api.get(f"/roles/{administrator['id']}")) == administrator
        assert set(api.ok(api.post("/users/login", {"username": "admin", "password": ADMIN_PASSWORD})))

    @pytest.mark.parametrize("name", ["delete", "role"])
    def test_beside_another_it_may_go(self, api, make, place, administrator, name):
        second = make.user()["user"]
        api.ok(api.put(f"/users/{second['id']}/roles", {"role": administrator["id"]}))
        as_second = make.signed_in(second)
        method, where, _ = self.strip(place, administrator)[name]

        assert as_second.request(method, where).status_code == 200
        where = where.replace(str(place.admin_id), second["id"])
        assert as_second.request(method, where).status_code == 409

    def test_a_user_with_every_permission_by_several_roles_counts(self, api, make, place):
        half = len(Permission) // 2
        every = sorted(Permission)
        user = make.user()["user"]
        for part in (every[:half], every[half:]):
            api.ok(api.put(f"/users/{user['id']}/roles", {"role": make.role(*part)["id"]}))

        as_user = make.signed_in(user)
        assert as_user.delete(f"/users/{place.admin_id}/delete").status_code == 200
        role = as_user.ok(as_user.get(f"/users/{user['id']}"))["roles"][0]["roleId"]
        assert as_user.delete(f"/users/{user['id']}/roles/{role}").status_code == 409

    def test_a_deleted_one_does_not_count(self, api, make, place, administrator):
        second = make.user()["user"]
        api.ok(api.put(f"/users/{second['id']}/roles", {"role": administrator["id"]}))
        api.ok(api.delete(f"/users/{second['id']}/delete"))

        assert api.delete(f"/users/{place.admin_id}/delete").status_code == 409

    def test_where_nobody_has_every_permission_nothing_is_refused(self, api, place, administrator):
        taking = "DELETE FROM role_permissions WHERE role_id = :role AND permission_id = :permission"
        [graduates] = [
            permission["id"]
            for permission in administrator["permissions"]
            if (permission["access"], permission["section"]) == ("write", "graduates")
        ]
        in_school(api, taking, role=administrator["id"], permission=graduates)

        assert api.delete(f"/users/{place.admin_id}/roles/{administrator['id']}").status_code == 200

    def test_an_employee_who_is_the_last_administrator_stays(self, api, make, place, administrator):
        employee = make.employee()
        user = make.account_of(employee)
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": administrator["id"]}))
        api.ok(api.put(f"/users/{user['id']}/password", {"password": PASSWORD}))
        as_user = make.signed_in(user)
        as_user.ok(as_user.delete(f"/users/{place.admin_id}/delete"))

        assert as_user.delete(f"/employees/{employee['id']}").status_code == 409
        assert as_user.get(f"/employees/{employee['id']}").status_code == 200

    @pytest.mark.parametrize("name", ["delete", "role"])
    def test_of_administrators_who_delete_each_other_one_stays(self, app, tenancy, document, name):
        place = make_place(app, tenancy, "Federal Government College, Kano")
        api = ApiClient(app, document, place.admin_token, place.id)
        administrator = next(r for r in api.ok(api.get("/roles")) if r["name"] == "Administrator")
        new = {"password": PASSWORD, "first_name": "A", "last_name": "B", "gender": "MALE"}
        users = []
        for number in range(4):
            user = api.ok(api.post("/users", {**new, "username": f"head {number}"}))["user"]
            api.ok(api.put(f"/users/{user['id']}/roles", {"role": administrator["id"]}))
            login = api.ok(api.post("/users/login", {"username": user["username"], "password": PASSWORD}))
            users.append((user, api.using(token=login["access_token"]["access_token"])))
        api.ok(api.delete(f"/users/{place.admin_id}/delete"))

        def remove(turn):
            user = users[(turn + 1) % 4][0]
            part = "delete" if name == "delete" else f"roles/{administrator['id']}"
            return users[turn][1].delete(f"/users/{user['id']}/{part}").status_code

        answers = run_concurrently(4, remove)

        assert set(answers) <= {200, 401, 403, 409}
        assert answers.count(200) <= 3
        left = [client for _, client in users if client.get("/roles").status_code == 200]
        assert left, "somebody has every permission"
