"""Files as clerks have them: dates, telephone numbers, headings, merged cells and character sets of every kind."""

from __future__ import annotations

from io import BytesIO

import pytest
from openpyxl import Workbook

from school_service.sheets.phone_numbers import country_of
from tests.features.classes.student_imports.test_import import LEAST, created, listed, row_errors, upload
from tests.sheets.libreoffice import all_saved_by_libreoffice, needs_libreoffice
from tests.sheets.workbooks import saved, workbook

PHONE = [*LEAST, "guardian_full_name", "guardian_phone_number"]
DOB = [*LEAST, "dob"]


def students(*values):
    return [["Ada", "Obi", f"QC/{number}", *value] for number, value in enumerate(values, 1)]


def messages(answer):
    return [error["message"] for error in answer.get_json()["errors"]["rows"]]


def csv_of(*rows, encoding="utf-8"):
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode(encoding)


def send(api, content, query=""):
    form = {"sheet": (BytesIO(content), "students.csv")}
    return api.post(f"/students/import-sheet{query}", data=form)


# Dates.


def born(api):
    return [student["dob"] for student in listed(api)]


def test_dates_in_text_are_read_as_the_sheet_shows(api):
    content = workbook([DOB, *students(["05/06/2012"], ["31/05/2013"], ["2014-01-02"])])

    answer = api.ok(upload(api, content))

    assert answer == created(3) | {
        "warnings": [
            "dob: 2 dates were read with the day first, as row 3 shows.",
            "dob: the sheet has dates and texts that look like dates. The spreadsheet program may have taken the month "
            "of the first for the day: compare row 4.",
        ]
    }
    assert born(api) == ["2012-06-05", "2013-05-31", "2014-01-02"]


@pytest.mark.parametrize(("order", "expected"), [("DMY", "2012-06-05"), ("MDY", "2012-05-06")])
def test_dates_are_read_as_the_request_says(api, order, expected):
    content = workbook([DOB, *students(["05/06/2012"])])

    for query in ("&dry_run=true", ""):
        assert api.ok(upload(api, content, f"?dates={order}{query}")) == created(1)

    assert born(api) == [expected]


def test_a_date_that_may_be_two_is_named(api):
    answer = upload(api, workbook([DOB, *students(["05/06/2012"], ["07/07/2012"])]))

    assert messages(answer) == [
        'D2: "05/06/2012" is 2012-06-05 with the day first, and 2012-05-06 with the month first for Ada Obi (QC/1): '
        "send the sheet with dates=DMY or dates=MDY, or write it as year-month-day"
    ]
    assert listed(api) == []


def test_a_date_in_the_other_order_is_named(api):
    answer = upload(api, workbook([DOB, *students(["31/05/2012"])]), "?dates=MDY")

    assert messages(answer) == [
        'D2: "31/05/2012" is no date with the month first for Ada Obi (QC/1): write it as year-month-day: 2012-05-31'
    ]


def test_a_date_that_can_not_be_is_still_refused(api):
    answer = upload(api, workbook([DOB, *students(["31/05/1799"], ["31/05/2999"])]))

    assert row_errors(answer) == [(2, "dob", "invalid"), (3, "dob", "invalid")]


@pytest.mark.parametrize("order", ["dmy", "YMD", ""])
def test_the_order_is_one_of_two(api, order):
    answer = upload(api, workbook([DOB]), f"?dates={order}")

    assert list(answer.get_json()["errors"]["query"]) == ["dates"]


# Telephone numbers.


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        (8031234567, "08031234567"),
        (8031234567.0, "08031234567"),
        ("8031234567", "08031234567"),
        ("803 123 4567", "0803 123 4567"),
        ("803-123-4567, 8051234567", "0803-123-4567, 08051234567"),
        ("8031234567/08051234567", "08031234567/08051234567"),
        ("803 123 4567 ; 805 123 4567", "0803 123 4567 ; 0805 123 4567"),
        ("8031234567,", "08031234567,"),
        # Nothing is lost of these.
        ("08031234567", "08031234567"),
        ("+234 803 123 4567", "+234 803 123 4567"),
        (2348031234567, "2348031234567"),
        (447911123456, "447911123456"),
    ],
)
def test_a_number_gets_the_0_back_that_it_lost(api, written, stored):
    answer = api.ok(upload(api, workbook([PHONE, *students(["Ngozi", written])])))

    assert listed(api)[0]["guardian"]["phone_number"] == stored
    told = answer.get("warnings", [])
    assert len(told) == (stored != str(written).removesuffix(".0"))
    if written == 8031234567:
        assert told == [
            "guardian_phone_number: 1 number had lost the 0 in front, which was put back: "
            "8031234567 is stored as 08031234567."
        ]


@pytest.mark.parametrize(
    "written", [803123456, "80312345", 1234567890123, "8.03123E+09", "2,34803E+12", "8E9"]
)
def test_a_number_that_lost_more_is_refused(api, written):
    answer = upload(api, workbook([PHONE, *students(["Ngozi", written])]))

    assert row_errors(answer) == [(2, "guardian_phone_number", "invalid")]
    assert messages(answer)[0].endswith(
        ": format the column as text, and write the whole number, such as 0803 123 4567 or +234 803 123 4567"
    )
    assert listed(api) == []


@pytest.mark.parametrize(
    ("phone_number", "country"),
    [
        (None, "NG"),
        ("01-555 0199", "NG"),
        ("+234 803 555 0123", "NG"),
        ("+233 30 222 1234, 030 222 1235", "GH"),
        ("+254 20 2222222", "KE"),
        ("+999 1", "NG"),
        ("+", "NG"),
    ],
)
def test_the_country_is_of_the_schools_own_number(phone_number, country):
    assert country_of(phone_number) == country


# Headings.


def test_headings_that_people_give_are_taken(api, make):
    cohort = make.cohort(make.classroom(name="JSS 1"), make.session(name="2044/2045", current=True))
    gold = make.batch(cohort, name="Gold")
    content = workbook(
        [
            [
                "S/N",
                "Surname",
                "First Name*",
                "Other names",
                "Admission No.",
                "Sex (M/F)",
                "D.O.B",
                "Class",
                "Arm",
            ],
            [1, "Òjó", "Adé", "Ọlá", "QC/1", "f", "2012-05-31", "JSS 1", "Gold"],
        ]
    )

    answer = api.ok(upload(api, content))

    assert (answer["created"], answer["enrolled"]) == (1, 1)
    assert answer["warnings"] == ["Nothing was read of the column S/N: not known."]
    (student,) = listed(api)
    shown = ("last_name", "first_name", "middle_name", "admission_number", "gender", "dob", "batch")
    assert [student[name] for name in shown] == [
        "Òjó",
        "Adé",
        "Ọlá",
        "QC/1",
        "FEMALE",
        "2012-05-31",
        gold["id"],
    ]


@pytest.mark.parametrize(
    ("class_", "arm"),
    [("JSS 1 Gold", "Gold"), ("JSS 1", "GOLD"), ("JSS 1 Gold 2044/2045", "gold"), ("", "JSS 1 Gold")],
)
def test_an_arm_beside_the_class_is_part_of_it(api, make, class_, arm):
    cohort = make.cohort(make.classroom(name="JSS 1"), make.session(name="2044/2045", current=True))
    gold = make.batch(cohort, name="Gold")

    api.ok(upload(api, workbook([[*LEAST, "class", "Arm"], *students([class_, arm])])))

    assert listed(api)[0]["batch"] == gold["id"]


def test_a_column_of_its_own_name_comes_first(api):
    content = workbook([[*LEAST, "Surname"], ["Ada", "Obi", "QC/1", "other"]])

    answer = api.ok(upload(api, content))

    assert answer["ignored_columns"] == ["Surname"]
    assert listed(api)[0]["last_name"] == "Obi"


def test_a_missing_column_is_told_with_the_headings_that_there_are(api):
    answer = upload(api, workbook([["S/N", "Name", "Admission No."], [1, "Ada Obi", "QC/1"]]))

    assert row_errors(answer) == [(1, "first_name", "required"), (1, "last_name", "required")]
    assert messages(answer)[0].startswith(
        "row 1: the column first_name is missing: the headings are S/N, Name, Admission No.; "
        "needed are first_name, last_name, admission_number, and may be middle_name, gender, dob, "
    )


def test_a_sheet_without_headings_says_so(api):
    answer = upload(api, workbook([[]]))

    assert "there are no headings; needed are first_name, last_name, admission_number" in messages(answer)[0]


def test_a_date_of_admission_is_read_as_a_birthday_is(api):
    columns = ["First name", "Surname", "Adm. No.", "Date of admission", "Previous School"]
    rows = [["Ada", "Obi", "QC/1", "16/09/2019", "Corona"], ["Bisi", "Obi", "QC/2", "05/01/2020", None]]

    answer = api.ok(upload(api, workbook([columns, *rows])))

    assert answer["warnings"] == ["admitted_on: 2 dates were read with the day first, as row 2 shows."]
    admissions = [(student["admitted_on"], student["former_school"]) for student in listed(api)]
    assert admissions == [("2019-09-16", "Corona"), ("2020-01-05", None)]


def test_a_new_student_with_a_date_of_leaving_is_an_error_of_the_row(api):
    answer = upload(api, workbook([[*LEAST, "Date left"], ["Ada", "Obi", "QC/1", "2025-07-25"]]))

    assert messages(answer) == [
        'D2: "2025-07-25" is not accepted for Ada Obi (QC/1): is of a student who has withdrawn or graduated'
    ]


def test_phone_email_and_middle_are_headings_too(api):
    columns = ["First name", "Middle", "Surname", "Adm. No.", "Parent", "Phone", "Email"]
    rows = [
        ["Ada", "Ifẹ́", "Obi", "QC/1", "Ngozi", 8031234567, "ngozi@example.com"],
        ["Bisi", None, "Obi", "QC/2", None, "0803 123 4568", "bisi@example.com"],
    ]

    answer = api.ok(upload(api, workbook([columns, *rows])))

    first, second = listed(api)
    assert first["middle_name"] == "Ifẹ́"
    assert (first["guardian"]["phone_number"], first["guardian"]["email_address"]) == (
        "08031234567",
        "ngozi@example.com",
    )
    assert second["guardian"] is None
    assert answer["warnings"] == [
        "Nothing was read of the column phone in rows without guardian_full_name: 3.",
        "Nothing was read of the column email in rows without guardian_full_name: 3.",
        "guardian_phone_number: 1 number had lost the 0 in front, which was put back: "
        "8031234567 is stored as 08031234567.",
    ]


def test_a_phone_beside_the_guardians_own_is_not_read(api):
    columns = [*LEAST, "Parent", "Parent Phone", "Phone"]
    row = ["Ada", "Obi", "QC/1", "Ngozi", "0803 123 4567", "0805 123 4567"]

    answer = api.ok(upload(api, workbook([columns, row])))

    assert (answer["ignored_columns"], answer["warnings"]) == (
        ["phone"],
        ["Nothing was read of the column phone: not known."],
    )
    assert listed(api)[0]["guardian"]["phone_number"] == "0803 123 4567"


def test_a_number_that_can_be_none_is_a_warning(api):
    numbers = [
        "0803",
        "ask the aunt",
        "0803 123 4567",
        "08031234567 08051234567",
        "+234 803 123 4567",
    ]

    answer = api.ok(upload(api, workbook([PHONE, *students(*(["Ngozi", number] for number in numbers))])))

    assert answer["warnings"] == [
        "guardian_phone_number: 3 can be no telephone number: 0803 in row 2, ask the aunt in row 3, "
        "08031234567 08051234567 in row 5."
    ]
    assert {student["guardian"]["phone_number"] for student in listed(api)} == set(numbers)


def test_wrong_letters_beside_right_ones_are_a_warning(api):
    rows = [["AdÃ© Ọlá", "Obi", "QC/1"], ["Zoë", "Ògún", "QC/2"], ["Élodie", "Ẹ̀dá", "QC/3"]]

    answer = api.ok(upload(api, workbook([LEAST, *rows])))

    assert answer["warnings"] == [
        'first_name: letters look wrong beside right ones: "AdÃ©" in row 2. Compare them with the list on paper.'
    ]
    assert answer["created"] == 3


def test_columns_of_which_nothing_is_read_are_a_warning(api):
    answer = api.ok(upload(api, workbook([[*LEAST, "House", "Club"], *students(["Red", "Chess"])])))

    assert answer["warnings"] == ["Nothing was read of the columns House, Club: not known."]


# Merged cells.


@pytest.mark.parametrize("cells", ["B2:B3", "A2:B2"])
def test_merged_cells_are_a_row_error(api, cells):
    made = Workbook()
    for row in [LEAST, *students([], [])]:
        made.worksheets[0].append(row)
    made.worksheets[0].merge_cells(cells)

    answer = upload(api, saved(made))

    assert (f"{cells[0]}2: is part of the merged cells {cells}") in messages(answer)[0]
    assert listed(api) == []


@needs_libreoffice
def test_a_sheet_saved_by_another_program_is_read_alike(api, tmp_path):
    made = Workbook()
    for row in [PHONE, *students(["Ngozi", 8031234567], ["Bisi", 8051234567])]:
        made.worksheets[0].append(row)
    made.worksheets[0].merge_cells("A2:A3")
    merged = saved(made)
    made.worksheets[0].unmerge_cells("A2:A3")
    made.worksheets[0]["A3"].value = "Ada"
    merged, plain = all_saved_by_libreoffice([merged, saved(made)], tmp_path)

    assert row_errors(upload(api, merged))[0] == (2, "first_name", "invalid")
    assert api.ok(upload(api, plain))["created"] == 2
    assert listed(api)[0]["guardian"]["phone_number"] == "08031234567"


def test_a_merged_title_is_none(api):
    made = Workbook()
    sheet = made.worksheets[0]
    for row in [["QUEEN'S COLLEGE"], LEAST, *students([], [])]:
        sheet.append(row)
    sheet.merge_cells("A1:C1")

    assert api.ok(upload(api, saved(made))) == created(2)


# Character sets.

YORUBA = ["Ògún", "Ẹ̀zẹ", "QC/1"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_file_in_unicode_is_read(api, encoding):
    assert api.ok(send(api, csv_of(LEAST, YORUBA, encoding=encoding))) == created(1)
    assert listed(api)[0]["first_name"] == "Ògún"


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "mac_roman", "cp850"])
def test_a_file_in_another_character_set_is_refused(api, encoding):
    answer = send(api, csv_of(LEAST, ["José", "Nuñez", "QC/1"], encoding=encoding))

    assert answer.status_code == 422
    assert "UTF-8" in answer.get_json()["message"]


@pytest.mark.parametrize("charset", ["cp1252", "mac_roman"])
def test_names_that_were_read_wrongly_are_reported(api, charset):
    wrong = "José".encode().decode(charset)

    answer = upload(api, workbook([LEAST, [wrong, "Obi", "QC/1"]]))

    assert messages(answer) == [
        f'A2: has letters in a wrong character set, "{wrong}" for José: save the file as .xlsx or '
        "'CSV UTF-8' from the program in which the letters are right"
    ]


def test_a_name_with_control_characters_of_that_kind_has_one_error(api):
    wrong = "".join(chr(byte) if byte == 0x81 else bytes([byte]).decode("cp1252") for byte in "Áda".encode())

    assert row_errors(upload(api, workbook([LEAST, [wrong, "Obi", "QC/1"]]))) == [
        (2, "first_name", "invalid")
    ]


def test_letters_that_became_question_marks_are_reported(api):
    answer = send(api, csv_of(LEAST, ["Og?n", "?z?", "QC/1"]))

    assert row_errors(answer) == [(2, "first_name", "invalid"), (2, "last_name", "invalid")]


# Gender: one vocabulary.


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("F", "FEMALE"),
        ("female", "FEMALE"),
        (" Girl ", "FEMALE"),
        ("m.", "MALE"),
        ("Boy", "MALE"),
        ("MALE", "MALE"),
    ],
)
def test_a_form_takes_the_words_of_the_import(api, make, written, stored):
    student = make.student(gender=written)
    changed = api.ok(api.patch(f"/students/{student['id']}", {"gender": written}))

    assert (student["gender"], changed["gender"]) == (stored, stored)


def test_a_form_refuses_other_words(api, make):
    student = make.student()

    for answer in (
        api.post("/students", {**dict.fromkeys(LEAST, "x"), "gender": "yes"}),
        api.patch(f"/students/{student['id']}", {"gender": "yes"}),
    ):
        assert answer.get_json()["errors"]["json"] == {"gender": ["Is neither FEMALE nor MALE."]}


def test_the_interfaces_own_operations_take_any_text(api, make):
    user = make.user(gender="f")["user"]
    changed = api.ok(api.patch(f"/users/{user['id']}", {"gender": "not told"}))

    assert (user["gender"], changed["gender"]) == ("f", "not told")
    assert make.employee(gender="Woman")["gender"] == "Woman"
