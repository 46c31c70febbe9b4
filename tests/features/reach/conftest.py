"""A class with two arms, in which people have each relation, and callers with the reach of each."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from flask import Flask

from school_service.core.permissions import Permission
from tenants.clock import now
from tests.client import ApiClient
from tests.factories import Factory

READS = tuple(permission for permission in Permission if permission.access == "read")
OF_TEACHERS = (
    *READS,
    *(f"{access}:{section}" for access in ("write", "delete") for section in ("assessments", "gradebooks")),
    *("write:attendance", "write:contacts", "write:metrics", "write:users"),
)


@dataclass
class Arms:
    """A cohort of two arms in the current session, with two subjects; `other` is an elective.

    `in_a` and `in_b` are students of each arm; each takes both subjects.
    """

    session: dict[str, Any]
    term: dict[str, Any]
    cohort: dict[str, Any]
    a: str
    b: str
    subject: dict[str, Any]
    other: dict[str, Any]
    in_a: list[str]
    in_b: list[str]


def this_session(make: Factory, **fields: Any) -> dict[str, Any]:
    """Make the session of this year, the current one."""
    year = now().year
    body = {"start_date": f"{year}-01-01", "end_date": f"{year}-12-31"}
    return make.session(**{**body, **fields})


def make_arms(make: Factory) -> Arms:
    """Make the arms."""
    session = this_session(make)
    cohort = make.cohort(session=session)
    batch = make.batch(cohort, name="B")
    subject, other = make.cohort_subject(cohort), make.cohort_subject(cohort)
    in_a = make.enrolled(cohort, make.student(last_name="Abara"), make.student(last_name="Adeyemi"))
    in_b = make.enrolled(cohort, make.student(last_name="Bassey"), batch=batch["id"])
    return Arms(session, make.term(session), cohort, cohort["id"], batch["id"], subject, other, in_a, in_b)


@pytest.fixture(scope="module")
def made_arms(prepared: Callable[..., Arms]) -> Arms:
    return prepared(make_arms)


@pytest.fixture
def arms(rehearsed: Flask, made_arms: Arms) -> Arms:
    return deepcopy(made_arms)


@dataclass
class Own:
    """Makes users whose role has reach OWN."""

    make: Factory

    @staticmethod
    def today() -> str:
        """The school's day."""
        return str(now().astimezone(ZoneInfo("Africa/Lagos")).date())

    def caller(self, user: dict[str, Any], *permissions: str, reach: str = "OWN") -> ApiClient:
        """Give a user a role with these permissions, as OWN; answers a client with their token."""
        return self.make.caller_of(user, *permissions, reach=reach, password="a password of their own")

    def teacher(self, *permissions: str) -> tuple[dict[str, Any], ApiClient]:
        """Make an employee whose role is OWN; answers them, and a client with their token."""
        employee = self.make.employee()
        return employee, self.caller(self.make.account_of(employee), *(permissions or OF_TEACHERS))

    def form_teacher(self, batch: str, *permissions: str) -> ApiClient:
        """Make a form teacher of a batch."""
        employee, client = self.teacher(*permissions)
        api = self.make.api
        api.ok(api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": employee["id"]}))
        return client

    def subject_teacher(self, subject: dict[str, Any], batch: str | None, *permissions: str) -> ApiClient:
        """Make a teacher of a cohort subject in a batch, or in all arms."""
        employee, client = self.teacher(*permissions)
        self.assign(employee, subject, batch)
        return client

    def assign(
        self, employee: dict[str, Any], subject: dict[str, Any], batch: str | None, **dates: str
    ) -> Any:
        """Let an employee teach a cohort subject."""
        api = self.make.api
        row = {"cohort_subject": subject["id"], "employee": employee["id"], "batch": batch, **dates}
        return api.ok(api.put("/subject-teachers", {"assignments": [row]}))

    def student(self, student_id: str, *permissions: str) -> ApiClient:
        """Let a student sign in, with a role that is OWN."""
        api = self.make.api
        user_id = api.ok(api.get(f"/students/{student_id}"))["user"]
        return self.caller(api.ok(api.get(f"/users/{user_id}")), *(permissions or READS))

    def guardian(self, guardian_id: str, *permissions: str) -> ApiClient:
        """Let a guardian sign in, with a role that is OWN."""
        api = self.make.api
        user_id = api.ok(api.get(f"/guardians/{guardian_id}"))["user"]
        if user_id is None:
            user_id = self.make.user()["user"]["id"]
            api.ok(api.put(f"/guardians/{guardian_id}/account", {"user": user_id}))
        return self.caller(api.ok(api.get(f"/users/{user_id}")), *(permissions or READS))


@pytest.fixture
def own(make: Factory) -> Own:
    return Own(make)


def ids(client: ApiClient, path: str) -> set[str]:
    """The ids of the records of a list or page."""
    answer = client.ok(client.get(path))
    return {record["id"] for record in (answer["data"] if isinstance(answer, dict) else answer)}


def error_of(answer: Any) -> tuple[int, dict[str, Any]]:
    """The status and the body of an error, without the id of its request."""
    body = answer.get_json()
    del body["request_id"]
    return answer.status_code, body
