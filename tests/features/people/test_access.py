"""An operation on a person needs no less than the narrowest that shows or changes one, under any name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from school_service.core.permissions import Permission
from school_service.features.people.access import READ_WITH, needed_to_read
from school_service.features.personal_data.schemas import EmployeeDataSchema, StudentDataSchema, tables_of
from tests.docs.test_privacy import PAGE, tables_of_people
from tests.factories import Factory
from tests.features.personal_data.people import make_employee, make_student
from tests.features.sign_in.rows import store_identity, store_session
from tests.features.test_access_matrix import documented_operations

# The schemas of the document that show a person, each with the table whose records they show.
PERSONS = {
    "User": "users",
    "UserRole": "user_roles",
    "Student": "students",
    "Guardian": "students",
    "Employee": "employees",
    "BankAccount": "bank_accounts",
    "NextOfKin": "next_of_kin",
    "Contact": "contacts",
    "FormTeacher": "form_teachers",
    "Graduate": "graduates",
    "GradebookEntry": "gradebook_entries",
    "Absence": "absences",
    "TermComment": "term_comments",
    "MetricRecord": "metrics",
    "AuditEntry": "audit_entries",
    "TermResult": "report_cards",
    "Transcript": "report_cards",
    "StudentData": "students",
    "EmployeeData": "employees",
}
# Schemas of one permission that another shows, too, and why.
WIDER = {
    # The interface's own: a reader of users sees their roles, by their ids; a sign-in shows one's own.
    "UserRole": {"read:users", "write:users", "delete:users", None},
    # The interface's own: a class list has its students, and they are seen by those putting them into classes.
    # Everybody is shown themselves.
    "Student": {"read:cohorts", "write:cohorts", None},
    "Guardian": {"read:cohorts", "write:cohorts", None},
    "Employee": {None},
    "User": {None},
    # The interface's own: a score sheet has the entries of the takers of the subject.
    "GradebookEntry": {"read:scoresheets"},
    # Comments are read as results and written as metrics, by form teachers.
    "TermComment": {"write:metrics"},
}


def schemas_in(document: dict[str, Any], schema: Any) -> Iterator[str]:
    """The names of the schemas that an answer has in it."""
    seen: set[str] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name and name not in seen:
                seen.add(name)
                waiting.append(document["components"]["schemas"][name])
            waiting += [value for key, value in part.items() if key != "$ref"]
    return iter(seen)


def test_an_answer_with_a_person_needs_the_permissions_of_the_narrowest_one(document):
    shown = set()
    for (method, path), operation in documented_operations().items():
        given = (operation.get("x-permission") or "").split()
        answer = operation["responses"].get("200", {}).get("content", {})
        for schema in set(schemas_in(document.spec, answer)) & PERSONS.keys():
            shown.add(schema)
            # The writer of a record is shown it.
            narrow = {permission.section for permission in READ_WITH[PERSONS[schema]]}
            sections = {permission.partition(":")[2] for permission in given}
            wider = WIDER.get(schema, set()) & ({*given} or {None})
            assert narrow <= sections or wider, f"{method} {path} shows {schema} with {given or 'any token'}"
    assert shown == PERSONS.keys()


def test_every_table_of_people_has_its_permissions_of_reading_here_and_on_the_page():
    assert READ_WITH.keys() == tables_of_people()
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]
    for row in rows:
        for table in READ_WITH.keys() & {name.strip("`") for name in row[2].split(", ")}:
            assert all(f"`{permission}`" in row[4] for permission in READ_WITH[table]), row


@pytest.mark.parametrize("schema", [StudentDataSchema, EmployeeDataSchema])
def test_all_that_is_told_of_a_person_needs_the_permission_of_each_area(schema):
    told = set(tables_of(schema))

    needed = needed_to_read(*told)

    assert set(needed) == set().union(*(READ_WITH[table] for table in told))
    assert list(needed) == sorted(needed)
    assert Permission.AUDIT_READ in needed


# Changing a person who may do more than the caller.

ACCOUNT_CHANGES = {"first_name": "Taken", "last_name": "Over", "gender": "MALE"}
# Each operation that changes a person by an id in its path, with a body that would change their account.
CHANGES: dict[tuple[str, str], Any] = {
    ("PATCH", "/users/{id}"): {**ACCOUNT_CHANGES, "username": "taken.over"},
    ("DELETE", "/users/{id}/delete"): None,
    ("PUT", "/users/{id}/restore"): None,
    ("DELETE", "/users/{id}/roles/{roleId}"): None,
    ("DELETE", "/users/{id}/sessions"): None,
    ("DELETE", "/users/{id}/sessions/{session_id}"): None,
    ("DELETE", "/users/{id}/photo"): None,
    ("DELETE", "/users/{id}/identities/{identity_id}"): None,
    ("PUT", "/users/{id}/password"): {"password": "taken over, entirely"},
    ("PATCH", "/students/{id}"): ACCOUNT_CHANGES,
    ("DELETE", "/students/{id}"): None,
    ("DELETE", "/students/{id}/data"): None,
    ("PATCH", "/employees/{id}"): ACCOUNT_CHANGES,
    ("DELETE", "/employees/{id}"): None,
    ("DELETE", "/employees/{id}/data"): None,
}
# These change no account: its permissions, its name and its sign-in stay.
OF_NO_ACCOUNT = {
    # A role is given by a caller with every permission in it, and takes none away.
    ("PUT", "/users/{id}/roles"),
    ("PATCH", "/employees/{id}/bank-account"),
    ("PATCH", "/employees/{id}/nextofkin"),
    # The guardians of a student. Giving an account a child needs read:results (tests/features/people/guardians).
    ("PUT", "/students/{id}/guardians/{guardian_id}"),
    ("DELETE", "/students/{id}/guardians/{guardian_id}"),
    ("PUT", "/students/{id}/guardians/{guardian_id}/stop"),
    ("DELETE", "/students/{id}/guardians/{guardian_id}/stop"),
}


# These need a file, or an outside provider: they are looked at in tests/features/photos and tests/features/identities.
ELSEWHERE = {("PUT", "/users/{id}/photo"), ("POST", "/users/{id}/identities")}


def test_every_operation_that_changes_a_person_is_looked_at():
    changing = {
        (method, path)
        for method, path in documented_operations()
        if method != "GET" and path.startswith(("/users/{id}", "/students/{id}", "/employees/{id}"))
    }

    assert CHANGES.keys() | OF_NO_ACCOUNT | ELSEWHERE == changing


def promoted(make: Factory, person: dict[str, Any]) -> dict[str, Any]:
    """Make a student or an employee an administrator; answers the record, with the role."""
    roles = {role["name"]: role["id"] for role in make.api.ok(make.api.get("/roles"))}
    make.api.ok(make.api.put(f"/users/{person['user']}/roles", {"role": roles["Administrator"]}))
    return {**person, "role": roles["Administrator"]}


@pytest.fixture(scope="module", autouse=True)
def originals(prepared: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """A student and an employee with all possible records, both administrators."""
    return prepared(
        lambda make: {
            "students": promoted(make, make_student(make)),
            "employees": promoted(make, make_employee(make)),
        }
    )


@pytest.fixture
def administrator_of(api, make, originals):
    """Answers a student or an employee who is an administrator, who has left or not, with a history or none."""

    def administrator(kind: str, *, left: bool, history: bool = True) -> dict[str, Any]:
        person = deepcopy(originals[kind]) if history else promoted(make, make.student())
        if left and kind == "students":
            removed = {"student_ids": [person["id"]]}
            api.ok(api.patch(f"/cohorts/{person['cohort_id']}/remove_students", removed))
        if left and kind == "employees":
            api.ok(api.delete(f"/employees/{person['id']}?release=true"))
        return person

    return administrator


@pytest.mark.parametrize("operation", CHANGES, ids=" ".join)
def test_nobody_changes_the_account_of_a_person_with_more_permissions(api, make, administrator_of, operation):
    method, path = operation
    kind = path.split("/")[1]
    of = "students" if kind == "users" else kind
    person = administrator_of(
        of, left=path.endswith("/data"), history=operation != ("DELETE", "/students/{id}")
    )
    permissions = documented_operations()[operation]["x-permission"].split()
    caller = make.caller(*permissions)
    address = path.replace("{roleId}", person["role"]).replace(
        "{id}", person["user"] if kind == "users" else person["id"]
    )
    if "{session_id}" in address:
        address = address.replace("{session_id}", store_session(api.school, person["user"]))
    if "{identity_id}" in address:
        address = address.replace("{identity_id}", store_identity(api.school, person["user"]))
    if path.endswith("/restore"):
        api.ok(api.delete(f"/users/{person['user']}/delete"))
    before = api.ok(api.get(f"/{of}/{person['id']}/data"))

    answer = caller.request(method, address, json=CHANGES[operation])

    assert answer.status_code == 403, answer.get_json()
    assert " needs the permissions " in answer.get_json()["message"]
    after = api.ok(api.get(f"/{of}/{person['id']}/data"))
    # Reading it is an entry of the log itself.
    assert {**after, "audit": None} == {**before, "audit": None}
    if operation == ("DELETE", "/employees/{id}"):
        address += "?release=true"  # They teach.
    assert api.request(method, address, json=CHANGES[operation]).status_code == 200
