"""Sheets that were downloaded by release 0.3.0 and are uploaded to this one, of a school restored from its backup."""

from __future__ import annotations

from io import BytesIO
from uuid import uuid4

import pytest
from openpyxl import load_workbook

from tenants.backups.restore import restore
from tests.client import ApiClient
from tests.features.results.golden.released import backup_of
from tests.features.results.publications.test_restored import token_of
from tests.releases.released_sheets import sheets_of
from tests.sheets.workbooks import saved

RELEASE = "0.3.0"


@pytest.fixture(scope="module")
def paths(app, tenancy, document):
    """The client of the restored school, its results opened again, and the path and field to upload each sheet by."""
    school = restore(tenancy, backup_of(RELEASE), school_id=uuid4(), name="Released School")
    api = ApiClient(app, document, token_of(app, tenancy, school), school.id)
    for made in api.ok(api.get("/publications?pageSize=50"))["data"]:
        if made["state"] == "PUBLISHED":
            api.ok(api.post(f"/publications/{made['id']}/reopening", {"reason": "A score was wrong"}))
    for subject in api.ok(api.get("/cohort-subjects?pageSize=50"))["data"]:
        if subject["subject"] == details("scores")["Subject"]:
            body = {"term": "SECOND", "reason": "A score was wrong"}
            api.ok(api.post(f"/cohort-subjects/{subject['id']}/reopening", body))
    batch = details("comments")["Batch ID"]
    return api, {
        "scores": (f"/assessments/{details('scores')['Assessment ID']}/scoresheet", "scoresheet"),
        "comments": (f"/comments/upload-sheet?batch={batch}", "comments_sheet"),
        "traits": (f"/metrics/upload-sheet?batchId={batch}", "metric_sheet"),
        "register": (f"/registers/upload-sheet?batch={batch}", "register_sheet"),
        "import": ("/students/import-sheet", "sheet"),
    }


def details(name):
    sheet = load_workbook(sheets_of(RELEASE) / f"{name}.xlsx")["Details"]
    return dict(sheet.iter_rows(max_col=2, values_only=True))


@pytest.fixture
def upload(paths):
    api, of = paths

    def send(name, content):
        path, field = of[name]
        data = {field: (BytesIO(content), f"{name}.xlsx")}
        return api.ok(api.post(path, data=data, content_type="multipart/form-data"))

    return send


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("scores", {"rows": 7, "created": 0, "updated": 0, "unchanged": 5, "blank": 2}),
        ("comments", {"rows": 4, "created": 0, "updated": 0, "unchanged": 2, "blank": 2}),
        ("traits", {"rows": 4, "created": 0, "updated": 0, "unchanged": 4, "blank": 0}),
        ("register", {"rows": 4, "created": 0, "updated": 0, "unchanged": 0, "blank": 4}),
    ],
)
def test_a_sheet_downloaded_by_the_release_before_is_taken_as_it_is(upload, name, counts):
    assert upload(name, (sheets_of(RELEASE) / f"{name}.xlsx").read_bytes()) == counts


@pytest.mark.parametrize(
    ("name", "cells", "counted"),
    [
        ("scores", {"D3": 9.5}, {"updated": 1}),
        ("comments", {"D3": 90, "E3": "Reads well."}, {"updated": 1}),
        ("traits", {"D3": 2}, {"updated": 1}),
        ("register", {"D2": "P", "D3": "L"}, {"created": 2}),
    ],
)
def test_a_sheet_downloaded_by_the_release_before_is_taken_filled_in(upload, name, cells, counted):
    workbook = load_workbook(sheets_of(RELEASE) / f"{name}.xlsx")
    for cell, value in cells.items():
        workbook.worksheets[0][cell] = value

    counts = upload(name, saved(workbook))

    assert {what: counts[what] for what in ("created", "updated") if counts[what]} == counted


def test_students_are_imported_by_the_sheet_of_the_release_before(upload):
    workbook = load_workbook(sheets_of(RELEASE) / "import.xlsx")
    row = {
        "first_name": "Sade",
        "last_name": "Ojo",
        "admission_number": "R/100",
        "guardian_full_name": "Ife Ojo",
    }
    for cell in workbook["Students"][1]:
        workbook["Students"].cell(2, cell.column).value = row.get(cell.value)

    assert upload("import", saved(workbook))["created"] == 1
