"""An operator's changes of a school are told to the keepers of copies, or their cursors are gone."""

from __future__ import annotations

import json
import stat
from uuid import uuid4

import pytest

from school_service.auth.tokens import issue_user_token
from school_service.features.exchange.copies.operator_export import export_records
from school_service.features.personal_data.audit_erasure import erase_audit
from school_service.features.role_reaches.operator_switch import switch_roles
from school_service.seed.accounts import end_sessions, reset_administrator
from tenants.backups.backup import back_up
from tenants.backups.restore import restore
from tenants.operator_connection import connected_to_school
from tenants.operator_log import operator_name
from tenants.provisioning.delete import delete_school
from tenants.tenancy import Administrator
from tests.cli.program import ROOT
from tests.client import ApiClient
from tests.conftest import make_place
from tests.factories import PASSWORD, Factory
from tests.features.exchange.copies.copies import changes, export, records


def cursor_of(api):
    return api.ok(api.get("/changes"))["cursor"]


def told_of(api, cursor):
    return {(change["resource"], change["id"], change["operation"]) for change in changes(api, cursor)[0]}


def is_gone(api, cursor):
    return api.get("/changes", query_string={"after": cursor}).status_code == 410


# Verbs that change records.


def test_a_role_that_is_switched_is_told(committing, tenancy):
    api, role = committing.api, committing.role("read:students")
    cursor = cursor_of(api)

    switch_roles(
        tenancy, api.school, {role["name"]: "OWN"}, add_seeded=False, commit=True, served=["read:students"]
    )

    assert ("roles", role["id"], "updated") in told_of(api, cursor)


def test_a_reset_administrator_and_a_completed_role_are_told(committing, tenancy):
    api = committing.api
    roles = {role["name"]: role["id"] for role in api.ok(api.get("/roles"))}
    cursor = cursor_of(api)

    reset_administrator(tenancy, api.school, Administrator("deputy", PASSWORD))

    [account] = [user["id"] for user in api.ok(api.get("/users?search=deputy"))["data"]]
    assert told_of(api, cursor) == {("users", account, "created")}
    with connected_to_school(tenancy, api.school) as (connection, _):
        connection.exec_driver_sql(
            "DELETE FROM role_permissions USING permissions p WHERE p.id = permission_id AND section = 'audit'"
        )
    api.ok(api.delete(f"/users/{account}/delete"))
    cursor = cursor_of(api)

    reset_administrator(tenancy, api.school, Administrator("deputy", PASSWORD))

    assert told_of(api, cursor) == {
        ("users", account, "created"),
        ("roles", roles["Administrator"], "updated"),
    }


def test_ended_sessions_and_an_erased_log_leave_no_reader_behind(committing, tenancy):
    api, student = committing.api, committing.student()
    api.ok(api.delete(f"/students/{student['id']}/data"))
    before, head = export(api)

    erase_audit(tenancy, api.school)
    end_sessions(tenancy, api.school, "admin")

    own = issue_token(api, tenancy, api.school, number=2)
    told, cursor = changes(own, head["cursor"])
    assert {change["resource"] for change in told} <= {"users"}
    assert cursor != head["cursor"]
    assert export(own)[0] == before


# Backups.


def issue_token(api, tenancy, school, number=1):
    """A client of a school, with a token of its administrator."""
    with connected_to_school(tenancy, school) as (connection, _):
        admin = connection.exec_driver_sql("SELECT id FROM users WHERE username = 'admin'").scalar_one()
    with api.app.app_context():
        key = api.app.extensions["school-service"].verifier.key
        token = issue_user_token(key, admin, school, number)
    return ApiClient(api.app, api.document, token["access_token"], school)


@pytest.fixture
def client(app, document, tenancy):
    """A client of a school that is backed up."""
    place = make_place(app, tenancy, "Kept School")
    return ApiClient(app, document, place.admin_token, place.id)


def test_after_a_restore_cursors_of_the_backup_go_on_and_later_ones_are_gone(client, tenancy, tmp_path):
    make = Factory(client)
    room = make.classroom()
    seen = cursor_of(client)
    waiting = make.classroom()["id"]  # of a set without a number
    back_up(tenancy, client.school, tmp_path / "school.zip")
    make.classroom()
    later = cursor_of(client)
    delete_school(tenancy, client.school, backup_folder=None)

    restore(tenancy, tmp_path / "school.zip")

    assert is_gone(client, later)
    assert told_of(client, seen) == {("classrooms", waiting, "created")}
    assert is_gone(client, later)
    # As many sets as there were: it is not their number alone by which a cursor is known.
    client.ok(client.patch(f"/classrooms/{room['id']}", {"name": "Changed"}))
    cursor_of(client)
    assert is_gone(client, later)


def test_a_copy_of_a_school_elsewhere_goes_on_by_itself(client, tenancy, tmp_path):
    make = Factory(client)
    room, cursor = make.classroom(), cursor_of(client)
    back_up(tenancy, client.school, tmp_path / "school.zip")

    copy = restore(tenancy, tmp_path / "school.zip", school_id=uuid4(), name="The copy")

    own = issue_token(client, tenancy, copy.id)
    own.ok(own.patch(f"/classrooms/{room['id']}", {"name": "Changed"}))
    assert told_of(own, cursor) == {("classrooms", room["id"], "updated")}
    after = cursor_of(own)
    make.classroom()
    cursor_of(client)
    assert is_gone(client, after)


def test_a_school_of_an_older_release_begins_anew_each_time_that_it_is_restored(
    app, document, client, tenancy
):
    backup = ROOT / "tests/tenants/backups/t0012.zip"
    school = restore(tenancy, backup, school_id=uuid4(), name="Old").id
    own = issue_token(client, tenancy, school)
    before, head = export(own)
    assert before
    delete_school(tenancy, school, backup_folder=None)

    restore(tenancy, backup, school_id=school, name="Old")

    assert is_gone(own, head["cursor"])
    assert export(own)[0].keys() == before.keys()


# The export.


def test_the_operators_export_equals_the_apis_and_is_on_record(committing, tenancy, tmp_path):
    api = committing.api
    committing.taught(2)
    path = tmp_path / "school.ndjson"

    done = export_records(tenancy, api.school, path)

    head, *lines = path.read_text(encoding="utf-8").splitlines()
    expected, _ = export(api)
    assert records(lines) == expected
    assert sum(json.loads(head)["resources"].values()) == len(lines) == done["records"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert told_of(api, json.loads(head)["cursor"]) == set()
    entries = api.ok(api.get("/audit?entity=export"))["data"]
    by_operator = [entry["new"] for entry in entries if entry["actor"] == operator_name()]
    assert by_operator == [{"records": json.loads(head)["resources"]}]
