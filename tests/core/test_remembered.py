from __future__ import annotations

from school_service.core.remembered import Remembered


def test_a_value_is_found_until_it_is_forgotten_or_one_too_many_comes():
    remembered: Remembered[str, int] = Remembered(2, 3600)
    assert remembered.find("a") is None

    remembered.remember("a", 1)
    remembered.remember("b", 2)
    assert (remembered.find("a"), remembered.find("b")) == (1, 2)
    remembered.remember("a", None)
    remembered.remember("nobody", None)
    assert (remembered.find("a"), remembered.find("b")) == (None, 2)
    for number, key in enumerate("cd"):
        remembered.remember(key, number)
    assert [remembered.find(key) for key in "bcd"] == [None, 0, 1]


def test_a_value_is_remembered_for_its_time_alone():
    remembered: Remembered[str, int] = Remembered(2, 0)

    remembered.remember("a", 1)

    assert remembered.find("a") is None
