"""Signing in sends as many messages to PostgreSQL as the table of docs/security.md says, the registry's among them."""

from __future__ import annotations

import pytest

from tests.docs.tables import numbers_of
from tests.features.sign_in.test_grants import sent

__all__ = ["sent"]


WITH_ITS_SECRET = {"the code is exchanged", "the session is refreshed", "the session is given up"}


@pytest.mark.parametrize("secret", [False, True], ids=["public", "confidential"])
def test_the_table_of_signing_in(entrance, sent, secret):
    client, person = entrance.client(secret=secret), entrance.person("read:classrooms")
    client.sign_in(person)
    counts = {}

    def count(name):
        counts[name] = len(sent) - (2 if secret and name in WITH_ITS_SECRET else 0)
        sent.clear()

    sent.clear()
    assert entrance.app.test_client().get(client.ask()[0]).status_code == 200
    count("the page is shown")
    code = client.begin(person)
    count("username and password are sent")
    got = client.exchange(*code).json
    count("the code is exchanged")
    got = client.refresh(got["refresh_token"]).json
    count("the session is refreshed")
    assert entrance.with_token(got["access_token"]).get("/classrooms").status_code == 200
    count("a request with the session's token")
    assert client.revoke(got["refresh_token"]).status_code == 200
    count("the session is given up")

    assert counts == numbers_of("Signing in")
