"""The traits that students are scored for."""

from __future__ import annotations

import pytest

from school_service.seed.defaults import TRAITS
from tests.threads import run_concurrently

PATH = "/metric-definitions"


def listed(api):
    return [
        (definition["metric_type"], definition["position"], definition["name"])
        for definition in api.ok(api.get(PATH))
    ]


def add(api, name="curiosity", metric_type="AFFECTIVE"):
    return api.post(PATH, {"name": name, "metric_type": metric_type})


def test_a_new_school_has_the_default_ones_by_type_and_position(api):
    assert listed(api) == [
        (metric_type, position, name)
        for metric_type in ("AFFECTIVE", "PSYCHOMOTOR")
        for position, name in enumerate(TRAITS[metric_type], 1)
    ]


def test_a_new_one_comes_after_the_others_of_its_type(api):
    first, second = api.ok(add(api)), api.ok(add(api, "  sewing ", "PSYCHOMOTOR"))

    assert {**first, "id": None} == {
        "id": None, "name": "curiosity", "metric_type": "AFFECTIVE", "position": 11
    }  # fmt: skip
    assert (second["name"], second["position"]) == ("sewing", 9)
    assert listed(api)[10] == ("AFFECTIVE", 11, "curiosity")
    assert listed(api)[-1] == ("PSYCHOMOTOR", 9, "sewing")


@pytest.mark.parametrize("name", ["punctuality", "Punctuality", " PUNCTUALITY "])
def test_a_trait_that_a_sheet_could_not_tell_from_another_is_a_conflict(api, name):
    answer = add(api, name)

    assert (answer.status_code, answer.get_json()["message"]) == (
        409,
        "The AFFECTIVE trait punctuality exists already.",
    )
    assert answer.get_json()["errors"]["json"] == {"name": ["already taken"]}


def test_letters_with_marks_are_the_same_however_they_are_typed(api):
    api.ok(add(api, "\u00ccw\u00e0"))

    assert add(api, "I\u0300wa\u0300").status_code == 409
    assert add(api, "Iwa").status_code == 200


def test_a_refused_trait_leaves_no_gap(api):
    assert add(api, "Neatness").status_code == 409

    assert api.ok(add(api))["position"] == 11


def test_the_other_type_may_have_the_same_name(api):
    assert api.ok(add(api, "Punctuality", "PSYCHOMOTOR"))["position"] == 9


@pytest.mark.parametrize("name", ["admission_number", "First_Name", " last_name "])
def test_the_name_of_another_column_is_refused(api, name):
    answer = add(api, name)

    assert answer.status_code == 422
    assert answer.get_json()["errors"]["json"] == {"name": ["is the name of another column of metric sheets"]}


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, {"name", "metric_type"}),
        ({"name": " ", "metric_type": "AFFECTIVE"}, {"name"}),
        ({"name": "x" * 121, "metric_type": "AFFECTIVE"}, {"name"}),
        ({"name": "a\0b", "metric_type": "AFFECTIVE"}, {"name"}),
        ({"name": 5, "metric_type": 5}, {"name", "metric_type"}),
        ({"name": "x", "metric_type": "affective"}, {"metric_type"}),
        ({"name": "x", "metric_type": "AFFECTIVE", "position": 1}, {"position"}),
    ],
)
def test_wrong_input_is_refused(api, body, wrong):
    answer = api.post(PATH, body)

    assert answer.status_code == 422
    assert set(answer.get_json()["errors"]["json"]) == wrong


def test_at_once_they_are_numbered_without_gaps_and_named_once(committing):
    names = ["Curiosity", "curiosity", "courage", "patience", "CURIOSITY", "tact"]

    answers = run_concurrently(6, lambda turn: add(committing.api.using(), names[turn]).status_code)

    assert sorted(answers) == [200, 200, 200, 200, 409, 409]
    assert [position for _, position, _ in listed(committing.api)[:14]] == list(range(1, 15))


def test_the_other_school_has_its_own(api, other_api):
    api.ok(add(api))

    assert api.ok(add(other_api))["position"] == 11
    api.ok(add(api, "courage"))
    assert ("AFFECTIVE", 12, "courage") not in listed(other_api)
    assert other_api.using(school=api.school).get(PATH).status_code == 403
    assert add(other_api.using(school=api.school)).status_code == 403


def test_the_list_of_traits_costs_one_round_trip(api, messages):
    with messages() as sent:
        listed(api)

    assert len(sent) == 1
