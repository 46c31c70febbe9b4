"""Workbooks that go through a real spreadsheet program."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

SOFFICE = shutil.which("soffice")

needs_libreoffice = pytest.mark.skipif(
    SOFFICE is None, reason="LibreOffice is not installed (no soffice on the path)"
)


@cache
def profile() -> str:
    """Make a profile for all starts of this process: to fill one takes as long as to convert."""
    folder = tempfile.TemporaryDirectory(prefix="school-tests-libreoffice-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return f"-env:UserInstallation={Path(folder.name).as_uri()}"


def saved_by_libreoffice(content: bytes, folder: Path) -> bytes:
    """Open a workbook in LibreOffice and save it; `folder` is one for the test alone."""
    return all_saved_by_libreoffice([content], folder)[0]


def all_saved_by_libreoffice(contents: Sequence[bytes], folder: Path) -> list[bytes]:
    """Open workbooks in LibreOffice, which is started once, and save each."""
    files = _converted(contents, folder, "xlsx:Calc MS Excel 2007 XML")
    return [file.read_bytes() for file in files]


def printed_by_libreoffice(content: bytes, folder: Path) -> Path:
    """Open a workbook in LibreOffice and print it; answers the PDF. `folder` is one for the test alone."""
    return all_printed_by_libreoffice([content], folder)[0]


def all_printed_by_libreoffice(contents: Sequence[bytes], folder: Path) -> list[Path]:
    """Open workbooks in LibreOffice, which is started once, and print each; answers the PDFs."""
    return _converted(contents, folder, "pdf")


def _converted(contents: Sequence[bytes], folder: Path, kind: str) -> list[Path]:
    """Let LibreOffice write workbooks in another kind of file."""
    workbooks = [folder / f"{number}.xlsx" for number in range(len(contents))]
    for workbook, content in zip(workbooks, contents, strict=True):
        workbook.write_bytes(content)
    after = folder / "after"
    subprocess.run(
        [SOFFICE, profile(), "--headless", "--convert-to", kind, "--outdir", after, *workbooks],
        check=True, capture_output=True, timeout=180,
    )  # fmt: skip
    return [after / f"{workbook.stem}.{kind.partition(':')[0]}" for workbook in workbooks]
