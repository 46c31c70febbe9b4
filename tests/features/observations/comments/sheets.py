"""A class with comments of terms, and its comment sheets: downloaded, filled in, sent back."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from openpyxl import Workbook
from werkzeug.test import TestResponse

from tests.client import ApiClient
from tests.factories import Factory
from tests.features.scores.scoresheets.sheets import opened, sheet_of
from tests.sheets.workbooks import saved

HEADER = (
    "admission_number",
    "first_name",
    "last_name",
    "times_present",
    "form_teacher_comment",
    "principal_comment",
)


class Said:
    """A batch with the students C/1 …, and a term of its session: its comments and their sheets."""

    def __init__(self, make: Factory, students: int = 3) -> None:
        self.make, self.api = make, make.api
        self.cohort = make.cohort()
        self.batch = self.cohort["id"]
        self.term = make.term({"id": self.cohort["session"]})
        made = [make.student(admission_number=f"C/{number}") for number in range(1, students + 1)]
        self.students = {student["admission_number"]: student["id"] for student in made}
        if made:
            make.enrolled(self.cohort, *made)

    def get(self, api: ApiClient | None = None, **query: Any) -> TestResponse:
        """List the comments; `query` overrides parameters."""
        named = {"batch": self.batch, "term": "FIRST", **query}
        return (api or self.api).get("/comments", query_string=named)

    def put(self, *comments: Any, api: ApiClient | None = None, **body: Any) -> TestResponse:
        """Enter comments; `body` overrides members."""
        named = {"batch": self.batch, "term": "FIRST", "comments": list(comments), **body}
        return (api or self.api).put("/comments", named)

    def comments_by_number(self, **query: Any) -> dict[str, tuple[Any, ...]]:
        """The comments of each student, by admission number."""
        return {
            comment["student"]["admission_number"]: tuple(comment[name] for name in HEADER[3:])
            for comment in self.api.ok(self.get(**query))
        }

    def opened(self, times: int | None) -> None:
        """Set how often school opened in the term."""
        self.api.ok(self.api.put(f"/terms/{self.term['id']}/calendar", {"times_opened": times}))

    def download(self, api: ApiClient | None = None, **query: Any) -> TestResponse:
        """Download the sheet to fill in; `query` overrides parameters."""
        named = {"batch": self.batch, "term": "FIRST", **query}
        return (api or self.api).get("/comments/download-sheet", query_string=named)

    def workbook(self, **query: Any) -> Workbook:
        """Download the sheet to fill in and open it."""
        return opened(self.download(**query))

    def sheet(self, *rows: Any, header: Any = HEADER, details: Any = None) -> bytes:
        """Make a sheet with these rows: an admission number and the cells after the names; the rest is blank."""
        lines = ((number, "Chidinma", "Bàlógun", *cells) for number, *cells in rows)
        named = [("Batch ID", self.batch), ("Term ID", self.term["id"])]
        return sheet_of(
            *lines, header=header, details=named if details is None else details, title="Comments"
        )

    def upload(
        self, content: bytes, name: str = "comments.xlsx", *, api: ApiClient | None = None, **query: Any
    ) -> TestResponse:
        """Upload a sheet; `query` overrides parameters."""
        return (api or self.api).post(
            "/comments/upload-sheet",
            query_string={"batch": self.batch, **query},
            data={"comments_sheet": (BytesIO(content), name)},
            content_type="multipart/form-data",
        )

    def send(self, *rows: Any, **options: Any) -> TestResponse:
        """Upload a sheet with these rows."""
        return self.upload(self.sheet(*rows), **options)

    def log(self) -> list[tuple[str, str, Any, Any]]:
        """The audit log's entries of comments, the first first: action, admission number, old and new."""
        names = {student: number for number, student in self.students.items()}
        answer = self.api.ok(self.api.get("/audit", query_string={"entity": "comment", "pageSize": 1000}))
        return [
            (change["action"], names[change["entity_id"]], change["old"], change["new"])
            for change in reversed(answer["data"])
        ]


def fill(workbook: Workbook, cells: dict[str, dict[str, Any]]) -> bytes:
    """Write cells into a downloaded sheet, by admission number and by column."""
    sheet = workbook["Comments"]
    columns = {cell.value: cell.column for cell in sheet[1]}
    for row in sheet.iter_rows(min_row=2):
        for name, value in cells.get(row[0].value, {}).items():
            sheet.cell(row[0].row, columns[name]).value = value
    return saved(workbook)
