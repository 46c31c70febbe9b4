"""Texts that were read in a wrong character set are found, and right ones are left."""

from __future__ import annotations

import unicodedata

import pytest

from school_service.sheets.charsets import charset_errors, misread
from school_service.sheets.sheet_reader import Row

NAMES = [
    *(
        "Ògúnlẹ́yẹ",
        "Ẹ̀zẹ",
        "Ngọzi",
        "José",
        "D\u2019Almeida",
        "Ɓala",
        "Ɗanladi",
        "Haɗari",
        "Ƙarfi",
        "Ƴar",
        "Ṣadé",
    ),
    *("Ñuñez", "Šárka", "Łukasz", "Åsa", "Bjørn", "Þór", "Àánú", "Ńọ́", "Áà", "Ḿbà", "Ŋa", "Zoë", "François"),
]
RIGHT = [
    *NAMES,
    *(unicodedata.normalize("NFD", name) for name in NAMES),
    *(
        "王",
        "Иван",
        "Δημήτρης",
        "مريم",
        "N\u2019Diaye",
        "NDÉ\u2019S",
        "«ÉTÉ»",
        "“CAFÉ”",
        "CAFÉ”",
        "ÉTÉ—fini",
        "São Tomé",
    ),
    *(
        "½",
        "20 °C",
        "5 £",
        "“Works hard…”",
        "Ada \u2013 Obi",
        "Ünal",
        "Â",
        "Ã",
        "naïve",
        "√2",
        "·",
        "CÔTE D\u2019IVOIRE",
    ),
]


def seen_as(text, charset):
    """The UTF-8 of a text, as shown by a program that reads it in another character set."""
    return "".join(bytes([byte]).decode(charset, "ignore") or chr(byte) for byte in text.encode())


@pytest.mark.parametrize("text", RIGHT)
def test_a_right_text_is_left(text):
    assert misread(text) is None
    assert list(charset_errors([Row(2, {"name": text}, frozenset())], names=["name"])) == []


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("name", NAMES)
def test_windows_1252_is_found_with_the_name_meant(name, form):
    meant = unicodedata.normalize(form, name)

    assert misread(f"{seen_as(meant, 'cp1252')} Ada")[1] == meant


@pytest.mark.parametrize("name", ["Ògúnlẹ́yẹ", "Ngọzi", "José", "D\u2019Almeida", "Ṣadé", "Ñuñez", "Ẹ̀zẹ"])
def test_mac_roman_is_found_with_the_name_meant(name):
    name = unicodedata.normalize("NFC", name)

    assert misread(seen_as(name, "mac_roman"))[1] == name


def test_a_letter_that_is_lost_is_found():
    assert misread("Og\ufffdnleye") == ("\ufffd", "")


def test_the_error_names_the_cell_and_shows_no_control_characters():
    row = Row(7, {"name": seen_as("Ɓala", "cp1252"), "score": 5}, frozenset())

    (error,) = charset_errors([row])

    assert (error.row, error.column, error.code) == (7, "name", "invalid")
    assert error.message("B", "Ada").startswith(
        'B7: has letters in a wrong character set, "Æ…ala" for Ɓala: save the file as .xlsx or '
    )


@pytest.mark.parametrize("name", ["Og?nl?y?", "?d?", "Ng?zi Eze"])
def test_question_marks_in_names_are_found(name):
    row = Row(2, {"name": name, "remarks": name}, frozenset())

    assert [error.column for error in charset_errors([row], names=["name"])] == ["name"]


def test_a_question_mark_by_itself_is_none():
    assert list(charset_errors([Row(2, {"name": "Ada ?"}, frozenset())], names=["name"])) == []
