"""Reading requests as HTTP/1.1 has them: what is not sound is refused, and no request takes long to be read.

waitress reads with regular expressions whose time grows with the square of what they are given, and more: one request
of 64 KiB stopped the process for minutes. Here the head of a request is looked at first, in time that grows with its
length alone, and waitress reads only what its expressions read at once.
"""

from __future__ import annotations

import re

from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver
from waitress.utilities import BadRequest

LONGEST_SPACE = 100  # characters of white space on end in a request's head
LONGEST_CHUNK_LINE = 8 * 1024  # bytes of the line with a chunk's size, or of the fields after the last

_CONTROL = bytes({*range(32), 127} - {*b"\t\r\n"})
_SPACE = b" " * LONGEST_SPACE
_HOST = re.compile(r"[\w.~!$&'()*+;=%:\[\]-]*", re.ASCII)
_REQUEST_LINE = re.compile(rb"[^ \t]+ [^ \t]+(?: HTTP/[0-9]\.[0-9])?")


class RequestParser(HTTPRequestParser):
    """waitress' parser, which refuses what RFC 9112 has refused, and ends the connection where it has it ended.

    Of a request whose length is told in two ways, a proxy in front may believe the other of the two, and take the rest
    for a request of its next caller (section 6.3). waitress itself goes by Transfer-Encoding, or for HTTP/1.0 by
    Content-Length, and reads on.
    """

    completed: bool

    def received(self, data: bytes) -> int:
        """Take bytes of the request; returns how many of them are its own."""
        taken: int = super().received(data)
        if self.chunked and not self.completed and self._unfinished_line() > LONGEST_CHUNK_LINE:
            # waitress looks through all of it again, whenever more of it comes.
            self.error, self.completed = BadRequest("Chunk size or trailer too long"), True
        return taken

    def _unfinished_line(self) -> int:
        chunks: ChunkedReceiver = self.body_rcv
        return max(len(chunks.control_line), len(chunks.trailer))

    def parse_header(self, header_plus: bytes) -> None:
        """Read the head: the request line and the header fields; raises ParsingError."""
        _check_head(header_plus)
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
            # It is a list; waitress knows it only where it has one member.
            options = [option.strip().lower() for option in self.headers["CONNECTION"].split(",")]
            known = [option for option in ("close", "keep-alive") if option in options]
            self.headers["CONNECTION"] = known[0] if known else ""


def _check_head(head: bytes) -> None:
    if len(head.translate(None, _CONTROL)) != len(head):
        raise ParsingError("Control character in the header")
    # As lines that go on in the next are put together.
    if _SPACE in head.replace(b"\t", b" ").replace(b"\r\n ", b" "):
        raise ParsingError("Too much white space in the header")
    if not _REQUEST_LINE.fullmatch(head.partition(b"\r\n")[0].rstrip()):
        raise ParsingError("Start line is invalid")
