"""The roles given to a school: those of a new school, and those for an existing one to add."""

from __future__ import annotations

from dataclasses import dataclass

from school_service.core.permissions import Permission
from school_service.features.people.models import ADMINISTRATOR, GUARDIANS, OWN, SCHOOL, STUDENTS

_RECORDS = (
    "classrooms",
    "cohort-subjects",
    "cohorts",
    "contacts",
    "graduates",
    "students",
    "subjects",
    "terms",
)
_TEACHING = ("assessments", "gradebooks", "metrics", "results", "scoresheets")
_OF_CLASSES = ("classrooms", "cohort-subjects", "cohorts", "students", "subjects", "teachers", "terms")


def _every(access: str) -> set[Permission]:
    return {permission for permission in Permission if permission.access == access}


def _to(access: str, *sections: str) -> set[Permission]:
    return {Permission(f"{access}:{section}") for section in sections}


@dataclass(frozen=True, slots=True)
class SeededRole:
    """A role for a school to add: its reach, and the kind of accounts with the role from their making."""

    name: str
    permissions: frozenset[Permission]
    reach: str = SCHOOL
    given_to: str | None = None


_OF_REGISTRAR = (
    _to("read", *_RECORDS, *_TEACHING, "attendance", "employees", "settings", "teachers", "users")
    | _to("write", *_RECORDS, "attendance-corrections", "teachers", "users")
    | _to("delete", *_RECORDS, "teachers")
)
_OF_TEACHER = (
    _to("read", *_RECORDS, *_TEACHING, "attendance", "settings", "teachers") - _to("read", "graduates")
    | _to("write", "assessments", "attendance", "gradebooks", "metrics")
    | _to("delete", "assessments", "gradebooks")
)
_KEPT_BY_PRINCIPAL = ("settings", "cohorts", "employees", "teachers", "assessments", "gradebooks")

SEEDED_ROLES = (
    SeededRole(ADMINISTRATOR, frozenset(Permission)),
    SeededRole("Registrar", frozenset(_OF_REGISTRAR)),
    SeededRole("Teacher", frozenset(_OF_TEACHER), OWN),
    SeededRole(
        "Bursar",
        frozenset(
            _to("read", "classrooms", "cohorts", "contacts", "employees", "settings", "students", "terms")
        ),
    ),
    SeededRole(
        "Viewer",
        frozenset(_every("read") - _to("read", "audit", "changes", "employees", "export", "roles", "users")),
    ),
    SeededRole(
        "Principal",
        frozenset(
            _OF_REGISTRAR
            | _OF_TEACHER
            | _every("read") - _to("read", "changes", "export")
            | _to("write", *_KEPT_BY_PRINCIPAL, "graduates", "metrics", "results", "terms", "users")
            | _to("delete", *_KEPT_BY_PRINCIPAL)
        ),
    ),
    SeededRole("Guardian", frozenset(_to("read", *_OF_CLASSES)), OWN, GUARDIANS),
    SeededRole("Student", frozenset(_to("read", *_OF_CLASSES)), OWN, STUDENTS),
)
"""The roles of a new school; an existing school can add the ones with a name unused in it."""
ROLES_OF_NEW_SCHOOL = {role.name: role.permissions for role in SEEDED_ROLES}
"""The permissions of each, by its name."""
