"""Signing in, and being refused, is on record; a refused sign-in leaves nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import ip_network

import pytest
from sqlalchemy import text

from school_service.core.database import db
from school_service.core.errors import WrongPassword
from school_service.features.audit.service import audit_refusal
from school_service.features.school.classrooms.service import create_classroom
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.factories import PASSWORD


@pytest.fixture
def user(make):
    return make.user()["user"]


def listed(api, entity):
    return api.ok(api.get("/audit", query_string={"entity": entity}))["data"]


def sign_in(api, username, password=PASSWORD, **options):
    return api.post("/users/login", {"username": username, "password": password}, **options)


def test_a_sign_in_is_on_record(api, user, place):
    answer = sign_in(api, user["username"])

    (entry,) = listed(api, "sign-in")
    assert answer.status_code == 200
    assert entry["entity_id"] == user["id"]
    assert entry["new"] == {"username": user["username"]}
    assert (entry["actor"], entry["address"]) == (str(place.admin_id), "127.0.0.1")
    assert entry["request_id"] == answer.headers["X-Request-ID"]
    assert listed(api, "refused-sign-in") == []


def test_a_refused_sign_in_is_on_record_with_its_user_if_there_is_one(api, user, place):
    known = sign_in(api, user["username"], "wrong")
    unknown = sign_in(api, "nobody", "wrong")

    second, first = listed(api, "refused-sign-in")
    assert (known.status_code, unknown.status_code) == (401, 401)
    assert known.get_json()["message"] == unknown.get_json()["message"]
    assert (first["entity_id"], second["entity_id"]) == (user["id"], None)
    assert [entry["request_id"] for entry in (first, second)] == [
        answer.headers["X-Request-ID"] for answer in (known, unknown)
    ]
    assert {entry["actor"] for entry in (first, second)} == {str(place.admin_id)}
    assert {entry["address"] for entry in (first, second)} == {"127.0.0.1"}
    assert listed(api, "sign-in") == []


def test_neither_username_nor_password_of_a_refused_sign_in_is_stored(api):
    for name, password in (("hunter2", "secret7"), ("secret7", "hunter2")):
        sign_in(api, name, password)

    stored = json.dumps(listed(api, "refused-sign-in"))
    assert "hunter2" not in stored
    assert "secret7" not in stored
    assert stored.count("username_hash") == 2


def test_unknown_and_known_names_cost_the_same_messages(api, user, messages):
    costs = []
    for name in (user["username"], "nobody"):
        with messages() as sent:
            sign_in(api, name, "wrong")
        costs.append([message.split("(")[0] for message in sent])

    assert costs[0] == costs[1]


def test_a_sign_in_with_its_entry_is_seven_messages(api, user, messages):
    sign_in(api, user["username"])
    with messages() as sent:
        sign_in(api, user["username"])

    # The binding batch, the user, and the rollback before the password is checked; the binding batch, the user as they
    # are now, the answer; the log and the commit.
    assert len(sent) == 7, sent


def test_a_sign_in_refused_by_the_throttle_is_not_on_record(api, user):
    answers = [sign_in(api, user["username"], "wrong").status_code for _ in range(14)]

    assert answers == [401] * 10 + [429] * 4
    assert len(listed(api, "refused-sign-in")) == 10


def test_a_wrong_current_password_is_on_record(api, make):
    caller = make.caller()
    body = {"password": "another", "current_password": "wrong"}

    answer = caller.put(f"/users/{caller.user['id']}/password", body)

    (entry,) = listed(api, "refused-sign-in")
    assert answer.status_code == 422
    assert (entry["entity_id"], entry["actor"]) == (caller.user["id"], caller.user["id"])
    assert entry["new"] == {"current_password": "wrong"}
    assert entry["request_id"] == answer.headers["X-Request-ID"]


def test_the_other_school_has_its_own(api, other_api, user):
    assert sign_in(other_api, user["username"]).status_code == 401

    assert listed(api, "refused-sign-in") == []
    (entry,) = listed(other_api, "refused-sign-in")
    assert entry["entity_id"] is None


def test_of_a_refused_request_nothing_else_is_left(api, rehearsed):
    def refused():
        with in_transaction(SchoolBinding(api.school)):
            create_classroom(name="Left over", level="x")
            audit_refusal("refused-sign-in", None, {"username_hash": "x"})
            raise WrongPassword("wrong")

    with pytest.raises(WrongPassword):
        refused()

    assert "Left over" not in str(api.ok(api.get("/classrooms")))
    assert listed(api, "classroom") == []
    assert len(listed(api, "refused-sign-in")) == 1


def test_the_entry_of_a_refused_sign_in_is_committed(committing):
    """On connections of its own, whose transactions end: not within one that a test undoes."""
    api = committing.api
    assert sign_in(api, "nobody", "wrong").status_code == 401
    assert sign_in(api, "admin", "wrong").status_code == 401

    assert len(listed(api, "refused-sign-in")) == 2
    with api.app.app_context(), in_transaction(SchoolBinding(api.school)):
        assert db.session.scalar(text("SELECT count(*) FROM audit_entries WHERE address = '127.0.0.1'")) >= 2


def test_where_it_can_not_be_stored_the_request_fails(api, user, monkeypatch):
    monkeypatch.setattr(
        "school_service.features.audit.service._INSERT", "SELECT no_such_function(%(entries)s)"
    )

    assert sign_in(api, user["username"], "wrong").status_code == 500
    assert sign_in(api, user["username"]).status_code == 500

    monkeypatch.undo()
    assert sign_in(api, user["username"], "wrong").status_code == 401


def test_a_read_only_request_that_writes_to_the_log_is_the_programs_fault(api, rehearsed):
    def read():
        with in_transaction(SchoolBinding(api.school, read_only=True)):
            audit_refusal("refused-sign-in", None, {})

    with pytest.raises(RuntimeError, match="can't write to the audit log"):
        read()


def test_the_address_behind_a_trusted_proxy_is_the_clients(api, rehearsed, monkeypatch, user):
    state = rehearsed.extensions["school-service"]
    behind = replace(state.settings, trusted_proxies=(ip_network("127.0.0.0/8"),))
    monkeypatch.setattr(state, "settings", behind)
    for forwarded in ("198.51.100.7", "fe80::1%" + "x" * 200):
        sign_in(api, user["username"], "wrong", headers={"X-Forwarded-For": forwarded})

    second, first = listed(api, "refused-sign-in")
    assert first["address"] == "198.51.100.7"
    assert second["address"] == ("fe80::1%" + "x" * 200)[:64]
