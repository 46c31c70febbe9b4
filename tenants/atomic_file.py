"""Writing a file as a whole or not at all, power cuts included."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def atomic_file(
    path: Path, *, prefix: str | None = None, before_naming: Callable[[], None] = lambda: None
) -> Iterator[IO[bytes]]:
    """Yield a file readable by its owner alone; it gets its name once the block has ended well.

    It is on the disk by then; if the block fails, or the process dies, nothing new bears the name. Until then its name
    in the same folder begins with `prefix`, by default made of its own. `before_naming` is called last: an exception of
    it leaves the name as it was.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}." if prefix is None else prefix, dir=path.parent)
    try:
        with open(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        before_naming()
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    _sync_folder(path.parent)


def write_private(path: Path, text: str) -> None:
    """Write a text, in UTF-8, into a file readable by its owner alone; replaces a file of the same name."""
    with atomic_file(path) as file:
        file.write(text.encode())


def _sync_folder(folder: Path) -> None:
    """Bring the names of a folder's files to the disk."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
