"""Several printed files in one: a zip, or a PDF with the pages of all."""

from __future__ import annotations

import io
from binascii import a2b_base64
from collections.abc import Iterable, Sequence
from itertools import chain, count
from os.path import splitext


def zip_of(files: Iterable[tuple[str, tuple[int, ...], bytes]]) -> bytes:
    """Write a zip of files: name, moment and content of each. The same files give the same bytes.

    A name taken by another file, in small or capital letters, gets a number.
    """
    import zipfile  # it brings much that a PDF has no need of

    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
        taken: set[str] = set()
        for name, moment, content in files:
            # Names that differ in characters that no file name may have are told apart by a number.
            stem, ending = splitext(name)
            numbers = (f"{stem} {number}{ending}" for number in count(2))
            free = next(
                candidate for candidate in chain([name], numbers) if candidate.casefold() not in taken
            )
            taken.add(free.casefold())
            archive.writestr(zipfile.ZipInfo(free, _date_time(moment)), content)
    return written.getvalue()


def _date_time(moment: tuple[int, ...]) -> tuple[int, int, int, int, int, int]:
    year, month, day, hour, minute, second = moment
    return year, month, day, hour, minute, second


def join_pdfs(*, files: Sequence[str]) -> bytes:
    """Join PDFs, each in base64, in their order, under the title of the first."""
    from pypdf import PdfWriter  # only large classes need it

    writer = PdfWriter(clone_from=io.BytesIO(a2b_base64(files[0])))
    for file in files[1:]:
        writer.append(io.BytesIO(a2b_base64(file)), import_outline=False)
    # It tells how many pages the first had.
    writer.xmp_metadata = None
    writer.compress_identical_objects()
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()
