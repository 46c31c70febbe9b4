"""Workbooks as people and programs make them, good and bad."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from openpyxl import Workbook

NO_WORKBOOKS = (b"", b"nothing", b"PK\x03\x04 broken", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old")
NO_NUMBERS = (
    *("absent", "12,5", "NaN", "1e1", "="),
    *(True, False, date(2025, 1, 1), datetime(1900, 1, 20, 12), time(12, 30)),
    *("#N/A", "#DIV/0!", "=1+1"),
)
"""Values of cells that are no number."""

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_SHEET_ML = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def workbook(rows: Iterable[Sequence[Any]], title: str = "Students") -> bytes:
    """Make a workbook of one sheet."""
    made = Workbook()
    sheet = made.worksheets[0]
    sheet.title = title
    for row in rows:
        sheet.append(row)
    return saved(made)


def saved(made: Workbook) -> bytes:
    """Give the bytes of a workbook."""
    content = BytesIO()
    made.save(content)
    return content.getvalue()


def parts_of(content: bytes) -> dict[str, bytes]:
    """Unpack a workbook."""
    with ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: dict[str, bytes], method: int = ZIP_DEFLATED) -> bytes:
    """Pack parts into a zip."""
    content = BytesIO()
    with ZipFile(content, "w", method, compresslevel=1) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return content.getvalue()


def handmade(
    sheet: bytes, strings: bytes | None = None, styles: bytes | None = None, **others: bytes
) -> bytes:
    """Make a workbook of one sheet from the XML of its parts; `others` replace parts by their short names."""
    overrides = [
        ("/xl/workbook.xml", f"{_SHEET_ML}.sheet.main+xml"),
        ("/xl/worksheets/a.xml", f"{_SHEET_ML}.worksheet+xml"),
    ]
    if strings is not None:
        overrides.append(("/xl/sharedStrings.xml", f"{_SHEET_ML}.sharedStrings+xml"))
    listed = "".join(
        f'<Override PartName="{name}" ContentType="{content_type}"/>' for name, content_type in overrides
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">{listed}</Types>'.encode(),
        "xl/workbook.xml": (
            f'<workbook xmlns="{MAIN}" xmlns:r="{_DOCUMENT}"><sheets>'
            '<sheet name="Students" sheetId="1" r:id="r1"/></sheets></workbook>'
        ).encode(),
        "xl/_rels/workbook.xml.rels": (
            f'<Relationships xmlns="{_PACKAGE}/relationships">'
            f'<Relationship Id="r1" Type="{_DOCUMENT}/worksheet" Target="worksheets/a.xml"/></Relationships>'
        ).encode(),
        "xl/worksheets/a.xml": sheet,
    }
    if strings is not None:
        parts["xl/sharedStrings.xml"] = strings
    if styles is not None:
        parts["xl/styles.xml"] = styles
    paths = {
        "types": "[Content_Types].xml",
        "workbook": "xl/workbook.xml",
        "rels": "xl/_rels/workbook.xml.rels",
    }
    return zipped({**parts, **{paths.get(name, name): part for name, part in others.items()}})


def sheet_xml(rows: bytes | str, before: bytes | str = "", after: bytes | str = "") -> bytes:
    """Write the XML of a sheet around its rows."""
    rows, before, after = (
        text if isinstance(text, bytes) else text.encode() for text in (rows, before, after)
    )
    return b'<worksheet xmlns="%s">%s<sheetData>%s</sheetData>%s</worksheet>' % (
        MAIN.encode(),
        before,
        rows,
        after,
    )


def strings_xml(items: bytes | str) -> bytes:
    """Write the XML of the shared strings around its items."""
    items = items if isinstance(items, bytes) else items.encode()
    return b'<sst xmlns="%s">%s</sst>' % (MAIN.encode(), items)


def row_xml(*texts: str) -> str:
    """Write a row of texts, each within its cell."""
    return "<row>" + "".join(f'<c t="inlineStr"><is><t>{text}</t></is></c>' for text in texts) + "</row>"
