"""The addresses to lead people back to after they signed in or out: the rules for a client's registration."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

MAX_REDIRECT_URIS = 10
MAX_LENGTH = 2000  # characters

# RFC 8252: addresses of the computer itself (section 7.3), and schemes that are an app's own by the domain in them
# (section 7.1).
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_PRIVATE_SCHEME = re.compile(r"[a-z][a-z0-9+-]*+(?>(?:\.[a-z0-9+-]++)+)", re.IGNORECASE)
# The characters of an address (RFC 3986), without a wildcard.
_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@!$&'()+,;=%]++")
_DOT = re.compile("%2e", re.IGNORECASE)
RESERVED = ("code", "state", "iss", "error", "scope")
"""Parameters of the answer sent there (RFC 6749, RFC 9207): an address with one of its own would have two."""


def check_redirect_uri(value: str) -> str:
    """Return an address fit for registration, as it is; raises ValueError, in words to follow the address."""
    if len(value) > MAX_LENGTH:
        raise ValueError(f"has at most {MAX_LENGTH:,} characters")
    if "#" in value:
        raise ValueError("has no fragment")
    if not _CHARACTERS.fullmatch(value):
        raise ValueError("has the characters of an address alone, without spaces, backslashes and wildcards")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is no address") from None
    scheme = parts.scheme
    if scheme in {"http", "https"}:
        if not host or not value.lower().startswith(f"{scheme}://") or port == 0:
            raise ValueError("names a host, and no port 0")
        if "@" in parts.netloc:
            raise ValueError("names no user")
        if scheme == "http" and host not in _LOOPBACK:
            raise ValueError("is https, or http at 127.0.0.1, [::1] or localhost")
    elif not _PRIVATE_SCHEME.fullmatch(scheme):
        raise ValueError(
            "has the scheme https, http or an app's own with a dot in it, as in org.example.app:/callback"
        )
    elif "@" in parts.netloc:
        raise ValueError("names no user")
    if any(segment in {".", ".."} for segment in _DOT.sub(".", parts.path).split("/")):
        raise ValueError("has no segment . or ..")
    if reserved_in(value):
        raise ValueError(f"has none of {', '.join(RESERVED)} in its query: the answer says them")
    return value


def reserved_in(uri: str) -> list[str]:
    """Name the parameters of RESERVED in an address's own query, however they are written."""
    names = {name for name, _ in parse_qsl(urlsplit(uri).query, keep_blank_values=True)}
    return [name for name in RESERVED if name in names]


def origin_of(uri: str) -> str | None:
    """Give the origin of the web page at an https address; None of every other."""
    parts = urlsplit(uri)
    if parts.scheme != "https":
        return None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"https://{host}" if parts.port in (None, 443) else f"https://{host}:{parts.port}"
