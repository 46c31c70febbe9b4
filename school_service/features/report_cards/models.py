"""What a card is to whoever verifies it."""

from __future__ import annotations

from school_service.core.enumeration import Enumeration

CURRENT_CARD, REPLACED_CARD, WITHDRAWN_CARD = CARD_STATES = Enumeration(
    "CardState", "CURRENT", "REPLACED", "WITHDRAWN"
)

PDF, ZIP = FORMATS = Enumeration("CardsFormat", "pdf", "zip")
"""As what the cards of a batch come."""

MAX_CARDS = 200
"""Of one file."""
