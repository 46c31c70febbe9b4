"""Writing workbooks that are read and printed."""

from __future__ import annotations

from decimal import Decimal
from io import BytesIO

from openpyxl import load_workbook

from school_service.sheets import workbook_writer
from school_service.sheets.report_writer import Report, ReportColumn, write_report
from school_service.sheets.workbook_layout import Marked
from school_service.sheets.workbook_writer import LINE_HEIGHT
from tests.sheets.test_sheet_writer import TEXTS

NAME = ReportColumn("Name", least=10, most=20, text=True)
SCORE = ReportColumn("=Score", places=1)


def opened(*reports):
    return load_workbook(BytesIO(write_report(reports)))


def report(*rows, **options):
    return Report("Report", ("A title",), (NAME, SCORE), rows, **options)


def test_texts_stay_texts_and_figures_figures():
    texts = [text for text in TEXTS if len(text) < 1000]
    sheet = opened(report(*([text, Decimal("12.50")] for text in texts)))["Report"]

    assert [sheet.cell(number, 1).data_type for number in range(3, len(texts) + 3)] == ["s"] * len(texts)
    assert sheet["A3"].value == texts[0]
    assert (sheet["B2"].value, sheet["B2"].data_type) == ("=Score", "s")
    assert (sheet["B3"].value, sheet["B3"].number_format) == (12.5, "0.0")


def test_only_a_text_that_looks_like_a_formula_has_the_sign_that_keeps_it_a_text_when_it_is_edited():
    sheet = opened(report(["=1+1", Decimal("12.50")], ["Ada", 7]))["Report"]

    assert {cell.coordinate for row in sheet.iter_rows() for cell in row if cell.quotePrefix} == {"B2", "A3"}


def test_a_marked_number_is_bold_italic_and_red():
    sheet = opened(report(["Ada", Marked(Decimal("39.5"))], ["Bisi", 7], ["Chi", None]))["Report"]

    font = sheet["B3"].font
    assert (sheet["B3"].value, font.b, font.i, font.color.rgb) == (39.5, True, True, "FF9C0006")
    assert (sheet["B4"].value, sheet["B4"].number_format, sheet["B4"].font.b) == (7, "0", False)
    assert sheet["B5"].value is None


def test_a_row_is_as_high_as_its_longest_text_needs():
    sheet = opened(report(["Ada", 1], ["Ọláńrewájú " * 3, 1], ["x" * 50, 1]))["Report"]

    heights = [sheet.row_dimensions[number].height for number in (3, 4, 5)]
    assert heights == [None, 3 * LINE_HEIGHT, 3 * LINE_HEIGHT]
    assert sheet.column_dimensions["A"].width == 20


def test_openpyxl_makes_the_frame_of_reports_with_the_same_columns_once(monkeypatch):
    made = []
    make = workbook_writer.Workbook
    monkeypatch.setattr(workbook_writer, "Workbook", lambda: made.append(1) or make())
    columns = (ReportColumn("once", places=7), ReportColumn("more than once", text=True))

    for rows in ([[Decimal(1), "Ada"]], [[Decimal(2), "Bisi"], [None, "Chi"]]):
        opened(Report("Made once", ("A title",), columns, rows))

    assert len(made) == 1


def test_the_header_of_pages_holds_any_text():
    long = "Queen's & King's <College> " * 20
    sheet = opened(report(page_header=(long, "&right")))["Report"]

    assert sheet.oddHeader.left.text.startswith("Queen's && King's <College>")
    assert len(sheet.oddHeader.left.text) <= 125
    assert sheet.oddHeader.right.text == "&&right"


def test_sheets_of_one_layout_do_not_share_their_values():
    first, second = write_report([report(["Ada", 1])]), write_report([report(["Bisi", 2])])

    assert load_workbook(BytesIO(second))["Report"]["A3"].value == "Bisi"
    assert write_report([report(["Ada", 1])]) == first
