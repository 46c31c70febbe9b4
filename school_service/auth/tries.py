"""Counting wrong passwords: by username within a school, and by network address."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from limits import RateLimitItemPerMinute

from school_service.errors import TooManyTries
from school_service.extensions import limiter

FOR_USERNAME = RateLimitItemPerMinute(10, namespace="password-of-username")
FROM_ADDRESS = RateLimitItemPerMinute(600, namespace="password-from-address")


@dataclass(frozen=True, slots=True)
class Tries:
    """The wrong passwords for one username of a school, and those from one address."""

    school: str
    username: str
    address: str

    def check(self) -> None:
        """Refuse where there have been too many; raises TooManyTries."""
        for limit, key in self._counted():
            if not limiter.limiter.test(limit, *key):
                raise self._refusal()

    def count_wrong(self) -> None:
        """Count a wrong password; raises TooManyTries where others at the same moment have used the limit up."""
        if not all([limiter.limiter.hit(limit, *key) for limit, key in self._counted()]):
            raise self._refusal()

    def _counted(self) -> list[tuple[RateLimitItemPerMinute, tuple[str, ...]]]:
        return [(FOR_USERNAME, (self.school, self.username)), (FROM_ADDRESS, (self.address,))]

    def _refusal(self) -> TooManyTries:
        ends = [
            stats.reset_time
            for stats in (limiter.limiter.get_window_stats(limit, *key) for limit, key in self._counted())
            if stats.remaining == 0
        ]
        return TooManyTries(max(1, math.ceil(max(ends, default=time.time()) - time.time())))
