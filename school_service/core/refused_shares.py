"""How often work was refused because a share was used up, by share. docs/serving.md lists the shares."""

from __future__ import annotations

import threading
from collections import Counter

SHARES = ("requests", "school", "hashing", "sheets", "printers", "classes")
"""The shares: threads of `serve`, a school's part of them, hashing, sheets, printers, classes computed."""

_lock = threading.Lock()
_counts: Counter[str] = Counter()


def count_refusal(share: str) -> None:
    """Count a refusal."""
    with _lock:
        _counts[share] += 1


def refusals() -> dict[str, int]:
    """Tell how many there were of each share in this process."""
    with _lock:
        return {share: _counts[share] for share in SHARES}
