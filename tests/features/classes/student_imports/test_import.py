"""The import of students from a sheet: all of its rows or none."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from io import BytesIO
from uuid import uuid4

import pytest
from marshmallow.validate import Length
from openpyxl import Workbook, load_workbook

from school_service.app import create_app
from school_service.features.classes.student_imports.sheet import CLASS, COLUMNS
from school_service.features.people.students.leaving import OF_LEAVING
from school_service.features.people.students.schemas import NewStudentSchema
from school_service.features.people.users import service as users
from school_service.sheets.sheet_files import PDF
from school_service.sheets.uploads import NO_ROWS
from school_service.sheets.xlsx_reader import NOT_A_WORKBOOK
from school_service.web.fields import Nested
from tests.client import ApiClient, Document
from tests.conftest import make_place
from tests.sheets.workbooks import handmade, saved, sheet_xml, workbook, zipped
from tests.threads import run_concurrently

LEAST = ["first_name", "last_name", "admission_number"]
MIB = 2**20


def upload(api, content, query="", name="sheet", **options):
    return api.post(
        f"/students/import-sheet{query}", data={name: (BytesIO(content), "students.xlsx")}, **options
    )


def sheet(*rows, columns=LEAST):
    return workbook([columns, *rows])


def created(count):
    return {"rows": count, "created": count, "errors": []}


def row_errors(answer):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return [(error["row"], error["column"], error["code"]) for error in answer.get_json()["errors"]["rows"]]


def listed(api):
    return api.ok(api.get("/students?pageSize=1000"))["data"]


def people(count, prefix="IM"):
    return [[f"Ada{number}", "Obi", f"{prefix}/{number:05}"] for number in range(1, count + 1)]


# Imported records.


def test_a_sheet_has_a_column_for_each_field_of_a_posted_student():
    fields = {
        f"{name}_{part}" if part else name
        for name, field in NewStudentSchema().fields.items()
        for part in (field.schema.fields if isinstance(field, Nested) else [""])
    }

    # The class is no field: POST enrolls nobody. A second guardian is added to a student who is there.
    second = {name.replace("guardian_", "guardian_2_") for name in fields if name.startswith("guardian_")}
    # A new student has not left: such columns of a clerk's sheet are refused, and not offered.
    offered = (fields | second | {CLASS}) - set(OF_LEAVING)
    assert {column.name for column in COLUMNS} == offered, (
        "see the headings in people/models.py, and _MEANINGS of student_imports/sheet.py"
    )


def test_a_column_takes_texts_as_long_as_its_field_does():
    lengths = {
        f"{name}_{part}" if part else name: validator.max
        for name, field in NewStudentSchema().fields.items()
        for part, each in (field.schema.fields if isinstance(field, Nested) else {"": field}).items()
        for validator in each.validators
        if isinstance(validator, Length)
    }

    columns = {column.name.replace("guardian_2_", "guardian_"): column.most for column in COLUMNS}
    assert {name: columns[name] for name in lengths.keys() - set(OF_LEAVING)} == {
        name: most for name, most in lengths.items() if name not in OF_LEAVING
    }


def test_a_cell_takes_120_letters_as_a_mac_writes_them_and_no_more(api):
    long = "e\u0301" * 120

    answer = upload(
        api, sheet(["Ada", long, "QC/1"], ["Bisi", f"{long}e", "QC/2"], ["Chi", long * 3, "QC/3"])
    )

    assert row_errors(answer) == [(3, "last_name", "invalid"), (4, "last_name", "invalid")]
    assert [error["message"] for error in answer.get_json()["errors"]["rows"]] == [
        f"B3: has 241 characters for Bisi {long}e (QC/2): shorten it to 120",
        "B4: has 720 characters for Chi (QC/3): shorten it to 120",
    ]
    assert api.ok(upload(api, sheet(["Ada", long, "QC/1"])))["created"] == 1
    assert listed(api)[0]["last_name"] == "é" * 120


def test_a_password_that_is_too_long_is_not_shown(api):
    rows = [["Ada", "Obi", "QC/1", "secret" * 200], ["Bisi", "Obi", "QC/2", "secret" * 10_000]]

    answer = upload(api, sheet(*rows, columns=[*LEAST, "password"]))

    assert row_errors(answer) == [(2, "password", "invalid"), (3, "password", "invalid")]
    assert "secret" not in answer.get_data(as_text=True)


def test_rows_become_students(api):
    columns = [column.name for column in COLUMNS]
    row = [
        "Chidinma",
        "Ifẹ́",
        "Bàlógun",
        "QC/1",
        "FEMALE",
        date(2013, 5, 31),
        date(2024, 9, 16),
        "Corona School",
        "Ngozi Bàlógun",
        "mother",
        "0803 123 4567",
        "ngozi@example.com",
        "Emeka Bàlógun",
        "father",
        "0803 123 4568",
        "emeka@example.com",
        "chidinma",
        "a secret",
        None,
    ]

    assert len(row) == len(columns), "write a value for each column"
    guardians = {"guardians_created": 2, "guardians_found": 0}
    assert api.ok(upload(api, workbook([columns, row]))) == created(1) | guardians

    (student,) = listed(api)
    assert student == {
        "id": student["id"],
        "number": student["number"],
        "first_name": "Chidinma",
        "middle_name": "Ifẹ́",
        "last_name": "Bàlógun",
        "admission_number": "QC/1",
        "gender": "FEMALE",
        "dob": "2013-05-31",
        "admitted_on": "2024-09-16",
        "former_school": "Corona School",
        "left_on": None,
        "leaving_reason": None,
        "status": "ACTIVE",
        "batch": None,
        "cohort": None,
        "user": student["user"],
        "photo": None,
        "guardian": {
            "full_name": "Ngozi Bàlógun",
            "relationship": "mother",
            "phone_number": "0803 123 4567",
            "email_address": "ngozi@example.com",
        },
        "createdAt": student["createdAt"],
    }
    assert api.ok(api.get(f"/students/{student['id']}")) == student
    signed_in = api.ok(api.post("/users/login", {"username": "chidinma", "password": "a secret"}))
    assert signed_in["user"]["student"]["admission_number"] == "QC/1"


def test_an_imported_student_is_like_a_posted_one(api):
    api.ok(upload(api, sheet(["Ada", "Obi", "QC/1"])))
    imported = listed(api)[0]
    posted = api.ok(
        api.post("/students", {"first_name": "Ada", "last_name": "Obi", "admission_number": "QC/2"})
    )

    own = {"id", "user", "number", "admission_number", "createdAt"}
    assert {k: v for k, v in imported.items() if k not in own} == {
        k: v for k, v in posted.items() if k not in own
    }
    users_of_both = [api.ok(api.get(f"/users/{student['user']}")) for student in (imported, posted)]
    assert [user["username"] for user in users_of_both] == ["QC/1", "QC/2"]
    assert users_of_both[0]["gender"] == users_of_both[1]["gender"] == ""


def test_the_first_rows_get_the_first_numbers(api, make):
    last = make.student()["number"]

    api.ok(upload(api, sheet(*people(20))))

    numbers = {student["admission_number"]: student["number"] for student in listed(api)}
    assert [numbers[number] for _, _, number in people(20)] == list(range(last + 1, last + 21))
    assert make.student()["number"] == last + 21


def test_columns_may_come_in_any_order_and_others_are_ignored_and_named(api):
    content = workbook([[" ADMISSION NUMBER", "S/N", "Last_Name ", "First name"], ["QC/1", 1, "Obi", "Ada"]])

    assert api.ok(upload(api, content)) == created(1) | {
        "ignored_columns": ["S/N"],
        "warnings": ["Nothing was read of the column S/N: not known."],
    }
    assert [listed(api)[0][name] for name in LEAST] == ["Ada", "Obi", "QC/1"]


def test_numbers_in_text_columns_and_dates_in_text_are_read(api):
    columns = [*LEAST, "guardian_full_name", "guardian_phone_number", "dob"]
    content = workbook([columns, ["Ada", "Obi", 1234, "Ngozi", 8031234567.0, "2013-05-31"]])

    api.ok(upload(api, content))

    (student,) = listed(api)
    assert (student["admission_number"], student["dob"]) == ("1234", "2013-05-31")
    assert student["guardian"]["phone_number"] == "08031234567"


def test_texts_with_any_characters_are_trimmed_and_stored(api):
    made = Workbook()
    made.worksheets[0].append(LEAST)
    for column, text in enumerate(["  =1+1 ", "O'Brien'); DROP TABLE students; --", "%_\\ 数学"], 1):
        made.worksheets[0].cell(2, column).value = text
        made.worksheets[0].cell(2, column).data_type = "s"

    api.ok(upload(api, saved(made)))

    assert [listed(api)[0][name] for name in LEAST] == [
        "=1+1",
        "O'Brien'); DROP TABLE students; --",
        "%_\\ 数学",
    ]


def test_empty_rows_do_not_count(api):
    assert api.ok(
        upload(api, sheet([], ["Ada", "Obi", "QC/1"], [None, " "], ["Bisi", "Obi", "QC/2"]))
    ) == created(2)


def test_a_sheet_without_rows_is_refused(api):
    for query in ("", "?dry_run=true"):
        answer = upload(api, sheet(), query)
        assert (answer.status_code, answer.get_json()["message"]) == (422, NO_ROWS)


def test_the_filled_template_is_imported(api):
    made = load_workbook(BytesIO(api.get("/students/import-template").get_data()))
    made["Students"].append(["Ada", None, "Obi", "QC/1", None, date(2013, 5, 31)])

    assert api.ok(upload(api, saved(made))) == created(1)
    assert listed(api)[0]["dob"] == "2013-05-31"


# A dry run.


def test_a_dry_run_answers_as_the_import_would_and_stores_nothing(api, make):
    last = make.student()["number"]
    content = sheet(*people(3))

    assert api.ok(upload(api, content, "?dry_run=true")) == created(3)

    assert len(listed(api)) == 1
    assert api.ok(api.get("/users?search=IM/0000"))["total"] == 0
    assert make.student()["number"] == last + 1
    assert api.ok(upload(api, content, "?dry_run=false")) == created(3)


def test_a_dry_run_hashes_no_password(api, monkeypatch):
    monkeypatch.setattr("school_service.features.classes.student_imports.sheet.hash_new_password", None)
    content = workbook([[*LEAST, "password"], ["Ada", "Obi", "QC/1", "secret"]])

    assert api.ok(upload(api, content, "?dry_run=true")) == created(1)


def test_a_dry_run_reports_the_same_errors(api, make):
    make.student(admission_number="QC/1")
    content = sheet(["Ada", "Obi", "QC/1"], ["", "Obi", "QC/2"])

    dry, wet = (row_errors(upload(api, content, query)) for query in ("?dry_run=true", ""))

    assert dry == wet == [(2, "admission_number", "taken"), (3, "first_name", "required")]


@pytest.mark.parametrize("value", ["yes", "", "2", "null"])
def test_a_dry_run_is_true_or_false(api, value):
    answer = upload(api, sheet(), f"?dry_run={value}")

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["dry_run"])


# Bad rows.


@pytest.mark.parametrize(
    ("columns", "row", "expected"),
    [
        (LEAST, ["", "Obi", "QC/9"], [("first_name", "required")]),
        (LEAST, ["Ada", "  ", "QC/9"], [("last_name", "required")]),
        (LEAST, ["Ada", "Obi", None], [("admission_number", "required")]),
        (LEAST, [None, None, "QC/9"], [("first_name", "required"), ("last_name", "required")]),
        (LEAST, ["A" * 121, "Obi", "QC/9"], [("first_name", "invalid")]),
        (LEAST, ["Ada", date(2025, 1, 5), "QC/9"], [("last_name", "invalid")]),
        (LEAST, ["Ada", "Obi", date(2025, 1, 5)], [("admission_number", "invalid")]),
        ([*LEAST, "dob"], ["Ada", "Obi", "QC/9", "05/06/2013"], [("dob", "invalid")]),
        ([*LEAST, "dob"], ["Ada", "Obi", "QC/9", "2013-02-30"], [("dob", "invalid")]),
        ([*LEAST, "dob"], ["Ada", "Obi", "QC/9", 41425], [("dob", "invalid")]),
        ([*LEAST, "dob"], ["Ada", "Obi", "QC/9", True], [("dob", "invalid")]),
        ([*LEAST, "admitted_on"], ["Ada", "Obi", "QC/9", "in 2019"], [("admitted_on", "invalid")]),
        ([*LEAST, "former_school"], ["Ada", "Obi", "QC/9", "A" * 501], [("former_school", "invalid")]),
        ([*LEAST, "left_on"], ["Ada", "Obi", "QC/9", "2025-07-25"], [("left_on", "invalid")]),
        ([*LEAST, "leaving_reason"], ["Ada", "Obi", "QC/9", "Fees"], [("leaving_reason", "invalid")]),
        ([*LEAST, "gender"], ["Ada", "Obi", "QC/9", "F" * 121], [("gender", "invalid")]),
        ([*LEAST, "username"], ["Ada", "Obi", "QC/9", "a" * 121], [("username", "invalid")]),
        ([*LEAST, "password"], ["Ada", "Obi", "QC/9", "a" * 1001], [("password", "invalid")]),
        (
            [*LEAST, "guardian_phone_number"],
            ["Ada", "Obi", "QC/9", "0803"],
            [("guardian_full_name", "required")],
        ),
        (
            [*LEAST, "guardian_full_name", "guardian_email_address"],
            ["Ada", "Obi", "QC/9", "Ngozi", "no address"],
            [("guardian_email_address", "invalid")],
        ),
        (
            [*LEAST, "guardian_full_name", "guardian_relationship"],
            ["Ada", "Obi", "QC/9", date(2025, 1, 5), "aunt"],
            [("guardian_full_name", "invalid")],
        ),
    ],
)
def test_a_bad_row_is_reported_and_nothing_is_stored(api, columns, row, expected):
    content = workbook([columns, ["Good", "Student", "QC/1"], row])

    answer = upload(api, content)

    assert row_errors(answer) == [(3, column, code) for column, code in expected]
    assert all(error["message"] for error in answer.get_json()["errors"]["rows"])
    assert listed(api) == []


def test_a_row_is_validated_like_a_body(api):
    content = workbook([[*LEAST, "dob"], ["Ada", "Obi", "QC/9", "31 May 2013"]])
    body = {"first_name": "Ada", "last_name": "Obi", "admission_number": "QC/9", "dob": "31 May 2013"}

    message = upload(api, content).get_json()["errors"]["rows"][0]["message"]

    assert message == (
        'D2: "31 May 2013" is no date for Ada Obi (QC/9): write it as year-month-day, such as 2012-05-31'
    )
    assert list(api.post("/students", body).get_json()["errors"]["json"]) == ["dob"]


def test_duplicates_in_the_sheet_are_reported_after_the_first(api):
    content = sheet(
        ["Ada", "Obi", "QC/1"], ["Bisi", "Obi", " QC/1 "], ["Chi", "Obi", "QC/2"], ["Dan", "Obi", "QC/1"]
    )

    answer = upload(api, content)

    assert row_errors(answer) == [(3, "admission_number", "duplicate"), (5, "admission_number", "duplicate")]
    assert (
        answer.get_json()["errors"]["rows"][0]["message"] == 'C3: "QC/1" is in row 2 too for Bisi Obi (QC/1)'
    )


def test_duplicate_usernames_are_reported_given_or_not(api):
    content = workbook(
        [
            [*LEAST, "username"],
            ["Ada", "Obi", "QC/1", "ada"],
            ["Bisi", "Obi", "QC/2", "ada"],
            ["Chi", "Obi", "QC/3", "QC/4"],
            ["Dan", "Obi", "QC/4", None],
            ["Eze", "Obi", "QC/1", "eze"],
            ["Fela", "Obi", "QC/1", "eze"],
            ["Gani", "Obi", "QC/9", "EZE"],
        ]
    )

    assert row_errors(upload(api, content)) == [
        (3, "username", "duplicate"),
        (5, "username", "duplicate"),
        (6, "admission_number", "duplicate"),
        (7, "admission_number", "duplicate"),
        (7, "username", "duplicate"),
        (8, "username", "duplicate"),
    ]


def test_taken_numbers_and_usernames_are_reported(api, make):
    make.student(admission_number="QC/1")
    make.student(admission_number="QC/2", username="bisi")
    make.student(admission_number="QC/9", username="Zoe")
    deleted = make.user(username="gone")["user"]
    api.ok(api.delete(f"/users/{deleted['id']}/delete"))
    content = workbook(
        [
            [*LEAST, "username"],
            ["Ada", "Obi", "QC/1", None],
            ["Bisi", "Obi", "QC/3", "bisi"],
            ["Chi", "Obi", "QC/2", "chi"],
            ["Dan", "Obi", "admin", None],
            ["Eze", "Obi", "QC/5", "gone"],
            ["Fela", "Obi", "qc/9", None],
            ["Gani", "Obi", "QC/7", "ZOE"],
            ["Hadiza", "Obi", "QC/8", "hadiza"],
        ]
    )

    assert row_errors(upload(api, content)) == [
        (2, "admission_number", "taken"),
        (3, "username", "taken"),
        (4, "admission_number", "taken"),
        (5, "username", "taken"),
        (6, "username", "taken"),
        (7, "admission_number", "taken"),
        (8, "username", "taken"),
    ]
    assert len(listed(api)) == 3


def test_the_same_sheet_again_is_reported_row_by_row(api):
    content = sheet(*people(3))
    api.ok(upload(api, content))

    assert row_errors(upload(api, content)) == [(row, "admission_number", "taken") for row in (2, 3, 4)]
    assert len(listed(api)) == 3


def test_errors_of_every_code_are_reported_at_once_by_row(api, make):
    make.student(admission_number="QC/1")
    content = workbook(
        [
            [*LEAST, "dob"],
            ["", "Obi", "QC/1", "never"],
            ["Ada", "Obi", "QC/2", 5],
            ["Ada", "", "QC/2", None],
        ]
    )

    errors = row_errors(upload(api, content))

    assert sorted(errors) == [
        (2, "admission_number", "taken"),
        (2, "dob", "invalid"),
        (2, "first_name", "required"),
        (3, "dob", "invalid"),
        (4, "admission_number", "duplicate"),
        (4, "last_name", "required"),
    ]
    assert [row for row, _, _ in errors] == [2, 2, 2, 3, 4, 4]


def test_at_most_200_bad_rows_are_reported(api):
    errors = row_errors(upload(api, sheet(*[["", "", f"QC/{number}"] for number in range(300)])))

    assert len(errors) == 400
    assert {row for row, _, _ in errors} == set(range(2, 202))


@pytest.mark.parametrize("missing", LEAST)
def test_a_missing_column_is_reported(api, missing):
    columns = [name for name in LEAST if name != missing]

    assert row_errors(upload(api, workbook([columns, ["Ada", "Obi"]]))) == [(1, missing, "required")]


def test_a_column_twice_is_reported(api):
    content = workbook([[*LEAST, "DOB ", "dob"], ["Ada", "Obi", "QC/1"]])

    assert row_errors(upload(api, content)) == [(1, "dob", "duplicate")]


@pytest.mark.parametrize("rows", [[], [["x"]], [["first_name"]]])
def test_an_empty_sheet_or_one_of_a_cell_lacks_columns(api, rows):
    assert {code for _, _, code in row_errors(upload(api, workbook(rows)))} == {"required"}


# Bad files.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "The file is empty."),
        (b"%PDF-1.7", PDF),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", NOT_A_WORKBOOK),
        (sheet(["Ada", "Obi", "QC/1"])[:-40], "The workbook is broken and can't be read."),
        (handmade(b"<!DOCTYPE x>" + sheet_xml("")), "The workbook is broken and can't be read."),
    ],
)
def test_a_file_that_is_no_workbook_is_refused(api, content, message):
    answer = upload(api, content)

    assert (answer.status_code, answer.get_json()["message"]) == (422, message)
    assert listed(api) == []


def test_a_workbook_that_unpacks_to_too_much_is_too_large(api):
    answer = upload(api, zipped({"xl/worksheets/sheet1.xml": bytes(101 * MIB)}))

    assert (answer.status_code, answer.get_json()["message"]) == (
        413,
        "The workbook unpacks to more than 100 MiB.",
    )


@pytest.mark.parametrize("form", [{}, {"file": (BytesIO(b"x"), "x.xlsx")}, {"sheet": "text, no file"}])
def test_a_missing_file_is_refused(api, form):
    answer = api.post("/students/import-sheet", data=form, content_type="multipart/form-data")

    assert answer.status_code == 422
    assert answer.get_json()["errors"] == {"files": {"sheet": ["Missing data for required field."]}}


@pytest.mark.parametrize(
    "options",
    [
        {"json": {"sheet": "x"}},
        {"data": b"x", "content_type": "application/octet-stream"},
        {"data": {"sheet": "x"}, "content_type": "application/x-www-form-urlencoded"},
        {},
    ],
)
def test_another_media_type_is_refused(api, options):
    assert api.post("/students/import-sheet", **options).status_code == 415


def test_an_upload_needs_its_permission_before_it_is_looked_at(make):
    answer = upload(make.caller("read:students"), b"no workbook")

    assert answer.status_code == 403


def test_a_file_over_the_limit_is_too_large(settings, tenancy, place):
    app = create_app(replace(settings, max_upload_bytes=20_000))
    api = ApiClient(app, Document(app), place.admin_token, place.id)
    content = sheet(["Ada", "Obi", "QC/1"])
    padded = {size: content + bytes(size - len(content)) for size in (20_000, 20_001, 90_000, 200_000)}

    answers = {size: upload(api, padded[size], "?dry_run=true").status_code for size in padded}

    assert answers == {20_000: 200, 20_001: 413, 90_000: 413, 200_000: 413}


# Schools, cost, and many at once.


def test_the_other_school_has_its_own(api, other_api, make_other):
    make_other.student(admission_number="QC/1")
    content = sheet(["Ada", "Obi", "QC/1"])

    assert api.ok(upload(api, content)) == created(1)
    assert len(listed(other_api)) == 1
    assert upload(api.using(school=other_api.school), content).status_code == 403
    assert upload(api.using(school=None), content).status_code == 400
    assert upload(api.using(school=uuid4()), content).status_code in {403, 404}


def test_an_import_of_any_length_costs_the_same_statements(api, messages):
    sent = {}
    for size in (2, 10, 300):
        with messages() as sent[size]:
            api.ok(upload(api, sheet(*people(size, prefix=f"S{size}"))))

    assert len(sent[10]) == len(sent[300]) == len(sent[2])
    assert len(sent[300]) <= 10, sent[300]
    assert len(listed(api)) == 312


def test_a_dry_run_and_a_refusal_of_any_length_cost_the_same_statements(api, messages):
    for query in ("?dry_run=true", ""):
        sent = {}
        for size in (10, 200):
            rows = [*people(size), ["", "Obi", "QC/X"]] if query == "" else people(size)
            with messages() as sent[size]:
                upload(api, sheet(*rows), query)
        assert len(sent[10]) == len(sent[200]) <= 5


def test_the_same_sheet_at_once_is_imported_once(app, tenancy, document):
    place = make_place(app, tenancy, "Mayflower School")
    api = ApiClient(app, document, place.admin_token, place.id)
    contents = [sheet(*people(60)), sheet(*reversed(people(60)))]

    answers = run_concurrently(4, lambda number: upload(api, contents[number % 2]))

    done = [answer for answer in answers if answer.status_code == 200]
    assert [answer.get_json() for answer in done] == [created(60)]
    for answer in answers:
        if answer not in done:
            assert {code for _, _, code in row_errors(answer)} == {"taken"}
    assert sorted(student["number"] for student in listed(api)) == list(range(1, 61))
    assert api.ok(api.get("/users"))["total"] == 61


def test_imports_and_single_students_at_once_leave_no_gap(app, tenancy, document):
    place = make_place(app, tenancy, "Loyola Jesuit College")
    api = ApiClient(app, document, place.admin_token, place.id)

    def work(number):
        if number % 2:
            return upload(api, sheet(*people(30, prefix=f"LJ{number}"))).status_code
        body = {"first_name": "Ada", "last_name": "Obi", "admission_number": f"LJ{number + 1}/00015"}
        return api.post("/students", body).status_code

    answers = run_concurrently(6, work)

    numbers = sorted(student["number"] for student in listed(api))
    assert numbers == list(range(1, len(numbers) + 1))
    assert set(answers) <= {200, 409, 422}
    assert len(numbers) == sum(
        (30 if number % 2 else 1) for number, status in enumerate(answers) if status == 200
    )


def test_passwords_are_hashed_one_by_one(api, monkeypatch):
    content = workbook(
        [[*LEAST, "password"], ["Ada", "Obi", "QC/1", "same"], ["Bisi", "Obi", "QC/2", "same"]]
    )

    api.ok(upload(api, content))

    monkeypatch.setattr(users, "hash_password", None)
    for username in ("QC/1", "QC/2"):
        assert api.post("/users/login", {"username": username, "password": "same"}).status_code == 200
        assert api.post("/users/login", {"username": username, "password": "other"}).status_code == 401


# The template.


def test_the_template_is_a_workbook_that_explains_itself(api):
    answer = api.get("/students/import-template")

    assert answer.status_code == 200
    assert answer.mimetype == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="students.xlsx"'
    made = load_workbook(BytesIO(answer.get_data()))
    assert made.sheetnames == ["Students", "Help"]
    header = [cell.value for cell in made["Students"][1]]
    assert header == [column.name for column in COLUMNS]
    assert made["Students"].max_row == 1
    explained = list(made["Help"].iter_rows(min_row=2, values_only=True))
    assert [name for name, _, _ in explained] == header
    assert [name for name, needed, _ in explained if needed == "yes"] == LEAST
    assert all(meaning for _, _, meaning in explained)


def test_the_template_offers_genders_and_asks_for_dates(api):
    made = load_workbook(BytesIO(api.get("/students/import-template").get_data()))

    rules = {rule.type: rule for rule in made["Students"].data_validations.dataValidation}

    assert (rules["list"].formula1, rules["list"].showErrorMessage) == ('"FEMALE,MALE"', False)
    dates = {
        str(rule.sqref)[0] for rule in made["Students"].data_validations.dataValidation if rule.type == "date"
    }
    headings = {cell.column_letter: cell.value for cell in made["Students"][1]}
    assert {headings[letter] for letter in dates} == {"dob", "admitted_on"}
    assert not made["Students"].protection.sheet


def test_the_template_is_always_the_same(api):
    first, second = (api.get("/students/import-template").get_data() for _ in range(2))

    assert first == second


# The document.


def test_the_upload_is_documented(document):
    operation = document.operations()["POST", "/students/import-sheet"]

    content = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
    while "$ref" in content:
        content = document.spec["components"]["schemas"][content["$ref"].rsplit("/", 1)[1]]
    assert content["properties"]["sheet"]["format"] == "binary"
    assert content["required"] == ["sheet"]
    assert {"200", "403", "409", "413", "415", "422"} <= operation["responses"].keys()
    assert "dry_run" in [parameter["name"] for parameter in operation["parameters"] if "name" in parameter]
    assert operation["x-permission"] == "write:students"
    template = document.operations()["GET", "/students/import-template"]
    assert "application/octet-stream" in template["responses"]["200"]["content"]


def with_passwords(count):
    columns = ["first_name", "last_name", "admission_number", "password"]
    return sheet(*[["Ada", "Obi", f"P/{number}", "a password"] for number in range(count)], columns=columns)


def test_an_import_has_so_many_passwords_and_no_more(api, monkeypatch):
    monkeypatch.setattr("school_service.features.classes.student_imports.sheet.PASSWORDS_AT_ONCE", 3)
    hashed = []
    monkeypatch.setattr(
        "school_service.features.classes.student_imports.sheet.hash_new_password",
        lambda password, **_: hashed.append(password) or "x",
    )

    refused = upload(api, with_passwords(4))

    assert refused.status_code == 422
    assert "4 rows with passwords, and 3 may have one" in refused.get_json()["message"]
    assert (hashed, listed(api)) == ([], [])
    assert api.ok(upload(api, with_passwords(3)))["created"] == 3
    assert len(hashed) == 3


def test_rows_with_a_password_need_read_results_and_others_do_not(api, make):
    clerk = make.caller("read:students", "write:students")
    columns = [*LEAST, "password"]
    with_password = sheet(["Ada", "Obi", "R/1", "correct horse battery"], columns=columns)
    without = sheet(["Ada", "Obi", "R/1", None], columns=columns)

    for query in ("", "?dry_run=true"):
        answer = upload(clerk, with_password, query)
        assert (answer.status_code, "read:results" in answer.get_json()["message"]) == (403, True)
    assert listed(api) == []
    assert clerk.ok(upload(clerk, without))["created"] == 1
    allowed = make.caller("read:students", "write:students", "read:results")
    again = sheet(["Ada", "Obi", "R/2", "correct horse battery"], columns=columns)
    assert allowed.ok(upload(allowed, again))["created"] == 1
