"""The throttle of logins: wrong passwords are counted by account and address, and slowed down ever more.

Counted for an account (a school and a username, or a client of the token endpoint) and an address together: somebody
guessing at an account locks themselves out, and never its owner at another address. Guesses from many addresses at one
account are slowed down too: beyond a bound each address has a single one, and beyond a cap only known addresses go on,
those of an earlier sign-in to the account. An address has a bound of its own, far above a school's morning behind one
address. Addresses of IPv6 are counted by their networks.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from flask import Flask, current_app
from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.errors import ConfigurationError, StorageError
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter, RateLimiter

from school_service.auth.bounded_memory import BoundedMemory
from school_service.auth.machine_memory import MachineMemory
from school_service.auth.signing_key import SigningKey
from school_service.config import IN_MEMORY, ConfigError
from school_service.core import machine
from school_service.core.addresses import TIMES, networks_of
from school_service.core.errors import TooManyAttempts
from tenants.names import LONGEST, is_too_long

STORAGE_TIMEOUT = 2.0  # seconds that counting an attempt may take

# Wrong passwords of one address for one account: ten in a minute, and fewer when tries go on.
ACCOUNT_LIMITS = (
    RateLimitItemPerMinute(10, namespace="password-of-account"),
    RateLimitItemPerMinute(30, 10, namespace="password-of-account"),
    RateLimitItemPerHour(60, 1, namespace="password-of-account"),
)
# Wrong passwords for one account from all addresses; beyond it each address has LONE_LIMIT.
EVERYWHERE_LIMIT = RateLimitItemPerMinute(10, namespace="password-everywhere")
LONE_LIMIT = RateLimitItemPerMinute(1, namespace="password-of-account")
# The most guesses from all addresses together: beyond it an address has to be known. One address alone does not reach
# it.
CAP = RateLimitItemPerHour(100, namespace="password-cap")
# Against trying one password on many names. A school, or a town, often stands behind one address.
ADDRESS_LIMIT = RateLimitItemPerMinute(6000, namespace="password-from-address")
# At the token endpoint, where nobody mistypes: made-up clients take no more of the counts than these.
CLIENTS_ADDRESS_LIMIT = RateLimitItemPerMinute(60, namespace="secret-from-address")
# Codes and refresh tokens that are refused: nobody guesses one, yet each costs a look into the database.
GRANT_FAILURES = RateLimitItemPerMinute(600, namespace="grant-from-address")
_MANY_GRANTS = "Too many codes or tokens that are not valid. Try again later."
# Wrong codes of invitations at a school: a code has 60 bits, and a class may sit behind one address.
CODES_LIMIT = RateLimitItemPerMinute(30, namespace="invitation-code")
# Right passwords cost the service a hash, too.
SUCCESS_LIMIT = RateLimitItemPerMinute(1000, namespace="sign-in-of-account")


TOKEN_ENDPOINT = "token endpoint"  # noqa: S105 -- it names one
"""The realm of machine clients' attempts."""


def _in_memory() -> BoundedMemory | MachineMemory:
    supervisor = machine.supervisor()
    return BoundedMemory(IN_MEMORY) if supervisor is None else MachineMemory(supervisor, STORAGE_TIMEOUT)


class Limiter:
    """Counts attempts with `limits`, the engine of Flask-Limiter, in a moving window.

    Without the extension's hooks: they would cost every request, though only signing in needs them.
    """

    def init_app(self, app: Flask) -> None:
        """Count in the storage of RATELIMIT_STORAGE_URI: memory:// or a Redis address. Raises ConfigError.

        The memory is this process's, or of several workers their supervisor's.
        """
        uri = app.config["RATELIMIT_STORAGE_URI"]
        timeouts = {"socket_connect_timeout": STORAGE_TIMEOUT, "socket_timeout": STORAGE_TIMEOUT}
        try:
            storage = (
                _in_memory()
                if uri == IN_MEMORY
                else storage_from_string(uri, wrap_exceptions=True, **timeouts)
            )
        except (ConfigurationError, ValueError) as error:
            raise ConfigError(f"RATE_LIMIT_STORAGE can't be used: {error}") from None
        app.extensions["limiter"] = MovingWindowRateLimiter(storage)

    @property
    def limiter(self) -> RateLimiter:
        """The current application's counters."""
        limiter: RateLimiter = current_app.extensions["limiter"]
        return limiter


limiter = Limiter()


class StorageFailure(NamedTuple):
    """The failure of the storage of tries: it `refuses` this process, as for a wrong password, or is away."""

    refuses: bool
    reason: str


def storage_failure() -> StorageFailure | None:
    """Ask the storage of tries, a Redis, whether it counts for this process; None if it does, and for memory."""
    if current_app.config["RATELIMIT_STORAGE_URI"] == IN_MEMORY:
        return None
    from redis.exceptions import AuthenticationError, AuthorizationError, ResponseError

    try:
        limiter.limiter.storage.get("check")
    except StorageError as error:
        cause = error.storage_error
        refuses = isinstance(cause, (AuthenticationError, AuthorizationError, ResponseError))
        return StorageFailure(refuses, str(cause).partition("\n")[0])
    return None


def count_try(limit: RateLimitItem, address: str, *key: str, message: str | None = None) -> None:
    """Count a try, of anything with a limit, from an address; raises TooManyAttempts, with the message, beyond it.

    Tries with another `key` are counted apart.
    """
    for item, network in _of_networks(limit, address):
        if not limiter.limiter.hit(item, *key, network):
            raise TooManyAttempts(_seconds_until_room(item, *key, network), message)


def check_grants(address: str) -> None:
    """Refuse a code or refresh token from an address with too many wrong ones; raises TooManyAttempts."""
    for item, network in _of_networks(GRANT_FAILURES, address):
        if not limiter.limiter.test(item, network):
            raise TooManyAttempts(_seconds_until_room(item, network), _MANY_GRANTS)


def count_refused_grant(address: str) -> None:
    """Count a refused code or refresh token from an address; raises TooManyAttempts beyond the limit."""
    count_try(GRANT_FAILURES, address, message=_MANY_GRANTS)


@dataclass(frozen=True, slots=True)
class WrongCodes:
    """The wrong codes of invitations from an address at a school; `school` is its id.

    A right code is let in after any number of wrong ones: 60 random bits are the bound, and a class has one address.
    """

    school: str
    address: str

    def record(self) -> None:
        """Count a wrong code; raises TooManyAttempts beyond the limit."""
        count_try(CODES_LIMIT, self.address, self.school, message="Too many wrong codes. Try again later.")


def _of_networks(limit: RateLimitItem, address: str) -> list[tuple[RateLimitItem, str]]:
    """Give the limit of each network of an address: a larger one has it several times."""
    return [
        (limit if times == 1 else _multiplied(limit, times), network)
        for times, network in zip(TIMES, networks_of(address), strict=False)
    ]


@lru_cache
def _multiplied(limit: RateLimitItem, times: int) -> RateLimitItem:
    return type(limit)(limit.amount * times, limit.multiples, namespace=limit.namespace)


def _seconds_until_room(limit: RateLimitItem, *key: str) -> int:
    """Seconds until a limit has room again."""
    return max(1, math.ceil(limiter.limiter.get_window_stats(limit, *key).reset_time - time.time()))


@dataclass(frozen=True, slots=True)
class LoginThrottle:
    """The attempts to sign in from one address to the accounts of a realm: a school's id, or the token endpoint.

    `is_told`: a machine client with the right to do so has told the address of its end user.
    """

    realm: str
    address: str
    is_told: bool = False

    def check(self, account: str) -> None:
        """Refuse an attempt after too many wrong ones; raises TooManyAttempts."""
        for limit, key in self._limits(account):
            if not limiter.limiter.test(limit, *key):
                raise self._refusal(account)

    def is_capped(self, account: str) -> bool:
        """Tell whether the cap of wrong passwords, from everywhere, is reached: only known addresses may go on then."""
        return not limiter.limiter.test(CAP, self.realm, _key(account))

    def check_known(self, account: str, addresses: Iterable[str]) -> None:
        """Refuse an attempt beyond the cap from an unknown address; raises TooManyAttempts.

        Known is an address in the network of one of these `addresses`, and one told by a machine client.
        """
        here = networks_of(self.address)[0]
        if not self.is_told and here not in {networks_of(address)[0] for address in addresses}:
            raise TooManyAttempts(_seconds_until_room(CAP, self.realm, _key(account)))

    def record_failure(self, account: str) -> None:
        """Count a wrong password; raises TooManyAttempts if others at this moment have used a limit up."""
        # Each limit is counted, even where another is used up.
        within = [limiter.limiter.hit(limit, *key) for limit, key in self._limits(account)]
        for limit in (EVERYWHERE_LIMIT, CAP):
            limiter.limiter.hit(limit, self.realm, _key(account))
        if not all(within):
            raise self._refusal(account)

    def record_success(self, account: str) -> None:
        """Count a right password; raises TooManyAttempts for an account signed in to without end."""
        count_try(SUCCESS_LIMIT, self.address, self.realm, _key(account))

    def _limits(self, account: str) -> list[tuple[RateLimitItem, tuple[str, ...]]]:
        of_account = list(ACCOUNT_LIMITS)
        if not limiter.limiter.test(EVERYWHERE_LIMIT, self.realm, _key(account)):
            of_account.append(LONE_LIMIT)
        limits: list[tuple[RateLimitItem, tuple[str, ...]]] = [
            (item, (self.realm, _key(account), network))
            for limit in of_account
            for item, network in _of_networks(limit, self.address)
        ]
        of_address = CLIENTS_ADDRESS_LIMIT if self.realm == TOKEN_ENDPOINT else ADDRESS_LIMIT
        return limits + [
            (item, (self.realm, network)) for item, network in _of_networks(of_address, self.address)
        ]

    def _refusal(self, account: str) -> TooManyAttempts:
        exhausted = [
            _seconds_until_room(limit, *key)
            for limit, key in self._limits(account)
            if limiter.limiter.get_window_stats(limit, *key).remaining <= 0
        ]
        return TooManyAttempts(max(exhausted, default=1))


def _key(account: str) -> str:
    """Name an account in the counts: as short for every name, and without storing a possible password."""
    return hashlib.sha256(account.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]


_HASH_PURPOSE = "attempted username"
HASH_LENGTH = 32  # hex digits


def hash_username(key: SigningKey, realm: str, username: str) -> str:
    """Hash the username of an attempt to sign in, for logs; without regard to case and form (NFKC).

    The typed text may be a password, so it is never written down itself. The hash is keyed with the signing key: nobody
    with the logs alone can try usernames on it. `realm` is a school's id or the token endpoint; in the logs of a realm,
    a name always has the same hash. A text too long for a name is hashed as it was typed.
    """
    is_name = not is_too_long(username, LONGEST)
    name = unicodedata.normalize("NFKC", username).casefold() if is_name else username
    message = f"{realm}\n{name}".encode("utf-8", "surrogatepass")
    return hmac.new(key.derive(_HASH_PURPOSE), message, hashlib.sha256).hexdigest()[:HASH_LENGTH]
