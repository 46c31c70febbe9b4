"""Nobody gives away, or gets, a permission that they lack."""

from __future__ import annotations

import pytest

from school_service.auth.tokens import issue_client_token
from school_service.core.permissions import Permission
from tests.conftest import PASSWORD

NEW = {"username": "ada", "password": "s3cret", "first_name": "Ada", "last_name": "Obi", "gender": "FEMALE"}
EVERYTHING_OF_USERS_AND_ROLES = [f"{a}:{s}" for a in ("read", "write", "delete") for s in ("users", "roles")]


@pytest.fixture
def clerk(make):
    """Somebody who may do everything with users and roles, and nothing else."""
    return make.caller(*EVERYTHING_OF_USERS_AND_ROLES)


@pytest.fixture
def roles(api):
    """The roles' ids by name."""
    return {role["name"]: role["id"] for role in api.ok(api.get("/roles"))}


@pytest.fixture
def permissions(api):
    """The permissions' ids, each by `access:section`."""
    return {f"{p['access']}:{p['section']}": p["id"] for p in api.ok(api.get("/permissions"))}


def permissions_of(api, username, password="s3cret"):
    signed_in = api.ok(api.post("/users/login", {"username": username, "password": password}))
    return {f"{p['access']}:{p['section']}" for p in signed_in["permissions"]}


def test_an_administrator_may_do_everything(api):
    assert permissions_of(api, "admin", PASSWORD) == set(Permission)


def test_a_new_user_may_do_nothing(clerk):
    made = clerk.ok(clerk.post("/users", NEW))

    assert made["permissions"] == []
    caller = clerk.using(token=made["access_token"]["access_token"])
    for path in ("/users", "/roles", "/permissions", "/classrooms", f"/users/{made['user']['id']}"):
        assert caller.get(path).status_code == 403


@pytest.mark.parametrize("role", ["Administrator", "Registrar", "Teacher", "Bursar", "Viewer"])
def test_a_role_is_given_by_a_holder_of_all_its_permissions(api, clerk, roles, role):
    own = clerk.put(f"/users/{clerk.user['id']}/roles", {"role": roles[role]})
    accomplice = clerk.ok(clerk.post("/users", NEW))["user"]["id"]
    anothers = clerk.put(f"/users/{accomplice}/roles", {"role": roles[role]})

    for answer in (own, anothers):
        assert answer.status_code == 403
        assert answer.get_json()["message"].startswith(f"Giving the role {role} needs the permission")
    assert permissions_of(api, "ada") == set()
    assert api.put(f"/users/{accomplice}/roles", {"role": roles[role]}).status_code == 200


def test_a_caller_may_give_the_permissions_they_hold(clerk, make):
    role = make.role("read:users", "write:roles")
    user = clerk.ok(clerk.post("/users", NEW))["user"]["id"]

    assert clerk.put(f"/users/{user}/roles", {"role": role["id"]}).status_code == 200
    assert permissions_of(clerk, "ada") == {"read:users", "write:roles"}


def test_a_permission_held_as_own_is_given_as_own_alone(api, clerk, make):
    held, wider = make.role("read:metrics", reach="OWN"), make.role("read:metrics")
    api.ok(api.put(f"/users/{clerk.user['id']}/roles", {"role": held["id"]}))
    user = clerk.ok(clerk.post("/users", NEW))["user"]["id"]

    refused = clerk.put(f"/users/{user}/roles", {"role": wider["id"]})

    assert (refused.status_code, "for the whole school" in refused.get_json()["message"]) == (403, True)
    assert clerk.put(f"/users/{user}/roles", {"role": held["id"]}).status_code == 200


def test_the_refusal_names_the_lacking_permissions(clerk, make):
    role = make.role("read:users", "read:metrics", "delete:terms")

    answer = clerk.put(f"/users/{clerk.user['id']}/roles", {"role": role["id"]})

    needed = "needs the permissions delete:terms, read:metrics."
    assert answer.get_json()["message"] == f"Giving the role {role['name']} {needed}"


def test_a_caller_adds_no_permission_they_lack_to_a_role(api, clerk, make, permissions):
    of_theirs = make.role(*EVERYTHING_OF_USERS_AND_ROLES)
    api.ok(api.put(f"/users/{clerk.user['id']}/roles", {"role": of_theirs["id"]}))
    permission_ids = [p["id"] for p in of_theirs["permissions"]]

    answer = clerk.patch(
        f"/roles/{of_theirs['id']}/permissions",
        {"permissionIds": [*permission_ids, permissions["read:metrics"]]},
    )

    assert answer.status_code == 403
    assert "needs the permission read:metrics." in answer.get_json()["message"]
    assert api.ok(api.get(f"/roles/{of_theirs['id']}")) == of_theirs


def test_adding_to_a_role_needs_all_that_is_in_it(api, clerk, make, permissions):
    """Otherwise a role could be made to fit somebody by a caller who lacks a part of it."""
    role = make.role("read:metrics")

    answer = clerk.patch(
        f"/roles/{role['id']}/permissions",
        {"permissionIds": [permissions["read:metrics"], permissions["read:users"]]},
    )

    assert answer.status_code == 403
    assert api.ok(api.get(f"/roles/{role['id']}")) == role


def test_a_caller_takes_no_permission_they_lack_from_a_role(api, clerk, make):
    role, own = make.role("read:metrics", "read:users"), make.role("read:users", "write:roles")

    answer = clerk.patch(f"/roles/{role['id']}/permissions", {"permissionIds": []})

    assert answer.status_code == 403
    assert answer.get_json()["message"] == (
        f"Taking permissions from the role {role['name']} needs the permission read:metrics."
    )
    assert api.ok(api.get(f"/roles/{role['id']}")) == role
    shown = clerk.ok(clerk.patch(f"/roles/{own['id']}/permissions", {"permissionIds": []}))
    assert shown["permissions"] == []


def test_swapping_permissions_is_adding(clerk, make, permissions):
    role = make.role("read:users")

    answer = clerk.patch(f"/roles/{role['id']}/permissions", {"permissionIds": [permissions["read:metrics"]]})

    assert answer.status_code == 403


def test_the_maker_of_a_permission_does_not_hold_it(api, clerk, make):
    made = clerk.ok(clerk.post("/permissions", {"section": "canteen", "access": "read"}))
    role = clerk.ok(clerk.post("/roles", {"name": "Cook", "avatar": 1}))

    answer = clerk.patch(f"/roles/{role['id']}/permissions", {"permissionIds": [made["id"]]})

    assert answer.status_code == 403
    assert "needs the permission read:canteen." in answer.get_json()["message"]
    assert api.patch(f"/roles/{role['id']}/permissions", {"permissionIds": [made["id"]]}).status_code == 200


def test_no_second_role_is_named_administrator_and_one_of_a_similar_name_is_none(clerk):
    for name in ("Administrator", "administrator"):
        assert clerk.post("/roles", {"name": name, "avatar": 1}).status_code == 409
    role = clerk.ok(clerk.post("/roles", {"name": "Administrators", "avatar": 1}))
    clerk.ok(clerk.post("/permissions", {"section": "canteen", "access": "read"}))

    assert clerk.ok(clerk.get(f"/roles/{role['id']}"))["permissions"] == []


def test_an_administrators_password_is_not_set(api, clerk, place):
    answer = clerk.put(f"/users/{place.admin_id}/password", {"password": "taken over"})

    assert answer.status_code == 403
    assert api.post("/users/login", {"username": "admin", "password": PASSWORD}).status_code == 200


def test_a_user_with_more_permissions_is_not_restored(api, clerk, make, roles):
    boss, equal = make.user(username="boss"), make.caller(*EVERYTHING_OF_USERS_AND_ROLES)
    api.ok(api.put(f"/users/{boss['user']['id']}/roles", {"role": roles["Administrator"]}))
    for user in (boss["user"], equal.user):
        api.ok(api.delete(f"/users/{user['id']}/delete"))

    assert clerk.put(f"/users/{boss['user']['id']}/password", {"password": "mine"}).status_code == 404
    answer = clerk.put(f"/users/{boss['user']['id']}/restore")

    assert answer.status_code == 403
    assert answer.get_json()["message"].startswith("Restoring this user needs the permissions ")
    assert api.get(f"/users/{boss['user']['id']}").status_code == 404
    assert clerk.ok(clerk.put(f"/users/{equal.user['id']}/restore"))["id"] == equal.user["id"]


def test_a_machine_client_gives_no_more_than_its_grant(api, grant, roles, permissions, place):
    client_id, _ = grant(school_ids=[place.id], permissions=EVERYTHING_OF_USERS_AND_ROLES)
    key = api.app.extensions["school-service"].verifier.key
    machine = api.using(token=issue_client_token(key, client_id, [place.id])["access_token"])
    user = machine.ok(machine.post("/users", NEW))["user"]["id"]
    role = machine.ok(machine.post("/roles", {"name": "Cook", "avatar": 1}))["id"]

    assert machine.put(f"/users/{user}/roles", {"role": roles["Viewer"]}).status_code == 403
    body = {"permissionIds": [permissions["read:metrics"]]}
    assert machine.patch(f"/roles/{role}/permissions", body).status_code == 403
    assert machine.put(f"/users/{place.admin_id}/password", {"password": "mine"}).status_code == 403

    body = {"permissionIds": [permissions["read:users"]]}
    assert machine.patch(f"/roles/{role}/permissions", body).status_code == 200
    assert machine.put(f"/users/{user}/roles", {"role": role}).status_code == 200
    assert machine.put(f"/users/{user}/password", {"password": "theirs"}).status_code == 200
    assert permissions_of(machine, "ada", "theirs") == {"read:users"}
