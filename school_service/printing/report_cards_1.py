"""The first layout of report cards: its own parts. Cards published with it are printed by it for ever."""

from __future__ import annotations

from typing import Any

from school_service.printing.report_cards import (
    FORM_TEACHER,
    PRINCIPAL,
    Document,
    issued,
    pairs_of,
    parts_of,
)
from school_service.printing.wording import OUTCOMES, long_date, sentence_case, words


def compose_card(
    card: Document,
    *,
    rules: Document,
    address: str | None,
    drafted_at: str | None,
    outcome: str | None = None,
    **_of_later_layouts: Any,
) -> dict[str, Any]:
    """Compose the content of a card: texts alone, by their places in the template.

    `rules` are those of its making; `address` is the address of its verification; `drafted_at` is when a draft of it
    was made; `outcome` is the student's outcome at the session's end. The arguments of later layouts are left out.
    """
    gender = card["student"]["gender"]
    return {
        **parts_of(
            card,
            rules=rules,
            address=address,
            name_order="GIVEN_FIRST",
            gender=gender and sentence_case(gender.lower()),
            time_zone=None,
        ),
        "comments": _comments(card),
        "notes": pairs_of(
            ("Outcome", OUTCOMES.get(outcome or "")),
            ("Next term begins", long_date(card["calendar"]["next_term_begins"])),
            ("Notice", card["calendar"]["notice"]),
        ),
        "issued": issued(card, drafted_at, None),
        "draft": drafted_at is not None,
    }


def _comments(card: Document) -> list[dict[str, Any]]:
    """The comments, each with its signatory; without either it is left out."""
    letterhead, comments = card["letterhead"], card["comments"]
    found = [
        {
            "title": FORM_TEACHER,
            "text": words(comments["form_teacher"]),
            "name": words(card["form_teacher_name"]),
            "signature": None,
        },
        {
            "title": words(letterhead["principal_title"]) or PRINCIPAL,
            "text": words(comments["principal"]),
            "name": words(letterhead["principal_name"]),
            "signature": letterhead["signature"],
        },
    ]
    return [one for one in found if one["text"] or one["name"] or one["signature"]]
