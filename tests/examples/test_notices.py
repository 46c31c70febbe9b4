"""The example of notices sends a message for each absence, once, to a gateway that is this test."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.examples.test_follower import asking
from tests.features.attendance.classes import Kept

SCRIPT = Path(__file__).parents[2] / "examples" / "notices.py"


@pytest.fixture
def notify():
    spec = spec_from_file_location("notices", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.notify


def test_the_guardians_of_absent_students_get_one_message_each(committing, notify):
    kept = Kept(committing)
    for number, name in (("R/1", "Ngọzi Eze"), ("R/2", "Musa Bello")):
        committing.guardian(
            {"id": kept.students[number]}, full_name=name, phone_number=f"080312345{number[2:]}7"
        )
    committing.guardian({"id": kept.students["R/1"]}, full_name="Without Telephone")
    place, sent, ask = {}, set(), asking(committing.api)
    messages = []

    def send():
        messages.clear()
        while notify(place, sent, ask, messages.append):
            pass
        return sorted(message["to"][-2:] for message in messages)

    assert send() == []
    kept.take(codes={"R/1": "A", "R/2": "E"})
    assert send() == ["17"]
    first = committing.api.ok(committing.api.get(f"/students/{kept.students['R/1']}"))["first_name"]
    assert messages[0]["text"] == f"{first} was absent from school today."
    assert send() == []

    committing.api.ok(kept.correct(codes={"R/2": "A", "R/1": "P"}))
    assert send() == ["27"]
    place["after"] = "gone"
    assert send() == []


def test_the_gateway_that_fails_gets_the_message_again(committing, notify):
    kept = Kept(committing)
    committing.guardian({"id": kept.students["R/1"]}, phone_number="08031234567")
    place, sent, ask = {}, set(), asking(committing.api)
    notify(place, sent, ask, None)
    kept.take(codes={"R/1": "A"})

    def fail(_message):
        raise OSError("The gateway is away.")

    with pytest.raises(OSError, match="away"):
        notify(place, sent, ask, fail)
    messages = []
    notify(place, sent, ask, messages.append)
    assert len(messages) == 1


def test_the_script_is_short():
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 40
