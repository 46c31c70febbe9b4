"""Shares: how many run, how many wait, and which comes next."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from school_service.core.errors import Busy
from school_service.core.shares import GroupLimit, Shares, Turns
from tests.cli.program import wait_for


def test_a_share_with_its_queue_full_is_busy_at_once():
    shares = Shares(1, waiting=1, patience=30)
    go, inside = threading.Event(), threading.Event()

    def hold():
        with shares.of("a"):
            inside.set()
            return go.wait(60)

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(hold)
        assert inside.wait(60)
        second = threads.submit(hold)
        wait_for(lambda: shares._turns._waiting.get("a"), "the one who waits")
        with pytest.raises(Busy), shares.of("a"):
            pass
        with shares.of("b"):
            pass
        go.set()
        assert (first.result(), second.result()) == (True, True)
    assert (shares._turns._under_way, shares._turns._waiting) == ({}, {})


def test_a_caller_that_waited_for_too_long_is_refused_and_leaves_nothing():
    shares = Shares(1, waiting=5, patience=0.01)

    with shares.of("a"):
        for _ in range(7):
            with pytest.raises(Busy), shares.of("a"):
                pass
        assert shares._turns._waiting == {}
    with shares.of("a"):
        pass
    assert shares._turns._under_way == {}


def test_waiting_callers_come_before_a_caller_that_has_just_left():
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


def test_of_all_keys_together_no_more_run_than_the_total():
    shares = Shares(1, total=2, waiting=1, patience=0.01)

    with shares.of("a"), shares.of("b"), pytest.raises(Busy), shares.of("c"):
        pass
    with shares.of("a"), pytest.raises(Busy), shares.of("a"):
        pass
    with shares.of("a"), shares.of("c"):
        pass


def test_an_error_gives_the_share_back():
    shares = Shares(1, waiting=0, patience=0)
    with pytest.raises(ZeroDivisionError), shares.of("a"):
        raise ZeroDivisionError
    with shares.of("a"):
        pass


def test_a_waiting_caller_is_counted_and_learns_how_long_it_waited():
    shares = Shares(1, waiting=5, patience=10)

    def enter():
        with shares.of("a") as waited:
            return waited

    with ThreadPoolExecutor(2) as threads:
        with shares.of("a") as waited:
            assert (waited, shares.count_waiting()) == (0, 0)
            entering = [threads.submit(enter) for _ in range(2)]
            wait_for(lambda: shares.count_waiting() == 2, "two that wait")
        assert all(0 < future.result() < 10 for future in entering)
    assert shares.count_waiting() == 0


# The rules alone


def begun(turns, key, name):
    """Begin, or wait; the place, where there is one."""
    place = turns.begin(key)
    if place is None:
        turns.wait(key, name)
    return place


def test_the_keys_take_turns_within_the_total():
    turns = Turns(2, total=1)
    place = begun(turns, "a", "a1")
    for key, name in (("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1")):
        assert begun(turns, key, name) is None
    assert turns.count_waiting() == 4

    order = []
    while place is not None:
        following = turns.end(place)
        order += [name for name, _ in following]
        place = following[0][1] if following else None

    # A key that has had a turn comes behind the others: another waits for the running one alone.
    assert order == ["b1", "c1", "a2", "a3"]
    assert turns.count_waiting() == 0


def test_a_new_key_waits_behind_no_crowd_of_another_key():
    turns = Turns(1, total=2)
    places = [begun(turns, key, f"{key}1") for key in ("a", "b")]
    for number in range(50):
        begun(turns, "a", f"a{number}")
        begun(turns, "b", f"b{number}")
    begun(turns, "c", "c1")

    assert [name for name, _ in turns.end(places[0])] == ["c1"]


def test_a_key_that_has_its_limit_is_passed_over():
    turns = Turns(1, total=2)
    begun(turns, "a", "a1")
    second = begun(turns, "b", "b1")
    for key, name in (("a", "a2"), ("c", "c1")):
        begun(turns, key, name)

    assert [name for name, _ in turns.end(second)] == ["c1"]


def test_all_keys_begin_that_may_once_their_group_is_another():
    groups = {"a": "x", "b": "x", "c": "x"}
    turns = Turns(1, groups=GroupLimit(1, groups.get))
    first = begun(turns, "a", "a1")
    for key in ("b", "c"):
        assert begun(turns, key, f"{key}1") is None
    groups["c"] = "y"

    assert first.group == "x"
    assert [(name, place.group) for name, place in turns.end(first)] == [("b1", "x"), ("c1", "y")]


def test_callers_that_gave_up_or_were_sent_away_wait_no_longer():
    turns = Turns(1, waiting=3)
    place = begun(turns, "a", "a1")
    for name in ("a2", "a3", "a4"):
        begun(turns, "a", name)
    with pytest.raises(Busy):
        turns.wait("a", "a5")

    turns.give_up("a", "a2")
    assert turns.count_waiting() == 2
    assert [name for name, _ in turns.end(place)] == ["a3"]
    assert turns.clear() == ["a4"]
    assert turns.count_waiting() == 0
