"""The loop that waits for connections: it sees all that happens, and is not woken for nothing."""

from __future__ import annotations

import errno
import socket
import threading
import time
from contextlib import closing, suppress

import pytest
from waitress import wasyncore

from school_service.serving import admission, loop
from school_service.serving.admission import ConnectionLimits
from school_service.serving.channel import IDLE_TIMEOUT, ChannelOptions
from school_service.serving.listening import listen
from school_service.serving.loop import EventLoop
from school_service.serving.server import accepting, drain, end_late, make_server

REQUEST = b"GET /%d HTTP/1.1\r\nHost: school\r\n\r\n"
LARGE = 20_000_000  # bytes: more than the kernel takes for a client that reads nothing


class Queue:
    """A dispatcher whose tasks the test works on."""

    def __init__(self):
        self.tasks = []

    def add_task(self, task):
        self.tasks.append(task)


class CountingLoop(EventLoop):
    """A loop that counts how often something happened, and how often it was woken."""

    def __init__(self):
        super().__init__()
        self.events = self.woken = 0

    def _handle(self, number, events):
        self.events += 1
        super()._handle(number, events)


class Service:
    """A service in this process whose requests are answered when the test says so."""

    def __init__(self):
        self.loop, self.queue = CountingLoop(), Queue()
        self.listener = listen("127.0.0.1", 0)
        self.address = self.listener.getsockname()
        self.body = b"answer"
        self.serving = make_server(
            lambda *arguments: self.application(*arguments),
            self.listener,
            self.loop,
            self.queue,
            ConnectionLimits(100, ()),
            ChannelOptions(lambda *_: None, lambda _: None),
            largest_body=10 * 2**20,
        )
        wake = self.loop.wake

        def counted():
            self.loop.woken += 1
            wake()

        self.loop.wake = counted

    def application(self, environ, start_response):
        start_response("200 OK", [("Content-Length", str(len(self.body)))])
        return [self.body]

    def connect(self):
        """Connect a client."""
        return closing(socket.create_connection(self.address, timeout=60))

    def settle(self):
        """Let the loop run until nothing happens any more."""
        while True:
            before = self.loop.events
            self.loop.run_once(0.05)
            if self.loop.events == before:
                return

    def answer(self):
        """Work on the next request, as one of the dispatcher's threads does."""
        task = self.queue.tasks.pop(0)
        thread = threading.Thread(target=task.service)
        thread.start()
        thread.join()

    def unread(self, client):
        """Answer a request of a client who reads nothing of it; its connection."""
        client.sendall(REQUEST % 1)
        self.settle()
        self.answer()
        self.settle()
        (channel,) = self.serving.active_channels.values()
        return channel


@pytest.fixture
def service():
    service = Service()
    yield service
    for channel in list(service.serving.active_channels.values()):
        channel.handle_close()
    wasyncore.close_all(service.loop)


def read(client):
    """Read one answer."""
    received = client.recv(2**16)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    assert head.startswith(b"HTTP/1.1 200 ")
    while len(body) < length:
        body += client.recv(2**16)
    return body


def test_an_answer_on_a_connection_that_goes_on_wakes_nobody(service):
    with service.connect() as client:
        for number in range(3):
            client.sendall(REQUEST % number)
            service.settle()
            events = service.loop.events
            service.answer()

            assert read(client) == b"answer"
            assert service.loop.woken == 0
            service.settle()
            assert service.loop.events == events


@pytest.mark.parametrize("early", [False, True])
def test_a_connection_goes_on_where_all_are_looked_at_while_its_request_is_answered(
    service, monkeypatch, early
):
    with service.connect() as client:
        client.sendall(REQUEST % 1)
        service.settle()
        if early:
            client.sendall(REQUEST % 2)
            service.settle()
        service.loop._next_look = 0.0
        service.loop.run_once(0)
        monkeypatch.setattr(loop, "LOOK_INTERVAL", 1000)
        service.loop._next_look += 1000
        service.answer()
        assert read(client) == b"answer"

        if not early:
            client.sendall(REQUEST % 2)
        service.settle()
        service.answer()
        assert read(client) == b"answer"


def test_requests_that_come_early_are_answered_in_their_order(service):
    with service.connect() as client:
        client.sendall(REQUEST % 1)
        service.settle()
        client.sendall(REQUEST % 2 + REQUEST % 3)
        service.settle()

        assert len(service.queue.tasks) == 1
        for number in (1, 2, 3):
            service.body = b"%d" % number
            service.answer()
            service.settle()
            assert read(client) == b"%d" % number


def test_a_client_that_has_ended_its_side_gets_its_answer_and_costs_nothing_meanwhile(service):
    with service.connect() as client:
        client.sendall(REQUEST % 1)
        client.shutdown(socket.SHUT_WR)
        service.settle()
        events = service.loop.events
        service.settle()
        assert service.loop.events == events  # it is not asked again and again

        service.answer()
        assert read(client) == b"answer"
        service.settle()
        assert client.recv(1) == b""
        assert not service.serving.active_channels


def test_a_client_that_has_gone_is_noticed_when_its_request_ends(service):
    with service.connect() as client:
        client.sendall(REQUEST % 1)
        service.settle()
    service.settle()
    events = service.loop.events
    service.settle()
    assert service.loop.events == events
    assert len(service.serving.active_channels) == 1

    service.answer()
    service.settle()

    assert not service.serving.active_channels


def test_a_connection_is_closed_with_the_answer_that_says_so(service):
    with service.connect() as client:
        client.sendall((REQUEST % 1).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        service.settle()
        service.answer()
        assert service.loop.woken == 1
        assert read(client) == b"answer"
        service.settle()
        assert client.recv(1) == b""
    service.settle()

    assert not service.serving.active_channels


def test_the_rest_of_an_answer_not_taken_at_once_is_sent_by_the_loop(service):
    service.body = bytes(range(250)) * (LARGE // 250)
    with service.connect() as client:
        client.sendall(REQUEST % 1)
        service.settle()
        service.answer()
        assert service.loop.woken
        received = bytearray()
        while len(received) < LARGE:
            service.loop.run_once(0)
            received += client.recv(2**20)

        assert received.endswith(b"\r\n\r\n" + service.body)
        # The connection goes on.
        service.body = b"next"
        service.settle()
        client.sendall(REQUEST % 2)
        service.settle()
        (stored,) = service.queue.tasks[0].outbufs
        assert stored.overflowed  # into a file
        service.answer()
        assert read(client) == b"next"
        assert stored.buf.file.closed


def test_head_and_body_are_one_message(service):
    sent = []
    with service.connect() as client:
        client.sendall(REQUEST % 1)
        service.settle()
        channel = service.queue.tasks[0]
        send = channel.send

        def recorded(data, do_close=True):
            sent.append(bytes(data))
            return send(data, do_close)

        channel.send = recorded
        service.answer()

        assert read(client) == b"answer"
        assert len(sent) == 1


def test_a_connection_lost_while_its_answer_is_sent_ends(service):
    with service.connect() as client:
        client.sendall(REQUEST % 1)
        service.settle()
        channel = service.queue.tasks[0]

        def lost(data, do_close=True):
            raise OSError(5, "Input/output error")

        channel.send = lost
        service.answer()
        service.settle()

        assert client.recv(1) == b""
        assert not service.serving.active_channels


def test_urgent_data_that_nobody_reads_is_not_announced_again_and_again(service):
    with service.connect() as client:
        service.settle()
        client.send(b"!", socket.MSG_OOB)
        events = service.loop.events
        for _ in range(20):
            service.loop.run_once(0.001)
        assert service.loop.events == events

        client.sendall(REQUEST % 1)
        service.settle()
        service.answer()
        assert read(client) == b"answer"


@pytest.mark.parametrize("size", [LARGE, 6])
def test_a_client_that_reads_nothing_of_an_answer_is_disconnected_in_time(service, size):
    service.body = b"x" * size
    with service.connect() as client:
        channel = service.unread(client)
        assert bool(channel.total_outbufs_len) == (size == LARGE)
        end_late(service.serving, time.monotonic())
        assert service.serving.active_channels

        channel.last_activity -= IDLE_TIMEOUT + 1
        channel.idle_since -= IDLE_TIMEOUT + 1
        end_late(service.serving, time.monotonic())
        service.settle()

        assert not service.serving.active_channels


def test_a_client_that_reads_nothing_of_an_answer_makes_room(service, monkeypatch):
    monkeypatch.setattr(admission, "CONNECTION_LIMIT", 1)
    with service.connect() as client:
        channel = service.unread(client)
        # The kernel has taken the answer, and has no room for more.
        with suppress(BlockingIOError):
            while channel.socket.send(bytes(2**20)):
                pass
        with service.connect() as other:
            service.settle()
            other.sendall(REQUEST % 2)
            service.settle()
            service.answer()
            assert read(other) == b"answer"
            assert list(service.serving.active_channels.values()) != [channel]
            assert len(service.serving.active_channels) == 1


@pytest.mark.parametrize(("method", "has_body"), [(b"POST", True), (b"HEAD", False)])
def test_a_refusal_has_no_body_where_head_asks(service, method, has_body):
    with service.connect() as client:
        client.sendall(method + b" / HTTP/1.1\r\nHost: school\r\nContent-Length: 2000000\r\n\r\n")
        service.settle()
        service.answer()
        service.settle()
        head, _, body = client.makefile("rb").read().partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 413 ")
    assert body.startswith(b'{"code":413,') is has_body
    assert b"\r\nContent-Length: 153\r\n" in head


def test_a_request_without_a_body_is_answered_though_it_waits_to_be_asked_for_one(service):
    with service.connect() as client:
        client.sendall((REQUEST % 1)[:-2] + b"Expect: 100-continue\r\n\r\n" + REQUEST % 2)
        service.settle()
        for _ in range(2):
            service.answer()
            assert read(client) == b"answer"


def test_where_no_more_files_can_be_open_the_loop_waits_a_little_and_goes_on(service, logs, monkeypatch):
    monkeypatch.setattr(loop, "LOOK_INTERVAL", 1000)
    take, refusing = service.serving.accept, True

    def accept():
        if refusing:
            raise OSError(errno.EMFILE, "Too many open files")
        return take()

    service.serving.accept = accepting(accept, service.loop, service.listener)
    with service.connect() as client:
        for _ in range(20):
            service.loop.run_once(0.01)
        assert [line["reason"] for line in logs()] == ["Too many open files"]
        assert not service.serving.active_channels

        refusing, service.loop._next_look = False, 0.0
        client.sendall(REQUEST % 1)
        service.settle()
        service.answer()
        assert read(client) == b"answer"


def test_the_process_may_have_as_many_files_as_its_connections_need(monkeypatch):
    limits = []
    monkeypatch.setattr(admission.resource, "setrlimit", lambda _, given: limits.append(given))
    for limit in [(1024, 500_000), (1024, 2000), (1024, -1), (20_000, 20_000), (-1, -1)]:
        monkeypatch.setattr(admission.resource, "getrlimit", lambda _, limit=limit: limit)
        admission.raise_file_limit()

    assert limits == [(4096, 500_000), (2000, 2000), (4096, -1)]


def test_a_connection_ends_where_its_request_fails_in_a_way_that_nobody_catches(service, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def application(environ, start_response):
        raise SystemExit(3)

    service.application = application
    with service.connect() as client:
        client.sendall(REQUEST % 1 + REQUEST % 2)
        service.settle()
        service.answer()
        service.settle()

        assert client.recv(1) == b""
        assert not service.serving.active_channels


def test_once_all_requests_have_ended_the_server_has_nothing_open_and_can_still_be_told_to_stop(service):
    pipe = service.serving.trigger.socket
    with service.connect() as client:
        client.sendall(REQUEST % 1)
        service.settle()
        service.answer()
        assert read(client) == b"answer"

        drain(service.serving, service.loop, service.listener, 0.0)
        assert client.recv(1) == b""

    assert pipe.fileno() == -1
    assert not service.loop
    service.loop.wake()
