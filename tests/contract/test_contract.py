"""The application's OpenAPI document against the contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_openapi import Checker, load_contract, template

CONTRACT = load_contract(Path(__file__).with_name("contract.yaml"))
AREAS = tuple(CONTRACT["endpoints_per_area"])


def mismatches(document, area):
    """The faults of an area's operations, a line for each."""
    endpoints = [endpoint for endpoint in CONTRACT["endpoints"] if endpoint["area"] == area]
    report = Checker({**CONTRACT, "endpoints": endpoints}, document.spec).run()
    return [f"{label}: {problem}" for label, problems in report for problem in problems]


@pytest.mark.parametrize("area", AREAS)
def test_an_area_is_as_the_contract_has_it(document, area):
    assert mismatches(document, area) == []


def test_operations_beyond_the_contract_require_the_school(document):
    known = {(endpoint["method"], template(endpoint["path"])) for endpoint in CONTRACT["endpoints"]}
    for (method, path), operation in document.operations().items():
        # A client's request for its signed-in user names the school by its token (OpenID Connect Core).
        if path == "/auth/userinfo":
            continue
        if operation["security"] and (method, template(path)) not in known:
            (header,) = (
                parameter for parameter in operation["parameters"] if parameter["name"] == "X-SCHOOL-ID"
            )
            assert header["required"], (method, path)
