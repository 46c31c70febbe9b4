"""Policies: the condition in SQL and the judgement in Python say the same of every state and token."""

from __future__ import annotations

from dataclasses import fields, replace
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest

from school_service.auth.policies import (
    ONESELF,
    SIGNING_IN,
    UNLINKED,
    Admission,
    Mine,
    Policy,
    by_relation,
    own_account,
    own_student,
)
from school_service.auth.principal import VerifiedToken
from school_service.core.errors import Forbidden, NotAuthenticated
from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING, REFUSED, related

ONE, OTHER, THIRD = Permission.USERS_READ, Permission.STUDENTS_READ, Permission.ROLES_READ
POLICIES = {
    "no permission": Policy(),
    "one permission": Policy((ONE,)),
    "several": Policy((ONE, OTHER)),
    "everything": Policy((ONE,), EVERYTHING),
    "related": Policy((ONE,), related("TFSG")),
    "related, several": Policy((ONE, OTHER), related("M")),
    "own account": replace(own_account(ONE), own=related("M")),
    "own account, refused": own_account(ONE),
    "own account, given password": replace(own_account(ONE, given_password=True), own=related("M")),
    "own student": replace(own_student(ONE), own=related("FSG")),
    "by relation": replace(by_relation(ONE), own=related("TFSGM")),
    "mine": Mine((ONE,), related("TF")),
    "oneself": replace(ONESELF, own=related("TFSG")),
    "signing in": SIGNING_IN,
    "unlinked": UNLINKED,
}
COLUMNS = {
    "session_number": "int",
    "must_change_password": "boolean",
    "permissions": "text[]",
    "own_permissions": "text[]",
    "student": "uuid",
    "children": "uuid[]",
}
STATES = 150


def some_of(random: Random, *permissions: Permission) -> list[str]:
    return [str(permission) for permission in permissions if random.random() < 0.5]


def random_token(random: Random, user: UUID) -> VerifiedToken:
    kind = random.choice(["own", "own", "narrowed", "linked", "outside"])
    own = kind in {"own", "narrowed"}
    return VerifiedToken(
        user_id=user,
        client_id=None,
        own=own,
        schools=None,
        granted=False,
        permissions=None,
        session_number=1 if own else None,
        ceiling=frozenset(some_of(random, ONE, OTHER)) if kind == "narrowed" else None,
        link=("https://id.example.com", "ada") if kind == "linked" else None,
    )


def random_state(random: Random, student: UUID) -> dict[str, Any]:
    nobody = str(uuid4())
    for_school = some_of(random, ONE, OTHER, THIRD)
    return {
        "name": "Ada Obi",
        "session_number": random.choice([1, 1, 1, -1, 2]),
        "must_change_password": random.random() < 0.2,
        "permissions": for_school,
        "own_permissions": [
            permission for permission in some_of(random, ONE, OTHER) if permission not in for_school
        ],
        "student": random.choice([None, str(student), nobody]),
        "children": random.choice([[], [nobody], [nobody, str(student)]]),
        "account": str(uuid4()),
        "employee": None,
        "form_batches": random.choice([[], [nobody]]),
        "taught_subjects": random.choice([[], [nobody]]),
        "taught_arms": [],
    }


def judged(policy: Policy, token: VerifiedToken, state: dict[str, Any]) -> Admission | None:
    """The admission of a token's bearer; None where they are refused."""
    try:
        return policy.admit(token.principal(state), state)
    except (Forbidden, NotAuthenticated):
        return None


def is_run(connection: Any, policy: Policy, token: VerifiedToken, state: dict[str, Any]) -> bool:
    """Tell whether the first message runs its query."""
    condition, parameters = policy.condition(token)
    row = ", ".join(f"%s::{kind} AS {name}" for name, kind in COLUMNS.items())
    values = (*(state[name] for name in COLUMNS), *parameters)
    result = connection.exec_driver_sql(
        f"WITH caller AS (SELECT {row}) SELECT {condition} FROM caller", values
    )
    return bool(result.scalar_one())


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_condition_and_judgement_say_the_same_of_random_states(policy, tenancy):
    random, user, student = Random(policy.name), uuid4(), uuid4()
    seen = set()
    with tenancy.admin.begin() as connection:
        for _ in range(STATES):
            path = {"id": random.choice([user, student, uuid4()])}
            of_request = policy.at(path)
            token, state = random_token(random, user), random_state(random, student)
            admission = judged(of_request, token, state)
            by_first = admission is not None and (admission.reach is None or of_request.reads_own)
            seen.add((admission is None, by_first))

            assert is_run(connection, of_request, token, state) == by_first, (of_request, token, state)

    # Some are refused, some answered by the first message; by the second, where there is one.
    two = policy.own.relations and not policy.reads_own
    assert seen == {(True, False), (False, True), *([(False, False)] if two else [])}


def machine(*permissions: str, everything: bool = False) -> Any:
    token = VerifiedToken(None, "a machine", True, None, True, None, session_number=0)
    state = {"session_number": 0, "permissions": list(permissions), "all_permissions": everything}
    return token.principal(state), state


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_a_machine_client_needs_the_permissions_of_any_policy(policy):
    for path in (uuid4(), uuid4()):
        of_request = policy.at({"id": path})
        for principal, state in (machine(*map(str, policy.permissions)), machine(everything=True)):
            assert of_request.admit(principal, state) == Admission()
        if policy.permissions:
            with pytest.raises(Forbidden, match=r"This needs the permissions? .*read:users"):
                of_request.admit(*machine())


def test_a_policy_that_says_nothing_refuses_own():
    assert Policy((ONE,)).own == own_account(ONE).own == by_relation(ONE).own == REFUSED
    assert {each.name for each in fields(Policy)} == {"permissions", "own"}
