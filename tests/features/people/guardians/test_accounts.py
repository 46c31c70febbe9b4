"""The accounts of guardians, and the permission to let one read of a child."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.factories import PASSWORD
from tests.features.people.guardians.test_guardians import entries, primary_of, put, stop_of

WRITING = ("read:students", "write:students", "delete:students", "read:users", "write:users")


def give(api, guardian, **account):
    return api.put(f"/guardians/{guardian['id']}/account", account)


def without_credentials(answer):
    return {name: value for name, value in answer.items() if not name.startswith("credentials")}


def user_of(api, guardian):
    return api.ok(api.get(f"/users/{guardian['user']}"))


def roles_of(api, guardian):
    given = {role["roleId"] for role in user_of(api, guardian)["roles"]}
    return [role for role in api.ok(api.get("/roles")) if role["id"] in given]


def with_account(api, make, *children, **fields):
    made = make.guardian(*children, **fields)
    return api.ok(give(api, made, user=make.user()["user"]["id"]))


def test_a_new_account_has_the_guardians_names(api, make):
    guardian = make.guardian(full_name="Mary Ann  Okàfor")

    made = api.ok(give(api, guardian, username="mary.ann", password=PASSWORD))

    assert without_credentials(made) == {**guardian, "user": made["user"]}
    user = user_of(api, made)
    assert [user[name] for name in ("username", "first_name", "last_name", "gender")] == [
        "mary.ann",
        "Mary Ann",
        "Okàfor",
        "",
    ]
    page = make.signed_in(user).get("/guardians").get_json()
    assert [each["id"] for each in page["data"]] == [guardian["id"]]
    assert entries(api, "guardian", guardian["id"])[0] == (
        "update",
        {"user": None},
        {"user": made["user"]},
    )


def test_a_name_of_one_word_is_the_first(api, make):
    made = api.ok(give(api, make.guardian(full_name="Ngozi"), username="ngozi"))

    user = user_of(api, made)
    assert (user["first_name"], user["last_name"]) == ("Ngozi", "")


def test_an_existing_user_becomes_the_account(api, make):
    user, guardian = make.user()["user"], make.guardian(make.student())

    made = api.ok(give(api, guardian, user=user["id"]))

    assert made["user"] == user["id"]
    assert user_of(api, made) == user
    # The same again changes nothing.
    assert api.ok(give(api, guardian, user=user["id"])) == without_credentials(made)
    assert len(entries(api, "guardian", guardian["id"])) == 2


def test_the_token_that_an_account_was_made_with_reads_of_no_child(api, make):
    student, childless = make.student(), make.guardian()
    guardian = make.guardian(student)
    for each in (guardian, childless):
        made = make.user()
        creator = api.using(token=made["access_token"]["access_token"])
        assert creator.get("/me").status_code == 200

        api.ok(give(api, each, user=made["user"]["id"]))

        assert creator.get("/me").status_code == 401
    # A person who has signed in themselves stays so.
    user, another = make.user()["user"], make.guardian()
    caller = make.signed_in(user)
    api.ok(give(api, another, user=user["id"]))
    assert caller.get("/me").status_code == 200


def test_an_account_is_one_guardians_and_a_guardian_has_one(api, make):
    first = with_account(api, make)
    second = make.guardian()

    assert give(api, second, user=first["user"]).status_code == 409
    assert "another guardian" in give(api, second, user=first["user"]).get_json()["message"]
    assert give(api, first, user=make.user()["user"]["id"]).status_code == 409
    assert give(api, first, username="another").status_code == 409
    assert give(api, second, username=user_of(api, first)["username"].upper()).status_code == 409
    assert api.ok(api.get(f"/guardians/{second['id']}"))["user"] is None


def test_a_body_that_names_no_account_is_refused(api, make, make_other):
    guardian, gone = make.guardian(), make.user()["user"]
    api.ok(api.delete(f"/users/{gone['id']}/delete"))

    for account in (
        {},
        {"user": gone["id"]},
        {"user": str(uuid4())},
        {"user": make_other.user()["user"]["id"]},
        {"user": "x"},
        {"username": ""},
        {"username": "a", "password": 5},
        {"user": make.user()["user"]["id"], "username": "a"},
        {"user": make.user()["user"]["id"], "password": PASSWORD},
        {"username": "a", "first_name": "A"},
    ):
        assert give(api, guardian, **account).status_code == 422, account
    assert api.ok(api.get(f"/guardians/{guardian['id']}"))["user"] is None


def test_an_account_is_taken_away_and_its_sessions_end(api, make):
    guardian = make.guardian(full_name="Ngozi Eze")
    made = api.ok(give(api, guardian, username="ngozi", password=PASSWORD))
    caller = make.signed_in(user_of(api, made))
    assert [role["given_to"] for role in roles_of(api, made)] == ["GUARDIANS"]
    assert api.delete(f"/guardians/{guardian['id']}").status_code == 409

    assert api.ok(api.delete(f"/guardians/{guardian['id']}/account"))["user"] is None

    assert caller.get("/nationalities").status_code == 401
    assert api.delete(f"/guardians/{guardian['id']}/account").status_code == 404
    assert user_of(api, made)["username"] == "ngozi"
    assert roles_of(api, made) == []
    assert api.ok(api.delete(f"/guardians/{guardian['id']}"))["deleted"]


def test_an_account_with_more_permissions_is_not_taken_away(api, make):
    guardian = make.guardian()
    teacher = make.caller("read:employees").user
    api.ok(give(api, guardian, user=teacher["id"]))

    refused = make.caller(*WRITING).delete(f"/guardians/{guardian['id']}/account")

    assert (refused.status_code, "read:employees" in refused.get_json()["message"]) == (403, True)


def test_giving_an_account_a_child_needs_the_permission_to_read_results(api, make):
    student, other, own = make.student(), make.student(), make.student()
    guardian = with_account(api, make, own, full_name="Emeka Obi", phone_number="0803")
    childless, mother = make.guardian(), make.guardian(other)
    api.ok(put(api, other, guardian))
    api.ok(api.put(stop_of(other, guardian), {"reason": "x"}))
    clerk, named = make.caller(*WRITING), {"full_name": "Emeka Obi", "phone_number": "0803"}
    body = {"first_name": "A", "last_name": "B", "admission_number": "C/1", "guardian": named}

    refused = [
        put(clerk, student, guardian),
        clerk.patch(f"/students/{student['id']}", {"guardian": named}),
        clerk.post("/students", body),
        give(clerk, mother, user=make.user()["user"]["id"]),
        give(clerk, mother, username="mother"),
        give(clerk, childless, username="childless", password=PASSWORD),
        # Somebody would give a child to the account later.
        give(clerk, childless, username="childless"),
        give(clerk, childless, user=make.user()["user"]["id"]),
        clerk.delete(stop_of(other, guardian)),
        clerk.put(f"/users/{guardian['user']}/password", {"password": "another password"}),
        # An import of this name would give the account a child.
        clerk.patch(f"/guardians/{guardian['id']}", {"full_name": "Somebody Else"}),
        clerk.patch(f"/guardians/{guardian['id']}", {"phone_number": "0805"}),
        clerk.patch(f"/students/{own['id']}", {"guardian": {**named, "phone_number": "0805"}}),
    ]

    assert [(answer.status_code, "read:results" in answer.get_json()["message"]) for answer in refused] == [
        (403, True)
    ] * len(refused)
    assert primary_of(api, student) is None
    # Changes that give nothing are done: another text, a guardian without account, a stop.
    api.ok(put(clerk, other, guardian, relationship="uncle"))
    api.ok(clerk.patch(f"/students/{own['id']}", {"guardian": {**named, "relationship": "uncle"}}))
    api.ok(
        clerk.patch(f"/guardians/{guardian['id']}", {"physical_address": "2 Road", "phone_number": "0803"})
    )
    api.ok(put(clerk, student, childless))
    api.ok(clerk.put(stop_of(student, childless), {"reason": "x"}))
    api.ok(clerk.delete(stop_of(student, childless)))
    allowed = make.caller(*WRITING, "read:results")
    api.ok(put(allowed, student, guardian))
    api.ok(allowed.delete(stop_of(other, guardian)))
    api.ok(give(allowed, mother, username="mother", password=PASSWORD))


def test_nobody_with_an_account_is_renamed_by_a_students_record(api, make):
    student = make.student()
    guardian = with_account(api, make, student, full_name="Emeka Obi")
    api.ok(put(api, student, guardian, primary=True))

    api.ok(api.patch(f"/students/{student['id']}", {"guardian": {"full_name": "Ngozi"}}))

    guardians = api.ok(api.get(f"/students/{student['id']}/guardians"))
    assert [(link["full_name"], link["primary"]) for link in guardians] == [
        ("Ngozi", True),
        ("Emeka Obi", False),
    ]
    api.ok(put(api, student, guardian, primary=True))
    assert [link["full_name"] for link in api.ok(api.get(f"/students/{student['id']}/guardians"))] == [
        "Emeka Obi",
        "Ngozi",
    ]
    # Null takes the link away; a person with an account stays.
    api.ok(api.patch(f"/students/{student['id']}", {"guardian": None}))
    assert api.ok(api.get(f"/guardians/{guardian['id']}"))["children"] == []


@pytest.mark.parametrize("account", ["new", "user"])
def test_an_account_costs_six_round_trips_at_most(api, make, messages, account):
    guardian, user = make.guardian(make.student()), make.user()["user"]["id"]
    body = {"username": "n", "password": PASSWORD} if account == "new" else {"user": user}
    with messages() as given:
        api.ok(give(api, guardian, **body))
    with messages() as taken:
        api.ok(api.delete(f"/guardians/{guardian['id']}/account"))

    assert (len(given) <= 6, len(taken) <= 6) == (True, True), (given, taken)
