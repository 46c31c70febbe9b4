"""How bad rows of a sheet are told: by row as in Excel, column, code and message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from school_service.core.errors import InvalidRows

MAX_BAD_ROWS = 200
MAX_ERRORS_OF_ROW = 200  # problems of one row that are told

REQUIRED, INVALID, DUPLICATE, TAKEN, UNKNOWN = "required", "invalid", "duplicate", "taken", "unknown"


@dataclass(frozen=True, slots=True)
class RowError:
    """What is wrong with a cell; `code` is one of the above: DUPLICATE in the sheet, TAKEN in the school."""

    row: int
    column: str
    code: str
    message: str


def raise_row_errors(problems: Iterable[RowError]) -> None:
    """Raise InvalidRows where there are problems: those of every bad row, of the first 200 bad rows."""
    found: dict[int, list[Mapping[str, object]]] = {}
    for problem in sorted(problems, key=lambda problem: problem.row):
        if len(found) == MAX_BAD_ROWS and problem.row not in found:
            break
        of_row = found.setdefault(problem.row, [])
        if len(of_row) < MAX_ERRORS_OF_ROW:
            of_row.append(asdict(problem))
    if found:
        raise InvalidRows([told for row in found.values() for told in row])
