"""The throttle of logins: wrong passwords are counted by account and address, and slowed down ever more.

Counted for an account (a school and a username, or a client of the token endpoint) and an address together: whoever
guesses at an account locks themselves out, and never its owner, who comes from another address. Guesses from many
addresses at one account are slowed down too: beyond a bound each address has a single one. An address has a bound of
its own, far above a school's morning behind one address.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
import unicodedata
from dataclasses import dataclass

from flask import Flask, current_app
from limits import RateLimitItem, RateLimitItemPerHour, RateLimitItemPerMinute
from limits.errors import ConfigurationError
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter, RateLimiter

from school_service.auth.signing_key import SigningKey
from school_service.config import ConfigError
from school_service.core.errors import TooManyAttempts

STORAGE_TIMEOUT = 2.0  # seconds that counting an attempt may take

# Wrong passwords of one address for one account: ten in a minute, and fewer for whoever goes on.
ACCOUNT_LIMITS = (
    RateLimitItemPerMinute(10, namespace="password-of-account"),
    RateLimitItemPerMinute(30, 10, namespace="password-of-account"),
    RateLimitItemPerHour(60, 1, namespace="password-of-account"),
)
# Wrong passwords for one account from all addresses; beyond it each address has LONE_LIMIT.
EVERYWHERE_LIMIT = RateLimitItemPerMinute(10, namespace="password-everywhere")
LONE_LIMIT = RateLimitItemPerMinute(1, namespace="password-of-account")
# Against trying one password on many names. A school, or a town, often stands behind one address.
ADDRESS_LIMIT = RateLimitItemPerMinute(6000, namespace="password-from-address")
# Right passwords cost the service a hash, too.
SUCCESS_LIMIT = RateLimitItemPerMinute(1000, namespace="sign-in-of-account")


class Limiter:
    """Counts attempts with `limits`, the engine of Flask-Limiter, in a moving window.

    Without that extension's hooks: they would cost every request what only signing in needs.
    """

    def init_app(self, app: Flask) -> None:
        """Count where RATELIMIT_STORAGE_URI says: memory:// or a Redis address. Raises ConfigError."""
        timeouts = {"socket_connect_timeout": STORAGE_TIMEOUT, "socket_timeout": STORAGE_TIMEOUT}
        try:
            storage = storage_from_string(
                app.config["RATELIMIT_STORAGE_URI"], wrap_exceptions=True, **timeouts
            )
        except (ConfigurationError, ValueError) as error:
            raise ConfigError(f"RATE_LIMIT_STORAGE can't be used: {error}") from None
        app.extensions["limiter"] = MovingWindowRateLimiter(storage)

    @property
    def limiter(self) -> RateLimiter:
        """The current application's counters."""
        found: RateLimiter = current_app.extensions["limiter"]
        return found


limiter = Limiter()


def count_try(limit: RateLimitItem, *key: str, message: str) -> None:
    """Count a try of whatever has a limit; raises TooManyAttempts, with the message, beyond it."""
    if not limiter.limiter.hit(limit, *key):
        raise TooManyAttempts(_seconds_until_room(limit, *key), message)


def _seconds_until_room(limit: RateLimitItem, *key: str) -> int:
    """Seconds until a limit has room again."""
    return max(1, math.ceil(limiter.limiter.get_window_stats(limit, *key).reset_time - time.time()))


@dataclass(frozen=True, slots=True)
class LoginThrottle:
    """The attempts to sign in from one address to the accounts of a realm: a school's id, or the token endpoint."""

    realm: str
    address: str

    def check(self, account: str) -> None:
        """Refuse an attempt where there were too many wrong ones; raises TooManyAttempts."""
        for limit, key in self._limits(account):
            if not limiter.limiter.test(limit, *key):
                raise self._refusal(account)

    def record_failure(self, account: str) -> None:
        """Count a wrong password; raises TooManyAttempts where others at this moment have used a limit up."""
        # Each limit is counted, even where another is used up.
        within = [limiter.limiter.hit(limit, *key) for limit, key in self._limits(account)]
        limiter.limiter.hit(EVERYWHERE_LIMIT, self.realm, account)
        if not all(within):
            raise self._refusal(account)

    def record_success(self, account: str) -> None:
        """Count a right password; raises TooManyAttempts for an account that is signed in to without end."""
        if not limiter.limiter.hit(SUCCESS_LIMIT, self.realm, account, self.address):
            raise TooManyAttempts(_seconds_until_room(SUCCESS_LIMIT, self.realm, account, self.address))

    def _limits(self, account: str) -> list[tuple[RateLimitItem, tuple[str, ...]]]:
        here = (self.realm, account, self.address)
        limits: list[tuple[RateLimitItem, tuple[str, ...]]] = [(limit, here) for limit in ACCOUNT_LIMITS]
        if not limiter.limiter.test(EVERYWHERE_LIMIT, self.realm, account):
            limits.append((LONE_LIMIT, here))
        return [*limits, (ADDRESS_LIMIT, (self.realm, self.address))]

    def _refusal(self, account: str) -> TooManyAttempts:
        exhausted = [
            _seconds_until_room(limit, *key)
            for limit, key in self._limits(account)
            if limiter.limiter.get_window_stats(limit, *key).remaining <= 0
        ]
        return TooManyAttempts(max(exhausted, default=1))


_HASH_PURPOSE = "attempted username"
HASH_LENGTH = 32  # hex digits


def hash_username(key: SigningKey, realm: str, username: str) -> str:
    """Hash the username of an attempt to sign in, for logs; without regard to case and form (NFKC).

    What was typed may be a password, so it is never written down itself. The hash is keyed with the signing key: nobody
    who has the logs alone can try usernames on it. `realm` is a school's id or the token endpoint; in the logs of a
    realm, a name always has the same hash.
    """
    name = unicodedata.normalize("NFKC", username).casefold()
    message = f"{realm}\n{name}".encode("utf-8", "surrogatepass")
    return hmac.new(key.derive(_HASH_PURPOSE), message, hashlib.sha256).hexdigest()[:HASH_LENGTH]
