"""A machine client that asks for a scope gets a token of some of its grant's permissions, and of nothing beyond."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest
from sqlalchemy import update

from school_service.auth.tokens import issue_client_token
from tenants.registry.schools import clients
from tests.features.test_access_matrix import Operation
from tests.features.test_narrowed_tokens import drawn
from tests.savepoint_engine import uncommitted

TOKEN = "/auth/oauth/token"


@pytest.fixture
def ask(api) -> Callable[..., Any]:
    """Asks for a client's token with a scope."""

    def asking(client: str, secret: str, scope: str | None) -> Any:
        form = {"grant_type": "client_credentials", **({} if scope is None else {"scope": scope})}
        basic = base64.b64encode(f"{client}:{secret}".encode()).decode()
        return api.using(token=None, school=None).request(
            "POST",
            TOKEN,
            data=urlencode(form),
            content_type="application/x-www-form-urlencoded",
            headers={"Authorization": f"Basic {basic}"},
        )

    return asking


@pytest.fixture
def change(tenancy) -> Callable[..., None]:
    """Changes the grant of a client."""

    def changing(client: str, **values: Any) -> None:
        with tenancy.admin.begin() as connection:
            connection.execute(update(clients).where(clients.c.id == client).values(**values))

    return changing


def test_a_scope_of_the_grant_is_granted_and_told_once_each(api, ask, grant):
    client, secret = grant(all_schools=True, permissions=["read:roles", "read:users", "write:users"])

    answer = api.ok(ask(client, secret, "write:users read:roles write:users"))

    assert answer["scope"] == "write:users read:roles"
    assert set(answer) == {"access_token", "token_type", "expires_in", "scope"}
    claims = jwt.decode(answer["access_token"], options={"verify_signature": False})
    assert claims["permissions"] == ["read:roles", "write:users"]


def test_without_a_scope_a_token_has_the_grant_and_the_answer_tells_none(api, ask, grant):
    answer = api.ok(ask(*grant(all_schools=True, permissions=["read:roles"]), None))

    assert "scope" not in answer
    assert api.using(token=answer["access_token"]).get("/roles").status_code == 200


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize(
    "scope",
    [
        "read:nothing",
        "READ:ROLES",
        "openid",
        "read:roles,read:users",
        "read:roles  read:users",
        "read:roles openid",
        "read:roles read:nothing",
        "*",
        "ọ̀ṣun",
        "read:roles\0",
        "x" * 60_000,
        " ",
    ],
)
def test_a_scope_that_the_grant_does_not_cover_is_refused(ask, grant, scope, every):
    granted = {"all_permissions": True} if every else {"permissions": ["read:roles", "read:users"]}

    answer = ask(*grant(all_schools=True, **granted), scope)

    assert (answer.status_code, answer.get_json()["error"]) == (400, "invalid_scope")
    assert "access_token" not in answer.get_json()


def test_a_known_permission_beyond_the_grant_is_refused(ask, grant):
    answer = ask(*grant(all_schools=True, permissions=["read:roles"]), "read:roles write:roles")

    assert (answer.status_code, answer.get_json()["error"]) == (400, "invalid_scope")


def test_a_stranger_learns_nothing_of_a_grant(ask, grant):
    client, _ = grant(all_schools=True, permissions=["read:roles"])

    for scope in ("read:roles", "write:roles"):
        assert ask(client, "wrong", scope).get_json()["error"] == "invalid_client"
        assert ask("nobody", "wrong", scope).get_json()["error"] == "invalid_client"


def test_a_scope_without_anything_is_none(api, ask, grant):
    assert "scope" not in api.ok(ask(*grant(), ""))


def test_a_narrowed_token_enters_the_schools_of_the_grant_alone(api, ask, grant, place, other_place):
    granted = {"school_ids": [place.id], "permissions": ["read:roles", "read:users"]}
    caller = api.using(token=api.ok(ask(*grant(**granted), "read:roles"))["access_token"])

    assert caller.get("/roles").status_code == 200
    assert caller.get("/users").status_code == 403
    for path in ("/roles", "/users"):
        assert caller.using(school=other_place.id).get(path).status_code == 403


def test_me_has_the_permissions_of_a_clients_narrowed_token(api, ask, grant):
    token = api.ok(ask(*grant(all_schools=True, all_permissions=True), "read:users read:roles"))
    caller = api.using(token=token["access_token"])

    told = [each["permission"] for each in caller.ok(caller.get("/me"))["permissions"]]
    assert told == ["read:roles", "read:users"]


def test_a_permission_that_the_grant_loses_the_token_loses_and_a_larger_grant_gives_it_none(
    api, ask, grant, change
):
    client, secret = grant(all_schools=True, permissions=["read:roles", "read:users"])
    caller = api.using(token=api.ok(ask(client, secret, "read:roles"))["access_token"])

    change(client, permissions=["read:users"])
    assert caller.get("/roles").status_code == 403
    change(client, all_permissions=True, permissions=[])
    assert caller.get("/roles").status_code == 200
    assert caller.get("/users").status_code == 403
    change(client, session_number=clients.c.session_number + 1)
    assert caller.get("/roles").status_code == 401


@pytest.mark.parametrize("which", ["some", pytest.param("all", marks=pytest.mark.release)])
def test_a_narrowed_token_is_answered_as_a_client_with_that_permission_alone(
    api, grant, which, rehearsed, uncommitted_engine
):
    def send(token: str, operation: Operation) -> int:
        with uncommitted(uncommitted_engine):
            return operation.send(api.using(token=token)).status_code

    key = rehearsed.extensions["school-service"].verifier.key
    every, _ = grant(all_schools=True, all_permissions=True)
    for permission, operations in drawn(which).items():
        alone, _ = grant(all_schools=True, permissions=[permission])
        tokens = [
            issue_client_token(key, every, [], permissions=[permission])["access_token"],
            issue_client_token(key, alone, [])["access_token"],
        ]
        for operation in operations:
            narrowed, of_alone = (send(token, operation) for token in tokens)
            assert narrowed == of_alone, (permission, operation)
