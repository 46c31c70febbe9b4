"""Terms of academic sessions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.client import ApiClient
from tests.conftest import make_place


def test_a_term_is_created_listed_and_shown(api, make):
    session = make.session()

    made = make.term(session, term="SECOND", display_name=" Second term ")

    shown = {"id": made["id"], "term": "SECOND", "sessionId": session["id"], "displayName": "Second term"}
    assert made == shown
    assert api.ok(api.get("/terms")) == [shown]
    assert api.ok(api.get(f"/terms/{made['id']}")) == shown


def test_terms_are_listed_in_the_order_of_the_calendar(api, make):
    later = make.session(start_date="2025-09-01", end_date="2026-07-01")
    earlier = make.session(start_date="2024-09-01", end_date="2025-07-01")
    for session in (later, earlier):
        for term in ("THIRD", "FIRST", "SECOND"):
            make.term(session, term=term)

    listed = [(term["sessionId"], term["term"]) for term in api.ok(api.get("/terms"))]

    assert listed == [
        (session["id"], term) for session in (earlier, later) for term in ("FIRST", "SECOND", "THIRD")
    ]


def test_terms_are_listed_by_session(api, make):
    made = make.term()
    make.term()

    assert api.ok(api.get(f"/terms?session_id={made['sessionId']}")) == [made]


def test_a_session_without_terms_lists_none(api, make):
    make.term()

    assert api.ok(api.get(f"/terms?session_id={make.session()['id']}")) == []


def test_an_unknown_session_in_the_query_is_refused(api):
    answer = api.get(f"/terms?session_id={uuid4()}")

    assert answer.status_code == 422
    assert answer.get_json()["errors"] == {"query": {"session_id": ["no such session"]}}


@pytest.mark.parametrize("session_id", ["", "2025/2026", "%00"])
def test_a_session_in_the_query_that_is_no_uuid_is_refused(api, session_id):
    answer = api.get(f"/terms?session_id={session_id}")

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["session_id"])


def test_an_unknown_session_in_the_body_is_refused(api):
    answer = api.post("/terms", {"session_id": str(uuid4()), "term": "FIRST", "display_name": "First"})

    assert answer.status_code == 422
    assert answer.get_json()["errors"] == {"json": {"session_id": ["no such session"]}}


def test_a_session_has_each_term_once(api, make):
    made = make.term(term="FIRST")
    body = {"session_id": made["sessionId"], "term": "FIRST", "display_name": "First again"}

    answer = api.post("/terms", body)

    assert answer.status_code == 409
    assert answer.get_json()["message"] == "A term with this session and term exists already."
    assert answer.get_json()["errors"] == {"json": {"term": ["already taken"]}}
    assert api.post("/terms", {**body, "term": "SECOND"}).status_code == 200


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"session_id": "2025/2026"}, "session_id"),
        ({"session_id": 5}, "session_id"),
        ({"session_id": None}, "session_id"),
        ({"term": "FOURTH"}, "term"),
        ({"term": "first"}, "term"),
        ({"term": 1}, "term"),
        ({"display_name": "  "}, "display_name"),
        ({"display_name": "F" * 121}, "display_name"),
        ({"display_name": "First\0"}, "display_name"),
        ({"displayName": "First"}, "displayName"),
    ],
)
def test_a_bad_term_is_refused(api, make, changes, field):
    body = {"session_id": make.session()["id"], "term": "FIRST", "display_name": "First", **changes}

    answer = api.post("/terms", body)

    assert (answer.status_code, list(answer.get_json()["errors"]["json"])) == (422, [field])
    assert api.ok(api.get("/terms")) == []


def test_an_unknown_term_is_not_found(api):
    answer = api.get(f"/terms/{uuid4()}")

    assert (answer.status_code, answer.get_json()["message"]) == (404, "No such term.")
    assert api.get("/terms/first").status_code == 404


def test_creating_needs_no_header_where_the_token_names_the_school(api, make):
    body = {"session_id": make.session()["id"], "term": "FIRST", "display_name": "First"}
    without_header = api.using(school=None)

    made = api.ok(without_header.post("/terms", body))

    assert api.ok(api.get("/terms")) == [made]
    assert without_header.get("/terms").status_code == 400
    assert without_header.get(f"/terms/{made['id']}").status_code == 400


def test_the_other_school_has_its_own(api, other_api, make, make_other):
    made = make.term()
    theirs = make_other.term()

    assert other_api.get(f"/terms/{made['id']}").status_code == 404
    assert other_api.get(f"/terms?session_id={made['sessionId']}").status_code == 422
    body = {"session_id": made["sessionId"], "term": "SECOND", "display_name": "Second"}
    assert other_api.post("/terms", body).status_code == 422
    assert other_api.ok(other_api.get("/terms")) == [theirs]
    assert api.ok(api.get("/terms")) == [made]


def test_a_list_costs_one_round_trip_however_long_it_is(api, make, messages):
    for size in (2, 20):
        for _ in range(size):
            make.term()
        for query in ("", f"?session_id={api.ok(api.get('/terms'))[0]['sessionId']}"):
            api.ok(api.get(f"/terms{query}"))
            with messages() as sent:
                api.ok(api.get(f"/terms{query}"))
            assert len(sent) == 1, sent


def test_the_same_term_at_once_is_made_once(app, tenancy, document):
    place = make_place(app, tenancy, "Barewa College")
    api = ApiClient(app, document, place.admin_token, place.id)
    session = api.ok(
        api.post("/sessions", {"name": "2025/2026", "start_date": "2025-09-08", "end_date": "2026-07-24"})
    )
    body = {"session_id": session["id"], "term": "FIRST", "display_name": "First"}

    with ThreadPoolExecutor(4) as threads:
        created = list(threads.map(lambda _: api.post("/terms", body).status_code, range(4)))

    assert sorted(created) == [200, 409, 409, 409]
    assert len(api.ok(api.get("/terms"))) == 1
