"""A request sends as many messages to PostgreSQL as the tables of docs/security.md say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from school_service.auth.tokens import issue_client_token
from tests.auth.conftest import grant
from tests.docs.tables import numbers_of
from tests.factories import UNKNOWN_ID, Factory
from tests.features.observations.comments.sheets import Said
from tests.features.reach.test_matrix import CASES, Place, make_places, with_publications
from tests.operations import STORED, measured

__all__ = ["grant"]

# Every test of the module has the same begin, whichever ran before.
pytestmark = pytest.mark.usefixtures("made_arms")

Requests = dict[str, Callable[[], Any]]


@pytest.fixture
def machine(api, grant, place):
    client_id, _ = grant(school_ids=[place.id], permissions=["read:classrooms"])
    key = api.app.extensions["school-service"].verifier.key
    return api.using(token=issue_client_token(key, client_id, [place.id])["access_token"])


@pytest.fixture
def counted(messages):
    """Send requests, each of them once before; answers how many messages each took."""

    def counting(requests: Requests) -> dict[str, int]:
        counts = {}
        for name, send in requests.items():
            send()
            with messages() as sent:
                send()
            counts[name] = len(sent)
        return counts

    return counting


def test_messages_to_a_caller_of_the_whole_school_are_as_in_the_table(api, make, arms, machine, counted):
    student, weak, room = f"/students/{arms.in_a[0]}", make.caller("read:roles"), make.classroom()["id"]
    tag = {"If-Match": "*"}
    names = iter(range(100))
    requests: Requests = {
        "a record, a list or a page is read": lambda: api.ok(api.get(student)),
        "a record that is not there": lambda: api.get(f"/students/{UNKNOWN_ID}"),
        "the permission lacks": lambda: weak.get("/students"),
        "the query is not valid": lambda: api.get("/students?pageSize=x"),
        "a list is empty, and has a filter": lambda: api.get(f"/students?cohort={UNKNOWN_ID}"),
        "a machine client reads": lambda: machine.ok(machine.get("/classrooms")),
        "a workbook is made": Said(make, 2).download,
        "a record is made": lambda: api.ok(
            api.post("/classrooms", {"name": f"Room {next(names)}", "level": "Junior Secondary"})
        ),
        "a record is changed": lambda: api.ok(
            api.patch(f"/classrooms/{room}", {"name": f"Room {next(names)}"})
        ),
        "a record is changed, with `If-Match`": lambda: api.patch(
            f"/classrooms/{room}", {"name": f"Room {next(names)}"}, headers=tag
        ),
    }

    assert counted(requests) == numbers_of("SCHOOL")


def test_messages_to_a_caller_of_own_records_are_as_in_the_table(api, make, arms, own, counted):
    api.ok(api.patch("/attendance-settings", {"families_read": "MARKS"}))
    teacher, pupil = own.subject_teacher(arms.subject, arms.a), own.student(arms.in_a[1], "read:classrooms")
    everything, term = make.caller("read:students"), arms.term["id"]
    requests: Requests = {
        "a record, a list or a page of a relation": lambda: teacher.ok(teacher.get("/students")),
        "a record out of reach": lambda: teacher.get(f"/students/{arms.in_b[0]}"),
        "a list is empty, and has a filter": lambda: teacher.get(f"/students?batch={arms.b}"),
        "a record of everybody's": lambda: teacher.ok(teacher.get("/classrooms")),
        "`GET /me`": lambda: teacher.ok(teacher.get("/me")),
        "`mine=true`": lambda: everything.ok(everything.get("/students?mine=true")),
        "a student or guardian without the permission": lambda: pupil.ok(
            pupil.get(f"/students/{arms.in_a[1]}/attendance?term={term}")
        ),
        "a photo, without the permission": lambda: pupil.get(f"/users/{pupil.user['id']}/photo"),
        "an operation that refuses OWN": lambda: teacher.get("/roles"),
    }

    assert counted(requests) == numbers_of("OWN")


# Queries of operations that need one and have no case in the matrix.
QUERIES = {"GET /school-days": "?from=2025-10-01&to=2025-10-31"}
READS = [
    name
    for name, row in STORED.items()
    if name.startswith("GET ") and row["policy"] not in {"public", "signing in"} and row["run"] == "BY_METHOD"
]


def test_every_read_costs_its_messages(make, own, messages, subtests):
    """Each GET that is no export, by an administrator, and by somebody who teaches the class and looks after it."""
    place = make_places(make)["own"]
    employee, teacher = own.teacher()
    own.assign(employee, {"id": place.subject}, None)
    make.api.ok(make.api.patch(f"/teachers/{place.batch}/add_to_batch", {"teacher_id": employee["id"]}))
    for published in (False, True):
        if published:
            place = with_publications(make, {"own": place})["own"]
        for operation, path in _reads(make, place, published):
            with subtests.test(operation):
                counts = {}
                for reach, client in (("SCHOOL", make.api), ("OWN", teacher)):
                    with messages() as sent:
                        answer = client.get(path)
                    counts[reach] = len(sent)
                    assert answer.status_code != 422, answer.get_json()
                measured(operation, messages=counts)


def _reads(make: Factory, place: Place, published: bool) -> Iterator[tuple[str, str]]:
    """The reads of published results, or all others, each with its address."""
    for operation in READS:
        cases = [case for case in CASES.get(operation, ()) if case.published == published]
        if cases or (operation not in CASES and not published):
            yield operation, cases[-1].path(place) if cases else _address(make, operation)


def _address(make: Factory, operation: str) -> str:
    """The address of a read, with the id of a record that there is, where there is one."""
    path = operation.removeprefix("GET ")
    ids = {}
    if "{" in path:
        records = make.api.get(path.partition("/{")[0]).get_json(silent=True)
        records = records.get("data", ()) if isinstance(records, dict) else records
        ids = {name: each["id"] for name in re.findall(r"{(.*?)}", path)[:1] for each in (records or ())[:1]}
    address = re.sub(r"{(.*?)}", lambda match: ids.get(match[1], UNKNOWN_ID), path)
    return f"{address}{QUERIES.get(operation, '')}"
