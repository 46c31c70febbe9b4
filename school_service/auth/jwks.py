"""The outside provider's public keys (JWKS, RFC 7517): fetched when needed, cached while it can't be reached."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import orjson
import urllib3
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
        self._http = urllib3.PoolManager(timeout=urllib3.Timeout(FETCH_TIMEOUT), retries=False)

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
        except (urllib3.exceptions.HTTPError, OSError, ValueError, TypeError) as error:
            _log.warning("the identity provider's keys can't be fetched", extra={"reason": repr(error)[:200]})
        finally:
            with self._lock:
                # The pause is one between two fetches, however long each of them takes.
                self._ended_at = self._clock()
                self._fetching = None

    def _fetch(self) -> dict[str | None, PyJWK]:
        deadline = self._clock() + FETCH_TIMEOUT
        response = self._http.request("GET", self.url, preload_content=False, redirect=False)
        try:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            document: Any = orjson.loads(self._read(response, deadline))
        finally:
            response.close()
        if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
            raise TypeError("no key set")
        usable = (_usable(members) for members in document["keys"])
        keys = {key.key_id: key for key in usable if key is not None}
        if not keys:
            raise ValueError(f"none of {len(document['keys'])} keys can be used")
        return keys

    def _read(self, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        """Read an answer of bounded size in bounded time, however slowly it arrives."""
        body = b""
        while portion := response.read1(_CHUNK):
            body += portion
            if len(body) > ANSWER_LIMIT:
                raise ValueError("the answer is too large")
            if self._clock() > deadline:
                raise TimeoutError("the answer is too slow")
        return body


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
