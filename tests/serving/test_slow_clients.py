"""Clients that are slow, many, or send unwanted requests: they end, and the others are answered."""

import json
import socket
import time
from contextlib import ExitStack, closing
from functools import partial

import pytest

from school_service.serving.channel import Channel
from school_service.serving.parser import RequestParser
from tests.cli.program import DEADLINE, serving, wait_for

pytestmark = pytest.mark.program

HEALTH = b"GET /health/live HTTP/1.1\r\nHost: school\r\n\r\n"


def connect(service, source="127.0.0.1"):
    host, port = service.base_url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60, source_address=(source, 0))


def read_answer(connection):
    """Read until the service closes its side; give status, header fields and body."""
    head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    status = int(head.split()[1])
    fields = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:])
    return status, fields, body


def is_closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def post(path, fields, length):
    names = {"Host": "school", "Content-Length": str(length), **fields}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in names.items())]
    return "\r\n".join([*lines, "", ""]).encode()


FORM = {"Content-Type": "multipart/form-data; boundary=x"}
TOKEN = {"Authorization": "Bearer nonsense"}
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("fields", "length", "status"),
    [
        (JSON | TOKEN, 2**20 + 1, 413),
        (TOKEN, 2 * 2**20, 413),
        (FORM | TOKEN, 11 * 2**20, 413),
        (FORM | TOKEN, 10**15, 413),
        (FORM, 2 * 2**20, 401),
        (FORM | {"Authorization": "Basic eDp5"}, 2 * 2**20, 401),
    ],
    ids=["JSON", "no type", "upload", "absurd", "no token", "no bearer"],
)
def test_an_unwanted_request_is_refused_before_its_body_is_sent(service, fields, length, status):
    with connect(service) as connection:
        connection.sendall(post("/students/import-sheet", fields, length))
        answered, names, body = read_answer(connection)

    error = json.loads(body)
    assert (answered, error["code"], names["content-type"]) == (status, status, "application/json")
    assert error["request_id"] == names["x-request-id"]
    assert ("www-authenticate" in names) == (status == 401)
    assert names["connection"] == "close"


def test_a_client_that_sends_the_body_all_the_same_reads_the_refusal(service):
    with connect(service) as connection:
        connection.sendall(post("/students/import-sheet", FORM | TOKEN, 30 * 2**20))
        for _ in range(30):
            connection.sendall(b"x" * 2**20)
        assert read_answer(connection)[0] == 413


def test_a_body_in_chunks_is_refused_once_it_is_too_large(service):
    with connect(service) as connection:
        connection.sendall(
            b"POST /classrooms HTTP/1.1\r\nHost: school\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(3):
            connection.sendall(b"80000\r\n" + b" " * 2**19 + b"\r\n")
        assert read_answer(connection)[0] == 413


@pytest.mark.parametrize(
    ("fields", "length"), [(JSON, 2**20), (FORM | TOKEN, 5 * 2**20)], ids=["JSON", "upload with a token"]
)
def test_a_body_of_just_the_limit_is_read(service, fields, length):
    with connect(service) as connection:
        connection.sendall(post("/nothing", fields | {"Connection": "close"}, length))
        connection.sendall(b"x" * length)
        assert read_answer(connection)[0] == 404


@pytest.fixture(scope="module")
def impatient(installed, folder):
    """A service whose deadlines are short, and that takes few connections."""
    script = (
        "from school_service.serving import admission, channel, parser;"
        "parser.HEADER_TIMEOUT = parser.BODY_TIMEOUT = 1; channel.IDLE_TIMEOUT = 2; admission.CONNECTION_LIMIT = 12"
    )
    settings = {**installed, "CONNECTIONS_PER_ADDRESS": "8"}
    with serving(cwd=folder, settings=settings, script=script) as service:
        yield service


def test_a_client_that_does_not_go_on_is_disconnected(impatient):
    sent = {
        "header": b"GET /health HTTP/1.1\r\nHost: sch",
        "body": post("/auth/oauth/token", JSON, 10) + b"{",
        "nothing": b"",
    }
    with ExitStack() as stack:
        begun = {name: stack.enter_context(closing(connect(impatient))) for name in sent}
        for name, connection in begun.items():
            connection.sendall(sent[name])
        for name, connection in begun.items():
            wait_for(partial(is_closed, connection), f"the end of the connection that sent: {name}")


def test_a_byte_now_and_then_does_not_help(impatient):
    with connect(impatient) as connection:
        begun = time.monotonic()
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        while not is_closed(connection):
            assert time.monotonic() - begun < DEADLINE
            connection.setblocking(True)
            try:
                connection.sendall(b"X")
            except ConnectionError:
                break
            time.sleep(0.2)


def test_an_address_has_its_connections_and_the_idle_make_room(impatient):
    with ExitStack() as stack:
        idle = [stack.enter_context(closing(connect(impatient, "127.0.0.2"))) for _ in range(8)]
        for connection in idle[1:]:
            connection.sendall(b"GET /")
        newest = stack.enter_context(closing(connect(impatient, "127.0.0.2")))
        other = stack.enter_context(closing(connect(impatient, "127.0.0.3")))
        for connection in (newest, other):
            connection.sendall(HEALTH)
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        wait_for(lambda: is_closed(idle[0]), "the end of the oldest")


def test_half_open_connections_from_everywhere_keep_nobody_out(impatient):
    with ExitStack() as stack:
        for number in range(30):
            connection = stack.enter_context(closing(connect(impatient, f"127.0.1.{number + 1}")))
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: sch")
        for _ in range(5):
            with connect(impatient) as connection:
                connection.sendall(HEALTH)
                assert connection.recv(100).startswith(b"HTTP/1.1 200 ")


def test_a_queue_that_is_full_is_503_at_once():
    request = RequestParser.__new__(RequestParser)
    request.error = None
    channel = Channel.__new__(Channel)
    channel.requests = [request]
    channel.refuse()

    status, fields, body = request.error.to_response()

    assert (status, dict(fields)["Retry-After"]) == ("503 Service Unavailable", "2")
    assert json.loads(body)["code"] == 503
    assert channel.is_quick()
