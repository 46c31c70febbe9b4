"""The columns of a sheet, for writing and reading alike."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto

from school_service.core.columns import NAME_LENGTH

MAX_ROWS = 20_000


class CellType(Enum):
    """The type of the cells of a column.

    The values of a row, once read, are those of JSON: a text, a Decimal, a day written YYYY-MM-DD.
    """

    TEXT = auto()
    NUMBER = auto()
    DAY = auto()


def normalized_name(name: str) -> str:
    """The name of a column as names are compared: without regard to case and the space around it."""
    return name.strip().casefold()


def composed_name(name: str) -> str:
    """The name of a column without regard to case, the space around it, and how letters with marks are typed (NFC)."""
    return unicodedata.normalize("NFC", normalized_name(name))


def words_of(name: str) -> str:
    """The name of a column in words, as a person types it: `Admission_Number` is `admission number`."""
    return " ".join(composed_name(name).replace("_", " ").split())


_ASIDE = re.compile(r"\([^()]*+\)|[^\w\s]")  # signs of a heading beside its words: (M/F), a point, a star


def heading_of(name: str) -> str:
    """The words of a heading, without signs and anything in brackets: `Admission No.*` is `admission no`."""
    return " ".join(_ASIDE.sub(" ", words_of(name)).split())


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Excel lets no other numbers be typed than those from `minimum` to `maximum`; `whole`: no fractions.

    `words`, in capitals, may be typed in place of a number, in any case.
    """

    minimum: Decimal
    maximum: Decimal
    whole: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SuggestedValues:
    """Excel offers these values; any other text may be typed too."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. It is found by its name in the header, in any order: without regard to case, or typed as words.

    `required`: a sheet without it is refused, and its header is dark if it is to be filled in. `locked`: Excel does not
    let its cells be changed. `rule`: the values allowed or offered by Excel; a column of days takes dates alone.
    `most`: characters of a text in a cell; nothing looks at a longer one. `width`: at least so many characters.
    `heading`: shown by the header in place of the name, in a sheet whose header can't be changed. `also`: other
    headings in use among people, in small letters without signs; it is found by one of them if no column has its own
    name.
    """

    name: str
    cell_type: CellType = CellType.TEXT
    required: bool = False
    locked: bool = False
    rule: NumberRange | SuggestedValues | None = None
    most: int = NAME_LENGTH
    width: int = 10
    heading: str | None = None
    also: tuple[str, ...] = ()
