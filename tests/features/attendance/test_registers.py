"""Registers: taken, submitted, corrected, deleted."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.features.attendance.classes import Kept


@pytest.fixture(scope="module", autouse=True)
def made(prepared):
    return prepared(Kept)


@pytest.fixture
def kept(rehearsed, made):
    return deepcopy(made)


def test_a_register_that_nobody_took_shows_the_class(api, kept):
    register = api.ok(kept.get())

    assert register["id"] is None
    assert (register["state"], register["version"], register["part"]) == ("NOT_TAKEN", 0, "DAY")
    assert kept.codes(register) == {"R/1": None, "R/2": None, "R/3": None}
    assert (register["enrolled"], register["unmarked"], register["present"]) == (3, 3, 0)
    assert register["term"] == {"id": kept.term["id"], "term": "FIRST"}


def test_a_class_with_one_absent_is_a_short_request(api, kept):
    register = kept.take(codes={"R/2": "A"})

    assert register == api.ok(kept.get())
    assert kept.codes(register) == {"R/1": "P", "R/2": "A", "R/3": "P"}
    assert (register["state"], register["version"]) == ("SUBMITTED", 1)
    assert [register[name] for name in ("enrolled", "present", "late", "absent", "excused", "unmarked")] == [
        3, 2, 0, 1, 0, 0,
    ]  # fmt: skip
    ((action, old, new),) = kept.log()
    assert (action, old) == ("create", None)
    assert new == {
        "part": "DAY",
        "date": register["date"],
        "state": "SUBMITTED",
        "source": "hand",
        "changed": dict(zip(kept.students.values(), "PAP", strict=True)),
    }
