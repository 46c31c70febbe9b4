"""Codes and refresh tokens: what they are exchanged for, once, and what ends their sessions."""

from __future__ import annotations

from tests.features.sign_in.conftest import Entrance


def test_first(entrance: Entrance):
    person = entrance.person("read:classrooms", "read:students")
    client = entrance.client()
    got = client.sign_in(person, scope="openid profile", nonce="n-1")
    print(got)
    assert entrance.with_token(got["access_token"]).get("/classrooms").status_code == 200
    again = client.refresh(got["refresh_token"])
    assert again.status_code == 200, again.json
    print(entrance.with_token(got["access_token"]).get(f"/users/{person.id}/sessions").json)
    print(entrance.with_token(got["access_token"]).get("/auth/userinfo").json)

