"""The throttle of logins: wrong passwords within a school are counted by username and by network address."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from flask import Flask, current_app
from limits import RateLimitItemPerMinute
from limits.errors import ConfigurationError
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter, RateLimiter

from school_service.config import ConfigError
from school_service.core.errors import TooManyAttempts

STORAGE_TIMEOUT = 2.0  # seconds that counting an attempt may take

USERNAME_LIMIT = RateLimitItemPerMinute(10, namespace="password-of-username")
# Against trying one password on many names. A school often stands behind one address, so it is generous.
ADDRESS_LIMIT = RateLimitItemPerMinute(600, namespace="password-from-address")


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


@dataclass(frozen=True, slots=True)
class LoginThrottle:
    """The attempts to sign in to a school from one address."""

    school: str
    address: str

    def check(self, username: str) -> None:
        """Refuse where there were too many for this username or from this address; raises TooManyAttempts."""
        for limit, key in self._counted(username):
            if not limiter.limiter.test(limit, *key):
                raise self._refusal(username)

    def record_failure(self, username: str) -> None:
        """Count a wrong password; raises TooManyAttempts where others at this moment have used the limit up."""
        # Each is counted, whatever becomes of the other.
        within = [limiter.limiter.hit(limit, *key) for limit, key in self._counted(username)]
        if not all(within):
            raise self._refusal(username)

    def _counted(self, username: str) -> list[tuple[RateLimitItemPerMinute, tuple[str, ...]]]:
        return [(USERNAME_LIMIT, (self.school, username)), (ADDRESS_LIMIT, (self.school, self.address))]

    def _refusal(self, username: str) -> TooManyAttempts:
        ends = [
            stats.reset_time
            for stats in (
                limiter.limiter.get_window_stats(limit, *key) for limit, key in self._counted(username)
            )
            if stats.remaining <= 0
        ]
        return TooManyAttempts(max(1, math.ceil(max(ends, default=time.time()) - time.time())))
