"""An arm with a subject and its assessments of a term, whose marks come and go by sheet and by list."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

from openpyxl import Workbook, load_workbook
from werkzeug.test import TestResponse

from tests.client import ApiClient
from tests.factories import Factory
from tests.sheets.workbooks import saved


class Marked:
    """Four students of an arm, A/1 to A/4; CA1 and CA2 of 20 points, an exam of 60.

    In CA1 A/1 has 12.5 and A/2 is absent.
    """

    PEOPLE = (("Ngọzi", "Abara"), ("Ƙwai", "Bello"), ("Adé", "Cole"), ("Chi", "Duru"))
    COLUMNS = ("CA1 (20)", "CA2 (20)", "EX (60)")

    def __init__(self, make: Factory) -> None:
        self.make, self.api = make, make.api
        self.taught = make.taught(0)
        self.subject, self.term, self.cohort = self.taught.subject, self.taught.term, self.taught.cohort
        self.batch = self.cohort["id"]
        self.assessments = [
            make.assessment(
                self.subject, self.term, category=category, abbreviation=short, total_points=points
            )
            for category, short, points in (("CA1", "CA1", 20), ("CA2", "CA2", 20), ("EXAM", "EX", 60))
        ]
        made = [
            make.student(first_name=first, last_name=last, middle_name="Ọlá", admission_number=f"A/{number}")
            for number, (first, last) in enumerate(self.PEOPLE, 1)
        ]
        self.students = {student["admission_number"]: student["id"] for student in made}
        make.enrolled(self.cohort, *made)
        self.entry = make.entry(self.assessments[0], self.students["A/1"], self.batch, 12.5)
        self.api.ok(make.absences(self.assessments[0], {self.students["A/2"]: "ABSENT"}))

    def path(self, what: str = "mark-sheet", **query: Any) -> str:
        asked = {"batch": self.batch, "term": "FIRST", **query}
        return f"/cohort-subjects/{self.subject['id']}/{what}?{urlencode(asked)}"

    def download(self, api: ApiClient | None = None) -> Workbook:
        answer = (api or self.api).get(self.path())
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return load_workbook(BytesIO(answer.data))

    def send(
        self, content: bytes | Workbook, api: ApiClient | None = None, name: str = "marks.xlsx", **query: Any
    ) -> TestResponse:
        given = saved(content) if isinstance(content, Workbook) else content
        form = {"mark_sheet": (BytesIO(given), name)}
        return (api or self.api).post(self.path(**query), data=form, content_type="multipart/form-data")

    def marks(self) -> dict[str, list[Any]]:
        """The marks of each student, in the order of the assessments."""
        marks: dict[str, list[Any]] = {}
        for score in self.api.ok(self.api.get(self.path("scores")))["scores"]:
            mark = score["absence"] if score["score"] is None else score["score"]
            marks.setdefault(score["student"]["admission_number"], []).append(mark)
        return marks

    def put(self, *records: Mapping[str, Any], api: ApiClient | None = None, **query: Any) -> TestResponse:
        return (api or self.api).put(self.path("scores", **query), list(records))

    def record(self, number: str, column: int, **fields: Any) -> dict[str, Any]:
        return {"student": self.students[number], "assessment": self.assessments[column]["id"], **fields}

    def logged(self, entity: str) -> list[tuple[Any, Any, Any]]:
        entries = self.api.ok(self.api.get("/audit", query_string={"entity": entity, "pageSize": 200}))[
            "data"
        ]
        return [(change["action"], change["old"], change["new"]) for change in entries]


MARKS = {"A/1": [12.5, None, None], "A/2": ["ABSENT", None, None], "A/3": [None] * 3, "A/4": [None] * 3}
"""The marks of the four in the beginning."""


def fill(workbook: Workbook, marks: Mapping[str, Mapping[str, Any]]) -> Workbook:
    """Write marks into a sheet: by admission number and heading."""
    sheet = workbook["Marks"]
    columns = {cell.value: cell.column for cell in sheet[1]}
    for row in sheet.iter_rows(min_row=2):
        for heading, mark in marks.get(row[1].value, {}).items():
            sheet.cell(row[0].row, columns[heading]).value = mark
    return workbook


def counts(answer: TestResponse) -> tuple[int, ...]:
    """Give the counts of an upload: rows, created, updated, unchanged, blank."""
    assert answer.status_code == 200, answer.get_data(as_text=True)
    done = answer.get_json()
    return tuple(done[name] for name in ("rows", "created", "updated", "unchanged", "blank"))


def refused(answer: TestResponse, status: int = 422) -> list[tuple[int, str, str]]:
    """Give where an upload or a list was refused: row, column, code."""
    assert answer.status_code == status, answer.get_data(as_text=True)
    return [(bad["row"], bad["column"], bad["code"]) for bad in answer.get_json()["errors"]["rows"]]


def totals(answer: TestResponse) -> list[tuple[Any, ...]]:
    """Give the totals of an answer: column, scored, sum, absent, excused, blank."""
    assert answer.status_code == 200, answer.get_data(as_text=True)
    names = ("column", "scored", "sum", "absent", "excused", "blank")
    return [tuple(total[name] for name in names) for total in answer.get_json()["totals"]]
