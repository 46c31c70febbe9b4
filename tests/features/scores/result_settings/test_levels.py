"""Settings and grade bands of a level, in place of the school's."""

from __future__ import annotations

import pytest

SETTINGS, BANDS = "/result-settings?level=Nursery", "/grade-configs?level=Nursery"
OWN = {"pass_mark": 50, "positions": "NONE", "percent_places": 0, "marks": False}
NOTHING = dict.fromkeys(OWN)


def band(letter, lower, upper):
    return {
        "lower_threshold": lower,
        "upper_threshold": upper,
        "letter_grade": letter,
        "remarks": f"Is {letter}",
    }


SCALE = [band("P", 0, 49.99), band("D", 50, 100)]


@pytest.fixture(autouse=True)
def nursery(make):
    return make.classroom(level="Nursery")


def own(shown):
    return {name: shown[name] for name in OWN}


def reasons(answer):
    assert answer.status_code == 422, answer.get_data(as_text=True)
    return {name: reason for place in answer.get_json()["errors"].values() for name, reason in place.items()}


def logged(api, entity):
    entries = api.ok(api.get("/audit", query_string={"entity": entity}))["data"]
    assert {entry["entity_id"] for entry in entries} <= {str(api.school)}
    return [(entry["old"], entry["new"]) for entry in reversed(entries)]


def test_a_level_has_the_settings_of_the_school_until_it_has_its_own(api):
    school = api.ok(api.get("/result-settings"))
    assert own(shown := api.ok(api.get(SETTINGS))) == NOTHING
    assert shown["level"] == "Nursery"
    assert {"level", "marks"} & school.keys() == set()

    assert own(api.ok(api.patch(SETTINGS, OWN))) == OWN
    assert own(api.ok(api.get(SETTINGS))) == OWN
    assert api.ok(api.get("/result-settings")) == school
    assert own(api.ok(api.patch(SETTINGS, {"pass_mark": None}))) == {**OWN, "pass_mark": None}
    assert own(api.ok(api.patch(SETTINGS, {"pass_mark": None, **OWN}))) == OWN
    assert logged(api, "result-settings") == [
        ({"level": "Nursery", **NOTHING}, {"level": "Nursery", **OWN}),
        ({"level": "Nursery", "pass_mark": 50}, {"level": "Nursery", "pass_mark": None}),
        ({"level": "Nursery", "pass_mark": None}, {"level": "Nursery", "pass_mark": 50}),
    ]


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({"weighting": "POINTS"}, "weighting"),
        ({"verification": True, "pass_mark": 1}, "verification"),
        ({"pass_mark": 101}, "pass_mark"),
        ({"positions": "ALL"}, "positions"),
        ({"percent_places": 3}, "percent_places"),
        ({"marks": 0}, "marks"),
        ({"level": "Nursery"}, "level"),
    ],
)
def test_a_level_has_four_settings(api, body, member):
    assert [*reasons(api.patch(SETTINGS, body))] == [member]
    assert own(api.ok(api.get(SETTINGS))) == NOTHING


def test_a_level_that_no_classroom_has_has_no_rules(api, make_other):
    make_other.classroom(level="Crèche")
    for level in ("Crèche", "nursery", "x" * 300, ""):
        query = {"level": level}
        for answer in (
            api.get("/result-settings", query_string=query),
            api.patch(f"/result-settings?level={level}", OWN),
            api.get("/grade-configs", query_string=query),
            api.put(f"/grade-configs?level={level}", SCALE),
        ):
            assert [*reasons(answer)] == ["level"], level
    assert [*reasons(api.put("/grade-configs", SCALE))] == ["level"]


def test_a_change_of_a_level_is_refused_if_it_is_not_as_it_was_seen(api):
    seen = api.get(SETTINGS).headers["ETag"]
    of_school = api.get("/result-settings").headers["ETag"]
    headers = {"If-Match": seen}

    assert api.patch(SETTINGS, OWN, headers={"If-Match": of_school}).status_code == 412
    assert api.patch(SETTINGS, OWN, headers=headers).status_code == 200
    assert api.patch(SETTINGS, NOTHING, headers=headers).status_code == 412


def test_a_level_has_all_of_its_bands_at_once(api):
    school = api.ok(api.get("/grade-configs"))
    assert api.ok(api.get(BANDS)) == []

    stored = api.ok(api.put(BANDS, SCALE))

    assert stored == [{"id": None, **band} for band in reversed(SCALE)]
    assert api.ok(api.get(BANDS)) == stored
    assert api.ok(api.get("/grade-configs")) == school
    assert api.ok(api.put(BANDS, [*reversed(SCALE)])) == stored
    assert api.ok(api.put(BANDS, [])) == []
    old = {"level": "Nursery", "bands": [*reversed(SCALE)]}
    assert logged(api, "grade-scale") == [(None, old), (old, None)]


@pytest.mark.parametrize(
    "bands",
    [
        [band("A", 50, 49)],
        [band("A", 50, 100), band("B", 10, 50)],
        [band("A", 50, 100), band("B", 50, 100)],
        [band("A", -1, 100)],
        [band("A", 0, 100.01)],
        [{"letter_grade": "A"}],
        [band("", 0, 100)],
        [None],
        {"bands": []},
        [band("A", 0, 0)] * 101,
    ],
)
def test_bands_that_grade_nothing_or_twice_are_refused(api, bands):
    api.ok(api.put(BANDS, SCALE))

    assert api.put(BANDS, bands).status_code == 422
    assert [band["letter_grade"] for band in api.ok(api.get(BANDS))] == ["D", "P"]
