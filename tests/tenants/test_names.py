"""The characters that may stand in names."""

from __future__ import annotations

import pytest

from tenants.names import composed, is_too_long, is_visible


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
def test_visible_characters_may_stand(name):
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
        "\ufe0f\u034f\U000e0100",  # variation selectors, and a joiner of graphemes: marks that are not shown
        "\u2800",  # Braille without dots
        "\u200d",
    ],
    ids=ascii,
)
def test_invisible_characters_may_not_stand(name):
    assert not is_visible(name)


# Lengths.

ACUTE, BELOW = "\u0301", "\u0316"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n" * 120,
        "é" * 120,
        "e\u0301" * 120,  # as a Mac sends it
        "\u03b1\u0313\u0300\u0345" * 120,  # no letter has more marks than three
        "\u1112\u1161\u11ab" * 120,  # Hangul, in its parts
        " " * 180 + "n" * 120 + " " * 180,
        "n" + ACUTE * 119,
    ],
    ids=ascii,
)
def test_a_text_that_may_have_so_many_letters_is_not_too_long(text):
    assert not is_too_long(text, 120)
    assert len(composed(text)) <= 120


@pytest.mark.parametrize(
    "text",
    [
        "n" * 481,
        " " * 481,
        "e" + ACUTE * 124,
        ("e" + ACUTE * 60) * 3,
        BELOW * 240 + ACUTE * 240,
        "n" * 2**20,
        "\ud800" * 481,
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_a_text_that_has_more_however_it_is_typed_is_too_long_and_is_left_alone(text):
    assert is_too_long(text, 120)
    assert composed(text) is text


def test_one_letter_more_is_seen_once_the_text_is_composed():
    text = "e\u0301" * 121

    assert not is_too_long(text, 120)
    assert composed(text) == "é" * 121


def test_a_text_is_composed_without_the_space_around_it_or_with_it():
    assert composed(" e\u0301 ") == "é"
    assert composed(" e\u0301 ", trim=False) == " é "
