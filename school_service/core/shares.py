"""Shares: how much of a scarce thing, such as threads, each school or other key may have at once.

`Turns` has the rules. Its callers decide about the waiters: under `serve` they are the requests in the dispatcher's
queue, still without a thread (`school_service.serving.dispatcher`); everywhere else threads (`Shares`), as of a request
under another WSGI server, of a password to be hashed, and of a paper to be printed.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from school_service.core import machine
from school_service.core.errors import Busy
from school_service.core.refused_shares import count_refusal

Waiter = TypeVar("Waiter")


class GroupLimit(NamedTuple):
    """How many of the keys of one group may be under way together; `group_of` names a key's group, or None.

    `others` are the groups with another limit, each with its limit.
    """

    limit: int
    group_of: Callable[[Hashable], Hashable | None]
    others: Mapping[Hashable, int] = MappingProxyType({})


class PlaceInLine(NamedTuple):
    """The place of a waiter under way: its key, and the group of the key at its beginning."""

    key: Hashable
    group: Hashable | None


class Turns(Generic[Waiter]):
    """The rules of shares: beginning, waiting, and the order of turns.

    - Of each key at most `limit` are under way at once; of all keys at most `total`; of the keys of a group at most as
      many as `groups` says.
    - If it can't begin, a newcomer waits: of each key at most `waiting`. Any further one is refused: Busy.
    - Within a key, the longest waiter comes next, also before one that has just ended and comes again.
    - The keys take turns: a key with a turn just ended comes behind the other waiting keys. A key at its
      limit, or in a group at its limit, is passed over.

    It neither locks nor waits: its callers hold a lock of theirs around each call.
    """

    def __init__(
        self,
        limit: int,
        *,
        waiting: int | None = None,
        total: int | None = None,
        groups: GroupLimit | None = None,
    ) -> None:
        self._limit = limit
        self._most_waiting = waiting
        self._total = total
        self._groups = groups
        self._count = 0
        self._under_way: dict[Hashable, int] = {}
        self._groups_under_way: dict[Hashable, int] = {}
        # The key whose turn it is comes first.
        self._waiting: OrderedDict[Hashable, deque[Waiter]] = OrderedDict()

    def begin(self, key: Hashable) -> PlaceInLine | None:
        """Take a place of a key; None if none is free, or while somebody of the key waits for one."""
        return None if key in self._waiting else self._take(key)

    def wait(self, key: Hashable, waiter: Waiter) -> None:
        """Let somebody wait for a place of a key; raises Busy if as many as may wait do."""
        line = self._waiting.get(key)
        if self._most_waiting is not None and len(line or ()) >= self._most_waiting:
            raise Busy
        if line is None:
            line = self._waiting[key] = deque()
        line.append(waiter)

    def give_up(self, key: Hashable, waiter: Waiter) -> None:
        """Let somebody wait no longer."""
        line = self._waiting[key]
        line.remove(waiter)
        if not line:
            del self._waiting[key]

    def end(self, place: PlaceInLine) -> list[tuple[Waiter, PlaceInLine]]:
        """Give a place back; returns the waiters beginning now, each with its place."""
        self._count -= 1
        _count_down(self._under_way, place.key)
        if place.group is not None:
            _count_down(self._groups_under_way, place.group)
        if place.key in self._waiting:
            self._waiting.move_to_end(place.key)
        # Most often it is one: more only where the group of a key has become another meanwhile.
        begun = []
        while self._waiting and (turn := self._begin_next()):
            begun.append(turn)
        return begun

    def count_waiting(self) -> int:
        """Count the waiters of all keys."""
        return sum(map(len, self._waiting.values()))

    def clear(self) -> list[Waiter]:
        """Let nobody wait any more; returns the waiters left."""
        left = [waiter for line in self._waiting.values() for waiter in line]
        self._waiting.clear()
        return left

    def _begin_next(self) -> tuple[Waiter, PlaceInLine] | None:
        for key, line in self._waiting.items():
            place = self._take(key)
            if place is not None:
                waiter = line.popleft()
                if line:
                    self._waiting.move_to_end(key)
                else:
                    del self._waiting[key]
                return waiter, place
        return None

    def _take(self, key: Hashable) -> PlaceInLine | None:
        if self._count == self._total:
            return None
        of_key = self._under_way.get(key, 0)
        if of_key >= self._limit:
            return None
        group = None
        if self._groups is not None:
            group = self._groups.group_of(key)
            if group is not None:
                of_group = self._groups_under_way.get(group, 0)
                if of_group >= self._groups.others.get(group, self._groups.limit):
                    return None
                self._groups_under_way[group] = of_group + 1
        self._under_way[key] = of_key + 1
        self._count += 1
        return PlaceInLine(key, group)


def _count_down(counts: dict[Hashable, int], key: Hashable) -> None:
    if counts[key] == 1:
        del counts[key]
    else:
        counts[key] -= 1


class Shares:
    """The rules of `Turns` for threads: a thread waits for its turn, for at most `patience` seconds.

    `name` names the share, for the count of refusals. With several workers, shares `of_machine` are divided among the
    threads of all of them; with `grows` there are at least as many places as workers, for work that takes a worker's
    interpreter.
    """

    def __init__(
        self,
        limit: int,
        *,
        waiting: int,
        patience: float,
        total: int | None = None,
        name: str = "",
        of_machine: bool = False,
        grows: bool = False,
    ) -> None:
        self.name = name
        self.limit = limit
        self.patience = patience
        self._turns: Turns[Turn] = Turns(limit, waiting=waiting, total=total)
        self._lock = threading.Lock()
        self._of_machine, self._grows = of_machine, grows
        self._limits = (limit, total, waiting)

    def of(self, key: Hashable) -> AbstractContextManager[float]:
        """Run a block within the share of a key: `with shares.of(key) as seconds_waited`."""
        if not self._of_machine or (supervisor := machine.supervisor()) is None:
            return Turn(self, key)
        limit, total, waiting = self._limits
        if self._grows and total is not None:
            total = max(total, supervisor.workers)
        return supervisor.turn(self.name, (limit, total, waiting), str(key), self.patience)

    def count_waiting(self) -> int:
        """Count the waiters of this process, of all keys."""
        supervisor = machine.supervisor()
        if self._of_machine and supervisor is not None:
            return supervisor.count_waiting(self.name)
        with self._lock:
            return self._turns.count_waiting()


class Turn:
    """The turn of one thread, as a context manager: a generator would cost each request several times as much.

    Entering it gives the seconds waited by the thread. It raises Busy if too many wait already, and if the turn has not
    come in time.
    """

    __slots__ = ("_came", "_key", "_place", "_shares")

    _came: threading.Event
    _place: PlaceInLine | None

    def __init__(self, shares: Shares, key: Hashable) -> None:
        self._shares, self._key = shares, key

    def __enter__(self) -> float:
        turns, lock = self._shares._turns, self._shares._lock
        with lock:
            self._place = turns.begin(self._key)
            if self._place is not None:
                return 0.0
            self._came = threading.Event()
            try:
                turns.wait(self._key, self)
            except Busy:
                count_refusal(self._shares.name)
                raise
        begun = time.monotonic()
        if not self._came.wait(self._shares.patience):
            with lock:
                # It may have come at this very moment.
                if self._place is None:
                    turns.give_up(self._key, self)
                    count_refusal(self._shares.name)
                    raise Busy
        return time.monotonic() - begun

    def __exit__(self, *_error: object) -> None:
        assert self._place is not None  # noqa: S101 it was entered
        with self._shares._lock:
            for turn, place in self._shares._turns.end(self._place):
                turn._place = place
                turn._came.set()


computing = Shares(1, total=1, waiting=100, patience=20.0, name="classes")
"""The turns of classes computing their results: one in a process, since others would only make it wait for Python."""
