"""Many report cards are printed in portions: another caller waits for one of these at most."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Hashable, Iterator, Mapping, Sequence
from json import JSONDecoder
from typing import Any
from zipfile import ZipFile

import orjson

from school_service.printing.archives import zip_of
from school_service.printing.printers import print_paper

OF_ARCHIVE = 6  # cards of a zip, each a PDF of its own, that are printed at once
OF_FILE = 40  # cards of one PDF: most classes are one portion

_decode = JSONDecoder().raw_decode


def print_cards(task: Mapping[str, Any], *, cards: str, count: int, school: Hashable) -> bytes:
    """Print report cards for a school and return the file, a PDF or a zip. Raises Busy and NotPrinted.

    `task` is the one of the paper `report-cards` without its `cards`, an array of JSON with `count` elements.
    """
    largest = OF_ARCHIVE if task["archive"] else OF_FILE
    if count <= largest:
        return print_paper({**task, "cards": orjson.Fragment(cards)}, school)
    portions = [
        print_paper({**task, "cards": orjson.Fragment(portion)}, school)
        for portion in _divided(list(_elements(cards)), largest)
    ]
    if task["archive"]:
        return zip_of(file for portion in portions for file in _files_of(portion))
    joining = {"paper": "joined", "files": [b64encode(portion).decode() for portion in portions]}
    return print_paper(joining, school)


def _elements(array: str) -> Iterator[str]:
    """Give the elements of an array of JSON as they are written: figures keep their digits."""
    position = array.index("[") + 1
    while (position := _next(array, position)) < len(array) and array[position] != "]":
        begin, (_, position) = position, _decode(array, position)
        yield array[begin:position]


def _next(array: str, position: int) -> int:
    while array[position] in ", \n\t\r":
        position += 1
    return position


def _divided(elements: Sequence[str], largest: int) -> Iterator[str]:
    """Divide the elements into as few arrays as may be, of one size or nearly: none has one element alone."""
    portions = -(-len(elements) // largest)
    for number in range(portions):
        begin, end = (len(elements) * portion // portions for portion in (number, number + 1))
        yield f"[{','.join(elements[begin:end])}]"


def _files_of(archive: bytes) -> Iterator[tuple[str, tuple[int, ...], bytes]]:
    with ZipFile(io.BytesIO(archive)) as opened:
        for about in opened.infolist():
            yield about.filename, about.date_time, opened.read(about)
