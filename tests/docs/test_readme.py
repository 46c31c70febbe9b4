"""Every command of the README is run somewhere, and its pictures are there."""

from __future__ import annotations

import re

from tests.docs.readme import README, TEXT, blocks

# The module that runs the commands of each section, or the reason why none does.
COMMANDS = {
    "Try it": "They install from the network: the second is what .ci/run runs, word for word. What the first "
    "starts is in tests/demo.",
    "Five minutes": "tests/demo/test_demo.py pastes them into a shell.",
    "Running it for real": "tests/cli/test_readme.py runs them.",
}


def test_every_command_is_run_somewhere_or_has_a_reason():
    assert {block.section for block in blocks() if block.kind == "sh"} == set(COMMANDS)


def test_the_two_commands_come_first():
    first, second = [block.text for block in blocks() if block.kind == "sh"][:2]

    assert first.endswith("/school-service demo\n")
    assert second.endswith("python -m pytest\n")


def test_pictures_are_there_and_small():
    pictures = re.findall(r"!\[[^\]]{20,}\]\(([^)]+)\)", TEXT)

    assert len(pictures) == 3
    for picture in pictures:
        assert 10_000 < (README.parent / picture).stat().st_size < 150_000
