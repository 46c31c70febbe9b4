"""Changes behind a cursor."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from migrations.tenant.resync import RESYNC
from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.exchange.copies.copies import changes, export

AGAIN = {"query": {"after": ["resync"]}}


def cursor_of(api):
    return api.ok(api.get("/changes"))["cursor"]


def run(place, sql):
    with in_transaction(SchoolBinding(place.id)):
        db.session.execute(text(sql))


def test_nothing_new_is_one_message_and_news_are_three(api, make, messages):
    cursor = cursor_of(api)
    with messages() as sent:
        answer = api.ok(api.get("/changes", query_string={"after": cursor}))
    assert (answer, len(sent)) == ({"changes": [], "cursor": cursor, "more": False}, 1)

    room = make.classroom()["id"]
    with messages() as sent:
        answer = api.ok(api.get("/changes", query_string={"after": cursor}))
    assert [(change["resource"], change["id"], change["operation"]) for change in answer["changes"]] == [
        ("classrooms", room, "created")
    ]
    assert len(sent) == 3


def test_a_page_of_changes_ends_behind_the_set_that_reaches_the_limit(api, make):
    cursor = cursor_of(api)
    for number in range(3):
        api.ok(
            api.post("/students", {"first_name": "A", "last_name": "B", "admission_number": f"C/{number}"})
        )

    answer = api.ok(api.get("/changes", query_string={"after": cursor, "limit": 3}))

    assert len(answer["changes"]) == 4
    assert answer["more"]
    rest = api.ok(api.get("/changes", query_string={"after": answer["cursor"], "limit": 3}))
    assert (len(rest["changes"]), rest["more"]) == (2, False)


def test_several_changes_of_one_record_in_a_set_are_one(api, make):
    cursor = cursor_of(api)
    api.ok(api.post("/students", {"first_name": "A", "last_name": "B", "admission_number": "D/1"}))

    told, _ = changes(api, cursor)

    assert sorted((change["resource"], change["operation"]) for change in told) == [
        ("students", "created"),
        ("users", "created"),
    ]


def test_a_filter_tells_of_its_resources_and_goes_on(api, make):
    cursor = cursor_of(api)
    make.classroom()

    told, further = changes(api, cursor, resource="students")

    assert told == []
    assert further != cursor
    assert changes(api, further)[0] == []


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "1-",
        "0-" + "0" * 32,
        "1-" + "0" * 32,
        "9999999999-" + "0" * 32,
        "1-" + "g" * 32,
        "\uff11",
        "1" * 3000,
        "",
    ],
)
def test_a_cursor_that_is_none_is_gone(cursor, api):
    answer = api.get("/changes", query_string={"after": cursor})

    assert (answer.status_code, answer.json["type"], answer.json["errors"]) == (410, "gone", AGAIN)


def test_the_cursor_of_another_school_is_gone(api, other_api):
    assert api.get("/changes", query_string={"after": cursor_of(other_api)}).status_code == 410


def test_a_migration_that_changes_records_lets_everything_be_read_anew(api, make, place):
    cursor = cursor_of(api)
    run(place, RESYNC)

    assert api.get("/changes", query_string={"after": cursor}).status_code == 410
    assert changes(api, cursor_of(api))[0] == []


def test_a_user_deleted_from_a_page_that_is_being_read_is_missed_by_no_copy(api, make):
    users = [make.user()["user"]["id"] for _ in range(3)]
    copy, head = export(api, resource="users")

    api.ok(api.delete(f"/users/{users[1]}/delete"))
    told, cursor = changes(api, head["cursor"])
    assert ("users", users[1], "deleted") in [
        (change["resource"], change["id"], change["operation"]) for change in told
    ]
    api.ok(api.put(f"/users/{users[1]}/restore"))
    told, _ = changes(api, cursor)
    assert ("users", users[1], "created") in [
        (change["resource"], change["id"], change["operation"]) for change in told
    ]
    assert {("users", user) for user in users} <= copy.keys()


def test_scores_and_absences_hidden_with_an_assessment_are_deleted_in_the_changes(api, make):
    taught = make.taught(2)
    assessment = make.assessment(taught.subject, taught.term)
    entry = make.entry(assessment, taught.students[0], taught.cohort["id"])["id"]
    api.ok(make.absences(assessment, {taught.students[1]: "ABSENT"}))
    cursor = cursor_of(api)

    api.ok(api.delete(f"/assessments/{assessment['id']}"))

    told = {(change["resource"], change["id"]): change["operation"] for change in changes(api, cursor)[0]}
    for key in (("assessments", assessment["id"]), ("scores", entry), ("absences", assessment["id"])):
        assert told[key] == "deleted"


def test_nothing_but_ids_is_told(api, make):
    cursor = cursor_of(api)
    student = make.student()
    api.ok(api.patch(f"/students/{student['id']}", {"last_name": "Adichie"}))

    answer = api.get("/changes", query_string={"after": cursor})

    assert "Adichie" not in answer.get_data(as_text=True)
    assert all(change.keys() == {"resource", "id", "operation", "at"} for change in answer.json["changes"])


def test_an_erased_person_is_in_no_copy(api, make):
    student = make.student()
    make.contact({"id": student["user"]})
    copy, head = export(api)
    api.ok(api.delete(f"/students/{student['id']}/data"))

    told, _ = changes(api, head["cursor"])
    for change in told:
        if change["operation"] == "erased":
            copy = {key: record for key, record in copy.items() if change["id"] not in str((key, record))}
    rest = {
        (change["resource"], change["id"]) for change in told if change["operation"] in ("created", "updated")
    }
    after, _ = export(api)
    assert {("students", student["id"], "erased"), ("users", student["user"], "erased")} <= {
        (change["resource"], change["id"], change["operation"]) for change in told
    }
    gone = {(change["resource"], change["id"]) for change in told} - rest
    assert {key: record for key, record in copy.items() if key not in gone} == after
