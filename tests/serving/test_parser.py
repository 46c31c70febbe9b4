"""Requests as HTTP/1.1 has them: an unsound one is refused at once, in the one shape of errors."""

from __future__ import annotations

import errno
import time

import orjson
import pytest
from waitress import parser as waitress_parser
from waitress.adjustments import Adjustments
from waitress.buffers import TempfileBasedBuffer

from school_service.serving import parser
from school_service.serving.refusals import refusal_of

LONG = 60_000  # characters, within HEADER_LIMIT
HEAD = b"POST /users HTTP/1.1\r\nHost: school\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def read(*parts):
    """Read a request that comes in these parts."""
    request = parser.RequestParser(
        Adjustments(max_request_header_size=parser.HEADER_LIMIT, max_request_body_size=11 * 2**20)
    )
    for part in parts:
        while part and not request.completed:
            part = part[request.received(part) :]
    return request


def reason_of(request):
    """Tell why a request is refused."""
    status, _, body = refusal_of(request.error).to_response()
    return f"{status}: {orjson.loads(body)['message']}"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (b"GET a://%b X\r\n\r\n" % (b"1" * LONG), "Start line is invalid"),
        (HEAD + b"X:%ba\r\n\r\n" % (b" " * LONG), "Too much white space in the header"),
        (HEAD + b"X:%b\0\r\n\r\n" % (b"\t" * LONG), "Control character in the header"),
        (HEAD + b"X:%ba\r\n\r\n" % (b"\r\n\t" * (LONG // 3)), "Too much white space in the header"),
    ],
    ids=["request line", "spaces", "control character", "continued lines"],
)
def test_a_head_that_would_take_minutes_to_read_is_refused_unread(monkeypatch, request_, reason):
    monkeypatch.setattr(waitress_parser, "get_header_lines", None)

    assert reason_of(read(request_)) == f"400 Bad Request: The request is not valid HTTP: {reason}."


TWICE = "Transfer-Encoding must be given once, with chunked at its end alone"


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize(
    "fields",
    [
        ("chunked", "chunked"),
        ("chunked", "identity"),
        ("gzip", "chunked"),
        ("chunked, chunked",),
        ("chunked,chunked",),
        ("CHUNKED ,\tchunked",),
        ("gzip, chunked, chunked",),
        ("chunked, gzip",),
        ("chunked", ""),
        ("",),
        (",",),
        ("chunked,",),
        (", chunked",),
        ("chunked\r\n , chunked",),
        ("chunked,\r\n\tchunked",),
    ],
    ids=repr,
)
def test_a_transfer_encoding_that_is_given_twice_or_has_chunked_twice_is_refused(fields, version):
    named = "".join(
        f"{name}: {value}\r\n"
        for name, value in zip(("Transfer-Encoding", "transfer-ENCODING"), fields, strict=False)
    )
    request = read(HEAD.replace(b"1.1", version.encode()) + f"{named}\r\n".encode())

    assert reason_of(request) == f"400 Bad Request: The request is not valid HTTP: {TWICE}."
    assert request.completed


@pytest.mark.parametrize(
    "coding", ["gzip", "identity", "gzip, chunked", "xchunked", "chunked;q=1", "\x85chunked"]
)
def test_a_transfer_coding_that_is_not_known_is_refused(coding):
    request = read(HEAD + f"Transfer-Encoding: {coding}\r\n\r\n".encode("latin-1"))

    assert request.completed
    assert reason_of(request).startswith("501 ")


@pytest.mark.parametrize(
    "field",
    ["chunked", "Chunked", " \tchunked \t", "\r\n chunked"],
    ids=repr,
)
def test_chunked_alone_is_taken(field):
    request = read(
        HEAD + f"Transfer-Encoding:{field}\r\nX: Transfer-Encoding: gzip\r\n\r\n".encode(),
        b"1\r\na\r\n0\r\n\r\n",
    )

    assert (request.error, request.chunked, request.completed) == (None, True, True)


def test_a_body_for_which_there_is_no_room_is_refused(monkeypatch):
    """waitress puts a large body into a temporary file."""

    class Full:
        def write(self, _content):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TempfileBasedBuffer, "newfile", lambda _self: Full())
    size = Adjustments().inbuf_overflow + 1
    head = HEAD + (
        b"Content-Type: multipart/form-data; boundary=x\r\nAuthorization: Bearer x\r\n"
        b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (size + 1)
    )

    request = read(head, b"x" * size)

    assert (
        reason_of(request)
        == "503 Service Unavailable: There is no room for files just now. Try again shortly."
    )
    assert (request.completed, request.expect_continue) == (True, False)


def test_a_failure_of_another_kind_is_not_taken_for_it(monkeypatch):
    class Broken:
        def write(self, _content):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(TempfileBasedBuffer, "newfile", lambda _self: Broken())
    size = Adjustments().inbuf_overflow + 1
    head = HEAD + (
        b"Content-Type: multipart/form-data; boundary=x\r\nAuthorization: Bearer x\r\n"
        b"Content-Length: %d\r\n\r\n" % (size + 1)
    )

    with pytest.raises(OSError, match="Input/output error"):
        read(head, b"x" * size)


def test_a_header_that_is_too_large_is_searched_for_its_origin_in_no_time():
    begun = time.thread_time()

    request = read(HEAD + b"X: %b\r\nOrigin:%b\ra" % (b"x" * parser.HEADER_LIMIT, b" " * LONG))

    # It takes a millisecond; it was hours.
    assert time.thread_time() - begun < 5
    assert (
        reason_of(request)
        == "431 Request Header Fields Too Large: The header fields of the request are too large."
    )


def test_a_header_of_many_words_and_continued_lines_is_read():
    request = read(HEAD + b"X: " + b"a  b\t" * 1000 + b"\r\n  c" * 1000 + b"\r\nY: \xe9\r\n\r\n")

    assert (request.error, request.completed, request.headers["Y"]) == (None, True, "é")
    assert request.headers["X"].endswith("  c" * 1000)


@pytest.mark.parametrize(
    "request_",
    [
        HEAD + b"Content-Length: %b\r\n\r\n" % (b"9" * 5000),
        HEAD + b"Content-Length: +5\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
        HEAD + b"Host: school\r\n\r\n",
        HEAD.replace(b"school", b"school, other") + b"\r\n",
        b"GET /users HTTP/1.1\r\n\r\n",
        b"GET /users HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET /users HTTP/1.1\r\nHost: \xe9\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: school\r\n\r\n",
        b"GET /us\ters HTTP/1.1\r\nHost: school\r\n\r\n",
        b"GET /users\x7f HTTP/1.1\r\nHost: school\r\n\r\n",
    ],
    ids=[
        "length of 5000 digits", "signed length", "two lengths", "two hosts", "list of hosts", "no host",
        "path in the host", "host that is not ASCII",
        "half an address", "tab in the address", "control character",
    ],
)  # fmt: skip
def test_a_request_that_is_not_sound_is_400(request_):
    assert reason_of(read(request_)).startswith("400 Bad Request: The request is not valid HTTP: ")


@pytest.mark.parametrize(
    "request_",
    [
        b"GET http://school/users HTTP/1.1\r\nHost: school\r\n\r\n",
        b"GET /users HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET /users HTTP/1.0\r\n\r\n",
        b"\r\nGET /users?a=%00&b=%ff HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
    ],
    ids=["absolute", "empty host", "HTTP/1.0", "blank line before"],
)
def test_a_sound_one_is_read(request_):
    request = read(request_)

    assert (request.error, request.completed, request.path) == (None, True, "/users")


@pytest.mark.parametrize("part", [b"5;a=" + b"b" * 5000, b"0\r\nX: " + b"y" * 5000], ids=["size", "trailer"])
def test_a_line_of_a_chunk_has_its_limit(part):
    request = read(CHUNKED, part)
    assert not request.completed

    request = read(CHUNKED, part, b"x" * parser.LONGEST_CHUNK_LINE)
    assert (
        reason_of(request)
        == "400 Bad Request: The request is not valid HTTP: Chunk size or trailer too long."
    )


def test_a_chunk_may_be_longer():
    size = 3 * parser.LONGEST_CHUNK_LINE
    request = read(
        CHUNKED, b"%x;a=b\r\n" % size, *[b"x" * 999] * (size // 999), b"x" * (size % 999), b"\r\n0\r\n\r\n"
    )

    assert (request.error, request.completed, request.body_rcv.getbuf().__len__()) == (None, True, size)


@pytest.mark.parametrize(
    ("connection", "read_as"),
    [
        (b"TE, close", "close"),
        (b"Close , keep-alive", "close"),
        (b"keep-alive, TE", "keep-alive"),
        (b"TE, Upgrade", ""),
        (b"keep-alive", "keep-alive"),
    ],
)
def test_the_connection_field_is_a_list(connection, read_as):
    assert read(HEAD + b"Connection: " + connection + b"\r\n\r\n").headers["CONNECTION"] == read_as


@pytest.mark.parametrize(
    ("fields", "asks"),
    [
        (b"", False),
        (b"Content-Length: 0\r\n", False),
        (b"Content-Length: 2000000\r\n", False),
        (b"Content-Length: 2000000000000\r\n", False),
        (b"Content-Length: 2\r\n", True),
        (b"Transfer-Encoding: chunked\r\n", True),
    ],
    ids=["no body", "an empty one", "too large", "far too large", "a body", "chunks"],
)
def test_a_body_is_asked_for_where_it_is_wanted(fields, asks):
    request = read(HEAD + b"Expect: 100-continue\r\n" + fields + b"\r\n")

    assert (request.expect_continue, request.completed) == (asks, not asks)
