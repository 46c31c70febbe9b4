"""Where a request comes from, and where it was sent to, behind trusted proxies too."""

from __future__ import annotations

from ipaddress import ip_address

from flask import current_app, request

from school_service.config import Networks, Settings


def client_address() -> str:
    """The address of the client: the peer's, or what trusted proxies say of it in X-Forwarded-For.

    The header is read from its end: each proxy adds whom it heard from. What stands before the first address that is
    no trusted proxy's may have been made up by the client.
    """
    settings: Settings = current_app.extensions["school-service"].settings
    trusted = settings.trusted_proxies
    address = request.remote_addr or ""
    hops = request.headers.get("X-Forwarded-For", "").split(",")
    while hops and _is_trusted(address, trusted):
        hop = hops.pop().strip()
        if not _is_address(hop):
            break
        address = hop
    return address


def service_address() -> str:
    """The address that the client has for the service, without a slash at its end: `https://schools.example.org`.

    The name is the one of the request, so it is for answers that go to nobody else. That TLS ended at a proxy, the
    proxy says in X-Forwarded-Proto, if it is trusted.
    """
    settings: Settings = current_app.extensions["school-service"].settings
    forwarded = request.headers.get("X-Forwarded-Proto", "").lower()
    behind_tls = forwarded == "https" and _is_trusted(request.remote_addr or "", settings.trusted_proxies)
    return f"{'https' if behind_tls else request.scheme}://{request.host}{request.script_root}"


def _is_trusted(address: str, networks: Networks) -> bool:
    return _is_address(address) and any(ip_address(address) in network for network in networks)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
