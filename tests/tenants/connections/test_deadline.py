"""A server that falls silent: statements end, and nobody gets the connection."""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress
from types import SimpleNamespace

import psycopg2
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from tenants.connections import deadline
from tenants.connections.deadline import NoAnswer, deadline_arguments
from tenants.connections.engines import registry_options, registry_url
from tests.cli.program import wait_for

DEADLINE = 180  # seconds: an answer comes sooner, also on a machine with much else to do
SHORT = 0.1  # seconds: for a statement without an answer, from when the line is held


@pytest.fixture(autouse=True)
def _looked_at_often(monkeypatch):
    monkeypatch.setattr(deadline, "POLL_INTERVAL", 0.02)


class Line:
    """A line to the server that can be held: then not a byte passes, and nobody is told."""

    def __init__(self, listener, server):
        self._listener, self._server = listener, server
        self.open = threading.Event()
        self.open.set()
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._server)
                self._sockets += (near, far)
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source, target):
        with suppress(OSError):
            while received := source.recv(65536):
                self.open.wait()
                target.sendall(received)
            target.shutdown(socket.SHUT_WR)

    def hold(self, connection):
        """Let nothing pass from now on; a statement of this connection of the driver's is given up soon."""
        self.open.clear()
        connection.deadline = SHORT

    def close(self):
        self.open.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture(params=["tcp", "unix"])
def line(request, settings, tmp_path):
    """A line to the tests' server, and the address at its near end."""
    url = settings.admin_database_url
    folder, port = url.query.get("host"), url.port or 5432
    if not folder or not str(folder).startswith("/"):
        pytest.skip("the server of TEST_DATABASE_URL is not reached by a Unix socket")
    if request.param == "tcp":
        listener = socket.create_server(("127.0.0.1", 0))
        near = url.update_query_dict({"host": "127.0.0.1", "port": str(listener.getsockname()[1])})
    else:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / ".s.PGSQL.5432"))
        listener.listen()
        near = url.update_query_dict({"host": str(tmp_path), "port": "5432"})
    with closing(Line(listener, f"{folder}/.s.PGSQL.{port}")) as line:
        line.url = near
        yield line


@pytest.fixture
def engine(line):
    engine = create_engine(registry_url(line.url), **registry_options(1, deadline=DEADLINE))
    yield engine
    line.open.set()
    engine.dispose()


def test_a_statement_that_is_not_answered_ends_and_its_connection_is_given_to_nobody(line, engine):
    with engine.connect() as connection:
        driver = connection.connection.dbapi_connection
        line.hold(driver)
        begun = time.monotonic()
        with pytest.raises(OperationalError) as failed:
            connection.execute(text("SELECT 1"))
    assert isinstance(failed.value.orig, NoAnswer)
    assert failed.value.connection_invalidated
    assert time.monotonic() - begun >= SHORT
    assert driver.closed

    line.open.set()
    with engine.connect() as connection:
        assert connection.connection.dbapi_connection is not driver
        assert connection.execute(text("SELECT 2")).scalar_one() == 2


def test_a_statement_too_large_for_a_server_that_does_not_read_ends(line, engine):
    with engine.connect() as connection:
        line.hold(connection.connection.dbapi_connection)
        with pytest.raises(OperationalError) as failed:
            connection.execute(text("SELECT length(:long)"), {"long": "x" * 50_000_000})
    assert isinstance(failed.value.orig, NoAnswer)


def test_many_rows_that_are_not_answered_end(line, engine):
    with engine.connect() as connection:
        line.hold(connection.connection.dbapi_connection)
        with pytest.raises(OperationalError) as failed:
            connection.execute(text("SELECT :number"), [{"number": 1}, {"number": 2}])
    assert isinstance(failed.value.orig, NoAnswer)


def test_a_connection_that_lay_in_the_pool_meanwhile_is_tested_and_replaced(line, engine):
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        driver = connection.connection.dbapi_connection
    line.hold(driver)

    def open_again():
        wait_for(lambda: driver.closed, "the end of the connection")
        line.open.set()

    opening = threading.Thread(target=open_again)
    opening.start()
    with engine.connect() as connection:
        assert connection.connection.dbapi_connection is not driver
        assert connection.execute(text("SELECT 2")).scalar_one() == 2
    opening.join()


def test_each_statement_has_its_own_time(settings, monkeypatch):
    engine = create_engine(registry_url(settings.admin_database_url), **registry_options(1, deadline=3))
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, sleep=time.sleep)
    monkeypatch.setattr(deadline, "time", clock)
    with engine.connect() as connection:
        for _ in range(3):
            # Of all three together the time would be over, and the watch comes by some times.
            connection.execute(text("SELECT pg_sleep(0.2)"))
            clock.now += 2
    engine.dispose()


def test_a_statement_that_ends_as_it_is_being_ended_counts_as_not_answered(engine, monkeypatch):
    with engine.connect() as connection:
        driver = connection.connection.dbapi_connection
        end = deadline._watch.end
        monkeypatch.setattr(deadline._watch, "end", lambda statement: not end(statement))
        with pytest.raises(OperationalError) as failed:
            connection.execute(text("SELECT 1"))
        monkeypatch.undo()
    assert isinstance(failed.value.orig, NoAnswer)
    assert driver.closed


def test_a_finished_statement_is_watched_no_more(engine):
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        with pytest.raises(psycopg2.Error), ExitStack():
            connection.connection.dbapi_connection.cursor().execute("SELECT nonsense")
    assert deadline._watch._under_way == {}


def test_no_descriptor_is_left_of_connections_that_are_closed_or_forgotten(settings):
    url = registry_url(settings.admin_database_url)

    def connect():
        parts = create_engine(url).dialect.create_connect_args(url)[1]
        return psycopg2.connect(**parts, **deadline_arguments(1))

    connect().close()
    gc.collect(0)  # objects that earlier tests forgot are older now than those that this one looks through
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        connect().close()
        connect()
    gc.collect(0)

    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_child_process_watches_with_a_thread_of_its_own(settings):
    url = registry_url(settings.admin_database_url)
    parts = create_engine(url).dialect.create_connect_args(url)[1]
    with closing(psycopg2.connect(**parts, **deadline_arguments(DEADLINE))) as connection:
        connection.cursor().execute("SELECT 1")  # the thread of this process runs
    child = os.fork()
    if child == 0:
        status = 1
        try:
            connection = psycopg2.connect(**parts, **deadline_arguments(SHORT))
            connection.cursor().execute("SELECT pg_sleep(20)")
        except NoAnswer:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
