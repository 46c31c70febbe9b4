"""Redirect URIs: one that differs in anything is another, but for the port of a loopback address."""

from __future__ import annotations

import random
from urllib.parse import parse_qsl, urlsplit

import pytest
from flask import Response

from school_service.features.sign_in.pages.redirects import is_registered, with_parameters

REGISTERED = (
    "https://app.example.org/callback",
    "https://app.example.org/callback?tenant=1&x=%2F",
    "http://127.0.0.1/callback",
    "http://[::1]:8000/callback",
    "http://localhost:3000/callback",
    "org.example.app:/callback",
)
CHARACTERS = "aA/\\.:@?&=#%*;, \t\n\r\0é\u202e[]0189"


@pytest.mark.parametrize("uri", REGISTERED)
def test_a_registered_address_is_taken(uri):
    assert is_registered(uri, REGISTERED)


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:1/callback",
        "http://127.0.0.1:65535/callback",
        "http://[::1]/callback",
        "http://[::1]:49152/callback",
    ],
)
def test_any_port_of_a_loopback_address_is_taken(uri):
    assert is_registered(uri, REGISTERED)


OTHERS = (
    "",
    "https://app.example.org/Callback",
    "https://APP.example.org/callback",
    "HTTPS://app.example.org/callback",
    "http://app.example.org/callback",
    "https://app.example.org/callback/",
    "https://app.example.org/callback?",
    "https://app.example.org/callback#",
    "https://app.example.org/callback?tenant=1",
    "https://app.example.org/callback?x=%2F&tenant=1",
    "https://app.example.org/callback?tenant=1&x=%2f",
    "https://app.example.org:443/callback",
    "https://app.example.org./callback",
    "https://app.example.org/%63allback",
    "https://app.example.org/%2e/callback",
    "https://app.example.org/./callback",
    "https://app.example.org/x/../callback",
    "https://app.example.org\\callback",
    "https://user@app.example.org/callback",
    "https://app.example.org@evil.example/callback",
    "https://app.example.org.evil.example/callback",
    " https://app.example.org/callback",
    "https://app.example.org/callback\n",
    "//app.example.org/callback",
    "http://localhost/callback",
    "http://localhost:3001/callback",
    "http://127.0.0.2/callback",
    "http://127.0.0.1/callback/",
    "http://127.0.0.1:/callback",
    "http://127.0.0.1:0/callback",
    "http://127.0.0.1:08/callback",
    "http://127.0.0.1:65536/callback",
    "http://127.0.0.1:99999/callback",
    "http://127.0.0.1:80:80/callback",
    "http://127.0.0.1:80@evil.example/callback",
    "http://127.0.0.1:80\\@evil.example/callback",
    "http://127.0.0.1:٣٤/callback",
    "http://127.0.0.1.evil.example/callback",
    "http://user@127.0.0.1:80/callback",
    "https://127.0.0.1/callback",
    "http://127.1/callback",
    "http://2130706433/callback",
    "http://[::0001]/callback",
    "http://[0:0:0:0:0:0:0:1]/callback",
    "http://[::1]:80/callback\n",
    "org.example.app:/callback/",
    "org.example.app:callback",
    "org.example.app://callback",
    "ORG.example.app:/callback",
    "javascript:alert(1)",
)


def test_a_differing_address_is_another():
    assert [uri for uri in OTHERS if is_registered(uri, REGISTERED)] == []


def test_no_change_of_a_character_is_registered():
    """Characters are put in, taken out or replaced: only the port of a loopback address may be another."""
    chance = random.Random(26)
    for _ in range(20_000):
        uri = chance.choice(REGISTERED)
        at, end = chance.randrange(len(uri) + 1), chance.choice((0, 1))
        changed = uri[:at] + "".join(chance.choices(CHARACTERS, k=chance.randrange(3))) + uri[at + end :]
        if changed in REGISTERED or not is_registered(changed, REGISTERED):
            continue
        before, after = urlsplit(uri), urlsplit(changed)
        assert before.hostname in ("127.0.0.1", "::1")
        assert before._replace(netloc="") == after._replace(netloc="")
        assert before.hostname == after.hostname
        assert after.port is None or 0 < after.port < 65536
        assert "@" not in after.netloc


STATES = (
    "simple",
    "a b+c&d=e#f%20",
    "Ọlá Fáṣọ̀lá 日本 😀",
    "\r\nSet-Cookie: x=1",
    "\0\x1f\x7f",
    "\"'<script>",
    "x" * 2000,
    b"\xff\xfe".decode(errors="surrogateescape"),
)


@pytest.mark.parametrize("uri", REGISTERED)
def test_parameters_join_the_registered_query_and_come_out_as_they_came_in(uri):
    for state in STATES:
        address = with_parameters(uri, [("code", "ssc_1"), ("state", state)])

        assert address.startswith(uri)
        assert address.isascii()
        assert address.isprintable()
        assert " " not in address
        assert "#" not in address
        own = parse_qsl(urlsplit(uri).query, errors="surrogateescape")
        given = parse_qsl(urlsplit(address).query, errors="surrogateescape")
        assert given == [*own, ("code", "ssc_1"), ("state", state)]
        # The framework's header on its way out.
        sent = Response(status=303, headers={"Location": address})
        assert dict(sent.get_wsgi_headers({"REQUEST_METHOD": "GET"}))["Location"] == address


def test_a_query_that_ends_with_its_sign_gets_no_second():
    assert with_parameters("https://a.example/?", [("a", "b")]) == "https://a.example/?a=b"
    assert with_parameters("https://a.example/?x=1&", [("a", "b")]) == "https://a.example/?x=1&a=b"
