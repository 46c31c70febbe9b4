"""X-SCHOOL-ID: which school a request works in."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tenants.registry.schools import change_school
from tests.client import ApiClient
from tests.conftest import make_place

NO_UUIDS = [
    "",
    "x",
    "123",
    "null",
    "Queen's College, Yaba",
    "0694b031-6fc5-4557-9129-7c461376272",
    "0694b031-6fc5-4557-9129-7c46137627260",
    "0694b0316fc5455791297c4613762726",
    "{0694b031-6fc5-4557-9129-7c4613762726}",
    "urn:uuid:0694b031-6fc5-4557-9129-7c4613762726",
    "0694b031-6fc5-4557-9129-7c4613762726, 0694b031-6fc5-4557-9129-7c4613762726",
    "0694b031-6fc5-4557-9129-7c461376272g",
    "é",
    "' OR 1=1 --",
    'x"; DROP SCHEMA registry CASCADE; --',
    "a" * 10_000,
]


@pytest.mark.parametrize("path", ["/users", "/classrooms", "/states"])
def test_the_header_is_needed_where_the_contract_says_so(api, path):
    answer = api.using(school=None).get(path)

    assert (answer.status_code, answer.get_json()["message"]) == (400, "The header X-SCHOOL-ID is missing.")


@pytest.mark.parametrize("path", ["/roles", "/permissions"])
def test_the_header_may_be_left_out_where_it_is_optional_and_the_token_names_one_school(api, path):
    assert api.using(school=None).get(path).get_json() == api.get(path).get_json()


def test_without_it_the_school_is_the_tokens(api, other_api, make, make_other):
    ours, theirs = make.role()["id"], make_other.role()["id"]

    assert api.using(school=None).get(f"/roles/{ours}").status_code == 200
    assert api.using(school=None).get(f"/roles/{theirs}").status_code == 404
    assert other_api.using(school=None).get(f"/roles/{theirs}").status_code == 200


@pytest.mark.parametrize("header", NO_UUIDS, ids=lambda header: header[:20])
@pytest.mark.parametrize("path", ["/users", "/roles"])
def test_a_header_that_is_no_uuid_is_refused(api, path, header):
    answer = api.using(school=None).get(path, headers={"X-SCHOOL-ID": header})

    assert (answer.status_code, answer.get_json()["message"]) == (
        400,
        "The header X-SCHOOL-ID must be a uuid.",
    )


def test_its_letters_may_be_large(api, place):
    assert api.using(school=str(place.id).upper()).get("/users").status_code == 200


@pytest.mark.parametrize("name", ["x-school-id", "X-School-Id", "X-SCHOOL-ID"])
def test_its_name_is_written_in_any_case(api, place, name):
    assert api.using(school=None).get("/users", headers={name: str(place.id)}).status_code == 200


def test_a_school_that_the_token_does_not_cover_is_forbidden(api, other_place):
    for school in (other_place.id, uuid4()):
        answer = api.using(school=school).get("/users")
        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "The token does not cover this school.",
        )


def test_the_token_is_looked_at_first(api, other_place):
    for school in (None, "x", other_place.id, uuid4()):
        assert api.using(token="garbage", school=school).get("/users").status_code == 401
        assert api.using(token=None, school=school).get("/users").status_code == 401


def test_the_school_is_looked_at_before_permission_and_input(api, make, other_place):
    nobody = make.caller()

    assert nobody.using(school=other_place.id).post("/users", {"x": 1}).get_json()["message"] == (
        "The token does not cover this school."
    )
    assert nobody.using(school=None).post("/users", {"x": 1}).status_code == 400
    assert nobody.using(school="x").post("/users", {"x": 1}).status_code == 400


def test_permission_is_looked_at_before_input(make):
    nobody = make.caller()

    assert nobody.post("/users", {"x": 1}).status_code == 403
    assert nobody.request("POST", "/users", data="{", content_type="application/json").status_code == 403
    assert nobody.get("/users?pageSize=0").status_code == 403


def test_a_path_that_does_not_exist_is_looked_at_before_the_token(api):
    stranger = api.using(token=None, school=None)

    assert stranger.get("/users/not-a-uuid").status_code == 404
    assert stranger.get("/nowhere").status_code == 404


@pytest.fixture(scope="module")
def passing_place(app, tenancy):
    """A school whose state a test may change."""
    return make_place(app, tenancy, "St Gregory's College, Obalende")


def change(tenancy, school_id, **values):
    with tenancy.admin.begin() as connection:
        change_school(connection, school_id, **values)


def test_a_suspended_school_is_closed_to_everybody(app, document, tenancy, passing_place):
    administrator = ApiClient(app, document, passing_place.admin_token, passing_place.id)
    assert administrator.get("/roles").status_code == 200
    change(tenancy, passing_place.id, status="suspended")
    try:
        for caller in (administrator, administrator.using(school=None)):
            answer = caller.get("/roles")
            assert answer.status_code == 403
            assert "suspended" in answer.get_json()["message"]
    finally:
        change(tenancy, passing_place.id, status="active")
    assert administrator.get("/roles").status_code == 200


def test_a_school_that_is_being_upgraded_is_not_available(app, document, tenancy, passing_place):
    administrator = ApiClient(app, document, passing_place.admin_token, passing_place.id)
    with tenancy.admin.connect() as connection:
        revision = connection.exec_driver_sql(
            "SELECT revision FROM registry.schools WHERE id = %s", (str(passing_place.id),)
        ).scalar_one()
    change(tenancy, passing_place.id, revision="t0000")
    try:
        answer = administrator.get("/roles")
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
    finally:
        change(tenancy, passing_place.id, revision=revision)
    assert administrator.get("/roles").status_code == 200
