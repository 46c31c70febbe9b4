"""Metrics as a list: the traits of a class are entered, corrected, taken away, all or none."""

from __future__ import annotations

from uuid import uuid4

import pytest

from school_service.seed import defaults
from tests.features.observations.metrics.sheets import AFFECTIVE, PSYCHOMOTOR, TRAITS, Observed
from tests.naming import name_with_number
from tests.prepared import prepared_for_each
from tests.threads import run_concurrently

HAND, FIRST_TRAIT, SECOND_TRAIT = {"source": "hand"}, *TRAITS[:2]
(BEHAVIOUR, *_) = defaults.TRAITS[AFFECTIVE]


original, class_ = prepared_for_each(Observed)


def put(class_, *records, api=None, **query):
    asked = {"batch": class_.batch, "term": "FIRST", **query}
    return (api or class_.api).put("/metrics", list(records), query_string=asked)


def record(class_, number, scores, metric_type=PSYCHOMOTOR, **fields):
    student = class_.students.get(number, number)
    return {"student": student, "metric_type": metric_type, "metric_scores": scores, **fields}


def refused(answer, status=422):
    assert answer.status_code == status, answer.get_data(as_text=True)
    rows = answer.get_json()["errors"]["rows"]
    return [(row["row"], row["column"], row["code"]) for row in rows]


def test_traits_of_both_types_are_entered_changed_and_answered(class_):
    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: 2, SECOND_TRAIT: 3})))

    answer = class_.api.ok(
        put(
            class_,
            record(class_, "A/1", {FIRST_TRAIT.upper(): 5}),
            record(class_, "A/1", {BEHAVIOUR: 4}, AFFECTIVE),
            record(class_, "A/2", {SECOND_TRAIT: 1}),
            term=class_.term["id"],
        )
    )

    assert answer == class_.records()
    scores = {(row["admission_number"], row["metric_type"]): row["metric_scores"] for row in answer}
    assert scores == {
        ("A/1", AFFECTIVE): {BEHAVIOUR: 4},
        ("A/1", PSYCHOMOTOR): {FIRST_TRAIT: 5, SECOND_TRAIT: 3},
        ("A/2", PSYCHOMOTOR): {SECOND_TRAIT: 1},
    }


def test_each_record_is_on_record_as_entered_by_hand(class_):
    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: 2})))
    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: 3})))
    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: 3})))

    assert class_.log() == [
        ("update", {"score": {FIRST_TRAIT: 2}, **HAND}, {"score": {FIRST_TRAIT: 3}, **HAND}),
        ("create", None, {"score": {FIRST_TRAIT: 2}, **HAND}),
    ]


def test_a_record_that_comes_to_another_arm_without_another_score_is_on_record(class_):
    scores = record(class_, "A/1", {FIRST_TRAIT: 2})
    (before,) = class_.api.ok(put(class_, scores))
    arm = class_.make.batch(class_.cohort)["id"]
    class_.make.enrolled(class_.cohort, {"id": class_.students["A/1"]}, batch=arm)
    cursor = class_.api.ok(class_.api.get("/changes"))["cursor"]

    class_.api.ok(put(class_, scores, batch=arm))
    class_.api.ok(put(class_, scores, batch=arm))

    assert class_.log()[0] == ("update", {"batch": class_.batch}, {"batch": arm})
    told = class_.api.ok(class_.api.get("/changes", query_string={"after": cursor}))["changes"]
    assert [(change["resource"], change["id"]) for change in told] == [("metrics", before["id"])]


def test_a_sheet_and_a_list_follow_one_another(class_):
    class_.api.ok(class_.send({"A/1": {FIRST_TRAIT: 2}}))
    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: 3})))
    class_.api.ok(class_.send({"A/1": {FIRST_TRAIT: 4}}))

    assert class_.scores() == {"A/1": {FIRST_TRAIT: 4}}
    assert [new["source"] for _, _, new in class_.log()] == ["sheet", "hand", "sheet"]


def test_a_metric_without_a_sheet_is_in_the_students_copy_too(class_):
    student = class_.students["A/1"]
    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: 2})))

    told = class_.api.ok(class_.api.get(f"/students/{student}/data"))

    (metric,) = told["metrics"]
    assert (metric["sheet"], metric["metric_type"]) == (None, PSYCHOMOTOR)


def test_null_takes_a_score_away_and_the_record_with_the_last(class_):
    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: 2, SECOND_TRAIT: 3})))

    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: None})))
    assert class_.scores() == {"A/1": {SECOND_TRAIT: 3}}
    assert class_.api.ok(put(class_, record(class_, "A/1", {SECOND_TRAIT: None}))) == []
    assert class_.api.ok(put(class_, record(class_, "A/1", {SECOND_TRAIT: None}))) == []

    assert class_.log()[0] == ("delete", {"score": {SECOND_TRAIT: 3}, **HAND}, None)


def test_records_that_are_wrong_are_told_200_times_and_by_place_100_times(class_):
    nobody = [record(class_, str(uuid4()), {FIRST_TRAIT: 2}) for _ in range(500)]

    errors = put(class_, *nobody).get_json()["errors"]

    assert [row["row"] for row in errors["rows"]] == [*range(200)]
    assert list(map(int, errors["json"]["metrics"])) == [*range(100)]
    assert errors["left_out"] == 300


@pytest.mark.parametrize("member", ["metric_scores", "expected"])
def test_a_record_has_100_scores_at_most(class_, member):
    scores = {f"trait {number}": "x" for number in range(101)}

    answer = put(class_, record(class_, "A/1", {FIRST_TRAIT: 2}, **{member: scores}))

    assert answer.get_json()["errors"]["json"]["metrics"] == {"0": {member: ["Has more than 100 members."]}}


def test_a_trait_that_nobody_knows_is_said_back_by_60_characters(class_):
    long = "n" * 100

    wrong = put(class_, record(class_, "A/1", {long: "x"})).get_json()["errors"]["json"]
    unknown = put(class_, record(class_, "A/1", {long: 2})).get_json()["errors"]["rows"]

    assert list(wrong["metrics"]["0"]["metric_scores"]) == [long[:60]]
    assert [long[:59] in row["message"] and long[:61] not in row["message"] for row in unknown] == [True]


def test_to_take_away_needs_the_permission_to_delete(class_):
    clerk = class_.make.caller("write:metrics")
    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: 2}), api=clerk))

    answer = put(class_, record(class_, "A/1", {FIRST_TRAIT: None}), api=clerk)

    assert answer.status_code == 403
    assert answer.get_json()["message"].endswith("needs the permission delete:metrics.")
    class_.api.ok(put(class_, record(class_, "A/1", {SECOND_TRAIT: None}), api=clerk))


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
def test_a_stored_score_that_is_neither_expected_nor_new_is_a_conflict(class_, scores, expected, conflict):
    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: 2})))

    answer = put(
        class_, record(class_, "A/2", {FIRST_TRAIT: 1}), record(class_, "A/1", scores, expected=expected)
    )

    if conflict:
        (trait,) = scores
        assert refused(answer, 409) == [(1, trait, "changed")]
        assert class_.scores() == {"A/1": {FIRST_TRAIT: 2}}
    else:
        class_.api.ok(answer)


def test_a_conflict_names_the_person_of_the_change(class_):
    class_.api.ok(put(class_, record(class_, "A/1", {FIRST_TRAIT: 2})))
    who = class_.api.ok(class_.api.get("/audit?entity=metric"))["data"][0]["actor_name"]

    answer = put(class_, record(class_, "A/1", {FIRST_TRAIT: 5}, expected={FIRST_TRAIT: 3}))

    (row,) = answer.get_json()["errors"]["rows"]
    assert row["message"].startswith(
        f"{name_with_number(class_.api, class_.students['A/1'])}, {FIRST_TRAIT}: "
        f'"5" would replace 2, which {who} entered on 20'
    )


def test_records_that_are_wrong_are_named_all_at_once(class_, make_other):
    stranger, foreign = class_.make.student()["id"], make_other.student()["id"]

    answer = put(
        class_,
        record(class_, "A/1", {FIRST_TRAIT: 2}),
        record(class_, "A/2", {"Whistling": 2}),
        record(class_, "A/3", {BEHAVIOUR: 2}),
        record(class_, stranger, {FIRST_TRAIT: 2}),
        record(class_, foreign, {FIRST_TRAIT: 2}),
        record(class_, str(uuid4()), {FIRST_TRAIT: 2}),
        record(class_, "A/1", {SECOND_TRAIT: 2}),
        record(class_, "A/2", {FIRST_TRAIT: 2, FIRST_TRAIT.upper(): 3}, expected={"Whistling": 1}),
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
    assert class_.records() == []


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
def test_wrong_types_are_named_by_their_place(class_, fields, field):
    answer = put(class_, {**record(class_, "A/1", {FIRST_TRAIT: 2}), **fields})

    assert answer.status_code == 422
    assert list(answer.get_json()["errors"]["json"]["metrics"]["0"]) == [field]


def test_empty_and_too_long(class_):
    records = [record(class_, str(uuid4()), {FIRST_TRAIT: 2}) for _ in range(501)]

    for body in ([], records):
        answer = put(class_, *body)
        assert answer.status_code == 422
        assert answer.get_json()["errors"]["json"]["metrics"] == ["Length must be between 1 and 500."]


def test_the_batch_and_the_term(class_, make_other):
    traits = record(class_, "A/1", {FIRST_TRAIT: 2})
    other_term = class_.make.term()["id"]
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
        answer = put(class_, traits, **query)
        assert answer.status_code == 422, query
        errors = answer.get_json()["errors"]
        assert list(errors) == ["query"], (query, errors)
        assert list(errors["query"]) == list(query), (query, errors)


@pytest.mark.parametrize("more", [0, 30])
def test_round_trips_do_not_depend_on_how_many(class_, messages, more):
    others = [class_.make.student(admission_number=f"B/{number}") for number in range(more)]
    if others:
        class_.make.enrolled(class_.cohort, *others)
    class_.students |= {other["admission_number"]: other["id"] for other in others}
    scores = [record(class_, number, {FIRST_TRAIT: 2, SECOND_TRAIT: 3}) for number in class_.students]
    class_.api.ok(put(class_, *scores))
    again = [record(class_, number, {FIRST_TRAIT: 4, SECOND_TRAIT: None}) for number in class_.students]
    behaviour = [record(class_, number, {BEHAVIOUR: 4}, AFFECTIVE) for number in class_.students]

    with messages() as sent:
        class_.api.ok(put(class_, *again, *behaviour))

    assert len(sent) == 5


def test_of_writers_at_once_who_expected_the_same_all_but_one_are_refused(committing):
    class_ = Observed(committing, 3)

    def enter(number):
        score = number % 5 + 1
        records = [
            record(class_, student, {FIRST_TRAIT: score}, expected={FIRST_TRAIT: None})
            for student in class_.students
        ]
        return put(class_, *records, api=class_.api.using()).status_code

    statuses = run_concurrently(5, enter)

    assert sorted(statuses) == [200, 409, 409, 409, 409]
    assert len({tuple(scores.items()) for scores in class_.scores().values()}) == 1
