"""The address for `serve` to listen on."""

from __future__ import annotations

import socket

from school_service.serving import ServingError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000


def listen(host: str, port: int) -> socket.socket:
    """Take the address: it is ours before any work is done; requests are let in by `serve`.

    Port 0 takes a free one. Raises ServingError.
    """
    try:
        family, socket_type, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError):
        raise ServingError(f"The host {host} is not known.") from None
    listener = socket.socket(family, socket_type, protocol)
    # A port that was left a moment ago can be taken again.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        # Another process may have bound the port with the same option; only one of the two can listen.
        listener.listen()
    except OSError as error:
        listener.close()
        raise ServingError(
            f"Port {port} of {host} can't be taken: {(error.strerror or str(error)).lower()}. "
            "Choose another with --port (0 takes a free one)."
        ) from None
    return listener


def base_address(listener: socket.socket) -> str:
    """Write the address of the service for this machine: `http://127.0.0.1:8000`."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
