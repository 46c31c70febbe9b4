"""The maker of a way into an account uses it, before the account gains and after: docs/security.md."""

from __future__ import annotations

import pytest

from tests.factories import PASSWORD
from tests.features.people.gains.planting import Planted
from tests.features.people.guardians.test_guardians import put as put_link

pytestmark = pytest.mark.usefixtures("state")
TAKEN = "a password of mine"


@pytest.fixture
def clerk(make):
    """A manager of accounts without the permission to read results."""
    return make.caller("read:users", "write:users", "read:students", "write:students")


@pytest.fixture
def account(clerk):
    """The account of somebody else, as its maker was answered it: without a password."""
    body = {"username": "bisi.ajayi", "first_name": "Bísí", "last_name": "Àjàyí", "gender": "FEMALE"}
    return clerk.ok(clerk.post("/users", {**body, "password": PASSWORD}))


@pytest.fixture
def user(make):
    """The account of somebody else, made by an administrator."""
    return make.user()["user"]


def as_maker(clerk, account):
    return clerk.using(token=account["access_token"]["access_token"])


def signed_in(clerk, user, password=PASSWORD):
    answer = clerk.post("/users/login", {"username": user["username"], "password": password})
    return (
        None
        if answer.status_code == 401
        else clerk.using(token=clerk.ok(answer)["access_token"]["access_token"])
    )


def by_code(clerk, planted):
    answer = clerk.post("/users/login/invitation", {"code": planted.code, "password": TAKEN})
    return (
        None
        if answer.status_code == 401
        else clerk.using(token=clerk.ok(answer)["access_token"]["access_token"])
    )


def by_link(clerk, planted):
    return clerk.using(token=planted.provider.token(azp="a portal", sub=planted.subject))


def plants(clerk, user, provider):
    """The answers to a clerk who tries all of it again."""
    return {
        clerk.put(f"/users/{user['id']}/password", {"password": PASSWORD}).status_code,
        clerk.post("/invitations", {"users": [user["id"]], "everybody": True}).status_code,
        clerk.post(
            f"/users/{user['id']}/identities", {"issuer": provider.url, "subject": "again"}
        ).status_code,
    }


class TestRights:
    """The account is given the role of an administrator."""

    @pytest.fixture
    def give(self, api, clerk, provider):
        [role] = [role for role in api.ok(api.get("/roles")) if role["name"] == "Administrator"]

        def give(user):
            answer = api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
            assert plants(clerk, user, provider) == {403}
            return answer["credentials"]

        return give

    def may_nothing(self, client):
        return (client.get("/me").status_code, client.get("/users").status_code) == (200, 403)

    def test_the_maker_of_an_account_may_nothing_by_it(self, clerk, account):
        assert self.may_nothing(as_maker(clerk, account))

    def test_the_maker_of_an_administrators_account_is_signed_out_and_does_not_know_the_password(
        self, clerk, account, give
    ):
        assert [(credential["kind"], credential["ended"]) for credential in give(account["user"])] == [
            ("PASSWORD", True)
        ]

        assert as_maker(clerk, account).get("/me").status_code == 401
        assert signed_in(clerk, account["user"]) is None

    def test_the_inviter_of_an_account_may_nothing_by_it(self, clerk, user, provider):
        taken = by_code(clerk, Planted("INVITATION", clerk, user, provider))

        assert self.may_nothing(taken)

    def test_the_inviter_of_an_administrator_has_a_code_that_is_not_valid(self, clerk, user, provider, give):
        planted = Planted("INVITATION", clerk, user, provider)

        assert ("INVITATION", True) in [
            (credential["kind"], credential["ended"]) for credential in give(user)
        ]

        assert by_code(clerk, planted) is None

    def test_the_linker_of_an_account_may_nothing_by_it(self, clerk, user, provider):
        assert self.may_nothing(by_link(clerk, Planted("LINK", clerk, user, provider)))

    def test_the_linker_of_an_administrator_is_linked_to_nobody(self, clerk, user, provider, give):
        planted = Planted("LINK", clerk, user, provider)
        entered = by_link(clerk, planted)
        assert self.may_nothing(entered)

        assert ("LINK", True) in [(credential["kind"], credential["ended"]) for credential in give(user)]

        assert entered.get("/me").status_code == 403
        assert entered.get("/users").get_json()["errors"] == {"token": ["not linked"]}

    def test_the_giver_of_an_accounts_password_may_nothing_by_it(self, clerk, user, provider):
        Planted("PASSWORD", clerk, user, provider)

        assert self.may_nothing(signed_in(clerk, user))

    def test_the_giver_of_an_administrators_password_is_signed_out_and_does_not_know_it(
        self, clerk, user, provider, give
    ):
        Planted("PASSWORD", clerk, user, provider)
        entered = signed_in(clerk, user)

        assert [(credential["kind"], credential["ended"]) for credential in give(user)] == [
            ("PASSWORD", True)
        ]

        assert entered.get("/me").status_code == 401
        assert signed_in(clerk, user) is None


class TestChildren:
    """The account is given to a guardian, who gets a child later."""

    @pytest.fixture
    def student(self, make):
        return make.student()

    @pytest.fixture
    def give(self, api, make, clerk, student, provider):
        def give(user):
            guardian = make.guardian()
            answer = api.ok(api.put(f"/guardians/{guardian['id']}/account", {"user": user["id"]}))
            assert plants(clerk, user, provider) == {403}
            api.ok(put_link(api, student, guardian))
            assert plants(clerk, user, provider) == {403}
            return answer["credentials"]

        return give

    def reads_nothing(self, client, student):
        return {client.get(f"/students/{student['id']}/{what}").status_code for what in READ} == {403}

    def test_the_maker_of_an_account_reads_no_child_by_it(self, clerk, account, student):
        assert self.reads_nothing(as_maker(clerk, account), student)

    def test_the_maker_of_a_guardians_account_is_signed_out_and_does_not_know_the_password(
        self, clerk, account, give
    ):
        assert [(credential["kind"], credential["ended"]) for credential in give(account["user"])] == [
            ("PASSWORD", True)
        ]

        assert as_maker(clerk, account).get("/me").status_code == 401
        assert signed_in(clerk, account["user"]) is None

    def test_the_inviter_of_an_account_reads_no_child_by_it(self, clerk, user, provider, student):
        taken = by_code(clerk, Planted("INVITATION", clerk, user, provider))

        assert self.reads_nothing(taken, student)

    def test_the_inviter_of_a_guardian_has_a_code_that_is_not_valid(self, clerk, user, provider, give):
        planted = Planted("INVITATION", clerk, user, provider)

        assert ("INVITATION", True) in [
            (credential["kind"], credential["ended"]) for credential in give(user)
        ]

        assert by_code(clerk, planted) is None

    def test_the_linker_of_an_account_reads_no_child_by_it(self, clerk, user, provider, student):
        assert self.reads_nothing(by_link(clerk, Planted("LINK", clerk, user, provider)), student)

    def test_the_linker_of_a_guardian_is_linked_to_nobody(self, clerk, user, provider, student, give):
        planted = Planted("LINK", clerk, user, provider)
        entered = by_link(clerk, planted)
        assert entered.get("/me").status_code == 200

        assert ("LINK", True) in [(credential["kind"], credential["ended"]) for credential in give(user)]

        assert entered.get("/me").get_json()["errors"] == {"token": ["not linked"]}
        assert self.reads_nothing(entered, student)

    def test_the_giver_of_an_accounts_password_reads_no_child_by_it(self, clerk, user, provider, student):
        Planted("PASSWORD", clerk, user, provider)

        assert self.reads_nothing(signed_in(clerk, user), student)

    def test_the_giver_of_a_guardians_password_is_signed_out_and_does_not_know_it(
        self, clerk, user, provider, give
    ):
        Planted("PASSWORD", clerk, user, provider)
        entered = signed_in(clerk, user)

        assert [(credential["kind"], credential["ended"]) for credential in give(user)] == [
            ("PASSWORD", True)
        ]

        assert entered.get("/me").status_code == 401
        assert signed_in(clerk, user) is None


READ = ("results", "report-card", "transcript")


def test_the_clerk_who_took_the_account_before_it_gained_is_its_user(api, make, clerk, user, provider):
    """Nobody can tell the two apart: so roles are given first, and passwords and slips handed out then."""
    by_code(clerk, Planted("INVITATION", clerk, user, provider))

    answer = api.ok(api.put(f"/users/{user['id']}/roles", {"role": make.role("read:metrics")["id"]}))

    assert answer["credentials"] == []
    assert signed_in(clerk, user, TAKEN).get("/metrics").status_code != 401


def test_a_clerk_without_read_results_gives_no_student_or_guardian_a_password(api, make, clerk):
    student, guardian = make.student(), make.guardian()
    account = api.ok(api.put(f"/guardians/{guardian['id']}/account", {"username": "g"}))["user"]
    body = {"first_name": "A", "last_name": "B", "admission_number": "X/1"}

    refused = (
        clerk.put(f"/users/{student['user']}/password", {"password": PASSWORD}),
        clerk.put(f"/users/{account}/password", {"password": PASSWORD}),
        clerk.post("/students", {**body, "password": PASSWORD}),
    )

    assert [("read:results" in answer.get_json()["message"], answer.status_code) for answer in refused] == [
        (True, 403)
    ] * 3
    assert api.ok(api.get("/students"))["total"] == 1
    # Without a password nothing is needed.
    clerk.ok(clerk.post("/students", body))
