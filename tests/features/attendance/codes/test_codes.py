"""The codes that a school marks registers with."""

from __future__ import annotations

import pytest

CODES = [
    {"code": "P", "name": "Present", "kind": "PRESENT"},
    {"code": "L", "name": "Late", "kind": "LATE"},
    {"code": "A", "name": "Absent", "kind": "ABSENT"},
    {"code": "E", "name": "Excused", "kind": "EXCUSED"},
]


def test_a_school_that_has_chosen_nothing_has_four_codes(other_api):
    assert other_api.ok(other_api.get("/attendance-codes")) == CODES


def test_codes_are_replaced_as_a_list_and_on_record(api):
    codes = [
        {"code": "/", "name": "Present", "kind": "PRESENT"},
    ]
    assert api.put("/attendance-codes", codes).status_code == 422
    assert api.ok(api.put("/attendance-codes", CODES)) == CODES
    assert api.ok(api.get("/audit?entity=attendance-code"))["total"] == 0
    codes = [
        {"code": "Ọ1", "name": "Wà níbí", "kind": "PRESENT"},
        {"code": "x", "name": "Away", "kind": "ABSENT"},
        {"code": "L", "name": "Late", "kind": "LATE"},
    ]

    assert api.ok(api.put("/attendance-codes", codes)) == codes

    assert api.ok(api.get("/attendance-codes")) == codes
    assert api.ok(api.get("/audit?entity=attendance-code"))["total"] == 3
    changed = [codes[2], {**codes[1], "code": "X"}, codes[0]]
    assert api.ok(api.put("/attendance-codes", changed)) == changed
    log = api.ok(api.get("/audit?entity=attendance-code"))["data"]
    # A code that is written otherwise is still that one.
    assert [entry["action"] for entry in log] == ["update"] * 3 + ["create"] * 3
    assert api.ok(api.put("/attendance-codes", CODES)) == CODES


@pytest.mark.parametrize(
    "codes",
    [[], CODES[:2], CODES[1:2], [CODES[0], CODES[2], {**CODES[1], "code": "p"}],
     [*CODES, {"code": "VWXYZ", "name": "x", "kind": "LATE"}], [*CODES, {"code": "", "name": "x", "kind": "LATE"}],
     [*CODES, {"code": "A B", "name": "x", "kind": "LATE"}], [*CODES, {"code": "X", "name": "", "kind": "LATE"}],
     [*CODES, {"code": "X", "name": "x" * 61, "kind": "LATE"}], [*CODES, {"code": "X", "name": "x", "kind": "GONE"}],
     [*CODES, *({"code": f"C{n}", "name": "x", "kind": "LATE"} for n in range(17))], {"codes": CODES}, None, "P"],
)  # fmt: skip
def test_a_body_that_is_no_list_of_codes_is_422(api, codes):
    assert api.put("/attendance-codes", codes).status_code == 422
    assert api.ok(api.get("/attendance-codes")) == CODES
