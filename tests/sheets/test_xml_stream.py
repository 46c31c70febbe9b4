"""A small part is read as a tree, a large one as a stream: both give the same."""

from __future__ import annotations

from io import BytesIO

import pytest

from school_service.core.errors import Invalid
from school_service.sheets import xlsx_reader
from school_service.sheets.plain_cells import take_out_cells
from school_service.sheets.xlsx_reader import open_workbook
from school_service.sheets.xml_stream import SharedStrings, SheetRows
from tests.sheets.workbooks import MAIN, handmade, parts_of, row_xml, sheet_xml, strings_xml, workbook

CELLS = {
    "number": '<c r="A2"><v>13.50</v></c>',
    "blank": '<c r="A2" s="1"/>',
    "empty text": '<c r="A2" t="inlineStr"><is><t/></is></c>',
    "shared text": '<c r="A2" t="s"><v>1</v></c>',
    "text": '<c r="A2" t="inlineStr"><is><t xml:space="preserve"> Ada </t></is></c>',
    "text of several fonts": '<c t="inlineStr"><is><r><t>A</t></r><r><rPr><b/></rPr><t>da</t></r></is></c>',
    "text with a hint": '<c t="inlineStr"><is><t>Ada</t><rPh sb="0" eb="1"><t>hint</t></rPh></is></c>',
    "text beside its place": '<c t="inlineStr"><t>Ada</t></c>',
    "value of a text": '<c t="inlineStr"><v>7</v><is><t>Ada</t></is></c>',
    "text of a value": '<c t="str"><is><t>hint</t></is><v>Ada</v></c>',
    "escaped": '<c t="str"><v>A_x000A_&#100;&amp;<!-- of it --><![CDATA[<a>]]></v></c>',
    "an element within the value": '<c t="str"><v>A<b>d</b>a</v></c>',
    "an element within the text": '<c t="inlineStr"><is><t>A<b>d</b>a</t></is></c>',
    "two values": "<c><v>1</v><v>2</v></c>",
    "a value elsewhere": "<c><v>1</v><extLst><ext><v>2</v></ext></extLst></c>",
    "a formula": '<c r="A2"><f>1+1</f><v>2</v></c>',
    "a formula without a result": '<c r="A2"><f>1+1</f></c>',
    "a formula of a text": '<c r="A2" t="str"><f>""</f><v></v></c>',
    "a formula elsewhere": "<c><extLst><ext><f>1</f></ext></extLst></c>",
    "truth": '<c t="b"><v>1</v></c>',
    "an error": '<c t="e"><v>#DIV/0!</v></c>',
    "a day": '<c s="1"><v>45000</v></c>',
    "a written day": '<c t="d"><v>2025-01-31</v></c>',
    "no reference": "<c><v>1</v></c><c/><c><v>3</v></c>",
    "out of order": '<c r="C2"><v>3</v></c><c r="A2"><v>1</v></c><c><v>2</v></c>',
    "merged": '<c r="A2"><v>1</v></c><c r="B2"/>',
    "lines between": '\n <c r="A2">\n  <v>1</v>\n </c>\n',
    "no cell": '<x r="A2"><v>1</v></x>',
    "a row within": "<c><v>1</v></c><row><c><v>2</v></c></row>",
    "another namespace": '<c xmlns="urn:other"><v>1</v></c>',
}
ROWS = {
    **{name: f'<row r="2">{cell}</row>' for name, cell in CELLS.items()},
    "without numbers": "<row><c><v>1</v></c></row><row/><row><c><v>2</v></c></row>",
    "not in order": '<row r="9"><c><v>1</v></c></row><row r="3"><c><v>2</v></c></row>',
    "numbers of a float": '<row r="7.0"><c><v>1</v></c></row>',
    "between others": "<a><row><c><v>1</v></c></row></a><row><c><v>2</v></c></row>",
    "nothing": "",
}
STRINGS = strings_xml(
    "<si><t>Name</t></si><si><r><t>A</t></r><r><t>d_x0061_</t></r></si><si/>"
    "<si><t>Ada</t><rPh sb='0' eb='1'><t>hint</t></rPh></si>"
)
STYLES = f'<styleSheet xmlns="{MAIN}"><cellXfs><xf/><xf numFmtId="14"/></cellXfs></styleSheet>'.encode()


def read(content, monkeypatch, *, as_tree):
    read_as = []

    def noting(parts, name):
        method = getattr(parts, name)

        def noted(*arguments):
            found = method(*arguments)
            if found is not None:
                read_as.append((parts, name))
            return found

        return staticmethod(noted) if name == "items_of" else noted

    with monkeypatch.context() as patch:
        for parts in (SheetRows, SharedStrings):
            patch.setattr(parts, "items_of", noting(parts, "items_of"))
        if not as_tree:
            patch.setattr(xlsx_reader, "MAX_TREE_BYTES", 0)
        workbook = open_workbook(BytesIO(content))
        rows = list(workbook.rows("Students"))
    return rows, [parts for parts, _ in read_as]


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize(
    "strings", [STRINGS, strings_xml("<si><t>0</t></si><si><t>1</t></si>")], ids=["odd", "plain"]
)
def test_a_tree_gives_the_rows_that_the_stream_does(monkeypatch, rows, strings):
    content = handmade(sheet_xml(row_xml("name") + rows), strings, STYLES)

    tree, _ = read(content, monkeypatch, as_tree=True)
    stream, trees = read(content, monkeypatch, as_tree=False)

    assert tree == stream
    assert trees == []


def test_what_programs_write_is_read_as_a_tree(monkeypatch):
    rows = "".join(
        f'<row r="2">{CELLS[name]}</row>' for name in ("number", "shared text", "text", "a formula")
    )
    content = handmade(sheet_xml(rows), strings_xml("<si><t>0</t></si><si><t>1</t></si>"), STYLES)

    assert read(content, monkeypatch, as_tree=True)[1] == [SharedStrings, SheetRows]


@pytest.mark.parametrize("name", ["text with a hint", "a row within"])
def test_what_they_seldom_write_is_left_to_the_stream(monkeypatch, name):
    content = handmade(sheet_xml(f'<row r="2">{CELLS[name]}</row>'), None, STYLES)

    assert read(content, monkeypatch, as_tree=True)[1] == []


@pytest.mark.parametrize("excess", [0, 1])
def test_a_sheet_of_more_bytes_or_tags_is_left_to_the_stream(monkeypatch, excess):
    bare = sheet_xml("")
    cells = (xlsx_reader.MAX_PART_TAGS - bare.count(b"<") - 2 + 2 * excess) // 2
    tags = sheet_xml("<row>" + "<c></c>" * cells + "</row>")
    row = sheet_xml(f"<row>{' ' * (xlsx_reader.MAX_TREE_BYTES - len(bare) - 11 + excess)}</row>")

    for sheet in (tags, row):
        assert read(handmade(sheet), monkeypatch, as_tree=True)[1] == ([] if excess else [SheetRows])


PLAIN = '<c r="A2" s="1" t="inlineStr"><is><t>Ada</t></is></c><c r="B2" t="n"><v>7.5</v></c>'
ODD_SHEETS = {
    "a formula between plain cells": sheet_xml(
        '<row r="2"><c r="A2"><v>1</v></c><c r="B2"><f>1+1</f><v>2</v></c><c r="C2" s="1" /><c r="D2"></c>'
        '<c r="E2" t="str"><v>a&amp;b</v></c><c r="F2" t="inlineStr"><is><t xml:space="preserve"> b</t></is></c></row>'
    ),
    "attributes in another order": sheet_xml('<row r="2"><c t="str" r="B2"><v>b</v></c><c r="A2"/></row>'),
    "lines ended as in Windows": sheet_xml('<row r="2"><c r="A2" t="str"><v>a\r\nb\tc\nd</v></c></row>'),
    "a comment with cells": sheet_xml(f"<!-- <row>{PLAIN}</row> --><row>{PLAIN}<!-- {PLAIN} --></row>"),
    "cells as characters": sheet_xml(f'<row><c t="str"><v><![CDATA[{PLAIN}]]></v></c>{PLAIN}</row>'),
    "cells in an instruction": sheet_xml(f"<?cells {PLAIN}?><row>{PLAIN}</row>"),
    "an instruction first": b"<?cells " + PLAIN.encode() + b"?>" + sheet_xml(f"<row>{PLAIN}</row>"),
    "cells elsewhere": sheet_xml(f"<row>{PLAIN}</row>", f"<extLst>{PLAIN}</extLst>"),
    "a column that Excel has not": sheet_xml('<row><c r="ZZZ1"><v>1</v></c></row>'),
    "cells within cells": sheet_xml(f"<row>{PLAIN}<c>{PLAIN}</c></row>"),
    "places": sheet_xml(f'<row r="2"><plain/>{PLAIN}<plain r="D2"><v>1</v></plain></row>'),
    "places alone": sheet_xml('<row r="2"><plain/><plain r="D2"><v>1</v></plain></row>'),
    "a prefix": sheet_xml(f"<x:row>{PLAIN}</x:row>").replace(b"<worksheet", b'<worksheet xmlns:x="%s"' % MAIN.encode()),
    "another namespace": sheet_xml(f'<row xmlns="urn:other">{PLAIN}</row><row>{PLAIN}</row>'),
    "a declaration": b"<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n" + sheet_xml(f"<row>{PLAIN}</row>"),
    "letters of another set": b'<?xml version="1.0" encoding="iso-8859-1"?>'
    + sheet_xml('<row><c r="A1" t="str"><v>Zoë Ã©</v></c></row>').decode().encode("latin-1"),
    "UTF-8 called another set": b'<?xml version="1.0" encoding="iso-8859-1"?>'
    + sheet_xml('<row><c r="A1" t="str"><v>Zoë</v></c></row>'),
    "UTF-16": sheet_xml(f"<row>{PLAIN}</row>").decode().encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + sheet_xml(f"<row>{PLAIN}</row>"),
}  # fmt: skip
BROKEN_SHEETS = {
    "cells in an attribute": sheet_xml(f'<row x="{PLAIN}">{PLAIN}</row>'),
    "a cell in an attribute": sheet_xml("<row x='<c r=\"A1\"/>'/>"),
    "a cell in a tag": sheet_xml('<row <c r="A1"/>></row>'),
    "a cell in the name of a tag": sheet_xml('<<c r="A1"/>row></row>'),
    "a cell behind the sheet": sheet_xml("<row/>") + PLAIN.encode(),
    "a cell before the sheet": PLAIN.encode() + sheet_xml("<row/>"),
    "another end": sheet_xml('<row><c r="A1"><v>1</t></c></row>'),
    "no end": sheet_xml(f"<row>{PLAIN}"),
    "the end of characters": sheet_xml('<row><c r="A1" t="str"><v>a]]>b</v></c></row>'),
    "a character that XML can't carry": sheet_xml('<row><c r="A1" t="str"><v>a\x01b</v></c></row>'),
    "no character": sheet_xml('<row><c r="A1" t="str"><v>a\uffffb</v></c></row>'),
    "half of a pair": sheet_xml(b'<row><c r="A1" t="str"><v>a\xed\xa0\x80b</v></c></row>'),
    "no UTF-8": sheet_xml(b'<row><c r="A1" t="str"><v>a\xffb</v></c></row>'),
    "an entity": sheet_xml('<row><c r="A1" t="str"><v>&b;</v></c></row>'),
    "an attribute twice": sheet_xml('<row><c r="A1" s="1" s="1"><v>1</v></c></row>'),
    "a prefix without a namespace": sheet_xml(f"<row x:y='1'>{PLAIN}</row>"),
    "a DTD": b"<!DOCTYPE worksheet>" + sheet_xml(f"<row>{PLAIN}</row>"),
    "a DTD in UTF-16": ("<!DOCTYPE worksheet>" + sheet_xml(f"<row>{PLAIN}</row>").decode()).encode("utf-16"),
}


@pytest.mark.parametrize("name", ODD_SHEETS)
def test_cells_that_are_taken_out_are_those_that_the_stream_reads(monkeypatch, name):
    content = handmade(ODD_SHEETS[name], None, STYLES)

    tree, _ = read(content, monkeypatch, as_tree=True)

    assert tree == read(content, monkeypatch, as_tree=False)[0]


@pytest.mark.parametrize("name", BROKEN_SHEETS)
@pytest.mark.parametrize("as_tree", [True, False])
def test_a_broken_sheet_is_refused_though_its_cells_are_taken_out(monkeypatch, name, as_tree):
    with pytest.raises(Invalid) as refused:
        read(handmade(BROKEN_SHEETS[name], None, STYLES), monkeypatch, as_tree=as_tree)

    assert refused.value.message == xlsx_reader.BROKEN


def test_most_cells_of_a_sheet_are_taken_out_before_it_is_parsed():
    sheet = parts_of(workbook([("admission_number", "score"), ("A/1", 12.5), ("A/2", 7)]))[
        "xl/worksheets/sheet1.xml"
    ]

    left, cells = take_out_cells(sheet)

    assert [cell[3] for cell in cells] == ["admission_number", "score", "A/1", "12.5", "A/2", "7"]
    assert left.count(b"<plain/>") == len(cells)
    assert b"<c" not in left.partition(b"<sheetData>")[2]
