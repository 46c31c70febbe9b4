"""Records that factories make without HTTP are as the API makes them, and so are the answers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.factories import PASSWORD
from tests.making import CREATIONS, make_record, making

# The differences between two records made of the same fields.
OWN = re.compile(r"[0-9a-f-]{36}|\d{4}-\d\d-\d\dT[0-9:.]+\+00:00")


def bodies(make: Any, number: int) -> dict[str, dict[str, Any]]:
    """Write a body for each operation; with another number all of them can be sent once more."""
    room, year, subject = (
        make.classroom(name=f"Room {number}"),
        make.session(name=f"Year {number}"),
        make.subject(name=f"Taught {number}", code=f"T{number}"),
    )
    cohort = make.cohort(make.classroom(), year)
    taught, term = make.cohort_subject(cohort), make.term(year)
    (student,) = make.enrolled(cohort)
    fields = {
        "category": "CA1",
        "name": f"Test {number}",
        "abbreviation": "T",
        "due_date": "2025-10-17",
        "total_points": 20.1,
        "description": "Fractions",
        "file_name": "test.xlsx",
        "include_in_final": True,
        "publish_scores": False,
    }
    return {
        "/assessments": {**fields, "subject": taught["id"], "term": term["id"]},
        "/classrooms": {"name": f"Ọ̀ṣun {number}", "level": "Junior Secondary"},
        "/cohort-subjects": {"cohort_id": cohort["id"], "subject_id": subject["id"], "elective": True},
        "/cohorts": {"classroom": room["id"], "session_id": year["id"]},
        "/gradebooks": {
            "assessment": make.assessment(taught, term)["id"],
            "score": 12.1,
            "student": student,
            "batch": cohort["id"],
        },
        "/sessions": {"name": f"Session {number}", "start_date": "2025-09-08", "end_date": "2026-07-24"},
        "/students": {
            "first_name": "Chidinma",
            "last_name": "Bàlógun",
            "admission_number": f"QC/{number}",
            "gender": "FEMALE",
            "guardian": {"full_name": "Ngọzi Bàlógun", "relationship": "mother"},
        },
        "/templates": {"name": f"Subject {number}", "code": f"S{number}"},
        "/terms": {"session_id": year["id"], "term": "SECOND", "display_name": f"Term {number}"},
    }


@pytest.mark.parametrize("path", CREATIONS)
def test_a_record_is_as_the_api_makes_and_answers_it(make, path):
    of_the_api, of_its_own = bodies(make, 71001)[path], bodies(make, 71002)[path]

    posted = make.api.ok(make.api.post(path, of_the_api))
    with making(make.api.app, make.api.school):
        answered = make_record(path, of_its_own)

    before, after = ({**answer, "number": None} for answer in (posted, answered))
    assert OWN.sub("its own", repr(after)) == OWN.sub("its own", repr(before)).replace("71001", "71002")
    assert posted["id"] != answered["id"]
    entries = make.api.ok(make.api.get("/audit", query_string={"pageSize": 200}))["data"]
    kept = {
        answer["id"]: [
            (entry["entity"], entry["action"], sorted(entry["new"]))
            for entry in entries
            if entry["entity_id"] == answer["id"]
        ]
        for answer in (posted, answered)
    }
    assert kept[posted["id"]] == kept[answered["id"]]


@pytest.mark.parametrize("path", CREATIONS)
def test_its_body_is_read_by_the_schema_of_the_operation(make, path):
    operation = make.api.document.operations()["POST", path]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]

    assert f"{schema['$ref'].rsplit('/', 1)[1]}Schema" == type(CREATIONS[path].schema).__name__


def test_a_caller_is_as_a_user_after_signing_in(make):
    caller = make.caller("read:students", "write:users")

    assert caller.get("/students").status_code == 200
    assert caller.get("/roles").status_code == 403
    signed_in = make.signed_in(caller.user)
    by_hand = make.user()["user"]
    role = make.role("read:students", "write:users")
    make.api.ok(make.api.put(f"/users/{by_hand['id']}/roles", {"role": role["id"]}))
    answers = [
        make.api.ok(make.api.post("/users/login", {"username": user["username"], "password": PASSWORD}))
        for user in (caller.user, by_hand)
    ]
    # Signing in once more ends nothing: their session number was the number of a user who had signed in.
    assert caller.get("/students").status_code == signed_in.get("/students").status_code == 200
    texts = [
        OWN.sub("its own", repr({**answer, "access_token": None})).replace(answer["user"]["username"], "")
        for answer in answers
    ]
    assert texts[0] == texts[1]
    assert caller.user["roles"] == by_hand["roles"] == []
