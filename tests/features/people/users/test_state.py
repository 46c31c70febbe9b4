"""The caller's state: it reads the tables that a request needs, since each connection keeps their plans."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tenants.registry.schools import schema_name
from tests.postgres import on_postgresql_alone

pytestmark = on_postgresql_alone

ALWAYS = {"permissions", "role_permissions", "roles", "user_roles", "users"}
OF_RELATIONS = {"employees", "guardians", "student_guardians", "students"}
RELATIONS = ("student", "children", "employee", "form_batches", "taught_subjects", "taught_arms")
# A table that is planned or read is locked until the transaction ends.
LOCKED = """
    SELECT c.relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND c.relkind = 'r' AND c.relnamespace = %s::regnamespace
"""


@pytest.fixture
def state_of(tenancy, place):
    """Read the administrator's state after some change; answers it with the tables that were read."""
    schema = schema_name(place.id)

    def state_of(change="", *, user=place.admin_id, relations=False, session=None, subject=None):
        with tenancy.admin.connect() as connection:
            connection.exec_driver_sql(f'SET LOCAL search_path TO "{schema}"; {change}')
            result = connection.exec_driver_sql(
                "SELECT * FROM caller_state(%s, now(), %s, %s, 'https://idp.example', %s)",
                (user, relations, session, subject),
            )
            state = result.mappings().one()
            return state, set(connection.exec_driver_sql(LOCKED, (schema,)).scalars())

    return state_of


def test_of_a_caller_who_reaches_the_school_the_permissions_alone_are_read(state_of):
    state, tables = state_of("UPDATE users SET password_given_at = NULL")

    assert tables == ALWAYS
    assert "read:students" in state["permissions"]
    assert len(set(state["permissions"])) == len(state["permissions"])
    assert state["own_permissions"] == []
    assert state["session_number"] > 0
    assert state["must_change_password"] is False
    assert {state[name] for name in RELATIONS} == {None}


@pytest.mark.parametrize(
    ("asked", "tables"),
    [
        ({}, {"school_settings"}),  # the administrator's password was given
        ({"session": uuid4()}, {"school_settings", "user_sessions"}),
        ({"subject": "nobody"}, {"school_settings", "user_identities"}),
        ({"relations": True}, {"school_settings", *OF_RELATIONS}),
    ],
)
def test_facts_asked_for_are_read_besides(state_of, asked, tables):
    state, read = state_of(**asked)

    assert read == ALWAYS | tables
    is_gone = not asked.keys().isdisjoint({"session", "subject"})
    assert (state["session_number"] == -1) is is_gone
    assert state["children"] == ([] if "relations" in asked else None)


def test_relations_are_read_of_a_caller_with_own_reach(state_of):
    state, read = state_of("UPDATE roles SET reach = 'OWN'")

    assert read >= OF_RELATIONS
    assert state["permissions"] == []
    assert "read:students" in state["own_permissions"]
    assert [state[name] for name in RELATIONS] == [None, [], None, [], [], []]


def test_a_permission_that_is_held_both_ways_reaches_the_school(state_of):
    other = """
        INSERT INTO roles (id, name, avatar_number, reach) VALUES (gen_random_uuid(), 'Other', 1, 'OWN');
        INSERT INTO role_permissions SELECT o.id, p.id FROM roles o, permissions p WHERE o.name = 'Other';
        INSERT INTO user_roles SELECT u.id, o.id, now() FROM users u, roles o WHERE o.name = 'Other';
    """
    state, _ = state_of(other)
    assert "read:students" in state["permissions"]
    assert state["own_permissions"] == []

    state, _ = state_of(
        f"{other} DELETE FROM role_permissions rp USING roles r WHERE r.id = rp.role_id AND r.name <> 'Other' "
        "AND permission_id IN (SELECT id FROM permissions WHERE section = 'students')"
    )
    assert "read:students" in state["own_permissions"]
    assert not {*state["permissions"]} & {*state["own_permissions"]}


def test_an_unknown_or_deleted_user_has_no_state(state_of):
    for change, user in (("", uuid4()), ("UPDATE users SET deleted_at = now()", None)):
        state, _ = state_of(change) if user is None else state_of(change, user=user, session=uuid4())
        assert {*state.values()} == {None}
