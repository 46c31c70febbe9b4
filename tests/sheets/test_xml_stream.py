"""A small part is read as a tree, a large one as a stream: both give the same."""

from __future__ import annotations

from io import BytesIO

import pytest

from school_service.sheets import xlsx_reader
from school_service.sheets.xlsx_reader import open_workbook
from school_service.sheets.xml_stream import SharedStrings, SheetRows
from tests.sheets.workbooks import MAIN, handmade, row_xml, sheet_xml, strings_xml

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
