"""Shares: how many run, how many wait, and who comes next."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from school_service.core.errors import Busy
from school_service.core.shares import Shares
from tests.cli.program import wait_for


def test_beyond_the_limit_and_those_who_may_wait_it_is_busy_at_once():
    shares = Shares(1, waiting=1, patience=30)
    go, inside = threading.Event(), threading.Event()

    def hold():
        with shares.of("a"):
            inside.set()
            return go.wait(10)

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(hold)
        assert inside.wait(10)
        second = threads.submit(hold)
        wait_for(lambda: shares._turns._waiting.get("a"), "the one who waits")
        with pytest.raises(Busy), shares.of("a"):
            pass
        with shares.of("b"):
            pass
        go.set()
        assert (first.result(), second.result()) == (True, True)
    assert (shares._turns._under_way, shares._turns._waiting) == ({}, {})


def test_who_has_waited_for_too_long_is_told_so_and_nothing_is_left_of_them():
    shares = Shares(1, waiting=5, patience=0.01)

    with shares.of("a"):
        for _ in range(7):
            with pytest.raises(Busy), shares.of("a"):
                pass
        assert shares._turns._waiting == {}
    with shares.of("a"):
        pass
    assert shares._turns._under_way == {}


def test_who_waits_comes_before_who_has_just_left():
    shares = Shares(1, waiting=5, patience=10)
    order = []

    def enter(name):
        with shares.of("a"):
            order.append(name)

    with ThreadPoolExecutor(2) as threads:
        with shares.of("a"):
            waiting = []
            for number, name in enumerate(("first", "second")):
                waiting.append(threads.submit(enter, name))
                wait_for(lambda number=number: len(shares._turns._waiting.get("a", ())) > number, name)
        enter("who has just left")
        for future in waiting:
            future.result()

    assert order == ["first", "second", "who has just left"]


def test_never_more_than_the_limit_run():
    shares = Shares(3, waiting=100, patience=30)
    running, most, lock = 0, 0, threading.Lock()

    def work(_number):
        nonlocal running, most
        with shares.of("a"):
            with lock:
                running += 1
                most = max(most, running)
            with lock:
                running -= 1

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(work, range(2000)))
    assert (1 <= most <= 3, running, shares._turns._under_way) == (True, 0, {})


def test_an_error_gives_the_share_back():
    shares = Shares(1, waiting=0, patience=0)
    with pytest.raises(ZeroDivisionError), shares.of("a"):
        raise ZeroDivisionError
    with shares.of("a"):
        pass


def test_who_waits_is_counted_and_told_for_how_long():
    shares = Shares(1, waiting=5, patience=10)

    def enter():
        with shares.of("a") as waited:
            return waited

    with ThreadPoolExecutor(2) as threads:
        with shares.of("a") as waited:
            assert (waited, shares.count_waiting()) == (0, 0)
            entering = [threads.submit(enter) for _ in range(2)]
            wait_for(lambda: shares.count_waiting() == 2, "two that wait")
        assert all(0 < found.result() < 10 for found in entering)
    assert shares.count_waiting() == 0
