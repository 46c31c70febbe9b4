"""Departments, employee categories and positions: settings that are known by their names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from school_service.seed import defaults
from tests.threads import run_concurrently


@dataclass(frozen=True)
class NamedSetting:
    """A setting known by its name: path, word for one, an employee's member for it, and a new school's own."""

    path: str
    singular: str
    member: str
    defaults: tuple[str, ...]

    def __str__(self):
        return self.singular

    def make(self, make, **fields):
        return getattr(make, self.singular.replace(" ", "_"))(**fields)


NAMED_SETTINGS = (
    NamedSetting("/departments", "department", "department", defaults.DEPARTMENTS),
    NamedSetting("/employee-categories", "employee category", "category", defaults.EMPLOYEE_CATEGORIES),
    NamedSetting("/positions", "position", "position", defaults.POSITIONS),
)


@pytest.fixture(params=NAMED_SETTINGS, ids=str)
def kind(request):
    return request.param


def names(api, kind):
    return [setting["name"] for setting in api.ok(api.get(kind.path))]


def test_a_new_school_has_the_default_ones_in_order_of_name(api, kind):
    assert names(api, kind) == sorted(kind.defaults)


def test_a_setting_is_created_with_a_trimmed_name_and_listed(api, make, kind):
    made = kind.make(make, name="  Éducation  ")

    assert made["name"] == "Éducation"
    assert made in api.ok(api.get(kind.path))


def test_a_department_tells_when_it_was_created(make):
    created = datetime.fromisoformat(make.department()["createdAt"])

    assert created.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - created) < timedelta(minutes=5)


@pytest.mark.parametrize("path", ["/employee-categories", "/positions"])
def test_the_others_have_an_id_and_a_name_alone(api, path):
    assert {frozenset(setting) for setting in api.ok(api.get(path))} == {frozenset({"id", "name"})}


def test_a_taken_name_is_a_conflict(api, make, kind):
    kind.make(make, name="Estates")

    answer = api.post(kind.path, {"name": " Estates "})

    article = "An" if kind.singular[0] == "e" else "A"
    assert answer.status_code == 409
    assert answer.get_json()["message"] == f"{article} {kind.singular} with this name exists already."
    assert answer.get_json()["errors"] == {"json": {"name": ["already taken"]}}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": " \t"},
        {"name": None},
        {"name": 7},
        {"name": ["Estates"]},
        {"name": "Est\0ates"},
        {"name": "\ud800"},
        {"name": "a" * 121},
        {"name": "Estates", "id": "3fa85f64-5717-4562-b3fc-2c963f66afa6"},
        [],
        "Estates",
    ],
    ids=repr,
)
def test_a_body_that_is_no_setting_is_422(api, kind, body):
    answer = api.post(kind.path, body)

    assert answer.status_code == 422
    assert names(api, kind) == sorted(kind.defaults)


def test_the_longest_name_is_stored_whole(make, kind):
    assert kind.make(make, name="漢" * 120)["name"] == "漢" * 120


def test_a_setting_is_deleted(api, make, kind):
    made = kind.make(make)

    assert api.ok(api.delete(f"{kind.path}/{made['id']}")) == {"id": made["id"], "deleted": True}
    assert made["name"] not in names(api, kind)
    assert api.delete(f"{kind.path}/{made['id']}").status_code == 404


def test_the_default_ones_can_be_deleted_and_made_again(api, kind):
    for setting in api.ok(api.get(kind.path)):
        api.ok(api.delete(f"{kind.path}/{setting['id']}"))
    assert names(api, kind) == []

    api.ok(api.post(kind.path, {"name": kind.defaults[0]}))

    assert names(api, kind) == [kind.defaults[0]]


def test_a_setting_of_an_employee_is_in_use(api, make, kind):
    made = kind.make(make)
    employee, _ = (make.employee(**{kind.member: made["id"]}) for _ in range(2))

    for _ in range(2):
        answer = api.delete(f"{kind.path}/{made['id']}")
        assert answer.status_code == 409
        assert answer.get_json()["message"] == f"The {kind.singular} is in use by 2 employees."
        assert made in api.ok(api.get(kind.path))
        # The record of a deleted employee stays.
        api.delete(f"/employees/{employee['id']}")


def test_a_department_is_deleted_or_taken_at_once_and_not_both(committing):
    api = committing.api
    departments = [committing.department()["id"] for _ in range(6)]
    bodies = [committing.employee_body(department=department) for department in departments]

    def work(number):
        if number % 2:
            return api.using().delete(f"/departments/{departments[number // 2]}")
        return api.using().post("/employees", bodies[number // 2])

    answers = run_concurrently(12, work)

    for taken, deleted in zip(answers[::2], answers[1::2], strict=True):
        assert (taken.status_code, deleted.status_code) in {(200, 409), (422, 200)}


def test_an_unknown_setting_is_not_found(api, kind):
    answer = api.delete(f"{kind.path}/{uuid4()}")

    assert (answer.status_code, answer.get_json()["message"]) == (404, f"No such {kind.singular}.")


def test_the_id_of_another_setting_is_not_found(api, make, kind):
    others = [other.make(make)["id"] for other in NAMED_SETTINGS if other is not kind]

    assert {api.delete(f"{kind.path}/{other}").status_code for other in others} == {404}


def test_the_other_school_has_its_own(api, other_api, make, make_other, kind):
    made = kind.make(make, name="Estates")

    assert "Estates" not in names(other_api, kind)
    assert other_api.delete(f"{kind.path}/{made['id']}").status_code == 404
    assert kind.make(make_other, name="Estates")["id"] != made["id"]
    assert other_api.using(school=api.school).get(kind.path).status_code == 403
    assert "Estates" in names(api, kind)


def test_a_list_costs_one_round_trip_however_long_it_is(api, make, kind, messages):
    for size in (2, 10):
        for _ in range(size):
            kind.make(make)
        api.ok(api.get(kind.path))
        with messages() as sent:
            api.ok(api.get(kind.path))
        assert len(sent) == 1, sent


def test_of_many_with_one_name_at_once_one_is_made(committing):
    for kind in NAMED_SETTINGS:
        answers = run_concurrently(
            10, lambda _, kind=kind: committing.api.using().post(kind.path, {"name": "Estates"})
        )

        assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9
        assert names(committing.api, kind).count("Estates") == 1
