"""Grade configurations: bands of percentages without an overlap, and the grade of a score."""

from __future__ import annotations

import json
from decimal import Decimal
from uuid import uuid4

import pytest
from sqlalchemy.exc import IntegrityError

from school_service.core.statements import insert_row
from school_service.features.scores.models import GradeConfiguration
from school_service.web.error_responses import handle
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.threads import run_concurrently

WAEC = [
    ("A1", 75, 100, "Excellent"),
    ("B2", 70, 74, "Very Good"),
    ("B3", 65, 69, "Good"),
    ("C4", 60, 64, "Credit"),
    ("C5", 55, 59, "Credit"),
    ("C6", 50, 54, "Credit"),
    ("D7", 45, 49, "Pass"),
    ("E8", 40, 44, "Pass"),
    ("F9", 0, 39, "Fail"),
]


def bands(api):
    return api.ok(api.get("/grade-configs"))


def band(api, letter):
    return next(band for band in bands(api) if band["letter_grade"] == letter)


def new_band(lower, upper, letter="X"):
    return {"lower_threshold": lower, "upper_threshold": upper, "letter_grade": letter, "remarks": "Some"}


def columns(bands):
    return [
        (band["letter_grade"], band["lower_threshold"], band["upper_threshold"], band["remarks"])
        for band in bands
    ]


def scored(make, score, total=100):
    """Make an assessment with one score; answers the assessment."""
    taught = make.taught()
    assessment = make.assessment(taught.subject, taught.term, total_points=total)
    make.entry(assessment, taught.students[0], taught.cohort["id"], score)
    return assessment


# List and create


def test_a_new_school_has_the_bands_of_waec_the_highest_first(api):
    assert columns(bands(api)) == WAEC


def test_a_band_is_created_and_listed_in_its_place(api, make):
    make.without_grade_bands()
    low, high = make.grade_band(0, 49.99, letter_grade=" F "), make.grade_band(50, 100, letter_grade="P")

    assert low == {
        "id": low["id"],
        "lower_threshold": 0,
        "upper_threshold": 49.99,
        "letter_grade": "F",
        "remarks": "Excellent",
    }
    assert bands(api) == [high, low]


def test_thresholds_are_numbers_of_two_places_stored_exactly(api, make):
    make.without_grade_bands()
    made = make.grade_band(33.33, 66.67)

    body = api.get("/grade-configs").get_data(as_text=True)

    assert '"lower_threshold":33.33,"upper_threshold":66.67' in body
    assert json.loads(body) == [made]


def test_a_band_may_be_a_single_percentage(make):
    make.without_grade_bands()

    assert make.grade_band(100, 100)["lower_threshold"] == 100


@pytest.mark.parametrize("field", ["lower_threshold", "upper_threshold"])
def test_a_threshold_that_is_none_is_422(api, make, field):
    make.without_grade_bands()

    for number in (-0.01, -1, 100.01, 101, 1e300, 0.001, 69.999, "70", "", None, True, [70], {}):
        answer = api.post("/grade-configs", {**new_band(0, 100), field: number})

        assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field]), number
    assert bands(api) == []


def test_a_threshold_that_is_not_finite_is_refused(api, make):
    make.without_grade_bands()

    for number in ("NaN", "Infinity", "-Infinity", "1e400"):
        body = json.dumps(new_band(0, 100)).replace("100", number)
        answer = api.request("POST", "/grade-configs", data=body, content_type="application/json")

        assert answer.status_code == 422, number
    assert bands(api) == []


@pytest.mark.parametrize("field", ["lower_threshold", "upper_threshold", "letter_grade", "remarks"])
def test_every_member_is_required(api, field):
    body = new_band(0, 100)
    del body[field]

    answer = api.post("/grade-configs", body)

    assert answer.get_json()["errors"] == {"json": {field: ["Missing data for required field."]}}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("letter_grade", ""),
        ("letter_grade", "A" * 121),
        ("letter_grade", 1),
        ("remarks", " "),
        ("remarks", "a" * 2001),
        ("remarks", "a\0"),
        ("id", "3fa85f64-5717-4562-b3fc-2c963f66afa6"),
    ],
)
def test_a_member_that_is_none_is_422(api, field, value):
    answer = api.post("/grade-configs", {**new_band(0, 100), field: value})

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])


def test_thresholds_the_wrong_way_round_are_422(api, make):
    make.without_grade_bands()

    answer = api.post("/grade-configs", new_band(50.01, 50))

    assert answer.status_code == 422
    assert answer.get_json()["errors"] == {"json": {"upper_threshold": ["must not be below lower_threshold"]}}


# Overlaps


@pytest.mark.parametrize(
    ("lower", "upper"), [(70, 75), (75, 100), (100, 100), (74.5, 75), (80, 90), (0, 100)]
)
def test_an_overlap_is_a_conflict_that_names_the_band(api, make, lower, upper):
    make.without_grade_bands().grade_band(75, 100, letter_grade="A1")

    answer = api.post("/grade-configs", new_band(lower, upper))

    assert answer.status_code == 409
    assert answer.get_json()["message"] == f"The band from {lower} to {upper} overlaps A1 (75 to 100)."
    reason = ["overlaps A1 (75 to 100)"]
    assert answer.get_json()["errors"] == {"json": {"lower_threshold": reason, "upper_threshold": reason}}
    assert len(bands(api)) == 1


@pytest.mark.parametrize(("lower", "upper"), [(0, 39.99), (74.99, 74.99), (50.01, 50.01)])
def test_a_band_that_touches_no_other_is_stored(api, make, lower, upper):
    make.without_grade_bands()
    make.grade_band(75, 100)
    make.grade_band(40, 50)

    assert make.grade_band(lower, upper)["upper_threshold"] == upper


def test_of_many_that_overlap_at_once_one_is_made(committing):
    committing.without_grade_bands()

    answers = run_concurrently(
        20, lambda number: committing.api.using().post("/grade-configs", new_band(number, 50, str(number)))
    )

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 19
    (made,) = bands(committing.api)
    for answer in answers:
        assert (
            answer.status_code == 200 or f"overlaps {made['letter_grade']} (" in answer.get_json()["message"]
        )


def test_bands_side_by_side_are_made_and_deleted_at_once(committing):
    committing.without_grade_bands()
    ids = [committing.grade_band(number, number + 0.5)["id"] for number in range(10)]

    def work(number):
        api = committing.api.using()
        if number < 10:
            return api.delete(f"/grade-configs/{ids[number]}")
        return api.post("/grade-configs", new_band(number, number + 0.99))

    assert {answer.status_code for answer in run_concurrently(20, work)} == {200}
    assert [band["lower_threshold"] for band in bands(committing.api)] == list(range(19, 9, -1))


def test_an_overlap_that_the_database_alone_notices_is_a_conflict(api, rehearsed):
    with pytest.raises(IntegrityError) as refused, in_transaction(SchoolBinding(api.school)):
        insert_row(GradeConfiguration, **new_band(Decimal(50), Decimal(50)))

    with rehearsed.test_request_context(method="POST"):
        answer = handle(refused.value)

    assert answer.status_code == 409
    assert answer.get_json()["message"] == "It collides with another grade configuration."


# Change


def test_any_member_can_be_changed(api, make):
    made = make.without_grade_bands().grade_band(40, 60)

    for changes in (
        {"letter_grade": "B"},
        {"remarks": "Good"},
        {"lower_threshold": 50.5},
        new_band(0, 100),
        {},
    ):
        changed = api.ok(api.patch(f"/grade-configs/{made['id']}", changes))

        assert changed == {**made, **changes}
        assert bands(api) == [changed]
        made = changed


def test_a_boundary_moves_from_one_band_to_the_next(api):
    higher, lower = band(api, "B2"), band(api, "B3")

    api.ok(api.patch(f"/grade-configs/{higher['id']}", {"lower_threshold": 72}))
    api.ok(api.patch(f"/grade-configs/{lower['id']}", {"upper_threshold": 71.99}))

    assert columns(bands(api))[1:3] == [("B2", 72, 74, "Very Good"), ("B3", 65, 71.99, "Good")]


@pytest.mark.parametrize(
    ("changes", "overlapped"),
    [({"upper_threshold": 75}, "A1"), ({"lower_threshold": 69}, "B3"), ({"lower_threshold": 0}, "F9")],
)
def test_a_change_into_another_band_is_a_conflict(api, changes, overlapped):
    before = bands(api)

    answer = api.patch(f"/grade-configs/{band(api, 'B2')['id']}", changes)

    assert answer.status_code == 409
    assert f"overlaps {overlapped} (" in answer.get_json()["message"]
    assert bands(api) == before


def test_thresholds_are_named_as_people_write_them(api, make):
    made = make.without_grade_bands().grade_band(75, 100, letter_grade="A1")
    make.grade_band(60, 70, letter_grade="B")
    written = json.dumps(new_band(0, 0)).replace('threshold": 0', 'threshold": 1e2')

    answers = [
        api.post("/grade-configs", data=written, content_type="application/json"),
        api.patch(f"/grade-configs/{made['id']}", {"lower_threshold": 70}),
    ]

    assert [answer.get_json()["message"] for answer in answers] == [
        "The band from 100 to 100 overlaps A1 (75 to 100).",
        "The band from 70 to 100 overlaps B (60 to 70).",
    ]


@pytest.mark.parametrize("changes", [{"lower_threshold": 74.01}, {"upper_threshold": 69.99}])
def test_a_change_that_turns_the_thresholds_round_is_422(api, changes):
    answer = api.patch(f"/grade-configs/{band(api, 'B2')['id']}", changes)

    assert answer.get_json()["errors"] == {"json": {"upper_threshold": ["must not be below lower_threshold"]}}


@pytest.mark.parametrize(
    "changes",
    [
        {"lower_threshold": None},
        {"upper_threshold": 74.001},
        {"letter_grade": ""},
        {"remarks": None},
        {"id": "3fa85f64-5717-4562-b3fc-2c963f66afa6"},
        [],
    ],
)
def test_a_change_that_is_none_is_422(api, changes):
    before = bands(api)

    assert api.patch(f"/grade-configs/{band(api, 'B2')['id']}", changes).status_code == 422
    assert bands(api) == before


def test_a_band_in_use_can_be_changed(api, make):
    scored(make, 72)

    api.ok(api.patch(f"/grade-configs/{band(api, 'B2')['id']}", {"letter_grade": "B"}))

    assert band(api, "B")["lower_threshold"] == 70


# Delete


@pytest.mark.parametrize(
    ("score", "total", "letter"),
    [
        (100, 100, "A1"),
        (0.33, 0.44, "A1"),
        (74.99, 100, "B2"),
        (2.1, 3, "B2"),
        (69.5, 100, "B3"),
        (2.09, 3, "B3"),
        (40, 100, "E8"),
        (39.99, 100, "F9"),
        (0, 100, "F9"),
        (39999.99, 99999.99, "F9"),
        (74999.99, 99999.99, "B2"),
    ],
)
def test_the_grade_of_a_score_is_in_use_and_no_other(api, make, score, total, letter):
    scored(make, score, total)

    refused = []
    for band in bands(api):
        answer = api.delete(f"/grade-configs/{band['id']}")
        if answer.status_code != 200:
            refused.append((answer.status_code, answer.get_json()["message"]))

    in_use = next(f"{name} ({lower} to {upper})" for name, lower, upper, _ in WAEC if name == letter)
    assert refused == [
        (409, f"The grade configuration {in_use} is in use: it is the grade of gradebook entries.")
    ]


def test_a_band_is_free_again_without_its_scores(api, make):
    taught = make.taught(2)
    removed = make.assessment(taught.subject, taught.term)
    other = make.assessment(taught.subject, taught.term)
    entry = make.entry(removed, taught.students[0], taught.cohort["id"], 14)
    make.entry(other, taught.students[1], taught.cohort["id"], 14.2)
    path = f"/grade-configs/{band(api, 'B2')['id']}"

    api.ok(api.delete(f"/gradebooks/{entry['id']}"))
    assert api.delete(path).status_code == 409
    api.ok(api.delete(f"/assessments/{other['id']}"))
    assert api.ok(api.delete(path)) == {"id": path.rsplit("/", 1)[1], "deleted": True}
    assert api.delete(path).status_code == 404


def test_scores_of_a_deleted_band_have_the_grade_of_the_next_lower(api, make):
    api.ok(api.delete(f"/grade-configs/{band(api, 'B2')['id']}"))
    scored(make, 72)

    assert api.delete(f"/grade-configs/{band(api, 'B3')['id']}").status_code == 409


def test_an_unknown_band_is_not_found(api):
    for answer in (
        api.delete(f"/grade-configs/{uuid4()}"),
        api.patch(f"/grade-configs/{uuid4()}", {"remarks": "Good"}),
    ):
        assert (answer.status_code, answer.get_json()["message"]) == (404, "No such grade configuration.")


# The audit log, the other school, round trips


def test_every_change_is_in_the_audit_log(api, make):
    made = make.without_grade_bands().grade_band(40, 60)
    path = f"/grade-configs/{made['id']}"
    api.ok(api.patch(path, {"lower_threshold": 45.5}))
    api.ok(api.patch(path, {"lower_threshold": 45.50}))
    api.ok(api.delete(path))

    entries = api.ok(api.get("/audit", query_string={"entity": "grade-config", "id": made["id"]}))["data"]

    first = {"lower_threshold": 40, "upper_threshold": 60, "letter_grade": "A1", "remarks": "Excellent"}
    second = {**first, "lower_threshold": 45.5}
    assert [(entry["action"], entry["old"], entry["new"]) for entry in reversed(entries)] == [
        ("create", None, first),
        ("update", first, second),
        ("delete", second, None),
    ]


def test_the_other_school_has_its_own(api, other_api, make, make_other):
    made = make.without_grade_bands().grade_band(40, 60, letter_grade="P")

    assert columns(bands(other_api)) == WAEC
    assert other_api.patch(f"/grade-configs/{made['id']}", {"remarks": "Good"}).status_code == 404
    assert other_api.delete(f"/grade-configs/{made['id']}").status_code == 404
    assert other_api.using(school=api.school).get("/grade-configs").status_code == 403
    scored(make_other, 50)
    assert api.ok(api.delete(f"/grade-configs/{made['id']}"))["deleted"]


def test_a_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    make.without_grade_bands()
    for size in (2, 10):
        for number in range(size):
            make.grade_band(size + number, size + number)
        api.ok(api.get("/grade-configs"))
        with messages() as sent:
            api.ok(api.get("/grade-configs"))
        assert len(sent) == 1, sent
