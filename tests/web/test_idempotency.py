"""Idempotency-Key: a POST that is sent again does nothing again, and is answered as it was the first time."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from openapi_schema_validator import OAS30Validator
from sqlalchemy import select, text

from school_service.auth.signing_key import SigningKey, SigningKeys
from school_service.core import idempotency
from school_service.core.database import db
from school_service.core.idempotency import StoredAnswer
from school_service.features.school.classrooms import service as classrooms
from school_service.web.transactions import in_transaction
from tenants.clock import now
from tenants.connections.binding import SchoolBinding
from tests.features.audit.test_every_write import WRITES, Scene
from tests.features.scores.scoresheets.sheets import sheet_of
from tests.postgres import on_postgresql_alone
from tests.threads import pausing

POSTS = sorted(path for method, path in WRITES if method == "POST")
# Their answers have a token, which is stored nowhere.
WITH_TOKEN = {"/users", "/users/login"}
# Their answers have a code or, of a code that can be used once, a token: they are stored nowhere either.
WITH_CODE = {"/guardians/accounts", "/invitations", "/invitations/slips", "/users/login/invitation"}
ROOM = {"name": "JSS 9", "level": "Junior"}


def keyed(key, **more):
    return {"headers": {"Idempotency-Key": key}, **more}


def always_keyed(monkeypatch, api, key):
    """Let a client send a key with each of its requests."""
    request = api.request

    def with_key(method, path, **options):
        headers = {**options.pop("headers", {}), "Idempotency-Key": key}
        return request(method, path, headers=headers, **options)

    monkeypatch.setattr(api, "request", with_key)


def rooms(api):
    return [room["name"] for room in api.ok(api.get("/classrooms"))]


def documented(api, key):
    """Tell whether the document allows a key."""
    parameters = api.document.operations()["POST", "/classrooms"]["parameters"]
    schema = next(each["schema"] for each in parameters if each["name"] == "Idempotency-Key")
    return OAS30Validator(schema).is_valid(key)


@pytest.mark.parametrize("path", POSTS)
def test_every_post_is_done_once(api, make, monkeypatch, path):
    send = WRITES["POST", path][0](Scene(api, make))
    always_keyed(monkeypatch, api, "k")

    first = send()
    entries = api.ok(api.get("/audit"))["total"]
    again = send()

    assert first.status_code == 200, first.get_data(as_text=True)
    assert "Idempotency-Replayed" not in first.headers
    if path in WITH_CODE:
        assert "Idempotency-Replayed" not in again.headers
        assert again.data != first.data
        return
    if path in WITH_TOKEN:
        assert "Idempotency-Replayed" not in again.headers
        assert again.status_code == (200 if path == "/users/login" else 409)
        return
    assert (again.status_code, again.data, again.mimetype) == (200, first.data, first.mimetype)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert api.ok(api.get("/audit"))["total"] == entries


def test_the_document_says_which_operations_take_it(document):
    taking = {
        (method, path)
        for (method, path), operation in document.operations().items()
        if any(parameter.get("name") == "Idempotency-Key" for parameter in operation.get("parameters", ()))
    }

    # Linking an outside identity is written by an administrator of an installation with a provider of its own.
    elsewhere = {("POST", "/users/{id}/identities")}
    assert taking - elsewhere == {("POST", path) for path in POSTS if path not in WITH_TOKEN | WITH_CODE}


def test_without_the_header_no_message_is_more_and_with_it_one(api, messages):
    with messages() as without:
        api.ok(api.post("/classrooms", ROOM))
    with messages() as with_key:
        api.ok(api.post("/classrooms", {**ROOM, "name": "JSS 8"}, **keyed("k")))
    with messages() as replayed:
        api.ok(api.post("/classrooms", {**ROOM, "name": "JSS 8"}, **keyed("k")))

    assert not any("idempotency_keys" in message for message in without)
    assert len(with_key) == len(without) + 1
    assert len(replayed) == 3  # the binding, the stored answer, the end


def test_a_signing_key_of_before_still_recognises_the_request_sent_again(api, monkeypatch):
    verifier = api.app.extensions["school-service"].verifier
    first, (old,) = api.post("/classrooms", ROOM, **keyed("k")), verifier.keys.keys

    monkeypatch.setattr(verifier, "keys", SigningKeys((SigningKey.generate(), old)))
    again = api.post("/classrooms", ROOM, **keyed("k"))
    other = api.post("/classrooms", {**ROOM, "name": "JSS 8"}, **keyed("k"))

    assert (again.data, again.headers["Idempotency-Replayed"]) == (first.data, "true")
    assert other.status_code == 422


def test_without_the_header_it_is_done_twice(api):
    api.ok(api.post("/classrooms", ROOM))
    assert api.post("/classrooms", ROOM).status_code == 409


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/classrooms", {**ROOM, "name": "JSS 8"}),
        ("/classrooms?x=1", ROOM),
        ("/departments", {"name": "JSS 9"}),
    ],
)
def test_another_request_with_the_same_key_is_refused(api, path, body):
    api.ok(api.post("/classrooms", ROOM, **keyed("k")))

    answer = api.post(path, body, **keyed("k"))

    assert (answer.status_code, answer.get_json()["type"]) == (422, "idempotency-key")
    assert "key of its own" in answer.get_json()["message"]
    assert "JSS 8" not in rooms(api)
    api.ok(api.post(path, {**body, "name": "Other"}, **keyed("another")))


@pytest.mark.parametrize("sent", ['"k"', " k "])
def test_a_key_is_the_same_with_quotes_and_space_around_it(api, sent):
    first = api.post("/classrooms", ROOM, **keyed("k"))

    assert api.post("/classrooms", ROOM, **keyed(sent)).data == first.data


@pytest.mark.parametrize("key", ["", '""', "k" * 256, "clé", "a\tb", "a\x7f"])
def test_a_key_of_another_form_is_refused(api, key):
    answer = api.post("/classrooms", ROOM, **keyed(key))

    assert (answer.status_code, answer.get_json()["type"]) == (400, "malformed")
    assert "Idempotency-Key" in answer.get_json()["message"]
    assert ROOM["name"] not in rooms(api)
    assert not documented(api, key)


@pytest.mark.parametrize("key", ["k", '"', '"k"', "a key", "~" * 255])
def test_the_document_allows_the_keys_that_are_taken(api, key):
    api.ok(api.post("/classrooms", ROOM, **keyed(key)))
    assert documented(api, key)


def test_the_longest_key_is_taken(api):
    api.ok(api.post("/classrooms", ROOM, **keyed("k" * 255)))
    assert api.post("/classrooms", ROOM, **keyed("k" * 255)).headers["Idempotency-Replayed"] == "true"


def test_an_answer_of_an_error_is_not_stored_and_the_request_can_be_tried_again(api):
    assert api.post("/classrooms", {**ROOM, "level": ""}, **keyed("k")).status_code == 422
    taken = api.ok(api.post("/classrooms", ROOM))
    assert api.post("/classrooms", ROOM, **keyed("k")).status_code == 409

    api.ok(api.patch(f"/classrooms/{taken['id']}", {"name": "JSS 8"}))

    assert api.post("/classrooms", ROOM, **keyed("k")).status_code == 200


def test_schools_do_not_share_keys(api, other_api):
    mine = api.ok(api.post("/classrooms", ROOM, **keyed("k")))

    theirs = other_api.post("/classrooms", {**ROOM, "level": "Senior"}, **keyed("k"))

    assert other_api.ok(theirs)["id"] != mine["id"]
    assert "Idempotency-Replayed" not in theirs.headers
    # Nor does a token reach the stored answer of another school.
    assert other_api.using(school=api.school).post("/classrooms", ROOM, **keyed("k")).status_code == 403


def test_users_do_not_share_keys(api, make):
    someone = make.caller("write:classrooms")
    api.ok(api.post("/classrooms", ROOM, **keyed("k")))

    answer = someone.post("/classrooms", {**ROOM, "name": "JSS 8"}, **keyed("k"))

    assert someone.ok(answer)["name"] == "JSS 8"


def test_a_caller_without_the_permission_any_more_gets_no_stored_answer(api, make):
    user, role = make.user()["user"], make.role("write:classrooms")["id"]
    api.ok(api.put(f"/users/{user['id']}/roles", {"role": role}))
    someone = make.signed_in(user)
    someone.ok(someone.post("/classrooms", ROOM, **keyed("k")))

    api.ok(api.patch(f"/roles/{role}/permissions", {"permissionIds": []}))

    assert someone.post("/classrooms", ROOM, **keyed("k")).status_code == 403


def test_a_sheet_is_the_same_with_any_boundary_of_its_form(api, make):
    taught = make.taught(1)
    assessment = make.assessment(taught.subject, taught.term)
    number = api.ok(api.get(f"/students/{taught.students[0]}"))["admission_number"]
    path, content = f"/assessments/{assessment['id']}/scoresheet", sheet_of((number, "A", "B", 7))

    def form(boundary, content):
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="scoresheet"; filename="s.xlsx"\r\n\r\n'
        body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        return {"data": body, "content_type": f"multipart/form-data; boundary={boundary}"}

    first = api.post(path, **keyed("k", **form("one", content)))
    again = api.post(path, **keyed("k", **form("two", content)))
    other = api.post(path, **keyed("k", **form("two", sheet_of((number, "A", "B", 8)))))

    assert api.ok(first)["created"] == 1
    assert (again.data, again.headers["Idempotency-Replayed"]) == (first.data, "true")
    assert other.status_code == 422


def stored(api):
    """Read the stored answers of a school, oldest first."""
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        return list(db.session.scalars(select(StoredAnswer).order_by(StoredAnswer.created_at)))


def test_neither_a_password_nor_a_hash_that_could_be_guessed_is_stored(api):
    body = {"first_name": "A", "last_name": "B", "admission_number": "AU/1", "password": "tomatoes"}
    api.ok(api.post("/students", body, **keyed("k")))

    (row,) = stored(api)

    assert (row.status, row.operation) == (200, "POST /students")
    assert "tomatoes" not in row.answer
    sent = b"application/json", json.dumps(body).encode()
    for joined in (b"".join(sent), sent[1], b"".join(len(part).to_bytes(8, "big") + part for part in sent)):
        assert hashlib.sha256(joined).hexdigest() != row.fingerprint


def test_a_day_later_the_key_is_free_and_few_of_the_expired_are_deleted(api, monkeypatch):
    monkeypatch.setattr(idempotency, "EXPIRED_AT_ONCE", 2)
    moments = iter([now() - timedelta(hours=24, seconds=9 - number) for number in range(10)])
    with monkeypatch.context() as earlier:
        earlier.setattr(idempotency, "EXPIRES_AFTER", timedelta(days=2))
        earlier.setattr(idempotency, "now", lambda: next(moments))
        for number in range(5):
            api.ok(api.post("/classrooms", {**ROOM, "name": f"JSS {number}"}, **keyed(f"k{number}")))
    assert [row.key for row in stored(api)] == ["k0", "k1", "k2", "k3", "k4"]

    api.ok(api.post("/classrooms", ROOM, **keyed("k4")))

    # Its own, and the two oldest.
    assert [row.key for row in stored(api)] == ["k2", "k3", "k4"]


def test_within_a_day_it_is_answered(api, monkeypatch):
    moment = now() - timedelta(hours=23, minutes=59)
    with monkeypatch.context() as earlier:
        earlier.setattr(idempotency, "now", lambda: moment)
        first = api.post("/classrooms", ROOM, **keyed("k"))

    assert api.post("/classrooms", ROOM, **keyed("k")).data == first.data


def test_erasing_a_person_erases_stored_answers(api, other_api):
    body = {"first_name": "Adaeze", "last_name": "B", "admission_number": "AU/1"}
    student = api.ok(api.post("/students", body, **keyed("k")))
    other_api.ok(other_api.post("/students", body, **keyed("k")))
    assert "Adaeze" in stored(api)[0].answer

    api.ok(api.delete(f"/students/{student['id']}/data"))

    assert [row.answer for row in stored(api)] == [None]
    again = api.post("/students", body, **keyed("k"))
    assert (again.status_code, again.get_json()["type"]) == (409, "idempotency-key")
    assert "was carried out" in again.get_json()["message"]
    assert "Adaeze" in stored(other_api)[0].answer


def test_a_failure_at_the_end_leaves_neither_record_nor_key(api, monkeypatch):
    monkeypatch.setattr(idempotency, "_STORE", "SELECT no_such_function(%(idempotency_id)s)")
    assert api.post("/classrooms", ROOM, **keyed("k")).status_code == 500
    monkeypatch.undo()

    assert stored(api) == []
    assert "Idempotency-Replayed" not in api.post("/classrooms", ROOM, **keyed("k")).headers
    assert rooms(api).count(ROOM["name"]) == 1


def test_of_two_that_find_nothing_stored_one_is_undone(api, monkeypatch):
    api.ok(api.post("/classrooms", ROOM, **keyed("k")))
    # As it is where the other request commits after this one has looked.
    monkeypatch.setattr(idempotency, "_FIND", "SELECT true AS free, NULL AS id")

    answer = api.post("/classrooms", {**ROOM, "name": "JSS 8"}, **keyed("k"))

    assert (answer.status_code, answer.get_json()["type"]) == (409, "under-way")
    assert answer.get_json()["message"] == idempotency.UNDER_WAY
    assert "JSS 8" not in rooms(api)


def test_of_two_at_once_the_second_is_refused_and_the_work_done_once(committing, monkeypatch):
    api = committing.api
    begun, go_on = pausing(monkeypatch, classrooms, "create_classroom")
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(api.using().post, "/classrooms", ROOM, **keyed("k"))
        try:
            assert begun.wait(60)
            second = api.post("/classrooms", ROOM, **keyed("k"))
        finally:
            go_on.set()

    assert (second.status_code, second.get_json()["type"]) == (409, "under-way")
    assert second.get_json()["message"] == idempotency.UNDER_WAY
    again = api.post("/classrooms", ROOM, **keyed("k"))
    assert (again.status_code, again.data) == (200, first.result().data)
    assert rooms(api).count(ROOM["name"]) == 1


@on_postgresql_alone
def test_expired_keys_are_found_by_index(api):
    statement = (
        "EXPLAIN SELECT id FROM idempotency_keys WHERE created_at < now() ORDER BY created_at LIMIT 20"
    )
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        db.session.execute(text("SET LOCAL enable_seqscan TO off"))
        plan = "\n".join(db.session.scalars(text(statement)))

    assert "ix_idempotency_keys_created_at" in plan
