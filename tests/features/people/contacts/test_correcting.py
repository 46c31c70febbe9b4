"""Correcting the contact of a user."""

from __future__ import annotations

import pytest


def test_a_corrected_contact_is_the_one_that_is_found(api, make):
    made = make.contact(email_address="wrong@example.com")

    changed = api.ok(api.patch(f"/contacts/{made['id']}", {"email_address": "right@example.com"}))

    assert changed == {**made, "email_address": "right@example.com"}
    query = {"user_id": made["owner"], "email_address": "right@example.com"}
    assert api.ok(api.get("/contacts", query_string=query)) == changed
    assert (
        api.get("/contacts", query_string={**query, "email_address": "wrong@example.com"}).status_code == 404
    )


def test_an_address_that_the_owner_has_already_is_a_conflict(api, make):
    owner = make.user()["user"]
    make.contact(owner, email_address="a@example.com")
    made = make.contact(owner, email_address="b@example.com")
    of_another = make.contact(email_address="c@example.com")

    answer = api.patch(f"/contacts/{made['id']}", {"email_address": "a@example.com", "phone_number": "1"})

    assert answer.status_code == 409
    query = {"user_id": owner["id"], "email_address": "b@example.com"}
    assert api.ok(api.get("/contacts", query_string=query)) == made
    assert (
        api.patch(f"/contacts/{made['id']}", {"email_address": of_another["email_address"]}).status_code
        == 200
    )


@pytest.mark.parametrize("address", ["nobody", "a@b@c", "a b@example.com", f"{'a' * 250}@example.com"])
def test_a_text_that_is_no_address_is_refused(api, make, address):
    made = make.contact()

    assert api.patch(f"/contacts/{made['id']}", {"email_address": address}).status_code == 422


def test_the_contact_of_a_deleted_owner_is_not_found_until_they_are_restored(api, make):
    owner = make.user()["user"]
    path = f"/contacts/{make.contact(owner)['id']}"
    api.ok(api.delete(f"/users/{owner['id']}/delete"))

    assert api.patch(path, {"phone_number": "1"}).status_code == 404

    api.ok(api.put(f"/users/{owner['id']}/restore"))
    assert api.ok(api.patch(path, {"phone_number": "1"}))["phone_number"] == "1"


def test_the_contact_of_an_employee_stays_with_the_employee(api, make):
    account = make.account_of(make.employee())
    contact = api.ok(api.get("/contacts", query_string={"user_id": account["id"]}))

    assert api.delete(f"/contacts/{contact['id']}").status_code == 409

    assert api.ok(api.get("/contacts", query_string={"user_id": account["id"]})) == contact
