"""Cells that are written as programs write nearly all of theirs, read by one regular expression.

In a tree each of them is an element with one or two more in it, and to make these takes longer than all else of reading
a small sheet. So such cells are taken out, an element of another name stands where each of them was, and what is left
is parsed as XML: since that is an element for an element, it is well-formed only if the sheet was. Whatever is written
in another way, such as a formula, a text with an entity or one in several fonts, stays there.
"""

from __future__ import annotations

import re

PLACE = "plain"
"""The element that stands where a cell was taken out, in the namespace that the cell had."""

RawCell = tuple[str | None, str, str, str, bool]
"""A cell as it is written: its reference such as B7, data type, style and content, and whether of a formula."""

# A part in UTF-8, which one is in that declares no encoding.
_BEGINNING = re.compile(
    r"""(?:<\?xml version=["']1\.0["'](?: encoding=["'](?:UTF|utf)-8["'])?(?: standalone=["']yes["'])?\?>\s*+)?<\w"""
)
# What XML reads as it stands: no entity, no character that XML can't carry, and no end of a line that it would replace.
_TEXT = r"[^<>&\x00-\x08\x0b-\x1f\ufffe\uffff]*+"
_CELL = re.compile(
    r'<c r="([A-Z]{1,3}[0-9]{1,7})"(?: s="([0-9]{1,6})")?'
    rf'(?: t="inlineStr"><is><t(?: xml:space="preserve")?>({_TEXT})</t></is></c>'
    rf'|(?: t="(str|[nsbed])")?(?:><v>({_TEXT})</v></c>| ?/>))'
)
_GROUPS = _CELL.groups + 1  # with the text in front of each cell


def take_out_cells(content: bytes) -> tuple[bytes, list[RawCell]]:
    """Take the plain cells out of the XML of a sheet: returns what is left, and the cells in their order.

    None is taken out of a part with comments, CDATA or the like, in which what looks like a cell may be none, and of
    one in another encoding than UTF-8.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content, []
    parts = _CELL.split(text)
    left = f"<{PLACE}/>".join(parts[::_GROUPS])
    if (
        len(parts) != _GROUPS * left.count(f"<{PLACE}") + 1
        or _BEGINNING.match(left) is None
        or "<!" in left
        or left.find("<?", len("<?")) != -1
    ):
        return content, []
    references, styles, texts, types, values = (parts[group::_GROUPS] for group in range(1, _GROUPS))
    return left.encode(), [
        (reference, data_type or "n", style or "0", value or "", False)
        if text is None
        else (reference, "inlineStr", style or "0", text, False)
        for reference, style, text, data_type, value in zip(
            references, styles, texts, types, values, strict=True
        )
    ]
