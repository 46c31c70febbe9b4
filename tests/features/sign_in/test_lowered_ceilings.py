"""A client's ceiling that is lowered, and the sessions that are there."""

from __future__ import annotations

import pytest

from tenants.registry.clients import change_client
from tests.features.sign_in.conftest import Client, Entrance, Person
from tests.features.sign_in.test_grants import claims_of, is_refused, works

READ, WRITE, STUDENTS = "read:classrooms", "write:classrooms", "read:students"


@pytest.fixture(scope="module")
def person(shared_entrance: Entrance) -> Person:
    return shared_entrance.person(READ, WRITE, STUDENTS)


def edit(client: Client, *permissions: str, roles_decide: bool = False, **options) -> None:
    """Set the permissions that people have by a client: without any, signing in alone."""
    of_people = {"user_permissions": None if roles_decide else permissions}
    with client.entrance.tenancy.admin.begin() as connection:
        change_client(connection, client.id, of_people=of_people, **options)


def powers_of(got: dict) -> tuple[list[str] | None, set[str]]:
    """Read the permissions that an access token is narrowed to, and the scope of its answer."""
    permissions = claims_of(got["access_token"]).get("permissions")
    return permissions and sorted(permissions), set(got["scope"].split())


def stored(entrance: Entrance, got: dict):
    [row] = entrance.sql(
        "SELECT permissions, scope FROM user_sessions WHERE id = %s", claims_of(got["access_token"])["sid"]
    )
    return row


@pytest.mark.parametrize("secret", [False, True])
def test_a_lowered_ceiling_holds_from_the_next_refresh_and_for_good(entrance, person, secret):
    client = entrance.client(secret=secret, user_permissions=(READ, STUDENTS, WRITE))
    got = client.sign_in(person, scope="openid")
    assert powers_of(got)[0] == [READ, STUDENTS, WRITE]

    edit(client, READ, WRITE)
    assert entrance.with_token(got["access_token"]).get("/students").status_code == 200
    lowered = client.refresh(got["refresh_token"]).json

    assert powers_of(lowered) == ([READ, WRITE], {"openid", READ, WRITE})
    assert stored(entrance, lowered) == ([READ, WRITE], f"openid {READ} {WRITE}")
    assert entrance.with_token(lowered["access_token"]).get("/students").status_code == 403
    assert works(entrance, lowered["access_token"])
    # A ceiling that rises later gives it nothing, and one that is away neither.
    edit(client, READ, STUDENTS, WRITE)
    risen = client.refresh(lowered["refresh_token"]).json
    edit(client, roles_decide=True)
    again = client.refresh(risen["refresh_token"]).json
    assert powers_of(risen) == powers_of(again) == powers_of(lowered)
    assert is_refused(client.refresh(again["refresh_token"], scope=STUDENTS), "invalid_scope")
    assert powers_of(client.sign_in(person))[0] is None


def test_a_session_that_nothing_narrowed_gets_the_ceiling(entrance, person):
    client = entrance.client()
    got = client.sign_in(person, scope="openid")
    assert powers_of(got) == (None, {"openid"})

    edit(client, STUDENTS)
    lowered = client.refresh(got["refresh_token"]).json

    assert powers_of(lowered) == ([STUDENTS], {"openid", STUDENTS})
    assert entrance.with_token(lowered["access_token"]).get("/classrooms").status_code == 403


def test_a_scope_is_narrowed_too(entrance, person):
    client = entrance.client()
    got = client.sign_in(person, scope=f"openid {READ} {WRITE}")

    edit(client, WRITE, STUDENTS)

    assert powers_of(client.refresh(got["refresh_token"]).json) == ([WRITE], {"openid", WRITE})


def test_a_session_without_a_permission_left_ends(entrance, person):
    client = entrance.client(user_permissions=(READ, WRITE))
    got = client.sign_in(person)

    edit(client, STUDENTS)

    assert is_refused(client.refresh(got["refresh_token"]))
    assert not works(entrance, got["access_token"])
    (entry, *_) = entrance.admin.get("/audit?entity=user-session").json["data"]
    assert (entry["entity_id"], entry["old"]["ended"]) == (person.id, "ENDED")
    edit(client, READ, WRITE)
    assert is_refused(client.refresh(got["refresh_token"]))


def test_a_client_that_is_for_signing_in_alone_keeps_its_sessions_for_that(entrance, person):
    client = entrance.client(user_permissions=(READ,))
    got = client.sign_in(person, scope="openid")

    edit(client)
    lowered = client.refresh(got["refresh_token"]).json

    assert powers_of(lowered) == ([], {"openid"})
    caller = entrance.with_token(lowered["access_token"])
    assert caller.get("/auth/userinfo").status_code == 200
    assert caller.get("/classrooms").status_code == 403
    assert powers_of(client.refresh(lowered["refresh_token"]).json) == ([], {"openid"})


def test_neither_a_repeated_refresh_nor_a_code_goes_beyond_a_lowered_ceiling(entrance, person):
    client = entrance.client(user_permissions=(READ, WRITE))
    got, code = client.sign_in(person), client.begin(person)
    second = client.refresh(got["refresh_token"]).json
    assert powers_of(second)[0] == [READ, WRITE]

    edit(client, READ)

    again = client.refresh(got["refresh_token"]).json
    assert again["refresh_token"] == second["refresh_token"]
    assert powers_of(again)[0] == [READ]
    assert powers_of(client.exchange(*code).json)[0] == [READ]
    edit(client, READ, WRITE)
    assert powers_of(client.refresh(again["refresh_token"]).json)[0] == [READ]


def test_sessions_are_ended_at_once_where_that_is_asked(entrance, person):
    client = entrance.client(user_permissions=(READ, WRITE))
    got = client.sign_in(person)

    edit(client, READ, end_sessions=True)

    assert not works(entrance, got["access_token"])
    assert is_refused(client.refresh(got["refresh_token"]))
    assert works(entrance, client.sign_in(person)["access_token"])
