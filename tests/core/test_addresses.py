"""The networks that addresses are counted by."""

from __future__ import annotations

import pytest

from school_service.core.addresses import networks_of, site_of


@pytest.mark.parametrize(
    ("address", "networks"),
    [
        ("192.0.2.1", ("192.0.2.1",)),
        ("::ffff:192.0.2.1", ("192.0.2.1",)),
        ("2001:db8:1:2:3:4:5:6", ("2001:db8:1:2::/64", "2001:db8:1::/48")),
        ("2001:DB8:1:2::", ("2001:db8:1:2::/64", "2001:db8:1::/48")),
        ("fe80::1%eth0", ("fe80::/64", "fe80::/48")),
        ("::1", ("::/64", "::/48")),
        ("", ("",)),
        ("a socket", ("a socket",)),
    ],
)
def test_an_address_of_ipv6_is_counted_by_its_networks(address, networks):
    assert networks_of(address) == networks
    assert site_of(address) == networks[-1]
