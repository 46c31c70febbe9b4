"""The texts and pages of a PDF, as poppler reads it."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator
from itertools import islice, takewhile

import pytest

needs_poppler = pytest.mark.skipif(shutil.which("pdftotext") is None, reason="poppler-utils is not installed")


def text_of(pdf: bytes, *options: str) -> str:
    """Extract the text of a PDF."""
    command = ["pdftotext", *options, "-", "-"]
    return subprocess.run(command, input=pdf, capture_output=True, check=True).stdout.decode()


def pages_of(pdf: bytes) -> int:
    """Count the pages of a PDF: each ends with a form feed."""
    return text_of(pdf).count("\f")


def images_of(pdf: bytes) -> set[tuple[int, int]]:
    """The sizes of the pictures in a PDF, in pixels."""
    listed = subprocess.run(["pdfimages", "-list", "-"], input=pdf, capture_output=True, check=True).stdout
    rows = [line.split() for line in listed.decode().splitlines()[2:]]
    return {(int(row[3]), int(row[4])) for row in rows}


WIDTH, HEIGHT = 595.3, 841.9  # of A4, in points
MARGIN = 30.0  # points at its sides, in which nothing is printed
_BOX = re.compile(r'<word xMin="(.*?)" yMin="(.*?)" xMax="(.*?)" yMax="(.*?)">(.*?)</word>', re.DOTALL)


def misplaced(pdf: bytes) -> list[tuple[str, ...]]:
    """Find words that go beyond the margins of their page, and pairs of words that overlap."""
    command = ["pdftotext", "-bbox", "-", "-"]
    listed = subprocess.run(command, input=pdf, capture_output=True, check=True).stdout
    names: list[tuple[str, ...]] = []
    for page in listed.decode(errors="replace").split("<page ")[1:]:
        boxes = [(*map(float, box.groups()[:4]), html.unescape(box[5])) for box in _BOX.finditer(page)]
        names += [(box[4],) for box in boxes if not _within(box)]
        names += [(first[4], other[4]) for first, other in _at_one_height(boxes) if _overlap(first, other)]
    return names


def places_of(pdf: bytes, words: Collection[str]) -> list[set[tuple[str, ...]]]:
    """Where each of the words begins and how wide it is, by page that has one of them."""
    command = ["pdftotext", "-bbox", "-", "-"]
    listed = subprocess.run(command, input=pdf, capture_output=True, check=True).stdout
    pages = [
        {
            (word, left, f"{float(right) - float(left):.2f}")
            for left, _, right, _, word in (box.groups() for box in _BOX.finditer(page))
            if word in words
        }
        for page in listed.decode(errors="replace").split("<page ")[1:]
    ]
    return [page for page in pages if page]


def _at_one_height(boxes: list[tuple]) -> Iterator[tuple[tuple, tuple]]:
    """Pair boxes where neither is wholly above the other."""
    boxes = sorted(boxes, key=lambda box: box[1])
    for place, first in enumerate(boxes):
        below = takewhile(lambda other, bottom=first[3]: other[1] < bottom, islice(boxes, place + 1, None))
        yield from ((first, other) for other in below)


def _within(box: tuple) -> bool:
    left, top, right, bottom, _ = box
    return left >= MARGIN and right <= WIDTH - MARGIN and top >= 0 and bottom <= HEIGHT


def _overlap(first: tuple, other: tuple) -> bool:
    # The box of a word is as high as its line, whose upper and lower quarter have little ink.
    quarters = [(box[3] - box[1]) / 4 for box in (first, other)]
    across = min(first[2], other[2]) - max(first[0], other[0])
    upright = min(first[3] - quarters[0], other[3] - quarters[1]) - max(
        first[1] + quarters[0], other[1] + quarters[1]
    )
    return across > 0.6 and upright > 0.3
