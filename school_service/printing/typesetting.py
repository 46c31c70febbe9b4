"""Typesetting: a template of this package and its content become a PDF.

The content is data: no text of it is ever read as typst's markup. Nothing is loaded from the network, and no font of
the machine is used: the same input gives the same bytes everywhere.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

import typst

# Noto Sans has the letters of Nigeria's languages and places their marks. Typst's own fonts stand in for its other
# letters; a letter that none has is a box.
_FONTS = "fontpkg_noto_sans"
# Fonts of capital letters with several marks, made of Noto Sans by docs/make_letters.py, which says why.
_LETTERS = os.path.join(os.path.dirname(__file__), "fonts")
_COMMON = ("common", "common-1")  # imports of templates: of the present ones, and of the first layout
_TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")


def typeset(
    template: str,
    content: Mapping[str, Any],
    *,
    pictures: Mapping[str, bytes],
    timestamp: int,
    tagged: bool,
) -> bytes:
    """Set `templates/<template>.typ` as a PDF; it reads its content and the places of its pictures from content.json.

    `timestamp`: when it was made, as the file says (seconds since 1970). `tagged`: with its structure, for screen
    readers. Raises TypstError.
    """
    with _files_of(pictures) as files:
        sources: Any = {
            "main.typ": _template(template),
            **{f"{name}.typ": _template(name) for name in _COMMON},
            "content.json": json.dumps({**content, "pictures": files}).encode(),
        }
        # A compiler of its own has nothing of the one before.
        compiler = typst.Compiler(root="/", font_paths=_fonts(), ignore_system_fonts=True)
        pdf = compiler.compile(sources, format="pdf", timestamp=timestamp, pdf_tags=tagged)
    if not isinstance(pdf, bytes):
        raise TypeError("A PDF is one file.")
    return pdf


def pages_of(pdf: bytes) -> int:
    """Count the pages of a typeset PDF, as its metadata tell."""
    match = re.search(rb"<xmpTPg:NPages>(\d++)</xmpTPg:NPages>", pdf)
    if match is None:
        raise ValueError("The PDF does not tell how many pages it has.")
    return int(match[1])


@contextmanager
def _files_of(pictures: Mapping[str, bytes]) -> Iterator[Mapping[str, str | list[int]]]:
    """Let typst read pictures: the address of each, of a file in memory; without such files each as its bytes.

    Typst takes text alone as input, and to read bytes as an array of numbers takes it as long as half a card.
    """
    if not _has_files_in_memory():
        yield {name: list(picture) for name, picture in pictures.items()}
        return
    with ExitStack() as opened:
        files = {}
        for name, picture in pictures.items():
            file = opened.enter_context(os.fdopen(os.memfd_create("picture"), "wb"))
            file.write(picture)
            file.flush()
            files[name] = _address(file.fileno())
        yield files


@cache
def _has_files_in_memory() -> bool:
    """Tell whether the system has files in memory, as Linux has, and lets them be read by an address."""
    try:
        file = os.memfd_create("picture")
    except (AttributeError, OSError):
        return False
    try:
        return os.path.exists(_address(file))
    finally:
        os.close(file)


def _address(file: int) -> str:
    return f"/proc/self/fd/{file}"


@cache
def _template(name: str) -> bytes:
    with open(os.path.join(_TEMPLATES, f"{name}.typ"), "rb") as file:
        return file.read()


@cache
def _fonts() -> typst.Fonts:
    # To import the package would take longer than to read its fonts.
    spec = PathFinder.find_spec(_FONTS)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(_FONTS)
    files = os.path.join(os.path.dirname(spec.origin), "files")
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=True, font_paths=[files, _LETTERS])
