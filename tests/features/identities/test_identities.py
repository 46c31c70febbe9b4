"""Outside sign-ins that are linked to accounts."""

from __future__ import annotations

import unicodedata
from uuid import uuid4

import pytest

from tests.factories import UNKNOWN_ID
from tests.features.invitations.test_invitations import (
    PASSWORD,
    an_account,
    code_of,
    expire,
    invite,
    is_refused,
    sign_in,
    take,
)

NOT_LINKED = "This sign-in is linked to no account of the school."
pytestmark = pytest.mark.usefixtures("state")


def outside(api, provider, subject="ada", **claims):
    """A client with an outside token of somebody who signed in by a web application."""
    return api.using(token=provider.token(azp="a portal", sub=subject, **claims))


def is_not_linked(answer):
    body = answer.get_json()
    return (answer.status_code, body["type"], body["message"], body["errors"]) == (
        403,
        "not-linked",
        NOT_LINKED,
        {"token": ["not linked"]},
    )


def link(api, user, provider, subject="ada", **body):
    return api.post(f"/users/{user['id']}/identities", {"issuer": provider.url, "subject": subject, **body})


def listed(api, user):
    return api.ok(api.get(f"/users/{user['id']}/identities"))


@pytest.fixture
def user(make):
    return make.user()["user"]


def test_a_linked_person_is_the_user(api, make, user, provider):
    ada = outside(api, provider, permissions=["read:users"])
    assert is_not_linked(ada.get("/me"))
    assert is_not_linked(ada.get("/users"))

    made = api.ok(link(api, user, provider))

    assert listed(api, user) == [made]
    assert [made[name] for name in ("issuer", "subject", "way")] == [provider.url, "ada", "ADMINISTRATOR"]
    assert (
        made["linked_by_name"]
        == api.ok(api.get("/me"))["user"]["first_name"] + " " + api.ok(api.get("/me"))["user"]["last_name"]
    )
    assert ada.ok(ada.get("/me"))["user"] == user
    # Their roles decide, and not the token.
    assert ada.get("/users").status_code == 403
    api.ok(api.put(f"/users/{user['id']}/roles", {"role": make.role("read:users")["id"]}))
    assert ada.get("/users").status_code == 200
    [entry] = api.ok(api.get("/audit?entity=identity"))["data"]
    assert (entry["action"], entry["entity_id"]) == ("create", made["id"])
    assert entry["new"] == {"issuer": provider.url, "way": "ADMINISTRATOR", "user": user["id"]}
    # The linked person acts as the user.
    ada.ok(ada.delete(f"/users/{user['id']}/sessions"))
    assert api.ok(api.get("/audit?entity=user&pageSize=1"))["data"][0]["actor"] == user["id"]


def test_the_school_of_the_token_restricts(api, other_api, user, provider):
    api.ok(link(api, user, provider))

    assert outside(api, provider, school_id=str(api.school)).get("/me").status_code == 200
    assert outside(api, provider).get("/me").status_code == 200
    assert outside(api, provider, school_id=str(other_api.school)).get("/me").status_code == 403
    assert is_not_linked(outside(other_api, provider).get("/me"))
    assert outside(api, provider).using(school=None).get("/me").status_code == 400
    assert outside(api, provider).using(school=uuid4()).get("/me").status_code in {403, 404}


def test_another_issuers_subject_is_another_person(api, make, user, provider):
    other = make.user()["user"]
    api.ok(link(api, other, provider, issuer="https://other.example.org"))
    assert is_not_linked(outside(api, provider).get("/me"))
    api.ok(link(api, user, provider))
    assert outside(api, provider).get("/me").get_json()["user"]["id"] == user["id"]
    foreign = outside(api, provider, iss="https://other.example.org").get("/me")
    assert foreign.get_json()["user"]["id"] == other["id"]
    for subject in ("Ada", "ada ", "a\u0301da"):
        assert is_not_linked(outside(api, provider, subject).get("/me"))


def test_the_claim_of_the_user_goes_on_and_clients_stay_clients(api, make, user, provider):
    other = make.user()["user"]
    api.ok(link(api, user, provider))

    claimed = outside(api, provider, school_id=str(api.school), school_user=other["id"])
    assert claimed.ok(claimed.get("/me"))["user"] == other
    client = api.using(
        token=provider.token(azp="ada", sub="ada", school_id=str(api.school), permissions=["read:users"])
    )
    assert client.get("/users").status_code == 200
    assert client.post("/me/identities", {}).status_code == 403


def test_without_the_setting_it_is_as_it_was(api, user, provider, link_users):
    link_users(api, auth_linked_users=False)
    api.ok(link(api, user, provider))

    carried = outside(api, provider, school_id=str(api.school), permissions=["read:users"])
    assert carried.get("/users").status_code == 200
    assert outside(api, provider).get("/me").status_code == 403
    assert carried.post("/me/identities", {}).status_code == 403


def test_all_but_the_first_request_are_one_message(api, make, user, provider, messages):
    reader = make.caller("read:users").user
    for subject, account in (("ada", user), ("reader", reader)):
        api.ok(link(api, account, provider, subject))
    ada, other = outside(api, provider), outside(api, provider, "reader")

    for client, path in ((ada, "/me"), (other, f"/users/{user['id']}")):
        counted = []
        for _ in range(3):
            with messages() as sent:
                client.ok(client.get(path))
            counted.append(len(sent))
        assert counted == [2, 1, 1]


def test_linking_and_unlinking_are_a_few_messages(api, make, user, provider, messages):
    student = an_account(api, make)
    code = code_of(api, student)
    with messages() as linked:
        made = api.ok(link(api, user, provider))
    ada, eve = outside(api, provider), outside(api, provider, "eve")
    ada.ok(ada.get("/me"))
    with messages() as taken:
        eve.ok(eve.post("/me/identities", {"code": code}))
    with messages() as unlinked:
        api.ok(api.delete(f"/users/{user['id']}/identities/{made['id']}"))

    assert [len(sent) <= 7 for sent in (linked, taken, unlinked)] == [True] * 3, (linked, taken, unlinked)


def test_unlinking_works_in_the_next_request_of_every_process(api, user, provider, state, link_users):
    made = api.ok(link(api, user, provider))
    ada = outside(api, provider)
    assert ada.get("/me").status_code == 200
    # Another process has its own memory.
    link_users(api)
    assert ada.get("/me").status_code == 200

    assert api.ok(api.delete(f"/users/{user['id']}/identities/{made['id']}")) == {
        "id": made["id"],
        "deleted": True,
    }

    for app_state in (state, link_users(api)):
        api.app.extensions["school-service"] = app_state
        for method, path in (
            ("GET", "/me"),
            ("GET", "/users"),
            ("POST", "/users"),
            ("DELETE", f"/users/{user['id']}/sessions"),
        ):
            assert is_not_linked(ada.request(method, path))
    assert api.delete(f"/users/{user['id']}/identities/{made['id']}").status_code == 404


def test_a_link_that_moves_to_another_account_is_followed(api, make, user, provider):
    made = api.ok(link(api, user, provider))
    ada = outside(api, provider)
    assert ada.ok(ada.get("/me"))["user"] == user

    other = make.user()["user"]
    api.ok(api.delete(f"/users/{user['id']}/identities/{made['id']}"))
    api.ok(link(api, other, provider))

    assert ada.ok(ada.get("/me"))["user"] == other
    assert ada.delete(f"/users/{user['id']}/sessions").status_code == 403
    ada.ok(ada.delete(f"/users/{other['id']}/sessions"))


def test_a_deleted_users_link_opens_nothing_and_stays(api, user, provider):
    api.ok(link(api, user, provider))
    api.ok(api.delete(f"/users/{user['id']}/delete"))

    assert outside(api, provider).get("/me").status_code == 401
    assert api.get(f"/users/{user['id']}/identities").status_code == 404
    api.ok(api.put(f"/users/{user['id']}/restore"))
    assert outside(api, provider).get("/me").status_code == 200
    assert len(listed(api, user)) == 1


class TestLinking:
    def test_invalid_unknown_and_too_many_links_are_refused(self, api, make, make_other, user, provider):
        for body, field in (
            ({"issuer": "https://unknown.example.org"}, "issuer"),
            ({"issuer": ""}, "issuer"),
            ({"subject": ""}, "subject"),
            ({"subject": "a" * 256}, "subject"),
            ({"subject": "a\nb"}, "subject"),
            ({"subject": "a\u202eb"}, "subject"),
            ({"subject": 5}, "subject"),
        ):
            answer = (
                link(api, user, provider, **{"subject": "x", **body})
                if "subject" not in body
                else api.post(f"/users/{user['id']}/identities", {"issuer": provider.url, **body})
            )
            errors = answer.get_json()["errors"]
            assert (answer.status_code, field in {**errors, **errors.get("json", {})}) == (422, True), body
        assert link(api, {"id": UNKNOWN_ID}, provider).status_code == 404
        theirs = make_other.user()["user"]
        assert link(api, theirs, provider).status_code == 404
        assert api.get(f"/users/{theirs['id']}/identities").status_code == 404
        made = api.ok(link(api, user, provider))
        other = make.user()["user"]
        assert link(api, other, provider).status_code == 409
        assert link(api, user, provider).status_code == 409
        assert api.delete(f"/users/{other['id']}/identities/{made['id']}").status_code == 404
        for number in range(4):
            api.ok(link(api, user, provider, f"ada {number}"))
        assert link(api, user, provider, "one more").status_code == 409
        assert len(listed(api, user)) == 5

    def test_nobody_links_a_user_with_more_permissions(self, api, make, user, provider):
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": make.role("read:metrics", reach="OWN")["id"]}))
        made = api.ok(link(api, user, provider))

        for permissions in (("write:users",),):
            caller = make.caller(*permissions)
            for answer in (
                link(caller, user, provider, "mallory"),
                caller.delete(f"/users/{user['id']}/identities/{made['id']}"),
            ):
                assert (answer.status_code, "read:metrics" in answer.get_json()["message"]) == (403, True)
        api.ok(link(make.caller("write:users", "read:metrics"), user, provider, "eve"))

    def test_a_guardians_account_needs_read_results(self, api, make, provider):
        guardian = make.guardian(make.student())
        made = api.ok(api.put(f"/guardians/{guardian['id']}/account", {"username": f"g{uuid4()}"}))
        account = {"id": made["user"]}

        assert link(make.caller("write:users"), account, provider).status_code == 403
        api.ok(link(make.caller("write:users", "read:results"), account, provider))

    def test_ones_own(self, api, make, provider):
        student = an_account(api, make)
        first = api.ok(link(api, student, provider))
        own, other = outside(api, provider), make.user()["user"]
        assert listed(own, student) == [first]
        assert own.get(f"/users/{other['id']}/identities").status_code == 403
        assert link(own, student, provider, "more").status_code == 403
        path = f"/users/{student['id']}/identities/{first['id']}"

        assert own.delete(path).status_code == 409
        second = api.ok(link(api, student, provider, "another"))
        own.ok(own.delete(path))
        assert is_not_linked(own.get("/me"))
        again = outside(api, provider, "another")
        last = f"/users/{student['id']}/identities/{second['id']}"
        assert again.delete(last).status_code == 409
        api.ok(api.put(f"/users/{student['id']}/password", {"password": "correct horse battery"}))
        again.ok(again.delete(last))

    def test_nobody_links_their_own_account_in_the_administrators_way(self, api, make, provider):
        me, lesser = api.ok(api.get("/me"))["user"], make.caller("write:users")

        for client, own in ((api, me), (lesser, lesser.user)):
            for body in ({}, {"issuer": "https://unknown.example.org"}):
                answer = link(client, own, provider, **body)
                assert (answer.status_code, "own account" in answer.get_json()["message"]) == (403, True)
            assert client.post(f"/users/{own['id']}/identities", {}).status_code == 422
        assert listed(api, me) == listed(api, lesser.user) == []


class TestInvitations:
    def test_a_code_links_the_account_and_is_used_up(self, api, make, provider):
        student = an_account(api, make)
        code = code_of(api, student)
        ada = outside(api, provider, "ada-of-the-portal")

        made = ada.ok(ada.post("/me/identities", {"code": code.lower()}))

        assert (made["way"], made["linked_by_name"]) == ("INVITATION", "Ọlá Ògúnlẹ́yẹ")
        assert made["subject"] == "ada-of-the-portal"
        assert ada.ok(ada.get("/me"))["user"] == student
        assert is_refused(outside(api, provider, "eve").post("/me/identities", {"code": code}))
        assert ada.post("/me/identities", {"code": code_of(api, an_account(api, make))}).status_code == 409
        entry = api.ok(api.get("/audit?entity=identity"))["data"][0]
        assert (entry["actor"], entry["new"]["way"]) == (student["id"], "INVITATION")
        assert "ada-of-the-portal" not in str(entry)
        assert is_not_linked(outside(api, provider, "mallory").get("/me"))

    def test_a_code_that_was_refused_is_not_used_up(self, api, make, provider):
        api.ok(link(api, make.user()["user"], provider))
        student = an_account(api, make)
        code = code_of(api, student)

        assert outside(api, provider).post("/me/identities", {"code": code}).status_code == 409
        eve = outside(api, provider, "eve")
        eve.ok(eve.post("/me/identities", {"code": code}))
        assert listed(api, student)[0]["subject"] == "eve"

    def test_without_a_code_it_is_the_verified_address_of_an_invitation(self, api, make, provider):
        student = an_account(api, make)
        api.ok(invite(api, student, emails=["Ada.Okafor@Example.com"]))
        assert api.ok(api.get("/invitations"))["data"][0]["email"] == "ada.okafor@example.com"
        verified = {"email": "ada.okafor@EXAMPLE.com", "email_verified": True}

        for claims in (
            {},
            {"email": verified["email"]},
            {**verified, "email_verified": "true"},
            {**verified, "email_verified": False},
            {**verified, "email": "ada@example.com"},
            {**verified, "email": ["ada.okafor@example.com"]},
            {**verified, "email": "ada.okafor@example.com\0"},
        ):
            assert is_not_linked(outside(api, provider, **claims).post("/me/identities", {}))
        ada = outside(api, provider, **verified)
        # Nothing is linked by a GET.
        assert is_not_linked(ada.get("/me"))
        assert ada.ok(ada.post("/me/identities", {}))["way"] == "EMAIL"
        assert ada.ok(ada.get("/me"))["user"] == student
        assert api.ok(api.get("/invitations"))["total"] == 0
        assert is_not_linked(outside(api, provider, "eve", **verified).post("/me/identities", {}))

    @pytest.mark.parametrize(
        ("invited", "other", "also"),
        [
            ("groß@example.com", "gross@example.com", "GROß@EXAMPLE.COM"),
            ("gross@example.com", "groß@example.com", "Gross@example.com"),
            ("kunle@example.com", "\u212aunle@example.com", "KUNLE@example.com"),
            ("ọlá@example.com", "ỌLÁ@example.com", "ọlá@Example.com"),
        ],
    )
    def test_two_mailboxes_that_fold_alike_are_two(self, api, make, provider, invited, other, also):
        student, second = (an_account(api, make) for _ in range(2))
        api.ok(invite(api, student, second, emails=[invited, other]))
        api.ok(invite(api, second, emails=["somebody@example.com"]))

        wrong = outside(api, provider, email=other, email_verified=True)
        assert is_not_linked(wrong.post("/me/identities", {}))
        half = outside(api, provider, email="\ud800" + invited, email_verified=True)
        assert is_not_linked(half.post("/me/identities", {}))
        # Nor is one that is written with combining marks another that is not.
        for address in (unicodedata.normalize("NFD", invited), unicodedata.normalize("NFD", other)):
            if address.lower() not in (invited, other):
                apart = outside(api, provider, email=address, email_verified=True)
                assert is_not_linked(apart.post("/me/identities", {}))
        right = outside(api, provider, email=also, email_verified=True)
        right.ok(right.post("/me/identities", {}))
        assert right.ok(right.get("/me"))["user"] == student

    def test_a_contacts_address_and_an_address_of_two_link_nothing(self, api, make, provider):
        contact = make.contact()
        first, second = (an_account(api, make) for _ in range(2))
        for user in (first, second):
            api.ok(invite(api, user, emails=["shared@example.com"]))
        expired = an_account(api, make)
        [made] = api.ok(invite(api, expired, emails=["late@example.com"]))
        expire(api, made["id"])

        for address in (contact["email_address"], "shared@example.com", "late@example.com"):
            token = outside(api, provider, email=address, email_verified=True)
            assert is_not_linked(token.post("/me/identities", {}))
        assert api.ok(api.get("/invitations"))["total"] == 2

    def test_addresses_of_invitations(self, api, make):
        users = [an_account(api, make) for _ in range(2)]
        for emails in (
            ["ada@example.com"],
            ["ada@example.com", "ADA@example.com"],
            ["ada", "b@example.com"],
            [],
        ):
            assert invite(api, *users, emails=emails).status_code == 422
        assert api.post("/invitations", {"batch": UNKNOWN_ID, "emails": ["a@example.com"]}).status_code == 422
        assert len(api.ok(invite(api, *users, emails=["a@example.com", "b@example.com"]))) == 2

    def test_own_tokens_and_wrong_codes(self, api, make, provider):
        assert api.post("/me/identities", {"code": "x"}).status_code == 403
        ada = outside(api, provider)
        assert ada.post("/me/identities", {"code": ""}).status_code == 422
        for _ in range(30):
            assert is_refused(ada.post("/me/identities", {"code": "K7QM-4TZ9-XDR2"}))
        answer = ada.post("/me/identities", {"code": "K7QM-4TZ9-XDR2"})
        assert (answer.status_code, "Retry-After" in answer.headers) == (429, True)


def by_password(client, user, password=PASSWORD):
    return client.post("/me/identities", {"username": user["username"], "password": password})


def with_own_password(api, make, user):
    """Let a user set a password themselves, by an invitation; answers a client with their token."""
    api.ok(take(api, code_of(api, user, everybody=True)))
    return make.signed_in(user, PASSWORD)


class TestPassword:
    def test_a_person_who_knows_the_password_links_their_account(self, api, make, user, provider):
        with_own_password(api, make, user)
        ada = outside(api, provider)

        made = ada.ok(by_password(ada, {"username": user["username"].upper()}))

        assert (made["way"], made["subject"]) == ("PASSWORD", "ada")
        assert made["linked_by_name"] == f"{user['first_name']} {user['last_name']}"
        assert ada.ok(ada.get("/me"))["user"] == user
        entry = api.ok(api.get("/audit?entity=identity"))["data"][0]
        assert (entry["actor"], entry["new"]["way"]) == (user["id"], "PASSWORD")
        assert by_password(outside(api, provider, "another"), user).status_code == 200
        assert by_password(ada, user).status_code == 409
        for client in (api, api.using(token=provider.token(azp="ada", sub="ada", school_id=str(api.school)))):
            assert by_password(client, user).status_code == 403

    def test_wrong_passwords_count_with_wrong_sign_ins_and_are_on_record(self, api, make, user, provider):
        ada = outside(api, provider)
        wrong = {"code": 401, "message": "The username or the password is wrong."}
        for _ in range(5):
            for answer in (by_password(ada, user, "wrong"), sign_in(api, user, "wrong")):
                assert answer.get_json().items() >= wrong.items()
        for answer in (by_password(ada, user, "a password"), sign_in(api, user, "a password")):
            assert (answer.status_code, "Retry-After" in answer.headers) == (429, True)
        unknown = by_password(ada, {"username": "nobody of the school"})
        assert unknown.get_json().items() >= wrong.items()

        refused = api.ok(api.get("/audit?entity=refused-sign-in"))["data"]
        assert len(refused) == 11
        assert {entry["entity_id"] for entry in refused} == {user["id"], None}
        assert user["username"] not in str(refused)
        assert listed(api, user) == []

    def test_invalid_unknown_and_too_many_links_are_refused(self, api, make, make_other, user, provider):
        ada, deleted = outside(api, provider), make.user()["user"]
        for body, field in (
            ({"username": "a"}, "password"),
            ({"password": "a"}, "username"),
            ({"username": "a", "password": "b", "code": "K7QM-4TZ9-XDR2"}, "code"),
            ({"username": "a", "code": "K7QM-4TZ9-XDR2"}, "password"),
            ({"username": "", "password": "b"}, "username"),
            ({"username": "a", "password": ""}, "password"),
            ({"username": "a", "password": None}, "password"),
            ({"username": ["a"], "password": "b"}, "username"),
            ({"username": "a", "password": "b" * 2000}, "password"),
            ({"username": "a\0", "password": "b"}, "username"),
        ):
            answer = ada.post("/me/identities", body)
            assert (answer.status_code, field in answer.get_json()["errors"]["json"]) == (422, True), body
        api.ok(api.delete(f"/users/{deleted['id']}/delete"))
        for unknown in (deleted, make_other.user()["user"], an_account(api, make)):
            assert by_password(ada, unknown, "a password").status_code == 401
        for number in range(5):
            api.ok(link(api, user, provider, f"ada {number}"))
        assert by_password(ada, user, "a password").status_code == 409

    def test_a_link_by_password_stays_with_ones_own_passwords_and_ends_with_one_set_by_somebody_else(
        self, api, make, user, provider
    ):
        own = with_own_password(api, make, user)
        kept = api.ok(link(api, user, provider, "by the administrator"))
        ada = outside(api, provider)
        made = ada.ok(by_password(ada, user))
        another = {"password": "yet another of them", "current_password": PASSWORD}
        own.ok(own.put(f"/users/{user['id']}/password", another))
        assert ada.ok(ada.get("/me"))["user"] == user

        api.ok(api.put(f"/users/{user['id']}/password", {"password": "set by somebody else"}))

        assert is_not_linked(ada.get("/me"))
        assert listed(api, user) == [kept]
        entry = api.ok(api.get("/audit?entity=identity"))["data"][0]
        assert (entry["action"], entry["entity_id"], entry["old"]["way"]) == (
            "delete",
            made["id"],
            "PASSWORD",
        )

    def test_a_link_made_by_a_given_password_ends_with_that_password(self, api, make, provider):
        """The giver of the password may have linked themselves."""
        for change in ("own", "invitation"):
            user = make.user()["user"]
            ada = outside(api, provider, change)
            ada.ok(by_password(ada, user, "a password"))
            assert ada.ok(ada.get("/me"))["user"] == user

            if change == "own":
                own = make.signed_in(user)
                changed = {"password": PASSWORD, "current_password": "a password"}
                own.ok(own.put(f"/users/{user['id']}/password", changed))
            else:
                with_own_password(api, make, user)

            assert is_not_linked(ada.get("/me"))
            assert listed(api, user) == []

    def test_a_password_that_must_be_changed_links_nothing(self, api, make, provider):
        api.ok(api.patch("/settings", {"must_change_password": True}))
        user = make.user()["user"]
        ada = outside(api, provider)

        answer = by_password(ada, user, "a password")

        assert answer.status_code == 403
        assert answer.get_json()["message"].startswith("Your password was given to you and must be changed")
        assert listed(api, user) == []

    def test_the_creators_token_ends(self, api, make, provider):
        made = make.user()
        creator = api.using(token=made["access_token"]["access_token"])
        assert creator.get("/me").status_code == 200

        ada = outside(api, provider)
        ada.ok(by_password(ada, made["user"], "a password"))

        assert creator.get("/me").status_code == 401
