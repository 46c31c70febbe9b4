"""The time zone of a school: how it is shown and changed."""

from __future__ import annotations

import pytest

PATH = "/settings"
DEFAULT = "Africa/Lagos"


def test_a_school_that_has_chosen_nothing_is_in_lagos(api):
    assert api.ok(api.get(PATH))["time_zone"] == DEFAULT


@pytest.mark.parametrize("zone", ["Europe/London", "UTC", "America/Argentina/Buenos_Aires", "Asia/Kathmandu"])
def test_the_zone_is_changed_and_on_record_and_the_rest_stays(api, other_api, zone):
    before = api.ok(api.get(PATH))

    assert api.ok(api.patch(PATH, {"time_zone": zone})) == {**before, "time_zone": zone}

    assert api.ok(api.get(PATH)) == {**before, "time_zone": zone}
    assert other_api.ok(other_api.get(PATH))["time_zone"] == DEFAULT
    (entry,) = api.ok(api.get("/audit?entity=settings"))["data"]
    assert (entry["action"], entry["old"], entry["new"]) == (
        "update",
        {"time_zone": DEFAULT},
        {"time_zone": zone},
    )
    # Again it is no change.
    api.ok(api.patch(PATH, {"time_zone": zone}))
    assert api.ok(api.get("/audit?entity=settings"))["total"] == 1


def test_both_settings_are_changed_at_once(api):
    changes = {"time_zone": "Africa/Accra", "must_change_password": True}

    assert api.ok(api.patch(PATH, changes)) == changes

    (entry,) = api.ok(api.get("/audit?entity=settings"))["data"]
    assert entry["new"] == changes


@pytest.mark.parametrize(
    "zone",
    ["", " ", "Lagos", "africa/lagos", "Africa/Lagos\0", "Africa/Lagos ' OR 1=1", "../../etc/passwd", "+01:00", "WAT+1",
     "Àfíríkà", "x" * 121, None, 1, True, ["UTC"], {"name": "UTC"}],
)  # fmt: skip
def test_a_text_that_is_no_name_of_a_time_zone_is_422(api, zone):
    answer = api.patch(PATH, {"time_zone": zone, "must_change_password": True})

    assert answer.status_code == 422
    assert "time_zone" in answer.get_json()["errors"]["json"]
    assert api.ok(api.get(PATH)) == {"time_zone": DEFAULT, "must_change_password": False}


def test_a_change_takes_the_version_that_was_read_alone(api):
    tag = api.get(PATH).headers["ETag"]
    api.ok(api.patch(PATH, {"time_zone": "Africa/Cairo"}, headers={"If-Match": tag}))

    refused = api.patch(PATH, {"time_zone": "Africa/Tunis"}, headers={"If-Match": tag})

    assert refused.status_code == 412
    assert api.ok(api.get(PATH))["time_zone"] == "Africa/Cairo"


def test_a_caller_without_write_settings_is_refused(make):
    assert make.caller("read:settings").patch(PATH, {"time_zone": "UTC"}).status_code == 403


def test_answers_have_times_in_utc_in_any_zone(api, make):
    api.ok(api.patch("/settings", {"time_zone": "Pacific/Kiritimati"}))

    assert make.student()["createdAt"].endswith("+00:00")
