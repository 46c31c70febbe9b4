"""A score sheet that went through a real spreadsheet program."""

from __future__ import annotations

from io import BytesIO

import pytest
from openpyxl import load_workbook

from tests.features.scores.scoresheets.sheets import HEADER, counts, download, fill, scores, upload
from tests.sheets.libreoffice import needs_libreoffice, saved_by_libreoffice

pytestmark = [pytest.mark.program, needs_libreoffice]


def test_scores_come_back_and_the_rest_is_as_it_was(api, make, tmp_path):
    cohort = make.cohort()
    subject, term = make.cohort_subject(cohort), make.term({"id": cohort["session"]})
    people = [
        ("=1+1", "Bàlógun", "A/1"),
        ("'+Ìfẹ́", "Eze", "007"),
        ("Ada", "@Obi", "1e5"),
        ("Chi", "Uba", "A/4"),
    ]
    made = [make.student(first_name=f, last_name=n, admission_number=a) for f, n, a in people]
    make.enrolled(cohort, *made)
    assessment = make.assessment(subject, term, total_points=60)
    make.entry(assessment, made[3]["id"], cohort["id"], 30)

    filled = fill(download(api, assessment), {"A/1": 45.5, "007": "=0.1+0.2", "1e5": 0})
    after = saved_by_libreoffice(filled, tmp_path)

    sheet = load_workbook(BytesIO(after))["Scores"]
    assert [cell.value for cell in sheet[1]] == list(HEADER)
    shown = {row[2]: tuple(cell for cell in row[:3]) for row in sheet.iter_rows(min_row=2, values_only=True)}
    assert shown == {last: (number, first, last) for first, last, number in people}
    assert [cell.protection.locked for cell in sheet[2]] == [True, True, True, False]
    assert sheet.protection.sheet
    (rule,) = sheet.data_validations.dataValidation
    assert (rule.type, float(rule.formula1), float(rule.formula2)) == ("decimal", 0, 60)

    assert counts(upload(api, assessment, after)) == (4, 3, 0, 1, 0)
    assert scores(api, subject) == {"A/1": [45.5], "007": [0.3], "1e5": [0], "A/4": [30]}
    again = saved_by_libreoffice(after, tmp_path)
    assert counts(upload(api, assessment, again)) == (4, 0, 0, 4, 0)
