"""People with reach OWN: one's own account, employee record and contacts, and a form teacher's students' contacts."""

from __future__ import annotations

import pytest
from werkzeug.test import TestResponse

from tests.factories import UNKNOWN_ID, Factory
from tests.features.reach.conftest import Arms, Own, error_of, ids

# Every test of the module has the same begin, whichever ran before.
pytestmark = pytest.mark.usefixtures("made_arms")

PASSWORD = "a password of their own"


def test_an_employee_reads_their_own_record_alone(make: Factory, own: Own) -> None:
    other = make.employee()
    employee, client = own.teacher()

    assert ids(client, "/employees") == {employee["id"]}
    for part in ("", "/bank-account", "/nextofkin"):
        assert client.get(f"/employees/{employee['id']}{part}").status_code == 200
        unknown = error_of(client.get(f"/employees/{UNKNOWN_ID}{part}"))
        assert error_of(client.get(f"/employees/{other['id']}{part}")) == unknown
    assert client.patch(f"/employees/{employee['id']}", {"title": "Dr"}).status_code == 403


def test_the_only_user_is_oneself_also_in_searches_totals_and_conditional_requests(
    make: Factory, own: Own
) -> None:
    other = make.user(last_name="Adébáyọ̀")["user"]
    employee, client = own.teacher()
    account = make.account_of(employee)

    page = client.ok(client.get("/users"))
    assert (page["total"], [user["id"] for user in page["data"]]) == (1, [account["id"]])
    assert client.ok(client.get("/users?search=adebayo"))["total"] == 0
    tag = make.api.get(f"/users/{other['id']}").headers["ETag"]
    unknown = error_of(client.get(f"/users/{UNKNOWN_ID}"))
    assert error_of(client.get(f"/users/{other['id']}", headers={"If-None-Match": tag})) == unknown


def test_a_caller_with_write_users_as_own_changes_their_own_password_and_sessions_alone(
    make: Factory, own: Own
) -> None:
    user, other = make.user()["user"], make.user()["user"]
    client = own.caller(user, "write:users", "read:users")

    unknown = error_of(client.delete(f"/users/{UNKNOWN_ID}/sessions"))
    assert unknown[0] == 404
    assert error_of(client.delete(f"/users/{other['id']}/sessions")) == unknown
    body = {"password": "taken over"}
    assert error_of(client.put(f"/users/{other['id']}/password", body)) == error_of(
        client.put(f"/users/{UNKNOWN_ID}/password", body)
    )
    assert client.patch(f"/users/{user['id']}", {"first_name": "Other"}).status_code == 403
    changed = {"password": "another of their own", "current_password": PASSWORD}
    assert client.put(f"/users/{user['id']}/password", changed).status_code == 200
    assert make.signed_in(user, "another of their own").get("/users").status_code == 200


def test_nobody_signs_in_as_a_colleague_by_permissions_that_are_of_own_records(
    make: Factory, own: Own, arms: Arms
) -> None:
    accounts = make.role("write:users")
    for permission in ("read:gradebooks", "read:results"):
        teacher, client = own.teacher(permission)
        colleague, _ = own.teacher(permission)
        own.assign(colleague, arms.subject, arms.b)
        api, account = make.api, make.account_of(colleague)
        api.ok(api.put(f"/users/{make.account_of(teacher)['id']}/roles", {"role": accounts["id"]}))

        refused = client.put(f"/users/{account['id']}/password", {"password": "taken over"})

        assert (refused.status_code, refused.get_json()["message"]) == (
            403,
            f"Setting this user's password needs the permission {permission} for the whole school.",
        )
        api.ok(api.put(f"/users/{account['id']}/password", {"password": "set by who may read all"}))


@pytest.mark.parametrize("who", ["subject teacher", "another form teacher"])
def test_contacts_of_students_are_their_form_teachers(make: Factory, own: Own, arms: Arms, who: str) -> None:
    student = make.api.ok(make.api.get(f"/students/{arms.in_a[0]}"))
    contact = make.contact({"id": student["user"]})
    form_teacher = own.form_teacher(arms.a)
    stranger = own.form_teacher(arms.b) if "form" in who else own.subject_teacher(arms.subject, None)

    answer = form_teacher.ok(form_teacher.get(f"/contacts?user_id={student['user']}"))
    assert answer["id"] == contact["id"]
    unknown = error_of(stranger.get(f"/contacts?user_id={UNKNOWN_ID}"))
    assert error_of(stranger.get(f"/contacts?user_id={student['user']}")) == unknown
    # To read a contact is not to change it.
    for client in (form_teacher, stranger):
        assert client.patch(f"/contacts/{contact['id']}", {"physical_address": "x"}).status_code == 404


def test_a_user_adds_and_changes_their_own_contacts(make: Factory, own: Own) -> None:
    user, other = make.user()["user"], make.user()["user"]
    client = own.caller(user, "write:contacts", "read:contacts")
    body = {"email_address": "me@example.com", "phone_number": "+2348031234567", "physical_address": "1 Road"}

    added = client.ok(client.post("/contacts", {**body, "owner": user["id"]}))

    assert added["owner"] == user["id"]
    assert client.patch(f"/contacts/{added['id']}", {"physical_address": "2 Road"}).status_code == 200
    refused = error_of(client.post("/contacts", {**body, "owner": other["id"]}))
    assert refused == error_of(client.post("/contacts", {**body, "owner": UNKNOWN_ID}))
    assert refused[0] == 422
    assert make.api.get(f"/contacts?user_id={other['id']}").status_code == 404


def test_a_caller_who_reads_a_part_of_a_record_and_changes_all_of_it_names_either_tag(
    make: Factory, own: Own, arms: Arms
) -> None:
    teacher, client = own.teacher("read:students")
    own.assign(teacher, arms.subject, arms.a)
    registrar = make.role("write:students")["id"]
    make.api.ok(make.api.put(f"/users/{make.account_of(teacher)['id']}/roles", {"role": registrar}))
    path = f"/students/{arms.in_a[0]}"

    def patch(tag: str, **changes: str) -> TestResponse:
        return client.patch(path, changes, headers={"If-Match": tag})

    make.api.ok(make.api.patch(path, {"dob": "2012-05-01"}))
    seen = client.get(path)
    assert seen.get_json()["dob"] is None
    make.api.ok(make.api.patch(path, {"dob": "2012-05-02"}))
    changed = patch(seen.headers["ETag"], middle_name="Bola")

    assert (changed.status_code, changed.get_json()["dob"]) == (200, "2012-05-02")
    assert patch(seen.headers["ETag"], middle_name="Chidi").status_code == 412
    assert patch(changed.headers["ETag"], middle_name="Chidi").status_code == 200
    assert patch(client.get(path).headers["ETag"], middle_name="Dayo").status_code == 200
    other = f"/students/{arms.in_b[0]}"
    assert client.get(other).status_code == 404
    assert client.patch(other, {}, headers={"If-Match": seen.headers["ETag"]}).status_code == 412
