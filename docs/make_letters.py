"""Make the fonts of capital letters with two marks or more, which typst else writes twice into the text of a PDF.

    python docs/make_letters.py NotoSans[wdth,wght].ttf school_service/printing/fonts

Typst sets a mark that is raised, as one on a capital is, as a text of its own, and gives it the text of the whole
letter (https://github.com/typst/typst/issues/8767). In these fonts such a letter is one glyph: the same outlines, at
the same place. They are made of Noto Sans, under its licence (OFL 1.1), with fontTools, which nothing else needs.
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.feaLib.builder import addOpenTypeFeaturesFromString
from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.pens.transformPen import TransformPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

FAMILY = "School Service Letters"
BELOW = "\u0323"
ABOVE = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030c"
LETTERS = [chr(code) for code in range(ord("A"), ord("Z") + 1)]
DOTTED = [dotted for letter in LETTERS if len(dotted := unicodedata.normalize("NFC", letter + BELOW)) == 1]
WEIGHTS = {"Regular": 400, "SemiBold": 600, "Bold": 700}


def find_shift(font: Any, mark: str, base: str) -> tuple[int, int] | None:
    """Find where a mark is attached to a base: the shift of its origin."""
    for lookup in font["GPOS"].table.LookupList.Lookup:
        for table in lookup.SubTable:
            table = getattr(table, "ExtSubTable", table)
            if table.LookupType != 4:
                continue
            if mark in table.MarkCoverage.glyphs and base in table.BaseCoverage.glyphs:
                of_mark = table.MarkArray.MarkRecord[table.MarkCoverage.glyphs.index(mark)]
                bases = table.BaseArray.BaseRecord
                of_base = bases[table.BaseCoverage.glyphs.index(base)].BaseAnchor[of_mark.Class]
                if of_base is not None:
                    at = of_mark.MarkAnchor
                    return of_base.XCoordinate - at.XCoordinate, of_base.YCoordinate - at.YCoordinate
    return None


def make(source: str, style: str, weight: int, target: Path) -> None:
    """Write the font of a weight."""
    font = instantiateVariableFont(
        TTFont(source, recalcTimestamp=False), {"wght": weight, "wdth": 100}, inplace=True
    )
    options = subset.Options(
        layout_features=["mark", "mkmk", "ccmp"], notdef_outline=True, name_IDs=[0, 13, 14]
    )
    options.drop_tables += ["STAT", "HVAR", "MVAR", "avar", "meta", "DSIG"]
    wanted = [*map(ord, LETTERS), *map(ord, DOTTED), *map(ord, BELOW + ABOVE)]
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=wanted)
    cutter.subset(font)
    cmap, glyphs = font.getBestCmap(), font.getGlyphSet()
    rules = []
    for base in (*LETTERS, *DOTTED):
        plain = unicodedata.normalize("NFD", base)
        for mark in ABOVE:
            if len(unicodedata.normalize("NFC", base + mark)) == 1:
                continue
            of_base, of_mark = cmap[ord(base)], cmap[ord(mark)]
            shift = find_shift(font, of_mark, of_base) or find_shift(font, of_mark, cmap[ord(plain[0])])
            if shift is None:
                continue
            pen = TTGlyphPen(None)
            record = DecomposingRecordingPen(glyphs)
            glyphs[of_base].draw(record)
            record.replay(pen)
            record = DecomposingRecordingPen(glyphs)
            glyphs[of_mark].draw(record)
            record.replay(TransformPen(pen, (1, 0, 0, 1, *shift)))
            name = f"{of_base}_{of_mark}"
            drawn = pen.glyph()
            font["glyf"][name] = drawn
            drawn.recalcBounds(font["glyf"])
            font["hmtx"][name] = (font["hmtx"][of_base][0], drawn.xMin)
            rules.append(f"sub {of_base} {of_mark} by {name};")
    font.setGlyphOrder(font["glyf"].glyphOrder)
    for tag in ("GPOS", "GSUB", "GDEF"):
        if tag in font:
            del font[tag]
    features = (
        f"languagesystem DFLT dflt; languagesystem latn dflt; feature ccmp {{ {' '.join(rules)} }} ccmp;"
    )
    addOpenTypeFeaturesFromString(font, features)
    name_font(font, style, weight)
    font.save(target)


def name_font(font: Any, style: str, weight: int) -> None:
    """Name the font's family, style and weight in it."""
    # Of the names of old there are families of two weights alone.
    is_old = style in {"Regular", "Bold"}
    names = {
        1: FAMILY if is_old else f"{FAMILY} {style}",
        2: style if is_old else "Regular",
        3: f"{FAMILY} {style}",
        4: f"{FAMILY} {style}",
        6: f"{FAMILY.replace(' ', '')}-{style}",
        16: FAMILY,
        17: style,
    }
    for number, text in names.items():
        font["name"].setName(text, number, 3, 1, 0x409)
    of_system = font["OS/2"]
    of_system.usWeightClass = weight
    flags = {"Bold": 0b100000, "Regular": 0b1000000}
    of_system.fsSelection = (of_system.fsSelection & ~0b1100001) | flags.get(style, 0)
    font["head"].macStyle = int(style == "Bold")


if __name__ == "__main__":
    source, folder = sys.argv[1:]
    for style, weight in WEIGHTS.items():
        make(source, style, weight, Path(folder) / f"SchoolServiceLetters-{style}.ttf")
