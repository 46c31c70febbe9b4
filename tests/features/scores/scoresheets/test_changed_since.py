"""A score sheet that is older than the stored scores, a trial of one, and the names in its rows."""

from __future__ import annotations

import csv
import re
from io import BytesIO, StringIO

import pytest
from openpyxl import load_workbook

from school_service.sheets.downloads import CHANGED_DETAILS
from tests.features.scores.scoresheets.sheets import bad_rows, counts, download, fill, scores, sheet_of
from tests.features.scores.scoresheets.test_upload import Exam
from tests.prepared import prepared_for_each
from tests.sheets.workbooks import saved


class Class(Exam):
    """An assessment of 60 points, and three students with names of their own; the first has 45."""

    PEOPLE = (("Ngọzi", "Eze"), ("Ƙwai", "Ɗanladi"), ("Adé", "O'Neil Bàlógun"))

    def __init__(self, make):
        self.make, self.api = make, make.api
        self.taught = make.taught(0)
        self.subject, self.term, self.cohort = self.taught.subject, self.taught.term, self.taught.cohort
        self.assessment = make.assessment(self.subject, self.term, total_points=60)
        made = [
            make.student(first_name=first, last_name=last, middle_name="Ọlá", admission_number=f"A/{number}")
            for number, (first, last) in enumerate(self.PEOPLE, 1)
        ]
        self.students = {student["admission_number"]: student["id"] for student in made}
        make.enrolled(self.cohort, *made)
        self.entry = make.entry(self.assessment, self.students["A/1"], self.cohort["id"], 45)

    def send(self, content, query=""):
        form = {"scoresheet": (BytesIO(content), "scores.xlsx")}
        return self.api.post(f"/assessments/{self.assessment['id']}/scoresheet{query}", data=form)

    def workbook(self):
        return download(self.api, self.assessment)

    def enter(self, score, number="A/1"):
        entries = {
            entry["student"]: entry["id"] for entry in self.api.ok(self.api.get("/gradebooks"))["data"]
        }
        entry_id = entries.get(self.students[number])
        if entry_id:
            self.api.ok(self.api.patch(f"/gradebooks/{entry_id}", {"score": score}))
        else:
            self.make.entry(self.assessment, self.students[number], self.cohort["id"], score)


original, exam = prepared_for_each(Class)


def changed(answer):
    assert answer.status_code == 409, answer.get_data(as_text=True)
    assert {error["code"] for error in answer.get_json()["errors"]["rows"]} == {"changed"}
    return [error["message"] for error in answer.get_json()["errors"]["rows"]]


# Changes since the download


def test_a_score_that_was_changed_since_the_download_is_not_replaced(exam):
    content = fill(exam.workbook(), {"A/1": 50, "A/2": 30})
    exam.enter(48)

    (message,) = changed(exam.send(content))

    row = next(cells[0].row for cells in exam.workbook()["Scores"].iter_rows() if cells[0].value == "A/1")
    who = exam.api.ok(exam.api.get("/audit?entity=gradebook"))["data"][0]["actor_name"]
    assert message.startswith(f'D{row}: "50" would replace 48, which {who} entered on 20')
    assert message.endswith(
        ", after the download, for Ngọzi Eze (A/1): download the sheet again, or send this one with force=true"
    )
    assert exam.scores() == {"A/1": 48, "A/2": None, "A/3": None}
    assert counts(exam.send(fill(exam.workbook(), {"A/1": 50, "A/2": 30}))) == (3, 1, 1, 0, 1)


def test_a_writer_without_the_permission_to_read_learns_the_scores_that_the_sheet_would_replace(exam):
    content = fill(exam.workbook(), {"A/1": 50})
    exam.enter(46)
    exam.enter(38.75, "A/2")
    writer = exam.make.caller("write:gradebooks")
    form = {"scoresheet": (BytesIO(content), "scores.xlsx")}

    (message,) = changed(writer.post(f"/assessments/{exam.assessment['id']}/scoresheet", data=form))

    assert "would replace 46, which School Administrator entered" in message
    assert "38.75" not in message
    assert "A/2" not in message


def test_a_score_that_nobody_touched_in_the_sheet_does_not_replace_a_newer_one(exam):
    content = saved(exam.workbook())
    exam.enter(48)

    assert len(changed(exam.send(content))) == 1
    assert exam.scores()["A/1"] == 48


def test_a_score_that_was_entered_since_is_not_replaced(exam):
    content = fill(exam.workbook(), {"A/2": 30})
    exam.enter(20, "A/2")

    assert len(changed(exam.send(content))) == 1


def test_the_same_score_entered_by_another_is_no_reason(exam):
    content = fill(exam.workbook(), {"A/1": 48, "A/2": 30})
    exam.enter(48)
    exam.enter(30, "A/2")

    assert counts(exam.send(content)) == (3, 0, 0, 2, 1)


def test_a_score_that_was_changed_and_is_blank_in_the_sheet_stays(exam):
    content = fill(exam.workbook(), {"A/1": None, "A/2": 30})
    exam.enter(48)

    assert counts(exam.send(content)) == (3, 1, 0, 0, 2)
    assert exam.scores()["A/1"] == 48


def test_a_score_that_was_removed_since_does_not_come_back(exam):
    content = fill(exam.workbook(), {"A/2": 30})
    exam.api.ok(exam.api.delete(f"/gradebooks/{exam.entry['id']}"))

    (message,) = changed(exam.send(content))

    assert '"45" would bring back a score that ' in message
    assert "somebody" not in message
    assert exam.scores()["A/1"] is None


def test_a_sheet_is_no_obstacle_to_itself_but_to_its_copy(exam, make):
    workbook = exam.workbook()
    first, second = (fill(workbook, {"A/1": score}) for score in (50, 55))
    assert counts(exam.send(first)) == (3, 0, 1, 0, 2)
    assert counts(exam.send(second)) == (3, 0, 1, 0, 2)

    exam.api = make.caller("write:gradebooks")

    assert len(changed(exam.send(first))) == 1


def test_a_change_begun_before_the_download_and_stored_after_it_is_noticed(exam):
    """The moment of the change is before the moment of the download: only the values tell."""
    content = fill(exam.workbook(), {"A/1": 50})
    workbook = load_workbook(BytesIO(content))
    details = workbook["Details"]
    (hidden,) = [row for row in details.iter_rows() if row[0].value == "Stored then 1"]
    hidden[1].value = hidden[1].value.replace('"moment":"20', '"moment":"21')
    exam.enter(48)

    assert len(changed(exam.send(saved(workbook)))) == 1


def test_force_replaces_and_is_on_record(exam):
    content = fill(exam.workbook(), {"A/1": 50, "A/2": 30})
    exam.enter(48)

    assert counts(exam.send(content, "?force=true")) == (3, 1, 1, 0, 1)

    assert exam.scores() == {"A/1": 50, "A/2": 30, "A/3": None}
    forced = {new["score"]: new.get("forced") for _, _, new in exam.log()[:2]}
    assert forced == {50: True, 30: None}


def test_a_sheet_that_was_not_downloaded_replaces_stored_scores(exam):
    exam.enter(48)
    content = sheet_of(("A/1", None, None, 50))

    assert counts(exam.send(content)) == (1, 0, 1, 0, 0)
    assert "downloaded" not in exam.log()[0][2]


@pytest.mark.parametrize("text", ['{"moment": 1}', "{", "[]", '{"moment":"2026","stored":{"A/1":[1]}}', "x"])
def test_details_that_were_tampered_with_are_refused(exam, text):
    workbook = exam.workbook()
    (hidden,) = [row for row in workbook["Details"].iter_rows() if row[0].value == "Stored then 1"]
    assert workbook["Details"].row_dimensions[hidden[0].row].hidden
    hidden[1].value = text

    answer = exam.send(fill(workbook, {"A/1": 50}))

    assert (answer.status_code, answer.get_json()["message"]) == (422, CHANGED_DETAILS)


def test_an_upload_with_changes_since_the_download_costs_two_statements_more(exam, messages):
    content = fill(exam.workbook(), {"A/1": 50, "A/2": 30, "A/3": 20})
    with messages() as right:
        counts(exam.send(content, "?dry_run=true"))
    for number in exam.students:
        exam.enter(10, number)
    with messages() as late:
        assert len(changed(exam.send(content))) == 3

    # The changes in the audit log, and the clock of the school.
    assert len(late) - len(right) == 2


def test_an_upload_over_scores_of_the_same_download_asks_for_no_clock(exam, messages):
    workbook = exam.workbook()
    with messages() as first:
        counts(exam.send(fill(workbook, {"A/1": 50})))
    with messages() as second:
        counts(exam.send(fill(workbook, {"A/1": 60})))

    # The changes in the audit log.
    assert len(second) - len(first) == 1


# A trial


def test_a_dry_run_answers_the_changes_and_the_missing_students(exam):
    workbook = exam.workbook()
    sheet = workbook["Scores"]
    gone = next(cells[0].row for cells in sheet.iter_rows() if cells[0].value == "A/3")
    sheet.delete_rows(gone)
    content = fill(workbook, {"A/1": 50.5, "A/2": 30})

    answer = exam.api.ok(exam.send(content, "?dry_run=true"))

    assert answer["not_in_sheet"] == [
        {"admission_number": "A/3", "first_name": "Adé", "last_name": "O'Neil Bàlógun"}
    ]
    assert {
        (change["admission_number"], change["column"], change["old"], change["new"])
        for change in answer["changes"]
    } == {("A/2", "score", None, 30), ("A/1", "score", 45, 50.5)}
    assert {name: answer[name] for name in ("rows", "created", "updated", "unchanged", "blank")} == {
        "rows": 2, "created": 1, "updated": 1, "unchanged": 0, "blank": 0,
    }  # fmt: skip
    assert exam.scores() == {"A/1": 45, "A/2": None, "A/3": None}
    assert len(exam.log()) == 1


def test_a_dry_run_is_refused_as_the_upload_would_be(exam):
    content = fill(exam.workbook(), {"A/1": 50})
    exam.enter(48)

    assert len(changed(exam.send(content, "?dry_run=true"))) == 1
    assert exam.api.ok(exam.send(content, "?dry_run=true&force=true"))["updated"] == 1
    assert bad_rows(exam.send(sheet_of(("A/1", None, None, 61)), "?dry_run=true")) == [
        (2, "score", "invalid")
    ]
    assert exam.scores()["A/1"] == 48


@pytest.mark.parametrize("query", ["dry_run=yes", "force=", "force=2"])
def test_options_are_true_or_false(exam, query):
    answer = exam.send(saved(exam.workbook()), f"?{query}")

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, [query.split("=")[0]])


def test_an_upload_answers_no_more_than_it_did(exam):
    answer = exam.api.ok(exam.send(fill(exam.workbook(), {"A/1": 50})))

    assert set(answer) == {"rows", "created", "updated", "unchanged", "blank"}


def test_columns_that_are_not_known_are_named(exam):
    header = ("Admission number", "SCORE", "remarks", "Position")

    answer = exam.api.ok(exam.send(sheet_of(("A/1", 50, "good", 1), header=header)))

    assert (answer["updated"], answer["ignored_columns"]) == (1, ["remarks", "Position"])


# The names in the rows


def moved_names(workbook):
    """Let the names move up by a row, as when some columns are sorted without the others."""
    sheet = workbook["Scores"]
    rows = list(sheet.iter_rows(min_row=2))
    names = [(row[1].value, row[2].value) for row in rows]
    for row, (first, last) in zip(rows, [*names[1:], names[0]], strict=True):
        row[1].value, row[2].value = first, last
    return workbook


def test_a_row_with_the_name_of_another_is_refused(exam):
    content = fill(moved_names(exam.workbook()), {"A/1": 50})

    answer = exam.send(content)

    assert bad_rows(answer) == [(row, "first_name", "invalid") for row in (2, 3, 4)]
    messages = [error["message"] for error in answer.get_json()["errors"]["rows"]]
    (about,) = [message for message in messages if '"Ngọzi Eze"' in message]
    assert re.fullmatch(
        r'B[234]: "Ngọzi Eze" is the name of A/1, not of A/[23]: put the names back beside their '
        r"admission numbers, or download the sheet again",
        about,
    )
    assert exam.scores()["A/1"] == 45


def test_a_name_that_is_nobodys_is_refused_in_a_downloaded_sheet_alone(exam):
    workbook = exam.workbook()
    workbook["Scores"]["B2"].value = "Zed"
    workbook["Scores"]["C2"].value = "Zulu"

    assert bad_rows(exam.send(fill(workbook, {"A/1": 50}))) == [(2, "first_name", "invalid")]
    assert counts(exam.send(sheet_of(("A/1", "Zed", "Zulu", 50)))) == (1, 0, 1, 0, 0)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("NGOZI", "eze"),
        ("Eze", "Ngozi"),
        ("Ngo\u0323zi", " Eze "),
        ("Ngozi Ola", "Eze"),
        ("Ngozi Ola Chidera", "Eze"),
        ("Eze Ngozi", None),
        (None, "Eze"),
        ("NgoziEze", None),
        (None, None),
    ],
)
def test_a_name_may_be_written_in_many_ways(exam, first, last):
    workbook = exam.workbook()
    row = next(cells for cells in workbook["Scores"].iter_rows() if cells[0].value == "A/1")
    row[1].value, row[2].value = first, last

    assert counts(exam.send(fill(workbook, {"A/1": 50}))) == (3, 0, 1, 0, 2)


@pytest.mark.parametrize(
    ("number", "first", "last"),
    [
        ("A/2", "KWAI", "DANLADI"),
        ("A/2", "ƙwai", "ɗanladi"),
        ("A/3", "Ade", "ONeil-Balogun"),
        ("A/3", "Ade", "O’Neil"),  # noqa: RUF001 -- as Word types it
    ],
)
def test_letters_of_every_language_are_compared_plainly(exam, number, first, last):
    workbook = exam.workbook()
    row = next(cells for cells in workbook["Scores"].iter_rows() if cells[0].value == number)
    row[1].value, row[2].value = first, last

    assert counts(exam.send(fill(workbook, {number: 50}))) == (3, 1, 0, 1, 1)


def test_in_a_sheet_from_elsewhere_the_name_of_another_is_refused_unless_it_is_a_placeholder(exam):
    swapped = [("A/1", "Ƙwai", "Ɗanladi", 1), ("A/2", "Ngozi", "Eze", 2)]
    placeholder = [("A/1", "Ngozi", "Eze", 1), ("A/2", "Ngozi", "Eze", 2)]

    assert bad_rows(exam.send(sheet_of(*swapped))) == [
        (2, "first_name", "invalid"),
        (3, "first_name", "invalid"),
    ]
    assert counts(exam.send(sheet_of(*placeholder))) == (2, 1, 1, 0, 0)


def test_an_admission_number_in_other_letters_is_told(exam):
    answer = exam.send(sheet_of(("a/1", None, None, 50)))

    assert bad_rows(answer) == [(2, "admission_number", "unknown")]
    (error,) = answer.get_json()["errors"]["rows"]
    assert error["message"] == 'A2: "a/1" is no student\'s admission number: write A/1'


# Other files


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_csv_file_is_a_sheet_too(exam, encoding):
    text = StringIO()
    writer = csv.writer(text, delimiter=";")
    writer.writerows(
        [["Mathematics"], ["Admission number", "First name", "Score"], ["A/1", "Ngọzi", "50.5"], []]
    )

    assert counts(exam.send(text.getvalue().encode(encoding))) == (1, 0, 1, 0, 0)
    assert exam.scores()["A/1"] == 50.5


def test_a_score_that_a_comma_has_split_is_not_stored(exam):
    answer = exam.send(b"admission_number,score\nA/1,12,5\nA/2,7\n")

    assert bad_rows(answer) == [(2, "C", "invalid")]
    (error,) = answer.get_json()["errors"]["rows"]
    assert error["message"].startswith(
        'row 2: "5" is beyond the columns of the header for Ngọzi Eze (A/1): write numbers with a point'
    )
    assert exam.scores() == {"A/1": 45, "A/2": None, "A/3": None}
    assert counts(exam.send(b"admission_number,score\nA/1,12.5\nA/2,7\n")) == (2, 1, 1, 0, 0)


def test_more_than_200_problems_are_counted(exam):
    answer = exam.send(sheet_of(*((f"X/{number}", None, None, "absent") for number in range(250))))

    assert len({row for row, _, _ in bad_rows(answer)}) == 200
    assert answer.get_json()["message"].endswith(
        "There are 500 problems in 250 rows; those of the first are listed."
    )


def test_the_sheet_of_the_other_school_is_refused(exam, make_other):
    theirs = Class(make_other)
    content = fill(download(theirs.api, theirs.assessment), {"A/1": 10})

    assert exam.send(content, "?force=true").status_code == 422
    assert exam.scores() == {"A/1": 45, "A/2": None, "A/3": None}
    assert scores(theirs.api, theirs.subject)["A/1"] == [45]
