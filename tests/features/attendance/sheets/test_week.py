"""The sheet of a week's registers."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.features.attendance.classes import today
from tests.features.attendance.sheets.weeks import STUDENT, Week, csv_of, fill, monday
from tests.features.scores.scoresheets.sheets import bad_rows, counts
from tests.prepared import prepared_for_each
from tests.sheets.libreoffice import needs_libreoffice, saved_by_libreoffice

original, week = prepared_for_each(Week)


def test_the_sheet_has_a_column_for_each_open_part_and_the_stored_codes(api, week):
    api.ok(
        api.put(
            "/school-days",
            {
                "days": [
                    {"date": week.day(2), "status": "CLOSED", "name": "Independence Day"},
                    {"date": week.day(4), "status": "CLOSED", "part": "AFTERNOON"},
                    {"date": week.day(5), "status": "OPEN", "part": "MORNING"},
                ]
            },
        )
    )
    api.ok(week.mark(0, codes={"R/1": "P", "R/3": "A"}))

    workbook = week.workbook()

    times = [
        each
        for each in week.times()
        if each not in {week.column(2), week.column(2, "PM"), week.column(4, "PM")}
    ]
    sheet = workbook["Register"]
    assert [cell.value for cell in sheet[1]] == [*STUDENT, *times, week.column(5)]
    codes = {row[0].value: row[3].value for row in sheet.iter_rows(min_row=2)}
    assert codes == {"R/1": "P", "R/2": None, "R/3": "A"}
    (rule,) = {(rule.type, rule.formula1) for rule in sheet.data_validations.dataValidation}
    assert rule == ("list", '"P,L,A,E"')
    assert (sheet["C2"].protection.locked, sheet["D2"].protection.locked) == (True, False)
    details = {row[0]: row[1] for row in workbook["Details"].iter_rows(values_only=True)}
    assert (details["Batch ID"], details["Week"]) == (week.batch, str(week.monday))
    (exported,) = week.log("export")
    assert exported == (
        "create", None, {"sheet": "register", "week": str(week.monday), "students": 3},
    )  # fmt: skip


def test_names_stand_in_the_order_of_the_papers(api, week):
    given_first = week.workbook()["Register"]
    api.ok(api.patch("/result-settings", {"name_order": "SURNAME_FIRST"}))

    sheet = week.workbook()["Register"]

    number, first, last = (cell.value for cell in given_first[1][:3])
    assert [cell.value for cell in sheet[1][:3]] == [number, last, first]
    names = [[cell.value for cell in row[:3]] for row in given_first.iter_rows(min_row=2)]
    assert [[cell.value for cell in row[:3]] for row in sheet.iter_rows(min_row=2)] == [
        [number, last, first] for number, first, last in names
    ]
    # It comes back as any other.
    cells = {"R/1": {week.column(0): "P"}}
    assert counts(week.upload(fill(week.workbook(), cells))) == (3, 1, 0, 0, 2)


def test_a_cell_shows_the_teachers_mark_and_not_the_correction(api, week):
    api.ok(week.mark(0, codes={"R/1": "A"}))
    key = {"batch": week.batch, "date": week.day(0), "part": "MORNING"}
    corrections = [{"student": week.students["R/1"], "code": "E", "reason": "Told"}]
    api.ok(api.put("/registers/corrections", {**key, "corrections": corrections}))

    codes = {row[0].value: row[3].value for row in week.workbook()["Register"].iter_rows(min_row=2)}

    assert codes == {"R/1": "A", "R/2": None, "R/3": None}


def test_the_other_schools_batches_and_students_are_unknown(api, week, make_other):
    theirs = Week(make_other, 1)
    for answer in (
        week.download(batch=theirs.batch),
        week.upload(fill(week.workbook(), {"R/1": {week.column(0): "P"}}), batch=theirs.batch),
    ):
        assert (answer.status_code, answer.get_json()["errors"]["query"]) == (
            422,
            {"batch": ["no such batch"]},
        )
    sheet = theirs.workbook()
    for row in sheet["Register"].iter_rows(min_row=2):
        row[0].value = make_other.student()["admission_number"]
    content = csv_of(sheet).replace(b",,", f",{'P'},".encode(), 1)
    assert bad_rows(week.upload(content, "week.csv")) == [(2, "admission_number", "unknown")]
    assert week.upload(fill(theirs.workbook(), {})).status_code == 422
    assert theirs.log() == week.log() == []


def test_which_sheet_is_refused(api, week):
    unknown = week.download(batch=str(uuid4()))
    assert (unknown.status_code, unknown.get_json()["errors"]["query"]) == (422, {"batch": ["no such batch"]})
    tuesday = week.download(week=week.day(1))
    assert (tuesday.status_code, tuesday.get_json()["errors"]["query"]) == (422, {"week": ["is no Monday"]})
    # The Sunday after the last Monday is in the year 10000.
    last = {"week": ["does not end by 9999-12-31"]}
    assert week.download(week="9999-12-27").get_json()["errors"]["query"] == last
    answer = week.upload(b"admission_number,last_name\n1,x\n", "week.csv", week="9999-12-27")
    assert (answer.status_code, answer.get_json()["message"]) == (422, "week: does not end by 9999-12-31")
    outside = week.download(week=str(monday(back=60)))
    assert outside.status_code == 409
    assert outside.get_json()["message"] == f"School is open on no day of the week of {monday(back=60)}."


def test_filled_cells_are_stored_and_a_complete_register_submitted(api, week):
    cells = {
        "R/1": {week.column(0): "p", week.column(0, "PM"): "P", week.column(1): "P"},
        "R/2": {week.column(0): "A", week.column(0, "PM"): "L"},
        "R/3": {week.column(0): " e "},
    }
    answer = week.upload(fill(week.workbook(), cells))

    assert counts(answer) == (3, 3, 0, 0, 0)
    assert week.marks(0) == {"R/1": "P", "R/2": "A", "R/3": "E"}
    assert week.marks(0, "AFTERNOON") == {"R/1": "P", "R/2": "L", "R/3": None}
    assert week.marks(1) == {"R/1": "P", "R/2": None, "R/3": None}
    # Everybody was enrolled today, so that nobody has to be marked in last week's registers.
    assert {week.register(day, part)["state"] for day, part in ((0, "MORNING"), (0, "AFTERNOON"))} == {
        "SUBMITTED"
    }
    assert week.register(2)["state"] == "NOT_TAKEN"
    entries = week.log()
    assert len(entries) == 3
    ids = week.students
    assert entries[0][2] | {"downloaded": None} == {
        "part": "MORNING", "date": week.day(0), "state": "SUBMITTED", "source": "sheet", "file_name": "week.xlsx",
        "changed": {ids["R/1"]: "P", ids["R/2"]: "A", ids["R/3"]: "E"}, "downloaded": None,
    }  # fmt: skip

    again = week.upload(fill(week.workbook(), cells))
    assert counts(again) == (3, 0, 0, 3, 0)
    assert counts(week.upload(fill(week.workbook(), {}))) == (3, 0, 0, 3, 0)
    changed = week.upload(fill(week.workbook(), {"R/3": {week.column(0): "A", week.column(3): "P"}}))
    assert counts(changed) == (3, 0, 1, 2, 0)
    assert len(week.log()) == 5


def test_a_blank_student_who_was_in_the_class_by_the_day_leaves_the_register_open(api, week):
    week.monday = monday()
    day = today().weekday()
    api.ok(api.patch("/attendance-settings", {"weekdays": [1, 2, 3, 4, 5, 6, 7]}))
    column = week.column(day)

    assert counts(week.upload(fill(week.workbook(), {"R/1": {column: "P"}, "R/2": {column: "A"}}))) == (
        3,
        2,
        0,
        0,
        1,
    )
    assert week.register(day)["state"] == "DRAFT"
    assert counts(week.upload(fill(week.workbook(), {"R/3": {column: "P"}}))) == (3, 1, 0, 2, 0)
    assert week.register(day)["state"] == "SUBMITTED"


def test_bad_rows_are_named_and_nothing_is_stored(api, week):
    week.monday = monday()
    api.ok(api.patch("/attendance-settings", {"weekdays": [1, 2, 3, 4, 5, 6, 7]}))
    workbook = week.workbook()
    now, sunday = week.column(today().weekday()), week.column(6, "PM")
    sheet = workbook["Register"]
    sheet.append(["R/1", "Chidinma", "Bàlógun"])
    other = api.ok(api.post("/students", {"admission_number": "X/1", "first_name": "A", "last_name": "B"}))
    sheet.append(["X/1", "A", "B"])
    sheet.append(["nobody"])
    cells = {"R/1": {now: "X"}, "R/2": {now: "P"}, "R/3": {now: "=1+1"}}
    expected = [
        (2, now, "unknown"), (5, "admission_number", "duplicate"), (6, "admission_number", "invalid"),
        (7, "admission_number", "unknown"),
    ]  # fmt: skip
    if today().weekday() < 6:
        cells["R/2"][sunday] = "P"
        expected.append((3, sunday, "invalid"))
    errors = bad_rows(week.upload(fill(workbook, cells)))

    assert set(expected) <= set(errors)
    assert {row for row, _, _ in errors} == {row for row, _, _ in expected} | {4, 5}
    assert other["id"]
    assert week.log() == []
    assert week.register(today().weekday())["id"] is None


def test_the_sheet_of_another_class_and_one_without_its_week_are_refused(api, make, week):
    arm = make.batch(week.cohort)
    content = fill(week.workbook(), {"R/1": {week.column(0): "P"}})
    other = week.upload(content, batch=arm["id"])
    assert other.status_code == 422
    assert "another batch" in other.get_json()["message"]
    workbook = week.workbook()
    for row in workbook["Details"].iter_rows():
        if row[0].value == "Week":
            row[1].value = "some week"
    answer = week.upload(fill(workbook, {}))
    assert answer.status_code == 422
    assert "Week on the sheet Details is no Monday" in answer.get_json()["message"]


def test_a_mark_changed_since_the_download_is_refused_naming_row_and_person(api, week):
    api.ok(week.mark(0, codes={"R/1": "P", "R/2": "P"}))
    workbook = week.workbook()
    api.ok(week.mark(0, codes={"R/2": "A"}, version=1))
    content = fill(workbook, {"R/1": {week.column(0): "L"}, "R/3": {week.column(0): "P"}})

    answer = week.upload(content)

    assert answer.status_code == 409
    ((row,),) = [answer.get_json()["errors"]["rows"]]
    assert (row["row"], row["column"], row["code"]) == (3, week.column(0), "changed")
    assert "(R/2)" in row["message"]
    assert "would replace A, which" in row["message"]
    assert week.marks(0) == {"R/1": "P", "R/2": "A", "R/3": None}

    assert counts(week.upload(content, force="true")) == (3, 1, 2, 0, 0)
    assert week.marks(0) == {"R/1": "L", "R/2": "P", "R/3": "P"}
    assert week.log()[-1][2]["forced"] is True


def test_an_uploader_of_their_own_sheet_again_is_not_in_their_own_way(api, week):
    workbook = week.workbook()
    assert counts(week.upload(fill(workbook, {"R/1": {week.column(0): "P"}}))) == (3, 1, 0, 0, 2)
    assert counts(week.upload(fill(workbook, {"R/1": {week.column(0): "A"}}))) == (3, 0, 1, 0, 2)
    assert week.marks(0)["R/1"] == "A"


def test_a_dry_run_stores_nothing_and_answers_the_changes(api, week):
    api.ok(week.mark(0, codes={"R/1": "P"}))
    workbook = week.workbook()
    workbook["Register"].delete_rows(4)
    cells = {"R/1": {week.column(0): "A"}, "R/2": {week.column(1, "PM"): "P"}}

    answer = week.upload(fill(workbook, cells), dry_run="true")

    assert counts(answer) == (2, 1, 1, 0, 0)
    changes = [
        (change["row"], change["column"], change["old"], change["new"])
        for change in answer.get_json()["changes"]
    ]
    assert changes == [(2, week.column(0), "P", "A"), (3, week.column(1, "PM"), None, "P")]
    assert [student["admission_number"] for student in answer.get_json()["not_in_sheet"]] == ["R/3"]
    assert week.marks(0) == {"R/1": "P", "R/2": None, "R/3": None}
    assert week.register(1, "AFTERNOON")["id"] is None
    assert len(week.log()) == 1


def test_a_csv_file_tells_its_days_by_its_columns(api, week):
    workbook = week.workbook()
    fill(workbook, {"R/1": {week.column(0): "P"}, "R/2": {week.column(4, "PM"): "A"}})
    content = csv_of(workbook)

    assert counts(week.upload(content, "week.csv", dry_run="true")) == (3, 2, 0, 0, 1)
    assert counts(week.upload(content, "week.csv", week=str(week.monday))) == (3, 2, 0, 0, 1)
    assert counts(week.upload(content, "week.csv")) == (3, 0, 0, 2, 1)
    assert (week.marks(0)["R/1"], week.marks(4, "AFTERNOON")["R/2"]) == ("P", "A")
    bad = week.upload(content.replace(b",A", b",Away"), "week.csv")
    assert bad_rows(bad) == [(3, week.column(4, "PM"), "unknown")]


def test_a_code_that_the_school_has_no_more_may_stand_where_it_is_stored(api, week):
    api.ok(week.mark(0, codes={"R/1": "E"}))
    codes = [
        {"code": "P", "name": "Present", "kind": "PRESENT"},
        {"code": "A", "name": "Away", "kind": "ABSENT"},
    ]
    api.ok(api.put("/attendance-codes", codes))

    assert counts(week.upload(fill(week.workbook(), {"R/2": {week.column(0): "a"}}))) == (3, 1, 0, 1, 1)
    assert week.marks(0) == {"R/1": "E", "R/2": "A", "R/3": None}
    assert bad_rows(week.upload(fill(week.workbook(), {"R/2": {week.column(0): "E"}}))) == [
        (3, week.column(0), "unknown")
    ]


def test_a_day_that_was_closed_since_and_one_too_old_are_refused(api, make, week):
    content = fill(week.workbook(), {"R/1": {week.column(0): "P", week.column(1): "P"}})
    api.ok(api.put("/school-days", {"days": [{"date": week.day(1), "status": "CLOSED", "name": "Eid"}]}))
    closed = week.upload(content)
    assert closed.status_code == 409
    assert closed.get_json()["message"] == f"The school is closed on {week.day(1)}: Eid."
    assert week.log() == []
    teacher = make.caller("read:attendance", "write:attendance")
    api.ok(api.put("/school-days", {"days": [{"date": week.day(1), "status": "USUAL"}]}))
    week.set(lock_after=0)
    old = week.upload(content, api=teacher)
    assert (old.status_code, old.get_json()["message"]) == (
        403, "Registers older than 0 days are changed by the office.",
    )  # fmt: skip
    assert counts(week.upload(content)) == (3, 1, 0, 0, 2)


def test_a_student_moved_to_another_arm_with_a_mark_stays_on_the_sheet(api, make, week):
    api.ok(week.mark(0, codes={"R/1": "P"}))
    arm = make.batch(week.cohort)
    make.enrolled(week.cohort, {"id": week.students["R/1"]}, batch=arm["id"])

    content = fill(week.workbook(), {"R/1": {week.column(0): "A"}})
    assert counts(week.upload(content)) == (3, 0, 1, 0, 2)
    there = fill(week.workbook(), {"R/1": {week.column(1): "A"}})
    assert bad_rows(week.upload(there)) == [(2, week.column(1), "invalid")]


@pytest.mark.program
@needs_libreoffice
def test_marks_come_back_from_a_spreadsheet_program(api, make, week, tmp_path):
    people = [("=cmd|' /C calc'!A0", "Bàlógun", "007"), ("'+Ìfẹ́", "@Obi", "1e5")]
    made = [make.student(first_name=f, last_name=n, admission_number=a) for f, n, a in people]
    make.enrolled(week.cohort, *made)
    cells = {"007": {week.column(0): "A"}, "1e5": {week.column(0): "P"}, "R/1": {week.column(1, "PM"): "l"}}

    after = saved_by_libreoffice(fill(week.workbook(), cells), tmp_path)

    assert counts(week.upload(after)) == (5, 3, 0, 0, 2)
    assert week.marks(0) == {"007": "A", "1e5": "P", "R/1": None, "R/2": None, "R/3": None}
    assert week.marks(1, "AFTERNOON")["R/1"] == "L"
    again = saved_by_libreoffice(week.download().data, tmp_path)
    assert counts(week.upload(again)) == (5, 0, 0, 3, 2)
    mark = {"student": made[0]["id"], "code": "P"}
    api.ok(week.mark(0, marks=[mark], version=week.register(0)["version"]))
    changed = week.upload(again)
    assert changed.status_code == 409
    (row,) = changed.get_json()["errors"]["rows"]
    assert "(007)" in row["message"]


def test_students_who_left_or_came_in_the_week_are_in_it_for_their_days(api, week):
    enrollment = f"/cohorts/{week.cohort['id']}/enrollment"
    for name, day in (("R/1", 0), ("R/2", 2), ("R/3", 7)):
        body = {"students": [week.students[name]], "batch": week.batch, "started_on": week.day(day)}
        api.ok(api.post(enrollment, body))
    removal = {"student_ids": [week.students["R/1"]], "ended_on": week.day(2)}
    api.ok(api.patch(f"/cohorts/{week.cohort['id']}/remove_students", removal))
    rows = week.workbook()["Register"].iter_rows(min_row=2, values_only=True)
    assert [row[0] for row in rows] == ["R/1", "R/2"]

    here = {"R/1": {week.column(2): "P"}, "R/2": {week.column(2): "A"}}
    assert counts(week.upload(fill(week.workbook(), here)))[:2] == (2, 2)
    gone = week.upload(fill(week.workbook(), {"R/1": {week.column(3): "P"}}))
    assert bad_rows(gone) == [(2, week.column(3), "invalid")]
    assert "is of a time at which the student is not in the class" in gone.get_data(as_text=True)
