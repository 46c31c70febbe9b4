"""The networks of a client's address, for counting: a holder of one IPv6 address has a whole network of them."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

TIMES = (1, 4)
"""How many times the limit of an address each of its networks has: a site may be many people in several networks."""
_REMEMBERED = 10_000
# Bits of the network of one connection to the Internet, and of the network of a site (RFC 6177).
_LINK, _SITE = 64, 48


@lru_cache(_REMEMBERED)
def networks_of(address: str) -> tuple[str, ...]:
    """Name the networks of an address, the smallest first: an IPv4 address itself; of IPv6 its /64 and its /48.

    An IPv4 address written as one of IPv6 (`::ffff:192.0.2.1`) is the former. A text other than an address, as of a
    socket in a file, is named as it is.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return (address,)
    if not isinstance(ip, IPv6Address):
        return (str(ip),)
    if ip.ipv4_mapped is not None:
        return (str(ip.ipv4_mapped),)
    return tuple(str(ip_network((ip, bits), strict=False)) for bits in (_LINK, _SITE))


def site_of(address: str) -> str:
    """Name the largest network of an address, for counting."""
    return networks_of(address)[-1]
