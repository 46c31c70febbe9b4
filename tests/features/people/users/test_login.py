"""Signing in, and how wrong passwords are answered and counted."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from uuid import uuid4

import argon2
import jwt
import pytest
from limits import RateLimitItemPerMinute

from school_service.auth import login_throttle as tries
from school_service.auth import passwords
from school_service.auth.login_throttle import LoginThrottle
from school_service.features.people.users import service
from tests.client import ApiClient
from tests.conftest import PASSWORD, make_place
from tests.threads import run_concurrently


def sign_in(api, username="admin", password=PASSWORD, **options):
    return api.post("/users/login", {"username": username, "password": password}, **options)


def content_of(answer):
    """The content of an answer, without the id of its request."""
    body = answer.get_json()
    del body["request_id"]
    return answer.status_code, body, answer.headers["WWW-Authenticate"]


WRONG = (
    401,
    {
        "code": 401,
        "status": "Unauthorized",
        "type": "wrong-credentials",
        "message": "The username or the password is wrong.",
    },
    "Bearer",
)


class TestSigningIn:
    def test_the_answer_is_the_user_a_token_and_the_permissions(self, api, make):
        user = make.user(username="ada", password="s3cret")["user"]
        role = make.role("write:students", "read:students", "read:roles")
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))

        answer = api.ok(sign_in(api, "ada", "s3cret"))

        assert set(answer) == {"user", "access_token", "permissions", "must_change_password"}
        assert answer["must_change_password"] is False
        assert answer["user"] == api.ok(api.get(f"/users/{user['id']}"))
        assert answer["permissions"] == role["permissions"]
        token = answer["access_token"]
        assert token == {"access_token": token["access_token"], "expires_in": 86400, "token_type": "Bearer"}
        caller = api.using(token=token["access_token"])
        assert caller.get("/roles").status_code == 200
        assert caller.get("/users").status_code == 403

    def test_the_token_works_in_the_users_school_alone(self, api, other_place):
        token = api.ok(sign_in(api))["access_token"]["access_token"]

        assert api.using(token=token).get("/users").status_code == 200
        assert api.using(token=token, school=other_place.id).get("/users").status_code == 403
        assert api.using(token=token, school=None).get("/roles").status_code == 200

    def test_the_token_lasts_a_day(self, api, place):
        before = int(time.time())
        token = api.ok(sign_in(api))["access_token"]["access_token"]

        claims = jwt.decode(token, options={"verify_signature": False})
        assert before <= claims["iat"] <= time.time()
        assert claims["exp"] - claims["iat"] == 86400
        assert claims["sub"] == str(place.admin_id)

    def test_any_token_of_the_school_will_do(self, make):
        nobody = make.caller()

        assert sign_in(nobody).status_code == 200

    def test_a_token_is_needed(self, api, other_api, place):
        assert sign_in(api.using(token=None)).status_code == 401
        assert sign_in(api.using(token="garbage")).status_code == 401
        assert sign_in(other_api.using(school=place.id)).status_code == 403
        assert sign_in(api.using(school=None)).status_code == 400

    def test_an_administrator_of_the_other_school_is_another(self, api, other_api):
        api.ok(api.post("/users", {**NEW, "username": "ada", "password": "ours"}))
        other_api.ok(other_api.post("/users", {**NEW, "username": "ada", "password": "theirs"}))

        assert sign_in(api, "ada", "ours").status_code == 200
        assert sign_in(api, "ada", "theirs").status_code == 401
        assert sign_in(other_api, "ada", "theirs").status_code == 200

    @pytest.mark.parametrize(
        "password",
        [
            " ",
            "  two spaces  ",
            "\t\n",
            "x",
            "пароль",
            "密码",
            "😀" * 250,
            "a\u0301",
            "\u200b",
            "%s",
            "x" * 1000,
            "\x7f\x01",
        ],
        ids=lambda password: repr(password)[:12],
    )
    def test_a_password_is_taken_as_it_is(self, api, password):
        api.ok(api.post("/users", {**NEW, "password": password}))

        assert sign_in(api, "ada", password).status_code == 200
        for other in (password + " ", " " + password, password + "x", password[:-1] or "y"):
            if 0 < len(other) <= 1000:
                assert sign_in(api, "ada", other).status_code == 401

    def test_composed_and_decomposed_letters_differ_in_passwords_alone(self, api):
        composed, decomposed = "n\u00e9e", "ne\u0301e"
        api.ok(api.post("/users", {**NEW, "username": composed, "password": composed}))

        assert sign_in(api, composed, composed).status_code == 200
        assert sign_in(api, composed, decomposed).status_code == 401
        assert sign_in(api, decomposed, composed).status_code == 200

    def test_a_username_is_trimmed_and_its_case_does_not_count(self, api):
        api.ok(api.post("/users", {**NEW, "username": "Ada"}))

        for username in ("Ada", "  Ada\n", "ada", "ADA", "\uff21da", "a\u00adda"):
            assert api.ok(sign_in(api, username, NEW["password"]))["user"]["username"] == "Ada"
        assert sign_in(api, "Ada", NEW["password"].upper()).status_code == 401

    @pytest.mark.parametrize("field", ["username", "password"])
    @pytest.mark.parametrize(
        "value", [..., None, "", 5, True, [], {}, "a\0b", "\ud800", "x" * 1001], ids=lambda v: repr(v)[:12]
    )
    def test_a_field_that_is_no_text_is_invalid(self, api, field, value):
        body = {"username": "admin", "password": PASSWORD, field: value}

        answer = api.post("/users/login", {name: given for name, given in body.items() if given is not ...})

        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == [field]

    def test_an_unknown_field_is_invalid(self, api):
        assert (
            api.post("/users/login", {"username": "admin", "password": PASSWORD, "x": 1}).status_code == 422
        )


NEW = {"username": "ada", "password": "s3cret", "first_name": "Ada", "last_name": "Obi", "gender": "FEMALE"}


class CountingHasher(argon2.PasswordHasher):
    """Notes the cost of each hash that it verifies."""

    def __init__(self, **cost):
        super().__init__(memory_cost=8, parallelism=1, **cost)
        self.verified = []

    def verify(self, hash, password):
        self.verified.append(argon2.extract_parameters(hash))
        return super().verify(hash, password)


class TestAWrongOne:
    def test_wrong_user_and_wrong_password_are_answered_alike(self, api, make):
        deleted, student = make.user(username="gone")["user"], make.student()
        api.ok(api.delete(f"/users/{deleted['id']}/delete"))

        for username, password in (
            ("admin", "wrong"),
            ("nobody", PASSWORD),
            ("Admin", PASSWORD.upper()),
            ("gone", "a password"),
            (student["admission_number"], "a password"),
            (student["admission_number"], " "),
            ("' OR 1=1 --", PASSWORD),
            ("%", PASSWORD),
        ):
            assert content_of(sign_in(api, username, password)) == WRONG

    def test_the_same_work_is_done_for_known_and_unknown_users(self, api, make, monkeypatch):
        deleted, student = make.user(username="gone")["user"], make.student()
        api.ok(api.delete(f"/users/{deleted['id']}/delete"))
        hasher = CountingHasher(time_cost=2)
        monkeypatch.setattr(passwords, "hasher", hasher)
        make.user(username="ada")

        for username in ("ada", "nobody", "gone", student["admission_number"]):
            sign_in(api, username, "wrong")

        assert len(hasher.verified) == 4
        assert len(set(map(str, hasher.verified))) == 1

    def test_a_hash_of_another_cost_is_renewed_by_signing_in(self, api, make, monkeypatch):
        make.user(username="ada")
        hasher = CountingHasher(time_cost=3)
        monkeypatch.setattr(passwords, "hasher", hasher)

        assert sign_in(api, "ada", "wrong").status_code == 401
        for _ in range(3):
            assert sign_in(api, "ada", "a password").status_code == 200

        assert [parameters.time_cost for parameters in hasher.verified] == [1, 1, 3, 3]
        assert sign_in(api, "ada", "wrong").status_code == 401


class TestTooManyWrongOnes:
    def wrong(self, api, times, username="admin", **options):
        return [sign_in(api, username, f"wrong {number}", **options).status_code for number in range(times)]

    def test_after_ten_in_a_minute_the_username_is_refused(self, api):
        assert self.wrong(api, 10) == [401] * 10

        answer = sign_in(api)

        assert answer.status_code == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert answer.get_json()["message"] == "Too many wrong passwords. Try again later."
        assert self.wrong(api, 5) == [429] * 5

    def test_an_unknown_username_is_counted_alike(self, api):
        assert self.wrong(api, 12, "nobody") == [401] * 10 + [429] * 2

    def test_a_right_password_after_nine_wrong_ones_works(self, api):
        assert self.wrong(api, 9) == [401] * 9

        assert sign_in(api).status_code == 200
        assert sign_in(api).status_code == 200
        assert self.wrong(api, 2) == [401, 429]

    def test_right_passwords_are_not_counted(self, api):
        assert {sign_in(api).status_code for _ in range(25)} == {200}

    def test_other_users_are_not_affected(self, api, make):
        make.user(username="ada", password="s3cret")
        assert self.wrong(api, 11)[-1] == 429

        assert sign_in(api, "ada", "s3cret").status_code == 200
        assert sign_in(api, "nobody", "x").status_code == 401
        for neighbour in ("ádmin", "admin2", "admi", "admin/", "admin/10"):
            assert sign_in(api, neighbour, "x").status_code == 401

    def test_the_other_schools_user_of_that_name_is_not_affected(self, api, other_api):
        assert self.wrong(api, 11)[-1] == 429

        assert sign_in(other_api).status_code == 200

    def test_spaces_around_the_username_are_no_way_out(self, api):
        assert self.wrong(api, 10) == [401] * 10

        assert sign_in(api, " admin ").status_code == 429

    def test_capitals_are_no_way_out(self, api):
        assert self.wrong(api, 5) + self.wrong(api, 5, "ADMIN") == [401] * 10

        assert sign_in(api, "Admin").status_code == 429
        assert sign_in(api, "\uff41dmin").status_code == 429

    def test_another_token_is_no_way_out(self, api, make):
        another = make.caller()
        assert self.wrong(api, 10) == [401] * 10

        assert sign_in(another).status_code == 429

    def test_a_strangers_wrong_ones_keep_nobody_else_out(self, api):
        assert self.wrong(api, 11)[-1] == 429

        assert sign_in(api, environ_base={"REMOTE_ADDR": "10.0.0.9"}).status_code == 200

    def test_two_hundred_through_one_address_keep_the_right_password_in(self, api):
        proxy = {"REMOTE_ADDR": "10.0.0.1"}
        for number in range(200):
            assert sign_in(api, f"pupil{number}", "x", environ_base=proxy).status_code == 401

        assert sign_in(api, environ_base=proxy).status_code == 200

    def test_guesses_at_one_account_are_slowed_to_ten(self, api):
        answers = [sign_in(api, password=f"guess {number}").status_code for number in range(20)]

        assert answers == [401] * 10 + [429] * 10

    def test_beyond_ten_from_anywhere_an_address_has_one_try(self, api):
        def guess(address):
            return sign_in(api, password="x", environ_base={"REMOTE_ADDR": address}).status_code

        assert [guess(f"10.0.1.{number}") for number in range(10)] == [401] * 10

        assert [guess("10.0.2.1") for _ in range(3)] == [401, 429, 429]
        assert sign_in(api, environ_base={"REMOTE_ADDR": "10.0.2.2"}).status_code == 200

    def test_the_addresses_of_a_network_count_as_one(self, api):
        def guess(address):
            return sign_in(api, password="x", environ_base={"REMOTE_ADDR": address}).status_code

        of_link = [guess(f"2001:db8:1:2::{number:x}") for number in range(15)]
        assert of_link == [401] * 10 + [429] * 5
        # Beyond ten from everywhere, a network has one; a site four.
        of_site = Counter(guess(f"2001:db8:1:{number:x}::1") for number in range(3, 20))
        assert of_site[401] <= 4

    def test_beyond_a_cap_known_addresses_alone_go_on(self, api, make, messages):
        make.user(username="ada", password="s3cret")
        home, other = "2001:db8:aa:1::5", "198.51.100.7"
        assert sign_in(api, "ada", "s3cret", environ_base={"REMOTE_ADDR": home}).status_code == 200

        def guess(number):
            return sign_in(
                api, "ada", "x", environ_base={"REMOTE_ADDR": f"10.7.{number // 250}.{number % 250}"}
            )

        answers = Counter(guess(number).status_code for number in range(105))

        assert answers == {401: 100, 429: 5}
        refused = sign_in(api, "ada", "s3cret", environ_base={"REMOTE_ADDR": other})
        assert refused.status_code == 429
        assert 60 < int(refused.headers["Retry-After"]) <= 3600
        # Of where one has signed in, the network counts.
        with messages() as sent:
            known = sign_in(api, "ada", "s3cret", environ_base={"REMOTE_ADDR": "2001:db8:aa:1::99"})
        assert known.status_code == 200
        capped = len(sent)
        with messages() as sent:
            assert sign_in(api).status_code == 200
        assert capped == len(sent)

    def test_the_cap_is_the_same_for_an_unknown_username(self, api):
        answers = Counter(
            sign_in(api, "nobody", "x", environ_base={"REMOTE_ADDR": f"10.8.0.{number}"}).status_code
            for number in range(105)
        )

        assert answers == {401: 100, 429: 5}

    def test_an_address_is_known_for_ninety_days(self, api, make, monkeypatch):
        make.user(username="ada", password="s3cret")
        here = {"REMOTE_ADDR": "203.0.113.4"}
        assert sign_in(api, "ada", "s3cret", environ_base=here).status_code == 200
        monkeypatch.setattr(LoginThrottle, "is_capped", lambda *_: True)
        assert sign_in(api, "ada", "s3cret", environ_base=here).status_code == 200
        assert sign_in(api, "ada", "s3cret").status_code == 429

        monkeypatch.setattr(service, "KNOWN_FOR", timedelta(0))

        assert sign_in(api, "ada", "s3cret", environ_base=here).status_code == 429

    def test_an_address_known_of_another_user_or_school_is_not_known(self, api, other_api, monkeypatch):
        here = {"REMOTE_ADDR": "203.0.113.9"}
        assert sign_in(other_api, environ_base=here).status_code == 200
        api.ok(api.post("/users", NEW))
        assert sign_in(api, "ada", "s3cret", environ_base=here).status_code == 200
        monkeypatch.setattr(LoginThrottle, "is_capped", lambda *_: True)

        assert sign_in(api, environ_base=here).status_code == 429
        assert sign_in(api, "ada", "s3cret", environ_base=here).status_code == 200

    def test_a_caller_who_goes_on_waits_longer(self, api, monkeypatch):
        answers, start = [], time.time()
        for minute in range(12):
            monkeypatch.setattr(time, "time", lambda now=start + 61 * minute: now)
            answers.append(self.wrong(api, 10).count(401))

        assert answers[:3] == [10, 10, 10]
        assert sum(answers[:9]) == 30
        assert sum(answers) == 50

    def test_signing_in_without_end_is_bounded(self, api, monkeypatch):
        monkeypatch.setattr(tries, "SUCCESS_LIMIT", RateLimitItemPerMinute(3, namespace="test"))

        assert [sign_in(api).status_code for _ in range(5)] == [200, 200, 200, 429, 429]

    def test_the_right_password_works_again_after_a_minute(self, api, monkeypatch):
        assert self.wrong(api, 11)[-1] == 429
        later = time.time() + 61
        monkeypatch.setattr(time, "time", lambda: later)

        assert sign_in(api).status_code == 200

    def test_the_wrong_ones_leave_the_window_one_by_one(self, api, monkeypatch):
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now)
        assert self.wrong(api, 5) == [401] * 5
        monkeypatch.setattr(time, "time", lambda: now + 40)
        assert self.wrong(api, 6) == [401] * 5 + [429]

        monkeypatch.setattr(time, "time", lambda: now + 61)
        assert self.wrong(api, 6) == [401] * 5 + [429]

    def test_wrong_passwords_are_counted_by_address_too(self, api, monkeypatch):
        monkeypatch.setattr(tries, "ADDRESS_LIMIT", RateLimitItemPerMinute(15, namespace="test"))
        here, there = {"REMOTE_ADDR": "10.0.0.1"}, {"REMOTE_ADDR": "10.0.0.2"}
        answers = [sign_in(api, f"user{number}", "x", environ_base=here).status_code for number in range(17)]

        assert answers == [401] * 15 + [429] * 2
        assert sign_in(api, environ_base=here).status_code == 429
        assert sign_in(api, environ_base=there).status_code == 200

    def test_one_school_does_not_use_up_the_tries_of_another_from_an_address(
        self, api, other_api, monkeypatch
    ):
        monkeypatch.setattr(tries, "ADDRESS_LIMIT", RateLimitItemPerMinute(3, namespace="test"))
        assert self.wrong(api, 4)[-1] == 429

        assert sign_in(other_api).status_code == 200

    def test_of_twenty_at_once_ten_are_looked_at(self, app, document, tenancy):
        place = make_place(app, tenancy, "Christ the King College, Onitsha")
        api = ApiClient(app, document, place.admin_token, place.id)

        answers = run_concurrently(
            20, lambda number: sign_in(api.using(), password=f"wrong {number}").status_code
        )

        assert Counter(answers) == {401: 10, 429: 10}
        assert sign_in(api).status_code == 429

    def test_an_unauthenticated_stranger_counts_nothing(self, api):
        for _ in range(12):
            assert sign_in(api.using(token=None), password="wrong").status_code == 401
            assert sign_in(api.using(school=uuid4()), password="wrong").status_code == 403

        assert sign_in(api).status_code == 200
