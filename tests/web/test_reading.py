"""A read is one round trip: its messages, the judgement of its caller, and nothing shown beyond their permissions."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy import func, select

from school_service.auth.tokens import issue_client_token
from school_service.core.database import db
from school_service.features.school.classrooms import service as classrooms
from school_service.features.school.models import Classroom
from tests.auth.conftest import grant
from tests.client import ApiClient
from tests.conftest import make_place
from tests.postgres import at_schools, on_postgresql_alone
from tests.tenants.installations import end_connections

__all__ = ["grant"]


@pytest.fixture
def machine(api, grant, place):
    """A client of a machine with this grant, or with a token of the school's alone."""

    def machine(**granted):
        client_id, _ = grant(school_ids=[place.id], **granted)
        key = api.app.extensions["school-service"].verifier.key
        return api.using(token=issue_client_token(key, client_id, [place.id])["access_token"])

    return machine


@pytest.fixture
def counted(messages):
    """Request something; answers status and number of round trips."""

    def counted(client, path, **options):
        with messages() as sent:
            status = client.get(path, **options).status_code
        return status, len(sent)

    return counted


def test_a_user_reads_in_one(make, counted):
    room = make.classroom()
    reader = make.caller("read:classrooms", "read:users")

    for path in ("/classrooms", f"/classrooms/{room['id']}", "/users", "/users?search=nobody-at-all"):
        assert counted(reader, path) == (200, 1)


def test_a_record_that_is_not_there_costs_no_more(make, counted):
    reader = make.caller("read:classrooms")

    assert counted(reader, f"/classrooms/{uuid4()}") == (404, 1)


def test_a_list_without_rows_costs_three_more_to_check_its_filters(make, counted):
    # A transaction of its own: the binding, the record that is looked for, the end.
    reader, cohort = make.caller("read:students"), make.cohort()

    assert counted(reader, "/students?search=nobody-at-all") == (200, 1)
    assert counted(reader, f"/students?cohort={cohort['id']}") == (200, 4)
    assert counted(reader, f"/students?cohort={uuid4()}") == (422, 4)
    make.enrolled(cohort, make.student())
    assert counted(reader, f"/students?cohort={cohort['id']}") == (200, 1)


def test_a_machine_reads_in_two(make, machine, counted):
    make.classroom()

    assert counted(machine(permissions=["read:classrooms"]), "/classrooms") == (200, 2)
    assert counted(machine(all_permissions=True), "/classrooms") == (200, 2)


def test_a_reader_without_permission_costs_one_message_at_most(make, machine, counted, api, other_api):
    make.classroom()

    assert counted(make.caller("read:users"), "/classrooms") == (403, 1)
    assert counted(machine(permissions=["read:users"]), "/classrooms") == (403, 1)
    gone = make.caller("read:classrooms")
    api.ok(api.delete(f"/users/{gone.user['id']}/delete"))
    assert counted(gone, "/classrooms") == (401, 1)
    assert counted(api.using(school=other_api.school), "/classrooms") == (403, 0)


def test_a_query_that_is_not_valid_costs_the_binding_alone(make, api, counted):
    """A reader without permission is told so, and no problem of the query."""
    path = "/users?pageSize=x"

    assert counted(make.caller("read:users"), path) == (422, 1)
    assert counted(make.caller("read:roles"), path) == (403, 1)
    gone = make.caller("read:users")
    api.ok(api.delete(f"/users/{gone.user['id']}/delete"))
    assert counted(gone, path) == (401, 1)


def test_a_view_without_a_query_judges_the_principal_too(make, api, counted):
    assert counted(api, "/states") == (200, 1)
    gone = make.caller()
    api.ok(api.delete(f"/users/{gone.user['id']}/delete"))
    assert gone.get("/states").status_code == 401


def test_the_query_is_not_run_for_a_reader_without_permission(api, make, monkeypatch):
    """It would fail: with the permission it does."""
    length = func.length(Classroom.name)
    monkeypatch.setattr(classrooms, "classrooms", lambda **_: select((1 / (length - length)).label("id")))
    make.classroom()

    assert make.caller("read:users").get("/classrooms").status_code == 403
    allowed = make.caller("read:classrooms")
    headers = {"Authorization": f"Bearer {allowed.token}", "X-SCHOOL-ID": str(allowed.school)}
    answer = allowed.app.test_client().get("/classrooms", headers=headers)
    # Division by zero, a data exception.
    assert (answer.status_code, answer.get_json()["message"]) == (422, "A value can't be stored.")


def test_a_suspended_or_unknown_school_is_refused_as_in_writes(app, tenancy, document):
    place = make_place(app, tenancy, "Aggrey Memorial College, Arochukwu")
    api = ApiClient(app, document, place.admin_token, place.id)
    assert api.get("/classrooms").status_code == 200

    for status, answer in (("suspended", 403), ("active", 200)):
        with tenancy.admin.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE registry.schools SET status = %s WHERE id = %s", (status, str(place.id))
            )
        assert api.get("/classrooms").status_code == answer
        assert api.post("/classrooms", {"name": f"JSS {status}", "level": "Junior"}).status_code == answer


def test_a_connection_that_died_in_the_pool_is_replaced(app, tenancy, document):
    place = make_place(app, tenancy, "Methodist Boys' High School, Lagos")
    api = ApiClient(app, document, place.admin_token, place.id)
    api.ok(api.get("/classrooms"))
    for path in ("/classrooms", "/students/import-template"):
        assert end_connections(at_schools(tenancy.admin_url), tenancy.placement.login)
        assert api.get(path).status_code == 200


@on_postgresql_alone
def test_nothing_of_a_read_stays_on_the_connection(app, place, document):
    """The role, the path and read-only end with the batch."""
    api = ApiClient(app, document, place.admin_token, place.id)
    api.ok(api.get("/classrooms"))

    with app.app_context():
        connection = db.engines[None].raw_connection()
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT current_user = session_user, current_setting('search_path'), "
                    "current_setting('transaction_read_only')"
                )
                assert cursor.fetchone() == (True, '""', "off")
        finally:
            connection.close()
