"""The README's sections, and the blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Block:
    """Lines of a section: a command (`sh`), or its answer (`json`, or no kind)."""

    section: str
    kind: str
    text: str


def blocks(section: str | None = None) -> list[Block]:
    """List the blocks in their order, of one section or all."""
    blocks = []
    for part in TEXT.split("\n## ")[1:]:
        title = part.partition("\n")[0]
        blocks += [Block(title, *block) for block in re.findall(r"^```(\w*)\n(.*?)^```$", part, re.S | re.M)]
    return [block for block in blocks if section in (None, block.section)]


def words(answer: str) -> set[str]:
    """The texts of an answer that are the same each time: no ids, no secrets, nothing shortened."""
    texts = set(re.findall(r'"([^"]+)"', answer))
    return {text for text in texts if not re.fullmatch(r"[0-9a-f-]{32,36}|.*….*", text)}
