"""Unknown parameters of a query: refused on extensions, and in the log on the interface's operations."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from school_service.web.interface_operations import INTERFACE
from tests.contract.check_openapi import load_contract, template

CONTRACT_FILE = Path(__file__).parents[1] / "contract" / "contract.yaml"

EXTENSIONS = ["/students", "/sessions", "/terms", "/audit", "/settings", "/states"]
INTERFACES = ["/users", "/classrooms", "/gradebooks", "/graduates", "/roles"]


@pytest.fixture
def lines(logs):
    """The access log: call for the last line."""
    logging.getLogger("school_service.access").setLevel(logging.INFO)
    yield lambda: [line for line in logs() if line["logger"] == "school_service.access"][-1]
    logging.getLogger("school_service.access").setLevel(logging.NOTSET)


def test_the_operations_of_the_interface_are_the_contracts():
    contract = load_contract(CONTRACT_FILE)["endpoints"]

    assert {
        f"{operation['method'].upper()} {template(operation['path'])}" for operation in contract
    } == INTERFACE


@pytest.mark.parametrize("path", EXTENSIONS)
def test_an_extension_refuses_them_by_name(api, path):
    answer = api.get(path, query_string={"serach": "Ada", "x": "1"})

    assert answer.status_code == 422
    assert answer.get_json()["errors"] == {
        "query": {"serach": ["Unknown parameter."], "x": ["Unknown parameter."]}
    }
    api.ok(api.get(path))


def test_a_write_with_unknown_parameters_is_refused_and_writes_nothing(api):
    body = {"name": "Cook"}

    answer = api.post("/positions?dryrun=true", body)

    assert (answer.status_code, list(answer.get_json()["errors"]["query"])) == (422, ["dryrun"])
    assert "Cook" not in {position["name"] for position in api.ok(api.get("/positions"))}
    api.ok(api.post("/positions", body))


def test_parameters_that_are_known_are_taken_wherever_they_are_declared(api):
    api.ok(api.get("/students?pageNumber=0&pageSize=5&search=a&status=ACTIVE"))
    api.ok(api.get("/audit?entity=user&pageSize=1"))


@pytest.mark.parametrize("path", INTERFACES)
def test_the_interface_ignores_them_and_the_log_names_them(api, lines, path):
    api.ok(api.get(path, query_string={"serach": "confidential"}))

    line = lines()
    assert line["unknown_parameters"] == ["serach"]
    assert "confidential" not in str(line)


def test_the_log_is_bounded_and_says_nothing_where_all_are_known(api, lines):
    api.ok(api.get("/users", query_string={f"{number:02}{'n' * 500}": "x" for number in range(50)}))
    named = lines()["unknown_parameters"]
    api.ok(api.get("/users?pageSize=5&search=a"))

    assert named == [f"{number:02}{'n' * 38}" for number in range(10)]
    assert "unknown_parameters" not in lines()


def test_an_extension_names_the_first_100_by_60_characters_of_each(api):
    asked = {f"{number:03}{'n' * 500}": "x" for number in range(120)}

    errors = api.get("/students", query_string=asked).get_json()["errors"]

    assert list(errors["query"]) == [name[:60] for name in asked][:100]
    assert errors["left_out"] == 20


def test_token_school_and_permission_come_first(api, other_api, make):
    path = "/students?serach=Ada"

    assert api.using(token=None).get(path).status_code == 401
    assert other_api.using(school=api.school).get(path).status_code == 403
    assert make.caller().get(path).status_code == 403


def test_the_document_says_where_they_are_refused(document):
    operations = document.operations()

    assert "422" in operations["GET", "/settings"]["responses"]
    assert "422" not in operations["GET", "/classrooms"]["responses"]
    assert "422" not in operations["GET", "/health/live"]["responses"]
