"""Pictures of the tests, made by hand: PNG files of any size and colour."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 40, height: int = 40, colour: tuple[int, int, int] = (20, 60, 120)) -> bytes:
    """Make a PNG of one colour."""
    rows = (b"\0" + bytes(colour) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows)), _chunk(b"IEND", b""))
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
