"""Every error has its status and the one shape, and shows nothing of the inside.

The table is in docs/rules/requests.md, "Answers".
"""

from __future__ import annotations

from urllib.parse import unquote
from uuid import uuid4

import pytest

from tests.web.conftest import FAILURES, SECRET


def assert_error(answer, status, error_type, message=None, errors=None):
    """Assert the status, the type and the one shape; `errors` must stand there, nothing where it is None."""
    body = answer.get_json()
    assert answer.status_code == status, body
    assert answer.mimetype == "application/json"
    expected = {
        "code": status,
        "status": answer.status.split(" ", 1)[1].title(),
        "type": error_type,
        "message": message or body["message"],
        "request_id": answer.headers["X-Request-ID"],
    }
    assert {**body, "status": body["status"].title()} == expected | ({"errors": errors} if errors else {})


# Routes and methods


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/users/",
        "/Users",
        "/users/1",
        "/users//login",
        "/users/../users",
        "/%00",
        "/users/%00",
        "/%ff",
        "/" + "a" * 8000,
        "/docs/",
        "/auth",
        "/static/x",
        "/openapi.json/",
    ],
)
@pytest.mark.parametrize("token", [None, ...])
def test_an_unknown_route_is_404(api, path, token):
    answer = api.using(token=token).get(path, environ_overrides={"PATH_INFO": unquote(path, "latin-1")})

    assert_error(answer, 404, "unknown-address", "There is nothing at this address.")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/health", {"GET", "HEAD", "OPTIONS"}),
        ("DELETE", "/users", {"GET", "HEAD", "OPTIONS", "POST"}),
        ("GET", "/users/login", {"OPTIONS", "POST"}),
        ("PUT", "/docs", {"GET", "HEAD", "OPTIONS"}),
        ("TRACE", "/users", {"GET", "HEAD", "OPTIONS", "POST"}),
        ("NONSENSE", "/users", {"GET", "HEAD", "OPTIONS", "POST"}),
    ],
)
@pytest.mark.parametrize("token", [None, ...])
def test_a_wrong_method_is_405_and_tells_those_allowed(api, method, path, allowed, token):
    answer = api.using(token=token).request(method, path)

    assert_error(answer, 405, "method-not-allowed", "This method is not allowed here.")
    assert set(answer.headers["Allow"].split(", ")) == allowed


def test_head_of_an_unknown_route_has_no_body(api):
    answer = api.request("HEAD", "/nothing")

    assert (answer.status_code, answer.get_data()) == (404, b"")


def test_the_method_can_not_be_overridden(api, make):
    user = make.user()["user"]

    answer = api.post(f"/users/{user['id']}", {}, headers={"X-HTTP-Method-Override": "GET"})

    assert_error(answer, 405, "method-not-allowed")


# The table


def test_a_missing_token_is_401(api):
    answer = api.using(token=None).get("/classrooms")

    assert_error(answer, 401, "no-token", "A bearer token is needed.")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_bad_token_is_401_with_the_reason(api):
    answer = api.using(token="nonsense").get("/classrooms")

    assert_error(answer, 401, "invalid-token", "The token is invalid.")
    assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_a_lacking_permission_is_403_and_named(make):
    assert_error(
        make.caller().get("/classrooms"), 403, "forbidden", "This needs the permission read:classrooms."
    )


def test_another_school_is_403_and_nothing_of_it_is_told(api, other_place, make_other):
    room = make_other.classroom(name="Hidden")

    for school in (other_place.id, uuid4()):
        answer = api.using(school=school).get(f"/classrooms/{room['id']}")
        assert_error(answer, 403, "forbidden", "The token does not cover this school.")


def test_a_missing_school_is_400(api):
    assert_error(
        api.using(school=None).get("/classrooms"), 400, "school-header", "The header X-SCHOOL-ID is missing."
    )


def test_a_school_that_is_no_uuid_is_400(api):
    assert_error(
        api.using(school="x").get("/classrooms"),
        400,
        "school-header",
        "The header X-SCHOOL-ID must be a uuid.",
    )


def test_wrong_members_of_a_body_are_422_by_name(api):
    answer = api.post("/users", {"username": "", "password": 1, "first_name": "A", "age": 3})

    assert_error(
        answer,
        422,
        "validation",
        "The input is not valid.",
        {
            "json": {
                "username": ["Length must be between 1 and 120."],
                "password": ["Not a valid string."],
                "last_name": ["Missing data for required field."],
                "gender": ["Missing data for required field."],
                "age": ["Unknown field."],
            }
        },
    )


def test_a_wrong_query_is_422_by_name(api):
    answer = api.get("/users?pageNumber=-1&pageSize=x")

    assert_error(
        answer,
        422,
        "validation",
        "The input is not valid.",
        {
            "query": {
                "pageNumber": ["Must be greater than or equal to 0 and less than or equal to 2147483647."],
                "pageSize": ["Not a valid integer."],
            }
        },
    )


def test_an_unknown_id_in_the_path_is_404(api):
    assert_error(api.get(f"/classrooms/{uuid4()}"), 404, "unknown-id", "No such classroom.")


def test_an_unknown_id_in_a_body_is_422_naming_the_field(api, place):
    answer = api.put(f"/users/{place.admin_id}/roles", {"role": str(uuid4())})

    assert_error(answer, 422, "unknown-id", "role: no such role", {"json": {"role": ["no such role"]}})


def test_an_unknown_id_in_a_query_is_422_naming_the_parameter(api):
    answer = api.get(f"/lgas?state={uuid4()}")

    assert_error(answer, 422, "unknown-id", "state: no such state", {"query": {"state": ["no such state"]}})


def test_a_duplicate_is_409_and_names_the_field_taken(api, make):
    role = make.role()

    answer = api.post("/roles", {"name": role["name"], "avatar": 1})

    assert_error(
        answer,
        409,
        "duplicate",
        "A role with this name exists already.",
        {"json": {"name": ["already taken"]}},
    )


def test_a_delete_of_a_record_in_use_is_409_and_names_its_users(api, make):
    subject = make.subject()
    make.cohort_subject(make.cohort(), subject)

    answer = api.delete(f"/templates/{subject['id']}")

    assert_error(answer, 409, "in-use", "The subject is in use by 1 cohort subject.")


def test_a_delete_is_200_and_answers_the_id(api, make):
    subject = make.subject()

    assert api.ok(api.delete(f"/templates/{subject['id']}")) == {"id": subject["id"], "deleted": True}


def test_an_upload_of_more_than_its_limit_is_413(api):
    # Written by hand: the test client would leave a file open.
    head = b'Content-Disposition: form-data; name="sheet"; filename="students.xlsx"'
    form = b"--x\r\n%b\r\n\r\n%b\r\n--x--\r\n" % (head, b"a" * (10 * 2**20 + 1))

    answer = api.post("/students/import-sheet", data=form, content_type="multipart/form-data; boundary=x")

    assert_error(answer, 413, "too-large", "The file has 10,485,761 bytes; 10,485,760 are allowed.")


def test_a_wrong_user_and_a_wrong_password_are_401_alike(api, make):
    user = make.user(password="right")["user"]

    answers = [
        api.post("/users/login", {"username": name, "password": "wrong"})
        for name in (user["username"], "nobody")
    ]

    for answer in answers:
        assert_error(answer, 401, "wrong-credentials", "The username or the password is wrong.")
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_too_many_wrong_passwords_are_429_for_a_while(api, make):
    user = make.user(password="right")["user"]
    for _ in range(10):
        assert (
            api.post("/users/login", {"username": user["username"], "password": "wrong"}).status_code == 401
        )

    answer = api.post("/users/login", {"username": user["username"], "password": "right"})

    assert_error(answer, 429, "too-many-tries", "Too many wrong passwords. Try again later.")
    assert 1 <= int(answer.headers["Retry-After"]) <= 60


# Unforeseen errors


@pytest.mark.parametrize("kind", sorted(FAILURES))
def test_a_failure_is_500_and_shows_nothing_of_the_inside(probing, kind):
    answer = probing.test_client().get(f"/probe/failure/{kind}")

    assert_error(answer, 500, "failure", "The service failed. The request id names the failure in its logs.")
    for word in SECRET.split():
        assert word not in answer.get_data(as_text=True)


def test_a_failure_is_followed_by_an_answer(probing):
    visitor = probing.test_client()
    for kind in FAILURES:
        visitor.get(f"/probe/failure/{kind}")

    assert visitor.get("/health").status_code == 200
