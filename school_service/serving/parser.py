"""Reading requests: an unsound, too large or too slow one is refused, and no request takes long to be read.

The time of waitress' regular expressions grows with the square of the length of their input, and more: one request of
64 KiB stopped the process for minutes. Here the head of a request is looked at first, in time growing with its length
alone, and only input its expressions read at once goes on to waitress.
"""

from __future__ import annotations

import re
import time
from typing import Any

from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver
from waitress.utilities import BadRequest, RequestEntityTooLarge, RequestHeaderFieldsTooLarge

from school_service.config import JSON_LIMIT
from school_service.serving.refusals import NO_ROOM, NO_TOKEN, TOO_LARGE, Refusal
from school_service.web.error_responses import NO_ROOM_ERRORS

HEADER_LIMIT = 64 * 1024  # bytes of a request's header fields
HEADER_TIMEOUT = 15  # seconds from a request's first byte to the end of its header fields
BODY_TIMEOUT = 60  # the same to the end of its body, and a large one must come at BODY_RATE besides
BODY_RATE = 16 * 1024  # bytes a second
LONGEST_SPACE = 100  # characters of white space on end in a request's head
LONGEST_CHUNK_LINE = 8 * 1024  # bytes of the line with a chunk's size, or of the fields after the last

_CONTROL = bytes({*range(32), 127} - {*b"\t\r\n"})
_SPACE = b" " * LONGEST_SPACE
_HOST = re.compile(r"[\w.~!$&'()*+;=%:\[\]-]*+", re.ASCII)
_REQUEST_LINE = re.compile(rb"[^ \t]++ [^ \t]++(?: HTTP/[0-9]\.[0-9])?")
_ORIGIN = re.compile(rb"\r\nOrigin:([^\r\n]*+)(?=\r\n)", re.IGNORECASE)


class RequestParser(HTTPRequestParser):
    """waitress' parser, with more refusals, and sooner; `error` says why.

    Refused are the requests refused by RFC 9112. A request other than an upload has at most JSON_LIMIT bytes, an upload
    at most `max_request_body_size`, and a token: both are refused by their header fields, before the body is read.

    A request with its length told in two ways ends its connection: a proxy in front may believe the other of the two,
    and take the rest for a request of its next caller (section 6.3). waitress itself goes by Transfer-Encoding, or for
    HTTP/1.0 by Content-Length, and reads on. So does one with a Transfer-Encoding readable in two ways, with 400.
    """

    completed: bool
    error: Any

    def __init__(self, adjustments: Any) -> None:
        super().__init__(adjustments)
        self.begun = time.monotonic()

    def received(self, data: bytes) -> int:
        """Take bytes of the request; returns how many of them are its own."""
        try:
            taken: int = super().received(data)
        except OSError as error:
            if error.errno not in NO_ROOM_ERRORS:
                raise
            # A large body is put into a temporary file. There is no more to come, as below.
            self.error, self.completed, self.expect_continue = NO_ROOM, True, False
            return len(data)
        if isinstance(self.error, RequestHeaderFieldsTooLarge):
            # waitress reads no field then; this one decides who may read the answer.
            origins = _ORIGIN.findall(self.header_plus + data)
            if len(origins) == 1:
                self.headers["ORIGIN"] = origins[0].strip(b" \t").decode("latin-1")
        if self.chunked and not self.completed and self._unfinished_line() > LONGEST_CHUNK_LINE:
            # waitress looks through all of it again, whenever more of it comes.
            self.error, self.completed = BadRequest("Chunk size or trailer too long"), True
        if self.headers_finished and max(self.content_length, self.body_bytes_received) > JSON_LIMIT:
            refusal = self._judge_large()
            if refusal is not None:
                self.error, self.completed = refusal, True
        if self.completed:
            # There is no more to come. waitress would ask for it, in place of an answer.
            self.expect_continue = False
        return taken

    def parse_header(self, header_plus: bytes) -> None:
        """Read the head: the request line and the header fields; raises ParsingError."""
        _check_head(header_plus)
        _check_transfer(header_plus)
        try:
            super().parse_header(header_plus)
        except ValueError:
            # A Content-Length of thousands of digits, or an address with half an IPv6 host.
            raise ParsingError("Content-Length or address is invalid") from None
        if self.version == "1.1":
            host = self.headers.get("HOST")
            # waitress joins two of them with a comma.
            if host is None or not _HOST.fullmatch(host):
                raise ParsingError("There must be one sound Host header field")
        # Of HTTP/1.1 waitress has taken Transfer-Encoding away by now, of HTTP/1.0 it has not looked at it.
        two_lengths = self.chunked and "CONTENT_LENGTH" in self.headers
        if two_lengths or "TRANSFER_ENCODING" in self.headers:
            self.headers["CONNECTION"] = "close"
        elif "," in self.headers.get("CONNECTION", ""):
            # It is a list; waitress understands it only where it has one member.
            options = [option.strip().lower() for option in self.headers["CONNECTION"].split(",")]
            known = [option for option in ("close", "keep-alive") if option in options]
            self.headers["CONNECTION"] = known[0] if known else ""

    def is_late(self, now: float) -> bool:
        """Tell whether the client has taken too long to send this request; `now` is a moment of `time.monotonic`."""
        if not self.headers_finished:
            return now - self.begun > HEADER_TIMEOUT
        size = max(self.content_length, self.body_bytes_received)
        return bool(now - self.begun > BODY_TIMEOUT + size / BODY_RATE)

    def _unfinished_line(self) -> int:
        chunks: ChunkedReceiver = self.body_rcv
        return max(len(chunks.control_line), len(chunks.trailer))

    def _judge_large(self) -> Refusal | None:
        """Refuse a request with a large body, unless it is an upload within its bound, with a token."""
        upload = self.headers.get("CONTENT_TYPE", "").lower().startswith("multipart/form-data")
        if not upload or isinstance(self.error, RequestEntityTooLarge):
            return TOO_LARGE
        if not self.headers.get("AUTHORIZATION", "").lower().startswith("bearer "):
            return NO_TOKEN
        return None


def _check_head(head: bytes) -> None:
    """Refuse, in one pass, a head too slow to read for waitress' expressions; raises ParsingError."""
    if len(head.translate(None, _CONTROL)) != len(head):
        raise ParsingError("Control character in the header")
    # As lines that go on in the next are put together.
    if _SPACE in head.replace(b"\t", b" ").replace(b"\r\n ", b" "):
        raise ParsingError("Too much white space in the header")
    if not _REQUEST_LINE.fullmatch(head.partition(b"\r\n")[0].rstrip()):
        raise ParsingError("Start line is invalid")


def _check_transfer(head: bytes) -> None:
    """Refuse a Transfer-Encoding of two fields, with an empty coding, or with chunked before its end.

    Sections 6.1 and 6.3; waitress takes chunked twice for once. Raises ParsingError.
    """
    if b"transfer-encoding" not in head.lower():
        return
    lines = head.replace(b"\r\n\t", b"\r\n ").replace(b"\r\n ", b" ").split(b"\r\n")
    fields = [line.partition(b":") for line in lines]
    values = [value for name, _, value in fields if name.lower() == b"transfer-encoding"]
    codings = [coding.strip(b" \t").lower() for value in values for coding in value.split(b",")]
    if len(values) > 1 or b"" in codings or b"chunked" in codings[:-1]:
        raise ParsingError("Transfer-Encoding must be given once, with chunked at its end alone")
