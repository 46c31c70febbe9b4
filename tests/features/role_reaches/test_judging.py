"""The changes of a switch, by values alone."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from school_service.core.errors import Conflict
from school_service.features.role_reaches.judging import Switch, judge

READ, WRITE = "read:students", "write:students"


def role(id: str, reach: str, *permissions: str, given_to: str | None = None) -> dict[str, Any]:
    return {"id": id, "name": id, "reach": reach, "given_to": given_to, "permissions": [*permissions]}


def switch(roles: list[Any], *users: tuple[str, ...], add_seeded: bool = False, **targets: str) -> Switch:
    """Judge a switch in a school of users, each of these roles; `STUDENTS` among them is an account of that kind."""
    parts: dict[str, list[Any]] = {
        "permissions": [{"name": READ}, {"name": WRITE}],
        "roles": roles,
        "bearing": [{"roles": [held for held in user if held != "STUDENTS"]} for user in users],
        "users": [
            {"user": number, "roles": [held for held in user if held != "STUDENTS"], "kinds": kinds}
            for number, user in enumerate(users)
            for kinds in [["STUDENTS"] if "STUDENTS" in user else None]
        ],
    }
    named = [{"role": name, "reach": reach} for name, reach in targets.items()]
    return judge(
        {part: orjson.dumps(rows).decode() for part, rows in parts.items()}, named, add_seeded=add_seeded
    )


@pytest.mark.parametrize(
    ("held", "narrowed", "refused", "widened"),
    [
        (("clerk",), [READ], [WRITE], []),
        (("clerk", "reader"), [], [WRITE], []),
        (("helper",), [], [], [READ]),
        (("clerk", "helper"), [], [WRITE], []),
        (("reader",), None, None, None),
        (("helper", "reader"), None, None, None),
    ],
)
def test_a_permission_counts_by_all_roles_together(held, narrowed, refused, widened):
    roles = [
        role("clerk", "SCHOOL", READ, WRITE),
        role("helper", "OWN", READ),
        role("reader", "SCHOOL", READ),
    ]

    users = switch(roles, held, clerk="OWN", helper="SCHOOL").users(served={READ})

    shown = {"user": 0, "narrowed": narrowed, "refused": refused, "widened": widened}
    assert users == ([] if narrowed is None else [shown])


def test_users_losing_a_permission_come_first():
    roles = [role("clerk", "SCHOOL", READ), role("helper", "OWN", WRITE)]

    users = switch(roles, ("helper",), ("clerk",), ("helper",), clerk="OWN", helper="SCHOOL").users(set())

    assert [user["user"] for user in users] == [1, 0, 2]


def test_an_account_gains_by_its_role_the_permissions_that_no_other_role_gives():
    roles = [role("pupil", "OWN", READ, WRITE, given_to="STUDENTS"), role("helper", "OWN", READ)]

    asked = switch(roles, ("STUDENTS",), ("STUDENTS", "helper"), add_seeded=True)

    assert [user["widened"] for user in asked.users(set())] == [[READ, WRITE], [WRITE]]
    assert "Student" not in {each.name for each in asked.added}
    assert switch(roles, ("STUDENTS",)).users(set()) == []


def test_a_school_without_an_administrator_may_be_switched():
    chief = role("chief", "SCHOOL", READ, WRITE)
    reader, writer = role("reader", "SCHOOL", READ), role("writer", "SCHOOL", WRITE)

    with pytest.raises(Conflict):
        switch([chief, reader], ("chief", "reader"), chief="OWN").require_administrator()
    switch([chief, reader, writer], ("chief",), ("reader", "writer"), chief="OWN").require_administrator()
    switch([reader, writer], ("reader",), reader="OWN").require_administrator()
