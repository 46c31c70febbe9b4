"""Typesetting: a template of this package and what stands in it become a PDF.

What stands in it is data: no text of it is ever read as typst's markup. Nothing is loaded from the network, and no font
of the machine is used, so that the same input gives the same bytes everywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import typst
from fontpkg_noto_sans import ROOT

# Noto Sans has the letters of Nigeria's languages and places their marks. Typst's own fonts stand in for its other
# letters; a letter that none has is a box.
_FONTS = ROOT / "files"
_TEMPLATES = Path(__file__).parent / "templates"


def typeset(template: str, content: Mapping[str, Any], *, timestamp: int | None, tagged: bool) -> bytes:
    """Set `templates/<template>.typ`, which reads its content from content.json, as a PDF.

    `timestamp`: when it was made, as the file says (seconds since 1970; None: it says nothing). `tagged`: with its
    structure, which screen readers need. Raises TypstError.
    """
    sources: Any = {
        "main.typ": _template(template),
        "common.typ": _template("common"),
        "content.json": json.dumps(content).encode(),
    }
    pdf = _compiler().compile(sources, format="pdf", timestamp=timestamp, pdf_tags=tagged)
    if not isinstance(pdf, bytes):
        raise TypeError("A PDF is one file.")
    return pdf


def pages_of(pdf: bytes) -> int:
    """Count the pages of a PDF that was typeset, as its metadata tell."""
    found = re.search(rb"<xmpTPg:NPages>(\d+)</xmpTPg:NPages>", pdf)
    if found is None:
        raise ValueError("The PDF does not tell how many pages it has.")
    return int(found[1])


@cache
def _template(name: str) -> bytes:
    return (_TEMPLATES / f"{name}.typ").read_bytes()


@cache
def _compiler() -> typst.Compiler:
    fonts = typst.Fonts(include_system_fonts=False, include_embedded_fonts=True, font_paths=[str(_FONTS)])
    return typst.Compiler(font_paths=fonts, ignore_system_fonts=True)
