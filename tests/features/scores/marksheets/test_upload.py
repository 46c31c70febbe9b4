"""A mark sheet that comes back: which cells are entered, and which are refused."""

from __future__ import annotations

from io import BytesIO
from uuid import uuid4

import pytest
from openpyxl import Workbook

from tests.features.scores.marksheets.arms import MARKS, Marked, counts, fill, refused, totals
from tests.prepared import prepared_for_each
from tests.sheets.workbooks import saved

original, arm = prepared_for_each(Marked)


def test_changed_cells_are_entered_in_every_assessment_at_once(arm):
    filled = fill(
        arm.download(),
        {
            "A/1": {"CA1 (20)": 13, "CA2 (20)": 0},
            "A/2": {"CA1 (20)": 9.25, "EX (60)": "excused"},
            "A/3": {"EX (60)": 60, "CA2 (20)": "ABS"},
        },
    )

    answer = arm.send(filled)

    assert counts(answer) == (4, 1, 2, 0, 1)
    assert arm.marks() == {
        "A/1": [13, 0, None],
        "A/2": [9.25, None, "EXCUSED"],
        "A/3": [None, "ABSENT", 60],
        "A/4": [None] * 3,
    }
    assert totals(answer) == [
        ("CA1 (20)", 2, 22.25, 0, 0, 2),
        ("CA2 (20)", 1, 0, 1, 0, 2),
        ("EX (60)", 1, 60, 0, 1, 2),
    ]
    assert counts(arm.send(arm.download())) == (4, 0, 0, 3, 1)


def test_each_mark_of_a_sheet_is_on_record_with_its_file_and_the_moment_of_the_download(arm):
    before = len(arm.logged("gradebook")), len(arm.logged("absence"))
    arm.send(fill(arm.download(), {"A/1": {"CA1 (20)": 13}, "A/3": {"EX (60)": "ABSENT"}}))

    (score,) = arm.logged("gradebook")[: -before[0]]
    (absence,) = arm.logged("absence")[: -before[1]]
    assert score[:2] == ("update", {"score": 12.5, "source": "hand"})
    assert score[2]["file_name"] == absence[2]["file_name"] == "marks.xlsx"
    assert score[2]["downloaded"] == absence[2]["downloaded"]
    assert absence[2]["student"] == arm.students["A/3"]


def test_a_score_takes_an_absence_away_on_record(arm):
    before = len(arm.logged("absence"))
    arm.send(fill(arm.download(), {"A/2": {"CA1 (20)": 5}}))

    assert [action for action, *_ in arm.logged("absence")[:-before]] == ["delete"]
    assert arm.marks()["A/2"] == [5, None, None]


def test_an_emptied_cell_takes_a_score_or_an_absence_away(arm):
    emptied = fill(arm.download(), {"A/1": {"CA1 (20)": None}, "A/2": {"CA1 (20)": None}})

    assert counts(arm.send(emptied)) == (4, 0, 2, 0, 2)
    assert arm.marks() == dict.fromkeys(MARKS, [None] * 3)


def test_emptying_without_the_permission_to_delete_names_the_cells_and_stores_nothing(arm):
    writer = arm.make.caller("write:gradebooks")
    emptied = fill(arm.download(), {"A/1": {"CA1 (20)": None, "CA2 (20)": 7}, "A/2": {"CA1 (20)": ""}})

    for query in ({}, {"dry_run": "true"}):
        answer = arm.send(emptied, writer, **query)
        assert refused(answer, 403) == [(2, "CA1 (20)", "invalid"), (3, "CA1 (20)", "invalid")]
        (first, _) = answer.get_json()["errors"]["rows"]
        assert first["message"] == "D2: takes 12.5 away for Ngọzi Abara (A/1): leave it as it was"
        assert (
            answer.get_json()["type"].endswith("forbidden")
            or "delete:gradebooks" in answer.get_json()["message"]
        )
    assert arm.marks() == MARKS


def test_a_score_in_place_of_an_absence_needs_no_permission_to_delete(arm):
    writer = arm.make.caller("write:gradebooks")

    assert counts(arm.send(fill(arm.download(), {"A/2": {"CA1 (20)": 4}}), writer)) == (4, 0, 1, 1, 2)


def test_a_cell_that_was_not_changed_is_not_judged(arm):
    workbook = fill(arm.download(), {"A/1": {"CA2 (20)": 8}})
    arm.api.ok(arm.api.patch(f"/gradebooks/{arm.entry['id']}", {"score": 20}))
    arm.api.ok(
        arm.api.patch(f"/cohorts/{arm.cohort['id']}/remove_students", {"student_ids": [arm.students["A/4"]]})
    )

    assert counts(arm.send(workbook)) == (4, 1, 0, 1, 2)
    assert arm.marks()["A/1"] == [20, 8, None]


def test_a_changed_cell_of_a_student_who_left_is_refused(arm):
    workbook = fill(arm.download(), {"A/4": {"CA2 (20)": 8}})
    arm.api.ok(
        arm.api.patch(f"/cohorts/{arm.cohort['id']}/remove_students", {"student_ids": [arm.students["A/4"]]})
    )

    assert refused(arm.send(workbook)) == [(5, "admission_number", "invalid")]


@pytest.mark.parametrize(
    ("written", "ending"),
    [
        (20.5, '"20.5" is no score for Ngọzi Abara (A/1): write a number from 0 to 20'),
        (-1, '"-1" is no score for Ngọzi Abara (A/1): write a number from 0 to 20'),
        (1.234, '"1.234" has more than two decimal places for Ngọzi Abara (A/1): round it to two'),
        ("12,5", '"12,5" is no number for Ngọzi Abara (A/1): write 12.5'),
        (
            "foo",
            '"foo" is no number for Ngọzi Abara (A/1): '
            "write a number such as 12.5, ABSENT or EXCUSED, or leave the cell as it was",
        ),
        ("sick", '"sick" is no number for Ngọzi Abara (A/1): write EXCUSED, or leave the cell blank'),
        ("a", '"a" is no number for Ngọzi Abara (A/1): write ABSENT, or leave the cell blank'),
        (True, '"TRUE" is no number for Ngọzi Abara (A/1): format the cell as a number, and write it again'),
    ],
)
def test_a_cell_that_is_no_mark_is_refused_in_words(arm, written, ending):
    answer = arm.send(fill(arm.download(), {"A/1": {"CA2 (20)": written}, "A/3": {"CA1 (20)": 1}}))

    assert refused(answer) == [(2, "CA2 (20)", "invalid")]
    assert answer.get_json()["errors"]["rows"][0]["message"] == f"E2: {ending}"
    assert arm.marks() == MARKS


def test_an_absence_beside_a_score_is_a_conflict(arm):
    answer = arm.send(fill(arm.download(), {"A/1": {"CA1 (20)": "ABSENT"}, "A/3": {"CA1 (20)": 3}}))

    assert refused(answer, 409) == [(2, "CA1 (20)", "invalid")]
    message = answer.get_json()["errors"]["rows"][0]["message"]
    assert (
        message == 'D2: "ABSENT" is instead of the score 12.5 for Ngọzi Abara (A/1): remove the score first'
    )
    assert arm.marks() == MARKS


def test_an_absence_of_a_withdrawn_student_is_refused(arm):
    workbook = fill(arm.download(), {"A/3": {"CA1 (20)": "ABSENT"}})
    arm.api.ok(arm.api.patch(f"/students/{arm.students['A/3']}", {"status": "WITHDRAWN"}))

    assert refused(arm.send(workbook)) == [(4, "CA1 (20)", "invalid")]


# Rows and columns


def test_rows_and_columns_that_are_not_there_are_left_alone(arm):
    workbook = fill(arm.download(), {"A/3": {"EX (60)": 41}})
    workbook["Marks"].delete_cols(4)
    workbook["Marks"].delete_rows(2, 2)

    assert counts(arm.send(workbook)) == (2, 1, 0, 0, 1)
    assert arm.marks() == {**MARKS, "A/3": [None, None, 41]}


def test_rows_in_another_order_and_columns_in_another_place_are_found(arm):
    workbook = fill(arm.download(), {"A/3": {"CA2 (20)": 11}})
    sheet = workbook["Marks"]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    sheet.delete_rows(1, 10)
    for row in (rows[0], *reversed(rows[1:])):
        sheet.append([row[4], row[1], row[5], row[3], "a note"])

    answer = arm.send(workbook)

    assert counts(answer) == (4, 1, 0, 2, 1)
    assert arm.marks() == {**MARKS, "A/3": [None, 11, None]}


def test_a_row_that_was_added_is_entered_beside_the_others(arm):
    workbook = arm.download()
    newcomer = arm.make.student(admission_number="A/5")["id"]
    arm.make.enrolled(arm.cohort, {"id": newcomer})
    workbook["Marks"].append([5, "A/5", None, 6, None, "ABSENT"])

    assert counts(arm.send(workbook)) == (5, 1, 0, 2, 2)
    assert arm.marks()["A/5"] == [6, None, "ABSENT"]


def test_an_unknown_column_is_told_and_not_read(arm):
    workbook = fill(arm.download(), {"A/3": {"CA2 (20)": 11}})
    workbook["Marks"].cell(1, 7).value, workbook["Marks"].cell(2, 7).value = "Total", 99

    answer = arm.send(workbook).get_json()

    assert (answer["ignored_columns"], answer["created"]) == (["Total"], 1)


def test_a_student_in_two_rows_is_refused(arm):
    workbook = fill(arm.download(), {"A/3": {"CA2 (20)": 11}})
    workbook["Marks"].append([5, "A/3", None, None, 12])

    assert refused(arm.send(workbook)) == [(6, "admission_number", "duplicate")]


def test_marks_sorted_apart_from_their_names_are_refused(arm):
    workbook = fill(arm.download(), {"A/3": {"CA2 (20)": 11}})
    sheet = workbook["Marks"]
    sheet["C4"].value, sheet["C5"].value = sheet["C5"].value, sheet["C4"].value

    answer = arm.send(workbook)

    assert refused(answer) == [(4, "name", "invalid")]
    assert "is the name of A/4, not of A/3" in answer.get_json()["errors"]["rows"][0]["message"]


def test_a_column_is_found_by_its_assessment_when_that_has_another_name(arm):
    workbook = fill(arm.download(), {"A/3": {"CA2 (20)": 11}})
    body = {"abbreviation": "Mid-term", "total_points": 30}
    arm.api.ok(arm.api.patch(f"/assessments/{arm.assessments[1]['id']}", body))
    arm.api.ok(
        arm.api.patch(f"/assessments/{arm.assessments[2]['id']}", {"abbreviation": "CA2", "total_points": 20})
    )

    answer = arm.send(workbook)

    assert counts(answer) == (4, 1, 0, 2, 1)
    assert [column for column, *_ in totals(answer)] == ["CA1 (20)", "Mid-term (30)", "CA2 (20)"]
    assert arm.marks()["A/3"] == [None, 11, None]


def test_a_mark_of_an_assessment_that_was_deleted_is_refused_and_nothing_else_is_asked(arm):
    workbook = arm.download()
    arm.api.ok(arm.api.delete(f"/assessments/{arm.assessments[1]['id']}"))
    assert counts(arm.send(workbook)) == (4, 0, 0, 2, 2)

    answer = arm.send(fill(workbook, {"A/3": {"CA2 (20)": 11}}))

    assert refused(answer) == [(4, "CA2 (20)", "unknown")]


def test_assessments_of_one_heading_have_their_names_too(arm):
    again = [
        arm.make.assessment(
            arm.subject, arm.term, category="CA1", abbreviation="CA1", name=name, due_date="2025-11-01"
        )
        for name in ("Second test", "Second test")
    ]
    workbook = arm.download()
    headings = [cell.value for cell in workbook["Marks"][1]]
    first = arm.assessments[0]["name"]
    assert headings[3:6] == [f"CA1 (20) {first}", "CA1 (20) Second test", "CA1 (20) Second test 2"]

    arm.api.ok(arm.send(fill(workbook, {"A/3": {headings[4]: 1, headings[5]: 2}})))

    stored = {
        gradebook["assessment"]: gradebook["score"]
        for gradebook in arm.api.ok(arm.api.get("/gradebooks"))["data"]
    }
    assert sorted(stored[assessment["id"]] for assessment in again) == [1, 2]


def test_without_hidden_sheets_columns_are_found_by_heading_and_no_cell_is_emptied(arm):
    workbook = fill(arm.download(), {"A/1": {"CA1 (20)": None, "CA2 (20)": 7}})
    del workbook["Held"], workbook["Details"]

    assert counts(arm.send(workbook)) == (4, 1, 0, 1, 2)
    assert arm.marks() == {**MARKS, "A/1": [12.5, 7, None]}


def test_a_heading_that_may_be_of_two_assessments_is_of_none(arm):
    arm.make.assessment(arm.subject, arm.term, category="CA1", abbreviation="CA1", total_points=10)
    csv = b"admission_number,CA1,ca2\nA/3,5,6\n"

    answer = arm.send(csv, name="marks.csv")

    assert (answer.get_json()["ignored_columns"], answer.get_json()["created"]) == (["CA1"], 1)
    assert arm.marks()["A/3"] == [None, None, 6, None]


def test_a_csv_file_is_entered_by_its_headings(arm):
    csv = "Admission Number,name,CA1 (20),EX\nA/1,Ngọzi Abara,14,absent\nA/3,,,33.5\n".encode()

    assert counts(arm.send(csv, name="marks.csv")) == (2, 1, 1, 0, 0)
    assert arm.marks() == {**MARKS, "A/1": [14, None, "ABSENT"], "A/3": [None, None, 33.5]}


# Sheets of other subjects, terms and arms


def test_a_sheet_of_another_subject_term_or_arm_is_refused(arm):
    workbook = fill(arm.download(), {"A/3": {"CA2 (20)": 11}})
    other = arm.make.cohort_subject(arm.cohort)["id"]
    second = arm.make.term({"id": arm.cohort["session"]}, term="SECOND")["id"]
    batch = arm.make.batch(arm.cohort, name="B")["id"]
    form = saved(workbook)

    def send(subject, arm_, term):
        path = f"/cohort-subjects/{subject}/mark-sheet?batch={arm_}&term={term}"
        return arm.api.post(path, data={"mark_sheet": (BytesIO(form), "marks.xlsx")})

    mine = arm.subject["id"], arm.batch, "FIRST"
    for place, what in ((0, "subject"), (1, "batch"), (2, "term")):
        others = [*mine]
        others[place] = (other, batch, second)[place]
        answer = send(*others)
        assert answer.status_code == 422, what
        assert answer.get_json()["message"].startswith(f"The sheet is that of another {what}: "), what
    assert counts(send(*mine)) == (4, 1, 0, 2, 1)


def test_ids_unknown_or_of_another_school_or_cohort_are_refused_alike(arm, make_other):
    elsewhere = Marked(make_other)
    stranger = arm.make.taught(1)

    def refusals(subject=None, **query):
        form = {"mark_sheet": (BytesIO(b"no sheet"), "marks.xlsx")}
        path = arm.path(**query) if subject is None else arm.path(**query).replace(arm.subject["id"], subject)
        answers = [
            arm.api.get(path),
            arm.api.get(path.replace("mark-sheet", "scores")),
            arm.api.post(path, data=form),
            arm.api.put(path.replace("mark-sheet", "scores"), [arm.record("A/1", 0, score=1)]),
        ]
        return {(answer.status_code, str(answer.get_json().get("errors"))) for answer in answers}

    assert refusals(str(uuid4())) == refusals(elsewhere.subject["id"]) == {(404, "None")}
    unknown = refusals(batch=str(uuid4()))
    assert {status for status, _ in unknown} == {422}
    assert refusals(batch=elsewhere.batch) == unknown
    assert {status for status, _ in refusals(batch=stranger.cohort["id"])} == {422}
    no_term = refusals(term=str(uuid4()))
    assert {status for status, _ in no_term} == {422}
    assert refusals(term=elsewhere.term["id"]) == no_term
    assert {status for status, _ in refusals(term=stranger.term["id"])} == {422}


@pytest.mark.parametrize("content", [b"", b"nothing", saved(Workbook())])
def test_a_file_that_is_no_mark_sheet_is_refused(arm, content):
    assert arm.send(content).status_code == 422


def test_a_hidden_sheet_that_was_changed_is_refused(arm):
    workbook = fill(arm.download(), {"A/3": {"CA2 (20)": 11}})
    workbook["Held"]["D5"].value = "a word"

    answer = arm.send(workbook)

    assert answer.status_code == 422
    assert "download it again" in answer.get_json()["message"]


# A trial


def test_a_dry_run_answers_the_changes_and_stores_nothing(arm):
    workbook = fill(
        arm.download(), {"A/1": {"CA1 (20)": None}, "A/2": {"CA1 (20)": 4}, "A/3": {"EX (60)": 1}}
    )
    workbook["Marks"].delete_rows(5)

    answer = arm.send(workbook, dry_run="true")

    assert counts(answer) == (3, 1, 2, 0, 0)
    changes = [
        (change["row"], change["column"], change["old"], change["new"])
        for change in answer.get_json()["changes"]
    ]
    assert changes == [(2, "CA1 (20)", 12.5, None), (3, "CA1 (20)", "ABSENT", 4), (4, "EX (60)", None, 1)]
    assert [student["admission_number"] for student in answer.get_json()["not_in_sheet"]] == ["A/4"]
    assert totals(answer)[0] == ("CA1 (20)", 1, 4, 0, 0, 3)
    assert arm.marks() == MARKS


# Submitted


def test_marks_of_a_submitted_arm_stay_and_the_unchanged_are_taken(arm):
    workbook = arm.download()
    body = {"term": "FIRST", "blanks": "EXCUSED"}
    arm.api.ok(arm.api.post(f"/cohort-subjects/{arm.subject['id']}/submission", body))

    assert counts(arm.send(workbook)) == (4, 0, 0, 2, 2)
    answer = arm.send(fill(workbook, {"A/1": {"CA1 (20)": 3}}), force="true")

    assert answer.status_code == 409
    assert "are submitted" in answer.get_json()["message"]
    assert arm.marks()["A/1"] == [12.5, "EXCUSED", "EXCUSED"]
