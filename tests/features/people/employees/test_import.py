"""The import of employees from a sheet: all of its rows or none; unknown values are null until PATCH fills them."""

from __future__ import annotations

from io import BytesIO
from uuid import uuid4

import pytest
from openpyxl import load_workbook

from school_service.features.people.employees.schemas import NewEmployeeSchema
from school_service.features.people.employees.sheet import COLUMNS
from school_service.web.fields import Nested
from tests.client import ApiClient
from tests.conftest import make_place
from tests.sheets.libreoffice import needs_libreoffice, saved_by_libreoffice
from tests.sheets.workbooks import workbook
from tests.threads import run_concurrently

LEAST = ["first_name", "last_name", "gender", "category"]
NULL = (
    *("title", "dob", "join_date", "marital_status", "department", "blood_group", "lga", "state"),
    *("nationality", "religion", "position"),
)
FULL = {
    "first_name": "Adaeze",
    "middle_name": "Ngozi",
    "last_name": "Okafor",
    "title": "Mrs",
    "gender": "FEMALE",
    "category": "Teaching",
    "department": "Sciences",
    "position": "Teacher",
    "dob": "1985-05-31",
    "join_date": "2020-09-14",
    "marital_status": "Married",
    "blood_group": "O+",
    "religion": "Christian",
    "status": "ON LEAVE",
    "nationality": "Nigeria",
    "state": "Lagos State",
    "lga": "Ikeja",
    "phone_number": "08031234567",
    "email_address": "ada@example.com",
    "physical_address": "1 Marina",
    "bank_name": "First Bank",
    "account_name": "Adaeze Okafor",
    "account_number": "3012345678",
    "bank_sort_code": "011",
    "account_type": "Savings",
    "employee_no": "QC-1",
    "next_of_kin_full_name": "Emeka Okafor",
    "next_of_kin_relationship": "Husband",
    "next_of_kin_phone_number": "08031234568",
    "next_of_kin_physical_address": "2 Marina",
}


def upload(api, content, query="", file_name="employees.xlsx"):
    return api.post(f"/employees/import-sheet{query}", data={"sheet": (BytesIO(content), file_name)})


def sheet(*rows, columns=LEAST):
    return workbook([columns, *rows], title="Employees")


def people(count, prefix="Ada"):
    names = ("".join(chr(97 + int(digit)) for digit in str(number)) for number in range(count))
    return [[f"{prefix}{name}", "Obi", "FEMALE", "Teaching"] for name in names]


def created(count):
    return {"rows": count, "created": count, "errors": []}


def row_errors(answer):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return [(each["row"], each["column"], each["code"]) for each in answer.get_json()["errors"]["rows"]]


def messages_of(answer):
    return [each["message"] for each in answer.get_json()["errors"]["rows"]]


def listed(api):
    return api.ok(api.get("/employees"))


@pytest.fixture
def least(api):
    """An employee with the least that a sheet can have."""
    assert api.ok(upload(api, sheet(["Ada", "Obi", "F", "teaching"])))["created"] == 1
    return listed(api)[0]


def test_the_template_has_a_column_for_each_field_of_a_posted_employee(api):
    parts = {"bank_details": "", "next_of_kin": "next_of_kin_", "contact": ""}
    fields = {
        f"{parts.get(name, '')}{part or name}"
        for name, field in NewEmployeeSchema().fields.items()
        for part in (field.schema.fields if isinstance(field, Nested) else [""])
    }

    answer = api.get("/employees/import-template")
    made = load_workbook(BytesIO(answer.get_data()))

    # The number of another system links nothing.
    assert {column.name for column in COLUMNS} == fields - {"employee", "next_of_kin_employee"}
    assert [cell.value for cell in made["Employees"][1]] == [column.name for column in COLUMNS]
    needed = [row[0] for row in made["Help"].iter_rows(min_row=2, values_only=True) if row[1] == "yes"]
    assert needed == LEAST
    assert "employees.xlsx" in answer.headers["Content-Disposition"]


def test_names_gender_and_category_are_enough(api, least, make):
    assert [least[name] for name in NULL] == [None] * len(NULL)
    assert (least["first_name"], least["last_name"], least["middle_name"]) == ("Ada", "Obi", "")
    assert (least["gender"], least["status"], least["username"], least["role"]) == (
        *("FEMALE", "ACTIVE", "ada.obi"),
        None,
    )
    account = api.ok(api.get(f"/employees/{least['id']}/bank-account"))
    assert {account[name] for name in account.keys() - {"id", "employee"}} == {None}
    kin = api.ok(api.get(f"/employees/{least['id']}/nextofkin"))
    assert {kin[name] for name in kin.keys() - {"id", "created_at"}} == {None}
    contact = api.ok(api.get(f"/contacts?user_id={least['user']}"))
    assert [contact[name] for name in ("email_address", "phone_number", "physical_address")] == [None] * 3
    assert make.account_of(least)["roles"] == []


def test_each_column_is_stored(api, make):
    api.ok(upload(api, sheet([*FULL.values()], columns=[*FULL])))
    made = listed(api)[0]

    names = {
        each["id"]: each["name"]
        for path in ("departments", "positions", "employee-categories", "nationalities", "states", "lgas")
        for each in api.ok(api.get(f"/{path}"))
    }
    shown = {name: names.get(value, value) for name, value in made.items() if name in FULL}
    parts = {
        **api.ok(api.get(f"/employees/{made['id']}/bank-account")),
        **api.ok(api.get(f"/contacts?user_id={made['user']}")),
        **{
            f"next_of_kin_{name}": value
            for name, value in api.ok(api.get(f"/employees/{made['id']}/nextofkin")).items()
        },
    }
    # No answer tells the number in the pay list.
    expected = FULL | {"state": "Lagos"}
    assert {**parts, **shown, "employee_no": "QC-1"}.items() >= expected.items()


def test_patch_fills_the_fields_that_the_import_left_blank(api, least, make):
    body = make.employee_body()
    particulars = {name: body[name] for name in NULL}

    changed = api.ok(api.patch(f"/employees/{least['id']}", particulars))
    bank = api.ok(api.patch(f"/employees/{least['id']}/bank-account", {"bank_name": "Zenith"}))
    kin = api.ok(api.patch(f"/employees/{least['id']}/nextofkin", {"full_name": "Emeka Obi"}))
    contact = api.ok(api.patch(f"/contacts/{least['contact']}", {"phone_number": "0803"}))

    assert {name: changed[name] for name in NULL} == particulars
    assert (bank["bank_name"], kin["full_name"], contact["phone_number"]) == ("Zenith", "Emeka Obi", "0803")


def test_an_area_needs_a_state_and_a_state_none(api, least, make):
    body = make.employee_body()
    address = f"/employees/{least['id']}"

    alone = api.patch(address, {"lga": body["lga"]})
    assert alone.status_code == 422
    assert alone.get_json()["errors"]["json"]["lga"] == ["lies in a state: give the state, too"]
    assert api.patch(address, {"lga": str(uuid4()), "state": body["state"]}).status_code == 422
    assert api.ok(api.patch(address, {"state": body["state"]}))["lga"] is None
    assert api.ok(api.patch(address, {"lga": body["lga"]}))["lga"] == body["lga"]
    assert api.ok(api.patch(address, {"marital_status": "Single"}))["marital_status"] == "Single"


def test_readers_cope_with_an_employee_with_few_known_facts(api, least, make):
    api.ok(api.put(f"/users/{least['user']}/password", {"password": "a pass-word"}))
    login = api.ok(api.post("/users/login", {"username": least["username"], "password": "a pass-word"}))
    me = api.using(token=login["access_token"]["access_token"])
    data = api.ok(api.get(f"/employees/{least['id']}/data"))
    batch = make.cohort()["id"]
    teacher = api.ok(api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": least["id"]}))

    assert api.ok(me.get("/me"))["employee"] == {"id": least["id"], "title": None, "position": None}
    assert (data["employee"]["department"], data["employee"]["position"]) == (None, None)
    assert data["employee"]["category"] == "Teaching"
    assert (teacher["first_name"], teacher["last_name"]) == ("Ada", "Obi")
    assert api.get("/oneroster/csv").status_code == 200
    assert api.ok(api.get("/users?search=ada.obi"))["total"] == 1
    api.ok(api.delete(f"/employees/{least['id']}?release=true"))
    api.ok(api.delete(f"/employees/{least['id']}/data"))


def test_a_dry_run_answers_alike_and_stores_nothing(api):
    content = sheet(["Ada", "Obi", "F", "Teaching"])

    dry = api.ok(upload(api, content, "?dry_run=true"))

    assert listed(api) == []
    assert api.ok(upload(api, content)) == dry
    assert dry == {
        **created(1),
        "replaced_values": [{"column": "gender", "value": "F", "stored": "FEMALE", "rows": 1}],
    }


def test_headings_of_people_and_csv_are_read(api):
    text = (
        "Surname,First Name,Other Names,Sex,Staff Category,Phone,Email,Shoe\n"
        "Ọ̀kẹ́,Ṣadé,,f,Teaching,8031234567,s@example.com,38\n"
    )

    answer = api.ok(upload(api, text.encode(), file_name="employees.csv"))

    (made,) = listed(api)
    contact = api.ok(api.get(f"/contacts?user_id={made['user']}"))
    assert (made["first_name"], made["last_name"], made["username"]) == ("Ṣadé", "Ọ̀kẹ́", "sade.oke")
    assert (contact["phone_number"], contact["email_address"]) == ("08031234567", "s@example.com")
    assert answer["ignored_columns"] == ["Shoe"]
    assert len(answer["warnings"]) == 2


def test_bad_cells_are_named_by_row_in_words(api):
    columns = [*LEAST, "department", "state", "lga", "dob", "join_date", "email_address", "account_number"]
    rows = [
        ["", "Obi", "F", "Teaching"],
        ["Bisi", "Obi", "boy or girl", "Flying", "Sciences", "Lagos", "Kano Municipal"],
        ["Chi", "Obi", "M", None, "Magic", None, "Ikeja", "31.13.1980"],
        ["Dayo", "Obi", "M", "Teaching", None, "Atlantis", "Ikeja", "2001-01-01", "2000-01-01", "no address"],
        ["Efe", "Obi", None, "Teaching", None, None, None, None, None, None, "1" * 200],
        ["F" * 200, "Obi", "M", "Teaching"],
    ]

    answer = upload(api, sheet(*rows, columns=columns))

    assert sorted(row_errors(answer)) == [
        (2, "first_name", "required"),
        (3, "category", "unknown"),
        (3, "gender", "invalid"),
        (3, "lga", "unknown"),
        (4, "category", "required"),
        (4, "department", "unknown"),
        (4, "dob", "invalid"),
        (4, "lga", "invalid"),
        (5, "dob", "invalid"),
        (5, "email_address", "invalid"),
        (5, "state", "unknown"),
        (6, "account_number", "invalid"),
        (6, "gender", "required"),
        (7, "first_name", "invalid"),
    ]
    told = " ".join(messages_of(answer))
    assert 'D3: "Flying" is no category for Bisi Obi: write one of ' in told
    assert 'G4: "Ikeja" lies in a state for Chi Obi: write the state, too' in told
    assert 'H5: "2001-01-01" is not accepted for Dayo Obi: is after join_date' in told
    assert listed(api) == []


def test_a_sheet_without_a_needed_column_is_refused(api):
    answer = upload(api, sheet(["Ada", "Obi", "F"], columns=LEAST[:3]))

    assert answer.status_code == 422
    assert "category" in answer.get_data(as_text=True)


def test_a_person_is_not_imported_twice(api):
    born = [*LEAST, "dob"]
    api.ok(upload(api, sheet(["Ada", "Obi", "F", "Teaching", "1980-01-01"], columns=born)))

    again = upload(api, sheet(["ADA", " Obi", "F", "Teaching"], ["Bisi", "Eze", "F", "Teaching"]))
    twice = upload(api, sheet(["Bisi", "Eze", "F", "Teaching"], ["bisi", "Eze", "F", "Teaching"]))
    two = upload(
        api,
        sheet(
            ["Ada", "Obi", "F", "Teaching", "1981-02-03"],
            ["Ada", "Obi", "F", "Teaching", "1982-02-03"],
            columns=born,
        ),
    )

    assert row_errors(again) == [(2, "last_name", "taken")]
    assert row_errors(twice) == [(3, "last_name", "duplicate")]
    assert messages_of(twice) == [
        'B3: "bisi Eze" is in row 2 too: write the dates of birth if they are two people'
    ]
    assert api.ok(two)["created"] == 2
    assert {each["username"] for each in listed(api)} == {"ada.obi", "ada.obi2", "ada.obi3"}


def test_a_deleted_employee_may_come_again(api, least):
    api.ok(api.delete(f"/employees/{least['id']}"))

    api.ok(upload(api, sheet(["Ada", "Obi", "F", "Teaching"])))

    assert [each["username"] for each in listed(api)] == ["ada.obi2"]


def test_a_file_of_no_such_kind_and_an_empty_sheet_are_refused(api):
    assert upload(api, b"\x00\x01no sheet").status_code == 422
    assert upload(api, sheet()).status_code == 422
    assert api.post("/employees/import-sheet", data={}).status_code in {415, 422}


def test_the_import_needs_the_permissions_of_creating_an_employee(make):
    content = sheet(["Ada", "Obi", "F", "Teaching"])

    assert upload(make.caller("read:employees"), content).status_code == 403
    assert upload(make.caller("write:employees"), content).status_code == 200
    assert make.caller("write:employees").get("/employees/import-template").status_code == 403
    assert make.caller("read:employees").get("/employees/import-template").status_code == 200


def test_an_import_stays_in_its_school(api, app, tenancy, document, make):
    place = make_place(app, tenancy, "Baptist Academy")
    other = ApiClient(app, document, place.admin_token, place.id)
    category = other.ok(other.post("/employee-categories", {"name": "Of the other school"}))["id"]

    assert row_errors(upload(api, sheet(["Ada", "Obi", "F", "Of the other school"]))) == [
        (2, "category", "unknown")
    ]
    assert row_errors(upload(api, sheet(["Ada", "Obi", "F", category]))) == [(2, "category", "unknown")]
    api.ok(upload(api, sheet(["Ada", "Obi", "F", "Teaching"])))
    other.ok(upload(other, sheet(["Ada", "Obi", "F", "Of the other school"])))
    assert upload(api.using(school=place.id), sheet(["Bisi", "Obi", "F", "Teaching"])).status_code in {
        403,
        404,
    }
    assert [len(listed(each)) for each in (api, other)] == [1, 1]


def test_the_same_sheet_at_once_is_imported_once(app, tenancy, document):
    place = make_place(app, tenancy, "Corona School")
    api = ApiClient(app, document, place.admin_token, place.id)
    contents = [sheet(*people(30)), sheet(*reversed(people(30)))]

    answers = run_concurrently(4, lambda number: upload(api, contents[number % 2]))

    assert sorted(answer.status_code for answer in answers) == [200, 422, 422, 422]
    assert {code for each in answers if each.status_code == 422 for _, _, code in row_errors(each)} == {
        "taken"
    }
    assert len(listed(api)) == 30


def test_an_import_of_any_length_costs_the_same_statements(api, messages):
    sent = {}
    for size, prefix in ((2, "Ada"), (10, "Bisi"), (300, "Chi")):
        with messages() as sent[size]:
            api.ok(upload(api, sheet(*people(size, prefix))))

    assert len(sent[10]) == len(sent[300]) == len(sent[2])
    assert len(sent[300]) <= 12, sent[300]
    assert len(listed(api)) == 312


@needs_libreoffice
def test_the_template_goes_through_libreoffice(api, tmp_path):
    made = load_workbook(BytesIO(api.get("/employees/import-template").get_data()))
    for place, column in enumerate(COLUMNS, 1):
        made["Employees"].cell(2, place, FULL[column.name])
    content = BytesIO()
    made.save(content)

    assert api.ok(upload(api, saved_by_libreoffice(content.getvalue(), tmp_path)))["created"] == 1
    assert listed(api)[0]["dob"] == "1985-05-31"
