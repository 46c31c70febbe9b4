"""The cost of the service beside Excel's files: a score sheet of 1,000 rows, down and up, against openpyxl alone.

    python -m benchmarks.sheets [--rows 1000] [--rounds 15]

Starts a PostgreSQL of its own from the wheel and one school, with a subject that so many students take. The
service answers in this process, as WSGI: token, transaction, queries, workbook, commit. openpyxl alone, used
as it comes, writes a workbook of the same cells, styles and rules from rows in memory, and loads an uploaded
one into rows. They take turns, round after round, so that other work of the machine meets both. The first
upload enters every score, each further one changes every score, and all of them write the audit log.
Prints for either direction the median times in milliseconds and their ratio.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from io import BytesIO
from typing import Any
from uuid import UUID

from openpyxl import Workbook, load_workbook
from openpyxl.styles import PatternFill, Protection
from openpyxl.worksheet.datavalidation import DataValidation

from benchmarks.schools import School, schools

WIDTHS = (20, 20, 20, 12)
LOCKED = PatternFill("solid", fgColor="FFF2F2F2")


def write(rows: list[tuple[Any, ...]], details: list[tuple[str, str]]) -> bytes:
    """Write the workbook with openpyxl alone."""
    workbook = Workbook()
    sheet = workbook.worksheets[0]
    sheet.title = "Scores"
    locked, unlocked = Protection(locked=True), Protection(locked=False)
    for number, row in enumerate(rows, 1):
        for column, value in enumerate(row, 1):
            cell = sheet.cell(number, column, value)
            if number > 1 and column == len(row):
                cell.protection = unlocked
            elif number > 1:
                cell.number_format, cell.protection, cell.fill = "@", locked, LOCKED
    for letter, width in zip("ABCD", WIDTHS, strict=True):
        sheet.column_dimensions[letter].width = width
    rule = DataValidation(type="decimal", operator="between", formula1="0", formula2="20")
    rule.add(f"D2:D{len(rows)}")
    sheet.add_data_validation(rule)
    sheet.freeze_panes = "A2"
    sheet.protection.enable()
    about = workbook.create_sheet("Details")
    for pair in details:
        about.append(pair)
    content = BytesIO()
    workbook.save(content)
    return content.getvalue()


def read(content: bytes) -> dict[str, list[tuple[Any, ...]]]:
    """Read a workbook with openpyxl alone."""
    workbook = load_workbook(BytesIO(content), data_only=True)
    return {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in workbook}


def filled(content: bytes, score: float) -> bytes:
    """Fill in a downloaded sheet."""
    workbook = load_workbook(BytesIO(content))
    for row in workbook["Scores"].iter_rows(min_row=2):
        row[3].value = score
    saved = BytesIO()
    workbook.save(saved)
    return saved.getvalue()


def took(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Call a function; return its milliseconds and its result."""
    began = time.perf_counter()
    result = work(*arguments)
    return (time.perf_counter() - began) * 1000, result


def measure(school: School, assessment: UUID, rounds: int) -> dict[str, tuple[float, float]]:
    """Take turns; return the median times of ours and of openpyxl alone, by direction."""
    path = f"/assessments/{assessment}"
    times: dict[str, tuple[list[float], list[float]]] = {"download": ([], []), "upload": ([], [])}
    blank = school.get(f"{path}/download-sheet")
    sheets = [filled(blank, score) for score in (12.5, 13.5)]
    # As a server does that has started: the objects of now stay.
    gc.collect()
    gc.freeze()
    for number in range(rounds + 1):
        ours, content = took(school.get, f"{path}/download-sheet")
        rows = read(content)
        alone, written = took(write, rows["Scores"], rows["Details"])
        if read(written) != rows:
            raise SystemExit("the two workbooks differ")
        note(times["download"], number, ours, alone)

        sheet = sheets[number % 2]
        ours, counts = took(school.upload, f"{path}/scoresheet", "scoresheet", sheet)
        if counts["updated"] + counts["created"] != len(rows["Scores"]) - 1:
            raise SystemExit(f"the upload did something else: {counts}")
        alone, _ = took(read, sheet)
        note(times["upload"], number, ours, alone)
    return {
        name: (statistics.median(ours), statistics.median(alone)) for name, (ours, alone) in times.items()
    }


def note(times: tuple[list[float], list[float]], number: int, ours: float, alone: float) -> None:
    """Keep the times of a round; the first warms up."""
    if number:
        times[0].append(ours)
        times[1].append(alone)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    with schools() as here:
        school = here.create(students=arguments.rows)
        (taught,) = school.teach(year=2025, terms=1, subjects=1, assessments=1)
        school.analyze()
        for name, (ours, alone) in measure(school, taught.assessments[0], arguments.rounds).items():
            times = f"ours {ours:6.1f} ms  openpyxl {alone:6.1f} ms"
            print(f"{name:<9} {arguments.rows} rows  {times}  ratio {ours / alone:.2f}")


if __name__ == "__main__":
    main()
