"""The school's paper: its principal, a badge in its colour, and a signature, both drawn here."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from hashlib import sha256
from math import cos, hypot, pi, sin
from typing import Any

from sqlalchemy import select

from school_service.core.database import db
from school_service.core.statements import execute
from school_service.demo.context import DemoContext
from school_service.features.audit.service import audit_change
from school_service.features.people.models import Employee, User
from school_service.features.school.letterheads.service import ENTITY, LIMITS, change_letterhead
from school_service.features.school.models import LOGO, SIGNATURE, Letterhead, Picture, Position
from school_service.printing.picture_format import PNG, read_format

Pixel = tuple[int, int, int, int]
"""Red, green, blue and how much it covers, each from 0 to 255."""

_NOTHING: Pixel = (0, 0, 0, 0)
_WHITE: Pixel = (255, 255, 255, 255)
_INK: Pixel = (24, 36, 110, 255)
_RAYS = 12


def draw_badge(red: int, green: int, blue: int, size: int = 240) -> bytes:
    """Draw a badge in a colour: a disc with a ring, and a sun rising over a book. `size`: its sides in pixels."""
    colour = (red, green, blue, 255)

    def pixel(x: int, y: int) -> Pixel:
        # From -1 to 1, upwards.
        across, up = 2 * (x + 0.5) / size - 1, 1 - 2 * (y + 0.5) / size
        distance = hypot(across, up)
        if distance > 1:
            return _NOTHING
        in_ring = 0.84 < distance < 0.9
        return _WHITE if in_ring or _is_sun(across, up + 0.1) or _is_book(across, up) else colour

    return _png(size, size, pixel)


def draw_signature(width: int = 320, height: int = 100) -> bytes:
    """Draw a signature in ink, on nothing: a line in waves with a stroke at its end. Its sides are in pixels."""
    line = []
    for step in range(600):
        along = step / 600
        wave = sin(along * 9 * pi) * (1 - along) * 0.36 + cos(along * 23) * 0.08 * (1 - along)
        line.append((width * (0.05 + 0.9 * along), height * (0.5 - wave + 0.15 * along)))
    inked = {
        (round(x) + across, round(y) + down) for x, y in line for across in range(3) for down in range(3)
    }
    return _png(width, height, lambda x, y: _INK if (x, y) in inked else _NOTHING)


def _is_sun(across: float, up: float) -> bool:
    """Tell whether a point is on half a disc, or on a ray of it."""
    if up < 0:
        return False
    distance = hypot(across, up)
    if distance < 0.24:
        return True
    # The angle is multiplied by the number of rays: its sine is small where the point is near a ray.
    turn = (complex(across, up) / distance) ** _RAYS
    return 0.32 < distance < 0.56 and turn.real > 0.3


def _is_book(across: float, up: float) -> bool:
    """Tell whether a point is on one of two pages, meeting in the middle."""
    top = -0.2 - 0.12 * abs(across) ** 0.5
    return 0.015 < abs(across) < 0.56 and top - 0.32 < up < top


def _png(width: int, height: int, pixel: Callable[[int, int], Pixel]) -> bytes:
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def make_letterhead(context: DemoContext) -> None:
    """Write the principal and the motto on the school's paper, with a badge and the principal's signature."""
    school = context.school
    execute(
        change_letterhead(
            principal_name=_principal(),
            principal_title="Principal",
            website=f"https://{school.email_address.partition('@')[2]}",
        )
    )
    # Pictures that this program drew need no proof that they can be printed.
    logo, signature = _store(draw_badge(*school.colour)), _store(draw_signature())
    letterhead = db.session.scalars(select(Letterhead)).one()
    letterhead.logo_id, letterhead.signature_id = logo.id, signature.id
    db.session.flush()
    pictures: dict[str, Any] = {LOGO: logo.sha256, SIGNATURE: signature.sha256}
    audit_change(ENTITY, school.id, old=dict.fromkeys(pictures), new=pictures)


def _store(content: bytes) -> Picture:
    about = read_format(content, LIMITS)
    picture = Picture(
        sha256=sha256(content).hexdigest(),
        media_type=PNG,
        width=about.width,
        height=about.height,
        image=content,
    )
    db.session.add(picture)
    db.session.flush()
    return picture


def _principal() -> str:
    title, first_name, last_name = db.session.execute(
        select(Employee.title, User.first_name, User.last_name)
        .join(User, User.id == Employee.user_id)
        .join(Position, Position.id == Employee.position_id)
        .where(Position.name == "Principal")
    ).one()
    return f"{title} {first_name} {last_name}"
