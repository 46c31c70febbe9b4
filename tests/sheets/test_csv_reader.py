"""Reading tables of comma-separated values, as different programs write them."""

from __future__ import annotations

from decimal import Decimal
from io import BytesIO

import pytest

from school_service.core.errors import Invalid
from school_service.sheets.columns import CellType, Column
from school_service.sheets.csv_reader import NOT_UNICODE
from school_service.sheets.csv_writer import write_csv
from school_service.sheets.sheet_files import open_sheets
from school_service.sheets.sheet_reader import read_details, read_sheet
from school_service.sheets.xml_stream import MAX_ELEMENTS, TOO_MUCH_CONTENT

COLUMNS = (Column("name", required=True), Column("score", CellType.NUMBER))
ADA = {"name": "Adé Ọlá", "score": Decimal("4.5")}
TEXT = "Name,Score\r\nAdé Ọlá,4.5\r\n"


def read(content):
    return read_sheet(open_sheets(BytesIO(content)), "Students", COLUMNS)


def refusal(content):
    with pytest.raises(Invalid) as refused:
        read(content)
    return refused.value.message


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_every_program_is_understood(encoding, delimiter):
    sheet = read(TEXT.replace(",", delimiter).encode(encoding))

    assert [(row.number, row.values) for row in sheet.rows] == [(2, ADA)]


def test_quoted_cells_have_delimiters_and_lines_in_them():
    content = 'name;score;remarks\n"Eze; ""Ada""\nOla";5;"a,b,c,d,e"\n"Bàlógun, Chi";"6";\n'

    assert [row.values for row in read(content.encode()).rows] == [
        {"name": 'Eze; "Ada"\nOla', "score": Decimal(5)},
        {"name": "Bàlógun, Chi", "score": Decimal(6)},
    ]


def test_a_title_above_and_a_line_that_names_the_delimiter_are_passed_over():
    content = 'sep=;\r\nMathematics, first term\r\n\r\n"name";"score"\r\nAda;5\r\n'

    assert [(row.number, row.values["name"]) for row in read(content.encode()).rows] == [(5, "Ada")]


def test_a_header_is_the_same_however_its_marks_are_typed():
    both = tuple(Column(name) for name in ("\u00ccw\u00e0", "I\u0300wa\u0300"))
    content = "I\u0300wa\u0300,name\nb,c\n".encode()

    assert read_sheet(open_sheets(BytesIO(content)), "", both[:1]).rows[0].values == {both[0].name: "b"}
    # Where there is one of exactly these letters, it is that.
    assert read_sheet(open_sheets(BytesIO(content)), "", both).rows[0].values == {both[1].name: "b"}


def test_a_formula_is_a_text():
    assert read(b"name,score\n=1+1,5\n").rows[0].values == {"name": "=1+1", "score": Decimal(5)}


def test_a_written_text_is_no_formula_and_read_as_it_was():
    texts = ["=1+1", "+234803", "-x", "@SUM(A1)", "'=1", "''@", "'Abd", "a=1", "'", 'Ọlá, "B"']

    content = write_csv([["name"], *([text, "x"] for text in texts)])

    written = [line.split(",")[0] for line in content.decode("utf-8-sig").splitlines()[1:]]
    assert written[:6] == [f"'{text}" for text in texts[:6]]
    assert written[6:9] == texts[6:9]
    rows = list(open_sheets(BytesIO(content)).rows("CSV"))[1:]
    assert [cells[1] for _, cells in rows] == texts


def test_a_decimal_comma_is_told_how_to_be_written():
    (error,) = read(b"name;score\nAda;12,5\n").errors

    assert (error.value, error.remedy) == ("12,5", "write 12.5")


def test_a_number_that_a_comma_has_split_is_no_number():
    sheet = read(b"name,score\nAda,12,5\nObi,7,\n,,a note\nEze,8,,late\n")

    assert [(error.row, error.column, error.value) for error in sheet.errors] == [
        (2, "C", "5"),
        (5, "D", "late"),
    ]
    quoted = read(b'name,score\n"Ada, Eze",12.5\n')
    assert (quoted.errors, quoted.rows[0].values["name"]) == ([], "Ada, Eze")


def test_a_column_without_a_name_may_have_notes():
    sheet = read(b"name,score,\nAda,12,moved\n")

    assert (sheet.errors, sheet.ignored, sheet.rows[0].values["score"]) == ([], [], Decimal(12))


def test_a_table_of_csv_has_no_details():
    assert read_details(open_sheets(BytesIO(TEXT.encode()))) is None


def test_another_encoding_is_refused_with_its_remedy():
    assert refusal(TEXT.replace("ọ", "o").replace("Ọ", "O").encode("latin-1")) == NOT_UNICODE


@pytest.mark.parametrize(
    "content",
    [
        b"name,score\n" + b"," * (MAX_ELEMENTS + 1),
        b"name,score\n" + b"\n" * (MAX_ELEMENTS + 1),
        b"name,score\n" + b"x" * (2**20 + 1),
        b"name,score\n" + b"," * 20_000,
    ],
    ids=["cells", "lines", "a line", "columns"],
)
def test_too_much_is_refused(content):
    assert refusal(content) == TOO_MUCH_CONTENT


def test_a_cell_without_an_end_is_refused():
    assert refusal(b'name,score\n"' + b"x\n" * 100_000) == "The .csv file is broken and can't be read."
