"""The calendar of a term: its first and last day, the number of days opened, a notice to parents."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.threads import run_concurrently

CALENDAR = {
    "start_date": "2025-09-08",
    "end_date": "2025-12-19",
    "times_opened": 124,
    "next_term_begins": "2026-01-12",
    "notice": "Fees: ₦45,000.\nẸ mú ìwé wá.",
}
NOTHING = dict.fromkeys(CALENDAR)


@pytest.fixture
def term(make):
    session = make.session(start_date="2025-09-08", end_date="2026-07-24")
    return make.term(session)


def path(term):
    return f"/terms/{term['id']}/calendar"


def logged(api, term):
    entries = api.ok(api.get("/audit", query_string={"entity": "term-calendar", "id": term["id"]}))["data"]
    return [(change["action"], change["old"], change["new"]) for change in reversed(entries)]


def test_a_calendar_is_null_until_it_is_set(api, term):
    about = {"term": {"id": term["id"], "term": "FIRST"}}

    assert api.ok(api.get(path(term))) == {**about, **NOTHING}
    assert api.ok(api.put(path(term), CALENDAR)) == {**about, **CALENDAR}
    assert api.ok(api.get(path(term))) == {**about, **CALENDAR}
    assert logged(api, term) == [("update", NOTHING, CALENDAR)]


def test_a_calendar_is_set_as_a_whole(api, term):
    api.ok(api.put(path(term), CALENDAR))

    answer = api.ok(api.put(path(term), {"times_opened": 0, "notice": None}))

    assert {name: answer[name] for name in CALENDAR} == {**NOTHING, "times_opened": 0}
    before = logged(api, term)
    assert api.ok(api.put(path(term), {"times_opened": 0})) == answer
    assert logged(api, term) == before
    api.ok(api.put(path(term), {}))
    assert api.ok(api.get(path(term)))["times_opened"] is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"start_date": "2025-09-07"}, "start_date"),
        ({"start_date": "2026-07-25"}, "start_date"),
        ({"end_date": "2026-07-25"}, "end_date"),
        ({"start_date": "2025-12-20"}, "end_date"),
        ({"start_date": "2025-02-30"}, "start_date"),
        ({"start_date": "08/09/2025"}, "start_date"),
        ({"start_date": 20250908}, "start_date"),
        ({"next_term_begins": "soon"}, "next_term_begins"),
        ({"times_opened": -1}, "times_opened"),
        ({"times_opened": 401}, "times_opened"),
        ({"times_opened": 10.5}, "times_opened"),
        ({"times_opened": "10"}, "times_opened"),
        ({"times_opened": True}, "times_opened"),
        ({"notice": ""}, "notice"),
        ({"notice": "x" * 501}, "notice"),
        ({"notice": "x\0"}, "notice"),
        ({"term": "FIRST"}, "term"),
    ],
    ids=str,
)
def test_bad_input_is_422_and_changes_nothing(api, term, changes, field):
    answer = api.put(path(term), {**CALENDAR, **changes})

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])
    assert api.ok(api.get(path(term)))["start_date"] is None


def test_the_bounds_themselves_are_taken(api, term):
    body = {
        **CALENDAR,
        "start_date": "2026-07-24",
        "end_date": "2026-07-24",
        "times_opened": 400,
        "notice": "Ẹ" * 500,
    }

    assert api.ok(api.put(path(term), body)).items() >= body.items()


def test_an_unknown_term_and_the_other_schools_are_404(api, other_api, make_other, term):
    theirs = make_other.term()
    other_api.ok(other_api.put(path(theirs), {"times_opened": 100}))
    for unknown in ({"id": uuid4()}, theirs):
        for answer in (api.get(path(unknown)), api.put(path(unknown), {"times_opened": 5})):
            assert (answer.status_code, answer.get_json()["message"]) == (404, "No such term.")
    assert api.using(school=other_api.school).get(path(theirs)).status_code == 403
    assert other_api.ok(other_api.get(path(theirs)))["times_opened"] == 100
    assert api.ok(api.get(path(term)))["times_opened"] is None


def test_of_two_changes_at_once_one_is_the_later(committing):
    term = committing.term()
    bodies = [{"times_opened": 100, "notice": "a"}, {"times_opened": 110, "notice": "b"}]

    answers = run_concurrently(2, lambda n: committing.api.using().put(path(term), bodies[n]).status_code)

    assert answers == [200, 200]
    stored = committing.api.ok(committing.api.get(path(term)))
    assert {name: stored[name] for name in bodies[0]} in bodies
    (first, second) = logged(committing.api, term)
    assert second[1] == first[2]


def test_a_calendar_costs_one_message_to_read_and_four_to_set(api, term, messages):
    for body in (CALENDAR, {"times_opened": 1}):
        with messages() as sent:
            api.ok(api.put(path(term), body))
        assert len(sent) == 4, sent
    with messages() as sent:
        api.ok(api.get(path(term)))
    assert len(sent) == 1
