"""The papers that can be printed, by name: each is made of its part of a task, and becomes a file."""

from __future__ import annotations

import io
import zipfile
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from school_service.printing.report_cards import compose_card
from school_service.printing.typesetting import typeset

_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)  # that the file of a zip may be of


def print_picture(*, picture: str) -> bytes:
    """Print a picture, base64 of a PNG or JPEG, alone on a small page: so a new one is tried out."""
    return typeset("picture", {"picture": list(b64decode(picture))}, timestamp=None, tagged=False)


def print_cards(
    *,
    cards: Sequence[Mapping[str, Any]],
    pictures: Mapping[str, str],
    title: str,
    verify_at: str | None,
    drafted_at: str | None,
    archive: bool,
) -> bytes:
    """Print report cards in one PDF or, with `archive`, in a zip with a PDF of each.

    `cards`: the frozen document as `card`, its `code` (None: it can't be verified), and `file`, its name in a zip.
    `pictures`: base64 by the hash that cards name. `verify_at`: the address before the code. `drafted_at`: when the
    documents were made, where they are not published.
    """
    images = {name: list(b64decode(picture)) for name, picture in pictures.items()}

    def pdf(of: Sequence[Mapping[str, Any]], title: str | None) -> bytes:
        composed = [_composed(one, verify_at, drafted_at) for one in of]
        shown = {name for one in composed for name in _pictures_of(one)}
        content = {
            "title": title or composed[0]["title"],
            "author": composed[0]["school"],
            "cards": composed,
            "pictures": {name: image for name, image in images.items() if name in shown},
        }
        moment = datetime.fromisoformat(drafted_at or of[0]["card"]["published_at"])
        # The structure of a whole class would make its file eight times as large.
        return typeset("report-cards", content, timestamp=int(moment.timestamp()), tagged=len(of) == 1)

    if not archive:
        return pdf(cards, title if len(cards) > 1 else None)
    return _zip((one["file"], drafted_at or one["card"]["published_at"], pdf([one], None)) for one in cards)


def _composed(one: Mapping[str, Any], verify_at: str | None, drafted_at: str | None) -> dict[str, Any]:
    code = one["code"] if one["card"]["verification"] and verify_at else None
    address = f"{verify_at}/{code}" if code else None
    card = compose_card(one["card"], code_address=address, drafted_at=drafted_at)
    if address is not None:
        card["code"] = qr_code(address)
    return card


def _pictures_of(card: Mapping[str, Any]) -> Iterable[str]:
    return filter(None, (card["letterhead"]["logo"], *(one["signature"] for one in card["comments"])))


def qr_code(text: str) -> str:
    """Draw a QR code (ISO/IEC 18004) as SVG, with its quiet zone."""
    import segno  # it takes as long as all else that is imported: not for papers without a code

    code = segno.make_qr(text, error="m")
    drawn = io.BytesIO()
    code.save(drawn, kind="svg", border=2, xmldecl=False)
    return drawn.getvalue().decode()


def _zip(files: Iterable[tuple[str, str, bytes]]) -> bytes:
    """Write a zip of files: name, moment and content of each. The same files give the same bytes."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
        for name, moment, content in files:
            at = max(datetime.fromisoformat(moment), _EARLIEST)
            archive.writestr(zipfile.ZipInfo(name, at.timetuple()[:6]), content)
    return written.getvalue()


PAPERS: Mapping[str, Callable[..., bytes]] = {"picture": print_picture, "report-cards": print_cards}
