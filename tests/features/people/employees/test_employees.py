"""Employees: each with a user account, a bank account, a next of kin and a contact."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, text

from school_service.core.database import db
from school_service.features.people.models import BankAccount, Contact, Employee, NextOfKin, User
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import ORIGIN
from tests.features.audit.test_accounts_on_record import on_record

NESTED = ("bank_details", "next_of_kin", "contact")
UNKNOWN_PATHS = ("", "/bank-account", "/nextofkin")


def listed(api):
    return api.ok(api.get("/employees"))


def signed_in(api, user):
    """A client with a token of the user's own."""
    api.ok(api.put(f"/users/{user['id']}/password", {"password": "a pass-word"}))
    login = api.ok(api.post("/users/login", {"username": user["username"], "password": "a pass-word"}))
    return api.using(token=login["access_token"]["access_token"])


class TestCreating:
    """POST /employees."""

    def test_an_employee_is_created_listed_and_shown(self, api, make):
        body = make.employee_body(first_name=" Adaeze ", last_name="Òkáfọr")

        made = api.ok(api.post("/employees", body))

        ids = {name: made[name] for name in ("id", *NESTED)}
        assert len({UUID(value) for value in ids.values()}) == 4
        account = {"username": "adaeze.okafor", "role": None, "user": make.account_of(made)["id"]}
        assert made == {**body, **ids, "first_name": "Adaeze", **account}
        assert listed(api) == [made]
        assert api.ok(api.get(f"/employees/{made['id']}")) == made

    def test_the_bank_account_is_shown(self, api, make):
        body = make.employee_body()
        made = api.ok(api.post("/employees", body))

        given = {name: value for name, value in body["bank_details"].items() if name != "employee_no"}
        assert api.ok(api.get(f"/employees/{made['id']}/bank-account")) == {
            **given,
            "id": made["bank_details"],
            "employee": made["id"],
        }

    def test_the_next_of_kin_is_shown(self, api, make):
        body = make.employee_body()
        before = datetime.now(UTC)
        made = api.ok(api.post("/employees", body))

        shown = api.ok(api.get(f"/employees/{made['id']}/nextofkin"))

        given = {name: value for name, value in body["next_of_kin"].items() if name != "employee"}
        assert shown == {**given, "id": made["next_of_kin"], "created_at": shown["created_at"]}
        assert before <= datetime.fromisoformat(shown["created_at"]) <= datetime.now(UTC)

    def test_the_account_bears_name_and_gender_and_nobody_can_sign_in(self, api, make):
        made = make.employee(gender="FEMALE")

        user = make.account_of(made)

        assert [user[name] for name in ("first_name", "last_name", "gender")] == [
            made[name] for name in ("first_name", "last_name", "gender")
        ]
        assert (user["roles"], user["student"]) == ([], None)
        for password in ("", " ", made["username"]):
            attempt = {"username": made["username"], "password": password}
            assert api.post("/users/login", attempt).status_code in {401, 422}

    def test_the_contact_belongs_to_the_account(self, api, make, place):
        body = make.employee_body()
        made = api.ok(api.post("/employees", body))

        with in_transaction(SchoolBinding(place.id)):
            contact = db.session.get(Contact, UUID(made["contact"]))
            stored = {name: getattr(contact, name) for name in body["contact"]}
            owner = str(contact.owner_id)
        assert (stored, owner) == (body["contact"], make.account_of(made)["id"])

    @pytest.mark.parametrize("number", [0, 7, -1, 2**31 - 1, -(2**31)])
    def test_the_numbers_of_the_clients_own_are_stored_and_link_nothing(self, api, make, place, number):
        body = make.employee_body()
        for nested in ("bank_details", "next_of_kin"):
            body[nested]["employee"] = number
        first, second = (api.ok(api.post("/employees", body)) for _ in range(2))

        with in_transaction(SchoolBinding(place.id)):
            account = db.session.get(BankAccount, UUID(first["bank_details"]))
            kin = db.session.get(NextOfKin, UUID(second["next_of_kin"]))
            assert (account.employee_ref, kin.employee_ref) == (number, number)
            assert account.employee_no == body["bank_details"]["employee_no"]

    @pytest.mark.parametrize("empty", ["", "  "])
    def test_a_middle_name_may_be_empty(self, make, empty):
        assert make.employee(middle_name=empty)["middle_name"] == ""

    def test_names_hold_any_script(self, api, make):
        names = {"first_name": "王", "middle_name": "Ọ́" * 40, "last_name": "Ńwáńkwọ́ 🌍"}

        made = make.employee(**names)

        assert {name: listed(api)[0][name] for name in names} == names == {name: made[name] for name in names}

    def test_the_same_again_is_another_employee(self, api, make):
        body = make.employee_body()

        first, second = (api.ok(api.post("/employees", body)) for _ in range(2))

        assert {employee["id"] for employee in listed(api)} == {first["id"], second["id"]}
        assert second["username"] == f"{first['username']}2"

    def test_born_on_the_day_of_joining_is_borne(self, make):
        make.employee(dob="2020-01-06", join_date="2020-01-06")

    def test_the_role_is_the_first_that_was_given(self, api, make):
        made = make.employee()
        user = make.account_of(made)
        roles = sorted((make.role()["id"] for _ in range(3)), reverse=True)
        for role in roles:
            api.ok(api.put(f"/users/{user['id']}/roles", {"role": role}))

        assert api.ok(api.get(f"/employees/{made['id']}"))["role"] == roles[0]
        api.ok(api.delete(f"/users/{user['id']}/roles/{roles[0]}"))
        assert listed(api)[0]["role"] == roles[1]

    def test_of_roles_given_at_one_moment_it_is_the_one_of_the_lowest_id(self, api, make, place):
        made = make.employee()
        user = make.account_of(made)
        roles = [make.role()["id"] for _ in range(3)]
        for role in roles:
            api.ok(api.put(f"/users/{user['id']}/roles", {"role": role}))
        with in_transaction(SchoolBinding(place.id)):
            same = {"moment": datetime(2025, 1, 1, tzinfo=UTC), "user": user["id"]}
            db.session.execute(
                text("UPDATE user_roles SET created_at = :moment WHERE user_id = CAST(:user AS uuid)"), same
            )

        assert api.ok(api.get(f"/employees/{made['id']}"))["role"] == min(roles)

    def test_it_needs_the_permission_and_no_other(self, make):
        body = make.employee_body()

        assert make.caller("read:employees", "write:users").post("/employees", body).status_code == 403
        assert make.caller("write:employees").post("/employees", body).status_code == 200

    def test_it_is_on_record_with_names_alone(self, api, make):
        body = make.employee_body(first_name="Adaeze", middle_name="Ifeọma", last_name="Òkáfọr")
        made = api.ok(api.post("/employees", body))
        user = make.account_of(made)

        names = {"first_name": "Adaeze", "middle_name": "Ifeọma", "last_name": "Òkáfọr"}
        account = {"first_name": "Adaeze", "last_name": "Òkáfọr", "gender": "FEMALE"}
        assert on_record(api, "employee", made["id"]) == [("create", None, names)]
        assert on_record(api, "user", user["id"]) == [
            ("create", None, {**account, "username": "adaeze.okafor"})
        ]

    def test_private_values_are_not_on_record(self, api, make):
        body = make.employee_body()
        made = api.ok(api.post("/employees", body))
        api.ok(api.delete(f"/employees/{made['id']}"))

        written = api.get("/audit").get_data(as_text=True)

        assert made["id"] in written
        private = [str(value) for name in NESTED for value in body[name].values() if isinstance(value, str)]
        assert len(private) == 13
        for value in (*private, *(str(body[name]) for name in ("dob", "religion", "blood_group"))):
            assert value not in written


class TestReading:
    """GET /employees and the paths below it."""

    def test_they_are_listed_by_last_name_first_name_and_id(self, api, make):
        people = [("Bello", "Aisha"), ("Adeyemi", "Tunde"), ("Bello", "Aisha"), ("Adeyemi", "Bola")]
        for last_name, first_name in people:
            make.employee(last_name=last_name, first_name=first_name)

        shown = listed(api)

        keys = [(employee["last_name"], employee["first_name"], employee["id"]) for employee in shown]
        assert keys == sorted(keys)
        assert [key[:2] for key in keys] == sorted(people)

    def test_the_other_school_has_its_own(self, api, other_api, make, make_other):
        made, other = make.employee(), make_other.employee()

        assert [employee["id"] for employee in listed(api)] == [made["id"]]
        assert [employee["id"] for employee in listed(other_api)] == [other["id"]]

    @pytest.mark.parametrize("path", UNKNOWN_PATHS)
    def test_unknown_and_of_the_other_school_are_not_found(self, api, make_other, path):
        other = make_other.employee()

        for employee_id in (uuid4(), other["id"], other["bank_details"], other["next_of_kin"]):
            assert api.get(f"/employees/{employee_id}{path}").status_code == 404

    @pytest.mark.parametrize("path", UNKNOWN_PATHS)
    def test_another_record_of_the_employee_is_no_employee(self, api, make, path):
        made = make.employee()

        for record_id in (*(made[name] for name in NESTED), make.account_of(made)["id"]):
            assert api.get(f"/employees/{record_id}{path}").status_code == 404

    @pytest.mark.parametrize("path", UNKNOWN_PATHS)
    def test_it_needs_the_permission(self, make, path):
        made = make.employee()

        for permissions, status in (
            (["write:employees", "delete:employees"], 403),
            (["read:employees"], 200),
        ):
            caller = make.caller(*permissions)
            assert caller.get(f"/employees/{made['id']}{path}").status_code == status

    def test_an_employee_whose_account_is_deleted_is_still_one(self, api, make):
        made = make.employee()
        api.ok(api.delete(f"/users/{make.account_of(made)['id']}/delete"))

        assert listed(api) == [made]
        for path in UNKNOWN_PATHS:
            api.ok(api.get(f"/employees/{made['id']}{path}"))

    def test_the_list_costs_one_round_trip_however_long_it_is(self, api, make, place, messages):
        for size in (2, 10):
            for _ in range(size):
                make.employee()
            assert round_trips(api, messages) == (1, size if size == 2 else 12)
        insert_many(place, make.employee(), 487)
        assert round_trips(api, messages) == (1, 500)

    @pytest.mark.parametrize("path", UNKNOWN_PATHS)
    def test_a_record_costs_one_round_trip(self, api, make, messages, path):
        made = make.employee()
        with messages() as sent:
            api.ok(api.get(f"/employees/{made['id']}{path}"))
        assert len(sent) == 1, sent


def round_trips(api, messages):
    """Count the round trips of the list, and the employees in it."""
    listed(api)
    with messages() as sent:
        shown = listed(api)
    return len(sent), len(shown)


def insert_many(place, like, count):
    """Insert employees in bulk, each with all that one has."""
    moment = datetime(2025, 9, 1, tzinfo=UTC)
    numbers = range(count)
    users, contacts, employees = ([uuid4() for _ in numbers] for _ in range(3))
    dates = {name: datetime.fromisoformat(like[name]).date() for name in ("dob", "join_date")}
    copied = {name: like[name] for name in ("title", "marital_status", "blood_group", "religion", "status")}
    ids = ("lga", "state", "nationality", "department", "category", "position")
    common = {**dates, **copied, **{f"{name}_id": UUID(like[name]) for name in ids}}
    address = {"phone_number": "+234 803 123 4567", "physical_address": "Surulere"}
    rows = {
        User: [
            {
                "id": users[n],
                "username": f"bulk{n}",
                "first_name": f"Bulk {n}",
                "last_name": "Ade",
                "gender": "",
            }
            for n in numbers
        ],
        Contact: [
            {"id": contacts[n], "owner_id": users[n], "email_address": f"bulk{n}@example.com", **address}
            for n in numbers
        ],
        Employee: [
            {"id": employees[n], "user_id": users[n], "contact_id": contacts[n], "middle_name": "", **common}
            for n in numbers
        ],
        BankAccount: [
            {
                "employee_id": employees[n],
                "employee_ref": n,
                "account_number": f"30{n:08}",
                **dict.fromkeys(
                    ("bank_name", "account_name", "bank_sort_code", "account_type", "employee_no"), "x"
                ),
            }
            for n in numbers
        ],
        NextOfKin: [
            {
                "employee_id": employees[n],
                "employee_ref": n,
                "full_name": f"Kin {n}",
                "relationship": "sister",
                **address,
            }
            for n in numbers
        ],
    }
    with in_transaction(SchoolBinding(place.id)):
        for model, values in rows.items():
            stamped = {"created_at": moment} if hasattr(model, "created_at") else {}
            db.session.execute(insert(model), [{**row, **stamped} for row in values])


class TestDeleting:
    """DELETE /employees/{id}."""

    def test_a_deleted_employee_is_gone_from_every_answer(self, api, make):
        made, stays = make.employee(), make.employee()

        answer = api.ok(api.delete(f"/employees/{made['id']}"))

        assert answer == {"id": made["id"], "deleted": True}
        assert listed(api) == [stays]
        for path in UNKNOWN_PATHS:
            assert api.get(f"/employees/{made['id']}{path}").status_code == 404
        assert api.delete(f"/employees/{made['id']}").status_code == 404

    def test_the_records_stay(self, api, make, place):
        made = make.employee()
        before = datetime.now(UTC)
        api.ok(api.delete(f"/employees/{made['id']}"))

        with in_transaction(SchoolBinding(place.id)):
            deleted_at = db.session.get(Employee, UUID(made["id"])).deleted_at
            remaining = [
                db.session.get(model, UUID(made[name]))
                for model, name in (
                    (BankAccount, "bank_details"),
                    (NextOfKin, "next_of_kin"),
                    (Contact, "contact"),
                )
            ]
        assert before - timedelta(seconds=1) <= deleted_at <= datetime.now(UTC)
        assert None not in remaining

    def test_the_account_is_deleted_with_them_and_its_tokens_stop_at_once(self, api, make):
        made = make.employee()
        user = make.account_of(made)
        own = signed_in(api, user)
        assert own.get("/states").status_code == 200

        api.ok(api.delete(f"/employees/{made['id']}"))

        assert own.get("/states").status_code == 401
        assert api.get(f"/users/{user['id']}").status_code == 404
        assert (
            api.post("/users/login", {"username": user["username"], "password": "a pass-word"}).status_code
            == 401
        )

    def test_the_username_stays_taken(self, make, api):
        made = make.employee(first_name="Ada", last_name="Obi")
        api.ok(api.delete(f"/employees/{made['id']}"))

        assert make.employee(first_name="Ada", last_name="Obi")["username"] == "ada.obi2"

    def test_restoring_the_account_does_not_bring_the_employee_back(self, api, make):
        made = make.employee()
        user = make.account_of(made)
        own = signed_in(api, user)
        api.ok(api.delete(f"/employees/{made['id']}"))

        assert api.ok(api.put(f"/users/{user['id']}/restore")) == user

        assert own.get("/states").status_code == 401
        assert signed_in(api, user).get("/states").status_code == 200
        assert listed(api) == []
        assert api.get(f"/employees/{made['id']}").status_code == 404

    def test_an_employee_whose_account_is_deleted_can_be_deleted(self, api, make):
        made = make.employee()
        user = make.account_of(made)
        api.ok(api.delete(f"/users/{user['id']}/delete"))

        api.ok(api.delete(f"/employees/{made['id']}"))

        assert listed(api) == []
        assert [change[0] for change in on_record(api, "user", user["id"])] == ["create", "delete"]

    def test_a_deleted_employee_teaches_no_batch_any_more(self, api, make):
        made, stays = make.employee(), make.employee()
        batches = [make.cohort()["id"] for _ in range(2)]
        for batch in batches:
            for teacher in (stays, made):
                api.ok(api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": teacher["id"]}))

        api.ok(api.delete(f"/employees/{made['id']}?release=true"))

        for batch in batches:
            assert api.ok(api.get(f"/teachers/{batch}"))["last_name"] == stays["last_name"]
            assert api.delete(f"/teachers/{batch}/teachers/{made['id']}").status_code == 404

    def test_it_is_on_record_with_names_alone(self, api, make):
        made = make.employee()
        user = make.account_of(made)
        api.ok(api.delete(f"/employees/{made['id']}"))

        names = {name: made[name] for name in ("first_name", "middle_name", "last_name")}
        assert on_record(api, "employee", made["id"])[1:] == [("delete", names, None)]
        (deleted,) = on_record(api, "user", user["id"])[1:]
        assert (deleted[0], deleted[1]["username"]) == ("delete", user["username"])

    def test_it_needs_the_permission_to_delete_employees_and_no_other(self, api, make):
        made = make.employee()

        assert (
            make.caller("write:employees", "delete:users").delete(f"/employees/{made['id']}").status_code
            == 403
        )
        assert make.caller("delete:employees").delete(f"/employees/{made['id']}").status_code == 200
        assert listed(api) == []

    def test_an_employee_who_may_delete_employees_may_delete_themselves(self, api, make):
        made = make.employee()
        user = make.account_of(made)
        role = make.role("delete:employees")
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
        own = signed_in(api, user)

        assert own.delete(f"/employees/{made['id']}").status_code == 200
        assert own.delete(f"/employees/{made['id']}").status_code == 401

    def test_unknown_and_of_the_other_school_are_not_found(self, api, other_api, make_other):
        other = make_other.employee()

        for employee_id in (uuid4(), other["id"]):
            assert api.delete(f"/employees/{employee_id}").status_code == 404
        assert listed(other_api) == [other]


def test_origins_of_the_factory_are_in_the_reference_data(api):
    lgas = api.ok(api.get("/lgas", query_string={"state": ORIGIN["state"]}))

    assert ORIGIN["lga"] in [lga["id"] for lga in lgas]
    assert ORIGIN["nationality"] in [nation["id"] for nation in api.ok(api.get("/nationalities"))]
