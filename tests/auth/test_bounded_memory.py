"""Counts of tries in memory: exact within a window, never beyond their bound, with nothing that runs beside them."""

from __future__ import annotations

import threading
import time
import tracemalloc

import pytest
from limits import RateLimitItemPerHour, RateLimitItemPerMinute
from limits.strategies import MovingWindowRateLimiter

from school_service.auth.bounded_memory import BoundedMemory
from tests.threads import run_concurrently

MINUTE = RateLimitItemPerMinute(3)


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes when it is told to."""
    now = [1_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def test_tries_leave_the_window_one_by_one(clock):
    limiter = MovingWindowRateLimiter(BoundedMemory())
    for _ in range(3):
        assert limiter.test(MINUTE, "a")
        assert limiter.hit(MINUTE, "a")
        clock[0] += 10
    assert not limiter.test(MINUTE, "a")
    assert not limiter.hit(MINUTE, "a")
    assert limiter.get_window_stats(MINUTE, "a") == (1_000_060.0, 0)

    clock[0] += 31

    assert limiter.hit(MINUTE, "a")
    assert not limiter.hit(MINUTE, "a")
    assert limiter.get_window_stats(MINUTE, "a") == (1_000_070.0, 0)
    assert limiter.hit(MINUTE, "b", cost=3)
    assert not limiter.hit(MINUTE, "c", cost=4)


def test_names_that_strangers_make_up_take_no_more_than_the_bound():
    storage = BoundedMemory(most_bytes=2 * 2**20)
    limiter = MovingWindowRateLimiter(storage)
    hour = RateLimitItemPerHour(60)
    running = {*threading.enumerate()}
    tracemalloc.start()
    try:
        for number in range(8_000):
            limiter.hit(hour, "realm", f"made-up-{number:032}", "192.0.2.1")
            if not number % 50:
                # An account under attack is not forgotten.
                limiter.hit(hour, "realm", "administrator", "192.0.2.1")
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert taken < 3 * 2**20
    assert not limiter.test(hour, "realm", "administrator", "192.0.2.1")
    # Threads of tests before may end meanwhile.
    assert {*threading.enumerate()} <= running
    assert 1000 < storage.reset() < 4000


def test_a_key_that_has_expired_takes_no_room(clock):
    storage = BoundedMemory()
    limiter = MovingWindowRateLimiter(storage)
    for number in range(1000):
        limiter.hit(MINUTE, str(number))
    clock[0] += 61

    limiter.hit(MINUTE, "another")

    assert storage.reset() == 1


def test_of_many_at_once_as_many_are_let_in_as_may_be():
    limiter = MovingWindowRateLimiter(BoundedMemory())
    limit = RateLimitItemPerMinute(100)

    def hit(_number):
        return sum(limiter.hit(limit, "a") for _ in range(500))

    assert sum(run_concurrently(16, hit)) == 100
