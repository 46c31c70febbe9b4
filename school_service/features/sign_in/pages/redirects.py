"""Redirect URIs: whether one is registered, and the address of an answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from urllib.parse import quote

# RFC 8252, section 7.3: an app on a computer listens on any free port. `localhost` may be another machine.
_LOOPBACK = re.compile(r"http://(?:127\.0\.0\.1|\[::1\])(?P<port>:[0-9]{1,5})?(?=[/?]|\Z)")
_PORTS = range(1, 2**16)


def is_registered(uri: str, registered: Collection[str]) -> bool:
    """Tell whether a redirect URI is among the registered ones of a client, letter by letter.

    Of the loopback addresses 127.0.0.1 and [::1] alone the port is not compared.
    """
    if uri in registered:
        return True
    plain = _without_port(uri)
    return plain is not None and any(_without_port(address) == plain for address in registered)


def _without_port(uri: str) -> str | None:
    """Leave the port out of an address of the loopback interface; None for any other address."""
    match = _LOOPBACK.match(uri)
    if match is None:
        return None
    port = match["port"]
    if port is None:
        return uri
    number = port[1:]
    if number.startswith("0") or int(number) not in _PORTS:
        return None
    return uri[: match.start("port")] + uri[match.end("port") :]


def with_parameters(uri: str, parameters: Iterable[tuple[str, str]]) -> str:
    """Add parameters to the query of a redirect URI; its own parameters stay.

    Bytes outside UTF-8 stand in the texts as `surrogateescape` has them, and come out as they came in.
    """
    added = "&".join(
        f"{name}={quote(value, safe='', errors='surrogateescape')}" for name, value in parameters
    )
    if "?" not in uri:
        return f"{uri}?{added}"
    return f"{uri}{added}" if uri.endswith(("?", "&")) else f"{uri}&{added}"
