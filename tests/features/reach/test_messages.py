"""A request sends as many messages to PostgreSQL as the tables of docs/security.md say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from school_service.auth.tokens import issue_client_token
from tests.auth.conftest import grant
from tests.docs.tables import numbers_of
from tests.factories import UNKNOWN_ID
from tests.features.observations.comments.sheets import Said
from tests.features.reach.test_matrix import CASES, EVERYTHING, make_places

__all__ = ["grant"]

EXPORTS = {name for name in CASES if "download" in name or name.endswith("report-cards")}
"""They work in a transaction, or print."""

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
        found = {}
        for name, send in requests.items():
            send()
            with messages() as sent:
                send()
            found[name] = len(sent)
        return found

    return counting


def test_the_table_of_school(api, make, arms, machine, counted):
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


def test_the_table_of_own(api, make, arms, own, counted):
    api.ok(api.patch("/attendance-settings", {"families_read": "MARKS"}))
    teacher, pupil = own.subject_teacher(arms.subject, arms.a), own.student(arms.in_a[1], "read:classrooms")
    everything, term = make.caller("read:students"), arms.term["id"]
    requests: Requests = {
        "a record, a list or a page of a relation": lambda: teacher.ok(teacher.get("/students")),
        "a record out of reach": lambda: teacher.get(f"/students/{arms.in_b[0]}"),
        "a list is empty, and has a filter": lambda: teacher.get(f"/students?batch={arms.b}"),
        "what is everybody's": lambda: teacher.ok(teacher.get("/classrooms")),
        "`GET /me`": lambda: teacher.ok(teacher.get("/me")),
        "`mine=true`": lambda: everything.ok(everything.get("/students?mine=true")),
        "a student or guardian without the permission": lambda: pupil.ok(
            pupil.get(f"/students/{arms.in_a[1]}/attendance?term={term}")
        ),
        "a photo, without the permission": lambda: pupil.get(f"/users/{pupil.user['id']}/photo"),
        "an operation that refuses OWN": lambda: teacher.get("/roles"),
    }

    assert counted(requests) == numbers_of("OWN")


def test_every_read_of_the_matrix(make, own, messages, subtests):
    """Each GET that has a case, by a teacher of all arms and a form teacher: two messages where it is answered."""
    place = make_places(make)["own"]
    reads = {name: cases[0] for name, cases in CASES.items() if name.startswith("GET ")}
    clients = {
        "T": own.subject_teacher({"id": place.subject}, None),
        "F": own.form_teacher(place.batch),
    }
    for operation, case in reads.items():
        for relation, client in clients.items():
            with subtests.test(operation, relation=relation), messages() as sent:
                answer = client.get(case.path(place))
                if answer.status_code == 200 and operation not in EXPORTS:
                    assert len(sent) == 2 or (len(sent) == 5 and is_empty(answer))


def is_empty(answer: Any) -> bool:
    """Tell whether a list or page has no rows: then its filters are checked."""
    found = answer.get_json(silent=True)
    return found == [] or (isinstance(found, dict) and found.get("data") == [])


def test_what_is_everybodys_is_one_message(own, messages, subtests):
    _, teacher = own.teacher()
    for operation in EVERYTHING:
        path = operation.removeprefix("GET ")
        if "{" not in path:
            with subtests.test(operation), messages() as sent:
                if teacher.get(path).status_code == 200:
                    assert len(sent) == 1
