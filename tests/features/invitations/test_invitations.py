"""Inviting, and taking an invitation."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from school_service.auth.signing_key import SigningKey, SigningKeys
from school_service.core.database import db
from school_service.features.invitations.codes import code_hasher, code_hashes, new_code
from school_service.web.transactions import in_transaction
from tenants.clock import now
from tenants.connections.binding import SchoolBinding
from tests.factories import UNKNOWN_ID
from tests.features.reach.conftest import Own
from tests.features.sign_in.rows import store_ways_in
from tests.threads import run_concurrently

CROCKFORD = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ-")
PASSWORD = "correct horse battery"
REFUSED = {
    "code": 401,
    "status": "Unauthorized",
    "type": "wrong-credentials",
    "message": "The code is not valid.",
}


def invite(api, *users, **options):
    return api.post("/invitations", {"users": [user["id"] for user in users], **options})


def code_of(api, user, **options):
    [made] = api.ok(invite(api, user, **options))
    return made["code"]


def take(api, code, password=PASSWORD):
    return api.post("/users/login/invitation", {"code": code, "password": password})


def is_refused(answer):
    body = answer.get_json()
    return answer.status_code == 401 and body.items() >= REFUSED.items()


def sign_in(api, user, password=PASSWORD):
    return api.post("/users/login", {"username": user["username"], "password": password})


def entries(api, entity):
    return api.ok(api.get(f"/audit?entity={entity}"))["data"]


def an_account(api, make, **fields):
    """Make an account without a password, as a student's is."""
    student = make.student(**{"first_name": "Ọlá", "last_name": "Ògúnlẹ́yẹ", **fields})
    return api.ok(api.get(f"/users/{student['user']}"))


@pytest.fixture
def person(api, make):
    return an_account(api, make)


def in_school(api, statement, **values):
    """Run a statement in the school; returns its rows, where it has some."""
    with in_transaction(SchoolBinding(UUID(str(api.school)))):
        result = db.session.execute(text(statement), values)
        return result.all() if result.returns_rows else []


def expire(api, invitation_id):
    # A moment by value: an UPDATE of Citus reckons with no column and interval.
    moved = "UPDATE invitations SET expires_at = :until WHERE id = :id"
    in_school(api, moved, id=invitation_id, until=now() - timedelta(seconds=1))


class TestCodes:
    def test_a_code_has_sixty_bits_and_is_read_as_people_type_it(self):
        keys = SigningKeys((SigningKey.generate(), SigningKey.generate()))
        codes = {new_code() for _ in range(1000)}
        assert len(codes) == 1000
        assert all(len(code) == 14 and set(code) <= CROCKFORD for code in codes)
        assert set("".join(codes)) == CROCKFORD

        stored = code_hasher(keys)("K1QM-40Z9-XDR1")
        for typed in ("K1QM-40Z9-XDR1", "k1qm40z9xdr1", " kIqm - 4Oz9 - xdrL ", "KLQM\t4oZ9\u2003xdri"):
            assert code_hashes(typed, keys)[0] == stored
        assert len(code_hashes("K1QM-40Z9-XDR1", keys)) == 2

    @pytest.mark.parametrize(
        "typed", ["", "K1QM", "K1QM-40Z9-XDRU", "K1QM-40Z9-XDR12", "\uff2b1QM-40Z9-XDR1", "\0" * 12]
    )
    def test_a_text_that_can_be_no_code_has_no_hash(self, typed):
        assert code_hashes(typed, SigningKeys((SigningKey.generate(),))) == []

    def test_an_older_key_still_finds_a_code(self):
        old, new = SigningKey.generate(), SigningKey.generate()
        stored = code_hasher(SigningKeys((old,)))("K1QM-40Z9-XDR1")

        assert stored in code_hashes("K1QM-40Z9-XDR1", SigningKeys((new, old)))
        assert stored not in code_hashes("K1QM-40Z9-XDR1", SigningKeys((new,)))


def test_an_invitation_is_taken(api, person, make, caplog):
    [made] = api.ok(invite(api, person))
    assert set(made) == {"id", "user", "username", "name", "code", "url", "expires_at"}
    assert [made[name] for name in ("user", "username", "name", "url")] == [
        person["id"],
        person["username"],
        "Ọlá Ògúnlẹ́yẹ",
        f"https://schools.example.org/auth/{api.school}/invitation/{made['code']}",
    ]

    with caplog.at_level(logging.DEBUG):
        signed_in = api.ok(take(api, made["code"].lower().replace("-", " ")))

    assert (signed_in["user"], signed_in["must_change_password"]) == (person, False)
    own = api.using(token=signed_in["access_token"]["access_token"])
    assert own.ok(own.get("/me"))["user"] == person
    assert is_refused(take(api, made["code"]))
    api.ok(sign_in(api, person))
    # Actor and act are on record, and the code nowhere.
    changes = entries(api, "invitation")
    assert [(change["action"], change["entity_id"]) for change in changes] == [
        ("update", made["id"]),
        ("create", made["id"]),
    ]
    assert changes[0]["new"] == {"used": True, "user": person["id"]}
    assert entries(api, "sign-in")[1]["entity_id"] == person["id"]
    log = api.get("/audit?pageSize=100").get_data(as_text=True) + caplog.text
    rows = str(in_school(api, "SELECT old, new FROM audit_entries"))
    for written in (made["code"], made["code"].replace("-", "")):
        assert written not in log + rows


@pytest.mark.parametrize(("sent", "days"), [({}, 14), ({"days": 1}, 1), ({"days": 30}, 30)])
def test_an_invitation_lasts_fourteen_days_where_no_others_are_named(api, person, sent, days):
    [made] = api.ok(invite(api, person, **sent))

    left = datetime.fromisoformat(made["expires_at"]) - now()
    assert timedelta(days=days, minutes=-5) < left <= timedelta(days=days)


def test_an_invitation_sets_a_forgotten_password_and_ends_all_sessions(api, make):
    user = make.user()["user"]
    before = make.signed_in(user)

    assert api.ok(invite(api, user)) == []
    code = code_of(api, user, everybody=True)
    assert before.get("/me").status_code == 200
    api.ok(take(api, code))

    assert before.get("/me").status_code == 401
    assert sign_in(api, user, "password").status_code == 401
    api.ok(sign_in(api, user))


def test_a_password_that_is_refused_uses_nothing_up(api, person, monkeypatch):
    code = code_of(api, person)

    assert take(api, code, "").status_code == 422
    assert take(api, code, "x" * 2000).status_code == 422
    api.ok(take(api, code))


def test_the_refusal_is_the_same_for_every_end_of_an_invitation(api, make, other_api, make_other):
    ended = {}

    def invited(why):
        user = an_account(api, make)
        [made] = api.ok(invite(api, user))
        ended[why] = made["code"]
        return user, made

    user, made = invited("another")
    assert code_of(api, user) != made["code"]
    user, made = invited("expired")
    expire(api, made["id"])
    user, made = invited("a password set by an administrator")
    api.ok(api.put(f"/users/{user['id']}/password", {"password": PASSWORD}))
    user, made = invited("deleted")
    api.ok(api.delete(f"/users/{user['id']}/delete"))
    user, made = invited("deleted and brought back")
    api.ok(api.delete(f"/users/{user['id']}/delete"))
    api.ok(api.put(f"/users/{user['id']}/restore"))
    user, made = invited("taken back")
    assert api.ok(api.delete(f"/invitations/{made['id']}")) == {"id": made["id"], "deleted": True}
    assert api.delete(f"/invitations/{made['id']}").status_code == 404
    user, made = invited("used")
    api.ok(take(api, made["code"]))
    user, made = invited("own password")
    api.ok(api.put(f"/users/{user['id']}/password", {"password": "the first of them"}))
    own = make.signed_in(user, "the first of them")
    ended["own password"] = code_of(api, user, everybody=True)
    changed = {"password": PASSWORD, "current_password": "the first of them"}
    own.ok(own.put(f"/users/{user['id']}/password", changed))
    ended["of another school"] = code_of(other_api, an_account(other_api, make_other))
    ended["unknown"] = new_code()
    ended["none"] = "hello"

    for why, code in ended.items():
        assert is_refused(take(api, code)), why


def test_a_code_of_a_caller_without_read_results_ends_when_the_account_becomes_a_guardians(api, make):
    user, guardian = make.user()["user"], make.guardian(make.student())
    code = code_of(make.caller("write:users"), user, everybody=True)

    api.ok(api.put(f"/guardians/{guardian['id']}/account", {"user": user["id"]}))

    assert is_refused(take(api, code))


class TestPermissions:
    def test_nobody_invites_a_user_with_more_permissions(self, api, make):
        user = an_account(api, make)
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": make.role("read:metrics")["id"]}))
        caller = make.caller("write:users", "read:users", "read:results")

        for answer in (
            invite(caller, user),
            caller.post("/invitations/slips", {"users": [user["id"]]}),
            invite(caller, an_account(api, make), user),
        ):
            assert answer.status_code == 403
            assert "read:metrics" in answer.get_json()["message"]
        [made] = api.ok(invite(api, user))
        assert caller.delete(f"/invitations/{made['id']}").status_code == 403
        assert len(api.ok(api.get(f"/invitations?user={user['id']}"))["data"]) == 1
        api.ok(invite(make.caller("write:users", "read:metrics", "read:results"), user))

    def test_an_own_permission_of_the_user_is_needed_for_the_whole_school(self, api, make):
        user = an_account(api, make)
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": make.role("read:metrics", reach="OWN")["id"]}))

        assert invite(make.caller("write:users", "read:results"), user).status_code == 403
        api.ok(invite(make.caller("write:users", "read:metrics", "read:results"), user))

    @pytest.mark.parametrize("status", ["ACTIVE", "WITHDRAWN"])
    def test_a_students_account_needs_read_results(self, api, make, status):
        user = an_account(api, make)
        student = api.ok(api.get(f"/users/{user['id']}"))["student"]["id"]
        api.ok(api.patch(f"/students/{student}", {"status": status}))

        for answer in (
            invite(make.caller("write:users"), user),
            make.caller("write:users").post("/invitations/slips?format=xlsx", {"users": [user["id"]]}),
        ):
            assert (answer.status_code, "read:results" in answer.get_json()["message"]) == (403, True)
        [invited] = api.ok(invite(make.caller("write:users", "read:results"), user))
        assert make.caller("write:users").delete(f"/invitations/{invited['id']}").status_code == 403

    def test_a_guardians_account_needs_read_results(self, api, make):
        guardian = make.guardian(make.student())
        made = api.ok(api.put(f"/guardians/{guardian['id']}/account", {"username": f"g{uuid4()}"}))
        user = {"id": made["user"]}

        answer = invite(make.caller("write:users"), user)
        assert (answer.status_code, "read:results" in answer.get_json()["message"]) == (403, True)
        [invited] = api.ok(invite(make.caller("write:users", "read:results"), user))
        assert make.caller("write:users").delete(f"/invitations/{invited['id']}").status_code == 403


class TestOneself:
    def test_nobody_invites_themselves_with_any_permissions(self, api, make):
        student, me = an_account(api, make), api.ok(api.get("/me"))["user"]
        lesser = make.caller("write:users")

        for client, own in ((api, me), (lesser, lesser.user)):
            for users in ([own], [student, own]):
                body = {"users": [user["id"] for user in users], "everybody": True}
                for answer in (
                    client.post("/invitations", body),
                    client.post("/invitations/slips?format=xlsx", body),
                ):
                    assert (answer.status_code, "themselves" in answer.get_json()["message"]) == (403, True)
        assert api.ok(api.get("/invitations"))["total"] == 0

    def test_the_creators_token_of_an_account_does_not_invite_it(self, api, make):
        made = make.user()
        creator = api.using(token=made["access_token"]["access_token"])
        api.ok(api.put(f"/users/{made['user']['id']}/roles", {"role": make.role("write:users")["id"]}))
        assert creator.get("/me").status_code == 401
        # Of the account that its creator's token is of, as long as nobody has entered it.
        other = make.user()
        role = in_school(api, "SELECT id FROM roles WHERE name = 'Administrator'")[0].id
        in_school(
            api,
            "INSERT INTO user_roles (user_id, role_id, created_at) VALUES (:user, :role, :moment)",
            user=UUID(other["user"]["id"]),
            role=role,
            moment=now(),
        )
        creator = api.using(token=other["access_token"]["access_token"])

        assert invite(creator, other["user"], everybody=True).status_code == 403

    def test_of_a_batch_oneself_is_left_out(self, api, make):
        cohort = make.cohort()
        students = [make.student() for _ in range(2)]
        make.enrolled(cohort, *students)
        own, other = ({"id": student["user"]} for student in students)
        api.ok(
            api.put(
                f"/users/{own['id']}/roles",
                {"role": make.role("write:users", "read:metrics", "read:results")["id"]},
            )
        )
        api.ok(api.put(f"/users/{own['id']}/password", {"password": PASSWORD}))
        caller = make.signed_in(api.ok(api.get(f"/users/{own['id']}")), PASSWORD)
        body = {"batch": cohort["id"], "everybody": True}

        assert [invitation["user"] for invitation in caller.ok(caller.post("/invitations", body))] == [
            other["id"]
        ]
        assert caller.post("/invitations/slips?format=xlsx", body).status_code == 200
        assert [invitation["user"] for invitation in api.ok(api.get("/invitations"))["data"]] == [other["id"]]
        api.ok(api.patch(f"/cohorts/{cohort['id']}/remove_students", {"student_ids": [students[1]["id"]]}))
        assert caller.ok(caller.post("/invitations", body)) == []

    def test_ones_own_invitation_is_taken_away_without_a_permission(self, api, make, other_api, make_other):
        caller = make.caller()
        own = caller.user
        for client in (caller, Own(make).caller(make.user()["user"], "write:users")):
            own = client.user
            [mine] = api.ok(invite(api, own, everybody=True))
            [other] = api.ok(invite(api, an_account(api, make)))
            [foreign] = api.ok(invite(other_api, an_account(other_api, make_other)))
            told = {
                (answer.status_code, answer.get_json()["message"])
                for answer in (
                    client.delete(f"/invitations/{unreached}")
                    for unreached in (other["id"], foreign["id"], UNKNOWN_ID)
                )
            }
            assert [status for status, _ in told] == [403]

            assert client.ok(client.delete(f"/invitations/{mine['id']}")) == {
                "id": mine["id"],
                "deleted": True,
            }
            assert is_refused(take(api, mine["code"]))
            assert client.delete(f"/invitations/{mine['id']}").status_code == 403
        assert entries(api, "invitation")[0]["old"] == {"user": own["id"]}


class TestInvitees:
    def test_the_students_of_a_batch_in_the_order_of_the_class_list(self, api, make):
        cohort = make.cohort()
        names = ("Zainab", "Ẹniọlá", "Ada", "Émeka")
        students = [make.student(first_name=name, last_name="Bello") for name in names]
        api.ok(
            api.post(
                f"/cohorts/{cohort['id']}/enrollment",
                {"batch": cohort["id"], "students": [student["id"] for student in students]},
            )
        )
        with_password = {"id": students[2]["user"]}
        api.ok(api.put(f"/users/{with_password['id']}/password", {"password": PASSWORD}))

        made = api.ok(api.post("/invitations", {"batch": cohort["id"]}))

        assert [invitation["name"] for invitation in made] == ["Émeka Bello", "Ẹniọlá Bello", "Zainab Bello"]
        listed = api.ok(api.get(f"/invitations?batch={cohort['id']}"))
        assert [invitation["user"] for invitation in listed["data"]] == [
            invitation["user"] for invitation in made
        ]
        assert listed["total"] == 3
        assert set(listed["data"][0]) == {
            "id", "user", "username", "name", "email", "created_at", "created_by_name", "expires_at",
        }  # fmt: skip
        everybody = api.ok(api.post("/invitations", {"batch": cohort["id"], "everybody": True, "days": 1}))
        assert len(everybody) == 4
        assert not {invitation["code"] for invitation in made} & {
            invitation["code"] for invitation in everybody
        }

    def test_users_are_answered_in_their_order(self, api, make):
        users = [an_account(api, make, first_name=name) for name in ("Zainab", "Ada", "Musa")]

        assert [invitation["user"] for invitation in api.ok(invite(api, *users))] == [
            user["id"] for user in users
        ]

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "users"),
            ({"users": []}, "users"),
            ({"users": [UNKNOWN_ID]}, "users.0"),
            ({"users": "x"}, "users"),
            ({"users": [UNKNOWN_ID, UNKNOWN_ID]}, "users.1"),
            ({"users": [UNKNOWN_ID], "batch": UNKNOWN_ID}, "users"),
            ({"users": [str(uuid4()) for _ in range(501)]}, "users"),
            ({"batch": UNKNOWN_ID}, "batch"),
            ({"batch": UNKNOWN_ID, "days": 0}, "days"),
            ({"batch": UNKNOWN_ID, "days": 31}, "days"),
            ({"batch": UNKNOWN_ID, "days": "5"}, "days"),
            ({"batch": UNKNOWN_ID, "everybody": "yes"}, "everybody"),
            ({"users": [UNKNOWN_ID], "emails": ["ada@example.com"]}, "emails"),
        ],
    )
    def test_invalid_members_are_refused(self, api, body, field):
        answer = api.post("/invitations", body)

        assert answer.status_code == 422
        errors = answer.get_json()["errors"]
        assert field in {**errors, **errors.get("json", {})}

    def test_accounts_of_another_school_and_deleted_ones_are_unknown(self, api, make, make_other):
        theirs, deleted = make_other.user()["user"], make.user()["user"]
        api.ok(api.delete(f"/users/{deleted['id']}/delete"))

        for user in (theirs, deleted):
            assert invite(api, user).status_code == 422
            assert api.get(f"/invitations?user={user['id']}").status_code == 422
        assert api.get(f"/invitations?batch={make_other.cohort()['id']}").status_code == 422
        assert api.delete(f"/invitations/{UNKNOWN_ID}").status_code == 404

    def test_inviting_five_hundred_is_a_few_round_trips(self, api, make, messages):
        rows = [str(uuid4()) for _ in range(500)]
        in_school(
            api,
            "INSERT INTO users (id, username, username_key, first_name, last_name, gender, session_number,"
            " created_at) SELECT id, id, id, 'A', 'B', '', 0, now() FROM unnest(CAST(:ids AS uuid[])) AS id",
            ids=rows,
        )
        with messages() as sent:
            made = api.ok(api.post("/invitations", {"users": rows}))
        assert [invitation["user"] for invitation in made] == rows
        assert len(sent) <= 6

    def test_expired_invitations_go_with_a_new_one(self, api, make):
        for _ in range(3):
            expire(api, api.ok(invite(api, an_account(api, make)))[0]["id"])

        code_of(api, an_account(api, make))

        assert in_school(api, "SELECT count(*) FROM invitations") == [(1,)]


def test_no_code_is_kept_for_a_repeated_request(api, person):
    body = {"users": [person["id"]]}
    key = {"Idempotency-Key": "once more"}
    first, second = (api.ok(api.post("/invitations", body, headers=key)) for _ in range(2))

    assert first[0]["code"] != second[0]["code"]
    assert is_refused(take(api, first[0]["code"]))
    assert in_school(api, "SELECT count(*) FROM idempotency_keys") == [(0,)]


def test_a_get_uses_nothing_up_and_shows_no_code(api, person):
    [made] = api.ok(invite(api, person))

    for path in ("/invitations", f"/invitations?user={person['id']}"):
        assert made["code"] not in api.get(path).get_data(as_text=True)
        assert api.request("HEAD", path).status_code == 200
    api.ok(take(api, made["code"]))


def test_thirty_wrong_codes_of_an_address_are_enough_and_a_right_one_is_let_in(api, other_api, person):
    code = code_of(api, person)
    for number in range(30):
        assert is_refused(take(api, "none" if number % 2 else new_code()))

    for wrong in (new_code(), "none"):
        answer = take(api, wrong)
        assert answer.status_code == 429
        assert 0 < int(answer.headers["Retry-After"]) <= 60
    assert take(other_api, new_code()).status_code == 401
    elsewhere = {"environ_base": {"REMOTE_ADDR": "198.51.100.7"}}
    answer = api.post("/users/login/invitation", {"code": new_code(), "password": PASSWORD}, **elsewhere)
    assert answer.status_code == 401
    api.ok(take(api, code))


def test_of_twenty_takers_at_once_one_takes_an_invitation(committing):
    api = committing.api
    user = an_account(api, committing)
    code = code_of(api, user)

    answers = run_concurrently(
        20, lambda number: take(api.using(), code, f"correct horse battery {number}").status_code
    )

    assert answers.count(200) == 1
    assert set(answers) <= {200, 401, 429}
    api.ok(sign_in(api, user, f"correct horse battery {answers.index(200)}"))


def test_of_ten_invitations_at_once_a_single_code_of_each_user_is_valid(committing):
    api = committing.api
    users = [an_account(api, committing) for _ in range(3)]

    made = run_concurrently(
        10, lambda number: api.using().ok(invite(api.using(), *(users if number % 2 else users[::-1])))
    )

    for user in users:
        codes = [
            invitation["code"] for each in made for invitation in each if invitation["user"] == user["id"]
        ]
        assert len(set(codes)) == 10
    assert api.ok(api.get("/invitations"))["total"] == 3


def test_an_invited_student_with_a_photo_can_be_deleted(api, make):
    student = make.student()
    code = code_of(api, {"id": student["user"]})
    store_ways_in(api.school, student["user"], invitation=False)

    api.ok(api.delete(f"/students/{student['id']}"))

    assert is_refused(take(api, code))
    for table in ("invitations", "user_photos", "user_identities"):
        assert in_school(api, f"SELECT count(*) FROM {table}") == [(0,)]
