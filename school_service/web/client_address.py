"""The address of a request's client, and the address of the service in the request, behind trusted proxies too."""

from __future__ import annotations

import re
from ipaddress import ip_address

from flask import has_request_context, request

from school_service.config import Networks, Settings
from school_service.core.database import context_globals, current_application
from school_service.core.errors import InvalidHeader
from school_service.web.current import current_request

END_USER_ADDRESS = "X-End-User-Address"
"""The header of a machine client for the address of its end user."""
_TOLD = f"HTTP_{END_USER_ADDRESS.upper().replace('-', '_')}"
_PREFIX = re.compile(r"(?>(?:/[A-Za-z0-9._~-]++)+)")


def client_address() -> str:
    """The address of the client: the peer's, or the address told by trusted proxies in X-Forwarded-For.

    The header is read from its end: each proxy adds the address of its peer. The client may have made up all before the
    first address that is no trusted proxy's.
    """
    known = context_globals().__dict__
    address: str | None = known.get("client_address")
    if address is None:
        settings: Settings = current_application().extensions["school-service"].settings
        environ = current_request().environ
        address = known["client_address"] = first_untrusted(
            environ.get("REMOTE_ADDR") or "",
            environ.get("HTTP_X_FORWARDED_FOR", ""),
            settings.trusted_proxies,
        )
    return address


def take_told_address() -> None:
    """Take the address of the end user, if the client tells it, as the address of the client.

    Only for a machine client with the right to do so. The log has its own address, too. Raises InvalidHeader.
    """
    told = current_request().environ.get(_TOLD)
    if told is None:
        return
    address = told.strip()
    if not _is_address(address):
        raise InvalidHeader(f"The header {END_USER_ADDRESS} must be an address of IPv4 or IPv6.")
    known = context_globals().__dict__
    if not known.get("address_is_told"):
        log_members = known.setdefault("log_members", {})
        log_members["told_by"] = client_address()
    known["client_address"], known["address_is_told"] = address, True


def address_is_told() -> bool:
    """Tell whether `client_address` is the address of an end user, told by a machine client."""
    return bool(context_globals().__dict__.get("address_is_told"))


def first_untrusted(address: str, forwarded_for: str, trusted: Networks) -> str:
    """Follow the hops from the peer's address back to the first address other than a trusted proxy's."""
    hops = forwarded_for.split(",") if forwarded_for and trusted else []
    while hops and is_trusted(address, trusted):
        hop = hops.pop().strip()
        if not _is_address(hop):
            break
        address = hop
    return address


def service_address() -> str:
    """The address of the service, without a slash at its end: PUBLIC_URL, else the client's address for it.

    The name is then the name in the request, so it is for answers to nobody else; outside of a request it is empty. A
    trusted proxy tells of TLS in X-Forwarded-Proto, and of the prefix removed from the path in X-Forwarded-Prefix.
    """
    settings: Settings = current_application().extensions["school-service"].settings
    if settings.public_url or not has_request_context():
        return settings.public_url or ""
    scheme, prefix = request.scheme, ""
    if is_trusted(request.remote_addr or "", settings.trusted_proxies):
        if request.headers.get("X-Forwarded-Proto", "").lower() == "https":
            scheme = "https"
        forwarded = request.headers.get("X-Forwarded-Prefix", "").rstrip("/")
        prefix = forwarded if _PREFIX.fullmatch(forwarded) else ""
    return f"{scheme}://{request.host}{prefix}{request.script_root}"


def is_trusted(address: str, networks: Networks) -> bool:
    """Tell whether an address is a trusted proxy's."""
    return bool(networks) and _is_address(address) and any(ip_address(address) in each for each in networks)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
