"""Classrooms."""

from __future__ import annotations

from uuid import uuid4


def test_a_classroom_is_created_listed_and_shown(api, make, place):
    made = make.classroom(name="  JSS 1 ")

    assert made == {"id": made["id"], "name": "JSS 1", "school": str(place.id)}
    assert api.ok(api.get("/classrooms")) == [made]
    assert api.ok(api.get(f"/classrooms/{made['id']}")) == made


def test_a_taken_name_is_a_conflict(api, make):
    make.classroom(name="JSS 1")

    answer = api.post("/classrooms", {"name": "JSS 1", "level": "Junior"})

    assert answer.status_code == 409
    assert answer.get_json()["message"] == "A classroom with this name exists already."
    assert answer.get_json()["errors"] == {"json": {"name": ["already taken"]}}


def test_the_other_school_has_its_own(api, other_api, make, make_other):
    made = make.classroom(name="JSS 1")
    make_other.classroom(name="JSS 1")

    assert other_api.get(f"/classrooms/{made['id']}").status_code == 404
    assert made["id"] not in [room["id"] for room in other_api.ok(other_api.get("/classrooms"))]


def test_an_unknown_classroom_is_not_found(api):
    answer = api.get(f"/classrooms/{uuid4()}")

    assert (answer.status_code, answer.get_json()["message"]) == (404, "No such classroom.")


def test_a_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    for size in (2, 10):
        for _ in range(size):
            make.classroom()
        api.ok(api.get("/classrooms"))
        with messages() as sent:
            api.ok(api.get("/classrooms"))
        assert len(sent) == 1, sent


def test_a_corrected_name_that_is_taken_is_a_conflict(api, make):
    make.classroom(name="JSS 1")
    made = make.classroom(name="JSS 2")

    answer = api.patch(f"/classrooms/{made['id']}", {"name": " JSS 1 ", "level": "Upper"})

    assert (answer.status_code, answer.get_json()["errors"]) == (409, {"json": {"name": ["already taken"]}})
    assert api.ok(api.get(f"/classrooms/{made['id']}")) == made


def test_cohorts_show_the_corrected_name_of_the_classroom(api, make):
    classroom = make.classroom(name="JSS One")
    cohort = make.cohort(classroom)

    api.ok(api.patch(f"/classrooms/{classroom['id']}", {"name": "JSS 1"}))

    assert api.ok(api.get(f"/cohorts/{cohort['id']}")) == {**cohort, "classroom": "JSS 1"}


def test_names_that_differ_in_case_a_mark_an_apostrophe_or_a_space_within_are_two_names(api, make):
    names = [
        "Room One",
        "room one",
        "Room Óne",
        "Room Oné",
        "RoomOne",
        "Room  One",
        "Room'One",
        "Room\u2019One",
    ]

    for name in names:
        make.classroom(name=name)

    assert {classroom["name"] for classroom in api.ok(api.get("/classrooms"))} >= set(names)
    for taken in (" Room One ", "Room O\u0301ne"):
        assert api.post("/classrooms", {"name": taken, "level": "Junior"}).status_code == 409
