"""Absences on score sheets: a column that there may be, and scores that take absences away."""

from __future__ import annotations

from io import BytesIO

import pytest

from tests.features.scores.scoresheets.sheets import HEADER, bad_rows, counts, opened, sheet_of, upload
from tests.features.scores.scoresheets.test_upload import Exam
from tests.prepared import prepared_for_each
from tests.sheets.workbooks import parts_of, saved

WITH_ABSENCE = (*HEADER, "absence")


original, exam = prepared_for_each(Exam)


def absences(exam):
    """The absences of the assessment, by admission number."""
    answer = exam.api.ok(exam.api.get(f"/assessments/{exam.assessment['id']}/absences"))
    return {absence["student"]["admission_number"]: absence["status"] for absence in answer}


def enter(exam, **statuses):
    exam.api.ok(
        exam.make.absences(exam.assessment, {exam.students[f"A/{n[1:]}"]: s for n, s in statuses.items()})
    )


@pytest.fixture(autouse=True)
def factory(make, exam):
    exam.make = make


def send(exam, *rows, query="", header=WITH_ABSENCE):
    content = sheet_of(*((number, "Ada", "Eze", *cells) for number, *cells in rows), header=header)
    form = {"scoresheet": (BytesIO(content), "scores.xlsx")}
    return exam.api.post(f"/assessments/{exam.assessment['id']}/scoresheet{query}", data=form)


def logged(exam):
    entries = exam.api.ok(exam.api.get("/audit", query_string={"entity": "absence"}))["data"]
    names = {student: number for number, student in exam.students.items()}
    changes = []
    for change in reversed(entries):
        assert change["entity_id"] == exam.assessment["id"]
        both = [
            value and {**value, "student": names[value["student"]]}
            for value in (change["old"], change["new"])
        ]
        changes.append((change["action"], *both))
    return changes


# Download


def downloaded(exam, query=""):
    return exam.api.get(f"/assessments/{exam.assessment['id']}/download-sheet{query}")


def test_a_sheet_has_the_column_on_demand_with_a_list_to_choose_from(exam):
    enter(exam, A2="EXCUSED")

    sheet = opened(downloaded(exam, "?absences=true"))["Scores"]

    rows = {row[0]: row[3:] for row in sheet.iter_rows(values_only=True)}
    assert rows == {
        "admission_number": ("score", "absence"),
        "A/1": (None, None),
        "A/2": (None, "EXCUSED"),
        "A/3": (None, None),
    }
    number, choice = sheet.data_validations.dataValidation
    assert number.type == "decimal"
    assert (choice.type, choice.formula1, str(choice.sqref)) == ("list", '"ABSENT,EXCUSED"', "E2:E4")
    assert [cell.protection.locked for cell in sheet[2]] == [True, True, True, False, False]


def test_a_sheet_has_the_absences_of_its_own_assessment(exam):
    """Another assessment's are neither shown in it, nor in the way of those that are."""
    enter(exam, A2="EXCUSED")
    other = exam.make.assessment(exam.subject, exam.term)
    away = {exam.students["A/1"]: "ABSENT", exam.students["A/2"]: "ABSENT"}
    exam.api.ok(exam.make.absences(other, away))

    sheet = opened(downloaded(exam, "?absences=true"))["Scores"]
    shown = {row[0]: row[4] for row in sheet.iter_rows(min_row=2, values_only=True)}
    assert shown == {"A/1": None, "A/2": "EXCUSED", "A/3": None}


def test_without_it_the_workbook_is_the_same_as_ever(exam):
    def parts(query=""):
        texts = parts_of(downloaded(exam, query).data)
        # Of the moment of the download.
        return {name: text for name, text in texts.items() if "sheet2" not in name and "core" not in name}

    before = parts()
    enter(exam, A1="ABSENT")

    assert parts() == parts("?absences=false") == before
    assert parts("?absences=true") != before
    assert downloaded(exam, "?absences=maybe").status_code == 422


def test_a_sheet_sent_back_as_it_was_changes_nothing(exam):
    enter(exam, A1="ABSENT", A2="EXCUSED")
    exam.make.entry(exam.assessment, exam.students["A/3"], exam.cohort["id"], 30)
    log = logged(exam)

    workbook = opened(downloaded(exam, "?absences=true"))

    assert counts(exam.upload(saved(workbook))) == (3, 0, 0, 3, 0)
    assert logged(exam) == log
    assert absences(exam) == {"A/1": "ABSENT", "A/2": "EXCUSED"}


def test_an_absence_of_a_downloaded_sheet_is_logged_with_the_moment_of_the_download(exam):
    workbook = opened(downloaded(exam, "?absences=true"))
    workbook["Scores"]["D2"], workbook["Scores"]["E3"] = 12, "EXCUSED"

    assert counts(exam.upload(saved(workbook))) == (3, 2, 0, 0, 1)

    (score,), (absence,) = exam.log(), logged(exam)
    assert absence[2]["downloaded"] == score[2]["downloaded"]


# Upload


def test_absences_are_entered_beside_scores_and_a_blank_cell_leaves_them_alone(exam):
    assert counts(send(exam, ("A/1", 12, None), ("A/2", None, "ABSENT"), ("A/3", None, None))) == (
        3,
        2,
        0,
        0,
        1,
    )
    assert (absences(exam), exam.scores()["A/1"]) == ({"A/2": "ABSENT"}, 12)
    assert counts(send(exam, ("A/2", None, None), ("A/3", None, "EXCUSED"))) == (2, 1, 0, 0, 1)
    assert counts(send(exam, ("A/2", None, "EXCUSED"), ("A/3", None, "EXCUSED"))) == (2, 0, 1, 1, 0)

    by_sheet = {"source": "sheet", "file_name": "scores.xlsx"}
    assert absences(exam) == {"A/2": "EXCUSED", "A/3": "EXCUSED"}
    assert logged(exam) == [
        ("create", None, {"student": "A/2", "status": "ABSENT", **by_sheet}),
        ("create", None, {"student": "A/3", "status": "EXCUSED", **by_sheet}),
        (
            "update",
            {"student": "A/2", "status": "ABSENT"},
            {"student": "A/2", "status": "EXCUSED", **by_sheet},
        ),
    ]


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("ABS", "ABSENT"),
        ("abs", "ABSENT"),
        (" Absent ", "ABSENT"),
        ("exc", "EXCUSED"),
        ("Excused", "EXCUSED"),
    ],
)
def test_absences_are_written_in_short_and_in_any_case(exam, written, status):
    assert counts(send(exam, ("A/1", None, written))) == (1, 1, 0, 0, 0)
    assert absences(exam) == {"A/1": status}


def test_the_note_stays(exam):
    student = exam.students["A/1"]
    exam.api.ok(exam.make.absences(exam.assessment, {student: "ABSENT"}, note="no letter"))

    send(exam, ("A/1", None, "EXC"))

    (absence,) = exam.api.ok(exam.api.get(f"/assessments/{exam.assessment['id']}/absences"))
    assert (absence["status"], absence["note"]) == ("EXCUSED", "no letter")


def test_bad_rows_are_named_and_nothing_is_stored(exam):
    exam.make.entry(exam.assessment, exam.students["A/3"], exam.cohort["id"], 30)

    answer = send(exam, ("A/1", 5, "ABSENT"), ("A/2", None, "sick"), ("A/3", None, None))

    assert bad_rows(answer) == [(2, "absence", "invalid"), (3, "absence", "invalid")]
    told = [bad["message"] for bad in answer.get_json()["errors"]["rows"]]
    assert told[0].startswith('E2: "ABSENT" is beside a score for Chidinma Bàlógun (A/1)')
    assert told[1].startswith('E3: "sick" is no absence for ')
    assert told[1].endswith(": write ABSENT or EXCUSED, or leave the cell blank")
    assert (absences(exam), exam.scores()) == ({}, {"A/1": None, "A/2": None, "A/3": 30})


def test_an_absence_for_a_score_that_is_stored_is_a_bad_row(exam):
    exam.make.entry(exam.assessment, exam.students["A/3"], exam.cohort["id"], 0)

    answer = send(exam, ("A/1", None, "ABSENT"), ("A/3", None, "ABSENT"))

    assert bad_rows(answer) == [(3, "absence", "invalid")]
    assert (absences(exam), exam.scores()["A/3"]) == ({}, 0)


@pytest.mark.parametrize("header", [HEADER, WITH_ABSENCE])
def test_a_score_takes_the_absence_away(exam, header):
    enter(exam, A1="ABSENT", A2="EXCUSED", A3="ABSENT")
    blank = header[4:] and (None,)

    answer = send(exam, ("A/1", 0, *blank), ("A/2", 20, *blank), ("A/3", None, *blank), header=header)

    assert counts(answer) == (3, 2, 0, 0, 1)
    assert absences(exam) == {"A/3": "ABSENT"}
    assert exam.scores() == {"A/1": 0, "A/2": 20, "A/3": None}
    assert sorted(logged(exam)[3:], key=str) == [
        ("delete", {"student": "A/1", "status": "ABSENT"}, None),
        ("delete", {"student": "A/2", "status": "EXCUSED"}, None),
    ]


def test_a_dry_run_tells_it_and_stores_nothing(exam):
    enter(exam, A1="ABSENT", A2="ABSENT")
    log = logged(exam)

    rows = (("A/1", 12, None), ("A/2", None, "EXC"), ("A/3", None, "ABS"))
    answer = exam.api.ok(send(exam, *rows, query="?dry_run=true"))

    told = [
        (change["admission_number"], change["column"], change["old"], change["new"])
        for change in answer["changes"]
    ]
    assert told == [
        ("A/1", "score", None, 12),
        ("A/1", "absence", "ABSENT", None),
        ("A/2", "absence", "ABSENT", "EXCUSED"),
        ("A/3", "absence", None, "ABSENT"),
    ]
    assert (answer["created"], answer["updated"]) == (2, 1)
    assert absences(exam) == {"A/1": "ABSENT", "A/2": "ABSENT"}
    assert logged(exam) == log
    assert counts(send(exam, *rows)) == (3, 2, 1, 0, 0)


def test_absences_cost_as_many_messages_as_scores_and_none_where_a_score_takes_them_away(exam, messages):
    def cost(*rows):
        with messages() as sent:
            assert send(exam, *rows).status_code == 200
        return len(sent)

    scores = cost(("A/1", 1, None))
    absent = cost(("A/2", None, "ABS"), ("A/3", None, "ABS"))
    taken = cost(("A/2", 2, None), ("A/3", 3, None))

    assert (scores, taken) == (5, 5)
    # The entries are not written, the absences are.
    assert absent == 5


def test_the_sheet_of_the_other_schools_assessment_is_404(exam, other_api, make_other):
    theirs = Exam(make_other)
    theirs.make = make_other

    content = sheet_of(("A/1", "Ada", "Eze", None, "ABSENT"), header=WITH_ABSENCE)

    assert upload(exam.api, theirs.assessment, content).status_code == 404
    assert (
        exam.api.get(f"/assessments/{theirs.assessment['id']}/download-sheet?absences=true").status_code
        == 404
    )
    assert absences(theirs) == absences(exam) == {}
    assert counts(upload(other_api, theirs.assessment, content)) == (1, 1, 0, 0, 0)
