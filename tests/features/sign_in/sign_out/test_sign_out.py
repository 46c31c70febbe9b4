"""Signing out: where it leads, and the session it ends."""

from __future__ import annotations

import jwt
import pytest

from school_service.auth.signing_key import SigningKey
from tests.features.sign_in.conftest import AFTER_LOGOUT, Client, Entrance, Person
from tests.features.sign_in.sign_out.leaving import signed_out
from tests.features.sign_in.test_grants import claims_of, works


@pytest.fixture(scope="module")
def person(shared_entrance: Entrance) -> Person:
    return shared_entrance.person("read:classrooms", "read:users")


@pytest.fixture(scope="module")
def client(shared_entrance: Entrance) -> Client:
    return shared_entrance.client()


def test_signing_out_leads_back_to_an_address_of_the_client_alone(entrance, person, client):
    def hint():
        return client.sign_in(person, scope="openid")

    got = hint()
    answer = signed_out(
        entrance,
        id_token_hint=got["id_token"],
        post_logout_redirect_uri=AFTER_LOGOUT,
        state="a b&c=ọ",
        client_id=client.id,
    )
    assert (answer.status_code, answer.location) == (303, f"{AFTER_LOGOUT}?state=a%20b%26c%3D%E1%BB%8D")
    assert not works(entrance, got["access_token"])
    # Once more, and with a hint that has expired: nothing is left to end, and the way back is the same.
    again = signed_out(entrance, id_token_hint=got["id_token"], post_logout_redirect_uri=AFTER_LOGOUT)
    assert (again.status_code, again.location) == (303, AFTER_LOGOUT)

    other = hint()
    for parameters in (
        {"post_logout_redirect_uri": AFTER_LOGOUT},
        {
            "id_token_hint": other["id_token"],
            "client_id": "another",
            "post_logout_redirect_uri": AFTER_LOGOUT,
        },
        {"id_token_hint": f"{other['id_token']}x", "post_logout_redirect_uri": AFTER_LOGOUT},
    ):
        answer = signed_out(entrance, **parameters)
        assert (answer.status_code, answer.location) == (200, None)
        assert works(entrance, other["access_token"])
    answer = entrance.app.test_client().post(
        "/auth/logout",
        data={"id_token_hint": other["id_token"], "post_logout_redirect_uri": f"{AFTER_LOGOUT}/"},
    )
    assert (answer.status_code, answer.location) == (200, None)
    assert not works(entrance, other["access_token"])


def test_an_expired_hint_that_we_signed_ends_the_session(entrance, person, client):
    got = client.sign_in(person, scope="openid")
    key = entrance.app.extensions["school-service"].verifier.key
    expired = {**claims_of(got["id_token"]), "exp": 1_700_000_000}
    forged = jwt.encode(expired, SigningKey.generate().private, "ES256", headers={"kid": key.key_id})
    unsigned = jwt.encode(expired, None, "none", headers={"kid": key.key_id})

    for hint in (forged, unsigned):
        signed_out(entrance, id_token_hint=hint)
        assert works(entrance, got["access_token"])
    signed_out(
        entrance, id_token_hint=jwt.encode(expired, key.private, key.algorithm, headers={"kid": key.key_id})
    )
    assert not works(entrance, got["access_token"])
