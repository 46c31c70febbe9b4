"""Private facts of an employee are in no log, at any level and after any failure."""

from __future__ import annotations

import json
import logging
import re

import pytest

from tenants.registry.schools import schema_name

NESTED = ("bank_details", "next_of_kin", "contact")
LOGGERS = (
    "sqlalchemy",
    "sqlalchemy.engine",
    "sqlalchemy.orm",
    "sqlalchemy.pool",
    "psycopg2",
    "school_service",
)


@pytest.fixture
def every_logger(logs, caplog):
    """Lets the libraries write all that they can write."""
    for name in LOGGERS:
        caplog.set_level(logging.DEBUG, logger=name)
    return logs


def private(body):
    """The private texts: every text of the nested records, written as JSON writes it."""
    texts = [value for name in NESTED for value in body[name].values() if isinstance(value, str)]
    assert len(texts) == 13
    return [json.dumps(text)[1:-1] for text in texts]


def assert_silent(lines, body):
    written = json.dumps(lines)
    for text in private(body):
        assert text not in written


def test_nothing_private_is_logged_at_any_level(committing, every_logger):
    api, body = committing.api, committing.employee_body()
    made = api.ok(api.post("/employees", body))
    for path in ("", f"/{made['id']}", f"/{made['id']}/bank-account", f"/{made['id']}/nextofkin"):
        api.ok(api.get(f"/employees{path}"))
    api.ok(api.delete(f"/employees/{made['id']}"))

    lines = every_logger()
    statements = [line["message"] for line in lines if line["logger"].startswith("sqlalchemy.engine")]
    assert any(line.startswith("UPDATE employees SET deleted_at") for line in statements)
    assert_silent(lines, body)


def test_a_refused_body_is_not_logged(committing, every_logger):
    api, body = committing.api, committing.employee_body()
    for name, value in (("state", body["lga"]), ("dob", "x"), ("department", body["lga"]), ("no member", 1)):
        assert api.post("/employees", {**body, name: value}).status_code == 422
    for name in NESTED:
        twisted = {**body, name: {**body[name], "no member": body[name]}}
        assert api.post("/employees", twisted).status_code == 422
    caller = committing.caller("read:employees")
    assert caller.post("/employees", body).status_code == 403

    assert_silent(every_logger(), body)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        # PostgreSQL's own message then contains the whole row, …
        (["ADD COLUMN lacking text DEFAULT ''", "ADD CONSTRAINT refused CHECK (lacking <> '')"], 422),
        (["ADD COLUMN lacking text NOT NULL DEFAULT ''", "ALTER COLUMN lacking DROP DEFAULT"], 422),
        # … or the part of the statement where it stumbled.
        (["RENAME COLUMN {last} TO away"], 500),
        (["ALTER COLUMN {last} TYPE boolean USING true"], 500),
    ],
    ids=["check", "lacking", "renamed", "type"],
)
def test_a_statement_that_fails_does_not_tell_its_values(committing, tenancy, every_logger, changes, status):
    schema, body = schema_name(committing.api.school), committing.employee_body()
    # The last one that is written comes first: it is reached while the others are as they should be.
    for table in ("bank_accounts", "next_of_kin", "contacts"):
        last = "employee_ref" if table == "bank_accounts" else "created_at"
        with tenancy.admin.begin() as connection:
            for change in changes:
                connection.exec_driver_sql(f'ALTER TABLE "{schema}".{table} {change.format(last=last)}')
        before = len(every_logger())

        assert committing.api.post("/employees", body).status_code == status

        lines = every_logger()[before:]
        assert_silent(lines, body)
        if status == 500:
            (failure,) = [line for line in lines if line["logger"] == "school_service.web.error_responses"]
            # On Citus, into its shard.
            assert re.search(rf"INSERT INTO {table}(_\d+)? \(", failure["exception"])
            assert "in create_employee" in failure["exception"]


def test_a_failed_commit_does_not_tell_the_values_of_the_audit_log(committing, tenancy, every_logger):
    schema = schema_name(committing.api.school)
    with tenancy.admin.begin() as connection:
        connection.exec_driver_sql(f'ALTER TABLE "{schema}".audit_entries RENAME COLUMN request_id TO away')
    before = len(every_logger())

    assert committing.api.post("/classrooms", {"name": "JSS 1 Ruby", "level": "Junior"}).status_code == 500

    written = json.dumps(every_logger()[before:])
    assert "Ruby" not in written
    assert "INSERT INTO audit_entries" in written
