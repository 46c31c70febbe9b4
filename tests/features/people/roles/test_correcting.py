"""Correcting and deleting roles: the names that stay, and the permissions."""

from __future__ import annotations

import pytest

from school_service.features.people.models import ADMINISTRATOR


def message(answer):
    return answer.get_json()["message"]


@pytest.fixture
def roles(api):
    """The ids of the roles that a school begins with, by name."""
    return {role["name"]: role["id"] for role in api.ok(api.get("/roles"))}


def test_administrator_keeps_its_name_and_stays(api, roles):
    path = f"/roles/{roles[ADMINISTRATOR]}"
    for name in ("Head", "administrator", "Teacher"):
        answer = api.patch(path, {"name": name})

        assert (answer.status_code, message(answer)) == (409, "The role Administrator keeps its name.")
    assert api.ok(api.patch(path, {"name": " Administrator ", "avatar": 9}))["avatarNumber"] == 9

    answer = api.delete(path)

    assert (answer.status_code, message(answer)) == (409, "The role Administrator can't be deleted.")


@pytest.mark.parametrize("name", ["Teacher", "teacher", "\uff34eacher", "Administrator", "administrator"])
def test_no_role_takes_the_name_of_a_seeded_role_whether_that_is_there_or_not(api, make, roles, name):
    role = make.role()
    api.ok(api.patch(f"/roles/{roles['Teacher']}", {"name": "Tutor"}))

    answer = api.patch(f"/roles/{role['id']}", {"name": name})

    assert answer.status_code == 409
    assert answer.get_json()["errors"] == {"json": {"name": ["already taken"]}}
    assert api.ok(api.get(f"/roles/{role['id']}")) == role


@pytest.mark.parametrize("seeded", ["Bursar", "Teacher"])
def test_a_new_role_gets_no_name_of_a_seeded_one_in_any_case(api, roles, seeded):
    api.ok(api.delete(f"/roles/{roles['Bursar']}"))

    for name in (seeded, seeded.lower(), seeded.upper()):
        answer = api.post("/roles", {"name": name, "avatar": 1})

        sentence = f"{seeded} is the name of a role that every school begins with."
        assert (answer.status_code, message(answer)) == (409, sentence)


def test_a_seeded_role_takes_its_own_name_back(api, roles):
    path = f"/roles/{roles['Teacher']}"
    for name in ("Tutor", "Teacher", "teacher", "Teacher"):
        assert api.ok(api.patch(path, {"name": name}))["name"] == name

    assert api.patch(path, {"name": "Bursar"}).status_code == 409


def test_a_name_that_another_role_has_is_a_conflict(api, make):
    make.role(name="Cook")
    other = make.role()["id"]

    answer = api.patch(f"/roles/{other}", {"name": "Cook"})

    assert (answer.status_code, message(answer)) == (409, "A role with this name exists already.")
    for body in ({"name": None}, {"name": ""}, {"avatar": "1"}, {"avatar": 1.5}, {"permissionIds": []}):
        assert api.patch(f"/roles/{other}", body).status_code == 422


def test_users_of_a_renamed_role_keep_its_permissions(api, make):
    role = make.role("read:classrooms", name="Libarian")["id"]
    user = make.user()["user"]
    api.ok(api.put(f"/users/{user['id']}/roles", {"role": role}))
    api.ok(api.patch(f"/roles/{role}", {"name": "Librarian"}))

    assert make.signed_in(user).get("/classrooms").status_code == 200


def test_a_role_of_a_deleted_user_is_in_use_as_a_restored_user_has_it_again(api, make):
    role, user = make.role()["id"], make.user()["user"]["id"]
    api.ok(api.put(f"/users/{user}/roles", {"role": role}))
    api.ok(api.delete(f"/users/{user}/delete"))

    answer = api.delete(f"/roles/{role}")

    assert (answer.status_code, message(answer)) == (409, "The role is in use by 1 user.")
    api.ok(api.put(f"/users/{user}/restore"))
    api.ok(api.delete(f"/users/{user}/roles/{role}"))
    api.ok(api.delete(f"/roles/{role}"))


def test_nobody_deletes_a_role_that_may_more_than_they(make):
    role = make.role("read:audit", "read:users", name="Clerk")["id"]

    answer = make.caller("delete:roles", "read:users").delete(f"/roles/{role}")

    words = "Deleting the role Clerk needs the permission read:audit."
    assert (answer.status_code, message(answer)) == (403, words)
    assert make.caller("delete:roles", "read:users", "read:audit").delete(f"/roles/{role}").status_code == 200
