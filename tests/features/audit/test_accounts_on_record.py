"""The audit log's entries of accounts and roles, and their actors."""

from __future__ import annotations

import pytest
from sqlalchemy import delete

from tenants.registry.clients import create_client
from tenants.registry.schools import clients
from tests.factories import PASSWORD

ACCOUNT = {"username": "ngozi", "first_name": "Ngozi", "last_name": "Eze", "gender": "FEMALE"}


def on_record(api, entity, record_id):
    """List the changes of a record, the oldest first: action, old and new."""
    entries = api.ok(api.get("/audit", query_string={"entity": entity, "id": record_id}))["data"]
    return [(entry["action"], entry["old"], entry["new"]) for entry in reversed(entries)]


@pytest.fixture
def account(make):
    """A user with the creation alone on record."""
    return make.user(**ACCOUNT)["user"]


def test_creating_deleting_and_restoring_an_account_are_on_record(api, account):
    api.ok(api.delete(f"/users/{account['id']}/delete"))
    api.ok(api.put(f"/users/{account['id']}/restore"))
    api.ok(api.put(f"/users/{account['id']}/restore"))

    assert on_record(api, "user", account["id"]) == [
        ("create", None, ACCOUNT),
        ("delete", ACCOUNT, None),
        ("update", {"deleted": True}, {"deleted": False}),
    ]


def test_roles_given_and_taken_are_on_record_once(api, make, account):
    role = make.role(name="Bursary")
    for _ in range(2):
        api.ok(api.put(f"/users/{account['id']}/roles", {"role": role["id"]}))
    for status in (200, 404):
        assert api.delete(f"/users/{account['id']}/roles/{role['id']}").status_code == status

    assert on_record(api, "user", account["id"])[1:] == [
        ("update", {"role": None}, {"role": "Bursary"}),
        ("update", {"role": "Bursary"}, {"role": None}),
    ]


def test_a_password_is_on_record_without_its_value(api, make, account):
    secret = "a password that nobody may read"
    api.ok(api.put(f"/users/{account['id']}/password", {"password": secret}))
    own = make.caller()
    body = {"password": secret, "current_password": PASSWORD}
    own.ok(own.put(f"/users/{own.user['id']}/password", body))

    assert on_record(api, "user", account["id"])[1:] == [("update", {}, {"password": "set"})]
    whole = api.get("/audit").get_data(as_text=True)
    assert secret not in whole
    assert "argon2" not in whole


def test_a_role_and_its_permissions_are_on_record(api, make):
    role = make.role("read:users", "write:users", name="Clerk", avatar=3)
    remaining = [permission["id"] for permission in role["permissions"] if permission["access"] == "read"]
    for _ in range(2):
        api.ok(api.patch(f"/roles/{role['id']}/permissions", {"permissionIds": remaining}))

    assert on_record(api, "role", role["id"]) == [
        ("create", None, {"name": "Clerk", "avatar": 3}),
        ("update", {"permissions": []}, {"permissions": ["read:users", "write:users"]}),
        ("update", {"permissions": ["read:users", "write:users"]}, {"permissions": ["read:users"]}),
    ]


def test_a_permission_of_the_schools_own_is_on_record(api):
    made = api.ok(api.post("/permissions", {"section": "library", "access": "lend"}))

    assert on_record(api, "permission", made["id"]) == [
        ("create", None, {"section": "library", "access": "lend"})
    ]


def test_a_student_is_on_record_with_the_account(api, make):
    student = make.student(first_name="Ada", last_name="Obi", admission_number="QC/1", gender="FEMALE")

    assert on_record(api, "user", student["user"]) == [
        ("create", None, {"username": "QC/1", "first_name": "Ada", "last_name": "Obi", "gender": "FEMALE"})
    ]


def test_private_members_are_on_record_as_changed_without_their_values(api, make):
    student, employee = make.student(), make.employee()
    changes = {"middle_name": "Secret", "dob": "2011-03-29", "guardian": {"full_name": "Secret"}}
    api.ok(api.patch(f"/students/{student['id']}", changes))
    api.ok(api.patch(f"/employees/{employee['id']}", {"middle_name": "Secret", "dob": "1985-03-29"}))
    for part, changed in (("bank-account", "account_number"), ("nextofkin", "relationship")):
        api.ok(api.patch(f"/employees/{employee['id']}/{part}", {changed: "Secret"}))
    api.ok(api.patch(f"/contacts/{make.contact()['id']}", {"physical_address": "Secret"}))

    whole = api.get("/audit", query_string={"pageSize": 1000}).get_data(as_text=True)

    assert whole.count('"changed"') == 5
    assert not any(value in whole for value in ("Secret", "2011-03-29", "1985-03-29"))


def test_entries_of_a_student_in_a_class_bear_the_students_id(api, make):
    cohort, student = make.cohort(), make.student()
    make.cohort_subject(cohort)
    elective = make.cohort_subject(cohort, elective=True)
    make.enrolled(cohort, student)
    api.ok(api.patch(f"/cohort-subjects/{elective['id']}/students", [student["id"]]))
    make.guardian(student)

    entries = api.ok(api.get("/audit", query_string={"id": student["id"], "pageSize": 1000}))["data"]

    # The taking of the compulsory subject follows from the enrollment.
    assert sorted(entry["entity"] for entry in entries) == [
        "enrollment",
        "student",
        "student-guardian",
        "subject-enrollment",
    ]
    api.ok(api.patch(f"/teachers/{cohort['id']}/add_to_batch", {"teacher_id": make.employee()["id"]}))
    assert len(on_record(api, "form-teacher", cohort["id"])) == 1


def test_a_refused_request_is_not_on_record(api, account):
    assert api.post("/users", {**ACCOUNT, "password": "x"}).status_code == 409
    assert api.put(f"/users/{account['id']}/roles", {"role": account["id"]}).status_code == 422

    assert api.ok(api.get("/audit"))["total"] == 1


def test_a_user_acts_under_id_and_name(api, make, account):
    caller = make.caller("write:users", "delete:users", "read:users")
    headers = {"X-Request-ID": "the-request-1"}

    caller.ok(caller.delete(f"/users/{account['id']}/delete", headers=headers))

    (entry,) = api.ok(api.get("/audit", query_string={"actor": caller.user["id"]}))["data"]
    assert (entry["entity_id"], entry["request_id"]) == (account["id"], "the-request-1")
    assert entry["actor_name"] == f"{caller.user['first_name']} {caller.user['last_name']}"


def test_the_name_is_the_one_at_that_time(api, make):
    caller = make.caller("write:roles")
    caller.ok(caller.post("/roles", {"name": "Librarian", "avatar": 1}))

    api.ok(api.delete(f"/users/{caller.user['id']}/delete"))

    (entry,) = api.ok(api.get("/audit", query_string={"actor": caller.user["id"]}))["data"]
    assert entry["actor_name"] == f"{caller.user['first_name']} {caller.user['last_name']}"


def test_each_request_acts_for_itself(api, make):
    first, second = make.caller("write:roles"), make.caller("write:roles")
    for number, caller in enumerate((first, second, first)):
        caller.ok(caller.post("/roles", {"name": f"Role of nobody {number}", "avatar": 1}))

    totals = [
        api.ok(api.get("/audit", query_string={"actor": caller.user["id"]}))["total"]
        for caller in (first, second)
    ]
    assert totals == [2, 1]


def test_a_client_acts_under_its_id(api, tenancy):
    client = f"payroll-{api.school}"
    with tenancy.admin.begin() as connection:
        secret = create_client(
            connection, client_id=client, school_ids=[api.school], permissions=["write:roles"]
        )
    try:
        credentials = {"client_id": client, "client_secret": secret, "audience": "school-service"}
        token = api.ok(api.post("/auth/oauth/token", {**credentials, "grant_type": "client_credentials"}))
        caller = api.using(token=token["access_token"])
        caller.ok(caller.post("/roles", {"name": "Made by a machine", "avatar": 1}))
    finally:
        with tenancy.admin.begin() as connection:
            connection.execute(delete(clients).where(clients.c.id == client))

    (entry,) = api.ok(api.get("/audit", query_string={"actor": client}))["data"]
    assert (entry["actor_name"], entry["new"]["name"]) == (client, "Made by a machine")
