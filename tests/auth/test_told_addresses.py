"""A machine client that tells the address of its end user: which clients are believed, and to which effect."""

from __future__ import annotations

from collections import Counter

import pytest

from school_service.auth.tokens import issue_client_token
from tenants.registry.clients import change_client
from tests.conftest import PASSWORD

HEADER = "X-End-User-Address"


@pytest.fixture
def front_end(api, app, tenancy, grant, place):
    """Makes a caller with a client's token, which may tell addresses or not."""

    def make(*, tells=True, **grants):
        client_id, _ = grant(**({"school_ids": [place.id], "permissions": ["read:users"]} | grants))
        if tells:
            with tenancy.admin.begin() as connection:
                change_client(connection, client_id, tells_addresses=True)
        with app.app_context():
            key = app.extensions["school-service"].verifier.key
            token = issue_client_token(key, client_id, [place.id])["access_token"]
        caller = api.using(token=token)
        caller.client_id = client_id
        return caller

    return make


def sign_in(api, password=PASSWORD, told=None, **options):
    headers = {} if told is None else {HEADER: told}
    return api.post("/users/login", {"username": "admin", "password": password}, headers=headers, **options)


def wrong(api, times, told):
    return Counter(sign_in(api, f"wrong {number}", told).status_code for number in range(times))


def test_strangers_on_its_page_lock_nobody_out(front_end):
    caller = front_end()

    assert wrong(caller, 40, "203.0.113.5") == {401: 10, 429: 30}
    assert sign_in(caller, told="203.0.113.5").status_code == 429
    assert sign_in(caller, told="203.0.113.6").status_code == 200
    assert sign_in(caller, told="2001:db8::6").status_code == 200
    assert sign_in(caller).status_code == 200


def test_an_address_that_it_tells_is_known_beyond_the_cap(front_end):
    caller, plain = front_end(), front_end(tells=False)
    for number in range(100):
        assert sign_in(caller, "wrong", f"10.9.0.{number}").status_code == 401
    elsewhere = {"REMOTE_ADDR": "198.51.100.3"}

    assert sign_in(plain, environ_base=elsewhere).status_code == 429
    assert sign_in(caller, environ_base=elsewhere).status_code == 429
    assert sign_in(caller, told="198.51.100.4").status_code == 200


def test_the_end_users_address_is_in_the_audit_log_and_in_the_log_with_the_clients(front_end, api, logs):
    caller = front_end()

    assert sign_in(caller, told=" 203.0.113.5 ").status_code == 200
    assert caller.get("/users", headers={HEADER: "2001:db8::7"}).status_code == 200

    entry = api.ok(api.get("/audit", query_string={"entity": "sign-in"}))["data"][0]
    assert entry["address"] == "203.0.113.5"
    lines = [line for line in logs() if line.get("status") == 200]
    signed_in, listed = lines[:2]
    assert (signed_in["address"], signed_in["told_by"]) == ("203.0.113.5", "127.0.0.1")
    assert (listed["address"], listed["told_by"]) == ("2001:db8::7", "127.0.0.1")


@pytest.mark.parametrize("who", ["a client that may not", "a user", "nobody"])
def test_nobody_else_is_believed(front_end, api, who):
    caller = {"a client that may not": front_end(tells=False), "a user": api, "nobody": api}[who]

    answers = Counter(sign_in(caller, "wrong", f"203.0.113.{number}").status_code for number in range(20))

    assert answers == {401: 10, 429: 10}
    # Nor does anybody look at it.
    assert caller.get("/users", headers={HEADER: "nonsense"}).status_code == 200


@pytest.mark.parametrize(
    "told", ["", "nonsense", "203.0.113.5, 10.0.0.1", "203.0.113.5:80", "fe80::1/64", "1", "x" * 300]
)
def test_a_header_that_is_no_address_is_refused(front_end, told):
    answer = sign_in(front_end(), told=told)

    assert answer.status_code == 400
    assert answer.get_json()["message"] == f"The header {HEADER} must be an address of IPv4 or IPv6."


def test_a_client_may_be_let_and_forbidden(front_end, tenancy):
    caller = front_end()
    assert wrong(caller, 11, "203.0.113.5")[429] == 1
    with tenancy.admin.begin() as connection:
        change_client(connection, caller.client_id, tells_addresses=False)

    assert wrong(caller, 12, "203.0.113.7") == {401: 1, 429: 11}
