"""Metrics as a list: the traits of a class are entered, corrected, taken away, all or none."""

from __future__ import annotations

from copy import deepcopy
from uuid import uuid4

import pytest

from school_service.seed import defaults
from tests.features.observations.metrics.sheets import AFFECTIVE, PSYCHOMOTOR, TRAITS, Observed
from tests.naming import name_with_number
from tests.threads import run_concurrently

HAND, FIRST_TRAIT, SECOND_TRAIT = {"source": "hand"}, *TRAITS[:2]
(BEHAVIOUR, *_) = defaults.TRAITS[AFFECTIVE]


@pytest.fixture(scope="module", autouse=True)
def made(prepared):
    return prepared(Observed)


@pytest.fixture
def seen(rehearsed, made):
    return deepcopy(made)


def put(seen, *records, api=None, **query):
    asked = {"batch": seen.batch, "term": "FIRST", **query}
    return (api or seen.api).put("/metrics", list(records), query_string=asked)


def record(seen, number, scores, metric_type=PSYCHOMOTOR, **fields):
    student = seen.students.get(number, number)
    return {"student": student, "metric_type": metric_type, "metric_scores": scores, **fields}


def refused(answer, status=422):
    assert answer.status_code == status, answer.get_data(as_text=True)
    rows = answer.get_json()["errors"]["rows"]
    return [(row["row"], row["column"], row["code"]) for row in rows]


def test_traits_of_both_types_are_entered_changed_and_answered(seen):
    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: 2, SECOND_TRAIT: 3})))

    answer = seen.api.ok(
        put(
            seen,
            record(seen, "A/1", {FIRST_TRAIT.upper(): 5}),
            record(seen, "A/1", {BEHAVIOUR: 4}, AFFECTIVE),
            record(seen, "A/2", {SECOND_TRAIT: 1}),
            term=seen.term["id"],
        )
    )

    assert answer == seen.records()
    found = {(one["admission_number"], one["metric_type"]): one["metric_scores"] for one in answer}
    assert found == {
        ("A/1", AFFECTIVE): {BEHAVIOUR: 4},
        ("A/1", PSYCHOMOTOR): {FIRST_TRAIT: 5, SECOND_TRAIT: 3},
        ("A/2", PSYCHOMOTOR): {SECOND_TRAIT: 1},
    }


def test_each_record_is_on_record_as_entered_by_hand(seen):
    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: 2})))
    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: 3})))
    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: 3})))

    assert seen.log() == [
        ("update", {"score": {FIRST_TRAIT: 2}, **HAND}, {"score": {FIRST_TRAIT: 3}, **HAND}),
        ("create", None, {"score": {FIRST_TRAIT: 2}, **HAND}),
    ]


def test_a_sheet_and_a_list_follow_one_another(seen):
    seen.api.ok(seen.send({"A/1": {FIRST_TRAIT: 2}}))
    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: 3})))
    seen.api.ok(seen.send({"A/1": {FIRST_TRAIT: 4}}))

    assert seen.scores() == {"A/1": {FIRST_TRAIT: 4}}
    assert [new["source"] for _, _, new in seen.log()] == ["sheet", "hand", "sheet"]


def test_what_came_by_no_sheet_is_told_to_the_student_too(seen):
    student = seen.students["A/1"]
    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: 2})))

    told = seen.api.ok(seen.api.get(f"/students/{student}/data"))

    (metric,) = told["metrics"]
    assert (metric["sheet"], metric["metric_type"]) == (None, PSYCHOMOTOR)


def test_null_takes_a_score_away_and_the_record_with_the_last(seen):
    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: 2, SECOND_TRAIT: 3})))

    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: None})))
    assert seen.scores() == {"A/1": {SECOND_TRAIT: 3}}
    assert seen.api.ok(put(seen, record(seen, "A/1", {SECOND_TRAIT: None}))) == []
    assert seen.api.ok(put(seen, record(seen, "A/1", {SECOND_TRAIT: None}))) == []

    assert seen.log()[0] == ("delete", {"score": {SECOND_TRAIT: 3}, **HAND}, None)


def test_records_that_are_wrong_are_told_200_times_and_by_place_100_times(seen):
    nobody = [record(seen, str(uuid4()), {FIRST_TRAIT: 2}) for _ in range(500)]

    errors = put(seen, *nobody).get_json()["errors"]

    assert [row["row"] for row in errors["rows"]] == [*range(200)]
    assert list(map(int, errors["json"]["metrics"])) == [*range(100)]
    assert errors["left_out"] == 300


@pytest.mark.parametrize("member", ["metric_scores", "expected"])
def test_a_record_has_100_scores_at_most(seen, member):
    scores = {f"trait {number}": "x" for number in range(101)}

    answer = put(seen, record(seen, "A/1", {FIRST_TRAIT: 2}, **{member: scores}))

    assert answer.get_json()["errors"]["json"]["metrics"] == {"0": {member: ["Has more than 100 members."]}}


def test_a_trait_that_nobody_knows_is_said_back_by_60_characters(seen):
    long = "n" * 100

    wrong = put(seen, record(seen, "A/1", {long: "x"})).get_json()["errors"]["json"]
    unknown = put(seen, record(seen, "A/1", {long: 2})).get_json()["errors"]["rows"]

    assert list(wrong["metrics"]["0"]["metric_scores"]) == [long[:60]]
    assert [long[:59] in row["message"] and long[:61] not in row["message"] for row in unknown] == [True]


def test_to_take_away_needs_the_permission_to_delete(seen):
    clerk = seen.make.caller("write:metrics")
    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: 2}), api=clerk))

    answer = put(seen, record(seen, "A/1", {FIRST_TRAIT: None}), api=clerk)

    assert answer.status_code == 403
    assert answer.get_json()["message"].endswith("needs the permission delete:metrics.")
    seen.api.ok(put(seen, record(seen, "A/1", {SECOND_TRAIT: None}), api=clerk))


@pytest.mark.parametrize(
    ("scores", "expected", "conflict"),
    [
        ({FIRST_TRAIT: 5}, {FIRST_TRAIT: 3}, True),
        ({FIRST_TRAIT: 5}, {FIRST_TRAIT: None}, True),
        ({FIRST_TRAIT: None}, {FIRST_TRAIT: 3}, True),
        ({SECOND_TRAIT: 5}, {SECOND_TRAIT: 3}, True),
        ({FIRST_TRAIT: 5}, {FIRST_TRAIT: 2}, False),
        ({FIRST_TRAIT: 2}, {FIRST_TRAIT: 3}, False),
        ({SECOND_TRAIT: 5}, {SECOND_TRAIT: None, FIRST_TRAIT: 3}, False),
        ({FIRST_TRAIT: 5}, {}, False),
    ],
)
def test_what_was_expected(seen, scores, expected, conflict):
    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: 2})))

    answer = put(seen, record(seen, "A/2", {FIRST_TRAIT: 1}), record(seen, "A/1", scores, expected=expected))

    if conflict:
        (trait,) = scores
        assert refused(answer, 409) == [(1, trait, "changed")]
        assert seen.scores() == {"A/1": {FIRST_TRAIT: 2}}
    else:
        seen.api.ok(answer)


def test_a_conflict_names_who_changed_it(seen):
    seen.api.ok(put(seen, record(seen, "A/1", {FIRST_TRAIT: 2})))
    who = seen.api.ok(seen.api.get("/audit?entity=metric"))["data"][0]["actor_name"]

    answer = put(seen, record(seen, "A/1", {FIRST_TRAIT: 5}, expected={FIRST_TRAIT: 3}))

    (row,) = answer.get_json()["errors"]["rows"]
    assert row["message"].startswith(
        f"{name_with_number(seen.api, seen.students['A/1'])}, {FIRST_TRAIT}: "
        f'"5" would replace 2, which {who} entered on 20'
    )


def test_records_that_are_wrong_are_named_all_at_once(seen, make_other):
    stranger, foreign = seen.make.student()["id"], make_other.student()["id"]

    answer = put(
        seen,
        record(seen, "A/1", {FIRST_TRAIT: 2}),
        record(seen, "A/2", {"Whistling": 2}),
        record(seen, "A/3", {BEHAVIOUR: 2}),
        record(seen, stranger, {FIRST_TRAIT: 2}),
        record(seen, foreign, {FIRST_TRAIT: 2}),
        record(seen, str(uuid4()), {FIRST_TRAIT: 2}),
        record(seen, "A/1", {SECOND_TRAIT: 2}),
        record(seen, "A/2", {FIRST_TRAIT: 2, FIRST_TRAIT.upper(): 3}, expected={"Whistling": 1}),
    )

    assert refused(answer) == [
        (1, "metric_scores", "unknown"),
        (2, "metric_scores", "invalid"),
        (3, "student", "invalid"),
        (4, "student", "unknown"),
        (5, "student", "unknown"),
        (6, "student", "duplicate"),
        (7, "student", "duplicate"),
        (7, "metric_scores", "duplicate"),
        (7, "expected", "unknown"),
    ]
    assert seen.records() == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"metric_scores": {FIRST_TRAIT: 6}}, "metric_scores"),
        ({"metric_scores": {FIRST_TRAIT: 0}}, "metric_scores"),
        ({"metric_scores": {FIRST_TRAIT: "5"}}, "metric_scores"),
        ({"metric_scores": {FIRST_TRAIT: 2.5}}, "metric_scores"),
        ({"metric_scores": {FIRST_TRAIT: True}}, "metric_scores"),
        ({"metric_scores": {}}, "metric_scores"),
        ({"metric_scores": [5]}, "metric_scores"),
        ({"metric_scores": None}, "metric_scores"),
        ({"metric_type": "MOOD"}, "metric_type"),
        ({"student": "A/1"}, "student"),
        ({"expected": 3}, "expected"),
        ({"term": "FIRST"}, "term"),
    ],
)
def test_wrong_types_are_named_by_their_place(seen, fields, field):
    answer = put(seen, {**record(seen, "A/1", {FIRST_TRAIT: 2}), **fields})

    assert answer.status_code == 422
    assert list(answer.get_json()["errors"]["json"]["metrics"]["0"]) == [field]


def test_empty_and_too_long(seen):
    records = [record(seen, str(uuid4()), {FIRST_TRAIT: 2}) for _ in range(501)]

    for body in ([], records):
        answer = put(seen, *body)
        assert answer.status_code == 422
        assert answer.get_json()["errors"]["json"]["metrics"] == ["Length must be between 1 and 500."]


def test_the_batch_and_the_term(seen, make_other):
    one = record(seen, "A/1", {FIRST_TRAIT: 2})
    other_term = seen.make.term()["id"]
    foreign = make_other.cohort()["id"]

    for query in (
        {"batch": str(uuid4())},
        {"batch": foreign},
        {"batch": "1"},
        {"term": "FOURTH"},
        {"term": "THIRD"},
        {"term": other_term},
        {"term": make_other.term()["id"]},
    ):
        answer = put(seen, one, **query)
        assert answer.status_code == 422, query
        errors = answer.get_json()["errors"]
        assert list(errors) == ["query"], (query, errors)
        assert list(errors["query"]) == list(query), (query, errors)


@pytest.mark.parametrize("more", [0, 30])
def test_round_trips_do_not_depend_on_how_many(seen, messages, more):
    others = [seen.make.student(admission_number=f"B/{number}") for number in range(more)]
    if others:
        seen.make.enrolled(seen.cohort, *others)
    seen.students |= {other["admission_number"]: other["id"] for other in others}
    scores = [record(seen, number, {FIRST_TRAIT: 2, SECOND_TRAIT: 3}) for number in seen.students]
    seen.api.ok(put(seen, *scores))
    again = [record(seen, number, {FIRST_TRAIT: 4, SECOND_TRAIT: None}) for number in seen.students]
    behaviour = [record(seen, number, {BEHAVIOUR: 4}, AFFECTIVE) for number in seen.students]

    with messages() as sent:
        seen.api.ok(put(seen, *again, *behaviour))

    assert len(sent) == 5


def test_of_two_who_expected_the_same_one_is_told(committing):
    seen = Observed(committing, 3)

    def enter(number):
        score = number % 5 + 1
        records = [
            record(seen, one, {FIRST_TRAIT: score}, expected={FIRST_TRAIT: None}) for one in seen.students
        ]
        return put(seen, *records, api=seen.api.using()).status_code

    statuses = run_concurrently(5, enter)

    assert sorted(statuses) == [200, 409, 409, 409, 409]
    assert len({tuple(scores.items()) for scores in seen.scores().values()}) == 1
