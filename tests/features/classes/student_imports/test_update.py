"""A class list that is downloaded, corrected and sent back."""

from __future__ import annotations

from io import BytesIO
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
        ids = [{"id": one} for one in self.students.values()]
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


@pytest.mark.parametrize(
    "query", [{}, {"batch": str(uuid4())}, {"cohort": str(uuid4())}, {"session": "1066/1067"}]
)
def test_a_list_of_nothing_is_refused(api, query):
    assert api.get("/students/update-sheet", query_string=query or {"format": "csv"}).status_code == 422


def test_what_was_changed_is_stored_and_on_record_and_blanks_stay(listed):
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

    changes = [(one["column"], one["old"], one["new"]) for one in answer.get_json()["changes"]]
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
def test_what_is_no_class_list_is_refused(listed, content):
    assert listed.send(content, name="students.csv").status_code == 422


def test_two_sheets_at_once_are_one_conflict(committing):
    listed = Listed(committing)
    sheets = [saved(write(listed.workbook(), 2, first_name=name)) for name in ("One", "Two")]

    answers = run_concurrently(2, lambda number: listed.send(sheets[number]))

    assert sorted(answer.status_code for answer in answers) == [200, 409]
