"""ETag, If-None-Match and If-Match: nobody overwrites a change that they have not seen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from uuid import uuid4

import pytest

from school_service.features.school.classrooms import service as classrooms
from tests.features.audit.test_every_write import WRITES, Scene
from tests.operations import STORED
from tests.threads import run_concurrently

# Operations that change or delete a record, and the operation that reads it.
MATCHED = {tuple(name.split()): row["if_match"] for name, row in STORED.items() if "if_match" in row}
# Answers that are no single record, or are not as they are stored.
UNTAGGED = {
    *("/students/{id}/data", "/employees/{id}/data", "/guardians/{id}/data"),
    *("/health", "/health/live"),
}


def tag_of(api, address, **query):
    answer = api.get(address, query_string=query)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.headers["ETag"]


class Recorder:
    """Sees the address that a request is sent to."""

    def __init__(self, api, monkeypatch):
        self.sent, self.headers, real = None, {}, api.request

        def request(method, path, **options):
            self.sent = method, path
            if method in {"PATCH", "DELETE"} and self.headers is None:
                raise LookupError
            given = {**options.pop("headers", {}), **(self.headers or {})}
            return real(method, path, headers=given, **options)

        monkeypatch.setattr(api, "request", request)


def address_of(recorder, send):
    """Find the address that a prepared request goes to, without sending it."""
    recorder.headers = None
    with pytest.raises(LookupError):
        send()
    recorder.headers = {}
    return recorder.sent[1]


@pytest.mark.parametrize(
    "operation", [operation for operation in MATCHED if operation[1] != "/contacts/{id}"], ids=" ".join
)
def test_a_change_with_another_tag_is_refused_and_with_the_right_one_made(api, make, monkeypatch, operation):
    send = WRITES[operation][0](Scene(api, make))
    recorder = Recorder(api, monkeypatch)
    read = address_of(recorder, send).removesuffix("/delete").removesuffix("/permissions")
    before = api.get(read)

    recorder.headers = {"If-Match": '"another"'}
    refused = send()
    recorder.headers = {}
    assert refused.status_code == 412
    assert "Read it again" in refused.get_json()["message"]
    assert api.get(read).data == before.data

    recorder.headers = {"If-Match": before.headers["ETag"]}
    made = send()
    recorder.headers = {}
    assert made.status_code == 200, made.get_data(as_text=True)
    after = api.get(read)
    assert after.status_code == 404 or after.headers["ETag"] != before.headers["ETag"]
    if operation[0] == "PATCH":
        assert made.headers["ETag"] == after.headers["ETag"]


def test_a_contact_is_read_by_its_owner(api, make):
    user = make.user()["user"]
    contact = make.contact(user)
    tag = tag_of(api, "/contacts", user_id=user["id"])
    changes = {"phone_number": "changed"}

    refused = api.patch(f"/contacts/{contact['id']}", changes, headers={"If-Match": '"another"'})
    made = api.patch(f"/contacts/{contact['id']}", changes, headers={"If-Match": tag})

    assert (refused.status_code, made.status_code) == (412, 200)
    assert made.headers["ETag"] == tag_of(api, "/contacts", user_id=user["id"]) != tag


def test_the_document_says_which_operations_take_it(document):
    operations = document.operations()

    def taking(header):
        return {
            key
            for key, operation in operations.items()
            if any(parameter.get("name") == header for parameter in operation.get("parameters", ()))
        }

    assert taking("If-Match") == MATCHED.keys()
    assert all("412" in operations[key]["responses"] for key in MATCHED)
    # Each has a GET whose answer has the tag, and takes it too.
    assert {("GET", path) for path in MATCHED.values()} <= taking("If-None-Match")
    assert {key for key, operation in operations.items() if "304" in operation["responses"]} == taking(
        "If-None-Match"
    )
    # Every PATCH and DELETE at the address of a record that has a tag takes If-Match.
    tagged = {path for _, path in taking("If-None-Match")}
    assert {key for key in operations if key[0] in {"PATCH", "DELETE"} and key[1] in tagged} <= MATCHED.keys()
    assert not tagged & UNTAGGED


def test_reading_again_answers_no_body_until_it_changes(api, make, messages):
    room = make.classroom()
    address = f"/classrooms/{room['id']}"
    tag = tag_of(api, address)

    with messages() as sent:
        same = api.get(address, headers={"If-None-Match": f'"x", {tag}'})

    assert (same.status_code, same.data, same.headers["ETag"]) == (304, b"", tag)
    assert len(sent) == 1
    assert api.get(address, headers={"If-None-Match": f"W/{tag}"}).status_code == 304
    assert api.get(address, headers={"If-None-Match": f'{tag[:-1]}-gzip"'}).status_code == 304
    assert api.get(address, headers={"If-None-Match": '"another"'}).status_code == 200
    assert api.get(address, headers={"If-None-Match": '"", W/""'}).status_code == 200
    api.ok(api.patch(address, {"name": "Other"}))
    assert api.get(address, headers={"If-None-Match": tag}).get_json()["name"] == "Other"


def test_a_tag_opens_no_record_to_a_caller_without_permission(api, other_api, make):
    room = make.classroom()
    address = f"/classrooms/{room['id']}"
    known = {"If-None-Match": tag_of(api, address)}

    assert make.caller().get(address, headers=known).status_code == 403
    assert other_api.get(address, headers=known).status_code == 404
    assert api.using(token=None).get(address, headers=known).status_code == 401


def test_another_schools_record_is_not_found_by_any_tag(api, other_api, make):
    room = make.classroom()
    address = f"/classrooms/{room['id']}"
    for tag in (tag_of(api, address), '"another"', "*"):
        answer = other_api.patch(address, {"name": "Taken"}, headers={"If-Match": tag})
        assert answer.status_code == 404
    assert api.patch(f"/classrooms/{uuid4()}", {"name": "x"}, headers={"If-Match": "*"}).status_code == 404
    assert api.ok(api.get(address)) == room


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ("{0}", 200),
        ('"x", {0}', 200),
        ("*", 200),
        ('"x", "y"', 412),
        ("", 412),
        # As proxies that compress have it.
        ("W/{0}", 200),
        ('"{1}-gzip"', 200),
        ('W/"{1}-gzip", "x"', 200),
        ('W/"{1}x"', 412),
        ('"{1}-gzip-gzip"', 412),
        ('"-gzip"', 412),
        ('""', 412),
        ('W/""', 412),
        ('"", {0}', 200),
    ],
)
def test_forms_of_the_header(api, make, form, status):
    address = f"/classrooms/{make.classroom()['id']}"
    tag = tag_of(api, address)
    header = form.format(tag, tag.strip('"'))

    assert api.patch(address, {"name": "Other"}, headers={"If-Match": header}).status_code == status


def test_a_list_has_no_tag(api, make):
    make.classroom()

    for path in ("/classrooms", "/users", "/students"):
        answer = api.get(path, headers={"If-None-Match": "*"})
        assert (answer.status_code, "ETag" in answer.headers) == (200, False), path


def test_permission_and_validation_come_first(api, make):
    address = f"/classrooms/{make.classroom()['id']}"
    stale = {"If-Match": '"another"'}

    assert make.caller("read:classrooms").patch(address, {"name": "x"}, headers=stale).status_code == 403
    assert api.patch(address, {"name": ""}, headers=stale).status_code == 422


def test_if_match_costs_one_message_and_none_without_the_header(api, make, messages):
    address = f"/classrooms/{make.classroom()['id']}"
    with messages() as without:
        api.ok(api.patch(address, {"name": "One"}))
    tag = tag_of(api, address)
    with messages() as matched:
        api.ok(api.patch(address, {"name": "Two"}, headers={"If-Match": tag}))

    assert len(matched) == len(without) + 1


def test_a_change_by_another_address_counts(api, make):
    student = make.student()
    address = f"/students/{student['id']}"
    tag = tag_of(api, address)

    api.ok(api.patch(f"/users/{student['user']}", {"first_name": "Changed"}))

    assert api.patch(address, {"last_name": "x"}, headers={"If-Match": tag}).status_code == 412


def test_of_four_changes_with_the_same_tag_at_once_one_wins(committing):
    api = committing.api
    address = f"/classrooms/{committing.classroom()['id']}"
    tag = tag_of(api, address)

    def change(number):
        return api.using().patch(address, {"name": f"Room {number}"}, headers={"If-Match": tag})

    answers = run_concurrently(4, change)

    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]
    (won,) = [answer for answer in answers if answer.status_code == 200]
    assert api.get(address).data == won.data


def test_a_change_without_a_tag_is_seen_by_a_change_with_one(committing, monkeypatch):
    """The record is compared once it is locked, not as it was when the request came."""
    api, changed, go_on = committing.api, Event(), Event()
    address = f"/classrooms/{committing.classroom()['id']}"
    tag = tag_of(api, address)
    change = classrooms.change_classroom

    def holding_its_lock(**changes):
        classroom = change(**changes)
        changed.set()
        assert go_on.wait(60)
        return classroom

    monkeypatch.setattr(classrooms, "change_classroom", holding_its_lock)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(api.using().patch, address, {"name": "First"})
        try:
            assert changed.wait(60)
            second = threads.submit(
                lambda: api.using().patch(address, {"name": "Second"}, headers={"If-Match": tag})
            )
            with pytest.raises(TimeoutError):
                second.result(0.1)
        finally:
            go_on.set()

    assert (first.result().status_code, second.result().status_code) == (200, 412)
    assert api.ok(api.get(address))["name"] == "First"
