"""The first rows of a new school (docs/rules/tenancy.md, "Creating a school"); the school can change all of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from school_service.auth.passwords import hash_password
from school_service.core.counters import CHANGES, COUNTERS
from school_service.core.counters import TRAITS as TRAIT_COUNTERS
from school_service.core.permissions import Permission
from school_service.features.people.models import ADMINISTRATOR, CREATED
from school_service.features.people.roles.seeded import ROLES_OF_NEW_SCHOOL, SEEDED_ROLES, SeededRole
from school_service.features.people.usernames import username_key
from school_service.features.school.models import TIME_ZONE
from school_service.features.scores.models import DEFAULTS, MARKS
from school_service.seed.defaults import DEPARTMENTS, EMPLOYEE_CATEGORIES, GRADE_BANDS, POSITIONS, TRAITS
from tenants.clock import now
from tenants.connections.engines import json_text
from tenants.operator_log import operator_name
from tenants.tenancy import Administrator, SeedRows


def seed_school(administrator: Administrator) -> Iterator[SeedRows]:
    """Give the first rows of a new school: permissions, roles, its administrator, counters, default settings."""
    moment = now()
    permission_ids = {permission: uuid4() for permission in Permission}
    role_ids = {name: uuid4() for name in ROLES_OF_NEW_SCHOOL}
    user_id = uuid4()
    yield (
        "permissions",
        [
            {"id": permission_id, "section": permission.section, "access": permission.access}
            for permission, permission_id in permission_ids.items()
        ],
    )
    yield (
        "roles",
        [_role(role_ids[role.name], role, number) for number, role in enumerate(SEEDED_ROLES, 1)],
    )
    yield (
        "role_permissions",
        [
            {"role_id": role_ids[name], "permission_id": permission_ids[permission]}
            for name, permissions in ROLES_OF_NEW_SCHOOL.items()
            for permission in sorted(permissions)
        ],
    )
    yield (
        "users",
        [
            {
                "id": user_id,
                "username": administrator.username,
                "username_key": username_key(administrator.username),
                "password_hash": hash_password(administrator.password),
                "password_given_at": moment,
                "password_given_by_name": operator_name(),
                "first_name": "School",
                "last_name": "Administrator",
                "gender": "",
                # The account begins without a token: its number is as after a sign-in.
                "session_number": CREATED + 1,
                "created_at": moment,
            }
        ],
    )
    yield "user_roles", [{"user_id": user_id, "role_id": role_ids[ADMINISTRATOR], "created_at": moment}]
    counted = {TRAIT_COUNTERS[metric_type]: len(names) for metric_type, names in TRAITS.items()}
    counted[CHANGES] = 1
    yield "change_sets", [{"id": uuid4(), "number": 1, "at": moment, "resync": False}]
    yield "counters", [{"id": uuid4(), "name": name, "value": counted.get(name, 0)} for name in COUNTERS]
    yield "school_settings", [{"id": uuid4(), "must_change_password_since": None, "time_zone": TIME_ZONE}]
    yield from _choices(moment)


def _choices(moment: datetime) -> Iterator[SeedRows]:
    """Give the rows of choices that a school may change: of results, employees, grades and traits."""
    settings = {**DEFAULTS, **{name: json_text(DEFAULTS[name]) for name in ("weights", "principal_comments")}}
    yield (
        "result_settings",
        [{"id": uuid4(), "singleton": True, **settings, "percent_from": MARKS}],
    )
    yield "departments", [{"id": uuid4(), "name": name, "created_at": moment} for name in DEPARTMENTS]
    yield "employee_categories", [{"id": uuid4(), "name": name} for name in EMPLOYEE_CATEGORIES]
    yield "positions", [{"id": uuid4(), "name": name} for name in POSITIONS]
    yield (
        "grade_configurations",
        [
            {
                "id": uuid4(),
                "lower_threshold": lower,
                "upper_threshold": upper,
                "letter_grade": letter,
                "remarks": remarks,
            }
            for lower, upper, letter, remarks in GRADE_BANDS
        ],
    )
    yield (
        "metric_definitions",
        [
            {"id": uuid4(), "name": name, "metric_type": metric_type, "position": position}
            for metric_type, names in TRAITS.items()
            for position, name in enumerate(names, 1)
        ],
    )


def _role(role_id: UUID, role: SeededRole, number: int) -> dict[str, Any]:
    return {
        "id": role_id,
        "name": role.name,
        "avatar_number": number,
        "reach": role.reach,
        "given_to": role.given_to,
    }
