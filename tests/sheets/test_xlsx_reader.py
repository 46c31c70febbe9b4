"""Opening files of anyone's making: each is read, or refused with a message, within bounds."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_LZMA, ZIP_STORED, ZipFile

import pytest
from openpyxl import Workbook
from openpyxl.styles import numbers

from school_service.core.errors import DomainError, Invalid, TooLarge
from school_service.sheets import sheet_reader, xlsx_reader, xml_stream
from school_service.sheets.columns import MAX_ROWS, Column
from school_service.sheets.sheet_files import (
    BINARY_WORKBOOK,
    EMPTY,
    HAS_PASSWORD,
    NUMBERS,
    OLD_WORKBOOK,
    OPEN_DOCUMENT,
    PDF,
    TEXT_DOCUMENT,
    open_sheets,
)
from school_service.sheets.sheet_reader import read_sheet
from school_service.sheets.xlsx_reader import BROKEN, NOT_A_WORKBOOK, open_workbook
from school_service.sheets.xml_stream import TOO_MUCH_CONTENT
from tests.sheets.workbooks import (
    MAIN,
    handmade,
    parts_of,
    row_xml,
    saved,
    sheet_xml,
    strings_xml,
    workbook,
    zipped,
)

COLUMNS = (Column("name", required=True),)
GOOD = workbook([["name"], ["Ada"]])
MIB = 2**20
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def names(content):
    return [row.values["name"] for row in read_sheet(open_sheets(BytesIO(content)), "Students", COLUMNS).rows]


def refusal(content):
    with pytest.raises(DomainError) as refused:
        names(content)
    return refused.value


PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xff\xff?\0\x05\xfe"
    b"\x02\xfe\xa75\x81\x84\0\0\0\0IEND\xaeB`\x82"
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", EMPTY),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", PDF),
        (b"%PDF-1.7\n" + GOOD, PDF),
        (PNG, NOT_A_WORKBOOK),
        (b"a line of text", NOT_A_WORKBOOK),
        (b"<html><table><tr><td>name</td></tr></table></html>", NOT_A_WORKBOOK),
        (OLE + bytes(504), OLD_WORKBOOK),
        (OLE + bytes(504) + "EncryptedPackage".encode("utf-16-le"), HAS_PASSWORD),
        (b"PK", BROKEN),
        (b"PK\x05\x06" + bytes(18), NOT_A_WORKBOOK),
        (
            zipped(
                {"mimetype": b"application/vnd.oasis.opendocument.spreadsheet", "content.xml": b"<x/>"},
                ZIP_STORED,
            ),
            OPEN_DOCUMENT,
        ),
        (zipped({"mimetype": b"application/vnd.oasis.opendocument.text"}, ZIP_STORED), TEXT_DOCUMENT),
        (zipped({"Index/Document.iwa": b"x", "Data/a.jpg": b"x"}), NUMBERS),
        (zipped({"[Content_Types].xml": b'<Types xmlns="x"/>', "xl/workbook.bin": b"x"}), BINARY_WORKBOOK),
        (
            zipped({"[Content_Types].xml": b'<Types xmlns="x"/>', "word/document.xml": b"<x/>"}),
            TEXT_DOCUMENT,
        ),
        (zipped({"[Content_Types].xml": b'<Types xmlns="x"/>', "ppt/slides.xml": b"<x/>"}), NOT_A_WORKBOOK),
        (GOOD[: len(GOOD) // 2], BROKEN),
        (GOOD[:-30], BROKEN),
    ],
)
def test_a_file_that_is_no_workbook_is_refused(content, message):
    error = refusal(content)

    assert (type(error), error.message) == (Invalid, message)


def test_a_workbook_without_a_part_it_names_is_broken():
    parts = parts_of(handmade(sheet_xml(row_xml("name")), strings_xml("")))
    for name in ("xl/worksheets/a.xml", "xl/sharedStrings.xml"):
        assert refusal(zipped({key: part for key, part in parts.items() if key != name})).message == BROKEN


@pytest.mark.parametrize(
    "sheet",
    [
        b"",
        b"no xml",
        sheet_xml("<row>")[:-1],
        sheet_xml(row_xml("name") + '<row><c t="s"><v>99</v></c></row>'),
        sheet_xml(row_xml("name") + "<row><c><v>five</v></c></row>"),
        sheet_xml(row_xml("name") + '<row><c r="nowhere"><v>5</v></c></row>'),
        sheet_xml(row_xml("name") + '<row r="x"><c><v>5</v></c></row>'),
        sheet_xml(row_xml("name") + f"<row><c><v>{'9' * 5000}</v></c></row>"),
        sheet_xml(row_xml("name") + f"<row><c><v>{'9' * 310}</v></c></row>"),
        sheet_xml(f"<row><c><v>{'9' * 310}</v></c></row>"),
        b'<?xml version="1.0" encoding="cp037"?>' + sheet_xml(row_xml("name")),
    ],
)
def test_a_sheet_of_broken_xml_is_broken(sheet):
    assert refusal(handmade(sheet)).message == BROKEN


def test_a_workbook_of_another_program_without_styles_and_texts_is_read():
    assert names(handmade(sheet_xml(row_xml("name") + row_xml("Ada")))) == ["Ada"]


def test_macros_pictures_and_links_are_left_alone():
    parts = parts_of(GOOD)
    types = parts["[Content_Types].xml"].replace(b"sheet.main+xml", b"sheet.macroEnabled.main+xml")
    types = types.replace(
        b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.macro",
        b"application/vnd.ms-excel.sheet.macro",
    )
    parts |= {
        "[Content_Types].xml": types,
        "xl/vbaProject.bin": b"\xd0\xcf\x11\xe0 Auto_Open",
        "xl/media/image1.png": PNG,
        "xl/externalLinks/externalLink1.xml": b"no xml at all",
        "../../../outside.txt": b"a path out of the archive",
    }

    assert names(zipped(parts)) == ["Ada"]


def test_a_workbook_with_everything_excel_puts_around_the_rows_is_read():
    made = Workbook()
    sheet = made.worksheets[0]
    for row in (["name", "score"], ["Ada", 5]):
        sheet.append(row)
    sheet.auto_filter.ref = "A1:B2"
    sheet.oddHeader.center.text = "&[Page"
    after = (
        '<conditionalFormatting sqref="A1"><cfRule type="nonsense" priority="x"/></conditionalFormatting>'
        '<dataValidations count="1"><dataValidation type="list"/></dataValidations>'
        '<extLst><ext uri="{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}"/></extLst>'
    )
    parts = parts_of(saved(made))
    part = "xl/worksheets/sheet1.xml"
    parts[part] = parts[part].replace(b"</worksheet>", after.encode() + b"</worksheet>")

    assert names(zipped(parts)) == ["Ada"]


def test_a_chart_on_a_sheet_of_its_own_is_passed_over():
    made = Workbook()
    made.worksheets[0].append(["name"])
    made.worksheets[0].append(["Ada"])
    made.create_chartsheet("Students")

    assert names(saved(made)) == ["Ada"]


# Entities and DTDs.

EXTERNAL = '<!DOCTYPE x [<!ENTITY secret SYSTEM "file:///etc/passwd">]>'
LAUGHS = (
    "<!DOCTYPE x ["
    + '<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    + "]>"
)


def with_dtd(dtd, xml, encoding="utf-8"):
    return f'<?xml version="1.0" encoding="{encoding}"?>{dtd}{xml.decode()}'.encode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    ("dtd", "reference"),
    [(EXTERNAL, "&secret;"), (LAUGHS, "&a11;"), ('<!DOCTYPE x SYSTEM "http://localhost/x.dtd">', "")],
)
@pytest.mark.parametrize("part", ["sheet", "strings", "workbook", "types", "rels", "styles"])
def test_a_dtd_is_refused_in_every_part(part, dtd, reference, encoding):
    good = {
        "sheet": sheet_xml(row_xml("name") + row_xml("Ada")),
        "strings": strings_xml("<si><t>Ada</t></si>"),
        "styles": f'<styleSheet xmlns="{MAIN}"/>'.encode(),
    }
    parts = parts_of(handmade(**good))
    paths = {
        "workbook": "xl/workbook.xml",
        "types": "[Content_Types].xml",
        "rels": "xl/_rels/workbook.xml.rels",
    }
    xml = good.get(part) or parts[paths[part]]
    if reference:
        xml = xml.replace(b"Ada", reference.encode())

    assert names(handmade(**good)) == ["Ada"]
    assert refusal(handmade(**{**good, part: with_dtd(dtd, xml, encoding)})).message == BROKEN


@pytest.mark.parametrize("part", ["workbook", "types", "rels"])
def test_no_entity_is_expanded_in_an_attribute_of_a_small_part(part):
    paths = {
        "workbook": ("xl/workbook.xml", b"Students"),
        "types": ("[Content_Types].xml", b"/xl/worksheets/a.xml"),
        "rels": ("xl/_rels/workbook.xml.rels", b"worksheets/a.xml"),
    }
    good = handmade(sheet_xml(row_xml("name") + row_xml("Ada")))
    path, value = paths[part]
    xml = parts_of(good)[path]
    assert value in xml
    entity = b'<!DOCTYPE x [<!ENTITY a "%s">]>' % value

    assert names(good) == ["Ada"]
    for dtd, reference in ((entity, b"&a;"), (LAUGHS.encode(), b"&a11;")):
        assert (
            refusal(
                handmade(
                    sheet_xml(row_xml("name") + row_xml("Ada")), **{part: dtd + xml.replace(value, reference)}
                )
            ).message
            == BROKEN
        )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("size", [1, 2, 7, 8, 17, 18])
def test_a_dtd_is_refused_wherever_a_portion_ends(monkeypatch, size, encoding):
    monkeypatch.setattr(xml_stream, "_CHUNK", size)
    sheet = sheet_xml(row_xml("name") + row_xml("Ada"))

    assert names(handmade(with_dtd("", sheet, encoding))) == ["Ada"]
    assert refusal(handmade(with_dtd("<!DOCTYPE x>", sheet, encoding))).message == BROKEN


# Size. Nothing that the zip declares of itself is trusted.


def test_a_workbook_that_unpacks_to_too_much_is_too_large():
    parts = {**parts_of(GOOD), "xl/media/image1.bmp": bytes(100 * MIB)}

    error = refusal(zipped(parts))

    assert (type(error), error.message) == (TooLarge, "The workbook unpacks to more than 100 MiB.")


def test_many_parts_that_unpack_to_too_much_together_are_too_large():
    assert isinstance(refusal(zipped({f"part{n}": bytes(11 * MIB) for n in range(10)})), TooLarge)


def test_a_workbook_that_unpacks_to_just_less_is_read():
    assert names(zipped({**parts_of(GOOD), "xl/media/image1.bmp": bytes(99 * MIB)})) == ["Ada"]


def lying(content, name, size):
    """Let both headers of a part in the zip declare that it unpacks to `size` bytes."""
    changed = bytearray(content)
    with ZipFile(BytesIO(content)) as archive:
        info = archive.getinfo(name)
    struct.pack_into("<L", changed, info.header_offset + 22, size)
    at = content.rindex(name.encode(), 0, len(content)) - 46
    assert changed[at : at + 4] == b"PK\x01\x02"
    struct.pack_into("<L", changed, at + 24, size)
    return bytes(changed)


@pytest.mark.parametrize("size", [0, 10, MIB])
def test_a_part_that_declares_a_smaller_size_is_refused(size):
    parts = {**parts_of(GOOD), "xl/media/image1.bmp": bytes(200 * MIB)}

    assert isinstance(refusal(lying(zipped(parts), "xl/media/image1.bmp", size)), Invalid | TooLarge)


def test_a_sheet_that_declares_a_smaller_size_is_broken():
    content = lying(GOOD, "xl/worksheets/sheet1.xml", 300)

    assert refusal(content).message == BROKEN


def test_of_a_part_that_declares_a_larger_size_the_real_one_counts():
    content = lying(zipped({**parts_of(GOOD), "xl/media/image1.bmp": b"small"}), "xl/media/image1.bmp", 2**31)

    assert names(content) == ["Ada"]


@pytest.mark.parametrize("method", [ZIP_BZIP2, ZIP_LZMA])
def test_a_compression_that_workbooks_do_not_use_is_broken(method):
    assert refusal(zipped(parts_of(GOOD), method)).message == BROKEN


def test_a_workbook_that_is_not_compressed_is_read():
    assert names(zipped(parts_of(GOOD), ZIP_STORED)) == ["Ada"]


def test_a_zip_with_a_password_is_broken():
    content = bytearray(GOOD)
    at = 0
    while (at := content.find(b"PK\x01\x02", at)) >= 0:
        content[at + 8] |= 1
        at += 4

    assert refusal(bytes(content)).message == BROKEN


def test_the_most_rows_are_read_and_one_more_is_refused():
    rows = row_xml("name") + row_xml("Ada") * MAX_ROWS

    assert len(names(handmade(sheet_xml(rows)))) == MAX_ROWS
    assert (
        refusal(handmade(sheet_xml(rows + row_xml("Ada")))).message == "The sheet has more than 20,000 rows."
    )


def test_rows_without_anything_in_them_do_not_count():
    rows = row_xml("name") + '<row ht="15"><c s="0"/><c t="inlineStr"><is><t> </t></is></c></row>' * 30_000

    assert names(handmade(sheet_xml(rows + row_xml("Ada")))) == ["Ada"]


HEAD = row_xml("name")
EMPTY = {
    "rows": handmade(sheet_xml(HEAD + "<row/>" * 99_000)),
    "cells": handmade(sheet_xml(HEAD + ("<row>" + "<c/>" * 20 + "</row>") * 4_700)),
    "rows of spaces": handmade(sheet_xml(HEAD + '<row><c t="str"><v> </v></c></row>' * 20_000)),
    "rows of another column": handmade(sheet_xml(HEAD + '<row><c r="B2"><v>1</v></c></row>' * 20_000)),
    "what is no row": handmade(sheet_xml(HEAD, before="<cols>" + "<col/>" * 99_000 + "</cols>")),
    "texts": handmade(sheet_xml(HEAD), strings_xml("<si/>" * 99_000)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_content_is_refused_long_before_all_of_it_is_read(monkeypatch, name):
    read = []
    for module, bound in ((xml_stream, "MAX_EMPTY"), (sheet_reader, "MAX_EMPTY_ROWS")):
        monkeypatch.setattr(module, bound, getattr(module, bound) // 10)
    count_bytes = xlsx_reader._Archive.count_bytes
    monkeypatch.setattr(
        xlsx_reader._Archive,
        "count_bytes",
        lambda archive, size: (read.append(size), count_bytes(archive, size)),
    )

    assert refusal(EMPTY[name]).message == TOO_MUCH_CONTENT

    whole = max(map(len, parts_of(EMPTY[name]).values()))
    assert sum(read) < whole * 0.6


def test_a_large_sheet_with_many_cells_only_formatted_is_read():
    blank = "<row>" + '<c s="1"/>' * 4 + "</row>"

    assert names(handmade(sheet_xml(HEAD + row_xml("Ada") * 15_000 + blank * 19_000))) == ["Ada"] * 15_000


def hostile():
    """Make workbooks that would take gigabytes, or hours, if they were read as they come."""
    head = row_xml("name").encode()
    return {
        "one row of a million cells": handmade(sheet_xml(head + b"<row>" + b"<c/>" * MIB + b"</row>")),
        "one row of 200,000 cells": handmade(sheet_xml(head + b"<row>" + b"<c/>" * 200_000 + b"</row>")),
        "1,100,000 rows, all empty": handmade(sheet_xml(head + b"<row/>" * 1_100_000)),
        "one text of 60 MiB": handmade(sheet_xml(head + row_xml("x" * 60 * MIB).encode())),
        "one text of 60 MiB in CDATA": handmade(
            sheet_xml(head + b"<row><c><v><![CDATA[" + b"<" * 60 * MIB + b"]]></v></c></row>")
        ),
        "a comment of 60 MiB": handmade(sheet_xml(head + b"<!--" + b"<" * 60 * MIB + b"-->")),
        "a tag of 300,000 attributes": handmade(
            sheet_xml(head + b"<row " + b" ".join(b'a%d=""' % n for n in range(300_000)) + b"/>")
        ),
        "a tag of 90,000 attributes": handmade(
            sheet_xml(head + b"<row " + b" ".join(b'a%d=""' % n for n in range(90_000)) + b"/>")
        ),
        "a million names": handmade(sheet_xml(head + b"".join(b"<a%x/>" % n for n in range(MIB)))),
        "a million prefixes": handmade(
            sheet_xml(head + b"".join(b'<a xmlns:p%x="u"/>' % n for n in range(MIB)))
        ),
        "a depth of a million": handmade(sheet_xml(head + b"<a>" * MIB)),
        "1,100,000 texts": handmade(sheet_xml(head), strings_xml(b"<si/>" * 1_100_000)),
        "a text of 250,000 parts": handmade(
            sheet_xml(head), strings_xml(b"<si>" + b"<r/>" * 250_000 + b"</si>")
        ),
        "30 MiB of texts, each with a wide character": handmade(
            sheet_xml(head), strings_xml(("<si><t>😀" + "x" * 1000 + "</t></si>") * 30_000)
        ),
        "30 MiB of rows, each with a wide character": handmade(
            sheet_xml(head + row_xml("😀" + "x" * 1500).encode() * 19_000)
        ),
        "800,000 styles": handmade(
            sheet_xml(head), styles=b'<styleSheet xmlns="%s"><cellXfs>' % MAIN.encode() + b"<xf/>" * 800_000
        ),
        "49,000 styles": handmade(
            sheet_xml(head),
            styles=b'<styleSheet xmlns="%s"><cellXfs>' % MAIN.encode()
            + b'<xf numFmtId="14" a="" b=""/>' * 49_000
            + b"</cellXfs></styleSheet>",
        ),
        "a number format of 2 MiB": handmade(
            sheet_xml(head),
            styles=b'<styleSheet xmlns="%s"><numFmts><numFmt numFmtId="170" formatCode="%s"/></numFmts>'
            b'<cellXfs><xf numFmtId="170"/></cellXfs></styleSheet>' % (MAIN.encode(), b"[" * 2 * MIB),
        ),
        "styles 24,000 deep": handmade(sheet_xml(head), styles=b"<a>" * 24_000 + b"</a>" * 24_000),
        "100,000 parts": zipped({f"{n:x}": b"" for n in range(100_000)}, ZIP_STORED),
        "100,000 rows": handmade(sheet_xml(head + row_xml("Ada").encode() * 100_000)),
        "1,000,000 merged cells": handmade(
            sheet_xml(head, after=b"<mergeCells>" + b'<mergeCell ref="A1:B2"/>' * 900_000 + b"</mergeCells>")
        ),
        "a zip bomb": zipped({"[Content_Types].xml": b" " * 300 * MIB}),
    }


READ = {
    "30 MiB of texts, each with a wide character",
    "30 MiB of rows, each with a wide character",
    "49,000 styles",
    "a number format of 2 MiB",
    "styles 24,000 deep",
}
READER = """
import json, resource, sys
from pathlib import Path
from school_service.core.errors import DomainError
from school_service.sheets.columns import Column
from school_service.sheets.xlsx_reader import open_workbook
from school_service.sheets.sheet_reader import read_sheet

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
messages = {}
for path in map(Path, sys.argv[2:]):
    try:
        with path.open("rb") as file:
            read_sheet(open_workbook(file), "Students", [Column("name", required=True)])
        messages[path.name] = "read"
    except DomainError as refused:
        messages[path.name] = refused.message
print(json.dumps(messages))
"""


@pytest.mark.release
@pytest.mark.program
def test_no_workbook_makes_the_reader_take_200_megabytes(tmp_path):
    """The reader runs in a process that can't get more memory: beyond it, it would end with a MemoryError."""
    paths = []
    for name, content in hostile().items():
        path = tmp_path / name
        path.write_bytes(content)
        paths.append(str(path))

    reader = subprocess.run(
        [sys.executable, "-c", READER, str(200 * 10**6), *paths],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )

    assert reader.returncode == 0, reader.stderr[-2000:]
    messages = json.loads(reader.stdout)
    assert {name for name, message in messages.items() if message == "read"} == READ
    assert messages.pop("a zip bomb") == "The workbook unpacks to more than 100 MiB."
    assert messages.pop("100,000 rows") == "The sheet has more than 20,000 rows."
    assert {message for message in messages.values() if message != "read"} == {TOO_MUCH_CONTENT}


def test_each_number_format_is_looked_at_once_however_many_styles_have_it(monkeypatch):
    looked_at = []

    def is_date_format(code):
        looked_at.append(code)
        return numbers.is_date_format(code)

    monkeypatch.setattr(xlsx_reader, "is_date_format", is_date_format)
    formats = "".join(f'<numFmt numFmtId="{170 + n}" formatCode="{"[" * 250}"/>' for n in range(100))
    day = '<numFmt numFmtId="165" formatCode="yyyy-mm-dd"/>'
    styles = '<xf numFmtId="170"/><xf numFmtId="171"/><xf numFmtId="165"/>' * 16_000
    content = handmade(
        sheet_xml(row_xml("name") + '<row r="2"><c r="A2" s="47999"><v>45000</v></c></row>'),
        styles=f'<styleSheet xmlns="{MAIN}"><numFmts>{formats}{day}</numFmts><cellXfs>{styles}</cellXfs>'
        "</styleSheet>".encode(),
    )

    rows = list(open_workbook(BytesIO(content)).rows("Students"))

    assert sorted(looked_at) == ["[" * 250, "yyyy-mm-dd"]
    assert rows[1] == (2, {1: datetime(2023, 3, 15)})


@pytest.mark.parametrize("seed", range(8))
def test_no_damage_makes_anything_but_a_refusal(seed):
    """Bytes changed, cut or doubled anywhere, in the zip and in the XML of its parts."""
    chance = random.Random(seed)
    parts = parts_of(
        handmade(
            sheet_xml(
                row_xml("name") + '<row r="2"><c r="A2" t="s" s="1"><v>0</v></c></row>' + row_xml("Ada")
            ),
            strings_xml("<si><r><t>Ada</t></r></si>"),
            f'<styleSheet xmlns="{MAIN}"><cellXfs><xf/><xf numFmtId="14"/></cellXfs></styleSheet>'.encode(),
        )
    )

    def damaged(content):
        content = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(content))
            end = at + chance.randint(1, 12)
            content[at:end] = chance.choice(
                [b"", bytes([chance.randrange(256)]), content[at:end] * 2, b"<", b'"', b"9" * 20, b"&#0;"]
            )
        return bytes(content)

    for _ in range(150):
        name = chance.choice(list(parts))
        for content in (zipped({**parts, name: damaged(parts[name])}), damaged(zipped(parts))):
            with suppress(DomainError):
                read_sheet(open_workbook(BytesIO(content)), "Students", COLUMNS)
