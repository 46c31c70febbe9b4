"""Uploading a filled-in score sheet."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from itertools import product
from uuid import uuid4

import pytest
from openpyxl import Workbook, load_workbook

from school_service.sheets.uploads import NO_ROWS
from tests.features.scores.scoresheets.sheets import (
    bad_rows,
    counts,
    download,
    fill,
    scores,
    sheet_of,
    upload,
)
from tests.prepared import prepared_for_each
from tests.sheets.workbooks import NO_NUMBERS, NO_WORKBOOKS, handmade, row_xml, saved, sheet_xml
from tests.threads import run_concurrently

MOMENT = datetime(1900, 1, 20, 12)


class Exam:
    """An assessment of 60 points, and the students A/1 … who take the subject."""

    def __init__(self, make, students=3):
        self.api = make.api
        self.taught = make.taught(0)
        self.subject, self.term, self.cohort = self.taught.subject, self.taught.term, self.taught.cohort
        made = [make.student(admission_number=f"A/{number}") for number in range(1, students + 1)]
        self.students = {student["admission_number"]: student["id"] for student in made}
        make.enrolled(self.cohort, *made)
        self.assessment = make.assessment(self.subject, self.term, total_points=60)

    def upload(self, content, name="scores.xlsx", api=None):
        return upload(api or self.api, self.assessment, content, name)

    def send(self, *rows, **options):
        return self.upload(sheet_of(*rows, **options))

    def scores(self):
        return {number: (given or [None])[0] for number, given in scores(self.api, self.subject).items()}

    def log(self):
        page = self.api.ok(self.api.get("/audit", query_string={"entity": "gradebook", "pageSize": 1000}))
        return [(change["action"], change["old"], change["new"]) for change in page["data"]]


original, exam = prepared_for_each(Exam)


def row(number, score=None):
    return (number, "Ada", "Eze", score)


def by_sheet(score, name="scores.xlsx"):
    return {"score": score, "source": "sheet", "file_name": name}


# Changes by an upload


def test_a_downloaded_sheet_is_filled_in_and_sent_back(api, exam):
    content = fill(download(api, exam.assessment), {"A/1": 45.5, "A/3": 0})

    assert counts(exam.upload(content)) == (3, 2, 0, 0, 1)
    assert exam.scores() == {"A/1": 45.5, "A/2": None, "A/3": 0}


def test_an_upload_changes_differing_scores_and_leaves_blank_and_missing_ones(make, exam):
    for number in ("A/1", "A/2", "A/3"):
        make.entry(exam.assessment, exam.students[number], exam.cohort["id"], 10)

    assert counts(exam.send(row("A/1", 11), row("A/2"))) == (2, 0, 1, 0, 1)
    assert exam.scores() == {"A/1": 11, "A/2": 10, "A/3": 10}


def test_the_same_again_changes_nothing_and_logs_nothing(exam):
    content = sheet_of(row("A/1", 45.5), row("A/2", 0), row("A/3"))
    assert counts(exam.upload(content)) == (3, 2, 0, 0, 1)
    entries, log = exam.api.ok(exam.api.get("/gradebooks")), exam.log()

    assert counts(exam.upload(content, "again.xlsx")) == (3, 0, 0, 2, 1)

    assert (exam.api.ok(exam.api.get("/gradebooks")), exam.log()) == (entries, log)


def test_every_change_is_in_the_audit_log_with_the_files_name(make, exam):
    entry = make.entry(exam.assessment, exam.students["A/1"], exam.cohort["id"], 10)
    counts(exam.upload(sheet_of(row("A/1", 11)), "first.xlsx"))
    counts(exam.upload(sheet_of(row("A/1", 12)), "Ìkejì.xlsx"))
    exam.api.ok(exam.api.delete(f"/gradebooks/{entry['id']}"))

    assert exam.log() == [
        ("delete", by_sheet(12, "Ìkejì.xlsx"), None),
        ("update", by_sheet(11, "first.xlsx"), by_sheet(12, "Ìkejì.xlsx")),
        ("update", {"score": 10, "source": "hand"}, by_sheet(11, "first.xlsx")),
        ("create", None, {"score": 10, "source": "hand"}),
    ]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("C:/marks/a.xlsx", "C--marks-a.xlsx"),
        ("../a.xlsx", "-a.xlsx"),
        ("..", "file"),
        ("a\x7f\u202e.xlsx", "a.xlsx"),
        ("x" * 400 + ".xlsx", "x" * 145 + ".xlsx"),
        ("\u0300.xlsx", "\u0300.xlsx"),
    ],
)
def test_the_files_name_may_be_anything(exam, sent, stored):
    counts(exam.upload(sheet_of(row("A/1", 1)), sent))

    assert exam.log() == [("create", None, by_sheet(1, stored))]


def test_a_score_is_of_the_batch_that_the_student_is_in(make, exam):
    arm = make.batch(exam.cohort)
    make.enrolled(exam.cohort, make.student(admission_number="B/1"), batch=arm["id"])
    counts(exam.send(row("B/1", 1), row("A/1", 2)))

    listed = {
        batch: [entry["score"] for entry in exam.api.ok(exam.api.get(f"/gradebooks?batch={batch}"))["data"]]
        for batch in (arm["id"], exam.cohort["id"])
    }
    assert listed == {arm["id"]: [1], exam.cohort["id"]: [2]}


def test_columns_may_come_in_any_order_with_others_between(exam):
    header = (" Remarks", "SCORE", "admission_number ", "total", None)

    assert counts(exam.send(("good", 7, "A/1", "=B2*2", None), header=header)) == (1, 1, 0, 0, 0)
    assert exam.scores()["A/1"] == 7


def test_names_are_not_looked_at(exam):
    odd = (("A/1", date(2025, 1, 1), None, 7), ("A/2", "#N/A", True, 8), ("A/3", "=1/0", "Somebody else", 9))

    assert counts(exam.send(*odd)) == (3, 3, 0, 0, 0)


def test_empty_rows_do_not_count(exam):
    empty = ((), (None, " ", None, "  "), ("", "", "", ""))

    assert counts(exam.send(*empty, row("A/1", 1), *empty, row("A/2", 2))) == (2, 2, 0, 0, 0)


def test_a_sheet_without_rows_is_refused(exam):
    answer = exam.send()

    assert (answer.status_code, answer.get_json()["message"]) == (422, NO_ROWS)


def test_admission_numbers_that_look_like_numbers_are_texts(make, exam):
    make.enrolled(exam.cohort, make.student(admission_number="2019"), make.student(admission_number="007"))

    assert counts(exam.send(row(2019, 1), row(" 007 ", 2))) == (2, 2, 0, 0, 0)
    assert bad_rows(exam.send(row(7, 1))) == [(2, "admission_number", "unknown")]


# Scores


@pytest.mark.parametrize(
    ("cell", "score"),
    [
        (0, 0),
        (-0.0, 0),
        (60, 60),
        (0.1 + 0.2, 0.3),
        (12.34, 12.34),
        (59.99, 59.99),
        (Decimal("7.50"), 7.5),
        ("12.5", 12.5),
        (" 8 ", 8),
        (1.1 * 3, 3.3),
    ],
)
def test_a_number_is_a_score(exam, cell, score):
    counts(exam.send(row("A/1", cell)))

    assert exam.scores()["A/1"] == score


@pytest.mark.parametrize("cell", [-0.01, 60.01, 1e300, 12.345, 0.001, 12.3400000001, *NO_NUMBERS])
def test_anything_else_is_not(exam, cell):
    assert bad_rows(exam.send(row("A/1", cell), row("A/2", 1))) == [(2, "score", "invalid")]
    assert exam.scores() == dict.fromkeys(exam.students)


@pytest.mark.parametrize(
    ("cell", "outcome"),
    [
        ('<c r="B2"><f>6*7</f><v>42</v></c>', 42),
        ('<c r="B2" t="str"><f>"4"&amp;"2"</f><v>42</v></c>', 42),
        ('<c r="B2" t="str"><f>""</f><v></v></c>', None),
        (
            '<c r="B2"><f>6*7</f></c>',
            "B2: has a formula without a result for Chidinma Bàlógun (A/1): open the sheet",
        ),
        (
            '<c r="B2"><f>6*7</f><v/></c>',
            "B2: has a formula without a result for Chidinma Bàlógun (A/1): open the sheet",
        ),
        ('<c r="B2" t="e"><f>1/0</f><v>#DIV/0!</v></c>', 'B2: "#DIV/0!" is the error of a formula'),
        ('<c r="B2"><v>1E+1</v></c>', 10),
        ('<c r="B2"><v>0.30000000000000004</v></c>', 0.3),
        ('<c r="B2"><v>1E+999</v></c>', 'B2: "#NUM!" is the error of a formula'),
    ],
)
def test_a_formula_counts_by_its_stored_value(exam, cell, outcome):
    filled = f'<row r="2"><c r="A2" t="inlineStr"><is><t>A/1</t></is></c>{cell}</row>'

    answer = exam.upload(handmade(sheet_xml(row_xml("admission_number", "score") + filled)))

    if isinstance(outcome, str):
        assert bad_rows(answer) == [(2, "score", "invalid")]
        assert outcome in answer.get_json()["errors"]["rows"][0]["message"]
    else:
        counts(answer)
    assert exam.scores()["A/1"] == (None if isinstance(outcome, str) else outcome)


# Refusals


def test_every_bad_row_is_reported_and_nothing_is_stored(make, exam):
    elsewhere = make.student(admission_number="C/1")
    sent = [
        row("A/1", 10),
        row("A/1", 11),
        row("X/9", 12),
        row("C/1", 13),
        (),
        row(None, 14),
        row("A/2", 61),
        row("A/3", "absent"),
        row("X/8", 12.345),
        row(MOMENT, 1),
    ]

    answer = exam.send(*sent)

    assert bad_rows(answer) == [
        (3, "admission_number", "duplicate"),
        (4, "admission_number", "unknown"),
        (5, "admission_number", "invalid"),
        (7, "admission_number", "required"),
        (8, "score", "invalid"),
        (9, "score", "invalid"),
        (10, "admission_number", "unknown"),
        (10, "score", "invalid"),
        (11, "admission_number", "invalid"),
    ]
    messages = [bad["message"] for bad in answer.get_json()["errors"]["rows"]]
    assert messages[:5] == [
        'A3: "A/1" is in row 2 already',
        'A4: "X/9" is no student\'s admission number',
        f'A5: "C/1" is {elsewhere["first_name"]} {elsewhere["last_name"]}, who does not take the subject',
        "A7: the admission number is missing",
        'D8: "61" is no score for Chidinma Bàlógun (A/2): write a number from 0 to 60',
    ]
    assert exam.scores() == dict.fromkeys(exam.students)
    assert exam.log() == []


def test_at_most_200_bad_rows_are_reported(exam):
    assert len(bad_rows(exam.send(*(row(f"X/{number}", 1) for number in range(300))))) == 200


@pytest.mark.parametrize(
    ("header", "errors"),
    [
        (("admission_number", "first_name"), [(1, "score", "required")]),
        (("score",), [(1, "admission_number", "required")]),
        (("admission_number", "score", "Score "), [(1, "score", "duplicate")]),
        (("admission_number", "score", "admission_number"), [(1, "admission_number", "duplicate")]),
        (("first_name", "admission_number", "score", "first_name"), [(1, "first_name", "duplicate")]),
        ((), [(1, "admission_number", "required"), (1, "score", "required")]),
    ],
)
def test_a_column_missing_or_there_twice_is_refused(exam, header, errors):
    assert bad_rows(exam.send(header=header)) == errors


def test_the_sheet_of_another_assessment_is_refused(make, exam):
    other = make.assessment(exam.subject, exam.term, name="The other one")
    content = fill(download(exam.api, other), {"A/1": 5})

    answer = exam.upload(content)

    assert answer.status_code == 422
    class_ = exam.api.ok(exam.api.get(f"/cohorts/{exam.cohort['id']}"))["classroom"]
    message = answer.get_json()["message"]
    assert message.startswith("The sheet is that of another assessment: The other one (Subject ")
    assert f", {class_} " in message
    assert message.endswith(f", {exam.term['displayName']}).")
    assert exam.scores() == dict.fromkeys(exam.students)
    assert counts(upload(exam.api, other, content)) == (3, 1, 0, 0, 2)


@pytest.mark.parametrize("label", ["Assessment ID", " assessment id "])
def test_details_are_compared_without_case(exam, label):
    right = sheet_of(row("A/1", 1), details=[(label, exam.assessment["id"].upper())])
    wrong = sheet_of(row("A/1", 1), details=[(label, str(uuid4()))])

    assert exam.upload(wrong).status_code == 422
    assert counts(exam.upload(right)) == (1, 1, 0, 0, 0)


def test_details_without_the_id_are_like_none(exam):
    assert counts(exam.send(row("A/1", 1), details=[("Remarks", "none")])) == (1, 1, 0, 0, 0)


def test_a_workbook_without_the_sheet_is_refused(exam):
    made = Workbook()
    made.create_sheet("Marks")

    assert exam.upload(saved(made)).status_code == 422


@pytest.mark.parametrize("content", NO_WORKBOOKS)
def test_a_file_that_is_no_workbook_is_refused(exam, content):
    assert exam.upload(content).status_code == 422


def test_the_file_is_needed_in_a_form(exam):
    path = f"/assessments/{exam.assessment['id']}/scoresheet"

    for form in ({}, {"scoresheet": "text"}, {"sheet": (BytesIO(b"x"), "x.xlsx")}):
        answer = exam.api.post(path, data=form, content_type="multipart/form-data")
        assert answer.status_code == 422
        assert "scoresheet" in answer.get_json()["errors"]["files"]
    assert exam.api.post(path, {}).status_code == 415


def test_an_assessment_that_is_not_there_is_not_found(make, exam):
    gone = make.assessment(exam.subject, exam.term)
    exam.api.ok(exam.api.delete(f"/assessments/{gone['id']}"))

    for assessment, content in product(
        (gone, {"id": uuid4()}), (sheet_of(row("A/1", 1)), sheet_of(), b"no sheet")
    ):
        answer = upload(exam.api, assessment, content)
        assert (answer.status_code, answer.get_json()["message"]) == (404, "No such assessment.")


# Many at once


@pytest.mark.parametrize("size", [2, 60])
def test_an_upload_costs_a_fixed_number_of_statements(make_other, messages, size):
    exam = Exam(make_other, students=size)
    numbers = list(exam.students)
    costs = []
    for chosen, score in ((numbers[: size // 2], 1), (numbers, 2), (numbers, 3), (numbers, 3)):
        content = sheet_of(*(row(number, score) for number in chosen))
        with messages() as sent:
            counts(exam.upload(content))
        costs.append(len(sent))

    # Begin, the record, the lock with the compared rows, the writing with its log, the end.
    assert costs == [5, 5, 5, 4]


def test_uploads_at_once_end_as_one_after_the_other(committing):
    exam = Exam(committing, students=4)

    def send(turn):
        content = sheet_of(*(row(number, turn) for number in exam.students))
        return counts(exam.upload(content, f"{turn}.xlsx", exam.api.using()))

    done = run_concurrently(6, send)

    assert sorted(done) == [(4, 0, 4, 0, 0)] * 5 + [(4, 4, 0, 0, 0)]
    (last,) = set(exam.scores().values())
    log = exam.log()
    assert len(log) == 24
    assert [new for _, _, new in log[:4]] == [by_sheet(last, f"{int(last)}.xlsx")] * 4
    # Each change begins where the one before it ended.
    for older, newer in zip(log[4:], log[:-4], strict=True):
        assert newer[1] == older[2]


def test_scores_by_hand_meanwhile_are_seen_or_come_after(committing):
    exam = Exam(committing, students=4)
    content = sheet_of(*(row(number, 5) for number in exam.students))
    body = {"assessment": exam.assessment["id"], "score": 9, "batch": exam.cohort["id"]}

    def work(turn):
        api = exam.api.using()
        if turn < 2:
            return exam.upload(content, api=api).status_code
        return api.post("/gradebooks", {**body, "student": exam.students[f"A/{turn - 1}"]}).status_code

    answers = run_concurrently(6, work)

    assert answers[:2] == [200, 200]
    by_hand = answers[2:].count(200)
    assert by_hand + answers[2:].count(409) == 4
    assert exam.scores() == dict.fromkeys(exam.students, 5)
    actions = [action for action, _, _ in exam.log()]
    assert (actions.count("create"), actions.count("update")) == (4, by_hand)


def test_the_assessment_deleted_meanwhile_is_not_found(committing):
    exam = Exam(committing)
    path = f"/assessments/{exam.assessment['id']}"

    def work(turn):
        api = exam.api.using()
        answer = exam.upload(sheet_of(row("A/1", 1)), api=api) if turn else api.delete(path)
        return answer.status_code

    deleted, uploaded = run_concurrently(2, work)

    assert deleted == 200
    assert uploaded in {200, 404}
    assert len(exam.log()) == (uploaded == 200)


def test_the_other_school_has_its_own(make_other, exam, other_api):
    theirs = Exam(make_other)
    content = sheet_of(row("A/1", 1))

    assert upload(other_api, exam.assessment, content).status_code == 404
    assert upload(other_api.using(school=exam.api.school), exam.assessment, content).status_code == 403
    # The same admission numbers are other students.
    assert counts(theirs.upload(content)) == (1, 1, 0, 0, 0)
    assert (theirs.scores()["A/1"], exam.scores()["A/1"]) == (1, None)
    assert theirs.upload(fill(download(exam.api, exam.assessment), {"A/1": 2})).status_code == 422
    assert upload(exam.api.using(school=None), exam.assessment, content).status_code == 200


# As clerks and teachers have them.


def messages(answer):
    return [bad["message"] for bad in answer.get_json()["errors"]["rows"]]


@pytest.mark.parametrize(
    ("written", "status"),
    [("absent", "ABSENT"), ("ABS", "ABSENT"), ("a.", "ABSENT"), ("Sick", "EXCUSED"), ("exc", "EXCUSED")],
)
def test_an_absence_in_place_of_a_score_is_told_where_it_belongs(exam, written, status):
    assert messages(exam.send(row("A/1", written))) == [
        f'D2: "{written}" is no number for Chidinma Bàlógun (A/1): write {status} into the column absence, '
        "which download-sheet?absences=true has, and leave the score blank"
    ]


def test_headings_that_people_give_are_taken(exam):
    header = ("S/N", "Adm. No.", "Surname", "First names", "Marks", "Absences", "Remarks")
    answer = exam.send((1, "A/1", "Bàlógun", None, 7), (2, "A/2", None, None, None, "abs"), header=header)

    assert counts(answer) == (2, 2, 0, 0, 0)
    assert answer.get_json()["warnings"] == ["Nothing was read of the column Remarks: not known."]


def test_names_in_a_wrong_character_set_are_reported_once(exam):
    wrong = "Bàlógun".encode().decode("cp1252", "replace").replace("\ufffd", "\xa0")
    content = fill(download(exam.api, exam.assessment), {"A/1": 5})
    made = load_workbook(BytesIO(content))
    made["Scores"]["C2"].value = wrong

    answer = exam.upload(saved(made))

    assert bad_rows(answer) == [(2, "last_name", "invalid")]
    assert "wrong character set" in messages(answer)[0]


def test_merged_cells_of_any_column_are_an_error(exam):
    made = fill(download(exam.api, exam.assessment), {"A/1": 5})
    book = load_workbook(BytesIO(made))
    book["Scores"].merge_cells("B2:B3")

    assert bad_rows(exam.upload(saved(book))) == [(2, "first_name", "invalid")]
