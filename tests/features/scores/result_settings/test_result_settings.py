"""How results are computed: the defaults, and a school's choices instead."""

from __future__ import annotations

import pytest
from sqlalchemy import delete

from school_service.core.database import db
from school_service.features.scores.models import ResultSettings
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.features.results.stored_settings import store_settings
from tests.threads import run_concurrently

PATH = "/result-settings"
DEFAULTS = {
    "weighting": "POINTS",
    "weights": [],
    "percent_places": 2,
    "pass_mark": 40,
    "minimum_subjects": 1,
    "minimum_terms": 1,
    "rank_by": "AVERAGE",
    "term_weights": {"FIRST": 1, "SECOND": 1, "THIRD": 1},
    "positions": "BOTH",
    "principal_comments": [],
    "verification": True,
    "name_order": "GIVEN_FIRST",
    "signatures": "PICTURES",
    "show_teachers": False,
    "percent_from": "MARKS",
    "show_ca_total": False,
    "show_photo": False,
}
OTHERS = {
    "weighting": "CATEGORIES",
    "percent_places": 0,
    "pass_mark": 49.5,
    "minimum_subjects": 9,
    "minimum_terms": 3,
    "rank_by": "TOTAL",
    "term_weights": {"FIRST": 15, "SECOND": 25.25, "THIRD": 0},
    "positions": "NONE",
    "verification": False,
    "name_order": "SURNAME_FIRST",
    "signatures": "NONE",
    "show_teachers": True,
    "percent_from": "EXACT",
    "show_ca_total": True,
    "show_photo": True,
}


def weight(category, weight, level=None):
    return {"level": level, "category": category, "weight": weight}


def logged(api):
    entries = api.ok(api.get("/audit", query_string={"entity": "result-settings"}))["data"]
    assert {change["entity_id"] for change in entries} <= {str(api.school)}
    return [(change["action"], change["old"], change["new"]) for change in reversed(entries)]


def reason(answer, field):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    (words,) = answer.get_json()["errors"]["json"][field]
    return words


def test_a_school_that_has_chosen_nothing_has_the_defaults(api):
    assert api.ok(api.get(PATH)) == DEFAULTS
    assert api.ok(api.patch(PATH, {})) == DEFAULTS
    assert logged(api) == []


def test_a_school_of_an_earlier_release_has_exact_percents(api):
    with in_transaction(SchoolBinding(api.school)):
        store_settings()

    assert api.ok(api.get(PATH))["percent_from"] == "EXACT"
    with in_transaction(SchoolBinding(api.school)):
        db.session.execute(delete(ResultSettings))
    assert api.ok(api.get(PATH)) == {**DEFAULTS, "percent_from": "EXACT"}


@pytest.mark.parametrize("name", OTHERS)
def test_each_member_is_changed_and_the_others_stay(api, name):
    assert api.ok(api.patch(PATH, {name: OTHERS[name]})) == {**DEFAULTS, name: OTHERS[name]}
    assert api.ok(api.get(PATH)) == {**DEFAULTS, name: OTHERS[name]}


def test_all_are_changed_at_once_and_again_one_by_one(api):
    assert api.ok(api.patch(PATH, OTHERS)) == {**DEFAULTS, **OTHERS}
    assert api.ok(api.patch(PATH, {"pass_mark": 50})) == {**DEFAULTS, **OTHERS, "pass_mark": 50}
    before = logged(api)
    assert api.ok(api.patch(PATH, {"pass_mark": 50.0, "rank_by": "TOTAL"}))["pass_mark"] == 50
    assert logged(api) == before
    assert before[1] == ("update", {"pass_mark": 49.5}, {"pass_mark": 50})


def test_the_audit_log_has_the_changed_settings_alone(api):
    api.ok(api.patch(PATH, {"percent_places": 1, "minimum_terms": 1}))

    assert logged(api) == [("update", {"percent_places": 2}, {"percent_places": 1})]


def test_weights_are_of_all_levels_or_of_one_and_in_order(api, make):
    make.classroom(level="Ṣẹ́kọ́ńdírì Àgbà")
    rows = [
        weight("EXAM", 80, "Ṣẹ́kọ́ńdírì Àgbà"),
        weight("EXAM", 60),
        weight("CA1", 13.33),
        weight("CA2", 13.33),
        weight("CA3", 13.34),
        weight("CA1", 20, " Ṣẹ́kọ́ńdírì Àgbà "),
    ]

    answer = api.ok(api.patch(PATH, {"weights": rows}))

    in_order = [*rows[2:5], rows[1], {**rows[5], "level": "Ṣẹ́kọ́ńdírì Àgbà"}, rows[0]]
    assert answer["weights"] == in_order
    # As a whole: weights left out are gone, and nothing again is the default.
    assert api.ok(api.patch(PATH, {"weights": [weight("EXAM", 100)]}))["weights"] == [weight("EXAM", 100)]
    assert api.ok(api.patch(PATH, {"weights": []})) == DEFAULTS


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([weight("EXAM", 99.99)], "those of every level sum to 99.99 and not to 100"),
        ([weight("EXAM", 60), weight("CA1", 40.01)], "those of every level sum to 100.01 and not to 100"),
        ([weight("EXAM", 0)], "those of every level sum to 0 and not to 100"),
        (
            [weight("EXAM", 50), weight("EXAM", 50)],
            "EXAM is there twice for every level",
        ),
        (
            [weight("EXAM", 100), weight("EXAM", 90, "Junior")],
            'those of the level "Junior" sum to 90 and not to 100',
        ),
        ([weight("EXAM", 100, "junior")], 'no classroom has the level "junior"'),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_weights_that_can_not_be(api, make, rows, words):
    make.classroom(level="Junior")

    assert reason(api.patch(PATH, {"weights": rows, "pass_mark": 50}), "weights") == words
    assert api.ok(api.get(PATH)) == DEFAULTS


def test_a_level_of_the_other_school_is_none(api, make_other):
    make_other.classroom(level="Theirs")

    words = reason(api.patch(PATH, {"weights": [weight("EXAM", 100, "Theirs")]}), "weights")
    assert words == 'no classroom has the level "Theirs"'


def test_the_principals_comments_are_from_the_highest_threshold_down(api):
    rows = [
        {"lower_threshold": 0, "comment": "Ìgbìyànjú síi!"},
        {"lower_threshold": 69.5, "comment": "#let x = $1$\nWell done"},
        {"lower_threshold": 40, "comment": "A fair result."},
    ]

    answer = api.ok(api.patch(PATH, {"principal_comments": rows}))

    assert [row["lower_threshold"] for row in answer["principal_comments"]] == [69.5, 40, 0]
    assert answer["principal_comments"][0] == rows[1]
    twice = [rows[2], {"lower_threshold": 40.0, "comment": "Another"}]
    words = reason(api.patch(PATH, {"principal_comments": twice}), "principal_comments")
    assert words == "the threshold 40 is there twice"


@pytest.mark.parametrize("left", ["FIRST", "SECOND", "THIRD"])
def test_one_term_has_to_weigh_something(api, left):
    nothing = dict.fromkeys(("FIRST", "SECOND", "THIRD"), 0)

    words = reason(api.patch(PATH, {"term_weights": nothing}), "term_weights")
    assert words == "one of them must be more than 0"
    weights = {**nothing, left: 0.01}
    assert api.ok(api.patch(PATH, {"term_weights": weights}))["term_weights"] == weights


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"weighting": "points"},
        {"weighting": None},
        {"weights": None},
        {"weights": {}},
        {"weights": [weight("FIRST_TERM", 100)]},
        {"weights": [weight("EXAM", -1)]},
        {"weights": [weight("EXAM", 100.01)]},
        {"weights": [weight("EXAM", 33.333)]},
        {"weights": [weight("EXAM", "100")]},
        {"weights": [weight("EXAM", 100, "")]},
        {"weights": [weight("EXAM", 100, 1)]},
        {"weights": [{"level": None, "weight": 100}]},
        {"weights": [weight("EXAM", 100)] * 201},
        {"percent_from": "PAPER"},
        {"show_ca_total": 1},
        {"show_photo": "true"},
        {"marks": False},
        {"pass_mark": None},
        {"positions": None},
        {"percent_places": None},
        {"percent_places": 3},
        {"percent_places": -1},
        {"percent_places": 1.5},
        {"percent_places": True},
        {"pass_mark": -0.01},
        {"pass_mark": 100.01},
        {"pass_mark": 39.999},
        {"pass_mark": "40"},
        {"pass_mark": True},
        {"minimum_subjects": 0},
        {"minimum_subjects": 41},
        {"minimum_terms": 0},
        {"minimum_terms": 4},
        {"rank_by": "MEDIAN"},
        {"term_weights": {"FIRST": 1, "SECOND": 1}},
        {"term_weights": {"FIRST": 1, "SECOND": 1, "THIRD": 1, "FOURTH": 1}},
        {"term_weights": {"FIRST": 1, "SECOND": 1, "THIRD": -1}},
        {"term_weights": {"FIRST": 1, "SECOND": 1, "THIRD": 1000}},
        {"term_weights": {"FIRST": 1, "SECOND": 1, "THIRD": 0.001}},
        {"term_weights": [1, 1, 1]},
        {"positions": "ALL"},
        {"principal_comments": [{"lower_threshold": 40}]},
        {"principal_comments": [{"lower_threshold": 101, "comment": "x"}]},
        {"principal_comments": [{"lower_threshold": 40, "comment": ""}]},
        {"principal_comments": [{"lower_threshold": 40, "comment": "x" * 501}]},
        {"principal_comments": [{"lower_threshold": 40, "comment": "x\0"}]},
        {"principal_comments": [{"lower_threshold": 40, "comment": "x"}] * 101},
        {"verification": "true"},
        {"verification": 1},
        {"name_order": "surname_first"},
        {"name_order": None},
        {"signatures": "STAMP"},
        {"signatures": True},
        {"show_teachers": "true"},
        {"show_teachers": None},
        {"school": "x"},
    ],
    ids=lambda body: str(body)[:60],
)
def test_bad_input_is_422_and_changes_nothing(api, body):
    assert api.patch(PATH, body).status_code == 422
    assert api.ok(api.get(PATH)) == DEFAULTS


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_a_token_that_is_no_number_is_refused(api, number):
    answer = api.patch(PATH, data=f'{{"pass_mark": {number}}}', content_type="application/json")

    assert answer.status_code in {400, 422}
    assert api.ok(api.get(PATH)) == DEFAULTS


def test_the_bounds_themselves_are_taken(api):
    for body in (
        {"pass_mark": 0},
        {"pass_mark": 100},
        {"minimum_subjects": 40},
        {"principal_comments": [{"lower_threshold": 100, "comment": "x" * 500}]},
        {"term_weights": {"FIRST": 999.99, "SECOND": 0, "THIRD": 0}},
    ):
        assert api.ok(api.patch(PATH, body)).items() >= body.items()


def test_the_other_school_keeps_its_own(api, other_api):
    api.ok(api.patch(PATH, OTHERS))

    assert other_api.ok(other_api.get(PATH)) == DEFAULTS
    assert logged(other_api) == []
    for method in ("GET", "PATCH"):
        crossed = api.using(school=other_api.school)
        assert crossed.request(method, PATH, **({"json": {}} if method == "PATCH" else {})).status_code == 403


def test_of_changes_at_once_each_holds(committing):
    changes = list(OTHERS.items())

    answers = run_concurrently(
        len(changes), lambda n: committing.api.using().patch(PATH, dict([changes[n]])).status_code
    )

    assert answers == [200] * len(changes)
    assert committing.api.ok(committing.api.get(PATH)) == {**DEFAULTS, **OTHERS}
    before = [old for _, old, _ in logged(committing.api)]
    assert sorted(str(old) for old in before)
    assert len(before) == len(changes)


def test_reading_costs_one_message_and_changing_four(api, messages):
    for body in ({"pass_mark": 45}, {"weights": [weight("EXAM", 100)]}):
        with messages() as sent:
            api.ok(api.patch(PATH, body))
        assert len(sent) == 4, sent
    with messages() as sent:
        api.ok(api.get(PATH))
    assert len(sent) == 1
