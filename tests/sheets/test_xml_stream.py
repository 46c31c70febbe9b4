"""The XML of rows and of shared strings: usual, rare and broken forms."""

from __future__ import annotations

import logging
from datetime import date, datetime
from io import BytesIO

import pytest

from school_service.core.errors import Invalid
from school_service.sheets import xml_stream
from school_service.sheets.xlsx_reader import BROKEN, NOT_COMPUTED, CellError, open_workbook
from school_service.sheets.xml_stream import TOO_MUCH_CONTENT
from tests.sheets.workbooks import MAIN, handmade, row_xml, sheet_xml, strings_xml

STRINGS = strings_xml(
    "<si><t>Name</t></si><si><r><t>A</t></r><r><t>d_x0061_</t></r></si><si/>"
    "<si><t>Ada</t><rPh sb='0' eb='1'><t>hint</t></rPh></si><si><rPh><t>hint</t></rPh><r><t>Obi</t></r></si>"
)
STYLES = f'<styleSheet xmlns="{MAIN}"><cellXfs><xf/><xf numFmtId="14"/></cellXfs></styleSheet>'.encode()


def rows_of(sheet, strings=None):
    return list(open_workbook(BytesIO(handmade(sheet, strings, STYLES))).rows("Students"))


CELLS = {
    "number": ('<c r="A2"><v>13.50</v></c>', {1: 13.5}),
    "blank": ('<c r="A2" s="1"/>', {}),
    "empty text": ('<c r="A2" t="inlineStr"><is><t/></is></c>', {}),
    "shared texts": (
        "".join(f'<c t="s"><v>{number}</v></c>' for number in range(5)),
        {1: "Name", 2: "Ada", 3: "", 4: "Ada", 5: "Obi"},
    ),
    "text": ('<c r="A2" t="inlineStr"><is><t xml:space="preserve"> Ada </t></is></c>', {1: " Ada "}),
    "text of several fonts": (
        '<c t="inlineStr"><is><r><t>A</t></r><r><rPr><b/></rPr><t>da</t></r></is></c>',
        {1: "Ada"},
    ),
    "text with a hint": (
        '<c t="inlineStr"><is><t>Ada</t><rPh sb="0" eb="1"><t>hint</t></rPh></is></c>',
        {1: "Ada"},
    ),
    "text beside its place": ('<c t="inlineStr"><t>Ada</t></c>', {1: "Ada"}),
    "value of a text": ('<c t="inlineStr"><v>7</v><is><t>Ada</t></is></c>', {1: "Ada"}),
    "text of a value": ('<c t="str"><is><t>hint</t></is><v>Ada</v></c>', {1: "Ada"}),
    "escaped": (
        '<c t="str"><v>A_x000A_&#100;&amp;<!-- of it --><![CDATA[<a>]]></v></c>',
        {1: "A\nd&<a>"},
    ),
    "an element within the value": ('<c t="str"><v>A<b>d</b>a</v></c>', {1: "A"}),
    "an element within the text": ('<c t="inlineStr"><is><t>A<b>d</b>a</t></is></c>', {1: "A"}),
    "two values": ("<c><v>1</v><v>2</v></c>", {1: 12}),
    "a value elsewhere": ("<c><v>1</v><extLst><ext><v>2</v></ext></extLst></c>", {1: 1}),
    "a formula": ('<c r="A2"><f>1+1</f><v>2</v></c>', {1: 2}),
    "a formula without a result": ('<c r="A2"><f>1+1</f></c>', {1: NOT_COMPUTED}),
    "a formula of a text": ('<c r="A2" t="str"><f>""</f><v></v></c>', {}),
    "a shared formula": (
        '<c t="str"><f t="shared" si="0">"Ada"</f><v>Ada</v><extLst><ext/></extLst></c>',
        {1: "Ada"},
    ),
    "a formula elsewhere": ("<c><extLst><ext><f>1</f></ext></extLst></c>", {}),
    "truth": ('<c t="b"><v>1</v></c>', {1: True}),
    "an error": ('<c t="e"><v>#DIV/0!</v></c>', {1: CellError("#DIV/0!")}),
    "a day": ('<c s="1"><v>45000</v></c>', {1: datetime(2023, 3, 15)}),
    "a written day": ('<c t="d"><v>2025-01-31</v></c>', {1: date(2025, 1, 31)}),
    "no reference": ("<c><v>1</v></c><c/><c><v>3</v></c>", {1: 1, 3: 3}),
    "out of order": (
        '<c r="C2"><v>3</v></c><c r="A2"><v>1</v></c><c><v>2</v></c>',
        {3: 3, 1: 1, 2: 2},
    ),
    "a column that Excel has not": ('<c r="ZZZ2"><v>1</v></c>', {18278: 1}),
    "lines between": ('\n <c r="A2">\n  <v>1</v>\n </c>\n', {1: 1}),
    "lines ended as in Windows": ('<c t="str"><v>a\r\nb\tc\nd</v></c>', {1: "a\nb\tc\nd"}),
    "another name": ('<x r="A2"><v>1</v></x>', {1: 1}),
    "a row within": ("<c><v>1</v></c><row><c><v>2</v></c></row>", {1: 1}),
    "another namespace": ('<c xmlns="urn:other"><v>1</v></c>', {}),
    "in a comment": ("<!-- <c><v>1</v></c> --><c><v>2</v></c>", {1: 2}),
}


@pytest.mark.parametrize(("cells", "read"), CELLS.values(), ids=CELLS)
def test_cells_are_read_in_every_form(cells, read):
    sheet = sheet_xml(f'{row_xml("name")}<row r="2">{cells}</row>')

    assert rows_of(sheet, STRINGS) == [(1, {1: "name"}), (2, read)]


ONE, TWO = "<c><v>1</v></c>", "<c><v>2</v></c>"
ROWS = {
    "without numbers": (
        f"<row>{ONE}</row><row/><row>{TWO}</row>",
        [(1, {1: 1}), (2, {}), (3, {1: 2})],
    ),
    "not in order": (f'<row r="9">{ONE}</row><row r="3">{TWO}</row>', [(9, {1: 1}), (3, {1: 2})]),
    "numbers of a float": (f'<row r="7.0">{ONE}</row>', [(7, {1: 1})]),
    "between others": (
        f"<a><row>{ONE}</row></a>{TWO}<row>{TWO}</row>",
        [(1, {1: 1}), (2, {1: 2})],
    ),
    "another namespace": (f'<row xmlns="urn:other">{ONE}</row><row>{TWO}</row>', [(1, {1: 2})]),
    "prefixes": (
        f'<x:row xmlns:x="{MAIN}"><x:c t="inlineStr"><x:is><x:t>Ada</x:t></x:is></x:c></x:row>',
        [(1, {1: "Ada"})],
    ),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("rows", "read"), ROWS.values(), ids=ROWS)
def test_rows_are_read_in_every_form(rows, read):
    assert rows_of(sheet_xml(rows)) == read


TEXT = '<row><c r="A1" t="str"><v>Zoë</v></c></row>'
LATIN = b'<?xml version="1.0" encoding="iso-8859-1"?>'
ENCODED = {
    "a declaration": (
        b"<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n" + sheet_xml(TEXT),
        "Zoë",
    ),
    "letters of another set": (LATIN + sheet_xml(TEXT).decode().encode("latin-1"), "Zoë"),
    "UTF-8 called another set": (LATIN + sheet_xml(TEXT), "ZoÃ«"),
    "UTF-16": (sheet_xml(TEXT).decode().encode("utf-16"), "Zoë"),
    "a byte order mark": (b"\xef\xbb\xbf" + sheet_xml(TEXT), "Zoë"),
    "an instruction first": (b"<?cells " + TEXT.encode() + b"?>" + sheet_xml(TEXT), "Zoë"),
}


@pytest.mark.parametrize("size", [1, 7, 2**16])
@pytest.mark.parametrize(("sheet", "text"), ENCODED.values(), ids=ENCODED)
def test_a_sheet_is_read_in_the_encoding_that_it_declares(monkeypatch, sheet, text, size):
    monkeypatch.setattr(xml_stream, "_CHUNK", size)

    assert rows_of(sheet) == [(1, {1: text})]


BROKEN_SHEETS = {
    "cells in an attribute": sheet_xml(f"<row x='{ONE}'/>"),
    "a cell in a tag": sheet_xml('<row <c r="A1"/>></row>'),
    "a cell behind the sheet": sheet_xml("<row/>") + ONE.encode(),
    "a cell before the sheet": ONE.encode() + sheet_xml("<row/>"),
    "another end": sheet_xml('<row><c r="A1"><v>1</t></c></row>'),
    "no end": sheet_xml(f"<row>{ONE}"),
    "no end of the sheet": sheet_xml(f"<row>{ONE}</row>")[:-1],
    "the end of characters": sheet_xml('<row><c r="A1" t="str"><v>a]]>b</v></c></row>'),
    "a character that XML can't carry": sheet_xml('<row><c r="A1" t="str"><v>a\x01b</v></c></row>'),
    "no character": sheet_xml('<row><c r="A1" t="str"><v>a\uffffb</v></c></row>'),
    "half of a pair": sheet_xml(b'<row><c r="A1" t="str"><v>a\xed\xa0\x80b</v></c></row>'),
    "no UTF-8": sheet_xml(b'<row><c r="A1" t="str"><v>a\xffb</v></c></row>'),
    "an entity": sheet_xml('<row><c r="A1" t="str"><v>&b;</v></c></row>'),
    "an attribute twice": sheet_xml('<row><c r="A1" s="1" s="1"><v>1</v></c></row>'),
    "a prefix without a namespace": sheet_xml(f"<row x:y='1'>{ONE}</row>"),
}


@pytest.mark.parametrize("sheet", BROKEN_SHEETS.values(), ids=BROKEN_SHEETS)
def test_a_sheet_of_broken_xml_is_refused(sheet):
    with pytest.raises(Invalid) as refused:
        rows_of(sheet)

    assert refused.value.message == BROKEN


def test_the_log_of_a_broken_workbook_quotes_no_cell(caplog):
    with caplog.at_level(logging.INFO), pytest.raises(Invalid):
        rows_of(sheet_xml("<row><c><v>Adaeze</v></c></row>"))

    assert [record.reason for record in caplog.records] == ["ValueError"]
    assert "Adaeze" not in caplog.text


# Each holds more of one thing than is allowed.
def attributes(name, numbers):
    return " ".join(f'{name}{number}="x"' for number in numbers)


TOO_MUCH = {
    "names in open elements between rows": "".join(
        f"<a {attributes('b', range(first, first + 400))}><row>{ONE}</row>" for first in range(0, 8000, 400)
    ),
    "prefixes of one element": f"<a {attributes('xmlns:p', range(6000))}/>",
    "names in filled cells": "".join(f"<row><c><v>1</v><a{number}/></c></row>" for number in range(6000)),
    "elements around rows": f"<a><row>{ONE}</row>{' ' * 5000}" * 60 + "</a>" * 60,
    "values outside of rows": "<v>x</v>" * 110_000,
    "bytes of one row": f"<row><c><v>1</v>{' ' * 2**21}</c></row>",
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_the_memory_of_the_parser_is_bounded(name):
    with pytest.raises(Invalid) as refused:
        rows_of(sheet_xml(f"<row>{ONE}</row>{TOO_MUCH[name]}"))

    assert refused.value.message == TOO_MUCH_CONTENT
