"""How the errors in the rows of a sheet are reported: by row as in Excel, column, code and message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from school_service.core.errors import InvalidRows

MAX_BAD_ROWS = 200
MAX_ERRORS_OF_ROW = 200

REQUIRED, INVALID, DUPLICATE, TAKEN, UNKNOWN = "required", "invalid", "duplicate", "taken", "unknown"


@dataclass(frozen=True, slots=True)
class RowError:
    """What is wrong with a cell; `code` is one of the above: DUPLICATE in the sheet, TAKEN in the school."""

    row: int
    column: str
    code: str
    message: str


def raise_row_errors(errors: Iterable[RowError]) -> None:
    """Raise InvalidRows where there are errors: those of the first 200 bad rows, at most 200 of each."""
    by_row: dict[int, list[Mapping[str, object]]] = {}
    for error in sorted(errors, key=lambda error: error.row):
        if len(by_row) == MAX_BAD_ROWS and error.row not in by_row:
            break
        of_row = by_row.setdefault(error.row, [])
        if len(of_row) < MAX_ERRORS_OF_ROW:
            of_row.append(asdict(error))
    if by_row:
        raise InvalidRows([error for of_row in by_row.values() for error in of_row])
