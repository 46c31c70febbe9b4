"""Correcting employees: their references, dates and accounts."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.factories import ORIGIN
from tests.threads import run_concurrently


@pytest.fixture
def employee(make):
    return make.employee()


def path_of(employee):
    return f"/employees/{employee['id']}"


def elsewhere(api):
    """An LGA that is not of the state of ORIGIN, with its state."""
    states = api.ok(api.get("/states"))
    state = next(state["id"] for state in states if state["id"] != ORIGIN["state"])
    return {"lga": api.ok(api.get("/lgas", query_string={"state": state}))[0]["id"], "state": state}


def audited(api, entity, record_id):
    entries = api.ok(api.get("/audit", query_string={"entity": entity, "id": record_id}))["data"]
    return [(entry["old"], entry["new"]) for entry in reversed(entries) if entry["action"] == "update"]


def test_department_category_and_position_change(api, make, employee):
    changes = {
        "department": make.department()["id"],
        "category": make.employee_category()["id"],
        "position": make.position()["id"],
    }

    assert api.ok(api.patch(path_of(employee), changes)) == {**employee, **changes}
    assert audited(api, "employee", employee["id"]) == [({}, {"changed": sorted(changes)})]


@pytest.mark.parametrize("name", ["department", "category", "position", "nationality", "lga", "state"])
def test_a_reference_to_nothing_is_refused(api, make_other, employee, name):
    ids = [str(uuid4()), "x", 5]
    if name == "department":
        ids.append(make_other.department()["id"])
    for value in ids:
        answer = api.patch(path_of(employee), {"title": "Dr", name: value})

        assert (answer.status_code, set(answer.get_json()["errors"]["json"])) == (422, {name})
    assert api.ok(api.get(path_of(employee))) == employee


def test_the_local_government_area_lies_in_the_state_whichever_changes(api, employee):
    there = elsewhere(api)
    for changes in ({"state": there["state"]}, {"lga": there["lga"]}):
        answer = api.patch(path_of(employee), changes)

        assert answer.get_json()["errors"] == {"json": {"lga": ["does not lie in the state"]}}
    assert api.ok(api.patch(path_of(employee), there)) == {**employee, **there}


@pytest.mark.parametrize("changes", [{"dob": "2020-01-07"}, {"join_date": "1985-04-11"}])
def test_nobody_joins_before_their_birth(api, employee, changes):
    answer = api.patch(path_of(employee), changes)

    assert answer.get_json()["errors"] == {"json": {"dob": ["is after join_date"]}}
    assert api.ok(api.get(path_of(employee))) == employee
    both = {"dob": "2020-01-07", "join_date": "2040-01-06"}
    assert api.ok(api.patch(path_of(employee), both)) == {**employee, **both}


def test_names_and_gender_change_in_the_account(api, make, employee):
    account = make.account_of(employee)
    changes = {"first_name": "Adá", "last_name": "Obí", "gender": "MALE"}

    changed = api.ok(api.patch(path_of(employee), {**changes, "title": "Dr"}))

    assert changed == {**employee, **changes, "title": "Dr"}
    assert api.ok(api.get(f"/users/{account['id']}")) == {**account, **changes}
    old = {name: employee[name] for name in changes}
    assert audited(api, "user", account["id"]) == [(old, changes)]
    assert audited(api, "employee", employee["id"]) == [({}, {"changed": ["title"]})]


def test_the_name_of_an_employee_with_more_permissions_is_not_changed(api, make, employee):
    account, role = make.account_of(employee), make.role("write:roles")
    api.ok(api.put(f"/users/{account['id']}/roles", {"role": role["id"]}))
    clerk = make.caller("read:employees", "write:employees")
    employee = api.ok(api.get(path_of(employee)))

    for changes in ({"first_name": "Ada"}, {"last_name": "Obi", "title": "Dr"}, {"gender": "MALE"}):
        answer = clerk.patch(path_of(employee), changes)

        message = "Changing the name or gender of this employee needs the permission write:roles."
        assert (answer.status_code, answer.get_json()["message"]) == (403, message)
    assert api.ok(api.get(path_of(employee))) == employee
    # A field of the employee alone, or an equal name, needs no more than the employees' permission.
    same = {"first_name": employee["first_name"], "title": "Dr"}
    assert clerk.ok(clerk.patch(path_of(employee), same)) == {**employee, "title": "Dr"}
    assert api.patch(path_of(employee), {"first_name": "Ada"}).status_code == 200


def test_ones_own_name_needs_the_employees_permission_alone(api, make):
    employee = make.employee()
    account, role = make.account_of(employee), make.role("write:employees", "read:users")
    api.ok(api.put(f"/users/{account['id']}/roles", {"role": role["id"]}))
    api.ok(api.put(f"/users/{account['id']}/password", {"password": "a password"}))
    own = make.signed_in(account)

    assert own.ok(own.patch(path_of(employee), {"first_name": "Ada"}))["first_name"] == "Ada"


def test_nested_records_and_username_have_addresses_of_their_own(api, make, employee):
    body = make.employee_body()
    for name in ("bank_details", "next_of_kin", "contact", "username", "role"):
        answer = api.patch(path_of(employee), {name: body.get(name, "x")})

        assert (answer.status_code, set(answer.get_json()["errors"]["json"])) == (422, {name})


@pytest.mark.parametrize("part", ["", "/bank-account", "/nextofkin"])
def test_a_deleted_employee_is_not_found(api, employee, part):
    api.ok(api.delete(path_of(employee)))

    assert api.patch(f"{path_of(employee)}{part}", {}).status_code == 404


def test_a_name_can_be_corrected_where_the_account_is_deleted(api, make, employee):
    account = make.account_of(employee)
    api.ok(api.delete(f"/users/{account['id']}/delete"))

    assert api.ok(api.patch(path_of(employee), {"first_name": "Ada"}))["first_name"] == "Ada"


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 1.5, "7", True])
@pytest.mark.parametrize("part", ["bank-account", "nextofkin"])
def test_the_callers_own_number_is_a_number_of_32_bits(api, employee, part, value):
    answer = api.patch(f"{path_of(employee)}/{part}", {"employee": value})

    assert (answer.status_code, set(answer.get_json()["errors"]["json"])) == (422, {"employee"})


def test_corrections_and_a_deletion_at_once_end_well(committing):
    api, made = committing.api, committing.employee()
    parts = ["", "/bank-account", "/nextofkin"]
    changes = [{"first_name": "Ada"}, {"bank_name": "Zenith"}, {"full_name": "Obi"}]

    def work(number):
        client = api.using()
        if number == 3:
            return client.delete(path_of(made))
        return client.patch(f"{path_of(made)}{parts[number]}", changes[number])

    *corrected, deleted = run_concurrently(4, work)

    assert deleted.status_code == 200
    assert {answer.status_code for answer in corrected} <= {200, 404}
