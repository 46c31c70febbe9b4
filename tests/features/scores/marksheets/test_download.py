"""The mark sheet of an arm, and the sheets of all its subjects."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from io import BytesIO
from urllib.parse import unquote
from zipfile import ZipFile
from zoneinfo import ZoneInfo

import pytest
from openpyxl import load_workbook

from tenants.clock import now
from tests.features.scores.marksheets.arms import Marked
from tests.prepared import prepared_for_each

original, arm = prepared_for_each(Marked)


def cells(sheet):
    return [[cell.value for cell in row] for row in sheet.iter_rows()]


def file_name(answer):
    return unquote(answer.headers["Content-Disposition"].partition("filename*=UTF-8''")[2]) or (
        answer.headers["Content-Disposition"].partition('filename="')[2].rstrip('"')
    )


def test_the_sheet_has_the_arms_students_and_every_assessment_of_the_term(arm):
    second = arm.make.term({"id": arm.cohort["session"]}, term="SECOND")
    arm.make.assessment(arm.subject, second)
    other_arm = arm.make.batch(arm.cohort, name="B")["id"]
    arm.make.enrolled(arm.cohort, arm.make.student(), batch=other_arm)

    workbook = arm.download()

    assert cells(workbook["Marks"]) == [
        ["S/N", "admission_number", "name", "CA1 (20)", "CA2 (20)", "EX (60)"],
        [1, "A/1", "Ngọzi Ọlá Abara", 12.5, None, None],
        [2, "A/2", "Ƙwai Ọlá Bello", "ABSENT", None, None],
        [3, "A/3", "Adé Ọlá Cole", None, None, None],
        [4, "A/4", "Chi Ọlá Duru", None, None, None],
    ]
    assert [sheet.title for sheet in workbook if sheet.sheet_state == "visible"] == ["Marks"]


def test_details_name_subject_arm_and_term_as_the_score_sheets_do(arm):
    details = dict(cells(arm.download()["Details"]))

    assert details["Subject"] == arm.subject["subject"]
    assert details["Class"].endswith(" A")
    ids = {name: details[f"{name} ID"] for name in ("Subject", "Batch", "Term")}
    assert ids == {"Subject": arm.subject["id"], "Batch": arm.batch, "Term": arm.term["id"]}
    assert details["Downloaded"].endswith("WAT")


def test_names_follow_the_schools_order(arm):
    arm.api.ok(arm.api.patch("/result-settings", {"name_order": "SURNAME_FIRST"}))

    assert cells(arm.download()["Marks"])[1][2] == "Abara Ngọzi Ọlá"


def test_a_subject_without_assessments_has_a_sheet_of_names(arm):
    subject = arm.make.cohort_subject(arm.cohort)
    arm.api.ok(arm.api.patch(f"/cohort-subjects/{subject['id']}/students", [*arm.students.values()]))
    arm.subject = subject

    assert [len(row) for row in cells(arm.download()["Marks"])] == [3] * 5


def test_the_file_is_named_by_subject_arm_and_term_and_on_record(arm):
    answer = arm.api.get(arm.path())

    name = file_name(answer)
    assert name.startswith(arm.subject["subject"])
    assert re.search(r" First term \d{4}-\d{4}\.xlsx$", name)
    footer = load_workbook(BytesIO(answer.data))["Marks"].oddFooter.left.text
    assert footer.startswith("Subject teacher: ____")
    (entry,) = arm.api.ok(arm.api.get(f"/audit?entity=export&id={arm.subject['id']}"))["data"]
    assert entry["new"] == {"sheet": "marks", "students": 4}


def test_the_sheets_of_an_arm_are_a_zip_with_one_for_each_subject_to_be_marked(arm):
    other, unmarked = arm.make.cohort_subject(arm.cohort), arm.make.cohort_subject(arm.cohort)
    arm.make.assessment(other, arm.term)
    for subject in (other, unmarked):
        arm.api.ok(arm.api.patch(f"/cohort-subjects/{subject['id']}/students", [*arm.students.values()]))

    answer = arm.api.get(f"/mark-sheets?batch={arm.batch}&term=FIRST")

    assert (answer.status_code, answer.mimetype) == (200, "application/zip")
    assert file_name(answer).endswith(".zip")
    archive = ZipFile(BytesIO(answer.data))
    assert sorted(name.split()[0] for name in archive.namelist()) == sorted(
        subject["subject"].split()[0] for subject in (arm.subject, other)
    )
    of_subject = next(name for name in archive.namelist() if name.startswith(arm.subject["subject"]))
    content = archive.read(of_subject)
    assert cells(load_workbook(BytesIO(content))["Marks"]) == cells(arm.download()["Marks"])
    assert arm.send(content).status_code == 200


@pytest.mark.parametrize("zone", ["Africa/Lagos", "Pacific/Kiritimati"])
def test_the_files_of_an_arm_are_stamped_with_the_schools_clock(arm, zone):
    arm.api.ok(arm.api.patch("/settings", {"time_zone": zone}))

    archive = ZipFile(BytesIO(arm.api.get(f"/mark-sheets?batch={arm.batch}&term=FIRST").data))

    there = now().astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    for info in archive.infolist():
        assert abs(there - datetime(*info.date_time)) < timedelta(minutes=5)


def test_an_arm_without_an_assessment_in_the_term_has_no_sheets(arm):
    second = arm.make.term({"id": arm.cohort["session"]}, term="SECOND")["id"]

    answer = arm.api.get(f"/mark-sheets?batch={arm.batch}&term={second}")

    assert answer.status_code == 409
    assert answer.get_json()["message"].startswith("There is nothing to mark: no subject of ")


def test_the_sheets_of_an_unknown_arm_or_term_are_refused(arm, make_other):
    elsewhere = make_other.taught(0)
    unknown = "00000000-0000-4000-8000-000000000000"
    for batch, term in (
        (unknown, "FIRST"),
        (elsewhere.cohort["id"], "FIRST"),
        (arm.batch, unknown),
        (arm.batch, elsewhere.term["id"]),
        ("", "FIRST"),
        (arm.batch, "FOURTH"),
    ):
        assert arm.api.get(f"/mark-sheets?batch={batch}&term={term}").status_code == 422
