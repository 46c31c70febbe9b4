"""Reading the rows of a sheet by column."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from io import BytesIO

import pytest
from openpyxl import Workbook
from openpyxl.styles import Font
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from school_service.core.errors import Invalid, InvalidRows
from school_service.sheets.columns import CellType, Column, heading_of
from school_service.sheets.row_errors import MAX_BAD_ROWS, RowError, raise_row_errors
from school_service.sheets.sheet_reader import ANY_NUMBER, day_remedy, read_details, read_sheet
from school_service.sheets.xlsx_reader import open_workbook
from tests.sheets.workbooks import MAIN, handmade, row_xml, saved, sheet_xml, strings_xml, workbook

NAME = Column("name", required=True)
SCORE = Column("score", CellType.NUMBER)
BORN = Column("born", CellType.DAY)
COLUMNS = (NAME, SCORE, BORN)


def read(content, columns=COLUMNS, title="Students"):
    return read_sheet(open_workbook(BytesIO(content)), title, columns)


def values(content, columns=COLUMNS):
    sheet = read(content, columns)
    assert sheet.errors == []
    return [row.values for row in sheet.rows]


def header_errors(content, columns=COLUMNS):
    with pytest.raises(InvalidRows) as refused:
        read(content, columns)
    return [(error["row"], error["column"], error["code"]) for error in refused.value.errors["rows"]]


def test_rows_are_read_by_column_and_numbered_as_in_excel():
    sheet = read(workbook([["name", "score", "born"], ["Ada", 5, date(2012, 5, 31)], ["Bisi", None, None]]))

    assert [(row.number, row.values) for row in sheet.rows] == [
        (2, {"name": "Ada", "score": Decimal(5), "born": "2012-05-31"}),
        (3, {"name": "Bisi"}),
    ]
    assert sheet.errors == []


def test_columns_may_come_in_any_order_case_and_space():
    assert values(workbook([["\t BORN ", None, "Score\n", "nAmE"], ["2012-05-31", "x", 5, "Ada"]])) == [
        {"name": "Ada", "score": Decimal(5), "born": "2012-05-31"}
    ]


def test_a_heading_is_found_without_the_words_in_its_brackets():
    assert heading_of("Name (as on (the) letter)*") == "name as on letter"
    assert heading_of("Name (surname first)") == "name"
    assert heading_of("Name (") == "name"


@pytest.mark.parametrize("letter", ["(", ")", " x", "e\u0301"])
def test_a_text_that_is_too_long_for_a_heading_names_no_column(letter):
    sheet = read(workbook([["name", f"score{letter * 16_000}"], ["Ada", 5]]))

    assert (sheet.rows[0].values, sheet.errors) == ({"name": "Ada"}, [])
    assert [len(name) for name in sheet.ignored] == [60]


def test_a_text_that_is_too_long_for_its_column_is_an_error_that_does_not_show_it():
    longest = Column("name", required=True, most=500)
    content = workbook([["name", "score", "born"], ["e\u0301" * 500, "5", ""], *[["x" * 2001] * 3]])

    sheet = read(content, (longest, SCORE, BORN))

    assert sheet.rows[0].values == {"name": "e\u0301" * 500, "score": Decimal(5)}
    assert [(error.column, error.problem, error.remedy, error.value) for error in sheet.errors] == [
        ("name", "has 2,001 characters", "shorten it to 500", None),
        ("score", "is no number", ANY_NUMBER, "x" * 2001),
        ("born", "is no date", "write it as year-month-day, such as 2012-05-31", "x" * 2001),
    ]


@pytest.mark.parametrize("number", ["1e309", "-1e999", "9" * 400 + ".0"])
def test_a_number_too_large_for_excel_is_an_error(number):
    rows = row_xml("name", "score") + f"<row><c><v>{number}</v></c><c><v>{number}</v></c></row>"

    sheet = read(handmade(sheet_xml(rows)))

    assert [(error.column, error.problem, error.value) for error in sheet.errors] == [
        ("name", "is the error of a formula", "#NUM!"),
        ("score", "is the error of a formula", "#NUM!"),
    ]


def test_other_columns_are_refused_where_there_is_a_message_for_them():
    content = workbook([["S/N", "name", None, " ", "Re\nmarks"], [1, "Ada", "a note", None, "x"]])

    with pytest.raises(InvalidRows) as refused:
        read_sheet(open_workbook(BytesIO(content)), "Students", COLUMNS, unknown_column="no {}".format)

    assert refused.value.errors["rows"] == [
        {"row": 1, "column": "S/N", "code": "unknown", "message": "A1: no S/N"},
        {"row": 1, "column": "Re\nmarks", "code": "unknown", "message": "E1: no Re\nmarks"},
    ]


def test_other_columns_are_ignored_and_named():
    content = workbook([["S/N", "name", None, "remarks"], [1, "Ada", None, "=cmd"], [2, None, None, "total"]])

    assert values(content) == [{"name": "Ada"}]
    assert read(content).ignored == ["S/N", "remarks"]
    assert read(workbook([["name"], ["Ada"]])).ignored == []


def test_columns_may_be_written_in_words():
    columns = (Column("first_name", required=True), Column("dob", required=True))
    content = workbook([["FIRST  Name", " Dob_"], ["Ada", "2012-05-31"]])

    assert values(content, columns) == [{"first_name": "Ada", "dob": "2012-05-31"}]


def test_a_name_as_it_is_written_comes_before_the_same_in_words():
    columns = (Column("self_control"), Column("self control"))

    sheet = read_sheet(
        open_workbook(BytesIO(workbook([["self control", "SELF_CONTROL"], ["a", "b"]]))), "Students", columns
    )

    assert sheet.rows[0].values == {"self control": "a", "self_control": "b"}


@pytest.mark.parametrize(
    "above", [[["Queen's College"]], [["JSS 1", None, "name"], [], ["First term", "2025"]], [["x"]] * 9]
)
def test_rows_above_the_header_are_passed_over(above):
    columns = (NAME, Column("score", CellType.NUMBER, required=True))
    content = workbook([*above, ["score", "name"], [5, "Ada"]])

    sheet = read(content, columns)

    assert [(row.number, row.values) for row in sheet.rows] == [
        (len(above) + 2, {"name": "Ada", "score": Decimal(5)})
    ]


def test_a_header_too_far_down_is_not_found():
    columns = (NAME, Column("score", CellType.NUMBER, required=True))
    content = workbook([*[["x"]] * 10, ["score", "name"], [5, "Ada"]])

    assert header_errors(content, columns) == [(1, "name", "required"), (1, "score", "required")]


def test_the_row_nearest_to_a_header_is_named_with_its_missing_columns():
    columns = (NAME, Column("score", required=True), Column("born", required=True))
    content = workbook([["Queen's College"], ["name", "score"], ["Ada", 5]])

    assert header_errors(content, columns) == [(2, "born", "required")]


def test_empty_rows_are_ignored_and_counted():
    content = workbook([[], [None, " "], ["name"], [], ["Ada"], ["  ", ""], [], ["Bisi"]])

    assert [(row.number, row.values["name"]) for row in read(content).rows] == [(5, "Ada"), (8, "Bisi")]


def test_a_missing_column_is_refused():
    assert header_errors(workbook([["score"], [5]])) == [(1, "name", "required")]


def test_a_column_twice_is_refused():
    content = workbook([[], ["name", "Score", " score "], ["Ada", 5, 6]])

    assert header_errors(content) == [(2, "score", "duplicate")]


@pytest.mark.parametrize("rows", [[], [["name"]], [["x"]]])
def test_a_sheet_of_one_cell_or_none_lacks_columns(rows):
    columns = (NAME, Column("score", required=True))

    errors = header_errors(workbook(rows), columns)

    assert ("score", "required") in [(column, code) for _, column, code in errors]


def test_a_header_without_rows_has_none():
    assert values(workbook([["name"]])) == []


def test_the_sheet_is_found_by_its_name_among_others():
    made = Workbook()
    made.create_sheet(" STUDENTS ").append(["name"])
    made.worksheets[1].append(["Ada"])
    made.create_sheet("Notes").append(["anything"])

    assert values(saved(made)) == [{"name": "Ada"}]


def test_the_only_sheet_is_read_under_any_name():
    assert values(workbook([["name"], ["Ada"]], title="Sheet1")) == [{"name": "Ada"}]


def test_several_sheets_without_the_name_are_refused():
    made = Workbook()
    made.create_sheet("Sheet2").append(["name"])

    with pytest.raises(Invalid, match="no sheet named Students"):
        read(saved(made))


def test_hidden_sheets_rows_and_columns_are_read_like_any():
    made = Workbook()
    sheet = made.create_sheet("Students")
    for row in (["name", "score"], ["Ada", 5], ["Bisi", 6]):
        sheet.append(row)
    sheet.sheet_state = "hidden"
    sheet.row_dimensions[3].hidden = True
    sheet.column_dimensions["B"].hidden = True

    assert values(saved(made)) == [
        {"name": "Ada", "score": Decimal(5)},
        {"name": "Bisi", "score": Decimal(6)},
    ]


def merged(*ranges, rows=(["name", "score"], ["Ada", 5], ["Obi", 6])):
    made = Workbook()
    sheet = made.worksheets[0]
    for row in rows:
        sheet.append(row)
    for cells in ranges:
        sheet.merge_cells(cells)
    return saved(made)


@pytest.mark.parametrize(
    ("cells", "row", "column"),
    [
        ("A2:A3", 2, "name"),
        ("A2:B2", 2, "name"),
        ("A3:A9", 3, "name"),
        ("B3:C3", 3, "score"),
        ("B1:B2", 2, "score"),
        ("A1:A3", 2, "name"),
    ],
)
def test_merged_cells_in_a_row_are_an_error(cells, row, column):
    content = merged(cells)

    remedy = "unmerge them, and write the value of each"
    problem = f"is part of the merged cells {cells}"
    assert read(content, (NAME, SCORE)).errors == [RowError(row, column, "invalid", problem, None, remedy)]


@pytest.mark.parametrize("cells", ["A1:B1", "C1:D9", "A5:B9", "AAA1:AAB9"])
def test_merged_cells_elsewhere_are_none(cells):
    assert read(merged(cells), (NAME, SCORE)).errors == []


def test_merged_cells_that_are_no_range_are_passed_over():
    rows = row_xml("name", "score") + row_xml("Ada", 5)
    sheet = sheet_xml(rows).replace(
        b"</sheetData>",
        b'</sheetData><mergeCells><mergeCell/><mergeCell ref="A2"/><mergeCell ref="x:y"/></mergeCells>',
    )

    assert values(handmade(sheet)) == [{"name": "Ada", "score": Decimal(5)}]


def test_a_formula_counts_by_its_stored_value():
    rows = (
        row_xml("name", "score")
        + '<row><c t="str"><f>A1&amp;"x"</f><v>Ada</v></c><c><f>1+1</f><v>2</v></c></row>'
        + '<row><c t="str"><f>IF(A2="","x","")</f><v></v></c><c></c></row>'
    )

    assert values(handmade(sheet_xml(rows))) == [{"name": "Ada", "score": Decimal(2)}]


def test_a_formula_without_a_result_is_an_error():
    rows = row_xml("name", "score") + "<row><c><v>5</v></c><c><f>SUM(A1:A9)</f></c></row>"

    sheet = read(handmade(sheet_xml(rows)))

    assert [(error.column, error.code) for error in sheet.errors] == [("score", "invalid")]
    assert "formula" in sheet.errors[0].problem


def test_an_error_of_a_formula_is_an_error():
    rows = (
        row_xml("name", "score") + '<row><c t="e"><v>#N/A</v></c><c t="e"><f>1/0</f><v>#DIV/0!</v></c></row>'
    )

    sheet = read(handmade(sheet_xml(rows)))

    assert sheet.errors == [
        RowError(
            2,
            name,
            "invalid",
            "is the error of a formula",
            code,
            "mend the formula, or write the value itself",
        )
        for name, code in (("name", "#N/A"), ("score", "#DIV/0!"))
    ]
    assert sheet.rows[0].bad == {"name", "score"}


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (1234, "1234"),
        (1234.0, "1234"),
        (12.5, "12.5"),
        (-7, "-7"),
        (2348031234567, "2348031234567"),
        (1e21, "1000000000000000000000"),
        (0.00001, "0.00001"),
        (True, "TRUE"),
        (" Ada ", " Ada "),
        ("=1+1", "=1+1"),
        ("Ìfẹ́ 数学 🧮", "Ìfẹ́ 数学 🧮"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_a_text_column_takes_numbers_as_they_are_shown(cell, text):
    made = Workbook()
    made.worksheets[0].append(["name"])
    made.worksheets[0].cell(2, 1).value = cell
    if isinstance(cell, str):
        made.worksheets[0].cell(2, 1).data_type = "s"

    assert values(saved(made)) == [{"name": text}]


@pytest.mark.parametrize("cell", [date(2025, 1, 31), datetime(2025, 1, 31, 12), time(12, 30)])
def test_a_date_in_a_text_column_is_an_error(cell):
    sheet = read(workbook([["name"], [cell]]))

    assert [(error.row, error.column, error.code) for error in sheet.errors] == [(2, "name", "invalid")]
    assert "text" in sheet.errors[0].remedy


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        (5, "5"),
        (0, "0"),
        (-1, "-1"),
        (59.5, "59.5"),
        (0.1 + 0.2, "0.3"),
        (29.999999999999996, "30"),
        ("45", "45"),
        (" 45.50 ", "45.50"),
        ("+.5", "0.5"),
    ],
)
def test_a_number_column_takes_numbers_and_text_that_is_one(cell, number):
    score = values(workbook([["name", "score"], ["Ada", cell]]))[0]["score"]

    assert isinstance(score, Decimal)
    assert score == Decimal(number)


BLANK = "leave the cell blank"
ANY = "write a number such as 12.5, or leave the cell blank"
FORMAT = "format the cell as a number, and write it again"
PLAIN = "write the number itself, without %"


@pytest.mark.parametrize(
    ("cell", "value", "problem", "remedy"),
    [
        ("five", "five", "is no number", ANY),
        (" 12,5", "12,5", "is no number", "write 12.5"),
        ("1,234.5", "1,234.5", "is no number", ANY),
        ("1e3", "1e3", "is no number", ANY),
        ("NaN", "NaN", "is no number", ANY),
        ("--", "--", "is no number", BLANK),
        ("Absent", "Absent", "is no number", BLANK),
        ("abs.", "abs.", "is no number", BLANK),
        ("\u0665", "\u0665", "is no number", ANY),
        ("5%", "5%", "is a percentage", PLAIN),
        ("45 %", "45 %", "is a percentage", PLAIN),
        (True, "TRUE", "is no number", FORMAT),
        (date(2025, 5, 10), "2025-05-10 00:00:00", "is no number", FORMAT),
        (time(5), "05:00:00", "is no number", FORMAT),
    ],
)
def test_a_cell_that_is_no_number_is_an_error(cell, value, problem, remedy):
    sheet = read(workbook([["name", "score"], ["Ada", cell]]))

    assert sheet.errors == [RowError(2, "score", "invalid", problem, value, remedy)]
    assert (sheet.rows[0].values, sheet.rows[0].bad) == ({"name": "Ada"}, {"score"})


@pytest.mark.parametrize(
    ("code", "is_percentage"), [("0%", True), ("0.00%", True), ('0" %"', False), ("0", False)]
)
def test_a_number_that_is_shown_as_a_percentage_is_none(code, is_percentage):
    made = Workbook()
    made.worksheets[0].append(["name", "score"])
    made.worksheets[0].append(["Ada", 0.45])
    made.worksheets[0]["B2"].number_format = code

    sheet = read(saved(made))

    fault = RowError(2, "score", "invalid", "is a percentage", "45%", PLAIN)
    assert sheet.errors == ([fault] if is_percentage else [])


def test_a_percentage_in_a_text_column_is_a_text():
    made = Workbook()
    made.worksheets[0].append(["name"])
    made.worksheets[0].append([0.125])
    made.worksheets[0]["A2"].number_format = "0.0%"

    assert values(saved(made)) == [{"name": "12.5%"}]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("31/05/2012", "2012-05-31"),
        ("5.31.2012", "2012-05-31"),
        ("04-04-2012", "2012-04-04"),
        ("05/06/2012", None),
        ("31/02/2012", None),
        ("40/50/2012", None),
        ("0/0/2012", None),
        ("12/13/0000", None),
        ("May 2012", None),
    ],
)
def test_a_date_is_told_how_to_be_written(text, meant):
    assert day_remedy(text) == (
        f"write it as year-month-day: {meant}" if meant else "write it as year-month-day, such as 2012-05-31"
    )


@pytest.mark.parametrize("stored", ["1e999", "-1e999"])
def test_an_infinite_number_is_an_error(stored):
    rows = row_xml("name", "score") + f"<row><c><v>5</v></c><c><v>{stored}</v></c></row>"

    assert [error.column for error in read(handmade(sheet_xml(rows))).errors] == ["score"]


@pytest.mark.parametrize(
    ("cell", "day"),
    [
        (date(2012, 5, 31), "2012-05-31"),
        (datetime(2012, 5, 31, 17, 30), "2012-05-31"),
        (date(1900, 3, 1), "1900-03-01"),
        (" 2012-05-31 ", "2012-05-31"),
        ("31/05/2012", "31/05/2012"),
    ],
)
def test_a_day_column_takes_dates_and_leaves_texts_to_be_validated(cell, day):
    assert values(workbook([["name", "born"], ["Ada", cell]])) == [{"name": "Ada", "born": day}]


@pytest.mark.parametrize(
    ("cell", "value"), [(41060, "41060"), (3.5, "3.5"), (True, "TRUE"), (time(12), "12:00:00")]
)
def test_a_cell_that_is_no_day_is_an_error(cell, value):
    assert read(workbook([["name", "born"], ["Ada", cell]])).errors == [
        RowError(2, "born", "invalid", "is no date", value, "write it as year-month-day, such as 2012-05-31")
    ]


def test_dates_of_the_old_macintosh_calendar_are_the_same_days():
    made = Workbook()
    made.epoch = CALENDAR_MAC_1904
    made.worksheets[0].append(["name", "born"])
    made.worksheets[0].append(["Ada", date(2012, 5, 31)])

    assert values(saved(made)) == [{"name": "Ada", "born": "2012-05-31"}]


def styles_xml(code):
    return (
        f'<styleSheet xmlns="{MAIN}"><numFmts><numFmt numFmtId="170" formatCode="{code}"/></numFmts>'
        '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/></cellXfs></styleSheet>'
    ).encode()


@pytest.mark.parametrize(
    ("style", "code", "is_date"),
    [
        (0, "0", False),
        (1, "0", True),
        (2, "dd/mm/yyyy", True),
        (2, "[$-409]mmmm d", True),
        (2, "0.00 &quot;days&quot;", False),
        (2, "[h]:mm", False),
        (9, "0", False),
    ],
)
def test_the_style_of_a_cell_says_whether_it_is_a_date(style, code, is_date):
    rows = row_xml("name", "born") + f'<row><c><v>1</v></c><c s="{style}"><v>41060</v></c></row>'

    sheet = read(handmade(sheet_xml(rows), styles=styles_xml(code)))

    assert (sheet.rows[0].values.get("born") == "2012-05-31") is is_date


def test_a_date_beyond_the_calendar_is_an_error():
    rows = row_xml("name", "born") + '<row><c><v>1</v></c><c s="1"><v>99999999</v></c></row>'

    assert [error.column for error in read(handmade(sheet_xml(rows), styles=styles_xml("0"))).errors] == [
        "born"
    ]


def test_texts_come_from_the_table_with_their_fonts_joined_and_their_hints_left_out():
    strings = strings_xml(
        "<si><t>name</t></si>"
        "<si><r><rPr><b/></rPr><t>Ada</t></r><r><t xml:space='preserve'> Obi</t></r>"
        "<rPh><t>hint</t></rPh></si>"
    )
    rows = '<row><c t="s"><v>0</v></c></row><row><c t="s"><v>1</v></c></row>'

    assert values(handmade(sheet_xml(rows), strings)) == [{"name": "Ada Obi"}]


def test_escaped_characters_are_read_unless_they_are_none():
    rows = row_xml("name") + row_xml("a_x0009_b_x005F_x0041_") + row_xml("_x0000_ _xD800_")

    assert [row["name"] for row in values(handmade(sheet_xml(rows)))] == ["a\tb_x0041_", "_x0000_ _xD800_"]


def test_rows_and_cells_without_numbers_count_on():
    rows = (
        row_xml("name") + '<row r="7"><c r="A7" t="inlineStr"><is><t>Ada</t></is></c></row>' + row_xml("Bisi")
    )

    assert [(row.number, row.values["name"]) for row in read(handmade(sheet_xml(rows))).rows] == [
        (7, "Ada"),
        (8, "Bisi"),
    ]


def test_details_are_read_by_label():
    made = Workbook()
    made.create_sheet("DETAILS")
    for row in ([" School ", "Queen's College"], ["Total points", 60], ["Blank"], [], [None, "no label"]):
        made.worksheets[1].append(row)

    assert read_details(open_workbook(BytesIO(saved(made)))) == {
        "school": "Queen's College",
        "total points": "60",
        "blank": "",
    }


def test_a_workbook_may_have_no_details():
    assert read_details(open_workbook(BytesIO(workbook([["name"]])))) is None


def test_fonts_and_comments_of_cells_do_not_matter():
    made = Workbook()
    made.worksheets[0].append(["name"])
    made.worksheets[0].append(["Ada"])
    made.worksheets[0]["A2"].font = Font(bold=True, color="FF00FF00")

    assert values(saved(made)) == [{"name": "Ada"}]


def test_every_error_of_the_first_200_bad_rows_is_reported():
    errors = [RowError(row, column, "invalid", "Bad.") for column in ("a", "b") for row in range(300, 1, -1)]

    with pytest.raises(InvalidRows) as refused:
        raise_row_errors(errors)

    reported = refused.value.errors["rows"]
    assert [error["row"] for error in reported] == [row for row in range(2, MAX_BAD_ROWS + 2) for _ in "ab"]
    assert reported[0] == {"row": 2, "column": "a", "code": "invalid", "message": "row 2: Bad."}
    assert refused.value.message.endswith(
        "There are 598 problems in 299 rows; those of the first are listed."
    )


def test_at_most_200_errors_of_a_row_are_reported():
    many = [RowError(1, f"column {number}", "unknown", "Bad.") for number in range(300)]

    with pytest.raises(InvalidRows) as refused:
        raise_row_errors([*many, RowError(2, "a", "invalid", "Bad.")])

    reported = refused.value.errors["rows"]
    assert [error["row"] for error in reported] == [*[1] * 200, 2]


def test_without_errors_nothing_is_raised():
    raise_row_errors([])


def test_a_message_names_the_cell_the_value_the_person_and_the_remedy():
    bad = [
        RowError(7, "score", "invalid", "is no number", "12,5", "write 12.5"),
        RowError(8, "score", "invalid", "is no number", "x" * 100 + "\n", "write one"),
        RowError(9, "admission_number", "required", "is missing"),
    ]

    with pytest.raises(InvalidRows) as refused:
        raise_row_errors(bad, letters={"score": "D"}, people={7: "Ngọzi Eze (QAC/2022/014)"})

    assert [error["message"] for error in refused.value.errors["rows"]] == [
        'D7: "12,5" is no number for Ngọzi Eze (QAC/2022/014): write 12.5',
        f'D8: "{"x" * 59}…" is no number: write one',
        "row 9: is missing",
    ]
    assert refused.value.message == "The sheet has rows that can't be accepted; nothing was stored."
