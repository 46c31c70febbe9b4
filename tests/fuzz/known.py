"""Ids of records that the demo holds, so that more than half of the requests reach their records."""

from __future__ import annotations

import re
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
    "publications": "/publications",
    "promotions": "/promotions",
    "departments": "/departments",
    "categories": "/employee-categories",
    "positions": "/positions",
    "bands": "/grade-configs",
    "employees": "/employees",
    "states": "/states",
    "lgas": "/lgas",
    "nationalities": "/nationalities",
}
# The kind of record that the id of a path names, by the path's first part.
OF_PATH = {
    "templates": "subjects",
    "gradebooks": "entries",
    "scoresheets": "cohort-subjects",
    "teachers": "cohorts",
    "employee-categories": "categories",
    "grade-configs": "bands",
}
# The kind of record that a parameter, or a member of a body, names by its id.
OF_NAME = {
    "absences[*].student": "batch-students",
    "assessment": "assessments",
    "base": "subjects",
    "batch": "batches",
    "batchId": "batches",
    "batches[*]": "batches",
    "category": "categories",
    "classroom": "classrooms",
    "code": "codes",
    "cohort": "cohorts",
    "cohort_id": "cohorts",
    "comments[*].student": "batch-students",
    "department": "departments",
    "lga": "lgas",
    "moves[*].batch": "batches",
    "moves[*].promote_to": "next-cohorts",
    "moves[*].repeat_in": "next-cohorts",
    "nationality": "nationalities",
    "overrides[*].batch": "next-cohorts",
    "overrides[*].student": "batch-students",
    "owner": "users",
    "permissionIds[*]": "permissions",
    "position": "positions",
    "role": "roles",
    "roleId": "roles",
    "school": "schools",
    "session": "sessions",
    "session_id": "sessions",
    "state": "states",
    "student": "students",
    "student_id": "students",
    "student_ids[*]": "students",
    "students[*]": "students",
    "subject_id": "subjects",
    "teacherId": "employees",
    "teacher_id": "employees",
    "term": "terms-by-name",
    "termId": "terms",
    "user_id": "users",
    "[*].required_subjects[*]": "subjects",
}
# Members whose name means something else in one place.
EXCEPTIONS = {
    ("/assessments", "subject"): "cohort-subjects",
    ("/assessments", "category"): None,
    ("/assessments", "term"): "terms",
    ("/assessments/{id}/absences/{student_id}", "student_id"): "batch-students",
    ("/gradebooks", "term"): "terms",
    ("/templates", "code"): None,
    ("/terms", "term"): None,
    ("/students/{id}/report-card", "id"): "batch-students",
    ("/students/{id}/report-cards", "id"): "batch-students",
    ("/students/{id}/results", "id"): "batch-students",
    ("/students/{id}/transcript", "id"): "batch-students",
    ("/students/{id}/transcript/download", "id"): "batch-students",
    ("/report-cards", "students"): None,
}


def known_ids(service: Running, token: str, school: str) -> dict[str, list[str]]:
    """Ask the service for ids, by kind."""

    def listed(path: str) -> list[dict[str, Any]]:
        answer = service.ok("GET", path, token=token, school=school)
        records: list[dict[str, Any]] = answer["data"] if isinstance(answer, dict) else answer
        return records

    codes = re.findall(r"/verify/[0-9a-f-]{36}/([0-9a-f-]{36})", service.printed)
    ids = {"schools": [school], "codes": codes, "next-cohorts": promoted(service, token, school)}
    for kind, path in LISTS.items():
        records = [record for record in listed(path) if record.get("username") != "admin"]
        ids[kind] = [record["id"] for record in records][:30]
        if kind == "entries":
            ids["assessments"] = sorted({record["assessment"] for record in records})
        if kind == "publications":
            # Of the batches whose results are published, so that a batch, a term and a student go together.
            ids["batches"] = sorted({record["batch"] for record in records})
            terms = {record["term"]["id"] for record in records}
            ids["terms-by-name"] = ["FIRST", "SECOND", "THIRD", *sorted(terms)]
    for batch in ids["batches"]:
        students = listed(f"/students?batch={batch}&pageSize=10")
        ids.setdefault("batch-students", []).extend(student["id"] for student in students)
    return ids


def promoted(service: Running, token: str, school: str) -> list[str]:
    """Promote students of a session to come, and answer the cohorts of the next: the demo has promoted nobody."""

    def ask(method: str, path: str, body: Any = None) -> Any:
        return service.ok(method, path, token=token, school=school, body=body)

    def cohort(year: int) -> str:
        dates = {"start_date": f"{year}-09-01", "end_date": f"{year + 1}-07-01"}
        session = ask("POST", "/sessions", {"name": f"{year}/{year + 1}", **dates})
        made: str = ask("POST", "/cohorts", {"classroom": classroom, "session_id": session["id"]})["id"]
        return made

    classroom = ask("GET", "/classrooms")[0]["id"]
    batch, following = cohort(2040), cohort(2041)
    students = [
        ask(
            "POST",
            "/students",
            {"first_name": "Ada", "last_name": name, "admission_number": name, "gender": "FEMALE"},
        )["id"]
        for name in ("Promoted", "Repeated")
    ]
    ask("POST", f"/cohorts/{batch}/enrollment", {"batch": batch, "students": students})
    body = {
        "session": "2040/2041",
        "moves": [{"batch": batch, "promote_to": following, "repeat_in": following}],
        "overrides": [
            {"student": student, "outcome": outcome, "reason": "They have no results."}
            for student, outcome in zip(students, ("PROMOTED", "REPEATED"), strict=True)
        ],
    }
    seen = ask("POST", "/promotions?dry_run=true", body)
    ask("POST", "/promotions", {**body, "fingerprint": seen["fingerprint"]})
    return [following]


def configuration(document: dict[str, Any], ids: dict[str, list[str]]) -> str:
    """Write the ids for schemathesis to use, operation by operation, as TOML."""
    lines = [f"[dictionaries.{kind}]\nvalues = {values}" for kind, values in ids.items() if values]
    for path, item in document["paths"].items():
        bound = sorted({line for line in _bindings(path, item) if ids.get(line[1])})
        if bound:
            lines.append(f'[[operations]]\ninclude-path = "{path}"\n[operations.parameters]')
            lines += [f'"{name}" = {{ dictionary = "{kind}", probability = 0.8 }}' for name, kind in bound]
    return "\n".join(lines) + "\n"


def _bindings(path: str, item: dict[str, Any]) -> Iterator[tuple[str, str]]:
    first = path.split("/")[1]
    operations = [operation for member, operation in item.items() if member != "parameters"]
    # Parameters of all operations of a path stand once, beside them.
    for holder in (item, *operations):
        for parameter in holder.get("parameters", ()):
            name = parameter["name"]
            of_path = parameter["in"] == "path" and name in {"id", "cohortId"}
            kind = (
                OF_PATH.get(first, first) if of_path and (path, name) not in EXCEPTIONS else _kind(path, name)
            )
            if kind:
                yield f"{parameter['in']}.{name}", kind
    if any("requestBody" in operation for operation in operations):
        for name in OF_NAME:
            if kind := _kind(path, name):
                yield f"body.{name}", kind


def _kind(path: str, name: str) -> str | None:
    return EXCEPTIONS[path, name] if (path, name) in EXCEPTIONS else OF_NAME.get(name)
