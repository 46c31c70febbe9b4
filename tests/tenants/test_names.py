"""Which characters stand in names."""

from __future__ import annotations

import pytest

from tenants.names import is_visible


@pytest.mark.parametrize(
    "name",
    [
        "Ada Obi",
        "Yar'Adua",
        "Ọláṣubọ̀mí",  # Yoruba: dots and tones
        "e\u0323\u0300",  # as combining marks
        "Nnàmdị Ọ́kọ́nkwọ́",
        "Ɗan-Asabe Ƙofar",
        "محمد الأمين",
        "می\u200cخواهم",  # noqa: RUF001 Persian, with a ZWNJ in a word
        "क्\u200dषेत्र",  # Hindi, with a ZWJ in a word
        "王小明",
        "김철수",
        "👩\u200d🚀",  # emoji joined by ZWJ
        "👩🏾\u200d🚀 and ❤\ufe0f\u200d🔥",
        "No.\u00a02",
        "ᄒ\u1160ᆫ",  # old Hangul, with a filler
        "",
    ],
)
def test_what_is_seen_stands(name):
    assert is_visible(name)


@pytest.mark.parametrize(
    "name",
    [
        "A\0da",
        "A\x1bda",
        "A\tda",
        "A\nda",
        "A\x7fda",
        "A\x85da",
        "A\u00adda",  # soft hyphen
        "A\u200bda",  # zero width space
        "\ufeffAda",
        "\u202eadA",  # right-to-left override
        "Ada\u200e",
        "A\u2060da",
        "A\u2028da",
        "A\u2029da",
        "A\ud800da",
        "A\ue000da",  # private use
        "A\u0378da",  # unassigned
        "A\U000e0041da",  # a tag
        "\u200dAda",
        "Ada\u200c",
        "Ada \u200dObi",
        "Ada\u200d Obi",
        "A\u200d\u200cda",
        "A-\u200dda",
        " ",
        "\u3164",  # Hangul filler: a letter that is not shown
        "\u115f \uffa0",
        "\ufe0f\u034f\U000e0100",  # variation selectors, and what joins graphemes: marks that are not shown
        "\u2800",  # Braille without dots
        "\u200d",
    ],
    ids=ascii,
)
def test_what_is_not_seen_does_not(name):
    assert not is_visible(name)
