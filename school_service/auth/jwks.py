"""The outside provider's public keys (JWKS, RFC 7517): fetched when needed, cached while it can't be reached.

AUTH_JWKS_URL names their address, or else the provider itself does (OpenID Connect Discovery 1.0, RFC 8414).
"""

from __future__ import annotations

import io
import logging
import socket
import threading
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from school_service.auth.signing_key import ALGORITHMS_OF_KEYS, algorithm_of

_log = logging.getLogger(__name__)

COOL_DOWN = 30.0  # seconds between two fetches caused by unknown key ids
FIRST_COOL_DOWN = 5.0  # the same, as long as the provider has never answered
REFRESH_AFTER = 600.0  # seconds after which a key set is fetched anew, so that withdrawn keys go
DISCOVER_AFTER = 3600.0  # seconds after which the provider is asked anew where its keys are
FETCH_TIMEOUT = 5.0  # seconds that a fetch may take, and that a token with an unknown key waits for it
ANSWER_LIMIT = 2**20  # bytes
NAMED_KEYS = 20  # keys that a line of the log names at most
_CHUNK = 2**16

DESCRIPTION = "/.well-known/openid-configuration"
# The path of the keys of a provider that does not describe itself.
UNDESCRIBED_KEYS = "/.well-known/jwks.json"
# Statuses by which a server says that it has no such document; some file servers answer 403.
_NO_DESCRIPTION = {403, 404, 410}


class ProviderUnavailable(Exception):
    """The provider has never answered, so none of its tokens can be verified."""


class _WrongStatus(ValueError):
    """An answer has another status than 200."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider with a description of itself, and of the address of its keys.

    `address` is the value of AUTH_URL, `issuers` are the accepted values of `iss`; the description has to name one of
    them.
    """

    address: str
    issuers: tuple[str, ...]

    @property
    def description_url(self) -> str:
        """The address of the description: below the provider's, with or without a slash at its end."""
        return f"{self.address.rstrip('/')}{DESCRIPTION}"

    def keys_url(self, description: bytes) -> str:
        """Read the address of the keys from the description; raises ValueError for an untrustworthy description.

        It has to name one of the issuers to the letter, and its keys may not be at http while it is at https itself.
        """
        members: Any = orjson.loads(description)
        if not isinstance(members, dict):
            raise ValueError("the description is no JSON object")
        if members.get("issuer") not in self.issuers:
            raise ValueError(f"the description is of another issuer: {str(members.get('issuer'))[:200]}")
        url = members.get("jwks_uri")
        if not isinstance(url, str) or not _is_web_address(url):
            raise ValueError("the description has no jwks_uri that is an http or https address")
        if urlsplit(url).scheme == "http" and urlsplit(self.address).scheme == "https":
            raise ValueError("the description leads from https to http")
        return url


def _is_web_address(url: str) -> bool:
    """Tell whether an address is of http or https, with no user and no fragment, as those of the settings are."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    written = url.isascii() and url.isprintable() and " " not in url
    return sound and written and parts.username is None and not parts.fragment


class KeySet:
    """The keys of one provider, by key id; safe to use from many threads.

    `source` is the address of the keys, or a provider to ask for it. An unknown key id causes a fetch at most once in
    COOL_DOWN seconds, however many tokens bear one. A fetch has a thread of its own: only tokens with an unknown key
    wait for it, and a failed one leaves the keys as they were.
    """

    def __init__(self, source: str | Provider, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.source = source
        self._discovered: tuple[str, float] | None = (
            None  # the address of the keys, and when it was asked for
        )
        self._asked = ""
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str | None, ProviderKey] = {}
        self._fetched_at: float | None = None
        self._begun_at = 0.0
        self._ended_at: float | None = None
        self._fetching: threading.Thread | None = None

    def find(self, key_id: str | None) -> ProviderKey | None:
        """Find the key of this id, or the only key for a token without a key id; None if there is no such key.

        Raises ProviderUnavailable if no key has ever been fetched.
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
        key = self._choose(key_id)
        if key is None and self._fetched_at is None:
            raise ProviderUnavailable
        return key

    def age(self) -> float | None:
        """Tell how many seconds ago the keys were fetched; None if they never were."""
        return None if self._fetched_at is None else self._clock() - self._fetched_at

    def _choose(self, key_id: str | None) -> ProviderKey | None:
        keys = self._keys
        if key_id is None:
            return next(iter(keys.values())) if len(keys) == 1 else None
        return keys.get(key_id)

    def _fetch_soon(self) -> threading.Thread | None:
        """Start a fetch unless one has just been tried; returns the fetch under way."""
        with self._lock:
            if self._fetching is None and not self._cooling_down():
                self._begun_at = self._clock()
                fetching = threading.Thread(target=self._refetch, name="provider's keys", daemon=True)
                fetching.start()
                self._fetching = fetching
            return self._fetching

    def _await(self, fetching: threading.Thread) -> None:
        # The time counts from the beginning of the fetch: else a slow provider would hold every thread for so long.
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
            # The keys may have moved: their address is asked for anew.
            self._discovered = None
            _log.warning(
                "the identity provider's keys can't be fetched",
                extra={"url": _without_query(self._asked), "reason": repr(error)[:500]},
            )
        finally:
            with self._lock:
                # The pause is between the end of a fetch and the next one, however long each takes.
                self._ended_at = self._clock()
                self._fetching = None

    def _fetch(self) -> dict[str | None, ProviderKey]:
        deadline = self._clock() + FETCH_TIMEOUT
        document: Any = orjson.loads(self._get(self._find_keys(deadline), deadline))
        if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
            raise TypeError("no key set")
        entries = [(members, _usable(members)) for members in document["keys"]]
        keys = {key.key_id: key for _, key in entries if key is not None}
        unusable = [_name(members) for members, key in entries if key is None]
        if not keys:
            raise ValueError(f"none of {len(entries)} keys can be used: {', '.join(unusable[:NAMED_KEYS])}")
        if unusable:
            _log.info("the identity provider has keys of other kinds", extra={"keys": unusable[:NAMED_KEYS]})
        return keys

    def _find_keys(self, deadline: float) -> str:
        """Find the address of the keys, asking the provider for it once in DISCOVER_AFTER seconds."""
        if isinstance(self.source, str):
            return self.source
        if self._discovered is not None and self._clock() - self._discovered[1] <= DISCOVER_AFTER:
            return self._discovered[0]
        try:
            address = self.source.keys_url(self._get(self.source.description_url, deadline))
        except _WrongStatus as error:
            if error.status not in _NO_DESCRIPTION:
                raise
            address = f"{self.source.address.rstrip('/')}{UNDESCRIBED_KEYS}"
            _log.info(
                "the identity provider does not describe itself",
                extra={"url": self.source.description_url, "status": error.status, "keys": address},
            )
        self._discovered = address, self._clock()
        return address

    def _get(self, url: str, deadline: float) -> bytes:
        self._asked = url
        return _get(url, deadline, self._clock)


def _without_query(url: str) -> str:
    """Write an address for the log: a query may hold a secret."""
    return url.partition("?")[0]


class ProviderKey(PyJWK):
    """A public key of the provider; `algorithms` are the names of its algorithm in the header of a token."""

    def __init__(self, members: dict[str, Any], algorithms: tuple[str, ...]) -> None:
        super().__init__(members, algorithms[0])
        self.algorithms = (members["alg"],) if "alg" in members else algorithms

    def called(self, algorithm: str) -> PyJWK:
        """Give the key under another name of its algorithm: PyJWT accepts only the name it was made with."""
        key = copy(self)
        key.algorithm_name = algorithm
        return key


class _TimedStream(io.RawIOBase):
    """Reads from a socket before a deadline: no wait goes beyond it, however slowly the bytes come."""

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
    """A response to be received as a whole, with its header fields, before a deadline."""

    def __init__(
        self, sock: socket.socket, *arguments: Any, seconds_left: Callable[[], float], **options: Any
    ) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_TimedStream(self.fp.detach(), sock, seconds_left))


def _get(url: str, deadline: float, clock: Callable[[], float]) -> bytes:
    """Get an answer of at most ANSWER_LIMIT bytes before the deadline; redirections are not followed.

    Raises OSError (TimeoutError for an answer too slow), HTTPException, ValueError.
    """

    def seconds_left() -> float:
        left = deadline - clock()
        if left <= 0:
            raise TimeoutError("the answer is too slow")
        return left

    address = urlsplit(url)
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=seconds_left())
    connection.response_class = partial(_TimedResponse, seconds_left=seconds_left)  # type: ignore[assignment]
    try:
        connection.request("GET", f"{address.path or '/'}{'?' if address.query else ''}{address.query}")
        with connection.getresponse() as response:
            if response.status != 200:
                raise _WrongStatus(response.status)
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


def _usable(members: Any) -> ProviderKey | None:
    """Accept only public keys for the algorithms of tokens; a shared secret is never one."""
    if not isinstance(members, dict) or not isinstance(members.get("kid"), str | None):
        return None
    algorithms = ALGORITHMS_OF_KEYS.get(str(members.get("kty")))
    if algorithms is None or members.get("alg", algorithms[0]) not in algorithms:
        return None
    if members.get("use", "sig") != "sig":
        return None
    try:
        if "verify" not in members.get("key_ops", ["verify"]):
            return None
        key = ProviderKey(members, algorithms)
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError):
        # One bad key must not make the others useless.
        return None
    # A private one is of another class.
    return None if algorithm_of(key.key) is None else key
