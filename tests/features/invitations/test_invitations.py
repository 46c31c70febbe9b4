"""Inviting, and taking an invitation."""

from __future__ import annotations

import pytest

CROCKFORD = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ-")


def invite(api, *users, **options):
    return api.post("/invitations", {"users": [user["id"] for user in users], **options})


def take(api, code, password="a much longer password"):
    return api.post("/users/login/invitation", {"code": code, "password": password})


@pytest.fixture
def person(api, make):
    """An account without a password, as a student's is."""
    student = make.student(first_name="Ọlá", last_name="Ògúnlẹ́yẹ")
    return api.ok(api.get(f"/users/{student['user']}"))


def test_an_invitation_is_taken(api, person):
    [made] = api.ok(invite(api, person))
    assert set(made) == {"id", "user", "username", "name", "code", "url", "expires_at"}
    assert (made["user"], made["username"], made["name"]) == (
        person["id"],
        person["username"],
        "Ọlá Ògúnlẹ́yẹ",
    )
    assert len(made["code"]) == 14 and set(made["code"]) <= CROCKFORD

    signed_in = api.ok(take(api, made["code"].lower().replace("-", " ")))

    assert signed_in["user"] == person
    assert take(api, made["code"]).status_code == 401
    api.ok(api.post("/users/login", {"username": person["username"], "password": "a much longer password"}))
