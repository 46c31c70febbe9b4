"""The facts of its download in a downloaded sheet."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO

import pytest
from openpyxl import load_workbook

from school_service.core.errors import Invalid
from school_service.sheets.columns import Column
from school_service.sheets.downloads import Download, download_details, read_download
from school_service.sheets.sheet_files import open_sheets
from school_service.sheets.sheet_reader import read_details
from school_service.sheets.sheet_writer import Table, write_workbook

MOMENT = datetime(2025, 9, 1, 8, 30, 0, 123456, UTC)


def sent(stored):
    shown, hidden = download_details(MOMENT, "Africa/Lagos", stored)
    table = Table("Scores", [Column("name")], [{"name": "Ada"}])
    return write_workbook([table], [("School", "Queen's College"), shown], hidden=hidden)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 10, 11])
def test_a_workbook_of_any_width_comes_back(width):
    """Of such different lengths that a part ends within a name, with a space, within a letter."""
    stored = {f"{' ' * width}Ọ{number} 😀_x0041_": [number, "an id"] for number in range(3000)}

    details = read_details(open_sheets(BytesIO(sent(stored))))

    assert len([label for label in details if label.startswith("stored then")]) > 3
    assert read_download(details) == Download("2025-09-01T08:30:00.123456+00:00", stored)


def test_the_moment_is_shown_by_the_clock_of_the_school_and_the_rest_is_hidden():
    sheet = load_workbook(BytesIO(sent({})))["Details"]

    assert [cell.value for cell in sheet[2]] == ["Downloaded", "2025-09-01 09:30:00 WAT"]
    assert [bool(sheet.row_dimensions[row].hidden) for row in (1, 2, 3)] == [False, False, True]


def test_a_sheet_without_it_was_not_downloaded():
    assert read_download({"school": "Queen's College"}) is None


def test_a_part_that_is_missing_is_noticed():
    _, hidden = download_details(MOMENT, "UTC", {f"QC {number}": 1 for number in range(5000)})
    details = {label.lower(): part for label, part in hidden}
    assert read_download(details) is not None

    del details["stored then 2"]

    with pytest.raises(Invalid):
        read_download(details)
