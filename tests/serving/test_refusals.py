"""Answers that `serve` gives without the application: pages of CORS_ORIGINS may read them as any other."""

from __future__ import annotations

import socket
import time

import pytest
from waitress import wasyncore

from school_service.config import Settings
from school_service.serving.admission import ConnectionLimits
from school_service.serving.channel import ChannelOptions
from school_service.serving.dispatcher import Stranger
from school_service.serving.listening import listen
from school_service.serving.loop import EventLoop
from school_service.serving.parser import HEADER_LIMIT
from school_service.serving.server import make_server

SETTINGS = {"DATABASE_URL": "postgresql://school@localhost/school"}
OURS, THEIRS = "https://app.example.com", "https://evil.example.com"


class FullQueue:
    """A dispatcher that refuses all that is not quick; the rest is worked on by the test."""

    def __init__(self):
        self.tasks, self.keys = [], []

    def add_task(self, task):
        if not task.is_quick():
            self.keys.append(task.share_key())
            task.refuse()
        self.tasks.append(task)


def application(_environ, start_response):
    start_response("200 OK", [("Content-Length", "0")])
    return [b""]


def read_head(received):
    """Read status and header fields."""
    status, *fields = received.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    return int(status.split()[1]), {
        name.lower(): value for name, value in (line.split(": ", 1) for line in fields)
    }


@pytest.fixture
def answer():
    """Send a request to a service of these origins, whose queue is full; give the status and the header fields."""

    def send(request, *origins, proxies="", observe=None):
        loop, queue = EventLoop(), FullQueue()
        listener = listen("127.0.0.1", 0)
        settings = Settings.load({**SETTINGS, "CORS_ORIGINS": ",".join(origins), "TRUSTED_PROXIES": proxies})
        options = ChannelOptions(
            lambda *_: None, lambda _: None, settings.cors_origins, settings.trusted_proxies, observe
        )
        admission = ConnectionLimits(100, settings.trusted_proxies)
        make_server(application, listener, loop, queue, admission, options, largest_body=2**30)
        with socket.create_connection(listener.getsockname(), timeout=60) as client:
            client.sendall(request)
            deadline = time.monotonic() + 180
            while not queue.tasks:
                assert time.monotonic() < deadline
                loop.run_once(1)
            queue.tasks.pop().service()
            received = client.recv(2**16)
        wasyncore.close_all(loop)
        send.keys = queue.keys
        return read_head(received)

    return send


def request(first="GET /users HTTP/1.1", **fields):
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([first, "Host: school", *lines, "", ""]).encode()


def refused(origin):
    """Give a request for each way to be refused, with the status."""
    large = {"Content_Type": "multipart/form-data; boundary=x", "Content_Length": 2**21}
    return {
        503: request(Origin=origin),
        413: request("POST /users HTTP/1.1", Content_Length=2**21, Origin=origin),
        401: request("POST /users HTTP/1.1", **large, Origin=origin),
        431: request(Origin=origin, Cookie="x" * HEADER_LIMIT),
        501: request("POST /users HTTP/1.1", Origin=origin, Transfer_Encoding="gzip"),
        400: request("POST /users HTTP/1.1", Origin=origin, Content_Length="many"),
    }


@pytest.mark.parametrize("status", refused(OURS))
def test_a_page_of_ours_may_read_why_it_was_refused(answer, status):
    code, fields = answer(refused(OURS)[status], OURS)

    assert (code, fields["access-control-allow-origin"], fields["vary"]) == (status, OURS, "Origin")
    assert "X-Request-ID" in fields["access-control-expose-headers"]


@pytest.mark.parametrize("status", refused(OURS))
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_observer_that_fails_is_logged_and_changes_no_refusal(answer, logs, status, method):
    class Failed(Exception):
        pass

    seen = []

    def fail(answered):
        seen.append(answered)
        raise Failed

    asked = refused(OURS)[status].replace(b"GET ", f"{method} ".encode())
    code, fields = answer(asked, OURS, observe=fail)

    assert (code, fields["content-type"]) == (status, "application/json")
    assert [(answered.status, answered.route, answered.method) for answered in seen] == [(status, None, None)]
    messages = [line["message"] for line in logs() if line["logger"].startswith("school_service")]
    assert messages == ["an observer of requests failed", "request"]


@pytest.mark.parametrize("status", refused(OURS))
def test_a_refusal_has_the_fields_of_every_answer(answer, status):
    code, fields = answer(refused(OURS)[status])

    assert (code, fields["content-type"], fields["connection"]) == (status, "application/json", "close")
    assert (fields["cache-control"], fields["x-content-type-options"]) == ("no-store", "nosniff")
    assert fields["content-security-policy"] == "frame-ancestors 'none'"
    assert len(fields["x-request-id"]) == 32


@pytest.mark.parametrize("status", refused(OURS))
def test_no_other_page_may(answer, status):
    code, fields = answer(refused(THEIRS)[status], OURS)
    assert (code, fields["vary"]) == (status, "Origin")
    assert "access-control-allow-origin" not in fields

    code, fields = answer(refused(OURS)[status])
    assert (code, fields.keys() & {"vary", "access-control-allow-origin"}) == (status, set())


@pytest.mark.parametrize("status", refused(OURS))
def test_where_all_pages_may_it_is_said_to_all(answer, status):
    code, fields = answer(refused(THEIRS)[status], "*")

    assert (code, fields["access-control-allow-origin"], "vary" in fields) == (status, "*", False)


def test_two_origins_are_none(answer):
    double = request(Origin=OURS, origin=OURS, Cookie="x" * HEADER_LIMIT)

    code, fields = answer(double, OURS)

    assert (code, "access-control-allow-origin" in fields) == (431, False)


def test_a_preflight_is_answered_though_the_queue_is_full(answer):
    preflight = request("OPTIONS /users HTTP/1.1", Origin=OURS, Access_Control_Request_Method="GET")
    mere = request("OPTIONS /users HTTP/1.1", Origin=OURS)

    assert answer(preflight, OURS)[0] == 200
    assert answer(mere, OURS)[0] == 503
    assert answer(preflight)[0] == 503


@pytest.mark.parametrize(
    ("status", "method", "reason"),
    [
        (503, "GET", "The service is overloaded. Try again shortly."),
        (413, "POST", "The request is too large."),
        (401, "POST", "A bearer token is needed."),
        (431, None, "Request Header Fields Too Large"),
        (501, "POST", "Not Implemented"),
        (400, "POST", "Bad Request"),
    ],
)
def test_a_refusal_without_the_application_is_a_line_in_the_log_of_requests(
    answer, logs, status, method, reason
):
    code, fields = answer(refused(OURS)[status])

    (line,) = [line for line in logs() if line["logger"] == "school_service.access"]
    assert code == status
    assert (line["status"], line["method"], line["refused"]) == (status, method, reason)
    assert line["path"] == ("/users" if method else None)
    assert (line["address"], line["route"], line["actor"]) == ("127.0.0.1", None, None)
    assert line["request_id"] == fields.get("x-request-id")
    assert 0 <= line["queue_ms"] < 60_000
    assert line.get("cause") == ("queue_full" if status == 503 else None)


def test_strangers_are_told_apart_by_where_a_trusted_proxy_says_they_come_from(answer):
    def key(proxies="127.0.0.1", **fields):
        answer(request("GET /verify/a/b HTTP/1.1", **fields), proxies=proxies)
        return answer.keys[-1]

    assert key(X_Forwarded_For="9.9.9.9, 203.0.113.7") == Stranger("203.0.113.7", has_token=False)
    assert key(X_Forwarded_For="2001:db8:1:2::3") == Stranger("2001:db8:1::/48", has_token=False)
    assert key(X_Forwarded_For="203.0.113.7", Authorization="bearer x") == Stranger(
        "203.0.113.7", has_token=True
    )
    assert key(X_Forwarded_For="203.0.113.7", Authorization="Basic eDp5").has_token is False
    assert key(proxies="", X_Forwarded_For="203.0.113.7") == Stranger("127.0.0.1", has_token=False)


@pytest.mark.parametrize(
    "first",
    [
        "GET /verify/3fa85f64-5717-4562-b3fc-2c963f66afa6/the-code HTTP/1.1",
        "GET /VERIFY/x/the-code?page=1 HTTP/1.1",
        "GET http://school/verify/x/the-code HTTP/1.1",
    ],
)
def test_the_code_of_a_report_card_is_in_no_line_of_a_refused_request(answer, logs, first):
    assert answer(request(first))[0] == 503
    assert answer(request(first, Content_Length=2**21))[0] == 413

    lines = [line for line in logs() if line["logger"] == "school_service.access"]
    assert [line["path"].lower() for line in lines] == ["/verify/…"] * 2
    assert "the-code" not in str(lines)


def test_the_address_of_a_refused_client_is_told_by_a_trusted_proxy(answer, logs):
    behind = request("POST /users HTTP/1.1", Content_Length=2**21, X_Forwarded_For="9.9.9.9, 203.0.113.7")
    answer(behind)
    answer(behind, proxies="127.0.0.1")

    addresses = [line["address"] for line in logs() if line["logger"] == "school_service.access"]
    assert addresses == ["127.0.0.1", "203.0.113.7"]
