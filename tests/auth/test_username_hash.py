"""The hash of an attempted username, for logs."""

from __future__ import annotations

from school_service.auth.login_throttle import HASH_LENGTH, hash_username
from school_service.auth.signing_key import SigningKey

KEY = SigningKey.generate()


def hashed(username):
    return hash_username(KEY, "a school", username)


def test_the_hash_is_the_same_in_any_case_and_form():
    assert hashed("Adé") == hashed("ADE\u0301") == hashed("\uff21de\u0301")
    assert hashed("Adé") != hashed("Ade")


def test_a_text_that_is_no_name_has_a_hash_too():
    texts = ["", "\ud800", "e" + "\u0301\u0316" * 500_000, "n" * 2**20, "N" * 2**20]

    assert len({hashed(text) for text in texts}) == len(texts)
    assert {len(hashed(text)) for text in texts} == {HASH_LENGTH}
