"""The supervisor's records for its workers: the turns at scarce things of the machine, and the counts of tries.

It answers the requests of `school_service.core.machine`, in the one thread of the supervisor: nothing here waits. Its
shares come with each request: so a supervisor of an earlier release serves workers of a later one, even with other
figures.
"""

from __future__ import annotations

import logging
import socket
from typing import Any

import orjson

from school_service.auth.bounded_memory import BoundedMemory
from school_service.auth.machine_memory import METHODS
from school_service.core.errors import Busy
from school_service.core.machine import COUNT, END, TURN
from school_service.core.shares import PlaceInLine, Turns

MOST_UNREAD = 64 * 1024  # bytes of a request, which are less than 1000

_log = logging.getLogger(__name__)


class WorkerConnection:
    """A connection of a worker: the bytes of a request so far, and the turn it has or waits for."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.unread = b""
        self.turns: Turns[WorkerConnection] | None = None
        self.key: str | None = None
        self.place: PlaceInLine | None = None

    def answer(self, value: Any) -> None:
        """Send an answer. The end of a worker is noticed when its connection is read."""
        try:
            self.connection.send(orjson.dumps(value) + b"\n")
        except OSError as error:
            _log.debug("a worker took no answer", extra={"reason": error.strerror})


class CommonState:
    """The turns and counts of all workers."""

    def __init__(self) -> None:
        self._tries = BoundedMemory()
        self._turns: dict[tuple[Any, ...], Turns[WorkerConnection]] = {}

    def read(self, client: WorkerConnection) -> bool:
        """Answer the requests on a connection; False once it has ended, and its turn with it."""
        try:
            part = client.connection.recv(MOST_UNREAD)
        except BlockingIOError:
            return True
        except OSError:
            part = b""
        client.unread += part
        if not part or len(client.unread) > MOST_UNREAD:
            self._leave(client)
            client.connection.close()
            return False
        *lines, client.unread = client.unread.split(b"\n")
        try:
            for line in lines:
                self._handle(client, *orjson.loads(line))
        except Exception:
            # Such as a worker of a later release with an unknown request: no other worker is to feel it.
            _log.exception("a worker's request could not be answered")
            self._leave(client)
            client.connection.close()
            return False
        return True

    def _handle(self, client: WorkerConnection, kind: str, *arguments: Any) -> None:
        if kind == COUNT:
            method, *rest = arguments
            if method not in METHODS:
                raise ValueError(f"there is no {method} of the counts")
            client.answer(getattr(self._tries, method)(*rest))
        elif kind == TURN:
            self._begin(client, *arguments)
        elif kind == END:
            self._leave(client)

    def _begin(
        self, client: WorkerConnection, shares: str, limit: int, total: int | None, waiting: int, key: str
    ) -> None:
        settings = (shares, limit, total, waiting)
        turns = self._turns.get(settings)
        if turns is None:
            turns = self._turns[settings] = Turns(limit, waiting=waiting, total=total)
        place = turns.begin(key)
        if place is None:
            try:
                turns.wait(key, client)
            except Busy:
                client.answer(False)
                return
        client.turns, client.key, client.place = turns, key, place
        if place is not None:
            client.answer(True)

    def _leave(self, client: WorkerConnection) -> None:
        """End the turn of a connection, or its waiting for one."""
        turns, place, key = client.turns, client.place, client.key
        client.turns = client.key = client.place = None
        if turns is None:
            return
        if place is None:
            turns.give_up(key, client)
            return
        for next_one, its in turns.end(place):
            next_one.place = its
            next_one.answer(True)
