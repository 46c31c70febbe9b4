"""Workbooks that go through a real spreadsheet program."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

SOFFICE = shutil.which("soffice")

needs_libreoffice = pytest.mark.skipif(
    SOFFICE is None, reason="LibreOffice is not installed (no soffice on the path)"
)


def saved_by_libreoffice(content: bytes, folder: Path) -> bytes:
    """Open a workbook in LibreOffice and save it; `folder` is one for the test alone."""
    return all_saved_by_libreoffice([content], folder)[0]


def all_saved_by_libreoffice(contents: Sequence[bytes], folder: Path) -> list[bytes]:
    """Open workbooks in LibreOffice, which is started once, and save each."""
    names = [f"{number}.xlsx" for number in range(len(contents))]
    for name, content in zip(names, contents, strict=True):
        (folder / name).write_bytes(content)
    subprocess.run(
        [
            SOFFICE, f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless",
            "--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", folder / "after",
            *(folder / name for name in names),
        ],
        check=True, capture_output=True, timeout=180,
    )  # fmt: skip
    return [(folder / "after" / name).read_bytes() for name in names]


def printed_by_libreoffice(content: bytes, folder: Path) -> Path:
    """Open a workbook in LibreOffice and print it; answers the PDF. `folder` is one for the test alone."""
    workbook = folder / "printed.xlsx"
    workbook.write_bytes(content)
    subprocess.run(
        [
            SOFFICE, f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless",
            "--convert-to", "pdf", "--outdir", folder, workbook,
        ],
        check=True, capture_output=True, timeout=180,
    )  # fmt: skip
    return folder / "printed.pdf"
