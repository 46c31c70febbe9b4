"""Ids of records that the demo holds, so that more than half of the requests reach what they name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.cli.program import Running

# Where a list has records of a kind. Administrators stay out: a run that deletes its own sees nothing but 401.
LISTS = {
    "users": "/users?search=a&pageSize=30",
    "roles": "/roles",
    "permissions": "/permissions",
    "classrooms": "/classrooms",
    "subjects": "/templates",
    "sessions": "/sessions",
    "terms": "/terms",
    "students": "/students?pageSize=30",
    "cohorts": "/cohorts",
    "cohort-subjects": "/cohort-subjects?pageSize=30",
    "entries": "/gradebooks?pageSize=30",
    "departments": "/departments",
    "categories": "/employee-categories",
    "positions": "/positions",
    "bands": "/grade-configs",
    "employees": "/employees",
    "states": "/states",
    "lgas": "/lgas",
    "nationalities": "/nationalities",
}
# What the id of a path names, by the path's first part.
OF_PATH = {
    "templates": "subjects",
    "gradebooks": "entries",
    "scoresheets": "cohort-subjects",
    "teachers": "cohorts",
    "employee-categories": "categories",
    "grade-configs": "bands",
}
# What a parameter, or a member of a body, names by its id.
OF_NAME = {
    "assessment": "assessments",
    "base": "subjects",
    "batch": "cohorts",
    "batchId": "cohorts",
    "category": "categories",
    "classroom": "classrooms",
    "cohort": "cohorts",
    "cohort_id": "cohorts",
    "department": "departments",
    "lga": "lgas",
    "nationality": "nationalities",
    "owner": "users",
    "permissionIds[*]": "permissions",
    "position": "positions",
    "role": "roles",
    "roleId": "roles",
    "session_id": "sessions",
    "state": "states",
    "student": "students",
    "student_id": "students",
    "student_ids[*]": "students",
    "students[*]": "students",
    "subject_id": "subjects",
    "teacherId": "employees",
    "teacher_id": "employees",
    "term": "terms",
    "termId": "terms",
    "user_id": "users",
}
# Members whose name means something else in one place.
EXCEPTIONS = {
    ("/assessments", "subject"): "cohort-subjects",
    ("/assessments", "category"): None,
    ("/terms", "term"): None,
}


def known_ids(service: Running, token: str, school: str) -> dict[str, list[str]]:
    """Ask the service for ids, by kind."""
    found: dict[str, list[str]] = {}
    for kind, path in LISTS.items():
        listed = service.ok("GET", path, token=token, school=school)
        records = listed["data"] if isinstance(listed, dict) else listed
        ids = [record["id"] for record in records if record.get("username") != "admin"]
        found[kind] = ids[:30]
        if kind == "entries":
            found["assessments"] = sorted({record["assessment"] for record in records})
    return found


def configuration(document: dict[str, Any], ids: dict[str, list[str]]) -> str:
    """Write what schemathesis is to use of the ids, operation by operation, as TOML."""
    lines = [f"[dictionaries.{kind}]\nvalues = {values}" for kind, values in ids.items() if values]
    for path, item in document["paths"].items():
        bound = [line for line in _bindings(path, item) if line[1] in ids and ids[line[1]]]
        if bound:
            lines.append(f'[[operations]]\ninclude-path = "{path}"\n[operations.parameters]')
            lines += [f'"{name}" = {{ dictionary = "{kind}", probability = 0.6 }}' for name, kind in bound]
    return "\n".join(lines) + "\n"


def _bindings(path: str, item: dict[str, Any]) -> Iterator[tuple[str, str]]:
    first = path.split("/")[1]
    for method, operation in item.items():
        if method == "parameters":
            continue
        for parameter in operation.get("parameters", ()):
            name = parameter["name"]
            of_path = parameter["in"] == "path" and name in {"id", "cohortId"}
            kind = OF_PATH.get(first, first) if of_path else _kind(path, name)
            if kind:
                yield f"{parameter['in']}.{name}", kind
    if any("requestBody" in operation for method, operation in item.items() if method != "parameters"):
        for name in OF_NAME:
            if kind := _kind(path, name):
                yield f"body.{name}", kind


def _kind(path: str, name: str) -> str | None:
    return EXCEPTIONS[path, name] if (path, name) in EXCEPTIONS else OF_NAME.get(name)
