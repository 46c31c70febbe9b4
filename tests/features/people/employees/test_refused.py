"""POST /employees refuses, and nothing is left of it."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from copy import deepcopy
from uuid import uuid4

import pytest
from sqlalchemy import URL, create_engine, event, text

from school_service.app import REGISTRY_POOL
from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.connections.engines import registry_options, registry_url
from tenants.registry.schools import schema_name
from tests.threads import run_concurrently

TABLES = ("users", "contacts", "employees", "bank_accounts", "next_of_kin", "audit_entries")
COUNT = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table}) AS {table}" for table in TABLES)

TEXTS = {
    **dict.fromkeys(
        (
            "first_name",
            "last_name",
            "title",
            "gender",
            "marital_status",
            "blood_group",
            "religion",
            "status",
            "bank_details.bank_name",
            "bank_details.account_name",
            "bank_details.account_number",
            "bank_details.bank_sort_code",
            "bank_details.employee_no",
            "bank_details.account_type",
            "next_of_kin.full_name",
            "next_of_kin.relationship",
            "next_of_kin.phone_number",
            "contact.phone_number",
        ),
        120,
    ),
    "next_of_kin.physical_address": 2000,
    "contact.physical_address": 2000,
}
NUMBERS = ("bank_details.employee", "next_of_kin.employee")
DATES = ("dob", "join_date")
IDS = ("department", "category", "position", "lga", "state", "nationality")
OBJECTS = ("bank_details", "next_of_kin", "contact")
EVERY = (*TEXTS, "middle_name", "contact.email_address", *NUMBERS, *DATES, *IDS, *OBJECTS)

NO_TEXTS = (None, 5, True, ["a"], {"a": "b"}, "a\0b", "\ud800")
NO_DATES = (
    "",
    None,
    20200106,
    "2020-1-6",
    "2020-02-30",
    "06/01/2020",
    "2020-01-06T00:00:00",
    "20200106",
    True,
)
NO_NUMBERS = (None, "5", 1.5, True, 2**31, -(2**31) - 1, 2**63, 1e30, [1], float("nan"))
NO_IDS = (None, "", "x", 5, ["a"], "3fa85f6457174562b3fc2c963f66afa6")
NO_OBJECTS = (None, "", "x", 5, [], [{}])
NO_EMAILS = (
    "",
    " ",
    None,
    5,
    "a",
    "a@",
    "@b.example",
    "a b@example.com",
    "a\0@example.com",
    "a" * 250 + "@b.ng",
)


def changed(body, path, *value):
    """The body with another value at a path, or without the member there."""
    other = deepcopy(body)
    *within, name = path.split(".")
    place = other[within[0]] if within else other
    if value:
        (place[name],) = value
    else:
        del place[name]
    return other


def reasons(answer, path):
    """Why the member at a path was refused; no other was."""
    assert answer.status_code == 422, answer.get_data(as_text=True)
    errors = answer.get_json()["errors"]["json"]
    for name in path.split("."):
        assert list(errors) == [name]
        errors = errors[name]
    return errors


@pytest.fixture
def body(make):
    return make.employee_body()


@pytest.fixture
def nothing_left(place):
    """Checks that the school has not one record, and not one line of the audit log, more than before."""

    def count():
        with in_transaction(SchoolBinding(place.id)):
            return dict(db.session.execute(text(COUNT)).mappings().one())

    before = count()
    yield
    assert count() == before


def refuse(api, body, path, values):
    for value in values:
        assert reasons(api.post("/employees", changed(body, path, value)), path), value


def test_the_count_sees_an_employee(api, make, place):
    before, after = ({}, {})
    for counts in (before, after):
        with in_transaction(SchoolBinding(place.id)):
            counts.update(db.session.execute(text(COUNT)).mappings().one())
        make.employee()

    assert {table: after[table] - before[table] for table in TABLES} == {
        **dict.fromkeys(TABLES, 1),
        "audit_entries": 5,
    }


@pytest.mark.parametrize("path", EVERY)
def test_every_member_is_required(api, body, path, nothing_left):
    assert reasons(api.post("/employees", changed(body, path)), path) == ["Missing data for required field."]


@pytest.mark.parametrize("path", TEXTS)
def test_a_text_of_another_type_or_length_is_invalid(api, body, path, nothing_left):
    refuse(api, body, path, (*NO_TEXTS, "", "  ", "a" * (TEXTS[path] + 1)))


@pytest.mark.parametrize("path", TEXTS)
def test_a_text_of_the_most_characters_is_stored(api, body, path):
    assert api.post("/employees", changed(body, path, "Ẹ" * TEXTS[path])).status_code == 200


def test_a_strange_middle_name_is_invalid(api, body, nothing_left):
    refuse(api, body, "middle_name", (*NO_TEXTS, "a" * 121))


@pytest.mark.parametrize("path", NUMBERS)
def test_a_number_is_whole_and_has_32_bits(api, body, path, nothing_left):
    refuse(api, body, path, NO_NUMBERS)


@pytest.mark.parametrize("path", DATES)
def test_a_strange_date_is_invalid(api, body, path, nothing_left):
    refuse(api, body, path, NO_DATES)


@pytest.mark.parametrize("path", IDS)
def test_an_id_that_is_no_uuid_is_invalid(api, body, path, nothing_left):
    refuse(api, body, path, NO_IDS)


@pytest.mark.parametrize("path", OBJECTS)
def test_a_value_that_is_no_object_is_invalid(api, body, path, nothing_left):
    for value in NO_OBJECTS:
        answer = api.post("/employees", changed(body, path, value))
        assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [path]), value


@pytest.mark.parametrize("path", OBJECTS)
def test_an_empty_object_lacks_all_of_its_members(api, body, path, nothing_left):
    errors = reasons(api.post("/employees", changed(body, path, {})), path)

    assert set(errors) == set(body[path])


def test_a_strange_email_address_is_invalid(api, body, nothing_left):
    refuse(api, body, "contact.email_address", NO_EMAILS)


@pytest.mark.parametrize("path", ["id", "username", "role", "user", "bank_details.id", "contact.owner"])
def test_an_unknown_member_is_invalid(api, body, path, nothing_left):
    assert reasons(api.post("/employees", changed(body, path, str(uuid4()))), path) == ["Unknown field."]


def test_all_that_is_wrong_is_named_at_once(api, body, nothing_left):
    wrong = changed(
        changed(changed(body, "dob", "x"), "bank_details.account_number", ""), "contact.phone_number"
    )

    errors = api.post("/employees", wrong).get_json()["errors"]["json"]

    assert set(errors) == {"dob", "bank_details", "contact"}
    assert set(errors["bank_details"]) == {"account_number"}
    assert set(errors["contact"]) == {"phone_number"}


def test_a_birth_after_joining_is_refused(api, body, nothing_left):
    answer = api.post("/employees", {**body, "dob": "2020-01-07", "join_date": "2020-01-06"})

    assert reasons(answer, "dob") == ["is after join_date"]


# The meaning of the ids


@pytest.mark.parametrize(
    ("path", "name"),
    [("department", "department"), ("category", "employee category"), ("position", "position")],
)
def test_an_unknown_setting_is_refused(api, body, make_other, path, name, nothing_left):
    theirs = make_other.employee_body()
    of_others = [body[other] for other in IDS if other != path]

    for unknown in (str(uuid4()), theirs[path], *of_others):
        assert reasons(api.post("/employees", changed(body, path, unknown)), path) == [f"no such {name}"]


@pytest.mark.parametrize(
    ("path", "name"),
    [("lga", "local government area"), ("state", "state"), ("nationality", "nationality")],
)
def test_an_unknown_origin_is_refused(api, body, path, name, nothing_left):
    of_others = [body[other] for other in IDS if other != path]

    for unknown in (str(uuid4()), *of_others):
        assert reasons(api.post("/employees", changed(body, path, unknown)), path) == [f"no such {name}"]


def test_every_unknown_origin_is_named(api, body, nothing_left):
    answer = api.post(
        "/employees", {**body, **{name: str(uuid4()) for name in ("lga", "state", "nationality")}}
    )

    assert answer.get_json()["errors"]["json"] == {
        "lga": ["no such local government area"],
        "state": ["no such state"],
        "nationality": ["no such nationality"],
    }


def test_an_lga_of_another_state_is_refused(api, body, nothing_left):
    states = [state["id"] for state in api.ok(api.get("/states")) if state["id"] != body["state"]]

    for state in states[:3]:
        answer = api.post("/employees", {**body, "state": state})
        assert reasons(answer, "lga") == ["does not lie in the state"]


def test_the_lga_of_the_same_name_in_another_state_is_another(api, body, nothing_left):
    """Surulere lies in Lagos, and another one in Oyo."""
    lgas = {lga["state"]: lga["id"] for lga in api.ok(api.get("/lgas")) if lga["name"] == "Surulere"}
    (elsewhere,) = lgas.keys() - {body["state"]}

    answer = api.post("/employees", {**body, "lga": lgas[elsewhere]})

    assert reasons(answer, "lga") == ["does not lie in the state"]


def test_a_setting_that_is_deleted_at_the_same_time_is_either_used_or_gone(committing):
    api = committing.api
    for _ in range(5):
        department = committing.department()["id"]
        body = committing.employee_body(department=department)

        def work(number, body=body, department=department):
            caller = api.using()
            return caller.delete(f"/departments/{department}") if number else caller.post("/employees", body)

        made, deleted = run_concurrently(2, work)

        assert (made.status_code, deleted.status_code) in {(200, 409), (422, 200)}
        if made.status_code == 422:
            assert list(made.get_json()["errors"]["json"]) == ["department"]


# The registry


@pytest.fixture
def registry(rehearsed):
    """The engine of the registry's own statements."""
    return db.engines["registry"]


def test_the_registry_is_queried_once(api, body, registry):
    api.ok(api.post("/employees", body))
    statements = []

    def note(_connection, _cursor, statement, *_others):
        statements.append(statement)

    event.listen(registry, "before_cursor_execute", note)
    try:
        api.ok(api.post("/employees", body))
    finally:
        event.remove(registry, "before_cursor_execute", note)

    assert len(statements) == 1, statements


def test_while_the_registry_is_busy_it_is_503_and_then_it_works(
    api, body, registry, monkeypatch, nothing_left
):
    monkeypatch.setattr(registry.pool, "_timeout", 0.05)
    with ExitStack() as taken:
        for _ in range(REGISTRY_POOL):
            taken.enter_context(registry.connect())
        answer = api.post("/employees", body)

    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    with registry.connect():
        assert reasons(api.post("/employees", {**body, "lga": str(uuid4())}), "lga")


def test_while_the_registry_is_away_it_is_503(api, body, registry, nothing_left):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    nowhere = registry_url(URL.create("postgresql", "nobody", "x", "127.0.0.1", port, "school"))
    engines = db.engines
    engines["registry"] = create_engine(nowhere, **registry_options(1))
    try:
        answer = api.post("/employees", body)
    finally:
        engines["registry"] = registry

    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)


def test_after_its_connections_died_the_registry_is_queried_all_the_same(committing, tenancy):
    body = committing.employee_body()
    committing.api.ok(committing.api.post("/employees", body))
    with tenancy.admin.begin() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND usename <> current_user"
            )
        )

    assert committing.api.post("/employees", body).status_code == 200


# Faults in the middle


def test_a_fault_in_the_middle_leaves_nothing_behind(committing, tenancy):
    body = committing.employee_body()
    schema = schema_name(committing.api.school)

    def count():
        with tenancy.admin.connect() as connection:
            connection.exec_driver_sql(f'SET search_path TO "{schema}"')
            return dict(connection.execute(text(COUNT)).mappings().one())

    def change(table, action):
        with tenancy.admin.begin() as connection:
            connection.exec_driver_sql(f'ALTER TABLE "{schema}".{table} {action}')

    before = count()
    for table in TABLES:
        # Inserting into this table fails, and into no other.
        change(table, "ADD COLUMN lacking integer NOT NULL DEFAULT 0")
        change(table, "ALTER COLUMN lacking DROP DEFAULT")
        answer = committing.api.post("/employees", body)
        change(table, "DROP COLUMN lacking")

        assert (answer.status_code, answer.get_json()["message"]) == (422, "A value can't be stored."), table
        assert count() == before, table
    assert committing.api.post("/employees", body).status_code == 200
