"""Telephone numbers in a sheet, taken for numbers by a spreadsheet program: it drops the 0 in front of them.

The 0 is put back if the number is then one of the school's country. A number invalid both with it and without has lost
more, and is refused: nobody would notice before it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

import phonenumbers

from school_service.core.errors import SAID_BACK
from school_service.sheets.row_errors import INVALID, RowError
from school_service.sheets.sheet_reader import Row

DEFAULT_COUNTRY = "NG"  # whose states and local government areas the reference data has

_DIGITS = re.compile(r"[1-9][0-9 ().-]{2,24}")
_BETWEEN = re.compile(r"([,;/])")
_ROUNDED = re.compile(r"[0-9][.,]?[0-9]*+[eE]\+?[0-9]{1,2}")
_TRUNK = "0"
_SHOWN = 3  # numbers that a warning gives as examples


@dataclass(slots=True)
class ReadNumbers:
    """The outcome of reading: the errors, how often a 0 was put back, with the first of these numbers, and the rows
    with texts that can be no telephone number, with the texts.
    """

    errors: list[RowError] = field(default_factory=list)
    restored: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    impossible: dict[int, str] = field(default_factory=dict)

    def warnings(self, column: str) -> list[str]:
        """Name the numbers with a 0 put back, and those that can be none, if there are any."""
        return [*self._of_restored(column), *self._of_impossible(column)]

    def _of_impossible(self, column: str) -> list[str]:
        if not self.impossible:
            return []
        some = islice(self.impossible.items(), _SHOWN)
        shown = ", ".join(f"{text[:SAID_BACK]} in row {row}" for row, text in some)
        more = ", …" if len(self.impossible) > _SHOWN else ""
        return [f"{column}: {len(self.impossible):,} can be no telephone number: {shown}{more}."]

    def _of_restored(self, column: str) -> list[str]:
        if not self.restored:
            return []
        numbers = "number" if self.restored == 1 else "numbers"
        shown = ", ".join(f"{written} is stored as {stored}" for written, stored in self.examples.items())
        return [
            f"{column}: {self.restored:,} {numbers} had lost the 0 in front, which was put back: {shown}."
        ]


def country_of(phone_number: str | None) -> str:
    """Find the country of a school, by its ISO 3166 code: by its own number, if it begins with a country's code."""
    first = (phone_number or "").split(",")[0].split("/")[0].strip()
    try:
        number = phonenumbers.parse(first) if first.startswith("+") else None
    except phonenumbers.NumberParseException:
        number = None
    country = phonenumbers.region_code_for_number(number) if number else None
    return country if country and country in phonenumbers.SUPPORTED_REGIONS else DEFAULT_COUNTRY


def read_numbers(rows: Iterable[Row], column: str, country: str) -> ReadNumbers:
    """Put back the lost 0 of the numbers of a column; a cell may have several, divided by commas.

    A number beginning with 0 or + or with letters in it stays as it is, and so does one with a country's code. A cell
    with an error loses its value.
    """
    read = ReadNumbers()
    for row in rows:
        written = row.values.get(column)
        if not isinstance(written, str):
            continue
        text = written.strip()
        if _ROUNDED.fullmatch(text):
            read.errors.append(
                _error(row, column, text, "has lost its last digits to the spreadsheet program")
            )
            del row.values[column]
            continue
        parts = [_restored(part, country) for part in _BETWEEN.split(text)]
        if None in parts:
            problem = (
                f"is no telephone number of the school's country ({country}), with a 0 before it or without"
            )
            read.errors.append(_error(row, column, text, problem))
            del row.values[column]
            continue
        if any(part and _is_impossible(part.strip(" ,;/"), country) for part in parts):
            read.impossible[row.number] = text
        whole = "".join(part or "" for part in parts)
        if whole != text:
            row.values[column] = whole
            read.restored += 1
            if len(read.examples) < _SHOWN:
                read.examples[text] = whole
    return read


def _restored(part: str, country: str) -> str | None:
    """Write a number with its lost 0, else as it is; None if it is no number of anywhere."""
    written = part.strip()
    if not _DIGITS.fullmatch(written):
        return part
    try:
        number = phonenumbers.parse(written, country)
    except phonenumbers.NumberParseException:
        return None
    digits = re.sub(r"[^0-9]", "", written)
    has_lost = str(number.national_number) == digits
    if phonenumbers.is_valid_number(number):
        is_with_trunk = phonenumbers.ndd_prefix_for_region(country, True) == _TRUNK
        return part.replace(written, f"{_TRUNK}{written}", 1) if has_lost and is_with_trunk else part
    # Local numbers, without the code of the town, are taken as they are; and those that name another country.
    return part if _is_local(number) or _is_international(digits) else None


def _is_impossible(written: str, country: str) -> bool:
    """Tell whether a text is no telephone number of the country or another one: too short, too long, or words."""
    if not written:
        return False
    try:
        number = phonenumbers.parse(written, country)
    except phonenumbers.NumberParseException:
        return True
    is_possible = phonenumbers.is_possible_number(number) or _is_local(number)
    return not is_possible and not _is_international(re.sub(r"[^0-9]", "", written))


def _is_local(number: phonenumbers.PhoneNumber) -> bool:
    reason = phonenumbers.is_possible_number_with_reason(number)
    return bool(reason == phonenumbers.ValidationResult.IS_POSSIBLE_LOCAL_ONLY)


def _is_international(digits: str) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(f"+{digits}"))
    except phonenumbers.NumberParseException:
        return False


def _error(row: Row, column: str, text: str, problem: str) -> RowError:
    remedy = (
        "format the column as text, and write the whole number, such as 0803 123 4567 or +234 803 123 4567"
    )
    return RowError(row.number, column, INVALID, problem, text, remedy)
