"""Academic sessions, and the current one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from uuid import uuid4

import pytest
from sqlalchemy import update

from school_service.core.database import db
from school_service.features.school.models import AcademicSession
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tests.client import ApiClient
from tests.conftest import make_place
from tests.factories import UNKNOWN_ID

YEAR = {"name": "2025/2026", "start_date": "2025-09-08", "end_date": "2026-07-24"}


def current(api):
    return [session["name"] for session in api.ok(api.get("/sessions")) if session["current"]]


def test_a_session_is_created_listed_and_shown(api, make):
    made = make.session(**YEAR)

    assert made == {**YEAR, "id": made["id"], "current": False}
    assert api.ok(api.get("/sessions")) == [made]
    assert api.ok(api.get(f"/sessions/{made['id']}")) == made


def test_sessions_are_listed_the_newest_first(api, make):
    years = [
        make.session(start_date=f"{year}-09-01", end_date=f"{year}-12-01")
        for year in (2024, 2026, 2025, 2025)
    ]

    listed = [session["id"] for session in api.ok(api.get("/sessions"))]

    assert listed == [years[1]["id"], *sorted([years[2]["id"], years[3]["id"]]), years[0]["id"]]


def test_a_session_of_a_single_day_is_a_session(make):
    made = make.session(start_date="2025-09-08", end_date="2025-09-08")

    assert made["start_date"] == made["end_date"] == "2025-09-08"


def test_a_current_session_ends_the_currency_of_the_other(api, make):
    make.session(name="2024/2025", current=True)
    make.session(name="2025/2026", current=True)

    assert current(api) == ["2025/2026"]


def test_patching_a_session_to_current_ends_the_currency_of_the_other(api, make):
    first = make.session(name="2024/2025")
    make.session(name="2025/2026", current=True)

    changed = api.ok(api.patch(f"/sessions/{first['id']}", {"current": True}))

    assert changed == {**first, "current": True}
    assert current(api) == ["2024/2025"]


def test_the_current_session_stays_so_when_made_current_again(api, make):
    made = make.session(current=True)

    assert api.ok(api.patch(f"/sessions/{made['id']}", {"current": True})) == made
    assert current(api) == [made["name"]]


def test_the_current_session_may_end_its_currency(api, make):
    made = make.session(current=True)

    assert api.ok(api.patch(f"/sessions/{made['id']}", {"current": False}))["current"] is False
    assert current(api) == []


def test_a_patch_changes_the_named_members_alone(api, make):
    made = make.session(**YEAR, current=True)

    changed = api.ok(api.patch(f"/sessions/{made['id']}", {"name": " 2025/26 ", "end_date": "2026-07-31"}))

    assert changed == {**made, "name": "2025/26", "end_date": "2026-07-31"}
    assert api.ok(api.get(f"/sessions/{made['id']}")) == changed


def test_an_empty_patch_changes_nothing(api, make):
    made = make.session(current=True)

    assert api.ok(api.patch(f"/sessions/{made['id']}", {})) == made


def test_a_session_that_ends_before_it_starts_is_refused(api):
    answer = api.post("/sessions", {**YEAR, "end_date": "2025-09-07"})

    assert answer.status_code == 422
    assert answer.get_json()["errors"] == {"json": {"end_date": ["must not be before start_date"]}}
    assert api.ok(api.get("/sessions")) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"start_date": "2026-07-25"},
        {"end_date": "2025-09-07"},
        {"start_date": "2027-01-02", "end_date": "2027-01-01"},
    ],
)
def test_a_patch_that_ends_a_session_before_it_starts_is_refused(api, make, changes):
    made = make.session(**YEAR)

    answer = api.patch(f"/sessions/{made['id']}", changes)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, ["end_date"])
    assert api.ok(api.get("/sessions")) == [made]


def test_the_days_of_a_session_have_bounds(api, make):
    made = make.session(**YEAR, current=True)
    latest = make.session(start_date="9979-04-06", end_date="9999-12-31")
    for refused, field in (
        ({"start_date": "1899-12-31", "end_date": "1900-07-24"}, "start_date"),
        ({"start_date": "2025-09-08", "end_date": "2046-01-01"}, "end_date"),
        ({"start_date": "2025-09-08", "end_date": "2226-07-24"}, "end_date"),
    ):
        for answer in (
            api.post("/sessions", {"name": "Too long", **refused}),
            api.patch(f"/sessions/{made['id']}", refused),
        ):
            assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])
    assert api.ok(api.get("/sessions")) == [latest, made]

    api.ok(api.patch(f"/sessions/{made['id']}", {"end_date": "2045-12-31"}))
    api.ok(api.patch(f"/sessions/{made['id']}", {"start_date": "1900-01-01", "end_date": "1900-07-24"}))


def test_a_session_from_before_the_bounds_is_renamed_and_shortened(api, make):
    made = make.session(**YEAR)
    with api.app.app_context(), in_transaction(SchoolBinding(api.school)):
        db.session.execute(update(AcademicSession).values(end_date=date(2226, 7, 24)))

    assert api.ok(api.patch(f"/sessions/{made['id']}", {"name": "2025/2026 A"}))["end_date"] == "2226-07-24"
    assert api.patch(f"/sessions/{made['id']}", {"end_date": "2225-07-24"}).status_code == 422
    assert (
        api.ok(api.patch(f"/sessions/{made['id']}", {"end_date": "2026-07-24"}))["end_date"] == "2026-07-24"
    )


def test_a_patch_may_move_both_dates_past_the_old_ones(api, make):
    made = make.session(**YEAR)

    changed = api.ok(
        api.patch(f"/sessions/{made['id']}", {"start_date": "2030-01-01", "end_date": "2030-12-01"})
    )

    assert (changed["start_date"], changed["end_date"]) == ("2030-01-01", "2030-12-01")


def test_a_taken_name_is_a_conflict(api, make):
    make.session(name="2025/2026")
    other = make.session(name="2024/2025")

    created = api.post("/sessions", YEAR)
    changed = api.patch(f"/sessions/{other['id']}", {"name": "2025/2026"})

    for answer in (created, changed):
        assert answer.status_code == 409
        assert answer.get_json()["message"] == "A session with this name exists already."
        assert answer.get_json()["errors"] == {"json": {"name": ["already taken"]}}


def test_a_conflict_leaves_the_current_session_current(api, make):
    make.session(name="2025/2026", current=True)

    assert api.post("/sessions", {**YEAR, "current": True}).status_code == 409
    assert current(api) == ["2025/2026"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": None}, "name"),
        ({"name": "2" * 121}, "name"),
        ({"name": "2025\0"}, "name"),
        ({"start_date": "2025-9-8"}, "start_date"),
        ({"start_date": "2025-02-30"}, "start_date"),
        ({"start_date": "08/09/2025"}, "start_date"),
        ({"start_date": None}, "start_date"),
        ({"end_date": "2026-07-24T00:00:00Z"}, "end_date"),
        ({"end_date": 20260724}, "end_date"),
        ({"current": "true"}, "current"),
        ({"current": 1}, "current"),
        ({"current": None}, "current"),
        ({"id": str(uuid4())}, "id"),
    ],
)
def test_bad_members_are_refused(api, make, changes, field):
    made = make.session(name="2024/2025")

    created = api.post("/sessions", {**YEAR, **changes})
    changed = api.patch(f"/sessions/{made['id']}", changes)

    for answer in (created, changed):
        assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])
    assert api.ok(api.get("/sessions")) == [made]


@pytest.mark.parametrize("field", ["name", "start_date", "end_date"])
def test_a_session_needs_its_name_and_dates(api, field):
    answer = api.post("/sessions", {name: value for name, value in YEAR.items() if name != field})

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])


def test_an_unknown_session_is_not_found(api):
    for answer in (api.get(f"/sessions/{uuid4()}"), api.patch(f"/sessions/{uuid4()}", {"name": "x"})):
        assert (answer.status_code, answer.get_json()["message"]) == (404, "No such session.")


def test_the_other_school_has_its_own(api, other_api, make, make_other):
    made = make.session(**YEAR, current=True)
    theirs = make_other.session(**YEAR, current=True)

    assert other_api.get(f"/sessions/{made['id']}").status_code == 404
    assert other_api.patch(f"/sessions/{made['id']}", {"name": "Taken over"}).status_code == 404
    assert other_api.ok(other_api.get("/sessions")) == [theirs]
    assert api.ok(api.get("/sessions")) == [made]
    assert api.using(school=other_api.school).get("/sessions").status_code == 403
    assert api.using(school=None).get("/sessions").status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "permission"),
    [
        ("GET", "/sessions", "read:terms"),
        ("POST", "/sessions", "write:terms"),
        ("GET", f"/sessions/{UNKNOWN_ID}", "read:terms"),
        ("PATCH", f"/sessions/{UNKNOWN_ID}", "write:terms"),
        ("GET", "/terms", "read:terms"),
        ("POST", "/terms", "write:terms"),
        ("GET", f"/terms/{UNKNOWN_ID}", "read:terms"),
    ],
)
def test_each_operation_asks_for_its_permission(make, method, path, permission):
    others = {"read:terms", "write:terms", "delete:terms"}
    make.check_permission(method, path, permission, others=others, json={"name": 1})


def test_a_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    for size in (2, 20):
        for _ in range(size):
            make.session()
        api.ok(api.get("/sessions"))
        with messages() as sent:
            api.ok(api.get("/sessions"))
        assert len(sent) == 1, sent


@pytest.fixture(scope="module")
def committing(app, tenancy, document):
    """The administrator of a school of its own, with requests that commit."""
    place = make_place(app, tenancy, "King's College, Lagos")
    return ApiClient(app, document, place.admin_token, place.id)


def test_two_at_once_leave_one_session_current(committing):
    def create(year):
        body = {
            "name": f"{year}",
            "start_date": f"{year}-01-01",
            "end_date": f"{year}-12-31",
            "current": True,
        }
        return committing.post("/sessions", body).status_code

    with ThreadPoolExecutor(4) as threads:
        created = list(threads.map(create, range(2001, 2009)))

    assert created == [200] * 8
    assert len(current(committing)) == 1


def test_many_changes_at_once_leave_one_session_current(committing):
    def change(numbered):
        number, session = numbered
        changes = {"current": True} if number % 2 else {"name": f"Renamed {session['name']}"}
        return committing.patch(f"/sessions/{session['id']}", changes).status_code

    for year in range(2011, 2019):
        body = {"name": f"{year}", "start_date": f"{year}-01-01", "end_date": f"{year}-12-31"}
        committing.ok(committing.post("/sessions", body))
    sessions = committing.ok(committing.get("/sessions"))
    with ThreadPoolExecutor(4) as threads:
        changed = list(threads.map(change, [*enumerate(sessions), *enumerate(sessions)]))

    assert set(changed) == {200}
    assert len(current(committing)) == 1
