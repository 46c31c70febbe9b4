"""Contacts of users."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.threads import run_concurrently

NOBODY = "3fa85f64-5717-4562-b3fc-2c963f66afa6"


@pytest.fixture
def owner(make):
    return make.user()["user"]


def contact(api, user_id, **query):
    return api.get("/contacts", query_string={"user_id": user_id, **query})


def body(owner, /, **fields):
    return {
        "owner": owner["id"],
        "email_address": "adaeze@example.com",
        "phone_number": "+234 803 123 4567",
        "physical_address": "12 Herbert Macaulay Way, Yaba",
        **fields,
    }


# Create


def test_a_contact_is_created_and_shown(api, owner):
    made = api.ok(api.post("/contacts", body(owner)))

    assert made == {"id": made["id"], **body(owner)}
    assert api.ok(contact(api, owner["id"])) == made


def test_a_student_has_a_contact_as_any_user(api, make):
    student = make.student()

    made = make.contact({"id": student["user"]})

    assert api.ok(contact(api, student["user"])) == made


def test_an_employee_and_their_account_have_one_contact(api, make):
    employee = make.employee()
    username = employee["username"]
    (user,) = api.ok(api.get("/users", query_string={"search": username}))["data"]

    assert api.ok(contact(api, user["id"]))["id"] == employee["contact"]

    api.ok(api.delete(f"/employees/{employee['id']}"))
    assert contact(api, user["id"]).status_code == 422


def test_texts_are_trimmed_and_of_any_script(api, make, owner):
    made = make.contact(owner, phone_number=" 0803 ", physical_address="  Ọ̀yọ́, 漢字 😀\n")

    assert (made["phone_number"], made["physical_address"]) == ("0803", "Ọ̀yọ́, 漢字 😀")


@pytest.mark.parametrize("field", ["owner", "email_address", "phone_number", "physical_address"])
def test_every_member_is_required(api, owner, field):
    sent = body(owner)
    del sent[field]

    answer = api.post("/contacts", sent)

    assert answer.get_json()["errors"] == {"json": {field: ["Missing data for required field."]}}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("owner", "x"),
        ("owner", None),
        ("owner", 1),
        ("email_address", "adaeze"),
        ("email_address", "adaeze@"),
        ("email_address", "@example.com"),
        ("email_address", "a b@example.com"),
        ("email_address", ""),
        ("email_address", "a@example.com\0"),
        ("email_address", f"{'a' * 243}@example.com"),
        ("phone_number", ""),
        ("phone_number", 2348031234567),
        ("phone_number", "1" * 121),
        ("physical_address", " "),
        ("physical_address", "a" * 2001),
        ("physical_address", "\ud800"),
        ("id", NOBODY),
        ("user_id", NOBODY),
    ],
)
def test_a_member_that_is_none_is_422(api, owner, field, value):
    answer = api.post("/contacts", body(owner, **{field: value}))

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])
    assert contact(api, owner["id"]).status_code == 404


def test_an_unknown_owner_is_422(api, make, make_other):
    deleted = make.user()["user"]
    api.ok(api.delete(f"/users/{deleted['id']}/delete"))

    for user in ({"id": str(uuid4())}, make_other.user()["user"], deleted, make.student()):
        answer = api.post("/contacts", body(user))

        assert answer.status_code == 422
        assert answer.get_json()["errors"] == {"json": {"owner": ["no such user"]}}


def test_a_second_with_the_same_address_is_a_conflict(api, make, owner):
    made = make.contact(owner, email_address="a@example.com")

    answer = api.post("/contacts", body(owner, email_address=" a@example.com "))

    assert answer.status_code == 409
    assert answer.get_json()["message"] == "A contact with this owner and email address exists already."
    assert answer.get_json()["errors"] == {"json": {"email_address": ["already taken"]}}
    assert api.ok(contact(api, owner["id"])) == made


def test_another_owner_may_have_the_same_address(make, owner):
    made = [make.contact(user, email_address="a@example.com") for user in (owner, None)]

    assert made[0]["owner"] != made[1]["owner"]


def test_of_many_with_one_address_at_once_one_is_made(committing):
    api, owner = committing.api, committing.user()["user"]

    answers = run_concurrently(
        20, lambda number: api.using().post("/contacts", body(owner, phone_number=str(number)))
    )

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 19
    made = next(answer.get_json() for answer in answers if answer.status_code == 200)
    assert api.ok(contact(api, owner["id"])) == made


def test_the_token_may_name_the_school(api, owner):
    made = api.ok(api.using(school=None).post("/contacts", body(owner)))

    assert api.ok(contact(api, owner["id"])) == made
    assert contact(api.using(school=None), owner["id"]).status_code == 400


# Show


@pytest.fixture
def three(make, owner):
    """Three contacts of the owner, the oldest first, and one of another user."""
    made = [
        make.contact(owner, email_address=address, phone_number=phone)
        for address, phone in (
            ("a@example.com", "0801"),
            ("b@example.com", "0802"),
            ("c@example.com", "0801"),
        )
    ]
    make.contact(email_address="b@example.com", phone_number="0809")
    return made


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ({}, 2),
        ({"email_address": "a@example.com"}, 0),
        ({"email_address": " b@example.com\t"}, 1),
        ({"phone_number": "0801"}, 2),
        ({"phone_number": " 0802 "}, 1),
        ({"email_address": "a@example.com", "phone_number": "0801"}, 0),
    ],
    ids=str,
)
def test_the_newest_that_matches_is_shown(api, owner, three, query, index):
    assert api.ok(contact(api, owner["id"], **query)) == three[index]


@pytest.mark.parametrize(
    "query",
    [
        {"email_address": "d@example.com"},
        {"email_address": "A@example.com"},
        {"email_address": "a@example"},
        {"email_address": "no address"},
        {"phone_number": "080"},
        {"phone_number": "0809"},
        {"phone_number": "%"},
        {"email_address": "a@example.com", "phone_number": "0802"},
    ],
    ids=str,
)
def test_where_none_matches_exactly_it_is_404(api, owner, three, query):
    answer = contact(api, owner["id"], **query)

    assert (answer.status_code, answer.get_json()["message"]) == (404, "No such contact.")


def test_an_owner_without_contacts_is_404(api, owner):
    assert contact(api, owner["id"]).status_code == 404


def test_an_unknown_user_is_422(api, make, make_other):
    foreign = make_other.contact()["owner"]
    for user_id in (uuid4(), foreign, make.student()["id"]):
        answer = contact(api, user_id, email_address="a@example.com")

        assert answer.status_code == 422
        assert answer.get_json()["errors"] == {"query": {"user_id": ["no such user"]}}


def test_a_deleted_owners_contacts_are_gone_until_restored(api, make, owner):
    made = make.contact(owner)

    api.ok(api.delete(f"/users/{owner['id']}/delete"))
    assert contact(api, owner["id"]).status_code == 422

    api.ok(api.put(f"/users/{owner['id']}/restore"))
    assert api.ok(contact(api, owner["id"])) == made


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "user_id"),
        ({"user_id": ""}, "user_id"),
        ({"user_id": "x"}, "user_id"),
        ({"user_id": NOBODY, "email_address": ""}, "email_address"),
        ({"user_id": NOBODY, "email_address": "a" * 255}, "email_address"),
        ({"user_id": NOBODY, "phone_number": "\0"}, "phone_number"),
        ({"user_id": NOBODY, "phone_number": "1" * 121}, "phone_number"),
    ],
    ids=str,
)
def test_a_query_that_is_none_is_422(api, query, field):
    answer = api.get("/contacts", query_string=query)

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, [field])


def test_the_other_school_has_its_own(api, other_api, owner, three):
    assert contact(other_api, owner["id"]).status_code == 422
    assert contact(other_api.using(school=api.school), owner["id"]).status_code == 403
    assert other_api.post("/contacts", body(owner)).status_code == 422


def test_a_contact_costs_one_round_trip_however_many_there_are(api, make, owner, messages):
    for size in (2, 20):
        for _ in range(size):
            make.contact(owner)
        api.ok(contact(api, owner["id"]))
        with messages() as sent:
            api.ok(contact(api, owner["id"]))
        assert len(sent) == 1, sent
