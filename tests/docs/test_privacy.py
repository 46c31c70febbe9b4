"""docs/privacy.md names every table of people, permissions and operations that there are, and its commands work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from school_service.cli.program import program
from school_service.core.database import db
from school_service.core.permissions import Permission
from tests.contract.check_openapi import template
from tests.features.personal_data.people import make_employee, make_student

PAGE = (Path(__file__).parents[2] / "docs" / "privacy.md").read_text(encoding="utf-8")
BLOCKS = [block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S) if "export" not in block]
COMMANDS = [line.strip() for block in BLOCKS for line in block.strip().splitlines()]


def tables_of_people():
    """The tables that refer to users, directly or through others, users, and the audit log."""
    tables = {"users"}
    while True:
        more = {
            table.name
            for table in db.metadata.tables.values()
            for key in table.foreign_keys
            if key.column.table.name in tables
        }
        if more <= tables:
            return tables | {"audit_entries"}
        tables |= more


def test_every_table_of_people_is_named_and_no_other():
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]

    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[2])}

    assert named == tables_of_people()


def test_each_permission_that_is_named_exists():
    named = set(re.findall(r"`((?:read|write|delete):[a-z-]+)`", PAGE))

    assert len(named) > 8
    assert named <= set(Permission)


def test_each_operation_that_is_named_exists(document):
    known = {(method, template(path)) for method, path in document.operations()}
    named = set(re.findall(r"`(GET|PATCH|DELETE|POST|PUT) (/[^`? ]*)", PAGE))

    assert len(named) > 8
    assert {(method, template(path)) for method, path in named} <= known


def test_the_commands_are_requests_and_the_operators():
    assert len(COMMANDS) == 10
    for command in COMMANDS:
        words = shlex.split(command)
        if words[0] == "curl":
            continue
        assert words[:2] == ["school-service", "tenants"]
        assert words[2] in program.commands["tenants"].commands


@pytest.fixture
def values(api, make):
    """Values of the variables in the commands: a student who has left, an employee, a token."""
    student = make_student(make)
    removed = {"student_ids": [student["id"]]}
    api.ok(api.patch(f"/cohorts/{student['cohort_id']}/remove_students", removed))
    people = {"STUDENT": student["id"], "EMPLOYEE": make_employee(make)["id"]}
    return {"BASE": "http://localhost", "SCHOOL": str(api.school), "TOKEN": api.token, **people}


def send(api, words):
    """Send the request of a curl command with the client; options that the page does not use are unknown."""
    method, headers, body, address = "GET", {}, None, None
    rest = iter(words[1:])
    for word in rest:
        match word:
            case "-sS":
                pass
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = next(rest).partition(": ")
                headers[name] = value
            case "-d":
                body = next(rest)
            case "-o":
                next(rest)
            case _:
                assert address is None
                address = urlsplit(word)
    client = api.using(token=None, school=None)
    return client.request(method, address.path, query_string=address.query, headers=headers, data=body)


def test_the_requests_of_the_page_work_in_its_order(api, values):
    sent = 0
    for command in COMMANDS:
        words = shlex.split(re.sub(r"\$(\w+)", lambda match: values[match[1]], command))
        if words[0] == "curl":
            answer = send(api, words)
            assert answer.status_code == 200, (command, answer.get_json())
            sent += 1

    assert sent == 9
    for kind, name in (("students", "STUDENT"), ("employees", "EMPLOYEE")):
        told = api.ok(api.get(f"/{kind}/{values[name]}/data"))
        assert told["user"]["first_name"] == "Erased"
