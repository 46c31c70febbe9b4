"""The papers for printing, by name: each is made of its part of a task, and becomes a file."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from school_service.core.texts import plain_file_name
from school_service.printing import report_cards, report_cards_1
from school_service.printing.archives import join_pdfs, zip_of
from school_service.printing.card_documents import report_card
from school_service.printing.slips import compose_slips
from school_service.printing.transcripts import compose_transcript
from school_service.printing.typesetting import pages_of, typeset
from school_service.printing.wording import class_name


class Layout(NamedTuple):
    """A layout of report cards: the composer of the content of its template, and the template.

    `fits`: the table of a card is its class's, from the `rules` of its making.
    """

    compose: Callable[..., dict[str, Any]]
    template: str
    fits: bool = False


# By version. Cards published with a layout are printed by it for ever; cards without one are of the first.
_LAYOUTS = {
    1: Layout(report_cards_1.compose_card, "report-cards-1"),
    2: Layout(report_cards.compose_card, "report-cards-2"),
    3: Layout(report_cards.compose_card, "report-cards", fits=True),
}
_FIRST_LAYOUT = 1
_BORDER = 2  # modules around a QR code
_MOST_BYTES = 200  # of the name of a file: systems take 255
_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)  # that the file of a zip may be of


def print_picture(*, picture: str) -> bytes:
    """Print a picture, base64 of a PNG or JPEG, alone on a small page: so a new one is tried out."""
    pictures = {"picture": a2b_base64(picture)}
    return typeset("picture", {}, pictures=pictures, timestamp=0, tagged=False)


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

    `cards`: the frozen document as `card`, its `code`, the `rules` of its making and, where it is shown, the student's
    `photo` in base64; all are of one layout. `pictures`: base64 by the hash in the cards. `verify_at`: the address
    before the code; None: no card can be verified. `drafted_at`: when the documents were made, if they are not
    published.
    """
    images = {name: a2b_base64(picture) for name, picture in pictures.items()}

    images |= {
        _photo_name(printed): a2b_base64(printed["photo"]) for printed in cards if printed.get("photo")
    }

    def pdf(of: Sequence[Mapping[str, Any]], title: str | None) -> bytes:
        composed = [_composed(printed, verify_at, drafted_at) for printed in of]
        shown = {name for card in composed for name in _pictures_of(card)}
        content = {
            "title": title or composed[0]["title"],
            "author": composed[0]["school"],
            "cards": composed,
        }
        moment = datetime.fromisoformat(drafted_at or of[0]["card"]["published_at"])
        # The structure of a whole class would make its file eight times as large.
        made = partial(
            typeset,
            _layout(of[0]).template,
            pictures={name: image for name, image in images.items() if name in shown},
            timestamp=int(moment.timestamp()),
            tagged=len(of) == 1,
        )
        plain: bytes = made({**content, "numbered": False})
        # Where a card has a second page, its pages are numbered: that takes three times as long.
        return plain if pages_of(plain) == len(of) else made({**content, "numbered": True})

    if not archive:
        return pdf(cards, title if len(cards) > 1 else None)
    return zip_of(
        (
            _file_name(printed["card"]),
            _moment(drafted_at or printed["card"]["published_at"]),
            pdf([printed], None),
        )
        for printed in cards
    )


def _layout(printed: Mapping[str, Any]) -> Layout:
    return _LAYOUTS[printed["card"].get("layout", _FIRST_LAYOUT)]


def _moment(text: str) -> tuple[int, ...]:
    return max(datetime.fromisoformat(text), _EARLIEST).timetuple()[:6]


def _composed(printed: Mapping[str, Any], verify_at: str | None, drafted_at: str | None) -> dict[str, Any]:
    can_be_verified = printed["card"]["verification"] and printed["code"] and verify_at and drafted_at is None
    address = f"{verify_at}/{printed['code']}" if can_be_verified else None
    layout, rules = _layout(printed), printed["rules"]
    document = report_card(
        printed["card"],
        rules=rules,
        outcome=printed.get("outcome"),
        outcome_class=printed.get("outcome_class"),
        drafted_at=drafted_at,
    )
    card = layout.compose(document, address=address)
    card["photo"] = _photo_name(printed) if printed.get("photo") else None
    card["has_photo"] = bool(printed["card"].get("show_photo"))
    if layout.fits and card["rows"]:
        card = report_cards.fitted(card, rules["table"])
    if address is not None:
        card["code"] = qr_code(address)
    return card


def _pictures_of(card: Mapping[str, Any]) -> Iterable[str]:
    signed = (card.get("signatures") or {}).get("signed", ())
    signatures = (signer.get("signature") for signer in (*card["comments"], *signed))
    return filter(None, (card["letterhead"]["logo"], card["photo"], *signatures))


def _photo_name(printed: Mapping[str, Any]) -> str:
    return f"photo of {printed['card']['student']['id']}"


def qr_code(text: str) -> str:
    """Draw a QR code (ISO/IEC 18004) as SVG, with half of its quiet zone: the paper around it is white.

    Readers take every mask alike. To find the best-looking of the eight would take six times as long as all else.
    """
    # Imported where there is a code to be drawn.
    made: str = import_module("segno").make_qr(text, error="m", mask=2).svg_inline(border=_BORDER)
    return made


def _file_name(card: Mapping[str, Any]) -> str:
    """Name a card in a zip, in a folder of the class: number and name of the student, as no other of the school."""
    student = card["student"]
    name = f"{student['admission_number']} {student['last_name']} {student['first_name']}"
    short = plain_file_name(name).encode()[:_MOST_BYTES].decode(errors="ignore").strip()
    return f"{plain_file_name(class_name(card))}/{short}.pdf"


def print_transcript(
    *,
    transcript: Mapping[str, Any],
    issued_at: str,
    code: str,
    verify_at: str | None,
    pictures: Mapping[str, str],
) -> bytes:
    """Print a transcript as it was issued; its `school` names its pictures. `pictures` as in `print_cards`.

    `verify_at` is the address before its `code`; None: it can't be verified.
    """
    address = f"{verify_at}/{code}" if verify_at and transcript["verification"] else None
    composed = compose_transcript(transcript, address=address)
    if address is not None:
        composed["code"] = qr_code(address)
    return typeset(
        "transcript",
        composed,
        pictures={name: a2b_base64(picture) for name, picture in pictures.items()},
        timestamp=int(datetime.fromisoformat(issued_at).timestamp()),
        tagged=True,
    )


def print_slips(
    *,
    slips: Sequence[Mapping[str, Any]],
    school: str,
    title: str,
    address: str | None,
    time_zone: str,
    made_at: str,
) -> bytes:
    """Print slips of invitations, ten on a page; slips with a `url` have it as a QR code, too.

    The other arguments are those of `compose_slips`; `made_at` is when the invitations were made.
    """
    content = compose_slips(slips, school=school, title=title, address=address, time_zone=time_zone)
    for slip in content["slips"]:
        slip["svg"] = None if slip["url"] is None else qr_code(slip["url"])
    moment = int(datetime.fromisoformat(made_at).timestamp())
    return typeset("slips", content, pictures={}, timestamp=moment, tagged=False)


def print_photo(*, picture: str, most_pixels: int) -> bytes:
    """Make a photo of a picture; Pillow is imported only when there is one to be made."""
    made: bytes = import_module("school_service.printing.photos").make_photo(
        picture=picture, most_pixels=most_pixels
    )
    return made


PAPERS: Mapping[str, Callable[..., bytes]] = {
    "picture": print_picture,
    "photo": print_photo,
    "report-cards": print_cards,
    "slips": print_slips,
    "transcript": print_transcript,
    "joined": join_pdfs,
}
