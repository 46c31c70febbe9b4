"""Emptying the audit log's entries of erased people: the operator's command."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from school_service.features.personal_data.audit_erasure import erase_audit
from tenants.exceptions import SchoolUpgrading, UnknownSchool
from tenants.operator_log import operator_name
from tenants.provisioning.create import create_school
from tenants.provisioning.ownership import become_owner
from tenants.registry.schools import change_school
from tests.client import ApiClient
from tests.conftest import make_place
from tests.factories import UNKNOWN_ID, Factory
from tests.features.personal_data.people import MARK, make_employee, make_student
from tests.features.personal_data.test_erased import erase, leave
from tests.postgres import on_postgresql_alone
from tests.tenants.installations import ADMINISTRATOR, installation


def log_of(api):
    """The whole audit log, the oldest first."""
    first = api.ok(api.get("/audit", query_string={"pageSize": 1000}))
    assert first["total_pages"] == 1
    return first["data"][::-1]


@pytest.fixture
def erased(committing):
    """An erased student and an erased employee."""
    api = committing.api
    people = {"students": make_student(committing), "employees": make_employee(committing)}
    for kind, person in people.items():
        leave(api, kind, person)
        erase(api, kind, person)
    return people


def test_the_values_of_an_entry_go_and_actor_and_action_stay(committing, tenancy, erased):
    api = committing.api
    before = log_of(api)
    assert str(before).lower().count(MARK) > 5

    count = erase_audit(tenancy, api.school)

    *after, told = log_of(api)
    assert MARK not in str(after).lower()
    assert len(after) == len(before)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) == count
    for old, new in changed:
        blank = dict.fromkeys(("old", "new", "address"))
        assert {**old, **blank} == {**new, **blank}
        for values in ("old", "new"):
            assert (old[values] or {}).keys() == (new[values] or {}).keys()
    assert (told["entity"], told["actor"], told["new"]) == (
        "audit",
        operator_name(),
        {"erased": True, "entries": count},
    )


def test_roles_passwords_and_deletions_stay(committing, tenancy, erased):
    api = committing.api
    erase_audit(tenancy, api.school)

    account = erased["employees"]["user"]
    changes = [(entry["old"], entry["new"]) for entry in log_of(api) if entry["entity_id"] == account]

    assert ({}, {"password": "set"}) in changes
    assert any(old == {"role": None} and new["role"].startswith("Role") for old, new in changes if old)
    nobody = dict.fromkeys(("username", "first_name", "last_name", "gender"))
    assert (None, nobody) in changes
    assert (nobody, None) in changes


def test_entries_of_a_person_who_was_not_erased_stay(committing, tenancy, erased):
    api = committing.api
    other = make_employee(Factory(api))
    leave(api, "employees", other)
    ids = {other["id"], other["user"], other["bank_details"], other["next_of_kin"]}
    before = [entry for entry in log_of(api) if entry["entity_id"] in ids]

    erase_audit(tenancy, api.school)

    assert [entry for entry in log_of(api) if entry["entity_id"] in ids] == before
    assert MARK in str(before).lower()


def test_scores_in_the_log_stay(committing, tenancy, erased):
    api = committing.api
    before = [entry for entry in log_of(api) if entry["entity"] in {"gradebook", "metric"}]

    erase_audit(tenancy, api.school)

    assert len(before) == 2
    assert [entry for entry in log_of(api) if entry["entity"] in {"gradebook", "metric"}] == before


def test_an_erased_actor_has_the_pseudonym(committing, tenancy):
    api = committing.api
    student = committing.student(
        first_name="Ada-Zxqvjk", last_name="Obi-Zxqvjk", username="ada", password="a password"
    )
    role = committing.role("write:classrooms")
    api.ok(api.put(f"/users/{student['user']}/roles", {"role": role["id"]}))
    own = committing.signed_in({"username": "ada"}, "a password")
    classroom = committing.classroom()
    own.ok(own.patch(f"/classrooms/{classroom['id']}", {"name": "By Ada"}))
    erase(api, "students", student)

    erase_audit(tenancy, api.school)

    (entry,) = [
        entry for entry in log_of(api) if (entry["entity"], entry["action"]) == ("classroom", "update")
    ]
    shown = api.ok(api.get(f"/students/{student['id']}"))
    assert entry["actor"] == student["user"]
    assert (entry["actor_name"], entry["address"]) == (f"Erased {shown['last_name']}", None)
    assert (entry["old"], entry["new"]) == ({"name": classroom["name"]}, {"name": "By Ada"})


def test_erasing_again_changes_nothing(committing, tenancy, erased):
    erase_audit(tenancy, committing.api.school)
    log = log_of(committing.api)

    assert erase_audit(tenancy, committing.api.school) == 0
    assert log_of(committing.api) == log


def test_another_school_stays_as_it_is(committing, tenancy, app, document, erased):
    place = make_place(app, tenancy, "Barewa College, Zaria")
    other = Factory(ApiClient(app, document, place.admin_token, place.id))
    student = other.student(first_name="Ada-Zxqvjk")
    erase(other.api, "students", student)
    before = log_of(other.api)
    assert MARK in str(before).lower()

    erase_audit(tenancy, committing.api.school)

    assert log_of(other.api) == before
    assert erase_audit(tenancy, place.id) > 0
    assert MARK not in str(log_of(other.api)).lower()


def test_an_unknown_school_and_one_that_is_behind_are_refused(tenancy, committing, erased):
    with pytest.raises(UnknownSchool):
        erase_audit(tenancy, UNKNOWN_ID)
    with tenancy.admin.begin() as connection:
        change_school(connection, committing.api.school, revision="t0004")
    with pytest.raises(SchoolUpgrading, match="tenants migrate"):
        erase_audit(tenancy, committing.api.school)


def enter(connection, schema):
    become_owner(connection, schema)
    connection.execute(text(f'SET LOCAL search_path TO "{schema}"'))


@pytest.mark.parametrize(
    "way",
    [
        # Schools are moved between the nodes of Citus by a superuser.
        pytest.param({"superuser": False}, marks=on_postgresql_alone),
        {"one_login": True},
        {"logins": 2},
    ],
    ids=str,
)
def test_erasing_works_in_any_installation(server, way):
    with installation(server, **way) as tenancy:
        school = create_school(tenancy, name="Barewa College", administrator=ADMINISTRATOR)
        with tenancy.admin.begin() as connection:
            enter(connection, school.schema)
            connection.execute(text("UPDATE users SET deleted_at = created_at, erased_at = created_at"))
            connection.execute(
                text(
                    "INSERT INTO audit_entries (id, at, actor, actor_name, action, entity, entity_id, new)"
                    " SELECT id, created_at, 'x', 'X', 'create', 'user', id, '{\"first_name\": \"Ada\"}' FROM users"
                )
            )

        assert erase_audit(tenancy, school.id) == 1

        with tenancy.admin.begin() as connection:
            enter(connection, school.schema)
            rows = connection.execute(text("SELECT entity, new FROM audit_entries ORDER BY at")).all()
    assert [tuple(row) for row in rows] == [
        ("user", {"first_name": None}),
        ("audit", {"erased": True, "entries": 1}),
    ]
