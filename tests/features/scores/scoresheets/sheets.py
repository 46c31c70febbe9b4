"""Score sheets as a teacher has them: downloaded, filled in, sent back."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from openpyxl import Workbook, load_workbook
from werkzeug.test import TestResponse

from tests.client import ApiClient
from tests.sheets.workbooks import saved

HEADER = ("admission_number", "first_name", "last_name", "score")
DOWNLOADED = [("Downloaded", "a moment"), ("Stored then 1", "a document")]
"""The last rows of Details, as `without_times` shows them."""


def download(api: ApiClient, assessment: dict[str, Any]) -> Workbook:
    """Download the score sheet of an assessment and open it."""
    return opened(api.get(f"/assessments/{assessment['id']}/download-sheet"))


def opened(answer: TestResponse) -> Workbook:
    """Open the workbook that was answered; a score sheet without its serial numbers, as the release before wrote it."""
    workbook = as_answered(answer)
    if "Scores" in workbook.sheetnames:
        (place,) = (cell.column for cell in workbook["Scores"][1] if cell.value == "S/N")
        workbook["Scores"].delete_cols(place)
    return workbook


def as_answered(answer: TestResponse) -> Workbook:
    """Open the workbook that was answered."""
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return load_workbook(BytesIO(answer.data))


def without_times(details: Any) -> list[tuple[Any, ...]]:
    """Give the rows of Details, with words for the moment of the download, and for the values stored then."""
    rows = [tuple(cell.value for cell in row) for row in details.iter_rows()]
    words = {"Downloaded": "a moment", "Stored then 1": "a document"}
    return [(label, words.get(label, value)) for label, value in rows]


def fill(workbook: Workbook, scores: dict[str, Any]) -> bytes:
    """Write scores into a downloaded sheet, by admission number."""
    for row in workbook["Scores"].iter_rows(min_row=2):
        if row[0].value in scores:
            row[3].value = scores[row[0].value]
    return saved(workbook)


def sheet_of(
    *rows: Sequence[Any], header: Sequence[Any] = HEADER, details: Any = None, title: str = "Scores"
) -> bytes:
    """Make a score sheet from nothing; `details` are pairs for the sheet Details."""
    workbook = Workbook()
    sheet = workbook.worksheets[0]
    sheet.title = title
    for row in (header, *rows):
        sheet.append(row)
    if details is not None:
        about = workbook.create_sheet("Details")
        for pair in details:
            about.append(pair)
    return saved(workbook)


def upload(
    api: ApiClient, assessment: dict[str, Any], content: bytes, name: str = "scores.xlsx"
) -> TestResponse:
    """Upload a score sheet."""
    form = {"scoresheet": (BytesIO(content), name)}
    return api.post(f"/assessments/{assessment['id']}/scoresheet", data=form)


def counts(answer: TestResponse) -> tuple[int, ...]:
    """Give the counts of an upload: rows, created, updated, unchanged, blank."""
    assert answer.status_code == 200, answer.get_data(as_text=True)
    done = answer.get_json()
    return tuple(done[name] for name in ("rows", "created", "updated", "unchanged", "blank"))


def bad_rows(answer: TestResponse) -> list[tuple[int, str, str]]:
    """Give where an upload was refused: row, column, code."""
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return [(bad["row"], bad["column"], bad["code"]) for bad in answer.get_json()["errors"]["rows"]]


def scores(api: ApiClient, subject: dict[str, Any]) -> dict[str, list[float]]:
    """Show the score sheet of a cohort subject: scores by admission number."""
    shown = api.ok(api.get(f"/scoresheets/{subject['id']}/scoresheet"))
    return {
        line["student"]["admission_number"]: [entry["score"] for entry in line["gradebooks"]]
        for line in shown
    }
