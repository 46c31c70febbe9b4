"""The tables of docs/security.md with the messages of requests to PostgreSQL."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


def numbers_of(title: str) -> dict[str, int]:
    """Read how many messages each request of a table takes, by its words there."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n**{title}**", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table
    rows = [line.strip("| ").split(" | ") for line in table[0].splitlines()[2:]]
    return {name: int(number) for name, number, _ in rows}
