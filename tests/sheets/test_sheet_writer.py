"""Writing workbooks to be filled in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO

import pytest
from cachetools.keys import hashkey
from openpyxl import load_workbook

from school_service.sheets import workbook_writer
from school_service.sheets.columns import MAX_ROWS, CellType, Column, NumberRange, SuggestedValues
from school_service.sheets.sheet_reader import read_details, read_sheet
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.workbook_layout import CellStyle, ColumnRule, Page, SheetLayout, styled_alike
from school_service.sheets.workbook_writer import MAX_CACHED_BYTES, frame_of
from school_service.sheets.xlsx_reader import open_workbook
from tests.sheets.libreoffice import needs_libreoffice, saved_by_libreoffice
from tests.sheets.workbooks import parts_of

NAME = Column("name", locked=True, required=True, most=32_767)
SCORE = Column("score", CellType.NUMBER, rule=NumberRange(Decimal(0), Decimal("30.5")))
BORN = Column("born", CellType.DAY)
COLUMNS = (NAME, SCORE, BORN)
ROWS = [
    {"name": "Ada", "score": Decimal("27.50"), "born": date(2012, 5, 31)},
    {"name": "Bisi", "score": None},
]

TEXTS = [
    "=1+1",
    "+2",
    "-3",
    "@x",
    "=",
    '=HYPERLINK("http://localhost","x")',
    "=cmd|' /C calc'!A0",
    "\t=1+1",
    "'quoted",
    "#N/A",
    "#REF!",
    "007",
    "1e5",
    "2025-01-31",
    "TRUE",
    " spaces around ",
    "two\nlines",
    "a\rb\r\nc",
    "bell \x07 and \x1f and \x0b",
    "_x0041_ _x005F_",
    "\ufffe\uffff",
    "<b>&amp;</b>]]>",
    "Ìfẹ́ 数学 🧮 عربي",
    "a_x0007",
    "\"quoted\" 'twice'",
    "x" * 32_767,
]


def written(*tables, **options):
    return load_workbook(BytesIO(write_workbook(tables, **options)))


def texts_back(texts):
    content = write_workbook([Table("Scores", [NAME], [{"name": text} for text in texts])])
    return content, [
        row.values["name"] for row in read_sheet(open_workbook(BytesIO(content)), "Scores", [NAME]).rows
    ]


def test_a_written_workbook_is_read_back():
    content = write_workbook([Table("Scores", COLUMNS, ROWS)])

    rows = read_sheet(open_workbook(BytesIO(content)), "Scores", COLUMNS).rows

    assert [(row.number, row.values) for row in rows] == [
        (2, {"name": "Ada", "score": Decimal("27.5"), "born": "2012-05-31"}),
        (3, {"name": "Bisi"}),
    ]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_stays_the_text_it_is(text):
    content, back = texts_back([text])

    assert back == [text]
    cell = load_workbook(BytesIO(content))["Scores"]["A2"]
    assert cell.data_type == "s"
    assert b"<f>" not in parts_of(content)["xl/worksheets/sheet1.xml"]
    assert cell.number_format == "@"


@pytest.mark.parametrize("text", ["=1+1", "+2", "-3", "@x"])
def test_a_text_that_looks_like_a_formula_stays_text_when_it_is_edited(text):
    assert written(Table("Scores", [NAME], [{"name": text}]))["Scores"]["A2"].quotePrefix


def test_no_text_of_a_workbook_becomes_a_formula():
    made = written(Table("Scores", [Column("=1+1")], [{"=1+1": "x"}]), details=[("=2+2", "=3+3")])

    assert [(cell.value, cell.data_type) for row in made["Details"] for cell in row] == [
        ("=2+2", "s"),
        ("=3+3", "s"),
    ]
    assert made["Scores"]["A1"].data_type == "s"


def test_the_header_is_bold_frozen_and_repeated_on_each_page():
    sheet = written(Table("Scores", COLUMNS, ROWS))["Scores"]

    assert [cell.value for cell in sheet[1]] == ["name", "score", "born"]
    assert all(cell.font.b for cell in sheet[1])
    assert sheet.freeze_panes == "B2"
    assert sheet.print_title_rows == "$1:$1"


def test_beside_a_single_column_to_fill_in_no_column_is_frozen():
    assert written(Table("Scores", [NAME, SCORE], ROWS))["Scores"].freeze_panes == "A2"
    assert written(Table("Scores", [SCORE, BORN], ROWS))["Scores"].freeze_panes == "A2"


def test_a_wide_sheet_is_printed_in_landscape_with_narrow_margins():
    wide = [NAME, *(Column(f"trait {number}", width=20) for number in range(6))]

    portrait, landscape = (written(Table("Scores", columns))["Scores"] for columns in (COLUMNS, wide))

    assert (portrait.page_setup.orientation, landscape.page_setup.orientation) == ("portrait", "landscape")
    assert landscape.page_margins.left < portrait.page_margins.left


@pytest.mark.parametrize("name", ["x" * 120, "a\x01b"])
def test_any_name_of_a_column_fits_excels_message(name):
    (rule,) = written(Table("Scores", [Column(name, rule=SCORE.rule)]))[
        "Scores"
    ].data_validations.dataValidation

    # Longer than this, Excel takes the workbook for broken.
    assert 0 < len(rule.errorTitle) <= 32


def test_the_header_is_dark_where_something_has_to_be_filled_in():
    columns = [NAME, Column("typed", required=True), SCORE]

    locked, to_fill, free = (cell.fill.fgColor.rgb for cell in written(Table("Scores", columns))["Scores"][1])

    assert locked == free != to_fill


def test_columns_are_as_wide_as_their_texts_within_reason():
    rows = [{"name": "x" * 30, "score": Decimal(1)}, {"name": "y" * 500}]

    short = written(Table("Scores", COLUMNS, rows[:1]))["Scores"].column_dimensions
    sheet = written(Table("Scores", COLUMNS, rows))["Scores"]

    assert 30 < short["A"].width < 40
    assert 5 < short["B"].width < 15
    assert sheet.column_dimensions["A"].width == 60
    assert sheet["A3"].alignment.wrap_text
    assert sheet.row_dimensions[3].height > 100


def test_locked_columns_are_locked_and_the_others_are_not():
    sheet = written(Table("Scores", COLUMNS, ROWS))["Scores"]

    assert sheet.protection.sheet
    assert [cell.protection.locked for cell in sheet[2]] == [True, False, False]
    assert [cell.protection.locked for cell in sheet[3]] == [True, False, False]


def test_a_sheet_without_locked_columns_is_not_protected():
    assert not written(Table("Scores", [SCORE, BORN]))["Scores"].protection.sheet


def test_excel_lets_no_other_numbers_be_typed():
    whole = Column("trait", CellType.NUMBER, rule=NumberRange(Decimal(1), Decimal(5), whole=True))
    sheet = written(Table("Scores", [SCORE, whole], [{"score": Decimal(1)}] * 4))["Scores"]

    rules = [
        (str(rule.sqref), rule.type, rule.operator, rule.formula1, rule.formula2, rule.showErrorMessage)
        for rule in sheet.data_validations.dataValidation
    ]
    assert rules == [
        ("A2:A5", "decimal", "between", "0", "30.5", True),
        ("B2:B5", "whole", "between", "1", "5", True),
    ]


def test_days_are_to_be_typed_as_dates_and_values_are_suggested_without_force():
    gender = Column("gender", rule=SuggestedValues(("FEMALE", "MALE")))
    sheet = written(Table("Students", [BORN, gender]))["Students"]

    day, suggested = sheet.data_validations.dataValidation
    assert (str(day.sqref), day.type, day.allow_blank) == (f"A2:A{MAX_ROWS + 1}", "date", True)
    assert (suggested.type, suggested.formula1, suggested.showErrorMessage) == (
        "list",
        '"FEMALE,MALE"',
        False,
    )


def test_empty_columns_have_the_formats_of_their_types():
    columns = written(Table("Students", COLUMNS))["Students"].column_dimensions

    assert [columns[letter].number_format for letter in "ABC"] == ["@", "General", "yyyy-mm-dd"]


def test_details_are_read_back():
    details = [("School", "Queen's College, Yaba"), ("Assessment", "=1+1"), ("Total points", "30")]

    content = write_workbook([Table("Scores", COLUMNS, ROWS)], details=details)

    assert read_details(open_workbook(BytesIO(content))) == {
        "school": "Queen's College, Yaba",
        "assessment": "=1+1",
        "total points": "30",
    }
    assert load_workbook(BytesIO(content)).sheetnames == ["Scores", "Details"]


def test_the_same_records_give_the_same_bytes(monkeypatch):
    def write():
        return write_workbook([Table("Scores", COLUMNS, ROWS)], details=[("School", "Queen's")])

    first = write()
    monkeypatch.setattr("time.localtime", lambda *_: (2031, 7, 1, 12, 30, 15, 0, 182, 0))

    assert write() == first
    # Neither does the frame, which another process may have made at another time.
    properties = load_workbook(BytesIO(first)).properties
    assert (properties.created, properties.modified) == (datetime(2000, 1, 1), datetime(2000, 1, 1))


def test_rows_are_read_back_by_openpyxl_with_the_styles_of_their_columns():
    rows = [
        {"name": "Ada", "score": Decimal("27.50"), "born": date(2012, 5, 31)},
        {"name": "=1+1", "score": 0, "born": "31/05/2012"},
        {"name": " x ", "score": Decimal("-0.01"), "born": None},
        {"name": "", "score": None},
        {"name": date(2025, 1, 31), "score": 10**15},
    ]

    sheet = written(Table("Scores", COLUMNS, rows))["Scores"]

    assert sheet.dimensions == "A1:C6"
    assert [[cell.value for cell in row] for row in sheet.iter_rows(min_row=2)] == [
        ["Ada", 27.5, datetime(2012, 5, 31)],
        ["=1+1", 0, "31/05/2012"],
        [" x ", -0.01, None],
        [None, None, None],
        [datetime(2025, 1, 31), 10**15, None],
    ]
    assert [[cell.number_format for cell in row] for row in sheet.iter_rows(min_row=2)] == [
        ["@", "General", "yyyy-mm-dd"],
        ["@", "General", "@"],
        ["@", "General", "yyyy-mm-dd"],
        ["@", "General", "yyyy-mm-dd"],
        ["yyyy-mm-dd", "General", "yyyy-mm-dd"],
    ]
    assert [sheet[cell].quotePrefix for cell in ("A2", "A3")] == [False, True]
    assert [sheet[cell].alignment.wrap_text for cell in ("A2", "B2")] == [True, None]
    assert [sheet[cell].fill.fgColor.rgb for cell in ("A2", "B2")] == ["FFF2F2F2", "00000000"]


@needs_libreoffice
@pytest.mark.program
def test_libreoffice_reads_a_written_workbook(tmp_path):
    texts = [text for text in TEXTS if "\r" not in text and "\v" not in text]
    rows = [{"name": text, "score": Decimal(n), "born": date(2012, 5, 31)} for n, text in enumerate(texts)]
    details = [("School", "Queen's <College> & co."), ("Assessment", "=1+1")]

    saved = saved_by_libreoffice(write_workbook([Table("Scores", COLUMNS, rows)], details), tmp_path)

    read = read_sheet(open_workbook(BytesIO(saved)), "Scores", COLUMNS)
    assert read.errors == []
    assert [row.values for row in read.rows] == [
        {"name": row["name"], "score": row["score"], "born": "2012-05-31"} for row in rows
    ]
    assert read_details(open_workbook(BytesIO(saved))) == {
        "school": "Queen's <College> & co.",
        "assessment": "=1+1",
    }
    sheet = load_workbook(BytesIO(saved))["Scores"]
    assert sheet.protection.sheet
    assert [cell.protection.locked for cell in sheet[2]] == [True, False, False]
    assert [(str(rule.sqref), rule.type) for rule in sheet.data_validations.dataValidation] == [
        (f"B2:B{len(rows) + 1}", "decimal"),
        (f"C2:C{len(rows) + 1}", "date"),
    ]


# The frame, which openpyxl makes once for a layout.


def sheets_of(content):
    workbook = load_workbook(BytesIO(content))
    return {
        sheet.title: (
            [[cell.value for cell in row] for row in sheet.iter_rows()],
            [sheet.column_dimensions[letter].width for letter in "AB"],
            [str(rule.sqref) for rule in sheet.data_validations.dataValidation],
            sheet.page_setup.orientation,
        )
        for sheet in workbook
    }


def test_workbooks_of_one_layout_share_nothing_but_the_frame():
    def write(name, rows):
        return write_workbook([Table("Scores", [NAME, SCORE], [{"name": name}] * rows)], [("School", name)])

    first = sheets_of(write("Ada", 1))
    other = sheets_of(write("x" * 30, 3))

    assert first == {
        "Scores": ([["name", "score"], ["Ada", None]], [10, 10], ["B2"], "portrait"),
        "Details": ([["School", "Ada"]], [8, 5], [], "portrait"),
    }
    assert other == {
        "Scores": ([["name", "score"], *[["x" * 30, None]] * 3], [32, 10], ["B2:B4"], "portrait"),
        "Details": ([["School", "x" * 30]], [8, 32], [], "portrait"),
    }
    assert sheets_of(write("Ada", 1)) == first


def test_the_width_of_the_texts_decides_how_the_page_lies_each_time():
    columns = [Column(name) for name in "ab"]

    for text, lies in (("x", "portrait"), ("x" * 60, "landscape"), ("x", "portrait")):
        made = write_workbook([Table("Scores", columns, [{"a": text, "b": text}])], [(text, text)])

        assert [orientation for *_, orientation in sheets_of(made).values()] == [lies, lies]


def test_openpyxl_makes_a_frame_once(monkeypatch):
    made = []
    make = workbook_writer.Workbook
    monkeypatch.setattr(workbook_writer, "Workbook", lambda: made.append(1) or make())
    column = Column("made once", rule=SCORE.rule)

    first, again = (
        write_workbook([Table("Scores", [column], [{"made once": Decimal(1)}])]) for _ in range(2)
    )
    write_workbook([Table("Other", [column])])

    assert first == again
    assert len(made) == 2


def test_each_rule_is_written_with_its_own_numbers():
    for maximum in ("20", "20.00", "200", "20"):
        rule = NumberRange(Decimal("0.00"), Decimal(maximum))
        column = Column("score", CellType.NUMBER, rule=rule)

        (validation,) = written(Table("Scores", [column]))["Scores"].data_validations.dataValidation

        assert (validation.formula1, validation.formula2) == ("0.00", maximum)
        assert validation.error == f"Type a number from 0.00 to {maximum}."


@pytest.mark.release
def test_the_cache_of_frames_is_bounded_by_bytes():
    def layouts(number):
        styles = tuple(styled_alike(CellStyle(f"0.{'0' * number}", size=size)) for size in range(1, 500))
        rules = tuple(ColumnRule(column, "whole", "between", "1", "5") for column in range(1, 500))
        return (SheetLayout("Scores", (styles,), Page(landscape=False), header=1, rules=rules),)

    first = layouts(0)
    assert frame_of(first) is frame_of(first)
    for number in range(1, 20):
        frame_of(layouts(number))

    frames = workbook_writer._frames
    assert MAX_CACHED_BYTES / 2 < frames.currsize <= MAX_CACHED_BYTES
    assert hashkey(first) not in frames
    assert hashkey(layouts(19)) in frames


def test_many_at_once_get_each_their_own_workbook():
    def write(number):
        column = Column(f"at once {number % 3}")
        rows = [{column.name: f"text {number}"}] * (number + 1)
        return write_workbook([Table("Scores", [column], rows)], [("School", f"{number}")])

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(write, range(48)))

    assert made == [write(number) for number in range(48)]
    assert len(set(made)) == 48
