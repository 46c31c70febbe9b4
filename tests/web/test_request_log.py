"""Request ids and logs."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import time
from contextlib import contextmanager

import jwt
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DataError, DBAPIError

from school_service.auth.login_throttle import hash_username
from school_service.auth.signing_key import SigningKey
from school_service.core.database import db
from school_service.web import request_log
from school_service.web.error_responses import StatementFailed
from school_service.web.request_log import WAITED, Answered, JsonFormatter, configure_logging
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.threads import run_concurrently
from tests.web.conftest import SECRET

MADE = re.compile(r"[0-9a-f]{32}")


def of_logger(lines, name):
    return [line for line in lines if line["logger"] == name]


# Request ids


@pytest.mark.parametrize("sent", ["a", "3fa85f64-5717-4562-b3fc-2c963f66afa6", "A.b_c-9", "x" * 64])
def test_a_sound_request_id_is_kept(api, logs, sent):
    answer = api.get("/nothing", headers={"X-Request-ID": sent})

    assert answer.headers["X-Request-ID"] == sent
    assert answer.get_json()["request_id"] == sent
    assert [line["request_id"] for line in of_logger(logs(), "school_service.access")] == [sent]


@pytest.mark.parametrize(
    "sent",
    ["", " ", "x" * 65, "a b", "a,b", 'a"b', "<script>", "a;b", "é", "a/b", "../a", "{}", "a\tb", "%0a"],
)
def test_an_unsound_request_id_is_replaced(api, logs, sent):
    answer = api.get("/nothing", headers={"X-Request-ID": sent})

    made = answer.headers["X-Request-ID"]
    assert MADE.fullmatch(made)
    assert answer.get_json()["request_id"] == made
    assert [line["request_id"] for line in of_logger(logs(), "school_service.access")] == [made]


def test_each_request_has_an_id_of_its_own(api):
    assert len({api.get("/classrooms").headers["X-Request-ID"] for _ in range(5)}) == 5


@pytest.mark.parametrize("path", ["/health", "/docs", "/openapi.json", "/nothing"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE"])
def test_every_answer_bears_the_request_id(api, method, path):
    assert api.request(method, path, headers={"X-Request-ID": "mine"}).headers["X-Request-ID"] == "mine"


# The log


def test_every_request_is_a_line(api, logs, place):
    api.get("/classrooms?search=hidden")

    (line,) = of_logger(logs(), "school_service.access")
    assert line.pop("ms") >= 0
    assert line.pop("queue_ms") == 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line.pop("at"))
    assert MADE.fullmatch(line.pop("request_id"))
    assert line == {
        "level": "INFO",
        "logger": "school_service.access",
        "message": "request",
        "method": "GET",
        "path": "/classrooms",
        "route": "/classrooms",
        "status": 200,
        "address": "127.0.0.1",
        "school": str(place.id),
        "actor": str(place.admin_id),
        "reach": "SCHOOL",
        "unknown_parameters": ["search"],
    }


def last_line(logs):
    return of_logger(logs(), "school_service.access")[-1]


def test_a_refused_caller_is_in_the_log_as_far_as_their_token_is_verified(api, other_api, make, logs):
    caller = make.caller("read:users")
    assert caller.get("/classrooms").status_code == 403
    assert (last_line(logs)["status"], last_line(logs)["actor"]) == (403, caller.user["id"])

    # Before a school is entered there is a token alone.
    assert caller.using(school=other_api.school).get("/users").status_code == 403
    assert (last_line(logs)["status"], last_line(logs)["actor"]) == (403, caller.user["id"])
    assert caller.using(school=None).get("/users").status_code == 400
    assert last_line(logs)["actor"] == caller.user["id"]

    api.ok(api.delete(f"/users/{caller.user['id']}/delete"))
    assert caller.get("/users").status_code == 401
    assert (last_line(logs)["status"], last_line(logs)["actor"]) == (401, caller.user["id"])

    # Nobody knows whose an unverified token is.
    assert api.using(token=api.token + "x").get("/users").status_code == 401
    assert last_line(logs)["actor"] is None
    assert api.using(token=None).get("/users").status_code == 401
    assert last_line(logs)["actor"] is None


def test_the_route_of_a_request_is_a_template_and_none_for_an_unknown_path(api, logs):
    for path, route in (
        (f"/users/{api.school}", "/users/{id}"),
        (f"/gradebooks/{api.school}", "/gradebooks/{id}"),
        ("/nothing", None),
        ("/users/no-uuid", None),
    ):
        api.get(path)
        assert (last_line(logs)["path"], last_line(logs)["route"]) == (path, route)


def test_the_line_of_a_refused_request_has_300_characters_of_each_text(api, make, logs):
    api.using(school="x" * 5000).request("GET", "/" + "nowhere" * 1000)
    api.using(school="x" * 5000).request("GET", "/classrooms")
    make.caller().request("N" * 5000, "/classrooms")

    lines = [line for line in logs() if line["logger"] == "school_service.access"]

    assert len(lines) == 3
    for line in lines:
        assert all(len(text) <= 300 for text in line.values() if isinstance(text, str)), line


def test_the_time_in_the_queue_comes_from_the_server_and_from_no_header(api, logs):
    api.get("/classrooms", environ_base={WAITED: 0.25})
    assert last_line(logs)["queue_ms"] == 250
    # Nobody says it in a header.
    api.get("/classrooms", headers={"School-Service.Waited": "9", "school_service.waited": "9"})
    assert last_line(logs)["queue_ms"] == 0


def test_the_wait_for_a_schools_share_is_time_in_the_queue(api, logs, monkeypatch):
    @contextmanager
    def waiting(_school):
        yield 0.125

    monkeypatch.setattr(api.app.extensions["school-service"].shares, "of", waiting)
    api.get("/classrooms", environ_base={WAITED: 0.25})

    assert last_line(logs)["queue_ms"] == 375


def check_of(token, api, logs):
    answer = api.using(token=token).get("/users")
    assert answer.status_code == 401
    line = last_line(logs)
    assert token not in json.dumps(logs())
    return line["refused"], line.get("key_id"), line.get("issuer")


def test_the_log_has_the_reason_the_key_and_the_issuer_of_a_refused_token(api, app, logs):
    key = app.extensions["school-service"].verifier.key
    claims = jwt.decode(api.token, options={"verify_signature": False})
    issuer, own = claims["iss"], key.key_id

    def token(kid=own, signer=key.private, **changed):
        made = {name: value for name, value in {**claims, **changed}.items() if value is not None}
        return jwt.encode(made, signer, key.algorithm, headers={"kid": kid})

    now = int(time.time())
    stolen = SigningKey.generate().private
    assert check_of(token(exp=now - 100), api, logs) == ("expiry", own, issuer)
    assert check_of(token(nbf=now + 100), api, logs) == ("not valid yet", own, issuer)
    assert check_of(token(aud="another"), api, logs) == ("audience", own, issuer)
    assert check_of(token(aud=None), api, logs) == ("required claim", own, issuer)
    assert check_of(token(iss="https://a.example"), api, logs) == ("issuer", own, "https://a.example")
    assert check_of(token(iss="x" * 500), api, logs) == ("issuer", own, "x" * 200)
    assert check_of(token(signer=stolen), api, logs) == ("signature", own, issuer)
    assert check_of(token(kid="unknown"), api, logs) == ("key", "unknown", issuer)
    assert check_of(token(sub="nobody"), api, logs) == ("form", own, issuer)
    assert check_of("nonsense", api, logs) == ("form", None, None)
    assert check_of(token(session=0), api, logs) == ("The token's session has ended.", None, None)
    api.using(token=None).get("/users")
    assert last_line(logs)["refused"] == "A bearer token is needed."

    api.ok(api.get("/users"))
    assert not {"refused", "key_id", "issuer", "cause"} & last_line(logs).keys()


def test_the_log_names_the_permission_that_a_caller_lacks(api, other_api, make, logs):
    caller = make.caller("read:users")
    caller.get("/classrooms")
    assert last_line(logs)["refused"] == "This needs the permission read:classrooms."
    caller.using(school=other_api.school).get("/users")
    assert last_line(logs)["refused"] == "The token does not cover this school."


def test_the_username_of_an_attempt_is_hashed_and_the_same_as_in_the_audit_log(api, make, logs):
    user = make.user()["user"]
    hashes = {}
    for name in (user["username"], user["username"].upper(), "hunter2 typed here", "\U0001f600"):
        api.post("/users/login", {"username": name, "password": "wrong"})
        hashes[name] = last_line(logs)["username_hash"]

    assert all(re.fullmatch("[0-9a-f]{32}", value) for value in hashes.values())
    assert hashes[user["username"]] == hashes[user["username"].upper()]
    assert len(set(hashes.values())) == 3
    entries = api.ok(api.get("/audit", query_string={"entity": "refused-sign-in"}))["data"]
    assert [entry["new"]["username_hash"] for entry in entries] == list(hashes.values())[::-1]
    assert "hunter2" not in json.dumps(logs())

    api.get("/users")
    assert "username_hash" not in last_line(logs)


def test_the_hash_is_another_in_another_school_and_with_another_key(api, other_api, logs):
    hashes = set()
    for client in (api, other_api):
        client.post("/users/login", {"username": "admin", "password": "wrong"})
        hashes.add(last_line(logs)["username_hash"])
    keys = [SigningKey.generate(), SigningKey.generate()]
    hashes |= {hash_username(key, str(api.school), "admin") for key in keys}

    assert len(hashes) == 4
    assert hash_username(keys[0], "a", "admin") == hash_username(
        SigningKey.from_pem(keys[0].to_pem()), "a", "ADMIN"
    )


def test_the_client_of_the_token_endpoint_is_hashed_too(api, logs):
    body = {"client_id": "nobody", "client_secret": "x", "audience": "x", "grant_type": "client_credentials"}
    api.post("/auth/oauth/token", body)

    assert re.fullmatch("[0-9a-f]{32}", last_line(logs)["username_hash"])


def test_a_failure_is_logged_with_its_traceback_and_the_request_id(probing, logs):
    answer = probing.test_client().get("/probe/failure/python")

    (line,) = of_logger(logs(), "school_service.web.error_responses")
    assert (line["level"], line["message"]) == ("ERROR", "unforeseen error")
    assert line["request_id"] == answer.headers["X-Request-ID"] == answer.get_json()["request_id"]
    assert line["exception"].startswith("Traceback (most recent call last):")
    assert line["exception"].endswith(f"RuntimeError: {SECRET}")


def test_texts_of_a_caller_can_not_forge_a_line(api, logs):
    api.get("/nothing%0a%7B%22forged%22%3A1%7D", headers={"X-SCHOOL-ID": '"}{"forged":1}'})

    (line,) = of_logger(logs(), "school_service.access")
    assert line["path"] == '/nothing\n{"forged":1}'
    assert "forged" not in line


@pytest.mark.parametrize(
    "value",
    ["\ud800", 2**70, float("nan"), b"\xff", {"a": {1, 2}}, object()],
    ids=lambda value: type(value).__name__,
)
def test_any_value_is_logged_as_a_line_of_json(logs, monkeypatch, value):
    # Not to pytest's own log, which a worker could not send on: a lone surrogate has no UTF-8.
    root = logging.getLogger()
    service_log = [handler for handler in root.handlers if isinstance(handler.formatter, JsonFormatter)]
    monkeypatch.setattr(root, "handlers", service_log)

    logging.getLogger("tests").error("a %s", value, extra={"value": value})
    try:
        raise RuntimeError(value)
    except RuntimeError:
        logging.getLogger("tests").exception("it failed")

    assert [line["message"] for line in of_logger(logs(), "tests")][1] == "it failed"


def test_outside_a_request_there_is_no_request_id(logs):
    logging.getLogger("tests").warning("starting")

    (line,) = of_logger(logs(), "tests")
    assert (line["message"], "request_id" in line) == ("starting", False)


def test_the_process_logs_to_standard_error_from_its_level_on(monkeypatch):
    stream = io.StringIO()
    root = logging.getLogger()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)

    configure_logging("WARNING")
    logging.getLogger("tests.level").info("hidden")
    logging.getLogger("tests.level").warning("shown")

    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["shown"]


# Observers


@pytest.fixture
def observe(api, monkeypatch):
    """Let an observer see every answer, in place of the metrics."""
    return lambda observer: monkeypatch.setattr(api.app, "observe", observer)


def test_an_observer_gets_the_known_facts_of_a_request(api, place, observe):
    seen = []
    observe(seen.append)
    api.get("/classrooms")
    api.using(token=None).get("/classrooms")
    api.post("/users/login", {"username": "nobody", "password": "wrong"})
    api.request("HEAD", "/nothing")

    assert [answered._replace(took=0.0, waited=0.0) for answered in seen] == [
        Answered(200, "/classrooms", "GET", school_id=place.id),
        Answered(401, "/classrooms", "GET"),
        Answered(401, "/users/login", "POST", school_id=place.id, attempt_of="user"),
        Answered(404, None, "HEAD"),
    ]
    assert all(0 < answered.took < 60 for answered in seen)


@pytest.mark.parametrize("failing", ["metrics", "line of the log"])
def test_an_observer_that_fails_is_logged_and_changes_no_answer(api, observe, monkeypatch, logs, failing):
    def send():
        return [
            api.get("/classrooms"),
            api.get("/nothing"),
            api.post("/classrooms", {}),
            api.post("/classrooms", {"name": "JSS 1", "level": "JSS"}),
            api.using(token=None).get("/verify/AAAA-AAAA-AAAA"),
        ]

    # A failure of this type and line alone: of another test's nothing may be remembered.
    class Failed(Exception):
        pass

    def fail(*_):
        raise Failed

    if failing == "metrics":
        observe(fail)
    else:
        monkeypatch.setattr(request_log, "write_access_line", fail)
    answers = send()

    assert [answer.status_code for answer in answers] == [200, 404, 422, 200, 404]
    assert all(answer.headers["X-Request-ID"] for answer in answers)
    failures = of_logger(logs(), "school_service.web.request_log")
    assert [(line["level"], line["message"], line["left_out"]) for line in failures] == [
        ("ERROR", "an observer of requests failed", 0)
    ]
    assert failures[0]["exception"].endswith("Failed")
    assert failures[0]["request_id"] == answers[0].headers["X-Request-ID"]
    lines = of_logger(logs(), "school_service.access")
    assert len(lines) == (5 if failing == "metrics" else 0)


def test_of_failures_of_one_kind_one_a_minute_is_logged_with_the_number_of_the_others(
    api, observe, monkeypatch, logs
):
    class Failed(Exception):
        pass

    def fail(answered):
        if answered.status == 404:
            raise Failed("there")
        raise Failed("here")

    observe(fail)
    monkeypatch.setattr(request_log, "FAILURES_EVERY", -1.0)
    api.get("/classrooms")
    monkeypatch.setattr(request_log, "FAILURES_EVERY", 60.0)
    for _ in range(3):
        api.get("/classrooms")
    api.get("/nothing")
    later = time.monotonic() + 61
    monkeypatch.setattr(request_log.time, "monotonic", lambda: later)
    api.get("/classrooms")

    failures = of_logger(logs(), "school_service.web.request_log")
    said = [(line["exception"].rsplit(": ", 1)[1], line["left_out"]) for line in failures]
    assert said == [("here", 0), ("here", 0), ("there", 0), ("here", 2)]


def test_twenty_threads_whose_observer_fails_log_one_failure(api, observe, logs):
    class Failed(Exception):
        pass

    def fail(_answered):
        raise Failed

    observe(fail)
    answers = run_concurrently(20, lambda _: api.using(token=None).get("/health/live").status_code)

    assert answers == [200] * 20
    assert len(of_logger(logs(), "school_service.web.request_log")) == 1


# Secrets


def test_passwords_and_tokens_never_appear_in_the_log(api, make, logs):
    passwords = ["first pass-word", "second pass-word", "wrong pass-word"]
    user = make.user(password=passwords[0])
    username, token = user["user"]["username"], user["access_token"]["access_token"]
    api.post("/users/login", {"username": username, "password": passwords[2]})
    login = api.ok(api.post("/users/login", {"username": username, "password": passwords[0]}))
    change = {"password": passwords[1], "current_password": passwords[0]}
    own = api.using(token=login["access_token"]["access_token"])
    own.ok(own.put(f"/users/{user['user']['id']}/password", change))
    api.post("/users", {"username": username, "password": passwords[0], "first_name": "A"})
    api.post("/users", {"username": username, "password": passwords[0], "first_name": 1, "x": passwords[1]})
    api.using(token=token + "x").get("/users")
    api.post(
        "/auth/oauth/token",
        {
            "client_id": "nobody",
            "client_secret": passwords[2],
            "audience": "school-service",
            "grant_type": "client_credentials",
        },
    )

    written = json.dumps(logs())
    assert len(of_logger(logs(), "school_service.access")) >= 8
    for secret in (*passwords, token, login["access_token"]["access_token"], api.token):
        assert secret not in written


@pytest.mark.parametrize(
    ("statement", "state", "words"),
    [
        ("SELECT 'hidden \"value\"'::uuid", "22P02", 'invalid input syntax for type uuid: "…"'),
        ("SELECT '99-hidden'::date", "22007", 'invalid input syntax for type date: "…"'),
        ("SELECT hidden_from_nobody", "42703", 'column "hidden_from_nobody" does not exist'),
    ],
)
def test_the_cause_of_a_failed_statement_has_no_values(app, place, statement, state, words):
    with app.app_context():
        with pytest.raises(DBAPIError) as caught, in_transaction(SchoolBinding(place.id)):
            db.session.execute(text(statement))
        message = str(StatementFailed(caught.value)).partition("\n")[0]

    assert message.endswith(f": {state}: {words}")


def test_a_failed_statement_does_not_tell_its_values(app, place):
    statement, values = text("SELECT :value, 1 / 0"), {"value": "a hidden value"}

    with app.app_context():
        with pytest.raises(DataError) as caught, in_transaction(SchoolBinding(place.id)):
            db.session.execute(statement, values)
        assert "a hidden value" not in str(caught.value)
        with pytest.raises(DataError) as caught, db.engines["registry"].connect() as connection:
            connection.execute(statement, values)
        assert "a hidden value" not in str(caught.value)
