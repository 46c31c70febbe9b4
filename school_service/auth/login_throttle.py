"""Counting wrong passwords within a school: by username, and by network address."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from limits import RateLimitItemPerMinute

from school_service.core.database import limiter
from school_service.core.errors import TooManyTries

FOR_USERNAME = RateLimitItemPerMinute(10, namespace="password-of-username")
# Against trying one password on many names. A school often stands behind one address, so it is generous.
FROM_ADDRESS = RateLimitItemPerMinute(600, namespace="password-from-address")


@dataclass(frozen=True, slots=True)
class Tries:
    """The wrong passwords that were tried in a school, those from one address among them."""

    school: str
    address: str

    def check(self, username: str) -> None:
        """Refuse where there were too many for this username or from this address; raises TooManyTries."""
        for limit, key in self._counted(username):
            if not limiter.limiter.test(limit, *key):
                raise self._refusal(username)

    def count_wrong(self, username: str) -> None:
        """Count a wrong password; raises TooManyTries where others at this moment have used the limit up."""
        # Each is counted, whatever becomes of the other.
        within = [limiter.limiter.hit(limit, *key) for limit, key in self._counted(username)]
        if not all(within):
            raise self._refusal(username)

    def _counted(self, username: str) -> list[tuple[RateLimitItemPerMinute, tuple[str, ...]]]:
        return [(FOR_USERNAME, (self.school, username)), (FROM_ADDRESS, (self.school, self.address))]

    def _refusal(self, username: str) -> TooManyTries:
        ends = [
            stats.reset_time
            for stats in (
                limiter.limiter.get_window_stats(limit, *key) for limit, key in self._counted(username)
            )
            if stats.remaining <= 0
        ]
        return TooManyTries(max(1, math.ceil(max(ends, default=time.time()) - time.time())))
