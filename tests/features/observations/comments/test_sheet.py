"""The comment sheet of a batch and a term: downloaded, filled in, sent back."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.features.observations.comments.sheets import HEADER, Said, fill
from tests.features.scores.scoresheets.sheets import bad_rows, counts, without_times
from tests.naming import name_with_number
from tests.sheets.workbooks import saved

NOTHING = (None, None, None)


@pytest.fixture(scope="module", autouse=True)
def made(prepared):
    return prepared(Said)


@pytest.fixture
def said(rehearsed, made):
    return deepcopy(made)


def enter(said, number, **members):
    said.api.ok(said.put({"student": said.students[number], **members}))


def rows(workbook):
    return {row[0]: row[3:] for row in workbook["Comments"].iter_rows(values_only=True)}


# Download


def test_it_has_everybody_with_what_is_stored(api, said):
    enter(said, "C/2", times_present=90, form_teacher_comment="=1+1", principal_comment="Ó dára")
    api.ok(api.patch(f"/students/{said.students['C/3']}", {"status": "WITHDRAWN"}))

    answer = said.download()

    assert rows(said.workbook()) == {
        "admission_number": HEADER[3:],
        "C/1": (None, None, None),
        "C/2": (90, "=1+1", "Ó dára"),
    }
    sheet = said.workbook()["Comments"]
    (formula,) = (row[4] for row in sheet.iter_rows() if row[0].value == "C/2")
    assert (formula.value, formula.data_type) == ("=1+1", "s")
    assert [cell.protection.locked for cell in sheet[2]] == [True] * 3 + [False] * 3
    assert "comments.xlsx" in answer.headers["Content-Disposition"]


@pytest.mark.parametrize(("opened", "most"), [(None, "400"), (124, "124"), (0, "0")])
def test_excel_lets_no_more_be_typed_than_school_opened(said, opened, most):
    if opened is not None:
        said.opened(opened)

    (rule,) = said.workbook()["Comments"].data_validations.dataValidation

    assert (rule.type, rule.formula1, rule.formula2, str(rule.sqref)) == ("whole", "0", most, "D2:D4")


def test_its_details_say_what_it_is(said, place):
    said.opened(124)
    details = dict(without_times(said.workbook()["Details"]))

    assert details["School"] == place.name
    assert details["Class"].endswith(" A")
    assert {name: details[name] for name in ("Batch", "Term", "Times opened", "Batch ID", "Term ID")} == {
        "Batch": "A",
        "Term": "FIRST",
        "Times opened": "124",
        "Batch ID": said.batch,
        "Term ID": said.term["id"],
    }
    assert details["Downloaded"] == "a moment"


def test_an_export_is_on_record(api, said):
    said.download()

    (entry,) = api.ok(api.get("/audit", query_string={"entity": "export"}))["data"]
    assert (entry["entity_id"], entry["new"]) == (said.batch, {"sheet": "comments", "students": 3})


# Upload


def test_a_downloaded_sheet_is_filled_in_and_sent_back(said):
    enter(said, "C/1", times_present=1, form_teacher_comment="Good", principal_comment="Fine")
    content = fill(
        said.workbook(),
        {
            "C/1": {"form_teacher_comment": "Better"},
            "C/2": {"times_present": 0, "principal_comment": "  Ó ti gbìyànjú  "},
        },
    )

    assert counts(said.upload(content)) == (3, 1, 1, 0, 1)
    assert said.comments_by_number() == {
        "C/1": (1, "Better", "Fine"),
        "C/2": (0, None, "Ó ti gbìyànjú"),
        "C/3": NOTHING,
    }
    log = said.log()
    assert counts(said.upload(saved(said.workbook()))) == (3, 0, 0, 2, 1)
    assert said.log() == log


def test_what_is_blank_or_missing_stays(said):
    for number in said.students:
        enter(said, number, times_present=10, form_teacher_comment="Good")

    assert counts(said.send(("C/1", None, "Better"), ("C/2",))) == (2, 0, 1, 0, 1)

    assert said.comments_by_number() == {
        "C/1": (10, "Better", None),
        "C/2": (10, "Good", None),
        "C/3": (10, "Good", None),
    }


def test_the_log_says_by_which_file(said):
    said.send(("C/1", 7, "Good"), name="ìwé.xlsx")

    new = {
        "term": said.term["id"],
        "times_present": 7,
        "changed": ["form_teacher_comment", "times_present"],
        "source": "sheet",
        "file_name": "ìwé.xlsx",
    }
    assert said.log() == [("create", "C/1", None, new)]


def test_every_bad_row_is_named_and_nothing_is_stored(said):
    said.opened(100)

    answer = said.send(
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
    assert "has 501 characters for Chidinma" in told[3]
    assert set(said.comments_by_number().values()) == {NOTHING}
    assert counts(said.send(("C/1", 100, "x" * 500))) == (1, 1, 0, 0, 0)


def test_who_is_withdrawn_is_not_in_the_batch(api, said):
    api.ok(api.patch(f"/students/{said.students['C/3']}", {"status": "WITHDRAWN"}))

    assert bad_rows(said.send(("C/1", 1), ("C/3", 1))) == [(3, "admission_number", "invalid")]
    assert said.comments_by_number()["C/1"] == NOTHING


def test_a_principals_comment_needs_a_permission_of_its_own(make, said):
    form_teacher = make.caller("write:metrics")
    enter(said, "C/1", principal_comment="Fine")

    refused = said.send(("C/1", 1, None, "Fine"), ("C/2", 1, None, "Fine"), api=form_teacher)

    assert (refused.status_code, "write:results" in refused.get_json()["message"]) == (403, True)
    (bad,) = refused.get_json()["errors"]["rows"]
    assert (bad["row"], bad["column"]) == (3, "principal_comment")
    name = name_with_number(said.api, said.students["C/2"])
    assert bad["message"] == f"F3: would change the principal's word for {name}: leave it as it was"
    assert said.comments_by_number() == {"C/1": (None, None, "Fine"), "C/2": NOTHING, "C/3": NOTHING}
    assert counts(said.send(("C/1", 1, None, "Fine"), ("C/2", 1), api=form_teacher)) == (2, 1, 1, 0, 0)


def test_a_dry_run_tells_what_would_change_and_stores_nothing(said):
    enter(said, "C/1", times_present=1, form_teacher_comment="Good")
    log = said.log()

    sent = (("C/1", 2, "Better"), ("C/2", None, None, "Fine"))
    answer = said.api.ok(said.send(*sent, dry_run="true"))

    assert [
        (one["admission_number"], one["column"], one["old"], one["new"]) for one in answer["changes"]
    ] == [
        ("C/1", "times_present", 1, 2),
        ("C/1", "form_teacher_comment", "Good", "Better"),
        ("C/2", "principal_comment", None, "Fine"),
    ]
    assert [one["admission_number"] for one in answer["not_in_sheet"]] == ["C/3"]
    assert (answer["created"], answer["updated"]) == (1, 1)
    assert said.comments_by_number()["C/1"] == (1, "Good", None)
    assert said.log() == log


def test_what_was_changed_since_the_download_is_409_unless_forced(make, said):
    enter(said, "C/1", times_present=1, form_teacher_comment="Good")
    workbook = said.workbook()
    other = make.caller("write:metrics")
    said.api.ok(said.put({"student": said.students["C/1"], "form_teacher_comment": "Excellent"}, api=other))
    content = fill(workbook, {"C/1": {"times_present": 2, "form_teacher_comment": "Better"}})

    answer = said.upload(content)

    assert answer.status_code == 409
    (bad,) = answer.get_json()["errors"]["rows"]
    assert (bad["column"], bad["code"]) == ("form_teacher_comment", "changed")
    assert '"Better" would replace Excellent, which Adaeze Okàfor entered on 20' in bad["message"]
    assert said.comments_by_number()["C/1"] == (1, "Excellent", None)
    # A change of another term's comments is none of these.
    assert counts(said.upload(content, force="true")) == (3, 0, 1, 0, 2)
    assert said.comments_by_number()["C/1"] == (2, "Better", None)
    assert said.log()[-1][3]["forced"] is True


def test_ones_own_earlier_upload_is_no_change_since(said):
    workbook = said.workbook()
    assert counts(said.upload(fill(workbook, {"C/1": {"form_teacher_comment": "Good"}}))) == (3, 1, 0, 0, 2)

    again = fill(workbook, {"C/1": {"form_teacher_comment": "Better"}})
    assert counts(said.upload(again)) == (3, 0, 1, 0, 2)
    assert said.comments_by_number()["C/1"] == (None, "Better", None)


def test_what_somebody_cleared_since_is_not_brought_back(make, said):
    enter(said, "C/1", form_teacher_comment="Good")
    workbook = said.workbook()
    other = make.caller("write:metrics")
    said.api.ok(said.put({"student": said.students["C/1"], "form_teacher_comment": None}, api=other))

    answer = said.upload(saved(workbook))

    assert answer.status_code == 409
    (bad,) = answer.get_json()["errors"]["rows"]
    assert '"Good" would bring back a value that Adaeze Okàfor removed on 20' in bad["message"]


def test_a_sheet_of_another_batch_or_term_is_422(make, said):
    other = Said.__new__(Said)
    other.__dict__ |= said.__dict__ | {"batch": make.batch(said.cohort)["id"]}

    assert other.upload(saved(said.workbook())).status_code == 422
    for details in (
        [("Batch ID", said.batch)],
        [("Term ID", said.term["id"])],
        [("Batch ID", said.batch), ("Term ID", make.term()["id"])],
        [("Batch ID", said.batch), ("Term", "THIRD")],
    ):
        content = said.sheet(("C/1", 1), details=details)
        assert said.upload(content).status_code == 422
    assert said.comments_by_number()["C/1"] == NOTHING
    content = said.sheet(("C/1", 1), details=[("Batch ID", said.batch), ("Term", "FIRST")])
    assert counts(said.upload(content)) == (1, 1, 0, 0, 0)


def test_a_csv_file_names_its_term_in_the_query(said):
    content = "admission_number;times_present;form_teacher_comment\nC/1;5;Ó dára\n".encode()

    assert said.upload(content, "c.csv").status_code == 422
    assert counts(said.upload(content, "c.csv", term="FIRST")) == (1, 1, 0, 0, 0)
    assert said.comments_by_number()["C/1"] == (5, "Ó dára", None)


def test_the_other_schools_batch_is_422_and_its_sheet_too(api, other_api, make_other, said):
    theirs = Said(make_other)

    assert said.upload(saved(theirs.workbook())).status_code == 422
    assert said.upload(saved(theirs.workbook()), batch=theirs.batch).status_code == 422
    assert said.download(batch=theirs.batch).status_code == 422
    assert said.download(term=theirs.term["id"]).status_code == 422
    crossed = api.using(school=other_api.school)
    assert theirs.upload(saved(theirs.workbook()), api=crossed).status_code == 403
    assert theirs.comments_by_number()["C/1"] == said.comments_by_number()["C/1"] == NOTHING


def test_messages_do_not_depend_on_the_number_of_students(make, messages):
    sent = []
    for students in (2, 30):
        said = Said(make, 0)
        made = [make.student() for _ in range(students)]
        make.enrolled(said.cohort, *made)
        with messages() as of_download:
            said.download()
        content = said.sheet(*((one["admission_number"], 1, "Good") for one in made))
        with messages() as of_upload:
            assert counts(said.upload(content)) == (students, students, 0, 0, 0)
        sent.append((len(of_download), len(of_upload)))

    assert sent == [(5, 6), (5, 6)]
