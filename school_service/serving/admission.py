"""The bounds of connections: in all, and of one address."""

from __future__ import annotations

import resource
from collections.abc import Iterable
from typing import Protocol

from school_service.config import Networks
from school_service.core.addresses import TIMES, networks_of
from school_service.web.client_address import is_trusted

CONNECTION_LIMIT = 500
OPEN_FILES = 4096  # that the process may have, where the system lets it; 500 uploads can take 1024


class Connection(Protocol):
    """A present connection: the client's address, and the moment (`time.monotonic`) of its last answer."""

    address: str
    idle_since: float

    def is_idle(self) -> bool:
        """Tell whether nothing is to be done for the client."""

    def is_ending(self) -> bool:
        """Tell whether it is about to be closed."""

    def end(self) -> None:
        """Close it."""


class ConnectionLimits:
    """At most CONNECTION_LIMIT connections, and `per_address` of one address, unless it is a trusted proxy's.

    Addresses of IPv6 are counted by their networks: of a /64 as many as of an address, of a /48 four times as many.

    At either limit the longest idle connection makes room; if none is idle, the new one is closed.
    """

    def __init__(self, per_address: int, trusted_proxies: Networks) -> None:
        self._per_address = per_address
        self._proxies = trusted_proxies

    def makes_room(self, connections: Iterable[Connection], address: str) -> bool:
        """Tell whether there is room for a connection from an address, having made it if needed."""
        present = [connection for connection in connections if not connection.is_ending()]
        full = len(present) >= CONNECTION_LIMIT
        if not full and len(present) >= self._per_address and not is_trusted(address, self._proxies):
            everywhere = present
            for times, network in zip(TIMES, networks_of(address), strict=False):
                present = [
                    connection for connection in everywhere if network in networks_of(connection.address)
                ]
                full = len(present) >= times * self._per_address
                if full:
                    break
        if not full:
            return True
        idle = [connection for connection in present if connection.is_idle()]
        if not idle:
            return False
        min(idle, key=lambda connection: connection.idle_since).end()
        return True


def raise_file_limit() -> None:
    """Allow as many open files as the connections may need: each its socket, a body and an answer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
