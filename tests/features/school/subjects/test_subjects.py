"""Subjects."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.factories import UNKNOWN_ID


def test_a_subject_is_created_and_listed(api, make, place):
    made = make.subject(name="  Mathematics ", code=" MTH ")

    assert made == {
        "id": made["id"],
        "name": "Mathematics",
        "code": "MTH",
        "position": None,
        "school": str(place.id),
    }
    assert made in api.ok(api.get("/templates"))


def test_subjects_are_listed_by_name(api, make):
    for name in ("Physics", "Agricultural Science", "Igbo"):
        make.subject(name=name)

    assert [subject["name"] for subject in api.ok(api.get("/templates"))] == [
        "Agricultural Science",
        "Igbo",
        "Physics",
    ]


def test_two_subjects_may_share_a_name(api, make):
    made = [make.subject(name="Igbo", code=code) for code in ("IGB1", "IGB2")]

    ids = sorted(subject["id"] for subject in made)
    assert [subject["id"] for subject in api.ok(api.get("/templates"))] == ids


def test_a_taken_code_is_a_conflict(api, make):
    make.subject(code="MTH")

    answer = api.post("/templates", {"name": "Further Mathematics", "code": "MTH"})

    assert answer.status_code == 409
    assert answer.get_json()["message"] == "A subject with this code exists already."
    assert answer.get_json()["errors"] == {"json": {"code": ["already taken"]}}


def test_a_deleted_subject_is_gone_and_its_code_free(api, make):
    made = make.subject(code="MTH")

    assert api.ok(api.delete(f"/templates/{made['id']}")) == {"id": made["id"], "deleted": True}
    assert api.ok(api.get("/templates")) == []
    assert api.delete(f"/templates/{made['id']}").status_code == 404
    make.subject(code="MTH")


def test_a_subject_that_a_cohort_is_taught_is_in_use(api, make):
    made = make.subject()
    make.cohort_subject(subject=made)

    answer = api.delete(f"/templates/{made['id']}")

    assert answer.status_code == 409
    assert answer.get_json()["message"] == "The subject is in use by 1 cohort subject."
    assert api.ok(api.get("/templates")) == [made]


def test_deleting_an_unknown_subject_is_not_found(api):
    answer = api.delete(f"/templates/{uuid4()}")

    assert (answer.status_code, answer.get_json()["message"]) == (404, "No such subject.")


def test_a_path_id_that_is_no_uuid_is_not_found(api):
    assert api.delete("/templates/mathematics").status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"code": "MTH"}, "name"),
        ({"name": "Mathematics"}, "code"),
        ({"name": "   ", "code": "MTH"}, "name"),
        ({"name": "Mathematics", "code": ""}, "code"),
        ({"name": 5, "code": "MTH"}, "name"),
        ({"name": "Mathematics", "code": None}, "code"),
        ({"name": "Mathe\0matics", "code": "MTH"}, "name"),
        ({"name": "Mathe\ud800matics", "code": "MTH"}, "name"),
        ({"name": "M" * 121, "code": "MTH"}, "name"),
        ({"name": "Mathematics", "code": "M" * 121}, "code"),
        ({"name": "Mathematics", "code": "MTH", "school": str(uuid4())}, "school"),
    ],
)
def test_a_bad_subject_is_refused(api, body, field):
    answer = api.post("/templates", body)

    assert answer.status_code == 422
    assert list(answer.get_json()["errors"]["json"]) == [field]
    assert api.ok(api.get("/templates")) == []


def test_any_script_is_stored_as_it_is(api, make):
    made = make.subject(name="Ìṣirò — 数学 🧮", code="ÌṢ" + "é" * 118)

    assert api.ok(api.get("/templates")) == [made]
    assert made["name"] == "Ìṣirò — 数学 🧮"


def test_the_other_school_has_its_own(api, other_api, make, make_other):
    made = make.subject(code="MTH")
    theirs = make_other.subject(code="MTH")

    assert other_api.delete(f"/templates/{made['id']}").status_code == 404
    assert other_api.ok(other_api.get("/templates")) == [theirs]
    assert api.ok(api.get("/templates")) == [made]
    assert api.using(school=other_api.school).get("/templates").status_code == 403
    assert api.using(school=None).get("/templates").status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "permission"),
    [
        ("GET", "/templates", "read:subjects"),
        ("POST", "/templates", "write:subjects"),
        ("DELETE", f"/templates/{UNKNOWN_ID}", "delete:subjects"),
    ],
)
def test_each_operation_asks_for_its_permission(make, method, path, permission):
    others = {"read:subjects", "write:subjects", "delete:subjects"}
    make.check_permission(method, path, permission, others=others, json={"code": 1})


def test_a_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    for size in (2, 20):
        for _ in range(size):
            make.subject()
        api.ok(api.get("/templates"))
        with messages() as sent:
            api.ok(api.get("/templates"))
        assert len(sent) == 1, sent


# Order


def test_subjects_stand_by_position_and_then_by_name(api, make):
    placed = {"Yoruba": 2, "Biology": None, "Chemistry": None, "Mathematics": 1, "English": 1}
    for name, position in placed.items():
        make.subject(name=name, **({} if position is None else {"position": position}))

    listed = api.ok(api.get("/templates"))

    assert [subject["name"] for subject in listed] == [
        "English",
        "Mathematics",
        "Yoruba",
        "Biology",
        "Chemistry",
    ]
    changed = api.ok(api.patch(f"/templates/{listed[0]['id']}", {"position": None}))
    assert changed["position"] is None
    assert [template["name"] for template in api.ok(api.get("/templates"))][-1] == "English"


@pytest.mark.parametrize("position", [-1, 10_000, 1.5, "1", True, []])
def test_a_position_is_a_whole_number_from_0_to_9999(api, make, position):
    subject = make.subject(position=9_999)

    for answer in (
        api.patch(f"/templates/{subject['id']}", {"position": position}),
        api.post("/templates", {"name": "Art", "code": "ART", "position": position}),
    ):
        assert (answer.status_code, [*answer.get_json()["errors"]["json"]]) == (422, ["position"])
