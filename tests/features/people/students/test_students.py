"""Students: each with a user account."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from school_service.core.database import db
from school_service.features.people.models import GRADUATED, Student
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.client import ApiClient
from tests.conftest import make_place
from tests.factories import UNKNOWN_ID
from tests.threads import run_concurrently

GUARDIAN = {
    "full_name": "Ngozi Bàlógun",
    "relationship": "mother",
    "phone_number": "+234 803 123 4567",
    "email_address": "ngozi@example.com",
}
FULL = {
    "first_name": "Chidinma",
    "middle_name": "Ifẹ́",
    "last_name": "Bàlógun",
    "admission_number": "QC/2025/001",
    "gender": "FEMALE",
    "dob": "2013-05-31",
    "admitted_on": "2024-09-16",
    "former_school": "Corona School",
    "guardian": GUARDIAN,
}
LEAST = {"first_name": "Ada", "last_name": "Obi", "admission_number": "QC/2025/002"}


def listed(api, query=""):
    return api.ok(api.get(f"/students{query}"))["data"]


def user_of(api, student):
    return api.ok(api.get(f"/users/{student['user']}"))


def graduate(place, student):
    with in_transaction(SchoolBinding(place.id)):
        db.session.get(Student, UUID(student["id"])).status = GRADUATED


def test_a_student_is_created_listed_and_shown(api):
    made = api.ok(api.post("/students", FULL))

    assert made == {
        **FULL,
        "id": made["id"],
        "number": made["number"],
        "status": "ACTIVE",
        "left_on": None,
        "leaving_reason": None,
        "batch": None,
        "cohort": None,
        "user": made["user"],
        "createdAt": made["createdAt"],
        "photo": None,
    }
    assert listed(api) == [made]
    assert api.ok(api.get(f"/students/{made['id']}")) == made


def test_fields_left_out_are_null(api):
    made = api.ok(api.post("/students", LEAST))

    assert [made[name] for name in ("middle_name", "gender", "dob", "guardian")] == [None] * 4
    nulls = dict.fromkeys(
        (
            "middle_name",
            "gender",
            "dob",
            "guardian",
            "admitted_on",
            "former_school",
            "left_on",
            "leaving_reason",
        )
    )
    other = api.ok(api.post("/students", {**LEAST, **nulls, "admission_number": "QC/2025/003"}))
    assert {name: other[name] for name in nulls} == nulls


def test_an_empty_middle_name_is_none(api):
    assert api.ok(api.post("/students", {**LEAST, "middle_name": " "}))["middle_name"] is None


def test_a_guardian_may_be_a_name_alone(api, make):
    made = make.student(guardian={"full_name": "Ngozi", "relationship": None})

    assert made["guardian"] == {
        "full_name": "Ngozi",
        "relationship": None,
        "phone_number": None,
        "email_address": None,
    }


def test_a_student_has_a_user_account_named_by_the_admission_number(api):
    made = api.ok(api.post("/students", FULL))

    user = user_of(api, made)

    assert (user["username"], user["first_name"], user["last_name"], user["gender"]) == (
        "QC/2025/001",
        "Chidinma",
        "Bàlógun",
        "FEMALE",
    )
    (held,) = user["roles"]
    role = api.ok(api.get(f"/roles/{held['roleId']}"))
    assert (role["name"], role["reach"], role["given_to"]) == ("Student", "OWN", "STUDENTS")
    assert user["student"] == {"id": made["id"], "admission_number": "QC/2025/001", "status": "ACTIVE"}


def test_the_gender_of_a_user_is_never_null(api):
    made = api.ok(api.post("/students", LEAST))

    assert (made["gender"], user_of(api, made)["gender"]) == (None, "")


def test_without_a_password_nobody_can_sign_in(api, make):
    make.student(admission_number="QC/7")

    for password in ("QC/7", "None", ""):
        assert api.post("/users/login", {"username": "QC/7", "password": password}).status_code in {401, 422}


def test_with_a_username_and_a_password_the_student_can_sign_in(api, make):
    made = make.student(username="chidinma", password=" spaces around ")

    signed_in = api.ok(api.post("/users/login", {"username": "chidinma", "password": " spaces around "}))

    assert signed_in["user"]["id"] == made["user"]
    assert {permission["access"] for permission in signed_in["permissions"]} == {"read"}


def test_numbers_count_without_gaps(api, make):
    first = make.student()["number"]

    assert api.post("/students", {**LEAST, "username": "admin"}).status_code == 409
    assert api.post("/students", {**LEAST, "first_name": ""}).status_code == 422
    assert [make.student()["number"] for _ in range(3)] == [first + 1, first + 2, first + 3]


def test_a_taken_admission_number_is_a_conflict(api, make):
    make.student(admission_number="QC/1", username="someone")

    answer = api.post("/students", {**LEAST, "admission_number": "QC/1", "username": "else"})

    assert answer.status_code == 409
    assert answer.get_json()["message"] == "A student with this admission number exists already."
    assert answer.get_json()["errors"] == {"json": {"admission_number": ["already taken"]}}
    assert api.ok(api.get("/users?search=else"))["total"] == 0


@pytest.mark.parametrize("fields", [{"admission_number": "taken"}, {"username": "taken"}])
def test_a_taken_username_is_a_conflict(api, make, fields):
    make.user(username="taken")

    answer = api.post("/students", {**LEAST, **fields})

    assert answer.status_code == 409
    assert answer.get_json()["errors"] == {"json": {"username": ["already taken"]}}
    assert listed(api) == []


def test_admission_numbers_compare_exactly(api, make):
    for number in ("qc/1", "QC/1", "QC/01"):
        make.student(admission_number=number, username=f"student {number}" if number == "QC/1" else number)

    assert sorted(student["admission_number"] for student in listed(api)) == ["QC/01", "QC/1", "qc/1"]


# Lists.


def test_students_are_listed_by_name_in_pages(api, make):
    names = [("Ada", "Obi"), ("Bisi", "Adeyemi"), ("Ada", "Adeyemi"), ("Zainab", "Bello")]
    for first_name, last_name in names:
        make.student(first_name=first_name, last_name=last_name)

    page = api.ok(api.get("/students?pageNumber=0&pageSize=3"))
    rest = api.ok(api.get("/students?pageNumber=1&pageSize=3"))
    past = api.ok(api.get("/students?pageNumber=9&pageSize=3"))

    assert [(s["first_name"], s["last_name"]) for s in [*page["data"], *rest["data"]]] == [
        ("Ada", "Adeyemi"),
        ("Bisi", "Adeyemi"),
        ("Zainab", "Bello"),
        ("Ada", "Obi"),
    ]
    assert (page["page_number"], page["page_size"], page["total_pages"], page["total"]) == (0, 3, 2, 4)
    assert (past["data"], past["total"]) == ([], 4)


def test_students_of_one_name_have_an_order(api, make):
    for number in ("QC/3", "QC/1", "QC/2"):
        make.student(admission_number=number)

    assert [student["admission_number"] for student in listed(api)] == ["QC/1", "QC/2", "QC/3"]


@pytest.mark.parametrize(
    ("search", "numbers"),
    [
        ("chidi", ["QC/1"]),
        ("BÀLÓ", ["QC/1"]),
        ("Chidinma Bàló", ["QC/1"]),
        ("Chidinma Ifẹ́ Bàló", ["QC/1"]),
        ("ifẹ́", ["QC/1"]),
        ("qc/", ["QC/1", "QC/50%"]),
        ("%", ["QC/50%"]),
        ("_", ["GC_3"]),
        ("\\", []),
        ("'; --", []),
        ("", ["GC_3", "QC/1", "QC/50%"]),
        ("   ", ["GC_3", "QC/1", "QC/50%"]),
    ],
)
def test_students_are_found_by_part_of_a_name_or_admission_number(api, make, search, numbers):
    make.student(first_name="Chidinma", middle_name="Ifẹ́", last_name="Bàlógun", admission_number="QC/1")
    make.student(first_name="Ada", last_name="Obi", admission_number="QC/50%")
    make.student(first_name="Musa", last_name="Bello", admission_number="GC_3")

    answer = api.ok(api.get("/students", query_string={"search": search}))

    assert sorted(student["admission_number"] for student in answer["data"]) == numbers
    assert answer["total"] == len(numbers)


@pytest.mark.parametrize(
    ("name", "search"),
    [
        ("Ngọzi", "Ngozi"),
        ("Ngọzi", "NGỌ́ZI"),
        ("Ngozi", "ngọzi"),
        ("Bàlógun", "balogun"),
        ("Ifẹ\u0301", "ife"),
        ("\u0130brahim", "ibrahim"),
        ("Ɗanladi", "danladi"),
        ("Sagay-Ƙarfi", "karfi"),
        ("O'Neil", "o'n"),
    ],
)
@pytest.mark.parametrize("field", ["first_name", "middle_name", "last_name"])
def test_a_search_knows_no_accents(api, make, name, search, field):
    student = make.student(**{"first_name": "Wole", "last_name": "Eze", field: name})
    make.student(first_name="Wole", last_name="Eze")

    page = api.ok(api.get("/students", query_string={"search": search}))

    assert [row["id"] for row in page["data"]] == [student["id"]]


@pytest.mark.parametrize(
    ("search", "numbers"),
    [
        ("balogun chidinma", ["QC/1"]),
        ("ife  BALO chi", ["QC/1"]),
        ("1 qc/ balogun", ["QC/1"]),
        ("chidinma obi", []),
        ("obi ada", ["QC/2"]),
        ("chidinmaife", []),
        ("% ada", []),
        ("a b", ["QC/1", "QC/2"]),
    ],
)
def test_a_search_takes_words_in_any_order_and_all_of_them(api, make, search, numbers):
    make.student(first_name="Chidinma", middle_name="Ifẹ", last_name="Bàlógun", admission_number="QC/1")
    make.student(first_name="Ada", last_name="Obi", admission_number="QC/2")

    answer = api.ok(api.get("/students", query_string={"search": search}))

    assert sorted(student["admission_number"] for student in answer["data"]) == numbers
    assert answer["total"] == len(numbers)


def test_a_search_finds_nobody_of_the_other_school(api, other_api, make):
    make.student(first_name="Ngọzi")

    assert api.ok(api.get("/students?search=ngozi"))["total"] == 1
    assert other_api.ok(other_api.get("/students?search=ngozi"))["total"] == 0


def test_students_are_found_by_status(api, make, place):
    active, graduated, withdrawn = (make.student(first_name=name) for name in ("Ada", "Bisi", "Chi"))
    graduate(place, graduated)
    api.ok(api.patch(f"/students/{withdrawn['id']}", {"status": "WITHDRAWN"}))

    for student, status in ((active, "ACTIVE"), (graduated, "GRADUATED"), (withdrawn, "WITHDRAWN")):
        assert [row["id"] for row in listed(api, f"?status={status}")] == [student["id"]]
    assert [row["id"] for row in listed(api, "?status=ACTIVE&search=ada")] == [active["id"]]
    assert listed(api, "?status=ACTIVE&search=bisi") == []


@pytest.mark.parametrize("query", ["status=active", "status=", "search=%00", "pageSize=0", "pageNumber=-1"])
def test_a_bad_query_is_refused(api, query):
    answer = api.get(f"/students?{query}")

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, [query.split("=")[0]])


@pytest.mark.parametrize("query", ["", "?search=b", "?status=ACTIVE"])
def test_a_list_costs_one_round_trip_however_long_it_is(api, make, messages, query):
    for size in (2, 15):
        for _ in range(size):
            make.student(guardian=GUARDIAN)
        api.ok(api.get(f"/students{query}"))
        with messages() as sent:
            api.ok(api.get(f"/students{query}"))
        assert len(sent) == 1, sent


# Changes.


@pytest.mark.parametrize(
    "changes",
    [
        {"first_name": "Adaeze"},
        {"middle_name": "Ngozi"},
        {"middle_name": None},
        {"last_name": "Okàfor"},
        {"admission_number": "QC/2026/9"},
        {"gender": "MALE"},
        {"gender": None},
        {"dob": "2012-01-01"},
        {"dob": None},
        {"status": "WITHDRAWN"},
        {"guardian": None},
        {"guardian": {**GUARDIAN, "relationship": "aunt"}},
        {"first_name": "Adaeze", "dob": None, "guardian": None, "status": "WITHDRAWN"},
        {},
    ],
)
def test_a_patch_changes_the_named_members_alone(api, changes):
    made = api.ok(api.post("/students", FULL))

    changed = api.ok(api.patch(f"/students/{made['id']}", changes))

    assert changed == {**made, **changes}
    assert api.ok(api.get(f"/students/{made['id']}")) == changed


def test_a_patch_shows_in_the_user_account(api):
    made = api.ok(api.post("/students", FULL))

    changes = {"first_name": "Adaeze", "last_name": "Obi", "gender": None, "admission_number": "QC/9"}
    api.ok(api.patch(f"/students/{made['id']}", changes))

    user = user_of(api, made)
    assert (user["first_name"], user["last_name"], user["gender"]) == ("Adaeze", "Obi", "")
    assert user["username"] == FULL["admission_number"]
    assert user["student"]["admission_number"] == "QC/9"


def test_a_guardian_is_replaced_as_a_whole(api):
    made = api.ok(api.post("/students", FULL))

    changed = api.ok(api.patch(f"/students/{made['id']}", {"guardian": {"full_name": "Emeka"}}))

    assert changed["guardian"] == {
        "full_name": "Emeka",
        "relationship": None,
        "phone_number": None,
        "email_address": None,
    }


@pytest.mark.parametrize("guardian", [{}, {"relationship": "aunt"}, {"full_name": None}])
def test_a_patch_can_not_leave_a_guardian_without_a_name(api, guardian):
    made = api.ok(api.post("/students", FULL))

    answer = api.patch(f"/students/{made['id']}", {"guardian": guardian})

    assert answer.status_code == 422
    assert list(answer.get_json()["errors"]["json"]["guardian"]) == ["full_name"]


def test_a_withdrawn_student_may_come_back(api, make):
    made = make.student()
    api.ok(api.patch(f"/students/{made['id']}", {"status": "WITHDRAWN"}))

    assert api.ok(api.patch(f"/students/{made['id']}", {"status": "ACTIVE"})) == made


@pytest.mark.parametrize("status", ["ACTIVE", "WITHDRAWN"])
def test_the_status_of_a_graduate_stays(api, make, place, status):
    made = make.student()
    graduate(place, made)

    answer = api.patch(f"/students/{made['id']}", {"status": status, "first_name": "Adaeze"})

    assert answer.status_code == 409
    assert api.ok(api.get(f"/students/{made['id']}")) == {**made, "status": "GRADUATED"}
    changed = api.ok(api.patch(f"/students/{made['id']}", {"first_name": "Adaeze"}))
    assert (changed["first_name"], changed["status"]) == ("Adaeze", "GRADUATED")


def test_a_patch_to_a_taken_admission_number_is_a_conflict(api, make):
    make.student(admission_number="QC/1")
    made = make.student()

    answer = api.patch(f"/students/{made['id']}", {"admission_number": "QC/1", "first_name": "Adaeze"})

    assert answer.status_code == 409
    assert api.ok(api.get(f"/students/{made['id']}")) == made


BAD = [
    ({"first_name": " "}, "first_name"),
    ({"first_name": None}, "first_name"),
    ({"first_name": "x" * 121}, "first_name"),
    ({"first_name": "A\0da"}, "first_name"),
    ({"first_name": "A\udfffda"}, "first_name"),
    ({"last_name": 7}, "last_name"),
    ({"last_name": None}, "last_name"),
    ({"middle_name": "x" * 121}, "middle_name"),
    ({"middle_name": 1}, "middle_name"),
    ({"admission_number": ""}, "admission_number"),
    ({"admission_number": 1234}, "admission_number"),
    ({"gender": ""}, "gender"),
    ({"gender": []}, "gender"),
    ({"dob": "31/05/2013"}, "dob"),
    ({"dob": "2013-02-30"}, "dob"),
    ({"dob": 2013}, "dob"),
    ({"guardian": "Ngozi"}, "guardian"),
    ({"guardian": []}, "guardian"),
    ({"guardian": {**GUARDIAN, "full_name": ""}}, "guardian"),
    ({"guardian": {**GUARDIAN, "email_address": "ngozi"}}, "guardian"),
    ({"guardian": {**GUARDIAN, "phone_number": "1" * 121}}, "guardian"),
    ({"guardian": {**GUARDIAN, "address": "Yaba"}}, "guardian"),
    ({"number": 5}, "number"),
    ({"user": str(uuid4())}, "user"),
    ({"batch": None}, "batch"),
]


@pytest.mark.parametrize(("changes", "field"), BAD)
def test_bad_members_are_refused(api, make, changes, field):
    made = make.student()

    created = api.post("/students", {**LEAST, **changes})
    changed = api.patch(f"/students/{made['id']}", changes)

    for answer in (created, changed):
        assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])
    assert listed(api) == [made]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"username": ""}, "username"),
        ({"username": None}, "username"),
        ({"password": ""}, "password"),
        ({"password": 5}, "password"),
        ({"password": "x" * 1001}, "password"),
        ({"status": "ACTIVE"}, "status"),
    ],
)
def test_bad_accounts_are_refused(api, changes, field):
    answer = api.post("/students", {**LEAST, **changes})

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])


@pytest.mark.parametrize(
    "changes", [{"username": "other"}, {"password": "secret"}, {"status": "GRADUATED"}, {"status": None}]
)
def test_a_field_that_a_patch_can_not_change_is_refused(api, make, changes):
    made = make.student()

    answer = api.patch(f"/students/{made['id']}", changes)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, list(changes))
    assert api.ok(api.get(f"/students/{made['id']}")) == made


@pytest.mark.parametrize("field", list(LEAST))
def test_a_student_needs_names_and_an_admission_number(api, field):
    answer = api.post("/students", {name: value for name, value in LEAST.items() if name != field})

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])


def test_an_unknown_student_is_not_found(api):
    for answer in (api.get(f"/students/{uuid4()}"), api.patch(f"/students/{uuid4()}", {"first_name": "Ada"})):
        assert (answer.status_code, answer.get_json()["message"]) == (404, "No such student.")


def test_the_other_school_has_its_own(api, other_api, make, make_other):
    made = make.student(admission_number="QC/1")
    theirs = make_other.student(admission_number="QC/1")

    assert other_api.get(f"/students/{made['id']}").status_code == 404
    assert other_api.patch(f"/students/{made['id']}", {"first_name": "Taken"}).status_code == 404
    assert other_api.get(f"/users/{made['user']}").status_code == 404
    assert listed(other_api) == [theirs]
    assert listed(api) == [made]
    assert api.using(school=other_api.school).get("/students").status_code == 403
    assert api.using(school=None).get("/students").status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "permission"),
    [
        ("GET", "/students", "read:students"),
        ("POST", "/students", "write:students"),
        ("GET", f"/students/{UNKNOWN_ID}", "read:students"),
        ("PATCH", f"/students/{UNKNOWN_ID}", "write:students"),
        ("GET", "/students/import-template", "read:students"),
        ("POST", "/students/import-sheet", "write:students"),
    ],
)
def test_each_operation_asks_for_its_permission(make, method, path, permission):
    others = {"read:students", "write:students", "delete:students", "write:users", "read:users"}
    make.check_permission(method, path, permission, others=others, json={"first_name": 1})


def test_many_at_once_get_numbers_without_gaps(app, tenancy, document):
    place = make_place(app, tenancy, "Hope Waddell")
    api = ApiClient(app, document, place.admin_token, place.id)

    def create(number):
        # Three times the same, and one whose username is another's admission number: some collide.
        fields = {"admission_number": f"HW/{number // 3}"} if number < 6 else {"username": f"HW/{number}"}
        return api.post("/students", {**LEAST, "admission_number": f"HW/X{number}", **fields}).status_code

    created = run_concurrently(12, create)

    assert sorted(created) == [200] * 8 + [409] * 4
    assert sorted(student["number"] for student in listed(api)) == list(range(1, 9))
