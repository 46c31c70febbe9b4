"""Rules of promotion: storing and reading them, refusals, and the verdict of a rule on a result."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from school_service.features.results.promotions.rules import Rule, SessionResult, judge
from tests.factories import UNKNOWN_ID

PATH = "/promotion-rules"
DEFAULTS = {
    "level": None,
    "trial_average": None,
    "required_subjects": [],
    "required_percent": 40,
    "maximum_failed": None,
    "minimum_terms": 1,
}


def put(api, *rules):
    return api.ok(api.put(PATH, list(rules)))


def logged(api):
    entries = api.ok(api.get("/audit", query_string={"entity": "promotion-rules"}))["data"]
    return [(entry["action"], entry["old"], entry["new"], entry["entity_id"]) for entry in entries]


def test_a_school_begins_without_rules(api):
    assert api.ok(api.get(PATH)) == []


def test_rules_are_replaced_as_a_whole(api, make):
    make.classroom(level="Ẹ̀ka Kékeré")
    zoology, art = make.subject(name="Zoology"), make.subject(name="Art")
    full = {
        "level": "Ẹ̀ka Kékeré",
        "minimum_average": 50.25,
        "trial_average": 45,
        "required_subjects": [zoology["id"], art["id"], art["id"]],
        "required_percent": 39.5,
        "maximum_failed": 3,
        "minimum_terms": 3,
    }

    rules = put(api, {"minimum_average": 45}, full)

    subjects = [art["id"], zoology["id"]]
    assert rules == [{**full, "required_subjects": subjects}, {**DEFAULTS, "minimum_average": 45}]
    assert api.ok(api.get(PATH)) == rules
    assert put(api, {"minimum_average": 100}) == [{**DEFAULTS, "minimum_average": 100}]
    assert put(api) == []


def test_a_change_is_in_the_audit_log_and_none_is_not(api, make):
    put(api, {"minimum_average": 45})
    put(api, {"minimum_average": 45.0, "level": None})
    put(api)

    figures = {"trial_average": None, "required_subjects": [], "required_percent": "40.00"}
    rule = {"level": None, "minimum_average": "45.00", **figures, "maximum_failed": None, "minimum_terms": 1}
    taken_away, made = logged(api)
    assert made == ("update", {"rules": []}, {"rules": [rule]}, str(api.school))
    assert taken_away == ("update", {"rules": [rule]}, {"rules": []}, str(api.school))


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"minimum_average": None},
        {"minimum_average": "40"},
        {"minimum_average": True},
        {"minimum_average": 100.01},
        {"minimum_average": -1},
        {"minimum_average": 40.005},
        {"minimum_average": 40, "trial_average": 40},
        {"minimum_average": 40, "trial_average": 41},
        {"minimum_average": 40, "level": ""},
        {"minimum_average": 40, "level": "no such level"},
        {"minimum_average": 40, "level": 1},
        {"minimum_average": 40, "required_percent": None},
        {"minimum_average": 40, "required_percent": 101},
        {"minimum_average": 40, "required_subjects": None},
        {"minimum_average": 40, "required_subjects": [UNKNOWN_ID]},
        {"minimum_average": 40, "required_subjects": ["x"]},
        {"minimum_average": 40, "required_subjects": [UNKNOWN_ID] * 41},
        {"minimum_average": 40, "maximum_failed": 41},
        {"minimum_average": 40, "maximum_failed": -1},
        {"minimum_average": 40, "maximum_failed": 1.5},
        {"minimum_average": 40, "minimum_terms": 0},
        {"minimum_average": 40, "minimum_terms": 4},
        {"minimum_average": 40, "minimum_terms": None},
        {"minimum_average": 40, "note": "x"},
    ],
    ids=str,
)
def test_a_rule_that_is_none_is_refused_and_nothing_changes(api, rule):
    before = put(api, {"minimum_average": 45})

    assert api.put(PATH, [rule]).status_code == 422
    assert api.ok(api.get(PATH)) == before


@pytest.mark.parametrize("body", [{}, None, "x", 1, {"minimum_average": 40}, [None], [[]]])
def test_the_body_is_an_array_of_rules(api, body):
    assert api.put(PATH, body).status_code == 422


def test_there_is_one_rule_for_a_level_and_one_for_all_others(api, make):
    make.classroom(level="Senior")

    for level in (None, "Senior"):
        rule = {"minimum_average": 40, "level": level}
        assert api.put(PATH, [rule, {**rule, "minimum_average": 50}]).status_code == 422
    assert api.ok(api.get(PATH)) == []


def test_there_are_at_most_a_hundred(api):
    assert api.put(PATH, [{"minimum_average": 40}] * 101).status_code == 422


def test_a_required_subject_stays(api, make):
    subject = make.subject()
    put(api, {"minimum_average": 40, "required_subjects": [subject["id"]]})

    assert api.delete(f"/templates/{subject['id']}").status_code in (404, 405, 409)
    assert api.ok(api.get(PATH))[0]["required_subjects"] == [subject["id"]]


def test_reading_and_replacing_are_few_messages_however_many_there_are(api, make, messages):
    subjects = [make.subject()["id"] for _ in range(6)]
    for number in range(4):
        make.classroom(level=f"Level {number}")
    for levels in ([None], [None, *(f"Level {number}" for number in range(4))]):
        rules = [{"minimum_average": 40, "level": level, "required_subjects": subjects} for level in levels]
        with messages() as sent:
            put(api, *rules)
        assert len(sent) == 4
        with messages() as sent:
            api.ok(api.get(PATH))
        assert len(sent) == 1


# The verdict of a rule, against a second computing of it


def says(minimum, trial, required, percent, failed, terms, result, last):
    """A rule in other words: in fractions, and by conditions for promoting rather than reasons against it."""
    if result is None:
        return "NO_RESULT"
    average, has, pass_mark, percents = result
    promotes = (
        average >= minimum
        and all(subject in percents and percents[subject] >= percent for subject in required)
        and (failed is None or len([mark for mark in percents.values() if mark < pass_mark]) <= failed)
        and has >= terms
    )
    if promotes:
        return "GRADUATED" if last else "PROMOTED"
    if trial is not None and average >= trial and not last:
        return "PROMOTED_ON_TRIAL"
    return "REPEATED"


def test_the_verdict_of_a_rule_equals_a_second_computing():
    random, outcomes = Random(16), set()
    subjects = ["a", "b", "c", "d"]

    def figure(low, high):
        return Decimal(random.randint(low * 4, high * 4)) / 4

    for _ in range(3000):
        minimum = figure(38, 60)
        trial = random.choice([None, minimum - figure(1, 10)])
        required = random.sample(subjects, random.randint(0, 2))
        percent, failed, terms = (
            figure(35, 55),
            random.choice([None, 0, 1, 2]),
            random.randint(1, 3),
        )
        last, result = random.random() < 0.3, None
        if random.random() < 0.9:
            percents = {subject: figure(30, 70) for subject in random.sample(subjects, random.randint(1, 4))}
            result = (figure(35, 65), random.randint(1, 3), figure(38, 50), percents)
        rule = Rule(minimum, trial, {subject: subject for subject in required}, percent, failed, terms)

        by_rule, reasons = judge(rule, result and SessionResult(*result), last_class=last)

        exact = result and (
            Fraction(result[0]),
            result[1],
            Fraction(result[2]),
            {name: Fraction(mark) for name, mark in result[3].items()},
        )
        trial_exact = None if trial is None else Fraction(trial)
        expected = says(
            Fraction(minimum), trial_exact, required, Fraction(percent), failed, terms, exact, last
        )
        assert by_rule == expected
        assert bool(reasons) == (by_rule not in ("PROMOTED", "GRADUATED"))
        outcomes.add(by_rule)
    assert outcomes == {"PROMOTED", "PROMOTED_ON_TRIAL", "REPEATED", "GRADUATED", "NO_RESULT"}


def test_a_figure_on_the_border_is_enough():
    rule = Rule(Decimal(50), Decimal(40), {"a": "Latin"}, Decimal(45), 1, 2)
    percents = {"a": Decimal("45.00"), "b": Decimal("39.99")}

    def of(average, terms=2, percents=percents):
        return judge(rule, SessionResult(Decimal(average), terms, Decimal(40), percents), last_class=False)

    assert of("50.00") == ("PROMOTED", [])
    assert of("49.99")[0] == "PROMOTED_ON_TRIAL"
    assert of("40.00")[0] == "PROMOTED_ON_TRIAL"
    assert of("39.99")[0] == "REPEATED"
    assert [reason["code"] for reason in of("50.00", terms=1)[1]] == ["TERMS"]
    lower = {"a": Decimal("44.99"), "b": Decimal("39.99"), "c": Decimal("39.99")}
    assert [reason["message"] for reason in of("50.00", percents=lower)[1]] == [
        "Latin is 44.99, below 45.",
        "Failed 2 subjects, more than 1.",
    ]
