"""The outside provider's public keys: fetched when needed, kept while the provider is away."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import orjson
import urllib3
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import PyJWK
from jwt.exceptions import PyJWKError

_log = logging.getLogger(__name__)

COOL_DOWN = 30.0  # seconds between two fetches caused by unknown key ids
FIRST_COOL_DOWN = 5.0  # the same while there is no key at all
FRESH = 600.0  # seconds after which a known key set is fetched anew, so that withdrawn keys go
ANSWER_LIMIT = 2**20  # bytes


class ProviderAway(Exception):
    """The provider has never answered, so that no token of its can be checked."""


class KeySet:
    """The keys of one provider, by key id; safe to use from many threads.

    An unknown key id causes a fetch at most once in COOL_DOWN seconds, however many tokens bear one. A fetch that
    fails leaves the keys as they were.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.url = url
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str | None, PyJWK] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._http = urllib3.PoolManager(timeout=urllib3.Timeout(5.0), retries=False)

    def find(self, key_id: str | None) -> PyJWK | None:
        """Find the key of this id, or the only key where a token names none; None where there is no such key.

        Raises ProviderAway where no key has ever been fetched.
        """
        stale = self._fetched_at is None or self._clock() - self._fetched_at > FRESH
        if stale or self._choose(key_id) is None:
            self._refetch()
        found = self._choose(key_id)
        if found is None and self._fetched_at is None:
            raise ProviderAway
        return found

    def _choose(self, key_id: str | None) -> PyJWK | None:
        keys = self._keys
        if key_id is None:
            return next(iter(keys.values())) if len(keys) == 1 else None
        return keys.get(key_id)

    def _refetch(self) -> None:
        with self._lock:
            pause = COOL_DOWN if self._keys else FIRST_COOL_DOWN
            if self._tried_at is not None and self._clock() - self._tried_at < pause:
                return
            self._tried_at = self._clock()
            try:
                self._keys = self._fetch()
                self._fetched_at = self._clock()
            except (urllib3.exceptions.HTTPError, ValueError, TypeError, PyJWKError) as error:
                _log.warning("the identity provider's keys can't be fetched", extra={"reason": type(error).__name__})

    def _fetch(self) -> dict[str | None, PyJWK]:
        response = self._http.request("GET", self.url, preload_content=False)
        try:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            document: Any = orjson.loads(response.read(ANSWER_LIMIT))
        finally:
            response.release_conn()
        if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
            raise TypeError("no key set")
        keys = {}
        for members in document["keys"]:
            key = _usable(members)
            if key is not None:
                keys[key.key_id] = key
        return keys


def _usable(members: Any) -> PyJWK | None:
    """Accept only public keys for the algorithms that tokens may use; a shared secret is never one."""
    if not isinstance(members, dict) or members.get("use", "sig") != "sig" or "d" in members:
        return None
    try:
        key = PyJWK.from_dict(members)
    except (PyJWKError, ValueError, TypeError, KeyError):
        return None
    public = key.key
    fits = (
        (isinstance(public, rsa.RSAPublicKey) and public.key_size >= 2048 and key.algorithm_name == "RS256")
        or (isinstance(public, ec.EllipticCurvePublicKey) and key.algorithm_name == "ES256")
        or (isinstance(public, ed25519.Ed25519PublicKey) and key.algorithm_name == "EdDSA")
    )
    return key if fits else None
