"""The format of a picture, read from its first bytes: whether PNG or JPEG, and how large.

This is read before anything decodes the picture: one of 20,000 pixels a side has few bytes and would fill the memory.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from school_service.core.errors import Invalid

PNG, JPEG = "image/png", "image/jpeg"

_PNG_BEGINNING = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_JPEG_BEGINNING = b"\xff\xd8\xff"
# Markers of a JPEG that have no length behind them, and those of its frame, which has the size (ITU-T T.81, B.1).
_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD9)}
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
# Chunks of a PNG that have compressed text beside the picture: a colour profile, and comments.
_INTERNATIONAL = b"iTXt"
_COMPRESSED = (b"iCCP", b"zTXt", _INTERNATIONAL)
_MOST_UNPACKED = 4 * 1024 * 1024  # bytes of all together: large colour profiles have one or two MiB
_PART = 64 * 1024  # bytes that are unpacked at once


@dataclass(frozen=True, slots=True)
class PictureFormat:
    """The media type of a picture, and its width and height in pixels."""

    media_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """How large a picture may be: pixels of each side, at least and at most, and of all of it.

    `make_smaller` and `make_larger` are sentences of advice about a picture too large or too small.
    """

    least: int
    most: int
    most_in_all: int
    make_smaller: str
    make_larger: str


def read_format(content: bytes, limits: PictureLimits) -> PictureFormat:
    """Read the format of a picture.

    Raises Invalid for other formats than PNG and JPEG, for a picture too small or too large, and for a PNG with few
    bytes beside its pixels, if they would fill the memory when unpacked.
    """
    if content.startswith(_PNG_BEGINNING):
        picture = _png(content)
        if _unpacks_beyond_bound(content):
            raise Invalid("The image has a colour profile or comments of more than 4 MiB.")
    elif content.startswith(_JPEG_BEGINNING):
        picture = _jpeg(content)
    else:
        raise Invalid("The image is neither PNG nor JPEG.")
    if picture is None:
        raise Invalid("The image is broken: its size can't be read.")
    said = f"The image has {picture.width:,} × {picture.height:,} pixels; "  # noqa: RUF001 -- times
    if not all(limits.least <= side <= limits.most for side in (picture.width, picture.height)):
        is_large = max(picture.width, picture.height) > limits.most
        raise Invalid(
            f"{said}each side must be from {limits.least} to {limits.most:,}. "
            f"{limits.make_smaller if is_large else limits.make_larger}"
        )
    if picture.width * picture.height > limits.most_in_all:
        raise Invalid(f"{said}{limits.most_in_all:,} are allowed in all. {limits.make_smaller}")
    return picture


def _png(content: bytes) -> PictureFormat | None:
    start = len(_PNG_BEGINNING)
    if len(content) < start + 8:
        return None
    return PictureFormat(PNG, *struct.unpack_from(">II", content, start))


def _unpacks_beyond_bound(content: bytes) -> bool:
    """Tell whether the compressed texts beside a PNG's pixels are larger than the bound, all together, unpacked.

    A broken text counts as far as it can be unpacked: for the rest it is the printer's.
    """
    position, unpacked = 8, 0
    while position + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, position)
        if kind in _COMPRESSED:
            packed = _packed_text(kind, content[position + 8 : position + 8 + length])
            for part in _unpack(packed):
                unpacked += part
                if unpacked > _MOST_UNPACKED:
                    return True
        position += 12 + length
    return False


def _packed_text(kind: bytes, chunk: bytes) -> bytes:
    """Find the compressed text in a chunk; nothing if it is not compressed."""
    # A name, the number of the method, the compressed text.
    _, _, rest = chunk.partition(b"\0")
    if kind != _INTERNATIONAL:
        return rest[1:]
    # A name, whether it is compressed, the number of the method, a language, the name in that, the text.
    return rest[2:].split(b"\0", 2)[-1] if rest.startswith(b"\1") else b""


def _unpack(packed: bytes) -> Iterator[int]:
    """Unpack a compressed text in parts, and yield the size of each, as far as it is sound."""
    unpacking = zlib.decompressobj()
    while packed and not unpacking.eof:
        try:
            part = unpacking.decompress(packed, _PART)
        except zlib.error:
            return
        packed = unpacking.unconsumed_tail
        yield len(part)


def _jpeg(content: bytes) -> PictureFormat | None:
    position = 2
    while position + 4 <= len(content) and content[position] == 0xFF:
        marker = content[position + 1]
        if marker == 0xFF:  # fills up
            position += 1
        elif marker in _WITHOUT_LENGTH:
            position += 2
        elif marker in _FRAMES:
            if position + 9 > len(content):
                return None
            height, width = struct.unpack_from(">HH", content, position + 5)
            return PictureFormat(JPEG, width, height)
        else:
            (length,) = struct.unpack_from(">H", content, position + 2)
            position += 2 + length
    return None
