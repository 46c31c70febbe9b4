"""Broadsheets: students by subjects, as JSON and as a workbook."""

from __future__ import annotations

from io import BytesIO

from openpyxl import load_workbook

from tests.features.results.test_worked_example import Worked


def test_x(make):
    worked = Worked(make)
    print(worked.api.get(f"/broadsheets?batch={worked.cohort['id']}&term=FIRST").data.decode())
    found = worked.api.get(f"/broadsheets/download?batch={worked.cohort['id']}&term=FIRST")
    print(found.data[:300], found.headers)
    open("/tmp/r2.xlsx", "wb").write(found.data)
    assert 0
