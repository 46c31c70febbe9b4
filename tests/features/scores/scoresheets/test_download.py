"""The score sheet of an assessment, to be filled in."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from io import BytesIO
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from openpyxl import load_workbook

from school_service.sheets.columns import MAX_ROWS
from tests.features.scores.scoresheets.sheets import (
    DOWNLOADED,
    HEADER,
    as_answered,
    download,
    fill,
    upload,
    without_times,
)
from tests.sheets.workbooks import parts_of, saved

NAMES = ("=1+1", "+2", "-3", "@SUM(A1)", "Ọlá\u0301délé", 'O\'Neil "Ò"', "\t=cmd", "_x0041_", "1e5", "007")


@pytest.fixture(scope="module", autouse=True)
def original(prepared):
    def build(make):
        """An assessment of 60 points; of three students, the first has a score."""
        cohort = make.cohort()
        subject, term = make.cohort_subject(cohort), make.term({"id": cohort["session"]})
        people = [("Ada", "Eze", "Q/1"), ("Bola", "Àdé", "Q/2"), ("Chi", "Eze", "Q/3")]
        made = [make.student(first_name=f, last_name=n, admission_number=a) for f, n, a in people]
        make.enrolled(cohort, *made)
        assessment = make.assessment(subject, term, name="Exam", total_points=60, file_name="exam.xlsx")
        make.entry(assessment, made[0]["id"], cohort["id"], 45.5)
        return assessment

    return prepared(build)


@pytest.fixture
def exam(rehearsed, original):
    return deepcopy(original)


def rows(sheet):
    return [tuple(cell.value for cell in row) for row in sheet.iter_rows()]


def test_a_sheet_has_a_row_for_everyone_with_stored_scores(api, exam):
    shown = rows(download(api, exam)["Scores"])

    assert shown[0] == HEADER
    assert sorted(shown[1:]) == [
        ("Q/1", "Ada", "Eze", 45.5),
        ("Q/2", "Bola", "Àdé", None),
        ("Q/3", "Chi", "Eze", None),
    ]


def test_a_download_has_the_order_of_the_score_sheet(api, exam):
    answer = api.ok(api.get(f"/scoresheets/{exam['subject']}/scoresheet"))

    expected = [line["student"]["admission_number"] for line in answer]
    assert [row[0] for row in rows(download(api, exam)["Scores"])[1:]] == expected


def test_only_scores_can_be_typed_and_only_up_to_the_total(api, exam):
    sheet = as_answered(api.get(f"/assessments/{exam['id']}/download-sheet"))["Scores"]

    assert sheet.protection.sheet
    assert sheet.protection.password is None
    for row in sheet.iter_rows(min_row=2):
        assert [cell.protection.locked for cell in row] == [True, True, True, False, True]
    (rule,) = sheet.data_validations.dataValidation
    assert (rule.type, rule.operator, rule.formula1, rule.formula2) == ("decimal", "between", "0", "60.00")
    assert (str(rule.sqref), rule.showErrorMessage, rule.allow_blank) == ("D2:D4", True, True)


def test_the_header_is_frozen_and_columns_are_wide_enough(api, exam):
    sheet = as_answered(api.get(f"/assessments/{exam['id']}/download-sheet"))["Scores"]

    assert sheet.freeze_panes == "A2"
    for column in sheet.iter_cols():
        width = sheet.column_dimensions[column[0].column_letter].width
        assert width > max(len(str(cell.value)) for cell in column)


def test_a_sheet_has_serial_numbers_and_a_line_to_sign(api, exam):
    sheet = as_answered(api.get(f"/assessments/{exam['id']}/download-sheet"))["Scores"]

    assert rows(sheet)[0] == (*HEADER, "S/N")
    assert [row[-1] for row in rows(sheet)[1:]] == [1, 2, 3]
    assert sheet.oddFooter.left.text.startswith("Subject teacher: ____")
    assert "Date: ____" in sheet.oddFooter.left.text


def test_a_sheet_is_taken_with_serial_numbers_and_without_as_the_release_before_wrote_it(api, exam):
    with_them = as_answered(api.get(f"/assessments/{exam['id']}/download-sheet"))
    for row in with_them["Scores"].iter_rows(min_row=2):
        row[3].value = 20

    answers = [api.ok(upload(api, exam, saved(with_them)))]
    before = fill(download(api, exam), {"Q/1": 21, "Q/2": 22, "Q/3": 23})
    answers.append(api.ok(upload(api, exam, before)))

    assert [(answer["rows"], answer["created"] + answer["updated"]) for answer in answers] == [(3, 3), (3, 3)]
    assert ["ignored_columns" in answer for answer in answers] == [False, False]


def test_names_stand_in_the_order_of_the_papers(api, exam):
    api.ok(api.patch("/result-settings", {"name_order": "SURNAME_FIRST"}))

    shown = rows(download(api, exam)["Scores"])

    assert shown[0] == ("admission_number", "last_name", "first_name", "score")
    assert ("Q/2", "Àdé", "Bola", None) in shown


def test_the_moment_of_the_download_is_in_the_time_zone_of_the_school(api, exam):
    api.ok(api.patch("/settings", {"time_zone": "Asia/Tokyo"}))

    said = dict(rows(download(api, exam)["Details"]))["Downloaded"]

    there = datetime.strptime(said, "%Y-%m-%d %H:%M:%S JST").replace(tzinfo=ZoneInfo("Asia/Tokyo"))
    assert abs(there - datetime.now(UTC)) < timedelta(minutes=5)


def test_the_details_name_the_assessment(api, make, exam, place):
    term = api.ok(api.get(f"/terms/{exam['term']}"))
    subject = api.ok(api.get(f"/cohort-subjects/{exam['subject']}"))
    cohort = api.ok(api.get(f"/cohorts/{subject['cohort']}"))
    session = api.ok(api.get(f"/sessions/{term['sessionId']}"))

    assert without_times(download(api, exam)["Details"]) == [
        ("School", place.name),
        ("Assessment", "Exam"),
        ("Subject", subject["subject"]),
        ("Teacher", None),
        ("Class", f"{cohort['classroom']} {session['name']}"),
        ("Term", term["displayName"]),
        ("Total points", "60"),
        ("Assessment ID", exam["id"]),
        *DOWNLOADED,
    ]


def test_a_download_has_the_present_takers_of_all_arms_alone(api, make):
    taught = make.taught(2)
    make.enrolled(taught.cohort, batch=make.batch(taught.cohort)["id"])
    assessment = make.assessment(taught.subject, taught.term)
    left = {"student_ids": [taught.students[0]]}
    api.ok(api.patch(f"/cohorts/{taught.cohort['id']}/remove_students", left))

    assert len(rows(download(api, assessment)["Scores"])) == 1 + 2


@pytest.mark.parametrize("name", NAMES)
def test_a_text_with_any_beginning_stays_a_text(api, make, name):
    taught = make.taught(0)
    make.enrolled(taught.cohort, make.student(first_name=name, last_name=name, admission_number=name))
    workbook = download(api, make.assessment(taught.subject, taught.term, name=name))

    cells = [*workbook["Scores"][2][:3], workbook["Details"]["B2"]]
    assert [cell.value.replace("_x005F_", "_") for cell in cells] == [name.strip()] * 4
    assert {cell.data_type for cell in cells} == {"s"}


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("ca1.xlsx", 'attachment; filename="ca1.xlsx"'),
        ("ca1", 'attachment; filename="ca1.xlsx"'),
        ("CA1.XLSX", 'attachment; filename="CA1.XLSX"'),
        ("CA1/CA2: Maths?", 'attachment; filename="CA1-CA2- Maths-.xlsx"'),
        ('a"b\\c\r\nX: y.xlsx', 'attachment; filename="a-b-cX- y.xlsx"'),
        ("../../etc/passwd", 'attachment; filename="-..-etc-passwd.xlsx"'),
        ("Ìdánwò.xlsx", "attachment; filename=\"Idanwo.xlsx\"; filename*=UTF-8''%C3%8Cd%C3%A1nw%C3%B2.xlsx"),
        ("試験", "attachment; filename=\"file.xlsx\"; filename*=UTF-8''%E8%A9%A6%E9%A8%93.xlsx"),
        (".xlsx", 'attachment; filename="file.xlsx"'),
        ("..", 'attachment; filename="file.xlsx"'),
        ("\u200b", 'attachment; filename="file.xlsx"'),
        ("\u202excod.xlsx", 'attachment; filename="xcod.xlsx"'),
        ("x" * 255, f'attachment; filename="{"x" * 145}.xlsx"'),
    ],
)
def test_the_file_is_named_by_the_assessment(api, make, name, header):
    taught = make.taught(0)
    assessment = make.assessment(taught.subject, taught.term, file_name=name)

    answer = api.get(f"/assessments/{assessment['id']}/download-sheet")

    assert answer.headers["Content-Disposition"] == header
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_download_costs_a_fixed_number_of_statements(api, make, messages):
    taught = make.taught(3)
    assessment = make.assessment(taught.subject, taught.term)
    costs = []
    for _ in range(2):
        make.enrolled(taught.cohort, *(make.student() for _ in range(10)))
        with messages() as sent:
            download(api, assessment)
        costs.append(len(sent))

    # Begin, the sheet, the end.
    assert costs == [3, 3]


def test_a_subject_that_nobody_takes_has_a_sheet_without_rows(api, make):
    cohort = make.cohort()
    subject, term = make.cohort_subject(cohort), make.term({"id": cohort["session"]})
    assessment = make.assessment(subject, term)

    sheet = download(api, assessment)["Scores"]

    assert [[cell.value for cell in row] for row in sheet.iter_rows()] == [list(HEADER)]
    (rule,) = sheet.data_validations.dataValidation
    assert str(rule.sqref) == f"D2:D{MAX_ROWS + 1}"


def test_an_unknown_assessment_is_not_found(api):
    answer = api.get(f"/assessments/{uuid4()}/download-sheet")

    assert (answer.status_code, answer.get_json()["message"]) == (404, "No such assessment.")


def test_the_other_school_has_its_own(api, other_api, exam):
    path = f"/assessments/{exam['id']}/download-sheet"

    assert other_api.get(path).status_code == 404
    assert other_api.using(school=api.school).get(path).status_code == 403
    assert api.using(school=None).get(path).status_code == 200


def test_the_header_shows_words_and_its_cells_have_the_names(api, exam):
    sheet = as_answered(api.get(f"/assessments/{exam['id']}/download-sheet"))["Scores"]

    assert [cell.value for cell in sheet[1]] == [*HEADER, "S/N"]
    assert [cell.number_format for cell in sheet[1][:-1]] == [
        f';;;"{words}"' for words in ("Admission number", "First name", "Last name", "Score")
    ]
    assert {cell.protection.locked for cell in sheet[1]} == {True}


def test_rows_of_a_protected_sheet_can_be_sorted(api, exam):
    """Spreadsheet programs sort locked cells in a range that may be edited all the same."""
    content = api.get(f"/assessments/{exam['id']}/download-sheet").data
    xml = parts_of(content)["xl/worksheets/sheet1.xml"].decode()

    sheet = load_workbook(BytesIO(content))["Scores"]
    assert (sheet.protection.sort, sheet.protection.autoFilter) == (False, False)
    assert sheet.auto_filter.ref == "A1:E4"
    assert '<protectedRange sqref="A2:E4" name="rows"/>' in xml


def test_the_header_of_its_pages_names_the_assessment(api, make, place):
    session = make.session(name="2045/2046")
    cohort = make.cohort(make.classroom(name="JSS 1 & 2"), session)
    subject = make.cohort_subject(cohort)
    term = make.term({"id": session["id"]})
    assessment = make.assessment(subject, term, name="Ìdánwò <1>", total_points=60)

    sheet = download(api, assessment)["Scores"]

    name = api.ok(api.get(f"/cohort-subjects/{subject['id']}"))["subject"]
    assert sheet.oddHeader.left.text == f"{place.name}\nJSS 1 && 2\n{name}"
    assert sheet.oddHeader.right.text == "Ìdánwò <1>\nFirst term, 2045/2046\n60 points"
    assert sheet.oddFooter.right.text == "Page &P of &N"


def test_the_header_of_a_page_is_as_long_as_excel_takes_it(api, make):
    taught = make.taught(0)
    assessment = make.assessment(taught.subject, taught.term, name="😀&" * 60)

    header = download(api, assessment)["Scores"].oddHeader

    assert len(f"&L{header.left.text}&R{header.right.text}".encode("utf-16-le")) // 2 <= 255
