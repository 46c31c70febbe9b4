"""An outside identity provider: it publishes its keys over HTTP and signs tokens."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ALGORITHMS: dict[str, Any] = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}
KINDS: dict[str, Any] = {**ALGORITHMS, "Ed25519": OKPAlgorithm}
AUDIENCE = "school-service"

# Status, headers, and the body in chunks.
Answer = tuple[int, dict[str, str], Iterable[bytes]]


_jws = jwt.PyJWS()
_jws.register_algorithm("Ed25519", OKPAlgorithm())  # RFC 9864; PyJWT has the older name alone


def private_key(algorithm: str, name: str = "") -> Any:
    """Give the private key of a kind and a name, the same each time."""
    return _make_key(algorithm, name)


@cache
def _make_key(algorithm: str, _name: str) -> Any:
    if algorithm == "RS256":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    if algorithm == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate()


def public_jwk(private: Any, algorithm: str, **members: Any) -> dict[str, Any]:
    """Write a public key as a provider publishes it."""
    return {**KINDS[algorithm].to_jwk(private.public_key(), as_dict=True), "use": "sig", **members}


class OutsideProvider:
    """A provider at an address of this machine; `requests` are the paths that were requested.

    It describes itself where it has a `description`, and then all other addresses give `answer`.
    """

    def __init__(self) -> None:
        self.description: dict[str, Any] | None = None
        self.keys: list[Any] = [
            public_jwk(private_key(algorithm), algorithm, kid=algorithm, alg=algorithm)
            for algorithm in ALGORITHMS
        ]
        self.requests: list[str] = []
        self.answer: Callable[[], Answer] = self.key_set
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.requests.append(self.path)
                described = self.path.endswith("/openid-configuration")
                status, headers, body = provider.describe() if described else provider.answer()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(ConnectionError):
                    for piece in body:
                        self.wfile.write(piece)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> OutsideProvider:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Go away; nobody answers at the address any more."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def describe(self) -> Answer:
        """Answer the description (OpenID Connect Discovery), or that there is none."""
        if self.description is None:
            return 404, {}, []
        return 200, {"Content-Type": "application/json"}, [json.dumps(self.description).encode()]

    def key_set(self) -> Answer:
        """Answer the keys, as a sound provider does."""
        return 200, {"Content-Type": "application/json"}, [json.dumps({"keys": self.keys}).encode()]

    def says(self, status: int = 200, body: bytes = b"", **headers: str) -> None:
        """Answer this from now on."""
        self.answer = lambda: (status, headers, [body])

    def claims(self, **claims: Any) -> dict[str, Any]:
        """The claims of a sound token, without those given as None; a token that names a client is the client's own."""
        now = int(time.time())
        subject = claims.get("azp") or claims.get("client_id") or "someone"
        defaults = {"iss": self.url, "aud": AUDIENCE, "iat": now, "exp": now + 3600, "sub": subject}
        return {name: value for name, value in {**defaults, **claims}.items() if value is not None}

    def token(
        self,
        algorithm: str = "ES256",
        *,
        name: str = "",
        kid: Any = ...,
        header_typ: str = "JWT",
        **claims: Any,
    ) -> str:
        """Sign a token with one of the provider's keys, or with another of the same kind by name."""
        headers = {"typ": header_typ} | ({} if kid is None else {"kid": algorithm if kid is ... else kid})
        private = private_key("Ed25519" if kid == "Ed25519" else algorithm, name)
        return _jws.encode(json.dumps(self.claims(**claims)).encode(), private, algorithm, headers=headers)
