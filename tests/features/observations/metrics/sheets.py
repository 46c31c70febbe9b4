"""A class with scores of behaviour, and its metric sheets: downloaded, filled in, sent back."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from openpyxl import Workbook
from werkzeug.test import TestResponse

from school_service.seed import defaults
from tests.client import ApiClient
from tests.factories import Factory
from tests.features.scores.scoresheets.sheets import opened, sheet_of
from tests.sheets.workbooks import saved

AFFECTIVE, PSYCHOMOTOR = "AFFECTIVE", "PSYCHOMOTOR"
STUDENT = ("admission_number", "first_name", "last_name")
TRAITS = defaults.TRAITS[PSYCHOMOTOR]

Scores = Mapping[str, Any]


class Observed:
    """A batch with the students A/1 …, a term of its session, and a metric type: its sheets and records."""

    def __init__(
        self, make: Factory, students: int = 3, *, metric_type: str = PSYCHOMOTOR, traits: Any = TRAITS
    ) -> None:
        self.make, self.api = make, make.api
        self.metric_type, self.traits = metric_type, traits
        self.cohort = make.cohort()
        self.batch = self.cohort["id"]
        self.term = make.term({"id": self.cohort["session"]})
        made = [make.student(admission_number=f"A/{number}") for number in range(1, students + 1)]
        self.students = {student["admission_number"]: student["id"] for student in made}
        if made:
            make.enrolled(self.cohort, *made)

    def download(self, api: ApiClient | None = None, **query: Any) -> TestResponse:
        """Download the sheet to fill in; `query` overrides parameters, None leaves one out."""
        query = {"batchId": self.batch, "term": self.term["term"], "metric_type": self.metric_type, **query}
        return (api or self.api).get("/metrics/download-sheet", query_string=without_none(query))

    def workbook(self, **query: Any) -> Workbook:
        """Download the sheet to fill in and open it."""
        return opened(self.download(**query))

    def details(self, **other: Any) -> list[tuple[str, Any]]:
        """The details of a sheet of this class; `other` overrides by the label's first word."""
        pairs = [
            ("Batch ID", other.get("batch", self.batch)),
            ("Term ID", other.get("term", self.term["id"])),
            ("Metric type", other.get("metric", self.metric_type)),
        ]
        return [pair for pair in pairs if pair[1] is not None]

    def sheet(self, rows: Mapping[str, Scores], details: Any = None) -> bytes:
        """Make a sheet with the scores of students, by admission number and by trait; the others are blank."""
        lines = ((number, "Ada", "Eze", *map(scores.get, self.traits)) for number, scores in rows.items())
        return self.sheet_of(*lines, details=details)

    def sheet_of(self, *rows: Any, header: Any = None, details: Any = None) -> bytes:
        """Make a sheet with these rows as they are."""
        header = (*STUDENT, *self.traits) if header is None else header
        details = self.details() if details is None else details
        return sheet_of(*rows, header=header, details=details or None, title="Metrics")

    def upload(
        self,
        content: bytes | None,
        name: str = "metrics.xlsx",
        *,
        api: ApiClient | None = None,
        batch: Any = ...,
    ) -> TestResponse:
        """Upload a sheet; `batch` is the query's."""
        query = without_none({"batchId": self.batch if batch is ... else batch})
        form = {} if content is None else {"metric_sheet": (BytesIO(content), name)}
        return (api or self.api).post(
            "/metrics/upload-sheet", query_string=query, data=form, content_type="multipart/form-data"
        )

    def send(self, rows: Mapping[str, Scores], **options: Any) -> TestResponse:
        """Upload the scores of students, by admission number and by trait."""
        return self.upload(self.sheet(rows), **options)

    def records(self, batch: str | None = None) -> list[dict[str, Any]]:
        """List the records of the batch."""
        answer = self.api.get("/metrics", query_string={"batchId": batch or self.batch})
        return list(self.api.ok(answer))

    def scores(self) -> dict[str, dict[str, Any]]:
        """The scores of the term and type, by admission number."""
        own = (self.term["term"], self.metric_type)
        return {
            record["admission_number"]: record["metric_scores"]
            for record in self.records()
            if (record["term"], record["metric_type"]) == own
        }

    def log(self) -> list[tuple[str, Any, Any]]:
        """The audit log's entries of metrics, newest first."""
        answer = self.api.ok(self.api.get("/audit", query_string={"entity": "metric", "pageSize": 1000}))
        return [(change["action"], change["old"], change["new"]) for change in answer["data"]]


def fill(workbook: Workbook, scores: Mapping[str, Scores]) -> bytes:
    """Write scores into a downloaded sheet, by admission number and by trait."""
    sheet = workbook["Metrics"]
    columns = {cell.value: cell.column for cell in sheet[1]}
    for row in sheet.iter_rows(min_row=2):
        for trait, score in scores.get(row[0].value, {}).items():
            sheet.cell(row[0].row, columns[trait]).value = score
    return saved(workbook)


def by_sheet(scores: Scores, name: str = "metrics.xlsx") -> dict[str, Any]:
    """The audit log's values of scores that came by a sheet."""
    return {"score": scores, "source": "sheet", "file_name": name}


def without_none(query: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out None."""
    return {name: value for name, value in query.items() if value is not None}
