"""Usernames are unique, and found, without regard to case and form."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from school_service.core.database import db
from school_service.features.people.models import User
from school_service.features.people.usernames import MAX_KEY_LENGTH, username_key
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import PASSWORD
from tests.threads import run_concurrently


def sign_in(api, username, password=PASSWORD):
    return api.post("/users/login", {"username": username, "password": password})


def test_of_many_users_who_take_one_name_at_once_one_gets_it(committing):
    body = {"password": PASSWORD, "first_name": "Ada", "last_name": "Obi", "gender": "FEMALE"}
    names = ["ada", "Ada", "ADA", "aDa", "\uff41da", "adA", "AdA", "ADa"]

    answers = run_concurrently(
        8, lambda number: committing.api.using().post("/users", {**body, "username": names[number]})
    )

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7


def test_the_other_school_has_names_of_its_own(make, make_other):
    assert make.user(username="ada")["user"]["username"] == "ada"
    assert make_other.user(username="ADA")["user"]["username"] == "ADA"


def test_a_deleted_users_name_stays_taken_in_every_case(api, make):
    user = make.user(username="ada")["user"]
    api.ok(api.delete(f"/users/{user['id']}/delete"))

    body = {"username": "ADA", "password": "x", "first_name": "A", "last_name": "B", "gender": "F"}
    assert api.post("/users", body).status_code == 409
    assert sign_in(api, "ADA").status_code == 401


def test_a_student_is_found_by_the_admission_number_in_small_letters(api, make):
    make.student(admission_number="QC/1/A", password=PASSWORD)

    assert sign_in(api, "qc/1/a").status_code == 200
    taken = api.post("/students", {"first_name": "A", "last_name": "B", "admission_number": "qc/1/a"})
    assert (taken.status_code, taken.get_json()["errors"]) == (409, {"json": {"username": ["already taken"]}})


@pytest.mark.parametrize("letter", ["\ufdfa", "ﬃ", "ΐ"], ids=ascii)
def test_a_name_that_folding_makes_longer_can_be_taken_once(api, make, letter):
    name = letter * 120
    made = make.user(username=name)["user"]

    assert made["username"] == name
    assert sign_in(api, name).status_code == 200
    assert len(username_key(name)) <= MAX_KEY_LENGTH
    body = {"username": name, "password": "x", "first_name": "A", "last_name": "B", "gender": "F"}
    assert api.post("/users", body).status_code == 409
    assert api.post("/users", {**body, "username": name[1:]}).status_code == 200


class TestNamesFromBefore:
    """Accounts whose names differ in case alone can be two where they are older than the rule."""

    @pytest.fixture
    def older(self, rehearsed, make, place):
        """Makes `Ada` and `ada`, as the migration leaves them; answers them by name."""
        older, later = (
            make.user(username="Ada", password="older")["user"],
            make.user(password="later")["user"],
        )
        with in_transaction(SchoolBinding(place.id)):
            changed = update(User).where(User.id == later["id"])
            db.session.execute(changed.values(username="ada", username_key=f"ada#{later['id']}"))
        return {"Ada": older["id"], "ada": later["id"]}

    def test_each_is_found_by_exactly_its_name(self, api, older):
        for name, password in (("Ada", "older"), ("ada", "later")):
            assert api.ok(sign_in(api, name, password))["user"]["id"] == older[name]
        assert sign_in(api, "ada", "older").status_code == 401

    def test_another_writing_finds_the_older(self, api, older):
        assert api.ok(sign_in(api, "ADA", "older"))["user"]["id"] == older["Ada"]
        assert sign_in(api, "ADA", "later").status_code == 401

    def test_where_the_later_is_deleted_its_name_finds_the_older(self, api, older):
        api.ok(api.delete(f"/users/{older['ada']}/delete"))

        assert api.ok(sign_in(api, "ada", "older"))["user"]["id"] == older["Ada"]

    def test_neither_name_can_be_taken_again(self, api, older):
        for name in ("Ada", "ada", "ADA"):
            body = {"username": name, "password": "x", "first_name": "A", "last_name": "B", "gender": "F"}
            answer = api.post("/users", body)
            assert (answer.status_code, answer.get_json()["errors"]) == (
                409,
                {"json": {"username": ["already taken"]}},
            )


def test_signing_in_costs_few_messages(api, make, messages):
    make.user(username="Ada")
    assert sign_in(api, "ada").status_code == 200

    with messages() as sent:
        assert sign_in(api, "ADA").status_code == 200

    # Two transactions: none is open while the password is hashed.
    assert len(sent) <= 7
