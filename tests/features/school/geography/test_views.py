"""Nationalities, states and local government areas over HTTP."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from school_service.features.school.geography.reference import lgas, nationalities, states

PATHS = ("/nationalities", "/states", "/lgas")


def as_shown(rows, **renamed):
    """The rows of the reference data as the API shows them."""
    return [{renamed.get(name, name): str(value) for name, value in row.items()} for row in rows]


def by_id(rows):
    return sorted(rows, key=lambda row: row["id"])


def test_there_are_37_states(api):
    shown = api.ok(api.get("/states"))

    assert len(shown) == 37
    assert by_id(shown) == by_id(as_shown(states()))
    assert [state["name"] for state in shown] == sorted(state["name"] for state in shown)


def test_there_are_774_lgas(api):
    shown = api.ok(api.get("/lgas"))

    assert len(shown) == 774
    assert by_id(shown) == by_id(as_shown(lgas(), state_id="state"))
    assert [lga["name"] for lga in shown] == sorted(lga["name"] for lga in shown)


def test_nationalities_are_the_reference_list_sorted_by_name(api):
    shown = api.ok(api.get("/nationalities"))

    assert by_id(shown) == by_id(as_shown(nationalities()))
    assert {"id": "e1605096-bece-51b5-9d8a-bb4f4eacde6a", "name": "Nigeria", "code": "NG"} in shown
    assert [nation["name"] for nation in shown] == sorted(nation["name"] for nation in shown)


def test_lgas_are_filtered_by_state(api):
    total = 0
    for state in api.ok(api.get("/states")):
        lgas = api.ok(api.get(f"/lgas?state={state['id']}"))
        assert {lga["state"] for lga in lgas} == {state["id"]}
        total += len(lgas)

    assert total == 774


def test_lagos_has_its_twenty(api):
    [lagos] = [state for state in api.ok(api.get("/states")) if state["name"] == "Lagos"]

    lgas = api.ok(api.get(f"/lgas?state={lagos['id'].upper()}"))

    assert lagos == {"id": "b24e9dee-e6fa-50b2-9d04-008e55cdef37", "name": "Lagos", "code": "LA"}
    assert len(lgas) == 20
    assert {"id": "180bf54a-a072-5fcf-ae4c-f7a33b902cbc", "name": "Surulere", "state": lagos["id"]} in lgas


def test_an_unknown_state_is_invalid(api):
    lga = api.ok(api.get("/lgas"))[0]

    for unknown in (uuid4(), UUID(int=0), lga["id"]):
        answer = api.get(f"/lgas?state={unknown}")
        assert answer.status_code == 422
        assert answer.get_json()["errors"] == {"query": {"state": ["no such state"]}}


@pytest.mark.parametrize("state", ["", "x", "LA", "Lagos", "5", "%00", "b24e9deee6fa50b29d04008e55cdef37"])
def test_a_state_that_is_no_uuid_is_invalid(api, state):
    answer = api.get(f"/lgas?state={state}")

    assert answer.status_code == 422
    assert list(answer.get_json()["errors"]["query"]) == ["state"]


@pytest.mark.parametrize("path", PATHS)
def test_both_schools_see_the_same(api, other_api, path):
    assert api.get(path).get_json() == other_api.get(path).get_json()


@pytest.mark.parametrize("path", PATHS)
def test_a_token_of_the_school_is_needed_and_no_permission(api, make, other_place, path):
    nobody = make.caller()

    assert nobody.get(path).status_code == 200
    assert nobody.using(school=other_place.id).get(path).status_code == 403
    assert nobody.using(school=None).get(path).status_code == 400
    assert nobody.using(school="x").get(path).status_code == 400
    assert nobody.using(token=None).get(path).status_code == 401
    api.ok(api.delete(f"/users/{nobody.user['id']}/delete"))
    assert nobody.get(path).status_code == 401


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_reference_data_can_not_be_changed(api, path, method):
    answer = api.request(method, path, json={})

    assert answer.status_code == 405
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
