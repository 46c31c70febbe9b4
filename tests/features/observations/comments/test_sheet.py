"""The comment sheet of a batch and a term: downloaded, filled in, sent back."""

from __future__ import annotations

import pytest

from tests.features.observations.comments.sheets import HEADER, Said, fill
from tests.features.scores.scoresheets.sheets import bad_rows, counts, without_times
from tests.naming import name_with_number
from tests.prepared import prepared_for_each
from tests.sheets.workbooks import saved

NOTHING = (None, None, None)


original, class_ = prepared_for_each(Said)


def enter(class_, number, **members):
    class_.api.ok(class_.put({"student": class_.students[number], **members}))


def rows(workbook):
    return {row[0]: row[3:] for row in workbook["Comments"].iter_rows(values_only=True)}


# Download


def test_a_sheet_has_every_active_student_with_stored_comments(api, class_):
    enter(class_, "C/2", times_present=90, form_teacher_comment="=1+1", principal_comment="Ó dára")
    api.ok(api.patch(f"/students/{class_.students['C/3']}", {"status": "WITHDRAWN"}))

    answer = class_.download()

    assert rows(class_.workbook()) == {
        "admission_number": HEADER[3:],
        "C/1": (None, None, None),
        "C/2": (90, "=1+1", "Ó dára"),
    }
    sheet = class_.workbook()["Comments"]
    (formula,) = (row[4] for row in sheet.iter_rows() if row[0].value == "C/2")
    assert (formula.value, formula.data_type) == ("=1+1", "s")
    assert [cell.protection.locked for cell in sheet[2]] == [True] * 3 + [False] * 3
    assert "comments.xlsx" in answer.headers["Content-Disposition"]


@pytest.mark.parametrize(("opened", "most"), [(None, "400"), (124, "124"), (0, "0")])
def test_excel_lets_no_more_be_typed_than_school_opened(class_, opened, most):
    if opened is not None:
        class_.opened(opened)

    (rule,) = class_.workbook()["Comments"].data_validations.dataValidation

    assert (rule.type, rule.formula1, rule.formula2, str(rule.sqref)) == ("whole", "0", most, "D2:D4")


def test_the_details_name_school_class_and_term(class_, place):
    class_.opened(124)
    details = dict(without_times(class_.workbook()["Details"]))

    assert details["School"] == place.name
    assert details["Class"].endswith(" A")
    assert {name: details[name] for name in ("Batch", "Term", "Times opened", "Batch ID", "Term ID")} == {
        "Batch": "A",
        "Term": "FIRST",
        "Times opened": "124",
        "Batch ID": class_.batch,
        "Term ID": class_.term["id"],
    }
    assert details["Downloaded"] == "a moment"


def test_an_export_is_on_record(api, class_):
    class_.download()

    (entry,) = api.ok(api.get("/audit", query_string={"entity": "export"}))["data"]
    assert (entry["entity_id"], entry["new"]) == (class_.batch, {"sheet": "comments", "students": 3})


# Upload


def test_a_downloaded_sheet_is_filled_in_and_sent_back(class_):
    enter(class_, "C/1", times_present=1, form_teacher_comment="Good", principal_comment="Fine")
    content = fill(
        class_.workbook(),
        {
            "C/1": {"form_teacher_comment": "Better"},
            "C/2": {"times_present": 0, "principal_comment": "  Ó ti gbìyànjú  "},
        },
    )

    assert counts(class_.upload(content)) == (3, 1, 1, 0, 1)
    assert class_.comments_by_number() == {
        "C/1": (1, "Better", "Fine"),
        "C/2": (0, None, "Ó ti gbìyànjú"),
        "C/3": NOTHING,
    }
    log = class_.log()
    assert counts(class_.upload(saved(class_.workbook()))) == (3, 0, 0, 2, 1)
    assert class_.log() == log


def test_blank_and_missing_comments_stay(class_):
    for number in class_.students:
        enter(class_, number, times_present=10, form_teacher_comment="Good")

    assert counts(class_.send(("C/1", None, "Better"), ("C/2",))) == (2, 0, 1, 0, 1)

    assert class_.comments_by_number() == {
        "C/1": (10, "Better", None),
        "C/2": (10, "Good", None),
        "C/3": (10, "Good", None),
    }


def test_the_log_says_by_which_file(class_):
    class_.send(("C/1", 7, "Good"), name="ìwé.xlsx")

    new = {
        "term": class_.term["id"],
        "times_present": 7,
        "changed": ["form_teacher_comment", "times_present"],
        "source": "sheet",
        "file_name": "ìwé.xlsx",
    }
    assert class_.log() == [("create", "C/1", None, new)]


def test_every_bad_row_is_named_and_nothing_is_stored(class_):
    class_.opened(100)

    answer = class_.send(
        ("C/1", 101, "Good"),
        ("C/2", 1.5, "Good"),
        ("C/3", "often", "x" * 501),
        ("C/3", 1),
        ("C/9", 1),
    )

    assert bad_rows(answer) == [
        (2, "times_present", "invalid"),
        (3, "times_present", "invalid"),
        (4, "times_present", "invalid"),
        (4, "form_teacher_comment", "invalid"),
        (5, "admission_number", "duplicate"),
        (6, "admission_number", "unknown"),
    ]
    told = [bad["message"] for bad in answer.get_json()["errors"]["rows"]]
    assert told[0] == (
        'D2: "101" is more than the times that school opened for Chidinma Bàlógun (C/1): '
        "write a whole number from 0 to 100"
    )
    assert told[2].startswith('D4: "often" is no number for ')
    assert told[2].endswith(": write a whole number, or leave the cell blank")
    assert "has 501 characters for Chidinma" in told[3]
    assert set(class_.comments_by_number().values()) == {NOTHING}
    assert counts(class_.send(("C/1", 100, "x" * 500))) == (1, 1, 0, 0, 0)


def test_a_withdrawn_student_is_not_in_the_batch(api, class_):
    api.ok(api.patch(f"/students/{class_.students['C/3']}", {"status": "WITHDRAWN"}))

    assert bad_rows(class_.send(("C/1", 1), ("C/3", 1))) == [(3, "admission_number", "invalid")]
    assert class_.comments_by_number()["C/1"] == NOTHING


def test_a_principals_comment_needs_a_permission_of_its_own(make, class_):
    form_teacher = make.caller("write:metrics")
    enter(class_, "C/1", principal_comment="Fine")

    refused = class_.send(("C/1", 1, None, "Fine"), ("C/2", 1, None, "Fine"), api=form_teacher)

    assert (refused.status_code, "write:results" in refused.get_json()["message"]) == (403, True)
    (bad,) = refused.get_json()["errors"]["rows"]
    assert (bad["row"], bad["column"]) == (3, "principal_comment")
    name = name_with_number(class_.api, class_.students["C/2"])
    assert bad["message"] == f"F3: would change the principal's word for {name}: leave it as it was"
    assert class_.comments_by_number() == {"C/1": (None, None, "Fine"), "C/2": NOTHING, "C/3": NOTHING}
    assert counts(class_.send(("C/1", 1, None, "Fine"), ("C/2", 1), api=form_teacher)) == (2, 1, 1, 0, 0)


def test_other_ends_of_lines_are_no_change_of_a_text(make, class_):
    """LibreOffice and Excel end each line of a cell with LF."""
    form_teacher = make.caller("write:metrics")
    enter(class_, "C/1", form_teacher_comment="Good.\r\nKind.", principal_comment="Fine.\r\n\rOn.")

    sent = class_.send(("C/1", 1, "Good.\nKind.", "Fine.\n\nOn."), api=form_teacher)

    assert counts(sent) == (1, 0, 1, 0, 0)
    assert class_.comments_by_number()["C/1"] == (1, "Good.\r\nKind.", "Fine.\r\n\rOn.")
    assert counts(class_.send(("C/1", 1, "Good.\nKind."))) == (1, 0, 0, 1, 0)
    assert counts(class_.send(("C/1", 1, "Good. Kind."))) == (1, 0, 1, 0, 0)


def test_a_dry_run_answers_the_changes_and_stores_nothing(class_):
    enter(class_, "C/1", times_present=1, form_teacher_comment="Good")
    log = class_.log()

    sent = (("C/1", 2, "Better"), ("C/2", None, None, "Fine"))
    answer = class_.api.ok(class_.send(*sent, dry_run="true"))

    assert [
        (change["admission_number"], change["column"], change["old"], change["new"])
        for change in answer["changes"]
    ] == [
        ("C/1", "times_present", 1, 2),
        ("C/1", "form_teacher_comment", "Good", "Better"),
        ("C/2", "principal_comment", None, "Fine"),
    ]
    assert [student["admission_number"] for student in answer["not_in_sheet"]] == ["C/3"]
    assert (answer["created"], answer["updated"]) == (1, 1)
    assert class_.comments_by_number()["C/1"] == (1, "Good", None)
    assert class_.log() == log


def test_a_comment_changed_since_the_download_is_409_unless_forced(make, class_):
    enter(class_, "C/1", times_present=1, form_teacher_comment="Good")
    workbook = class_.workbook()
    other = make.caller("write:metrics")
    class_.api.ok(
        class_.put({"student": class_.students["C/1"], "form_teacher_comment": "Excellent"}, api=other)
    )
    content = fill(workbook, {"C/1": {"times_present": 2, "form_teacher_comment": "Better"}})

    answer = class_.upload(content)

    assert answer.status_code == 409
    (bad,) = answer.get_json()["errors"]["rows"]
    assert (bad["column"], bad["code"]) == ("form_teacher_comment", "changed")
    assert '"Better" would replace Excellent, which Adaeze Okàfor entered on 20' in bad["message"]
    assert class_.comments_by_number()["C/1"] == (1, "Excellent", None)
    # A change of another term's comments is none of these.
    assert counts(class_.upload(content, force="true")) == (3, 0, 1, 0, 2)
    assert class_.comments_by_number()["C/1"] == (2, "Better", None)
    assert class_.log()[-1][3]["forced"] is True


def test_ones_own_earlier_upload_is_no_change_since(class_):
    workbook = class_.workbook()
    assert counts(class_.upload(fill(workbook, {"C/1": {"form_teacher_comment": "Good"}}))) == (3, 1, 0, 0, 2)

    again = fill(workbook, {"C/1": {"form_teacher_comment": "Better"}})
    assert counts(class_.upload(again)) == (3, 0, 1, 0, 2)
    assert class_.comments_by_number()["C/1"] == (None, "Better", None)


def test_a_comment_cleared_since_the_download_is_not_brought_back(make, class_):
    enter(class_, "C/1", form_teacher_comment="Good")
    workbook = class_.workbook()
    other = make.caller("write:metrics")
    class_.api.ok(class_.put({"student": class_.students["C/1"], "form_teacher_comment": None}, api=other))

    answer = class_.upload(saved(workbook))

    assert answer.status_code == 409
    (bad,) = answer.get_json()["errors"]["rows"]
    assert '"Good" would bring back a value that Adaeze Okàfor removed on 20' in bad["message"]


def test_a_sheet_of_another_batch_or_term_is_422(make, class_):
    other = Said.__new__(Said)
    other.__dict__ |= class_.__dict__ | {"batch": make.batch(class_.cohort)["id"]}

    assert other.upload(saved(class_.workbook())).status_code == 422
    for details in (
        [("Batch ID", class_.batch)],
        [("Term ID", class_.term["id"])],
        [("Batch ID", class_.batch), ("Term ID", make.term()["id"])],
        [("Batch ID", class_.batch), ("Term", "THIRD")],
    ):
        content = class_.sheet(("C/1", 1), details=details)
        assert class_.upload(content).status_code == 422
    assert class_.comments_by_number()["C/1"] == NOTHING
    content = class_.sheet(("C/1", 1), details=[("Batch ID", class_.batch), ("Term", "FIRST")])
    assert counts(class_.upload(content)) == (1, 1, 0, 0, 0)


def test_a_csv_file_names_its_term_in_the_query(class_):
    content = "admission_number;times_present;form_teacher_comment\nC/1;5;Ó dára\n".encode()

    assert class_.upload(content, "c.csv").status_code == 422
    assert counts(class_.upload(content, "c.csv", term="FIRST")) == (1, 1, 0, 0, 0)
    assert class_.comments_by_number()["C/1"] == (5, "Ó dára", None)


def test_the_other_schools_batch_is_422_and_its_sheet_too(api, other_api, make_other, class_):
    theirs = Said(make_other)

    assert class_.upload(saved(theirs.workbook())).status_code == 422
    assert class_.upload(saved(theirs.workbook()), batch=theirs.batch).status_code == 422
    assert class_.download(batch=theirs.batch).status_code == 422
    assert class_.download(term=theirs.term["id"]).status_code == 422
    crossed = api.using(school=other_api.school)
    assert theirs.upload(saved(theirs.workbook()), api=crossed).status_code == 403
    assert theirs.comments_by_number()["C/1"] == class_.comments_by_number()["C/1"] == NOTHING


def test_messages_do_not_depend_on_the_number_of_students(make, messages):
    sent = []
    for students in (2, 30):
        class_ = Said(make, 0)
        made = [make.student() for _ in range(students)]
        make.enrolled(class_.cohort, *made)
        with messages() as of_download:
            class_.download()
        content = class_.sheet(*((student["admission_number"], 1, "Good") for student in made))
        with messages() as of_upload:
            assert counts(class_.upload(content)) == (students, students, 0, 0, 0)
        sent.append((len(of_download), len(of_upload)))

    assert sent == [(5, 6), (5, 6)]
