"""The `type` of errors: a closed set that only grows, each with the statuses that it comes with.

`tests.client.check_error` asserts in every answer to a test that the type of an error fits its status.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from uuid import uuid4

from school_service.core.error_types import ErrorType
from school_service.core.errors import DomainError, Invalid, Unknown
from school_service.core.idempotency import StoredAnswer
from school_service.serving import refusals
from school_service.web.error_responses import STATUS, TYPES, framework_type
from tests.features.scores.scoresheets.sheets import sheet_of, upload

# Types that a release has had. None is taken away or renamed: clients compare with it.
RELEASED = {
    *("conflict", "duplicate", "failure", "forbidden", "gone", "idempotency-key", "in-use", "incomplete"),
    *("insufficient-scope", "invalid-token", "locked", "malformed", "media-type", "method-not-allowed"),
    *("no-token", "not-linked", "not-published", "overloaded", "password-change", "school-header"),
    *("school-suspended", "stale", "too-large", "too-many-tries", "unavailable", "under-way"),
    *("unknown-address", "unknown-id", "validation", "wrong-credentials"),
}


def kinds(base: type[DomainError] = DomainError) -> Iterator[type[DomainError]]:
    """Walk over the domain errors."""
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def type_of(answer):
    return answer.status_code, answer.get_json()["type"]


def test_no_type_is_taken_away_and_each_names_its_remedy():
    assert set(ErrorType) == RELEASED
    for error_type in ErrorType:
        assert error_type.statuses, error_type
        for words in (error_type.meaning, error_type.remedy):
            assert words[0].isupper() or words[0] == "`", error_type
            assert words.endswith("."), error_type


def test_each_exception_has_a_type_that_comes_with_its_status():
    # RowsRefused is the base of errors, and no error itself.
    domain = [kind for kind in kinds() if hasattr(kind, "type")]
    others = [kind for kind in STATUS if not issubclass(kind, DomainError)]

    assert {kind.__name__ for kind in kinds()} - {kind.__name__ for kind in domain} == {"RowsRefused"}
    for kind in domain:
        status = next(STATUS[base] for base in kind.__mro__ if base in STATUS)
        assert status in kind.type.statuses, kind
    for kind in others:
        assert STATUS[kind] in TYPES.get(kind, ErrorType.UNAVAILABLE).statuses, kind


def test_no_type_is_one_that_nothing_answers():
    answered = {kind.type for kind in kinds() if hasattr(kind, "type")} | {*TYPES.values()}

    assert answered | {framework_type(status.value) for status in HTTPStatus} | {
        ErrorType.UNAVAILABLE
    } == set(ErrorType)


def test_a_refusal_without_the_application_has_a_type_that_comes_with_its_status():
    made = [refusal for refusal in vars(refusals).values() if isinstance(refusal, refusals.Refusal)]
    for refusal in [*made, *refusals._OF_WAITRESS.values()]:
        assert refusal._status in refusal._type.statuses, refusal.message
    assert {refusal._type for refusal in made} == {"too-large", "unavailable", "no-token", "overloaded"}


def test_an_input_is_unknown_where_each_reason_is():
    unknown, other = Unknown("no such role"), "named twice"

    assert Invalid.fields({"a": unknown, "b": unknown}).type == ErrorType.UNKNOWN_ID
    assert Invalid("words", {"a": {"0": [unknown]}}).type == ErrorType.UNKNOWN_ID
    for mixed in (
        Invalid.fields({"a": unknown, "b": other}),
        Invalid("words"),
    ):
        assert mixed.type == ErrorType.VALIDATION


def test_a_constraint_says_where_its_violation_is_no_duplicate():
    (constraint,) = (
        constraint for constraint in StoredAnswer.__table__.constraints if "type" in constraint.info
    )

    assert constraint.info["type"] == ErrorType.UNDER_WAY


def test_unknown_is_one_type_in_path_query_body_list_and_sheet(api, make):
    taught = make.taught()
    paper, nobody = make.assessment(taught.subject, taught.term), str(uuid4())
    known = {"student": taught.students[0], "score": 1}
    scores = f"/assessments/{paper['id']}/scores"
    body = {"cohort_id": taught.cohort["id"], "elective": False}

    answers = {
        "path": api.get(f"/assessments/{nobody}"),
        "query": api.get(f"/broadsheets?batch={nobody}&term={taught.term['id']}"),
        "body": api.post("/cohort-subjects", {**body, "subject_id": nobody}),
        "list": api.put(scores, {"scores": [known, {"student": nobody, "score": 1}]}),
        "sheet": upload(api, paper, sheet_of(("X/404", "A", "B", 1))),
    }
    assert {place: answer.get_json()["type"] for place, answer in answers.items()} == dict.fromkeys(
        answers, "unknown-id"
    )
    bad = {"student": nobody, "score": 1000}
    assert type_of(api.put(scores, {"scores": [bad]})) == (422, "validation")
    heading = sheet_of(
        ("X/404", "A", "B", 1), header=("admission_number", "first_name", "last_name", "points")
    )
    assert type_of(upload(api, paper, heading)) == (422, "validation")


def test_results_that_wait_lock_or_are_published_have_types_of_their_own(api, make):
    taught = make.taught()
    paper = make.assessment(taught.subject, taught.term, category="EXAM")
    student, batch = taught.students[0], taught.cohort["id"]
    submit, body = f"/cohort-subjects/{taught.subject['id']}/submission", {"term": "FIRST"}
    term = {"term": taught.term["id"], "batches": [batch]}

    assert type_of(api.post(submit, body)) == (409, "incomplete")
    assert type_of(api.post("/publications", term)) == (409, "incomplete")
    entry = make.entry(paper, student, batch)
    api.ok(api.post(submit, body))
    assert type_of(api.patch(f"/gradebooks/{entry['id']}", {"score": 1})) == (409, "locked")
    card = f"/students/{student}/report-card?term={taught.term['id']}"
    assert type_of(api.get(card)) == (404, "not-published")
    api.ok(api.post("/publications", term))
    assert type_of(api.post("/publications", term)) == (409, "duplicate")


def test_a_change_since_it_was_read_has_one_type(api, make):
    room, taught = make.classroom(), make.taught()
    paper = make.assessment(taught.subject, taught.term)
    make.entry(paper, taught.students[0], taught.cohort["id"], 12)
    known = {"student": taught.students[0], "score": 1, "expected": 3}

    stale = api.patch(f"/classrooms/{room['id']}", {"name": "X"}, headers={"If-Match": '"x"'})
    assert type_of(stale) == (412, "stale")
    assert type_of(api.put(f"/assessments/{paper['id']}/scores", {"scores": [known]})) == (409, "stale")


def test_a_conflict_without_a_type_of_its_own_is_a_conflict(api, make):
    cohort = make.cohort()

    assert type_of(api.delete(f"/batches/{cohort['id']}")) == (409, "conflict")
