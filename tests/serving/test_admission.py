"""The limits of connections: of an address, and of the networks of an IPv6 address."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network

import pytest

from school_service.serving.admission import ConnectionLimits


@dataclass(eq=False)
class Connection:
    """A connection of the tests, on which there is always something to do."""

    address: str
    idle_since: float = 0.0

    def is_idle(self):
        return False

    def is_ending(self):
        return False


def count_admitted(admission, addresses):
    """The number of connections of these addresses that are taken, one after the other."""
    present = []
    for address in addresses:
        if admission.makes_room(present, address):
            present.append(Connection(address))
    return len(present)


@pytest.mark.parametrize(
    ("address", "most"),
    [
        ("192.0.2.1", 5),
        ("::ffff:192.0.2.1", 5),
        ("2001:db8:1:2::{:x}", 5),
        ("2001:db8:1:{:x}::1", 20),
        ("2001:db8:{:x}::1", 50),
    ],
    ids=["address", "mapped", "/64", "/48", "many sites"],
)
def test_addresses_of_ipv6_are_counted_by_their_networks(address, most):
    assert count_admitted(ConnectionLimits(5, ()), [address.format(number) for number in range(50)]) == most


def test_a_trusted_proxy_is_not_counted():
    assert count_admitted(ConnectionLimits(5, (ip_network("2001:db8::/64"),)), ["2001:db8::1"] * 50) == 50
