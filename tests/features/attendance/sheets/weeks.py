"""The sheet of a week's registers: downloaded, filled in, sent back."""

from __future__ import annotations

from datetime import date, timedelta
from io import BytesIO
from typing import Any

from openpyxl import Workbook
from werkzeug.test import TestResponse

from tests.client import ApiClient
from tests.factories import Factory
from tests.features.attendance.classes import Kept, today
from tests.features.scores.scoresheets.sheets import opened
from tests.sheets.workbooks import saved

STUDENT = ("admission_number", "first_name", "last_name")


class Week(Kept):
    """A class that is called twice a day, and the sheet of last week, whose days are all past."""

    def __init__(self, make: Factory, students: int = 3, **settings: Any) -> None:
        super().__init__(make, students, **{"parts": "HALF_DAYS", "weekdays": [1, 2, 3, 4, 5], **settings})
        self.monday = monday(back=1)

    def day(self, number: int) -> str:
        """A day of the week, from 0 for its Monday."""
        return str(self.monday + timedelta(days=number))

    def column(self, number: int, half: str = "AM") -> str:
        """The name of a column: of a day of the week and a half."""
        day = self.monday + timedelta(days=number)
        return f"{day:%a} {day.day} {day:%b} {half}".strip()

    def times(self) -> list[str]:
        """The columns of the week."""
        return [self.column(number, half) for number in range(5) for half in ("AM", "PM")]

    def download(self, api: ApiClient | None = None, **query: Any) -> TestResponse:
        """Download the sheet; `query` overrides parameters."""
        named = {"batch": self.batch, "week": str(self.monday), **query}
        return (api or self.api).get("/registers/download-sheet", query_string=named)

    def workbook(self, **query: Any) -> Workbook:
        """Download the sheet and open it."""
        return opened(self.download(**query))

    def upload(
        self, content: bytes, name: str = "week.xlsx", *, api: ApiClient | None = None, **query: Any
    ) -> TestResponse:
        """Upload a sheet; `query` overrides parameters."""
        return (api or self.api).post(
            "/registers/upload-sheet",
            query_string={"batch": self.batch, **query},
            data={"register_sheet": (BytesIO(content), name)},
            content_type="multipart/form-data",
        )

    def marks(self, number: int, part: str = "MORNING") -> dict[str, Any]:
        """The teacher's codes of a day, by admission number."""
        return self.codes(self.register(number, part))

    def register(self, number: int, part: str = "MORNING") -> Any:
        """A register of the week."""
        return self.api.ok(self.get(date=self.day(number), part=part))

    def mark(self, number: int, part: str = "MORNING", *, api: ApiClient | None = None, **body: Any) -> Any:
        """Mark a register of the week."""
        return self.put(date=self.day(number), part=part, api=api, **body)


def monday(back: int = 0) -> date:
    """The Monday of this week, or of so many weeks before."""
    day = today()
    return day - timedelta(days=day.weekday(), weeks=back)


def fill(workbook: Workbook, cells: dict[str, dict[str, Any]]) -> bytes:
    """Write codes into a downloaded sheet, by admission number and by column."""
    sheet = workbook["Register"]
    columns = {cell.value: cell.column for cell in sheet[1]}
    for row in sheet.iter_rows(min_row=2):
        for name, value in cells.get(row[0].value, {}).items():
            sheet.cell(row[0].row, columns[name]).value = value
    return saved(workbook)


def csv_of(workbook: Workbook) -> bytes:
    """The sheet as a spreadsheet program saves it with comma-separated values."""
    rows = workbook["Register"].iter_rows(values_only=True)
    return "\r\n".join(",".join(str(value or "") for value in row) for row in rows).encode()
