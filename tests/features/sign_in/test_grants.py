"""Codes and refresh tokens: their exchange, once, and the ends of their sessions."""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from urllib.parse import urlencode

import jwt
import pytest
import urllib3
from sqlalchemy import text

from tenants.clock import now
from tenants.connections.deadline import DeadlineCursor
from tenants.registry.schools import schema_name
from tests.cli.program import DEADLINE, serving, wait_for
from tests.client import ApiClient
from tests.features.scores.scoresheets.test_killed_server import environment, read_value, watching_schools
from tests.features.sign_in.conftest import ISSUER, PUBLIC_URL, Client, Entrance, Person
from tests.threads import run_concurrently

REFUSED = "The code or token is not valid, or not any more."


@pytest.fixture(scope="module")
def person(shared_entrance: Entrance) -> Person:
    return shared_entrance.person("read:classrooms", "write:classrooms", "read:students")


@pytest.fixture(scope="module")
def client(shared_entrance: Entrance) -> Client:
    return shared_entrance.client()


@pytest.fixture
def sent(monkeypatch):
    """The statement batches that are sent, to schools and to the registry."""
    batches: list[str] = []
    execute = DeadlineCursor.execute

    def counting(self, query, vars=None):
        # The pool asks so whether a connection to the registry still lives.
        if query != "SELECT 1":
            batches.append(str(query))
        return execute(self, query, vars)

    monkeypatch.setattr(DeadlineCursor, "execute", counting)
    return batches


def is_refused(answer, error="invalid_grant", status=400):
    """Tell whether an answer is the error of RFC 6749, and nothing of a token is in it."""
    assert (answer.status_code, answer.json["error"]) == (status, error), answer.json
    assert "access_token" not in answer.json
    assert error != "invalid_grant" or answer.json["error_description"] == REFUSED
    assert answer.headers["Cache-Control"] == "no-store"
    return True


def changed(token: str, place: int = -1) -> str:
    """Change one bit of a code or token."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    letter = letters[letters.index(token[place]) ^ 1]
    return token[:place] + letter + token[len(token) + place + 1 if place < 0 else place + 1 :]


def claims_of(token: str) -> dict:
    return jwt.decode(token, options={"verify_signature": False})


def works(entrance: Entrance, token: str) -> bool:
    answer = entrance.with_token(token).get("/classrooms")
    assert answer.status_code in {200, 401}
    return answer.status_code == 200


# Answers.


def test_a_code_is_exchanged_for_the_tokens_of_a_session(entrance, person, client):
    got = client.sign_in(person, scope="openid profile unknown", nonce="n-1", state="x")

    assert got.keys() == {
        *("access_token", "token_type", "expires_in", "refresh_token", "scope", "school_id", "id_token")
    }
    assert (got["token_type"], got["expires_in"], got["scope"]) == ("Bearer", 3600, "openid profile")
    assert got["school_id"] == str(entrance.place.id)
    access = claims_of(got["access_token"])
    assert access["iss"].startswith("urn:uuid:")
    assert (access["azp"], access["client_session"], access["scope"]) == (client.id, 0, "openid profile")
    assert "permissions" not in access
    assert access["exp"] - access["iat"] == 3600
    told = claims_of(got["id_token"])
    assert told == {
        "iss": ISSUER,
        "sub": person.id,
        "aud": client.id,
        "iat": told["iat"],
        "exp": told["iat"] + 3600,
        "auth_time": told["auth_time"],
        "nonce": "n-1",
        "sid": access["sid"],
        "amr": ["pwd"],
        "school_id": str(entrance.place.id),
        "name": "Adé Ọláwálé",
        "given_name": "Adé",
        "family_name": "Ọláwálé",
        "preferred_username": person.username,
    }
    assert abs(told["auth_time"] - time.time()) < 60
    assert works(entrance, got["access_token"])


def test_without_openid_there_is_no_id_token_and_without_profile_no_name(entrance, person, client):
    assert "id_token" not in client.sign_in(person)
    told = claims_of(client.sign_in(person, scope="openid")["id_token"])
    assert not {"name", "preferred_username", "nonce"} & told.keys()


def test_a_refresh_gives_another_token_and_ends_the_one_before(entrance, person, client):
    first = client.sign_in(person, scope="openid", nonce="n-1")
    second = client.refresh(first["refresh_token"]).json
    third = client.refresh(second["refresh_token"]).json

    assert len({each["refresh_token"] for each in (first, second, third)}) == 3
    assert claims_of(third["id_token"])["auth_time"] == claims_of(first["id_token"])["auth_time"]
    # The nonce is of the one request that it came with.
    assert claims_of(first["id_token"])["nonce"] == "n-1"
    again = client.refresh(second["refresh_token"]).json
    assert not any("nonce" in claims_of(each["id_token"]) for each in (second, third, again))
    assert all(works(entrance, each["access_token"]) for each in (first, second, third))
    # The second is not the last one any more: its use ends the session, the third's too.
    assert is_refused(client.refresh(first["refresh_token"]))
    assert is_refused(client.refresh(third["refresh_token"]))
    assert not works(entrance, third["access_token"])


def test_the_same_token_gets_the_same_successor_for_a_minute(entrance, person, client):
    first = client.sign_in(person)
    second = client.refresh(first["refresh_token"]).json
    before = entrance.sql("SELECT * FROM user_sessions WHERE user_id = %s", person.id)
    again = client.refresh(first["refresh_token"]).json

    assert again["refresh_token"] == second["refresh_token"]
    assert entrance.sql("SELECT * FROM user_sessions WHERE user_id = %s", person.id) == before
    later(entrance, first, "rotated_at", -timedelta(seconds=61))
    assert is_refused(client.refresh(first["refresh_token"]))
    assert not works(entrance, again["access_token"])


WAITING = text(
    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    " AND query LIKE '%user_sessions%'"
)


@pytest.mark.program
@pytest.mark.parametrize("stored", [False, True], ids=["before it is stored", "after it was stored"])
def test_a_refresh_whose_server_is_killed_can_be_sent_again(
    entrance, person, client, settings, tmp_path, stored
):
    first = client.sign_in(person)
    sid = claims_of(first["access_token"])["sid"]
    sessions = f"{schema_name(entrance.place.id)}.user_sessions"

    def refresh(service):
        form = {
            "client_id": client.id,
            "grant_type": "refresh_token",
            "refresh_token": first["refresh_token"],
        }
        # Whether the answer still goes out or not: nobody reads it.
        with suppress(urllib3.exceptions.HTTPError):
            urllib3.request(
                "POST",
                f"{service.base_url}/auth/oauth/token",
                body=urlencode(form),
                headers={"Content-Type": "application/x-www-form-urlencoded"},
                timeout=DEADLINE,
            )

    with (
        serving(cwd=tmp_path, settings={**environment(settings), "PUBLIC_URL": PUBLIC_URL}) as service,
        ThreadPoolExecutor() as threads,
        watching_schools(entrance.tenancy) as watching,
    ):
        with entrance.tenancy.admin.begin() as locking:
            locking.execute(text(f"SELECT FROM {sessions} WHERE id = '{sid}' FOR UPDATE"))
            threads.submit(refresh, service)
            wait_for(lambda: read_value(watching, WAITING), "the refresh at the session that is locked")
            if not stored:
                service.process.kill()
        if stored:
            rotated = text(f"SELECT rotated_at IS NOT NULL FROM {sessions} WHERE id = '{sid}'")
            wait_for(lambda: read_value(watching, rotated), "the refresh that is stored")
            service.process.kill()
        service.process.wait()

    second = client.refresh(first["refresh_token"])
    assert second.status_code == 200
    assert client.refresh(second.json["refresh_token"]).status_code == 200


def later(entrance: Entrance, got: dict, column: str, by: timedelta) -> None:
    """Set a moment of a session by the present one."""
    sid = claims_of(got["access_token"])["sid"]
    entrance.sql(f"UPDATE user_sessions SET {column} = %s WHERE id = %s", now() + by, sid)


# Refusals.


@pytest.mark.parametrize(
    ("verifier", "error"),
    [
        ("x" * 43, "invalid_grant"),
        ("x" * 128, "invalid_grant"),
        ("-._~" * 11, "invalid_grant"),
        ("x" * 42, "invalid_request"),
        ("x" * 129, "invalid_request"),
        ("x" * 43 + "\n", "invalid_request"),
        ("x" * 42 + "+", "invalid_request"),
        ("x" * 42 + "\0", "invalid_request"),
        ("x", "invalid_request"),
        ("", "invalid_request"),
        (None, "invalid_request"),
        ("ọ" * 43, "invalid_request"),
        ("\uff11" * 43, "invalid_request"),
    ],
)
def test_a_wrong_verifier_is_refused_and_uses_nothing_up(person, client, verifier, error):
    code, right = client.begin(person)

    assert is_refused(client.exchange(code, verifier), error)
    assert client.exchange(code, right).status_code == 200


def test_a_code_of_another_client_is_refused_and_not_used_up(entrance, person, client):
    code, verifier = client.begin(person)

    assert is_refused(entrance.client().exchange(code, verifier))
    assert is_refused(client.exchange(code, verifier, redirect_uri="https://app.example.com/other"))
    assert is_refused(client.exchange(changed(code), verifier))
    assert is_refused(client.exchange(changed(code, 6), verifier))
    assert is_refused(client.exchange(code[:-1], verifier))
    assert is_refused(client.exchange(f"{code}=", verifier))
    assert client.exchange(code, verifier, redirect_uri=client.redirect_uri).status_code == 200


def test_a_code_is_good_for_a_minute(entrance, person, client):
    code, verifier = client.begin(person)
    moment = now() - timedelta(seconds=1)
    entrance.sql(
        "UPDATE user_sessions SET idle_until = %s WHERE user_id = %s AND NOT code_used", moment, person.id
    )

    assert is_refused(client.exchange(code, verifier))


def test_a_refresh_token_with_a_bit_changed_ends_nothing_unless_it_names_the_session(
    entrance, person, client
):
    got = client.sign_in(person)
    token = got["refresh_token"]

    for other in (changed(token, 8), changed(token, 30), token[:-1], f"{token}A", "ssr_", "ssr_ọ", token[4:]):
        assert is_refused(client.refresh(other))
    assert works(entrance, got["access_token"])
    assert is_refused(client.refresh(changed(token, -3)))
    assert not works(entrance, got["access_token"])


def test_a_refresh_token_of_another_client_ends_the_session(entrance, person, client):
    got = client.sign_in(person)

    assert is_refused(entrance.client().refresh(got["refresh_token"]))
    assert not works(entrance, got["access_token"])
    assert is_refused(client.refresh(got["refresh_token"]))


def test_a_code_that_is_used_again_ends_its_session(entrance, person, client, caplog):
    code, verifier = client.begin(person)
    got = client.exchange(code, verifier).json

    assert is_refused(client.exchange(code, "y" * 43))
    assert works(entrance, got["access_token"])
    with caplog.at_level(logging.WARNING):
        assert is_refused(client.exchange(code, verifier))
    assert not works(entrance, got["access_token"])
    (warned,) = (record for record in caplog.records if "used again" in record.getMessage())
    assert warned.session == claims_of(got["access_token"])["sid"]
    assert code not in caplog.text
    (entry, *_) = entrance.admin.get("/audit?entity=user-session").json["data"]
    assert (entry["action"], entry["entity_id"], entry["actor"]) == ("delete", person.id, client.id)
    assert entry["old"] == {"session": warned.session, "client": client.id, "ended": "REUSED"}


def test_a_client_is_known_by_its_secret_or_is_public(entrance, person):
    public, confidential = entrance.client(), entrance.client(secret=True)
    code, verifier = public.begin(person)
    assert is_refused(public.exchange(code, verifier, client_secret="guessed"), "invalid_client", 401)
    assert public.exchange(code, verifier, client_secret="").status_code == 200
    code, verifier = confidential.begin(person)
    for wrong in (None, "", "guessed"):
        answer = confidential.exchange(code, verifier, client_secret=wrong)
        assert is_refused(answer, "invalid_client", 401)
        assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    got = confidential.exchange(code, verifier)
    assert got.status_code == 200
    assert is_refused(
        confidential.refresh(got.json["refresh_token"], client_secret="guessed"), "invalid_client", 401
    )
    assert is_refused(confidential.form(grant_type="refresh_token"), "invalid_request")
    assert is_refused(public.form(grant_type="client_credentials"), "unauthorized_client")
    assert is_refused(public.form(grant_type="password", username="a"), "unsupported_grant_type")
    assert is_refused(
        public.form(grant_type="refresh_token", refresh_token="a", client_id="nobody"), "invalid_client", 401
    )
    assert (
        public.form(grant_type="refresh_token", refresh_token=["a", "b"]).json["error"] == "invalid_request"
    )


@pytest.mark.parametrize("grant", ["authorization_code", "refresh_token"])
def test_a_grant_of_people_is_no_json(entrance, client, grant):
    caller = entrance.with_token(None)
    for sent in ({"grant_type": grant}, {"grant_type": grant, "refresh_token": "a", "client_id": client.id}):
        answer = caller.post("/auth/oauth/token", sent)
        assert is_refused(answer, "invalid_request")
        assert answer.json["error_description"] == f"The grant {grant} is sent as a form."
    for other in ("client_credentials", "password", None, [grant]):
        assert caller.post("/auth/oauth/token", {"grant_type": other}).status_code == 422
    assert is_refused(caller.post("/auth/oauth/revoke", {"token": "a"}), "invalid_request")


def test_an_address_with_too_many_refused_ones_waits(entrance, client, monkeypatch):
    from limits import RateLimitItemPerMinute

    from school_service.auth import login_throttle

    monkeypatch.setattr(login_throttle, "GRANT_FAILURES", RateLimitItemPerMinute(3, namespace="few-grants"))
    for _ in range(3):
        assert is_refused(client.refresh("ssr_guessed"))

    answer = client.refresh("ssr_guessed")

    assert (answer.status_code, answer.json["error"]) == (429, "temporarily_unavailable")
    assert int(answer.headers["Retry-After"]) > 0


def test_a_session_ends_for_want_of_use_and_in_any_case(entrance, person):
    client = entrance.client(idle_days=7, session_days=10)
    got = client.sign_in(person)
    sid = claims_of(got["access_token"])["sid"]
    [(created, idle, ends)] = entrance.sql(
        "SELECT created_at, idle_until, expires_at FROM user_sessions WHERE id = %s", sid
    )
    assert abs(idle - created - timedelta(days=7)) < timedelta(minutes=1)
    assert ends - created == timedelta(days=10)
    # A refresh does not carry it beyond its end, and its access tokens end with it.
    for left, lifetime in ((timedelta(days=1), 3600), (timedelta(seconds=90), 90)):
        end = now() + left
        entrance.sql("UPDATE user_sessions SET expires_at = %s, idle_until = %s WHERE id = %s", end, end, sid)
        got = client.refresh(got["refresh_token"]).json
        assert lifetime - 60 < got["expires_in"] <= lifetime
        [(idle, ends)] = entrance.sql("SELECT idle_until, expires_at FROM user_sessions WHERE id = %s", sid)
        assert idle == ends == end
    assert works(entrance, got["access_token"])
    later(entrance, got, "idle_until", timedelta(seconds=-1))
    assert not works(entrance, got["access_token"])
    assert is_refused(client.refresh(got["refresh_token"]))


# At once.


def test_of_many_exchanges_of_one_code_one_gives_a_session_which_then_ends(entrance, person, client):
    code, verifier = client.begin(person)

    answers = run_concurrently(20, lambda _: client.exchange(code, verifier))

    (got,) = (answer.json for answer in answers if answer.status_code == 200)
    assert sum(answer.status_code == 400 for answer in answers) == 19, [
        answer.json for answer in answers if answer.status_code not in {200, 400}
    ]
    assert not works(entrance, got["access_token"])


def test_many_refreshes_with_one_token_get_one_successor(entrance, person, client):
    first = client.sign_in(person)

    answers = run_concurrently(20, lambda _: client.refresh(first["refresh_token"]))

    assert {answer.status_code for answer in answers} == {200}
    (successor,) = {answer.json["refresh_token"] for answer in answers}
    assert client.refresh(successor).status_code == 200


def test_a_person_has_twenty_sessions_at_most(entrance, client):
    person = entrance.person()
    oldest = client.sign_in(person)
    begun = [client.begin(person) for _ in range(24)]
    run_concurrently(24, lambda number: client.exchange(*begun[number]))

    assert entrance.sql("SELECT count(*) FROM user_sessions WHERE user_id = %s", person.id) == [(20,)]
    assert not works(entrance, oldest["access_token"])


def test_expired_sessions_are_swept_by_later_sign_ins(entrance, client):
    person, other = entrance.person(), entrance.person()
    for _ in range(25):
        client.begin(person)
    entrance.sql("UPDATE user_sessions SET idle_until = %s WHERE user_id = %s", now(), person.id)
    client.begin(other)
    client.begin(other)

    assert entrance.sql("SELECT count(*) FROM user_sessions WHERE user_id = %s", person.id) == [(0,)]


# Costs.


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (None, b""),
        ("application/json", b'{"token": "a", "client_id": "b"}'),
        ("application/json", b"{"),
        ("text/plain", b"token=a&client_id=b"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\na\r\n--x--',
        ),
        ("application/x-www-form-urlencoded", b""),
        ("APPLICATION/x-www-form-urlencoded; charset=utf-8", b"token="),
        ("nonsense", b"token=a"),
    ],
    ids=["nothing", "JSON", "no JSON", "text", "multipart", "an empty form", "an empty token", "nonsense"],
)
def test_a_revocation_without_a_form_is_an_invalid_request(entrance, content_type, body):
    caller = ApiClient(entrance.app, entrance.document)
    answer = caller.request("POST", "/auth/oauth/revoke", data=body, content_type=content_type)

    assert is_refused(answer, "invalid_request")
    # The members of every error are there, too.
    assert (answer.json["code"], answer.json["status"]) == (400, "Bad Request")
    assert answer.json["message"] == answer.json["error_description"]
    assert "token" in answer.json["message"] or "form" in answer.json["message"]


def test_messages(entrance, person, sent):
    public, confidential = entrance.client(), entrance.client(secret=True)
    for client, of_registry in ((public, 1), (confidential, 2)):
        code = client.begin(person, scope="openid")
        sent.clear()
        got = client.exchange(*code).json
        assert len(sent) <= of_registry + 4, sent
        sent.clear()
        got = client.refresh(got["refresh_token"]).json
        assert len(sent) <= of_registry + 4, sent
        caller = entrance.with_token(got["access_token"])
        for path in ("/classrooms", "/auth/userinfo", "/me"):
            caller.get(path)
            sent.clear()
            assert caller.get(path).status_code == 200
            assert len(sent) == 1, (path, sent)
        sent.clear()
        assert caller.request("POST", "/auth/userinfo").status_code == 200
        assert len(sent) == 1
        sent.clear()
        assert client.revoke(got["refresh_token"]).status_code == 200
        assert len(sent) <= of_registry + 4, sent


# A backup, and stored columns.


def test_nothing_that_is_stored_is_a_code_or_token(entrance, person, client):
    code, verifier = client.begin(person)
    got = client.exchange(code, verifier).json
    again = client.refresh(got["refresh_token"]).json
    (row,) = entrance.sql(
        "SELECT row_to_json(s)::text FROM user_sessions s WHERE id = %s",
        claims_of(got["access_token"])["sid"],
    )

    for secret in (code, got["refresh_token"], again["refresh_token"]):
        assert secret not in row[0]
        assert secret[-43:] not in row[0]


def test_no_code_or_token_is_in_a_log(entrance, person, client, caplog):
    with caplog.at_level(logging.DEBUG):
        code, verifier = client.begin(person, state="a-state")
        got = client.exchange(code, verifier).json
        again = client.refresh(got["refresh_token"]).json
        client.revoke(again["refresh_token"])
        client.refresh(again["refresh_token"])
    logged = caplog.text + "".join(str(record.__dict__) for record in caplog.records)

    for secret in (
        code,
        verifier,
        "a-state",
        got["refresh_token"],
        got["access_token"],
        again["refresh_token"],
    ):
        assert secret not in logged
