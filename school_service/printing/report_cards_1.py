"""The first layout of report cards: its own parts. Cards published with it are printed by it for ever."""

from __future__ import annotations

from typing import Any

from school_service.printing.report_cards import notes_of, pairs_of, parts_of
from school_service.printing.wording import Document


def compose_card(document: Document, *, address: str | None) -> dict[str, Any]:
    """Compose the content of a card: texts alone, by their places in the template.

    `address` is the address of its verification.
    """
    outcome = document["outcome"]
    return {
        **parts_of(document, address=address),
        "notes": [*pairs_of(("Outcome", outcome and outcome["text"])), *notes_of(document)],
    }
