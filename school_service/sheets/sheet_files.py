"""Opening an uploaded file: an Excel workbook or a table of comma-separated values; for others, a remedy is named."""

from __future__ import annotations

from io import BytesIO
from typing import IO

from school_service.core.errors import Invalid
from school_service.sheets.csv_reader import CsvTable, open_csv
from school_service.sheets.xlsx_reader import NOT_A_WORKBOOK, Workbook, open_workbook

SheetFile = Workbook | CsvTable

EMPTY = "The file is empty."
PDF = "The file is a PDF, of which no rows can be read: send the sheet itself, saved as .xlsx."
OLD_WORKBOOK = "The file is an Excel workbook of the old kind (.xls): save it as .xlsx, and send that."
HAS_PASSWORD = "The file has a password: save it without one, and send that."  # noqa: S105 -- a message
OPEN_DOCUMENT = "The file is an OpenDocument spreadsheet (.ods): save it as .xlsx, and send that."
NUMBERS = "The file is a Numbers spreadsheet (.numbers): export it to Excel (.xlsx), and send that."
BINARY_WORKBOOK = "The file is a binary Excel workbook (.xlsb): save it as .xlsx, and send that."
TEXT_DOCUMENT = "The file is a text document, no spreadsheet: send the sheet itself, saved as .xlsx."

_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # the container of .xls, and of workbooks with a password
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_ZIP_DIRECTORY = 2**16  # bytes at the end of a zip in which the names of its files are looked for
_IN_ZIP = {
    b"Index/Document.iwa": NUMBERS,
    b"xl/workbook.bin": BINARY_WORKBOOK,
    b"word/document.xml": TEXT_DOCUMENT,
}
_OPEN_DOCUMENT_TYPES = {
    b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet": OPEN_DOCUMENT,
    b"mimetypeapplication/vnd.oasis.opendocument.text": TEXT_DOCUMENT,
}
_NAME_IN_ZIP = 30  # where the name of the first file of a zip begins


def open_sheets(file: IO[bytes]) -> SheetFile:
    """Open an uploaded file: a workbook (.xlsx, or .xlsm without its macros), or a table (.csv), by its content.

    Raises Invalid if it is neither, and says how to save it; also if it is broken or has too much content. Raises
    TooLarge if a workbook unpacks to over 100 MiB.
    """
    content = file.read()
    refused = _refused(content)
    if refused is not None:
        raise Invalid(refused)
    if content.startswith(b"PK"):
        return open_workbook(BytesIO(content))
    table = open_csv(content)
    if table is None:
        raise Invalid(NOT_A_WORKBOOK)
    return table


def _refused(content: bytes) -> str | None:
    """Give the remedy for a file of a known kind without a reader; None for any other."""
    if not content:
        return EMPTY
    if content.startswith(b"%PDF"):
        return PDF
    if content.startswith(_OLE):
        return HAS_PASSWORD if _ENCRYPTED in content else OLD_WORKBOOK
    if content.startswith(b"PK"):
        # The format asks for this file to come first, as it is.
        for media_type, advice in _OPEN_DOCUMENT_TYPES.items():
            if content.startswith(media_type, _NAME_IN_ZIP):
                return advice
        directory = content[-_ZIP_DIRECTORY:]
        return next((advice for name, advice in _IN_ZIP.items() if name in directory), None)
    return None
