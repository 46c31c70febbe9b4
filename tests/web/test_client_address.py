"""The X-Forwarded-For of trusted proxies counts, and no other."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network

import pytest

from school_service.web.client_address import client_address


@pytest.fixture
def address(app, monkeypatch):
    """Answers the address of a client, by its peer's and X-Forwarded-For, behind trusted networks."""
    state = app.extensions["school-service"]

    def of(peer, forwarded=None, trusted=()):
        networks = tuple(ip_network(text) for text in trusted)
        monkeypatch.setattr(state, "settings", replace(state.settings, trusted_proxies=networks))
        headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
        with app.test_request_context("/", headers=headers, environ_base={"REMOTE_ADDR": peer}):
            return client_address()

    return of


PROXIES = ("10.0.0.0/8", "fd00::/8", "127.0.0.1")


@pytest.mark.parametrize("forwarded", [None, "", "203.0.113.5", "10.0.0.1"])
def test_without_trusted_proxies_it_is_the_peers(address, forwarded):
    assert address("10.0.0.7", forwarded) == "10.0.0.7"


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.7", None, "10.0.0.7"),
        ("10.0.0.7", "203.0.113.5", "203.0.113.5"),
        ("10.0.0.7", "198.51.100.1, 203.0.113.5", "203.0.113.5"),
        ("10.0.0.7", "203.0.113.5, 10.0.0.8", "203.0.113.5"),
        ("10.0.0.7", "203.0.113.5,10.0.0.8 , fd00::2", "203.0.113.5"),
        ("fd00::1", "2001:db8::5", "2001:db8::5"),
        ("127.0.0.1", "10.0.0.9", "10.0.0.9"),
        ("10.0.0.7", "nonsense", "10.0.0.7"),
        ("10.0.0.7", "203.0.113.5, nonsense", "10.0.0.7"),
        ("10.0.0.7", "", "10.0.0.7"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("", "203.0.113.5", ""),
    ],
)
def test_behind_them_it_is_the_last_that_is_none_of_theirs(address, peer, forwarded, client):
    assert address(peer, forwarded, PROXIES) == client
