"""A class list that is downloaded, corrected and sent back."""

from __future__ import annotations

import csv
from io import BytesIO, StringIO
from uuid import uuid4

import pytest
from openpyxl import load_workbook

from tests.sheets.workbooks import saved
from tests.threads import run_concurrently


class Listed:
    """Two students of a class and one of another."""

    def __init__(self, make):
        self.make, self.api = make, make.api
        self.cohort, self.other = make.cohort(), make.cohort()
        self.batch = self.cohort["id"]
        self.students = {
            number: make.student(admission_number=number, first_name=first, last_name=last)["id"]
            for number, first, last in (
                ("U/1", "Ngọzi", "Abara"),
                ("U/2", "Ƙwai", "Bello"),
                ("U/3", "Adé", "Cole"),
            )
        }
        ids = [{"id": student_id} for student_id in self.students.values()]
        make.enrolled(self.cohort, *ids[:2])
        make.enrolled(self.other, ids[2])

    def get(self, **query):
        return self.api.get("/students/update-sheet", query_string=query or {"batch": self.batch})

    def workbook(self):
        answer = self.get()
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return load_workbook(BytesIO(answer.data))

    def send(self, content, api=None, name="students.xlsx", **query):
        given = content if isinstance(content, bytes) else saved(content)
        return (api or self.api).post(
            "/students/update-sheet",
            query_string=query,
            data={"sheet": (BytesIO(given), name)},
            content_type="multipart/form-data",
        )

    def student(self, number):
        return self.api.ok(self.api.get(f"/students/{self.students[number]}"))


def write(workbook, row, **values):
    sheet = workbook["Students"]
    columns = {cell.value: cell.column for cell in sheet[1]}
    for name, value in values.items():
        sheet.cell(row, columns[name]).value = value
    return workbook


def counts(answer):
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return tuple(answer.get_json()[name] for name in ("rows", "created", "updated", "unchanged", "blank"))


def refused(answer, status=422):
    assert answer.status_code == status, answer.get_data(as_text=True)
    return [(bad["row"], bad["column"], bad["code"]) for bad in answer.get_json()["errors"]["rows"]]


@pytest.fixture
def listed(make):
    return Listed(make)


def test_the_list_has_the_records_of_a_class_a_cohort_or_a_session(listed):
    def numbers(**query):
        sheet = load_workbook(BytesIO(listed.get(**query).data))["Students"]
        header = [cell.value for cell in sheet[1]]
        return [row[header.index("admission_number")].value for row in sheet.iter_rows(min_row=2)]

    assert numbers(batch=listed.batch) == numbers(cohort=listed.cohort["id"]) == ["U/1", "U/2"]
    assert sorted(numbers(session=listed.cohort["session"])) in (["U/1", "U/2"], ["U/1", "U/2", "U/3"])
    header = [cell.value for cell in listed.workbook()["Students"][1]]
    assert header[:3] == ["id", "class", "first_name"]


def test_the_list_is_read_as_csv_too_and_is_on_record(listed):
    answer = listed.get(batch=listed.batch, format="csv")

    lines = answer.data.decode("utf-8-sig").splitlines()
    assert lines[1].split(",")[0] == listed.students["U/1"]
    assert "Ngọzi" in lines[1]
    (entry,) = listed.api.ok(listed.api.get(f"/audit?entity=export&id={listed.batch}"))["data"]
    assert entry["new"] == {"sheet": "students", "students": 2}
    assert counts(listed.send(answer.data, name="students.csv")) == (2, 0, 0, 2, 0)


def test_no_text_of_the_list_as_csv_becomes_a_formula(listed):
    student = f"/students/{listed.students['U/1']}"
    guardian = {"full_name": "@SUM(A1)", "relationship": "'=1", "phone_number": "+2348031234567"}
    changes = {"first_name": '=HYPERLINK("//x")', "last_name": "-Abara", "guardian": guardian}
    stored = listed.api.ok(listed.api.patch(student, changes))

    content = listed.get(batch=listed.batch, format="csv").data

    rows = list(csv.reader(StringIO(content.decode("utf-8-sig"))))
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]
    assert counts(listed.send(content, name="students.csv")) == (2, 0, 0, 2, 0)
    assert listed.student("U/1") == stored
    changed = content.replace(b"-Abara", b"+Abara")
    assert counts(listed.send(changed, name="students.csv", force="true")) == (2, 0, 1, 1, 0)
    assert listed.student("U/1")["last_name"] == "+Abara"


@pytest.mark.parametrize(
    "query", [{}, {"batch": str(uuid4())}, {"cohort": str(uuid4())}, {"session": "1066/1067"}]
)
def test_a_list_of_nothing_is_refused(api, query):
    assert api.get("/students/update-sheet", query_string=query or {"format": "csv"}).status_code == 422


def test_changed_cells_are_stored_and_on_record_and_blanks_stay(listed):
    workbook = write(listed.workbook(), 2, first_name="Ngozi", gender="F", dob="2014-05-27")
    write(workbook, 3, admission_number="U/20", last_name=None)

    assert counts(listed.send(workbook)) == (2, 0, 2, 0, 0)
    first, second = listed.student("U/1"), listed.student("U/2")
    assert (first["first_name"], first["gender"], first["dob"]) == ("Ngozi", "FEMALE", "2014-05-27")
    assert (second["admission_number"], second["last_name"]) == ("U/20", "Bello")
    entries = listed.api.ok(listed.api.get("/audit", query_string={"id": listed.students["U/1"]}))["data"]
    assert entries[0]["new"] == {"changed": ["dob"]}
    of_user = listed.api.ok(listed.api.get("/audit", query_string={"id": first["user"]}))["data"]
    assert of_user[0]["old"] == {"first_name": "Ngọzi", "gender": ""}
    assert counts(listed.send(listed.workbook())) == (2, 0, 0, 2, 0)


def test_a_list_from_elsewhere_is_matched_by_admission_number(listed):
    csv = "admission_number,middle_name\nU/1,Ọlá\nU/3,Ìfẹ́\n".encode()

    assert counts(listed.send(csv, name="students.csv")) == (2, 0, 2, 0, 0)
    assert listed.student("U/3")["middle_name"] == "Ìfẹ́"


def test_bad_rows_are_named_and_nothing_is_stored(listed):
    workbook = write(listed.workbook(), 2, first_name="Ngozi", gender="neither")
    write(workbook, 3, admission_number="u/3")
    workbook["Students"].append([str(uuid4()), None, "Nobody"])
    workbook["Students"].append([listed.students["U/1"], None, "Twice"])

    assert refused(listed.send(workbook)) == [
        (2, "gender", "invalid"),
        (3, "admission_number", "taken"),
        (4, "id", "unknown"),
        (5, "id", "duplicate"),
    ]
    assert listed.student("U/1")["first_name"] == "Ngọzi"


def test_the_other_schools_students_are_unknown(listed, make_other):
    theirs = make_other.student()["id"]
    csv = f"id,first_name\n{theirs},Stolen\n".encode()

    assert refused(listed.send(csv, name="students.csv")) == [(2, "id", "unknown")]


def test_a_value_that_was_changed_since_the_download_is_not_replaced(listed):
    workbook = write(listed.workbook(), 2, first_name="Ngozi")
    listed.api.ok(
        listed.api.patch(f"/students/{listed.students['U/1']}", {"first_name": "Ngo", "dob": "2014-01-01"})
    )

    assert refused(listed.send(workbook), 409) == [(2, "first_name", "changed")]
    assert counts(listed.send(workbook, force="true")) == (2, 0, 1, 1, 0)
    # The date of birth that somebody else entered stays: its cell was not changed.
    assert listed.student("U/1")["dob"] == "2014-01-01"


def test_a_dry_run_tells_the_changes_and_stores_nothing(listed):
    answer = listed.send(write(listed.workbook(), 2, first_name="Ngozi"), dry_run="true")

    changes = [(change["column"], change["old"], change["new"]) for change in answer.get_json()["changes"]]
    assert changes == [("first_name", "Ngọzi", "Ngozi")]
    assert listed.student("U/1")["first_name"] == "Ngọzi"


def test_the_name_of_an_account_with_more_permissions_is_not_changed(listed):
    user = listed.student("U/1")["user"]
    role = listed.make.role("write:settings")
    listed.api.ok(listed.api.put(f"/users/{user}/roles", {"role": role["id"]}))
    clerk = listed.make.caller("write:students", "read:students")
    workbook = write(listed.workbook(), 2, first_name="Ngozi")

    assert listed.send(workbook, clerk).status_code == 403
    assert counts(listed.send(write(listed.workbook(), 2, dob="2014-05-27"), clerk)) == (2, 0, 1, 1, 0)


@pytest.mark.parametrize("content", [b"", b"nothing", b"first_name\nAda\n", b"admission_number\n"])
def test_a_file_that_is_no_class_list_is_refused(listed, content):
    assert listed.send(content, name="students.csv").status_code == 422


# Guardians


def guardian(listed, number, **texts):
    """Set the primary guardian by PATCH of the student."""
    texts = {"full_name": "Ada Eze", "phone_number": "08031234567", **texts}
    listed.api.ok(listed.api.patch(f"/students/{listed.students[number]}", {"guardian": texts}))


def family(listed, number):
    """The guardians of a student, the primary first: name, relationship and telephone number of each."""
    guardians = listed.api.ok(listed.api.get(f"/students/{listed.students[number]}/guardians"))
    return [
        (guardian["full_name"], guardian["relationship"], guardian["phone_number"]) for guardian in guardians
    ]


def test_a_list_has_the_primary_guardian_and_another_and_sent_back_changes_nothing(listed):
    guardian(listed, "U/1", relationship="mother")
    write_another = write(
        listed.workbook(), 2, guardian_2_full_name="Obi Eze", guardian_2_relationship="father"
    )
    assert counts(listed.send(write_another)) == (2, 0, 1, 1, 0)

    sheet = listed.workbook()["Students"]
    row = dict(zip([cell.value for cell in sheet[1]], [cell.value for cell in sheet[2]], strict=True))

    assert (row["guardian_full_name"], row["guardian_phone_number"]) == ("Ada Eze", "08031234567")
    assert (row["guardian_2_full_name"], row["guardian_2_relationship"]) == ("Obi Eze", "father")
    assert counts(listed.send(listed.workbook())) == (2, 0, 0, 2, 0)


def test_a_guardian_of_siblings_is_changed_once_and_blanks_stay(listed):
    guardian(listed, "U/1", relationship="mother", email_address="ada@example.com")
    guardian(listed, "U/2")

    changed = write(listed.workbook(), 2, guardian_phone_number="08055555555", guardian_relationship=None)
    assert counts(listed.send(changed)) == (2, 0, 1, 1, 0)

    assert family(listed, "U/1") == [("Ada Eze", "mother", "08055555555")]
    assert family(listed, "U/2") == [("Ada Eze", None, "08055555555")]
    assert listed.student("U/1")["guardian"]["email_address"] == "ada@example.com"


def test_another_name_is_found_or_made_as_in_the_import_and_is_the_primary(listed):
    guardian(listed, "U/3", full_name="Bola Ade", phone_number="08077777777")
    guardian(listed, "U/1")
    workbook = write(
        listed.workbook(), 2, guardian_full_name="Bola Ade", guardian_phone_number="0807 777 7777"
    )
    write(workbook, 3, guardian_full_name="Chi Obi", guardian_phone_number="8055555555")

    assert counts(listed.send(workbook)) == (2, 0, 2, 0, 0)

    assert family(listed, "U/1") == [("Bola Ade", None, "08077777777")]
    assert family(listed, "U/2") == [("Chi Obi", None, "08055555555")]
    names = [guardian["full_name"] for guardian in listed.api.ok(listed.api.get("/guardians"))["data"]]
    # A guardian without another child and an account has gone, as with PATCH /students/{id}.
    assert sorted(names) == ["Bola Ade", "Chi Obi"]
    entries = listed.api.ok(listed.api.get("/audit?entity=student-guardian"))["data"]
    assert {entry["id"] for entry in entries if entry["action"] == "create"}


def test_a_former_primary_written_as_another_guardian_stays(listed):
    guardian(listed, "U/1", relationship="aunt")
    workbook = write(
        listed.workbook(), 2, guardian_full_name="Obi Eze", guardian_relationship="father",
        guardian_phone_number="08055555555", guardian_2_full_name="Ada Eze",
    )  # fmt: skip

    assert counts(listed.send(workbook)) == (2, 0, 1, 1, 0)

    assert family(listed, "U/1") == [("Obi Eze", "father", "08055555555"), ("Ada Eze", "aunt", "08031234567")]


def test_guardians_that_are_wrong_are_named_by_their_cells_and_nothing_is_stored(listed):
    guardian(listed, "U/1")
    guardian(listed, "U/2")

    def sent(**values):
        return refused(listed.send(write(listed.workbook(), 2, **values)))

    assert sent(guardian_email_address="x") == [(2, "guardian_email_address", "invalid")]
    assert sent(guardian_full_name="A" * 300) == [(2, "guardian_full_name", "invalid")]
    assert sent(guardian_2_phone_number="08055555555") == [(2, "guardian_2_full_name", "required")]
    workbook = write(listed.workbook(), 2, guardian_phone_number="08055555555")
    answer = listed.send(write(workbook, 3, guardian_phone_number="08066666666"))
    assert refused(answer) == [(3, "guardian_phone_number", "invalid")]
    (bad,) = answer.get_json()["errors"]["rows"]
    assert bad["message"].endswith(": the guardian Ada Eze has 08055555555 in a row before")
    assert family(listed, "U/1") == [("Ada Eze", None, "08031234567")]


def test_a_stopped_guardian_does_not_come_back_by_a_list(listed):
    guardian(listed, "U/1")
    (link,) = listed.api.ok(listed.api.get(f"/students/{listed.students['U/1']}/guardians"))
    stop = f"/students/{listed.students['U/1']}/guardians/{link['guardian']}/stop"
    listed.api.ok(listed.api.put(stop, {"reason": "A court"}))

    answer = listed.send(write(listed.workbook(), 2, guardian_full_name="ada eze"))

    assert refused(answer) == [(2, "guardian_full_name", "invalid")]
    assert "access to the student is stopped" in answer.get_json()["errors"]["rows"][0]["message"]


def test_a_clerk_without_read_results_gives_no_guardian_with_an_account_a_child(listed):
    guardian(listed, "U/3")
    (link,) = listed.api.ok(listed.api.get(f"/students/{listed.students['U/3']}/guardians"))
    listed.api.ok(listed.api.put(f"/guardians/{link['guardian']}/account", {"username": "ada.eze"}))
    workbook = write(listed.workbook(), 2, guardian_full_name="Ada Eze", guardian_phone_number="08031234567")
    clerk = listed.make.caller("write:students", "read:students")

    answer = listed.send(workbook, api=clerk)

    assert (answer.status_code, "read:results" in answer.get_json()["message"]) == (403, True)
    assert family(listed, "U/1") == []
    assert counts(listed.send(workbook)) == (2, 0, 1, 1, 0)
    assert [name for name, *_ in family(listed, "U/1")] == ["Ada Eze"]


def test_a_guardian_changed_since_the_download_is_not_replaced(listed):
    guardian(listed, "U/1")
    workbook = write(listed.workbook(), 2, guardian_phone_number="08055555555")
    guardian(listed, "U/1", phone_number="08066666666")

    assert refused(listed.send(workbook), 409) == [(2, "guardian_phone_number", "changed")]
    assert counts(listed.send(workbook, force="true")) == (2, 0, 1, 1, 0)
    assert family(listed, "U/1") == [("Ada Eze", None, "08055555555")]


def test_a_dry_run_tells_of_guardians_and_stores_nothing(listed):
    guardian(listed, "U/1")
    workbook = write(listed.workbook(), 2, guardian_full_name="Obi Eze")

    answer = listed.api.ok(listed.send(workbook, dry_run="true"))

    assert [(change["column"], change["old"], change["new"]) for change in answer["changes"]] == [
        ("guardian_full_name", "Ada Eze", "Obi Eze")
    ]
    assert [name for name, *_ in family(listed, "U/1")] == ["Ada Eze"]


def test_the_messages_of_an_update_do_not_depend_on_its_rows(make, messages):
    def sent(size):
        cohort = make.cohort()
        students = [make.student(admission_number=f"M{size}/{number}") for number in range(size)]
        make.enrolled(cohort, *students)
        lines = ["admission_number,first_name,guardian_full_name,guardian_phone_number,guardian_2_full_name"]
        lines += [
            f"M{size}/{number},A{number},G{number},0803000{number:04},H{number}" for number in range(size)
        ]
        with messages() as statements:
            answer = make.api.post(
                "/students/update-sheet",
                data={"sheet": (BytesIO("\n".join(lines).encode()), "students.csv")},
                content_type="multipart/form-data",
            )
        assert counts(answer) == (size, 0, size, 0, 0)
        return len(statements)

    assert sent(2) == sent(12)


# Leaving and columns that no update has


def test_the_date_of_leaving_is_of_a_leaver_and_is_the_last_day_in_the_class(listed):
    assert refused(listed.send(write(listed.workbook(), 2, left_on="2026-01-10"))) == [
        (2, "left_on", "invalid")
    ]
    listed.api.ok(listed.api.patch(f"/students/{listed.students['U/1']}", {"status": "WITHDRAWN"}))
    session = listed.api.ok(listed.api.get(f"/sessions/{listed.cohort['session']}"))
    day = session["start_date"]

    sent = write(listed.workbook(), 2, left_on=day, leaving_reason="Moved to Jos")
    assert counts(listed.send(sent)) == (2, 0, 1, 1, 0)

    student = listed.student("U/1")
    assert (student["left_on"], student["leaving_reason"]) == (day, "Moved to Jos")
    data = listed.api.ok(listed.api.get(f"/students/{listed.students['U/1']}/data"))
    assert [enrollment["ended_on"] for enrollment in data["enrollments"]] == [day]
    assert refused(listed.send(write(listed.workbook(), 2, admitted_on=session["end_date"]))) == [
        (2, "admitted_on", "invalid")
    ]


def test_columns_that_no_update_has_are_refused_or_told(listed):
    answer = listed.send(b"admission_number,username,password\nU/1,ada,a long secret\n", name="students.csv")
    assert refused(answer) == [(2, "username", "invalid"), (2, "password", "invalid")]
    messages = [bad["message"] for bad in answer.get_json()["errors"]["rows"]]
    assert messages == [
        "B2: the username is not changed by this sheet: leave the column out",
        "C2: a password is given to one person, and not by this sheet: leave the column out",
    ]
    (warning,) = listed.api.ok(listed.send(b"admission_number,class\nU/1,JSS 9\n", name="students.csv"))[
        "warnings"
    ]
    assert warning.startswith("Nothing was read of the column class")
    assert refused(listed.send(write(listed.workbook(), 2, **{"class": "JSS 9"}))) == [
        (2, "class", "invalid")
    ]


def test_two_sheets_at_once_are_one_conflict(committing):
    listed = Listed(committing)
    sheets = [saved(write(listed.workbook(), 2, first_name=name)) for name in ("One", "Two")]

    answers = run_concurrently(2, lambda number: listed.send(sheets[number]))

    assert sorted(answer.status_code for answer in answers) == [200, 409]
