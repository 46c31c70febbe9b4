"""How a school keeps registers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.features.attendance.classes import Kept, today
from tests.prepared import prepared_for_each

DEFAULTS = {
    "parts": "DAY",
    "weekdays": [1, 2, 3, 4, 5],
    "roll_up": "TYPED",
    "lock_after": 7,
    "chronic_percent": 10,
    "families_read": "NOTHING",
}


original, class_ = prepared_for_each(Kept)


def test_a_school_that_has_chosen_nothing_has_the_defaults(other_api):
    assert other_api.ok(other_api.get("/attendance-settings")) == DEFAULTS
    assert other_api.ok(other_api.get("/school-days?from=2026-01-01&to=2026-12-31")) == []


def test_settings_are_changed_one_by_one_and_on_record(other_api):
    changes = {
        "parts": "HALF_DAYS", "weekdays": [6, 1], "roll_up": "REGISTERS", "lock_after": None,
        "chronic_percent": 100, "families_read": "SUMS",
    }  # fmt: skip
    for name, value in changes.items():
        other_api.ok(other_api.patch("/attendance-settings", {name: value}))

    assert other_api.ok(other_api.get("/attendance-settings")) == {**changes, "weekdays": [1, 6]}
    other_api.ok(other_api.patch("/attendance-settings", {"lock_after": None}))
    log = other_api.ok(other_api.get("/audit?entity=attendance-settings"))["data"]
    assert len(log) == len(changes)
    assert (log[-1]["old"], log[-1]["new"]) == ({"parts": "DAY"}, {"parts": "HALF_DAYS"})


@pytest.mark.parametrize(
    ("member", "value"),
    [("parts", "WEEK"), ("weekdays", []), ("weekdays", [0]), ("weekdays", [1, 1]), ("weekdays", [1, 8]),
     ("weekdays", 5), ("roll_up", None), ("lock_after", 61), ("lock_after", -1), ("lock_after", "7"),
     ("chronic_percent", 0), ("chronic_percent", 101), ("families_read", "ALL"), ("time_zone", "UTC")],
)  # fmt: skip
def test_an_invalid_setting_is_422(api, member, value):
    answer = api.patch("/attendance-settings", {member: value})

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [member])


def test_parts_stay_while_the_current_term_has_a_register_of_a_day(api, make, class_):
    subject = make.cohort_subject(class_.cohort)["id"]
    class_.take(cohort_subject=subject, period=1)
    class_.set(parts="HALF_DAYS")
    register = class_.take(part="MORNING")

    refused = api.patch("/attendance-settings", {"parts": "DAY"})

    assert refused.status_code == 409
    class_.set(parts="HALF_DAYS", chronic_percent=5)
    api.ok(api.delete(f"/registers/{register['id']}"))
    class_.set(parts="DAY")
    # A register of a term that is over hinders nothing.
    class_.take()
    over = {**class_.calendar, "end_date": str(today() - timedelta(days=1))}
    api.ok(api.put(f"/terms/{class_.term['id']}/calendar", over))
    class_.set(parts="HALF_DAYS")
