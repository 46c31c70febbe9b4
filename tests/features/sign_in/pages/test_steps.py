"""The value that proves the first step of signing in."""

from __future__ import annotations

from uuid import uuid4

import pytest

from school_service.auth.signing_key import SigningKey, SigningKeys
from school_service.features.sign_in.pages.steps import LIFETIME, CodeStep, Step, read_step, sign_step

OLD, NEW = SigningKey.generate(), SigningKey.generate()
STEP = Step(uuid4(), uuid4(), 3, "pörtal")
CODE_STEP = CodeStep(uuid4(), uuid4(), 3, "5f" * 32)


@pytest.mark.parametrize("step", [STEP, CODE_STEP])
def test_a_step_is_read_for_ten_minutes_with_each_of_the_keys(step):
    value, kind = sign_step(SigningKeys((OLD,)), step, at=1000.0), type(step)

    assert read_step(SigningKeys((OLD,)), value, kind, at=1000.0 + LIFETIME) == step
    assert read_step(SigningKeys((NEW, OLD)), value, kind, at=1000.0) == step
    assert read_step(SigningKeys((OLD,)), value, kind, at=1001.0 + LIFETIME) is None
    assert read_step(SigningKeys((NEW,)), value, kind, at=1000.0) is None
    # One of the one kind is none of the other.
    other = CodeStep if kind is Step else Step
    assert read_step(SigningKeys((OLD,)), value, other, at=1000.0) is None


def test_nothing_else_is_a_step():
    keys = SigningKeys((OLD,))
    value = sign_step(keys, STEP, at=1000.0)
    content, _, signature = value.partition(".")
    others = [
        "",
        ".",
        content,
        f"{content}.",
        f".{signature}",
        f"{content}.{signature[:-1]}",
        f"{content}.{signature}0",
        f"{content}=.{signature}",
        f"{value}.",
        f"é{value}",
        "\udcff" + value,
        *(value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :] for at in range(len(value))),
    ]
    assert [step for step in others if read_step(keys, step, Step, at=1000.0) is not None] == []
