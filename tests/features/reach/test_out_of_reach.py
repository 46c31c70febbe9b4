"""Records out of reach change no answer about results, no count and no error: but the figures of all arms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.client import ApiClient
from tests.features.reach.conftest import Arms, Own
from tests.features.scores.scoresheets.sheets import sheet_of, upload

pytestmark = pytest.mark.usefixtures("made_arms")

# A position is among all of the class, for every reader.
OF_ALL_ARMS = {"cohort", "cohort_figures", "cohort_position"}
OF_A_REQUEST = {"request_id", "generated_at"}
SECRET = "Zuma"


def content_of(answer: Any) -> Any:
    """The status and content of an answer, but for the figures of all arms."""
    return answer.status_code, _without(answer.get_json())


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without(member)
            for name, member in value.items()
            if name not in OF_A_REQUEST and not (name in OF_ALL_ARMS and not isinstance(member, str))
        }
    return [_without(member) for member in value] if isinstance(value, list) else value


def requests(arms: Arms) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Give the requests about results of a class, each with its body: of the arm A, and of both."""
    subject, term = arms.subject["id"], f"term={arms.term['id']}"
    a, b, cohort = arms.a, arms.b, arms.cohort["id"]
    yield from (
        (f"/submissions?{of}&{term}", None) for of in (f"batch={a}", f"batch={b}", f"cohort={cohort}")
    )
    for of in (arms.subject["id"], arms.other["id"]):
        for more in ("", f"&batch={a}", f"&batch={b}", "&live=true"):
            yield f"/cohort-subjects/{of}/results?{term}{more}", None
    for batch in (a, b):
        for what in (term, f"{term}&live=true", f"session={arms.session['id']}"):
            yield f"/broadsheets?batch={batch}&{what}", None
        yield f"/publications?batch={batch}", None
        yield f"/comments?batch={batch}&{term}", None
        yield f"/report-cards?batch={batch}&{term}&students={arms.in_b[0]}", None
        yield f"/report-cards?batch={batch}&{term}&draft=true&students={arms.in_b[0]}", None
    yield from (
        (path, None) for path in (f"/publications?cohort={cohort}", f"/publications?{term}", "/publications")
    )
    for student in (arms.in_a[0], arms.in_b[0]):
        for path in ("results", "results?live=true", "report-card", "transcript"):
            joined = f"/students/{student}/{path}{'&' if '?' in path else '?'}"
            yield joined + ("" if path == "transcript" else term), None
    body = {"term": "FIRST"}
    for more in ({}, {"batch": a}, {"batch": b}):
        yield f"/cohort-subjects/{subject}/submission", {**body, **more}
        yield f"/cohort-subjects/{subject}/reopening", {**body, **more, "reason": "x"}
    for batches in ([a], [b], [a, b]):
        yield "/publications?dry_run=true", {**body, "batches": batches}


def answers(
    clients: dict[str, ApiClient], arms: Arms, refused: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Send all requests as everyone, but for the `refused` ones; the answers, by their names."""
    contents = {}
    for relation, client in clients.items():
        for path, body in requests(arms):
            if relation == "F" and path.startswith("/submissions") and f"batch={arms.a}" not in path:
                # A form teacher is answered how far all arms are.
                continue
            name = f"{relation} {path} {json.dumps(body)}"
            if name in refused:
                continue
            answer = client.get(path) if body is None else client.post(path, body)
            if answer.mimetype == "application/json":
                assert SECRET not in answer.get_data(as_text=True), (relation, path)
                contents[name] = content_of(answer)
            else:
                contents[name] = answer.status_code
    return contents


@pytest.fixture
def clients(arms: Arms, own: Own, make: Any) -> dict[str, ApiClient]:
    guardian = make.guardian({"id": arms.in_a[0]})
    return {
        "T": own.subject_teacher(arms.subject, arms.a),
        "F": own.form_teacher(arms.a),
        "S": own.student(arms.in_a[0], "read:results"),
        "G": own.guardian(guardian["id"], "read:results"),
    }


def test_records_out_of_reach_change_no_answer_about_results(arms, clients, make):
    """Students of the other arm, their names, scores, blanks, submissions and publications become others."""
    api, paper = make.api, make.assessment(arms.subject, arms.term, category="EXAM")
    make.assessment(arms.other, arms.term, category="EXAM")
    api.ok(api.patch("/result-settings", {"positions": "BATCH"}))
    make.entry(paper, arms.in_a[0], arms.a, 12)
    before = answers(clients, arms)
    assert {status for status, _ in (content for content in before.values() if isinstance(content, tuple))} >= {
        200, 403, 404, 409, 422,
    }  # fmt: skip
    # A request without its permission is refused before anything is read.
    refused = frozenset(
        name for name, content in before.items() if "This needs the permission" in str(content)
    )

    def come() -> None:
        newcomer = make.student(last_name=SECRET, admission_number=f"{SECRET}/1")
        arms.in_b.append(*make.enrolled(arms.cohort, newcomer, batch=arms.b))

    def mark() -> None:
        make.entry(paper, arms.in_b[0], arms.b, 19)

    def rename() -> None:
        api.ok(api.patch(f"/batches/{arms.b}", {"name": SECRET}))
        api.ok(api.patch(f"/students/{arms.in_b[0]}", {"last_name": SECRET}))

    def hand_in() -> None:
        for subject in (arms.subject, arms.other):
            body = {"term": "FIRST", "batch": arms.b, "blanks": "ABSENT"}
            api.ok(api.post(f"/cohort-subjects/{subject['id']}/submission", body))

    def publish() -> None:
        api.ok(api.post("/publications", {"term": "FIRST", "batches": [arms.b]}))

    for acts in ((come, mark, rename), (hand_in, publish)):
        for act in acts:
            act()
        now = answers(clients, arms, refused)
        assert now.keys() == before.keys() - refused
        assert {name: content for name, content in now.items() if content != before[name]} == {}


def test_out_of_reach_is_unknown_in_path_query_body_list_and_sheet(arms, own, make):
    """A student of the other arm, and one that nobody has: the answers differ in the ids alone."""
    teacher, paper = own.subject_teacher(arms.subject, arms.a), make.assessment(arms.subject, arms.term)
    numbers = {
        student: make.api.ok(make.api.get(f"/students/{student}"))["admission_number"]
        for student in arms.in_b
    }

    def told_of(student: str, number: str, batch: str) -> dict[str, Any]:
        score = {"student": student, "score": 1}
        entry = {**score, "assessment": paper["id"], "batch": arms.a}
        asked = {
            "path": teacher.get(f"/students/{student}"),
            "query": teacher.get(f"/gradebooks?batch={batch}"),
            "body": teacher.post("/gradebooks", entry),
            "list": teacher.put(f"/assessments/{paper['id']}/scores", {"scores": [score]}),
            "sheet": upload(teacher, paper, sheet_of((number, "A", "B", 1))),
        }
        assert {place: answer.get_json()["type"] for place, answer in asked.items()} == dict.fromkeys(
            asked, "unknown-id"
        )
        hidden = {student: "student", number: "number", batch: "batch"}
        words = json.dumps({place: content_of(answer) for place, answer in asked.items()})
        for value, name in hidden.items():
            words = words.replace(value, name)
        return json.loads(words)

    nobody, nothing = str(uuid4()), str(uuid4())
    assert told_of(arms.in_b[0], numbers[arms.in_b[0]], arms.b) == told_of(nobody, "X/404", nothing)
