"""The days on which a school is open."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tests.features.attendance.classes import Kept, today
from tests.prepared import prepared_for_each

original, class_ = prepared_for_each(Kept)


def days(api, first, last):
    school_days = api.ok(api.get("/school-days", query_string={"from": str(first), "to": str(last)}))
    return {day["date"]: (day["parts"], day["name"]) for day in school_days}


def test_school_days_are_the_weekdays_of_terms(api, make, class_):
    class_.set(weekdays=[1, 2, 3, 4, 5], parts="HALF_DAYS")
    monday = today() - timedelta(days=today().weekday() + 14)
    week = [str(monday + timedelta(days=number)) for number in range(7)]
    both = ["MORNING", "AFTERNOON"]
    assert days(api, week[0], week[6]) == dict.fromkeys(week[:5], (both, None))

    answered = class_.say(
        {"date": week[2], "status": "CLOSED", "name": "Eid"},
        {"date": week[5], "status": "OPEN", "name": "Make-up day"},
        {"date": week[3], "status": "CLOSED", "part": "AFTERNOON", "name": "Sports"},
        {"date": week[6], "status": "OPEN", "part": "MORNING"},
    )

    changed = {
        week[2]: ([], "Eid"),
        week[3]: (["MORNING"], "Sports"),
        week[5]: (both, "Make-up day"),
        week[6]: (["MORNING"], None),
    }
    assert days(api, week[0], week[6]) == {**dict.fromkeys(week[:5], (both, None)), **changed}
    assert {day["date"]: (day["parts"], day["name"]) for day in answered} == changed
    term = {"id": class_.term["id"], "term": "FIRST"}
    assert answered[0]["term"] == term
    # An exception for a whole day takes the place of exceptions for its halves.
    class_.say({"date": week[3], "status": "USUAL"}, {"date": week[2], "status": "USUAL", "name": "x"})
    assert days(api, week[2], week[3]) == {week[2]: (both, None), week[3]: (both, None)}
    class_.say({"date": week[2], "status": "CLOSED"}, {"date": week[2], "status": "OPEN", "part": "MORNING"})
    assert days(api, week[2], week[2]) == {week[2]: (["MORNING"], None)}
    log = class_.log("school-day")
    assert [action for action, _, _ in log] == ["create"] * 4 + ["delete"] * 2 + ["create"] * 2
    # Before the term, and after it, there are none; it can be said of them all the same.
    (outside,) = class_.say({"date": "2020-10-01", "status": "CLOSED", "name": "Independence Day"})
    assert outside == {"date": "2020-10-01", "term": None, "parts": [], "name": "Independence Day"}
    assert days(api, "2020-09-01", "2020-10-31") == {}
    first = date.fromisoformat(class_.calendar["start_date"])
    assert min(days(api, first - timedelta(days=30), first + timedelta(days=7))) >= str(first)


def test_a_day_in_terms_of_two_sessions_is_listed_for_each(api, make, class_):
    day = class_.key()["date"]
    summer = make.session(start_date=day, end_date=str(today() + timedelta(days=30)))
    term = make.term(summer)
    api.ok(api.put(f"/terms/{term['id']}/calendar", {"start_date": day, "end_date": day}))

    school_days = api.ok(api.get("/school-days", query_string={"from": day, "to": day}))

    assert {day["term"]["id"] for day in school_days} == {class_.term["id"], term["id"]}
    assert len(school_days) == 2


def test_a_day_with_a_register_is_not_closed(api, make, class_):
    class_.set(parts="HALF_DAYS")
    class_.take(1, part="MORNING")
    lesson = make.cohort_subject(class_.cohort)["id"]
    class_.take(2, cohort_subject=lesson, period=1)
    classroom = api.ok(api.get(f"/cohorts/{class_.cohort['id']}"))
    day = class_.key(1)["date"]
    class_.say({"date": day, "status": "CLOSED", "part": "AFTERNOON"})
    class_.close(2)

    for part in ({}, {"part": "MORNING"}):
        refused = api.put("/school-days", {"days": [{"date": day, "status": "CLOSED", **part}]})
        assert refused.status_code == 409
        assert f" A on {day} MORNING" in refused.get_json()["message"]
    assert classroom


def test_a_day_with_a_register_is_not_made_usual_where_that_closes_it(api, class_):
    class_.set(weekdays=[day for day in range(1, 8) if day != today().isoweekday()])
    usual = {"days": [{"date": class_.key()["date"], "status": "USUAL"}]}
    class_.say({"date": class_.key()["date"], "status": "OPEN"})
    class_.take()

    refused = api.put("/school-days", usual)

    assert (refused.status_code, class_.key()["date"] in refused.get_json()["message"]) == (409, True)
    class_.set(weekdays=[1, 2, 3, 4, 5, 6, 7])
    assert api.put("/school-days", usual).status_code == 200


@pytest.mark.parametrize(
    "said",
    [[], [{"date": "2026-02-30", "status": "OPEN"}], [{"date": "2026-02-03", "status": "SHUT"}],
     [{"date": "2026-02-03"}], [{"date": "2026-02-03", "status": "OPEN", "name": "x" * 61}],
     [{"date": "2026-02-03", "status": "OPEN", "part": "DAY"}], [{"date": "2026-02-03", "status": "OPEN"}] * 2,
     [{"date": "2026-02-03", "status": "OPEN", "part": "MORNING"}],
     [{"date": "2026-02-03", "status": "OPEN", "name": "\0"}],
     [{"date": str(date(2026, 1, 1) + timedelta(days=n)), "status": "OPEN"} for n in range(401)]],
)  # fmt: skip
def test_invalid_days_are_422(api, said):
    assert api.put("/school-days", {"days": said}).status_code == 422


@pytest.mark.parametrize(
    ("query", "field"),
    [("from=2026-01-01", "to"), ("to=2026-01-01", "from"), ("from=2026-01-02&to=2026-01-01", "to"),
     ("from=2026-01-01&to=2027-02-05", "to"), ("from=x&to=2026-01-01", "from")],
)  # fmt: skip
def test_a_range_of_days_has_its_bounds(api, query, field):
    answer = api.get(f"/school-days?{query}")
    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, [field])
    assert api.get("/school-days?from=2026-01-01&to=2027-02-04").status_code == 200


def test_400_days_are_said_of_in_four_round_trips(api, class_, messages):
    said = [{"date": str(date(2030, 1, 1) + timedelta(days=n)), "status": "OPEN"} for n in range(400)]
    with messages() as sent:
        class_.say(*said)
    assert len(sent) == 4
