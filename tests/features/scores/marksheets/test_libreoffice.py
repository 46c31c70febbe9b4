"""A mark sheet that went through a real spreadsheet program."""

from __future__ import annotations

from io import BytesIO

import pytest
from openpyxl import load_workbook

from tests.features.scores.marksheets.arms import Marked, counts, fill
from tests.sheets.libreoffice import needs_libreoffice, saved_by_libreoffice
from tests.sheets.workbooks import saved

pytestmark = [pytest.mark.program, needs_libreoffice]


def test_marks_come_back_and_the_rest_is_as_it_was(make, tmp_path):
    arm = Marked(make)
    filled = fill(
        arm.download(),
        {
            "A/1": {"CA1 (20)": None, "CA2 (20)": "=0.1+0.2"},
            "A/2": {"EX (60)": "ABSENT"},
            "A/3": {"EX (60)": 0},
        },
    )

    after = saved_by_libreoffice(saved(filled), tmp_path)

    workbook = load_workbook(BytesIO(after))
    sheet = workbook["Marks"]
    assert [cell.value for cell in sheet[1]] == ["S/N", "admission_number", "name", *arm.COLUMNS]
    assert [cell.protection.locked for cell in sheet[2]] == [True, True, True, False, False, False]
    assert {workbook[name].sheet_state for name in ("Held", "Details")} == {"hidden"}
    rules = {str(rule.sqref): (rule.type, rule.formula1) for rule in sheet.data_validations.dataValidation}
    assert {kind for kind, _ in rules.values()} == {"custom"}
    assert any("D2<=20" in formula.replace(" ", "") for _, formula in rules.values())
    assert counts(arm.send(after)) == (4, 2, 1, 0, 1)
    assert arm.marks() == {
        "A/1": [None, 0.3, None],
        "A/2": ["ABSENT", None, "ABSENT"],
        "A/3": [None, None, 0],
        "A/4": [None] * 3,
    }
    again = saved_by_libreoffice(saved(arm.download()), tmp_path)
    assert counts(arm.send(again)) == (4, 0, 0, 3, 1)
