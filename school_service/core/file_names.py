"""Names of files that every system takes."""

from __future__ import annotations

import unicodedata

MAX_FILE_NAME_LENGTH = 150  # characters


def plain_file_name(name: str) -> str:
    """Make of any text the name of a file that every system takes: without path or control characters, and short.

    Where nothing is left but an ending, it is `file` with that: systems tell by it what opens a file.
    """
    safe = "".join(
        "-" if letter in '\\/:*?"<>|' else letter for letter in name if unicodedata.category(letter)[0] != "C"
    )
    stem, dot, ending = safe.rpartition(".")
    if dot and not stem.strip(" ."):
        safe = f"file.{ending}"
    return safe.strip(" .")[-MAX_FILE_NAME_LENGTH:] or "file"
