"""Names of files that every system takes."""

from __future__ import annotations

import unicodedata

MAX_FILE_NAME_LENGTH = 150  # characters


def plain_file_name(name: str) -> str:
    """Make of any text the name of a file that every system takes: without path or control characters, and short."""
    safe = "".join(
        "-" if letter in '\\/:*?"<>|' else letter for letter in name if unicodedata.category(letter)[0] != "C"
    )
    return safe.strip(" .")[-MAX_FILE_NAME_LENGTH:] or "file"
