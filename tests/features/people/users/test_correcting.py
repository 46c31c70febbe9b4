"""Correcting an account: by a caller with all permissions of its user."""

from __future__ import annotations

import pytest

from tests.factories import PASSWORD


@pytest.fixture
def clerk(make):
    """Somebody who may do everything with users, and nothing else."""
    return make.caller("read:users", "write:users", "delete:users")


@pytest.fixture
def boss(api, make):
    """An account whose user has a permission that the clerk lacks."""
    return user_of(make.caller("read:users", "write:roles"))


def user_of(client):
    return client.user


def path_of(user):
    return f"/users/{user['id']}"


def test_a_changed_username_signs_in_and_the_old_one_does_not(api, make):
    user = make.user(username="adaezee")["user"]

    api.ok(api.patch(path_of(user), {"username": " adaeze "}))

    credentials = {"username": "adaeze", "password": PASSWORD}
    assert api.ok(api.post("/users/login", credentials))["user"]["id"] == user["id"]
    assert api.post("/users/login", {**credentials, "username": "adaezee"}).status_code == 401


def test_a_taken_username_is_a_conflict(api, make):
    make.user(username="adaeze")
    gone = make.user(username="ngozi")["user"]
    api.ok(api.delete(f"{path_of(gone)}/delete"))
    user = make.user()["user"]

    for name in ("adaeze", "ngozi"):
        answer = api.patch(path_of(user), {"first_name": "Ada", "username": name})

        assert answer.status_code == 409
        assert answer.get_json()["errors"] == {"json": {"username": ["already taken"]}}
    assert api.ok(api.get(path_of(user))) == user


@pytest.mark.parametrize(
    "changes",
    [{"username": "taken"}, {"first_name": "Ada"}, {"last_name": "Obi"}, {"gender": "MALE"}, {}],
    ids=str,
)
def test_a_user_with_more_permissions_is_not_changed(api, clerk, boss, changes):
    answer = clerk.patch(path_of(boss), changes)

    assert answer.status_code == 403
    assert answer.get_json()["message"] == "Changing this user needs the permission write:roles."
    assert api.ok(api.get(path_of(boss)))["username"] == boss["username"]
    assert api.patch(path_of(boss), changes).status_code == 200


def test_a_user_without_more_permissions_is_changed(clerk, make):
    user = user_of(make.caller("read:users"))

    assert clerk.ok(clerk.patch(path_of(user), {"first_name": "Ada"}))["first_name"] == "Ada"


def test_ones_own_account_needs_the_permission_to_write_alone(api, make, clerk):
    assert clerk.ok(clerk.patch(path_of(clerk.user), {"last_name": "Obi"}))["last_name"] == "Obi"
    other = make.caller("read:users")
    assert other.patch(path_of(other.user), {"last_name": "Obi"}).status_code == 403
    api.ok(api.patch(path_of(other.user), {"last_name": "Obi"}))


def test_a_deleted_user_is_not_found_and_comes_back_unchanged(api, make):
    user = make.user()["user"]
    api.ok(api.delete(f"{path_of(user)}/delete"))

    assert api.patch(path_of(user), {"first_name": "Ada"}).status_code == 404

    assert api.ok(api.put(f"{path_of(user)}/restore")) == user


def test_a_correction_shows_in_the_student_and_the_employee(api, make):
    student, employee = make.student(), make.employee()
    account = make.account_of(employee)

    api.ok(api.patch(f"/users/{student['user']}", {"first_name": "Ada", "gender": "FEMALE"}))
    api.ok(api.patch(path_of(account), {"last_name": "Obi"}))

    assert api.ok(api.get(f"/students/{student['id']}")) == {
        **student,
        "first_name": "Ada",
        "gender": "FEMALE",
    }
    assert api.ok(api.get(f"/employees/{employee['id']}")) == {**employee, "last_name": "Obi"}


def test_a_token_goes_on_with_another_username(api, make):
    caller = make.caller("read:users")

    api.ok(api.patch(path_of(caller.user), {"username": "another"}))

    assert caller.get(path_of(caller.user)).status_code == 200
