"""What stands in a PDF, as poppler reads it."""

from __future__ import annotations

import shutil
import subprocess

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
