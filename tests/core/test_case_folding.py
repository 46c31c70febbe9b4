"""Texts that are the same but for case and form."""

from __future__ import annotations

import pytest

from school_service.core.texts import casefolded


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Ada", "ADA"),
        ("Àda", "a\u0300DA"),
        ("Ọ́lá", "O\u0323\u0301L\u00c1"),
        ("Straße", "STRASSE"),
        ("ΣΟΦΟΣ", "σοφος"),
        ("\uff21\uff44\uff41", "ada"),
        ("ﬁ", "FI"),
        ("Ɗan", "ɗAN"),
        ("a\u00adda", "ada"),
        ("می\u200cخواهم", "میخواهم"),  # noqa: RUF001
    ],
)
def test_texts_of_one_name_fold_alike(text, other):
    assert casefolded(text) == casefolded(other)
    assert casefolded(casefolded(text)) == casefolded(text)


@pytest.mark.parametrize(
    ("text", "other"), [("ada", "àda"), ("obi", "ọbi"), ("ada", "adá"), ("ada obi", "adaobi"), ("0", "o")]
)
def test_others_stay_apart(text, other):
    assert casefolded(text) != casefolded(other)
