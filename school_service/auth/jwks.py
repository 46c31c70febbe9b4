"""The outside provider's public keys (JWKS, RFC 7517): fetched when needed, cached while it can't be reached."""

from __future__ import annotations

import io
import logging
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import PyJWK
from jwt.exceptions import PyJWTError

_log = logging.getLogger(__name__)

COOL_DOWN = 30.0  # seconds between two fetches caused by unknown key ids
FIRST_COOL_DOWN = 5.0  # the same, as long as the provider has never answered
REFRESH_AFTER = 600.0  # seconds after which a key set is fetched anew, so that withdrawn keys go
FETCH_TIMEOUT = 5.0  # seconds that a fetch may take, and that a token with an unknown key waits for it
ANSWER_LIMIT = 2**20  # bytes
NAMED_KEYS = 20  # keys that a line of the log names at most
_CHUNK = 2**16

# The one algorithm for each kind of key.
_ALGORITHMS = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}


class ProviderUnavailable(Exception):
    """The provider has never answered, so that none of its tokens can be verified."""


class KeySet:
    """The keys of one provider, by key id; safe to use from many threads.

    An unknown key id causes a fetch at most once in COOL_DOWN seconds, however many tokens bear one. A fetch
    has a thread of its own: only tokens whose key is not known wait for it, and one that fails leaves the
    keys as they were.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.url = url
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str | None, PyJWK] = {}
        self._fetched_at: float | None = None
        self._begun_at = 0.0
        self._ended_at: float | None = None
        self._fetching: threading.Thread | None = None

    def find(self, key_id: str | None) -> PyJWK | None:
        """Find the key of this id, or the only key where a token names none; None where there is no such key.

        Raises ProviderUnavailable where no key has ever been fetched.
        """
        known = self._choose(key_id)
        stale = self._fetched_at is None or self._clock() - self._fetched_at > REFRESH_AFTER
        if known is not None and not stale:
            return known
        fetching = self._fetch_soon()
        if known is not None:
            # Nobody waits for a refresh: the provider may be slow, or unreachable.
            return known
        if fetching is not None:
            self._await(fetching)
        found = self._choose(key_id)
        if found is None and self._fetched_at is None:
            raise ProviderUnavailable
        return found

    def _choose(self, key_id: str | None) -> PyJWK | None:
        keys = self._keys
        if key_id is None:
            return next(iter(keys.values())) if len(keys) == 1 else None
        return keys.get(key_id)

    def _fetch_soon(self) -> threading.Thread | None:
        """Start a fetch unless one has just been tried; returns the one that is under way."""
        with self._lock:
            if self._fetching is None and not self._cooling_down():
                self._begun_at = self._clock()
                fetching = threading.Thread(target=self._refetch, name="provider's keys", daemon=True)
                fetching.start()
                self._fetching = fetching
            return self._fetching

    def _await(self, fetching: threading.Thread) -> None:
        # Until the fetch has had its time, not from now on: a slow provider must not block every thread.
        fetching.join(max(0.0, FETCH_TIMEOUT - (self._clock() - self._begun_at)))

    def _cooling_down(self) -> bool:
        pause = FIRST_COOL_DOWN if self._fetched_at is None else COOL_DOWN
        return self._ended_at is not None and self._clock() - self._ended_at < pause

    def _refetch(self) -> None:
        try:
            keys = self._fetch()
            dropped = sorted(str(key_id) for key_id in self._keys.keys() - keys.keys())
            if dropped:
                _log.info("the identity provider has withdrawn keys", extra={"keys": dropped})
            self._keys = keys
            self._fetched_at = self._clock()
        except (HTTPException, OSError, ValueError, TypeError) as error:
            _log.warning("the identity provider's keys can't be fetched", extra={"reason": repr(error)[:500]})
        finally:
            with self._lock:
                # The pause is one between two fetches, however long each of them takes.
                self._ended_at = self._clock()
                self._fetching = None

    def _fetch(self) -> dict[str | None, PyJWK]:
        document: Any = orjson.loads(_get(self.url, self._clock))
        if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
            raise TypeError("no key set")
        found = [(members, _usable(members)) for members in document["keys"]]
        keys = {key.key_id: key for _, key in found if key is not None}
        unusable = [_name(members) for members, key in found if key is None]
        if not keys:
            raise ValueError(f"none of {len(found)} keys can be used: {', '.join(unusable[:NAMED_KEYS])}")
        if unusable:
            _log.info("the identity provider has keys of other kinds", extra={"keys": unusable[:NAMED_KEYS]})
        return keys


class _TimedStream(io.RawIOBase):
    """What a socket receives while there is time: however slowly it comes, no wait goes beyond the deadline."""

    def __init__(
        self, received: io.RawIOBase, connection: socket.socket, seconds_left: Callable[[], float]
    ) -> None:
        super().__init__()
        self._received = received
        self._connection = connection
        self._seconds_left = seconds_left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._connection.settimeout(self._seconds_left())
        return self._received.readinto(buffer)

    def close(self) -> None:
        self._received.close()
        super().close()


class _TimedResponse(HTTPResponse):
    """A response all of which, the header fields too, has to come while there is time."""

    def __init__(
        self, sock: socket.socket, *arguments: Any, seconds_left: Callable[[], float], **options: Any
    ) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_TimedStream(self.fp.detach(), sock, seconds_left))


def _get(url: str, clock: Callable[[], float]) -> bytes:
    """Get an answer of at most ANSWER_LIMIT bytes within FETCH_TIMEOUT seconds; redirections are not followed.

    Raises OSError (TimeoutError for one that is too slow), HTTPException, ValueError.
    """
    deadline = clock() + FETCH_TIMEOUT

    def seconds_left() -> float:
        left = deadline - clock()
        if left <= 0:
            raise TimeoutError("the answer is too slow")
        return left

    address = urlsplit(url)
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=FETCH_TIMEOUT)
    connection.response_class = partial(_TimedResponse, seconds_left=seconds_left)  # type: ignore[assignment]
    try:
        connection.request("GET", f"{address.path or '/'}{'?' if address.query else ''}{address.query}")
        with connection.getresponse() as response:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            body = b""
            while portion := response.read1(_CHUNK):
                body += portion
                if len(body) > ANSWER_LIMIT:
                    raise ValueError("the answer is too large")
            if response.length:
                raise ValueError("the answer is not whole")
            return body
    finally:
        connection.close()


def _name(members: Any) -> str:
    """Name a key for the log, at most 80 characters."""
    return str(members.get("kid") if isinstance(members, dict) else None)[:80]


def _usable(members: Any) -> PyJWK | None:
    """Accept only public keys for the algorithms that tokens may use; a shared secret is never one."""
    if not isinstance(members, dict) or not isinstance(members.get("kid"), str | None):
        return None
    algorithm = _ALGORITHMS.get(str(members.get("kty")))
    if algorithm is None or members.get("alg", algorithm) != algorithm:
        return None
    if members.get("use", "sig") != "sig":
        return None
    try:
        if "verify" not in members.get("key_ops", ["verify"]):
            return None
        key = PyJWK.from_dict(members, algorithm)
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError):
        # One bad key must not cost the others.
        return None
    public = key.key  # a private one is of another class
    strong = (
        (isinstance(public, rsa.RSAPublicKey) and public.key_size >= 2048)
        or (isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1))
        or isinstance(public, ed25519.Ed25519PublicKey)
    )
    return key if strong else None
