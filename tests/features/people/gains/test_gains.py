"""Credentials made by others end when an account gains, unless the makers have all its new permissions."""

from __future__ import annotations

from uuid import uuid4

import pytest

from school_service.auth.tokens import issue_client_token
from tenants.clock import now
from tenants.registry.clients import revoke_client
from tests.factories import PASSWORD
from tests.features.identities.test_identities import by_password, is_not_linked, outside
from tests.features.invitations.test_invitations import in_school
from tests.features.people.gains.planting import (
    KINDS,
    MAKING,
    WAYS,
    AccountGiven,
    ChildLinked,
    Planted,
    Restored,
    RoleGiven,
    RoleGrown,
    StopLifted,
)
from tests.features.people.guardians.test_guardians import put as put_link

pytestmark = pytest.mark.usefixtures("state")
NUMBERS = dict.fromkeys(KINDS, 0)


def planted_in(api, make, way, kind, provider, *permissions):
    """Make an account that is about to gain, in which somebody with these permissions has planted a way."""
    gaining = way(api, make)
    gaining.prepare()
    maker = make.caller(*MAKING, *permissions)
    return gaining, maker, Planted(kind, maker, gaining.user, provider)


def take_roles(api, maker):
    for role in api.ok(api.get(f"/users/{maker.user['id']}"))["roles"]:
        api.ok(api.delete(f"/users/{maker.user['id']}/roles/{role['roleId']}"))


def client_of(api, client_id, place):
    """A machine client, with a token of its own."""
    key = api.app.extensions["school-service"].verifier.key
    return api.using(token=issue_client_token(key, client_id, [place.id])["access_token"])


@pytest.fixture
def revoke(tenancy):
    def revoking(client_id):
        with tenancy.admin.begin() as connection:
            revoke_client(connection, client_id)

    return revoking


def many(api, role, number, giver, name="many"):
    """Make so many users with a role, whose passwords somebody has given."""
    ids, names = [uuid4() for _ in range(number)], [f"{name} {place + 1}" for place in range(number)]
    moment = now()
    in_school(
        api,
        "INSERT INTO users (id, username, username_key, password_hash, password_given_at, password_given_by,"
        " password_given_by_name, first_name, last_name, gender, session_number, created_at)"
        " SELECT id, name, name, 'x', :at, :by, 'A B', 'A', 'B', '', 1, :at"
        " FROM unnest(CAST(:ids AS uuid[]), CAST(:names AS text[])) AS made(id, name)",
        ids=ids,
        names=names,
        by=giver.user["id"],
        at=moment,
    )
    given = "INSERT INTO user_roles (user_id, role_id, created_at) SELECT unnest(CAST(:ids AS uuid[])), :role, :at"
    in_school(api, given, ids=ids, role=role, at=moment)


def name_of(user):
    return f"{user['first_name']} {user['last_name']}"


# Each way and each kind is in a run, with one of the other; a release has each of both.
TOGETHER = [
    pytest.param(
        way, kind, marks=() if way is RoleGiven or number % len(KINDS) == place else pytest.mark.release
    )
    for number, way in enumerate(WAYS)
    for place, kind in enumerate(KINDS)
]


@pytest.mark.parametrize(("way", "kind"), TOGETHER)
class TestEveryWay:
    """Each way in which an account gains, and each that somebody can plant in it."""

    def test_a_credential_of_a_maker_with_fewer_permissions_ends(self, api, make, provider, way, kind):
        if way is Restored and kind == "INVITATION":
            pytest.skip("deleting an account ends its invitation")
        gaining, maker, planted = planted_in(api, make, way, kind, provider, "read:metrics")
        take_roles(api, maker)

        told = gaining.account_in(gaining.happen())

        [credential] = told["credentials"]
        assert credential.pop("made_at") > "2020"
        assert credential == {
            "username": gaining.user["username"],
            "kind": kind,
            "made_by_name": name_of(maker.user),
            "ended": True,
        }
        assert (told["credentials_total"], told["credentials_of_kind"]) == (1, {**NUMBERS, kind: 1})
        planted.api = api
        assert not planted.enters()

    def test_a_credential_of_a_maker_with_the_same_permissions_stays(self, api, make, provider, way, kind):
        if way is Restored and kind == "INVITATION":
            pytest.skip("deleting an account ends its invitation")
        gaining, _, planted = planted_in(api, make, way, kind, provider, "read:metrics")

        told = gaining.account_in(gaining.happen())

        assert [(credential["kind"], credential["ended"]) for credential in told["credentials"]] == [
            (kind, False)
        ]
        planted.api = api
        assert planted.enters()


class TestMaker:
    def test_a_credential_of_a_deleted_maker_ends(self, api, make, provider):
        gaining, maker, planted = planted_in(api, make, RoleGiven, "LINK", provider, "read:metrics")
        api.ok(api.delete(f"/users/{maker.user['id']}/delete"))

        assert gaining.happen()["credentials"][0]["ended"]
        planted.api = api
        assert not planted.enters()

    def test_the_permission_as_own_alone_is_not_enough(self, api, make, provider):
        gaining, maker, _ = planted_in(api, make, RoleGiven, "LINK", provider)
        role = make.role("read:metrics", reach="OWN")
        api.ok(api.put(f"/users/{maker.user['id']}/roles", {"role": role["id"]}))

        assert gaining.happen()["credentials"][0]["ended"]

    def test_for_an_own_permission_of_the_account_the_whole_school_is_needed(self, api, make, provider):
        for permissions, ended in (((), True), (("read:metrics",), False)):
            gaining, _, _ = planted_in(api, make, RoleGiven, "LINK", provider, *permissions)
            gaining.role = make.role("read:metrics", reach="OWN")

            assert gaining.happen()["credentials"][0]["ended"] is ended

    @pytest.mark.parametrize("of", ["guardian", "student"])
    def test_of_a_guardian_or_student_read_results_is_needed(self, api, make, provider, of):
        gaining, maker, _ = planted_in(api, make, RoleGiven, "LINK", provider, "read:metrics")
        if of == "guardian":
            body = {"user": gaining.user["id"]}
            api.ok(api.put(f"/guardians/{make.guardian()['id']}/account", body))
        else:
            student = make.student()
            gaining.user = api.ok(api.get(f"/users/{student['user']}"))
            Planted("LINK", maker, gaining.user, provider)
        less = make.caller("write:users", "read:metrics")
        # By roles alone, of now.
        take_roles(api, maker)
        [role] = api.ok(api.get(f"/users/{less.user['id']}"))["roles"]
        api.ok(api.put(f"/users/{maker.user['id']}/roles", {"role": role["roleId"]}))

        assert gaining.happen()["credentials"][0]["ended"]

    def test_ones_own_password_is_nobodys_to_end(self, api, make):
        gaining = RoleGiven(api, make)
        gaining.prepare()
        signed_in = make.signed_in(gaining.user, f"{gaining.user['username']} chose this")

        told = gaining.happen()

        assert (told["credentials"], told["credentials_total"], told["credentials_of_kind"]) == (
            [],
            0,
            NUMBERS,
        )
        assert signed_in.get("/me").status_code == 200

    def test_a_password_that_was_changed_since_is_the_users(self, api, make, provider):
        gaining, maker, _ = planted_in(api, make, RoleGiven, "PASSWORD", provider)
        user = make.signed_in(gaining.user)
        passwords = {"password": "another of my own", "current_password": PASSWORD}
        user.ok(user.put(f"/users/{gaining.user['id']}/password", passwords))

        assert gaining.happen()["credentials"] == []
        make.signed_in(gaining.user, "another of my own")
        assert maker.get("/me").status_code == 200

    def test_a_link_by_the_password_ends_with_the_password(self, api, make, provider):
        gaining, maker, _ = planted_in(api, make, RoleGiven, "PASSWORD", provider)
        linked = outside(api, provider, "by the password")
        linked.ok(by_password(linked, gaining.user, PASSWORD))
        take_roles(api, maker)

        gaining.happen()

        assert is_not_linked(linked.get("/me"))

    def test_a_password_of_an_unknown_giver_stays_and_is_named(self, api, make, provider):
        gaining, _, planted = planted_in(api, make, RoleGiven, "PASSWORD", provider)
        in_school(api, "UPDATE users SET password_given_by = NULL, password_given_by_name = NULL")

        [credential] = gaining.happen()["credentials"]

        assert credential == {
            "username": gaining.user["username"],
            "kind": "PASSWORD",
            "made_by_name": None,
            "made_at": None,
            "ended": False,
        }
        assert planted.enters()

    # All kinds are judged alike: of each, one stays and one ends.
    @pytest.mark.parametrize(
        ("grants", "kind"),
        [
            ("all", "PASSWORD"),
            ("some", "INVITATION"),
            ("too few", "LINK"),
            ("revoked", "PASSWORD"),
            ("granted anew", "LINK"),
            ("of another school", "INVITATION"),
        ],
    )
    def test_a_client_is_judged_by_its_grant(
        self, api, make, provider, grant, revoke, other_place, place, kind, grants
    ):
        names = ["write:users", "read:users", "read:results"]
        names += [] if grants == "too few" else ["read:metrics"]
        given = {"all_permissions": True} if grants == "all" else {"permissions": names}
        client_id, _ = grant(school_ids=[place.id], **given)
        gaining = RoleGiven(api, make)
        gaining.prepare()
        planted = Planted(kind, client_of(api, client_id, place), gaining.user, provider)
        if grants in ("revoked", "granted anew", "of another school"):
            revoke(client_id)
        if grants == "granted anew":
            grant(client_id=client_id, school_ids=[place.id], permissions=names)
        if grants == "of another school":
            grant(client_id=client_id, school_ids=[other_place.id], permissions=names)

        [credential] = gaining.happen()["credentials"]

        assert credential["made_by_name"] == client_id
        assert credential["ended"] is (grants in ("too few", "revoked", "of another school"))
        planted.api = api
        assert planted.enters() is not credential["ended"]


class TestGains:
    def test_a_role_that_adds_nothing_ends_nothing(self, api, make, provider):
        gaining, maker, planted = planted_in(api, make, RoleGiven, "LINK", provider, "read:metrics")
        gaining.happen()
        take_roles(api, maker)
        for reach in ("SCHOOL", "OWN"):
            again = make.role("read:metrics", reach=reach)

            answer = api.ok(api.put(f"/users/{gaining.user['id']}/roles", {"role": again["id"]}))
            assert "credentials" not in answer

        api.ok(api.put(f"/users/{gaining.user['id']}/roles", {"role": make.role()["id"]}))
        assert "credentials" not in gaining.happen()
        assert planted.enters()

    def test_from_own_to_the_whole_school_by_another_role_is_a_gain(self, api, make, provider):
        gaining, _, planted = planted_in(api, make, RoleGiven, "LINK", provider, "read:metrics")
        gaining.role = make.role("read:metrics", reach="OWN")
        gaining.happen()
        gaining.role = make.role("read:metrics")

        assert [credential["ended"] for credential in gaining.happen()["credentials"]] == [False]
        assert planted.enters()

    def test_a_role_that_is_given_to_all_of_a_kind_is_no_gain(self, api, make, provider):
        student = make.student()
        user = api.ok(api.get(f"/users/{student['user']}"))
        maker = make.caller(*MAKING)
        planted = Planted("LINK", maker, user, provider)
        [role] = [role for role in api.ok(api.get("/roles")) if role["given_to"] == "STUDENTS"]
        ids = [*(permission["id"] for permission in role["permissions"]), make._permission("read:metrics")]

        answer = api.ok(api.patch(f"/roles/{role['id']}/permissions", {"permissionIds": ids}))

        assert "credentials" not in answer
        assert planted.enters()

    def test_a_restored_user_without_a_role_does_not_gain(self, api, make, provider):
        gaining, maker, planted = planted_in(api, make, RoleGiven, "LINK", provider)
        take_roles(api, maker)
        api.ok(api.delete(f"/users/{gaining.user['id']}/delete"))

        assert "credentials" not in api.ok(api.put(f"/users/{gaining.user['id']}/restore"))
        planted.api = api
        assert planted.enters()

    def test_a_restored_guardian_gains(self, api, make, provider):
        gaining, maker, planted = planted_in(api, make, ChildLinked, "LINK", provider)
        take_roles(api, maker)
        api.ok(api.delete(f"/users/{gaining.user['id']}/delete"))

        assert api.ok(api.put(f"/users/{gaining.user['id']}/restore"))["credentials"][0]["ended"]
        planted.api = api
        assert not planted.enters()

    def test_a_link_that_is_changed_is_no_gain(self, api, make, provider):
        gaining, maker, planted = planted_in(api, make, ChildLinked, "LINK", provider)
        gaining.happen()
        take_roles(api, maker)

        rows = api.ok(put_link(api, gaining.student, gaining.guardian, relationship="uncle"))

        assert all("credentials" not in row for row in rows)
        planted.api = api
        assert planted.enters()

    def test_administrators_gain_by_a_new_permission(self, api, make, provider):
        role = next(role for role in api.ok(api.get("/roles")) if role["name"] == "Administrator")
        user = make.user()["user"]
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
        maker = make.caller(
            *(
                f"{permission['access']}:{permission['section']}"
                for permission in api.ok(api.get("/permissions"))
            )
        )
        planted = Planted("LINK", maker, user, provider)

        told = api.ok(api.post("/permissions", {"section": "canteen", "access": "read"}))

        ended = {
            (credential["username"], credential["kind"]): credential["ended"]
            for credential in told["credentials"]
        }
        assert ended == {
            (user["username"], "LINK"): True,
            (user["username"], "PASSWORD"): False,
            ("admin", "PASSWORD"): False,
        }
        assert not planted.enters()

    def test_sessions_end_with_it(self, api, make, provider):
        gaining, _, _ = planted_in(api, make, RoleGiven, "PASSWORD", provider)
        planted = make.signed_in(gaining.user)

        gaining.happen()

        assert planted.get("/me").status_code == 401

    def test_the_token_that_the_account_was_made_with_ends(self, api, make):
        made = make.user()
        creator = api.using(token=made["access_token"]["access_token"])

        api.ok(api.put(f"/users/{made['user']['id']}/roles", {"role": make.role("read:metrics")["id"]}))

        assert creator.get("/me").status_code == 401

    def test_ended_credentials_are_on_record(self, api, make, provider):
        gaining, maker, planted = planted_in(api, make, RoleGiven, "PASSWORD", provider)
        user = {"user": gaining.user["id"]}
        Planted("INVITATION", maker, gaining.user, provider)
        Planted("LINK", maker, gaining.user, provider)
        link = {"issuer": provider.url, "way": "ADMINISTRATOR", **user}

        gaining.happen()

        newest = api.ok(api.get("/audit?pageSize=4"))["data"]
        log = {(entry["entity"], entry["action"]): (entry["old"], entry["new"]) for entry in newest}
        assert log == {
            ("user", "update"): ({}, {"password": "ended", "sessions": "ended"}),
            ("invitation", "delete"): (user, None),
            ("identity", "delete"): (link, None),
        } | {("user", "update"): log["user", "update"]}
        changes = [(entry["old"], entry["new"]) for entry in newest if entry["entity"] == "user"]
        assert ({}, {"password": "ended", "sessions": "ended"}) in changes
        assert planted.enters() is False

    def test_the_other_school_is_left_alone(self, api, make, make_other, provider, other_api):
        theirs = make_other.user()["user"]
        planted = Planted("LINK", make_other.caller(*MAKING), theirs, provider)
        gaining, maker, _ = planted_in(api, make, RoleGiven, "LINK", provider)
        take_roles(api, maker)

        assert gaining.happen()["credentials"][0]["ended"]
        role = make_other.role("read:metrics")
        for user, given in ((theirs, gaining.role), (gaining.user, role), (gaining.user, gaining.role)):
            answer = other_api.put(f"/users/{user['id']}/roles", {"role": given["id"]})
            assert answer.status_code == (404 if user is gaining.user else 422)
        assert planted.enters()


class TestAnswer:
    def test_a_giver_who_may_not_read_users_is_told_the_number(self, api, make, provider):
        gaining, _, _ = planted_in(api, make, RoleGiven, "PASSWORD", provider)
        giver = make.caller("write:users", "read:metrics")

        told = giver.ok(giver.put(f"/users/{gaining.user['id']}/roles", {"role": gaining.role["id"]}))

        assert told["credentials"] == []
        assert (told["credentials_total"], told["credentials_of_kind"]) == (1, {**NUMBERS, "PASSWORD": 1})

    def test_remaining_credentials_are_the_first_of_two_hundred(self, api, make, provider):
        gaining = RoleGrown(api, make)
        gaining.prepare()
        role = {"role": gaining.role["id"]}
        clerk, enough = make.caller(*MAKING), make.caller(*MAKING, "read:metrics")
        many(api, role["role"], 205, clerk)
        many(api, role["role"], 5, enough, name="others")

        told = gaining.happen()

        assert (told["credentials_total"], len(told["credentials"])) == (210, 200)
        assert [credential["ended"] for credential in told["credentials"]] == [False] * 5 + [True] * 195
        names = [credential["username"] for credential in told["credentials"]]
        assert names[:5] == [f"others {number}" for number in range(1, 6)]
        left = "SELECT count(*) FROM users WHERE username LIKE 'others %' AND password_hash IS NOT NULL"
        assert in_school(api, left) == [(5,)]

    def test_the_etag_is_the_students(self, api, make):
        gaining = ChildLinked(api, make)
        gaining.prepare()
        path = f"/students/{gaining.student['id']}"

        changed = api.patch(path, {"guardian": gaining.named})

        assert changed.get_json()["credentials"] == []
        assert changed.headers["ETag"] == api.get(path).headers["ETag"]
        assert (
            api.patch(path, {"middle_name": "Ada"}, headers={"If-Match": changed.headers["ETag"]}).status_code
            == 200
        )


def test_nobody_lifts_a_stop_on_themselves(api, make):
    gaining = StopLifted(api, make)
    gaining.prepare()
    make.api.ok(api.put(f"/users/{gaining.user['id']}/roles", {"role": administrator(api)}))
    guardian = make.signed_in(gaining.user, f"{gaining.user['username']} chose this")
    account = f"/guardians/{gaining.guardian['id']}/account"
    of_student = f"/students/{gaining.student['id']}/guardians"

    refused = (
        guardian.delete(f"{of_student}/{gaining.guardian['id']}/stop"),
        guardian.delete(account),
        guardian.put(account, {"user": gaining.user["id"]}),
        guardian.put(f"/guardians/{make.guardian()['id']}/account", {"user": gaining.user["id"]}),
    )

    assert [answer.status_code for answer in refused] == [403] * 4
    [link] = [link for link in api.ok(api.get(of_student)) if link["guardian"] == gaining.guardian["id"]]
    assert (link["user"], bool(link["stopped_at"])) == (gaining.user["id"], True)
    # Somebody else does; and without a stop one's own account is taken away.
    gaining.happen()
    assert guardian.ok(guardian.delete(account))["user"] is None
    guardian = make.signed_in(gaining.user, f"{gaining.user['username']} chose this")
    assert guardian.put(account, {"user": gaining.user["id"]}).status_code == 403
    api.ok(api.put(account, {"user": gaining.user["id"]}))


def administrator(api):
    return next(role["id"] for role in api.ok(api.get("/roles")) if role["name"] == "Administrator")


@pytest.mark.parametrize("number", [3, 60])
def test_a_gain_of_many_costs_as_many_messages_as_a_gain_of_few(api, make, messages, number):
    gaining = RoleGrown(api, make)
    gaining.prepare()
    clerk = make.caller(*MAKING)
    many(api, gaining.role["id"], number, clerk)
    ids = [
        *(permission["id"] for permission in gaining.role["permissions"]),
        make._permission("read:metrics"),
    ]

    with messages() as sent:
        told = api.ok(api.patch(f"/roles/{gaining.role['id']}/permissions", {"permissionIds": ids}))

    assert told["credentials_of_kind"]["PASSWORD"] == number
    assert len(sent) <= 8, sent


@pytest.mark.parametrize("way", [RoleGiven, AccountGiven, ChildLinked, StopLifted])
def test_a_gain_costs_one_message_more_at_most(api, make, provider, messages, way):
    gaining, maker, _ = planted_in(api, make, way, "LINK", provider)
    take_roles(api, maker)

    with messages() as sent:
        assert gaining.account_in(gaining.happen())["credentials"][0]["ended"]

    assert len(sent) <= (7 if way is RoleGiven else 5), sent


def test_a_credential_made_by_a_client_costs_one_message_more_for_its_grant(
    api, make, provider, grant, messages, place
):
    client_id, _ = grant(school_ids=[place.id], permissions=["write:users", "read:users"])
    makers = {"user": make.caller("write:users", "read:users"), "client": client_of(api, client_id, place)}
    counted = {}
    for maker, caller in makers.items():
        gaining = RoleGiven(api, make)
        gaining.prepare()
        Planted("LINK", caller, gaining.user, provider)
        with messages() as sent:
            [credential] = gaining.happen()["credentials"]
        assert credential["ended"]
        counted[maker] = len(sent)

    # The grant itself is read on a connection of the registry.
    assert counted["client"] == counted["user"] + 1
