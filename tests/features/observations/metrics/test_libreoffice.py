"""A metric sheet that went through a real spreadsheet program."""

from __future__ import annotations

from io import BytesIO

import pytest
from openpyxl import load_workbook

from tests.features.observations.metrics.sheets import AFFECTIVE, STUDENT, Observed, fill
from tests.features.scores.scoresheets.sheets import counts
from tests.sheets.libreoffice import all_saved_by_libreoffice, needs_libreoffice, saved_by_libreoffice

pytestmark = [pytest.mark.program, needs_libreoffice]


def test_scores_come_back_and_the_rest_is_as_it_was(api, make, tmp_path):
    for name in ("=1+1", "007", "Ìwà rere"):
        api.ok(api.post("/metric-definitions", {"name": name, "metric_type": AFFECTIVE}))
    listed = api.ok(api.get("/metric-definitions"))
    traits = tuple(definition["name"] for definition in listed if definition["metric_type"] == AFFECTIVE)
    seen = Observed(make, 0, metric_type=AFFECTIVE, traits=traits)
    people = [
        ("=cmd|' /C calc'!A0", "Bàlógun", "A/1"),
        ("'+Ìfẹ́", "Eze", "007"),
        ("Ada", "@Obi", "1e5"),
        ("Chi", "Uba", "A/4"),
    ]
    made = [make.student(first_name=f, last_name=n, admission_number=a) for f, n, a in people]
    make.enrolled(seen.cohort, *made)
    counts(seen.upload(fill(seen.workbook(), {"A/4": {"honesty": 2}})))

    scores = {"A/1": dict.fromkeys(traits, 4), "007": {"=1+1": 5, "neatness": "=2+1"}, "1e5": {"007": 1}}
    after = saved_by_libreoffice(fill(seen.workbook(), scores), tmp_path)

    sheet = load_workbook(BytesIO(after))["Metrics"]
    assert [cell.value for cell in sheet[1]] == [*STUDENT, *traits]
    shown = {row[2]: tuple(cell for cell in row[:3]) for row in sheet.iter_rows(min_row=2, values_only=True)}
    assert shown == {last: (number, first, last) for first, last, number in people}
    assert [cell.protection.locked for cell in sheet[2]] == [True] * 3 + [False] * len(traits)
    assert sheet.protection.sheet
    rules = sheet.data_validations.dataValidation
    assert {(rule.type, rule.formula1, rule.formula2) for rule in rules} == {("whole", "1", "5")}

    assert counts(seen.upload(after)) == (4, 3, 0, 1, 0)
    scores["007"]["neatness"] = 3
    assert seen.scores() == {**scores, "A/4": {"honesty": 2}}
    again, unchanged = all_saved_by_libreoffice([after, seen.download().data], tmp_path)
    assert counts(seen.upload(again)) == (4, 0, 0, 4, 0)
    assert counts(seen.upload(unchanged)) == (4, 0, 0, 4, 0)
