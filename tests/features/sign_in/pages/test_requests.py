"""Judging authorization requests, without HTTP."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from school_service.features.sign_in.pages.requests import (
    MOST_BYTES,
    PARAMETERS,
    AuthorizationRequest,
    Query,
    RequestRefused,
    judge,
)

CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"  # RFC 7636, appendix B
GOOD = {
    "client_id": "portal",
    "redirect_uri": "https://app.example.org/callback",
    "response_type": "code",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
    "state": "xyz",
}


def query(**changes):
    given = {**GOOD, **changes}
    return urlencode({name: value for name, value in given.items() if value is not None}).encode()


def judged(ceiling=None, **changes):
    return judge(Query(query(**changes)), ceiling=ceiling)


def refusal(raw=None, ceiling=None, **changes):
    with pytest.raises(RequestRefused) as refused:
        judge(Query(query(**changes) if raw is None else raw), ceiling=ceiling)
    # The characters of a description: RFC 6749, section 4.1.2.1.
    words = refused.value.description
    assert words.isascii()
    assert words.isprintable()
    assert not set('"\\') & set(words)
    return refused.value.error


def test_the_least_that_is_asked():
    assert judged() == AuthorizationRequest((), None, CHALLENGE, None, "")


def test_all_that_can_be_asked():
    assert judged(
        scope="profile openid email read:users", nonce="n" * 500, school="queen-amina", login_hint="ada"
    ) == AuthorizationRequest(("openid", "profile"), ("read:users",), CHALLENGE, "n" * 500, "ada")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": None}, "invalid_request"),
        ({"response_type": ""}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code id_token"}, "unsupported_response_type"),
        ({"response_type": "CODE"}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": CHALLENGE[:-1]}, "invalid_request"),
        ({"code_challenge": f"{CHALLENGE}A"}, "invalid_request"),
        ({"code_challenge": f"{CHALLENGE[:-1]}="}, "invalid_request"),
        ({"code_challenge": f"{CHALLENGE[:-1]}+"}, "invalid_request"),
        ({"code_challenge": f"{CHALLENGE}\n"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": "s256"}, "invalid_request"),
        ({"state": "s" * 2001}, "invalid_request"),
        ({"nonce": "n" * 501}, "invalid_request"),
        ({"nonce": "a\0b"}, "invalid_request"),
        ({"nonce": b"\xff"}, "invalid_request"),
        ({"login_hint": "h" * 121}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_mode": "form_post"}, "invalid_request"),
        ({"request": "eyJ"}, "request_not_supported"),
        ({"request_uri": "https://evil.example/"}, "request_uri_not_supported"),
        ({"prompt": "none"}, "login_required"),
    ],
)
def test_a_request_is_refused_with_the_error_of_its_parameter(changes, error):
    assert refusal(**changes) == error


@pytest.mark.parametrize(
    "changes",
    [
        {"response_mode": "query"},
        {"prompt": "login consent select_account"},
        {"max_age": "0", "display": "popup", "ui_locales": "yo en", "audience": "school-service"},
        {"made_up": "x"},
        {"state": None},
        {"state": "é" * 1000},
        {"login_hint": "h" * 120},
    ],
)
def test_a_satisfied_or_ignored_parameter_is_taken(changes):
    judged(**changes)


def test_each_parameter_may_be_given_once():
    for name in PARAMETERS:
        given = GOOD.get(name, "query" if name == "response_mode" else "1")
        raw = query(**{name: None}) + f"&{name}={given}&{name}={given}".encode()
        assert refusal(raw) == "invalid_request", name
    assert judge(Query(query() + b"&made_up=1&made_up=2"), ceiling=None)


def test_a_long_query_is_refused():
    raw = query() + b"&x="
    judge(Query(raw + b"y" * (MOST_BYTES - len(raw))), ceiling=None)
    assert refusal(raw + b"y" * (MOST_BYTES - len(raw) + 1)) == "invalid_request"


@pytest.mark.parametrize(
    ("scope", "ceiling", "permissions"),
    [
        ("", None, None),
        ("openid", None, None),
        ("read:nothing", None, None),
        ("read:users read:users write:users", None, ("read:users", "write:users")),
        ("", ("read:users", "read:batches"), ("read:batches", "read:users")),
        ("write:users read:users", ("read:users", "read:batches"), ("read:users",)),
        ("openid profile", (), ()),
    ],
)
def test_permissions_narrow_the_token_within_the_ceiling(scope, ceiling, permissions):
    assert judged(ceiling=ceiling, scope=scope).permissions == permissions


@pytest.mark.parametrize("ceiling", [(), ("read:batches",)])
def test_permissions_beyond_the_ceiling_alone_are_refused(ceiling):
    assert refusal(ceiling=ceiling, scope="openid write:users") == "invalid_scope"


def test_a_parameter_that_is_there_twice_or_empty_is_not_read():
    raw = b"client_id=a&client_id=b&redirect_uri=&state=%FF"
    query = Query(raw)
    assert (query.only("client_id"), query.only("redirect_uri"), query.only("nonce")) == (None, None, None)
    assert query.only("state") == b"\xff".decode(errors="surrogateescape")


def test_the_address_keeps_the_sent_parameters_and_takes_another_school():
    query = Query(b"state=a%0Ab+c%ff&school=one&x&%73chool=two&y='\"<>\xe9")
    assert query.address() == "?state=a%0Ab+c%ff&x&y='%22%3C%3E%E9"
    assert query.address("queen-amina") == "?state=a%0Ab+c%ff&x&y='%22%3C%3E%E9&school=queen-amina"
    assert Query(b"").address("a&b") == "?school=a%26b"
