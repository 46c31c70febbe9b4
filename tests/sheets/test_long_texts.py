"""No uploaded sheet takes half a second of a processor more than the same one with short texts in its place."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from io import StringIO
from typing import Any
from xml.sax.saxutils import escape

import pytest

from school_service.features.classes.student_imports.sheet import COLUMNS
from tests.factories import Factory
from tests.long_texts import KINDS, MIB, QUICK, SHORT, TEXTS, Stopwatch
from tests.sheets.workbooks import MAIN, handmade, row_xml, sheet_xml, strings_xml

CELL = 131_000  # characters of a cell of a .csv file; Python's reader takes 131,072
JUST_SHORT_ENOUGH = 480  # characters that are looked at where 120 may be stored
ROWS = 1000
IMPORTED = [column.name for column in COLUMNS]


class Class:
    """A cohort with a student, a subject and an assessment, for all kinds of sheets."""

    def __init__(self, make: Factory) -> None:
        self.taught = make.taught(0)
        student = make.student(admission_number="L/1")
        make.enrolled(self.taught.cohort, student)
        self.assessment = make.assessment(self.taught.subject, self.taught.term)
        self.traits = [definition["name"] for definition in make.api.ok(make.api.get("/metric-definitions"))]
        self.batch = self.taught.cohort["id"]


@pytest.fixture(scope="module", autouse=True)
def original(prepared: Any) -> Class:
    class_: Class = prepared(Class)
    return class_


@pytest.fixture
def class_(rehearsed: Any, original: Class) -> Class:
    return deepcopy(original)


def uploads(class_: Class) -> dict[str, tuple[str, str, list[str]]]:
    """The upload of each sheet: the address, the name of the file in the form, and its columns."""
    student = ["admission_number", "first_name", "last_name"]
    of_batch = f"batch={class_.batch}&term=FIRST"
    of_metrics = f"batchId={class_.batch}&term=FIRST&metric_type=AFFECTIVE"
    return {
        "import": ("/students/import-sheet", "sheet", [*IMPORTED, "arm"]),
        "scores": (
            f"/assessments/{class_.assessment['id']}/scoresheet",
            "scoresheet",
            [*student, "score", "absence", "arm"],
        ),
        "comments": (
            f"/comments/upload-sheet?{of_batch}",
            "comments",
            [*student, "times_present", "form_teacher_comment", "principal_comment"],
        ),
        "metrics": (f"/metrics/upload-sheet?{of_metrics}", "metric_sheet", [*student, *class_.traits]),
        "registers": (f"/registers/upload-sheet?batch={class_.batch}", "register_sheet", [*student, "Mon"]),
    }


SHEETS = ("import", "scores", "comments", "metrics", "registers")
# All sheets are read by one reader, which looks at headings and refuses long cells: each run asks it for one sheet.
READ = [
    pytest.param("import", QUICK, id="quick"),
    *(pytest.param(sheet, tuple(TEXTS), id=sheet, marks=pytest.mark.release) for sheet in SHEETS),
]


def sender(api: Any, class_: Class, sheet: str) -> Callable[[bytes], Callable[[], None]]:
    """Make a function that sends a file as a sheet, and asserts that the service does not fail."""
    path, name, _ = uploads(class_)[sheet]

    def sent(content: bytes) -> Callable[[], None]:
        form = (
            f'--x\r\nContent-Disposition: form-data; name="{name}"; filename="a"\r\n\r\n'.encode()
            + content
            + b"\r\n--x--\r\n"
        )

        def send() -> None:
            answer = api.send("POST", path, data=form, content_type="multipart/form-data; boundary=x")
            assert answer.status_code < 500, answer.get_data(as_text=True)
            answer.close()

        return send

    return sent


def texts(kinds: Iterable[str], most: int) -> Iterator[tuple[str, str]]:
    """Go through the worst texts of these kinds, of so many characters."""
    return ((kind, TEXTS[kind](2 * most if kind == "marks" else 6 * most)[:most]) for kind in kinds)


def table(*rows: list[str]) -> bytes:
    """Write a .csv file."""
    content = StringIO()
    csv.writer(content).writerows(rows)
    return content.getvalue().encode()


@pytest.mark.parametrize(("sheet", "kinds"), READ)
def test_no_cell_of_a_csv_file_is_worked_on_where_it_is_long(
    api: Any, class_: Class, sheet: str, kinds: Iterable[str]
) -> None:
    columns = uploads(class_)[sheet][2]
    sent = sender(api, class_, sheet)

    def one_row(text: str) -> bytes:
        return table(columns, *[[text if each == at else SHORT for each in columns] for at in columns])

    watch = Stopwatch(sent(one_row(SHORT)))
    for kind, text in texts(kinds, min(CELL, MIB // len(columns))):
        watch.judge(kind, sent(one_row(text)))


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("sheet", SHEETS)
def test_cells_that_are_just_short_enough_are_not_worked_on_for_long(
    api: Any, class_: Class, sheet: str, kinds: Iterable[str]
) -> None:
    columns = uploads(class_)[sheet][2]
    sent = sender(api, class_, sheet)

    def full(text: str) -> bytes:
        size = len(text.encode()) * len(columns)
        rows = MIB // (size + 100) if len(text) > 1 else ROWS // len(columns)
        return table(columns, *[[f"{row}{text}" for _ in columns] for row in range(rows)])

    watch = Stopwatch(sent(full(SHORT)))
    for kind, text in texts(kinds, JUST_SHORT_ENOUGH - 8):
        watch.judge(kind, sent(full(text)))


@pytest.mark.parametrize(("sheet", "kinds"), READ)
def test_no_heading_of_a_csv_file_is_worked_on_where_it_is_long(
    api: Any, class_: Class, sheet: str, kinds: Iterable[str]
) -> None:
    columns = uploads(class_)[sheet][2]
    sent = sender(api, class_, sheet)

    def headings(*texts: str) -> bytes:
        return table(["a title"], [*columns, *texts], [SHORT] * len(columns))

    watch = Stopwatch(sent(headings(SHORT)))
    for kind, text in texts(kinds, CELL):
        watch.judge(f"one of {kind}", sent(headings(text)))
    for kind, text in texts(kinds, JUST_SHORT_ENOUGH):
        watch.judge(f"many of {kind}", sent(headings(*[text] * (MIB // len(text.encode())))))


def test_no_line_of_a_csv_file_is_worked_on_where_it_is_long(api: Any, class_: Class) -> None:
    sent = sender(api, class_, "import")

    def line(text: str) -> bytes:
        return f"{text},{text}\n{text};{text}\n".encode()

    watch = Stopwatch(sent(line(SHORT)))
    others = {
        "commas": lambda size: "," * size,
        "open quote": lambda size: '"' + "a\n" * (size // 2),
        "separator": lambda size: "sep=;\r\n" * (size // 7),
        "letters of another set": lambda size: "Ã©" * (size // 4),
    }
    for kind, write in {**TEXTS, **others}.items():
        watch.judge(kind, sent(line(write(MIB // 4))))


def _cell(attributes: str, value: str) -> str:
    return f"<c {attributes}><v>{value}</v></c>"


def _row(cells: str, attributes: str = "") -> str:
    return f"<row {attributes}>{cells}</row>"


_HEADER = row_xml("first_name", "last_name", "admission_number", "dob")
_STYLES = (
    '<styleSheet xmlns="%s"><numFmts><numFmt numFmtId="164" formatCode="%s"/></numFmts>'
    '<cellXfs><xf/><xf numFmtId="164"/></cellXfs></styleSheet>'
)


def _titled(title: str) -> bytes:
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    return (
        f'<workbook xmlns="{MAIN}" xmlns:r="{relations}"><sheets><sheet name="{title}" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>"
    ).encode()


# Where a workbook has texts, by the XML around one.
IN_WORKBOOKS: dict[str, Callable[[str], bytes]] = {
    "heading": lambda text: handmade(sheet_xml(row_xml("first_name", text))),
    "title above": lambda text: handmade(sheet_xml(row_xml(text) + _HEADER + row_xml(SHORT))),
    "cell": lambda text: handmade(sheet_xml(_HEADER + row_xml(text, text, SHORT))),
    "shared string": lambda text: handmade(
        sheet_xml(_HEADER + _row(_cell('t="s"', "0") * 4)), strings_xml(f"<si><t>{text}</t></si>")
    ),
    "day": lambda text: handmade(sheet_xml(_HEADER + _row(_cell('t="d"', text) * 4))),
    "number": lambda text: handmade(sheet_xml(_HEADER + _row(_cell('t="n"', text) * 4))),
    "truth value": lambda text: handmade(sheet_xml(_HEADER + _row(_cell('t="b"', text)))),
    "error": lambda text: handmade(sheet_xml(_HEADER + _row(_cell('t="e"', text)))),
    "formula": lambda text: handmade(sheet_xml(_HEADER + _row(f'<c t="str"><f>{text}</f><v>a</v></c>'))),
    "reference": lambda text: handmade(sheet_xml(_HEADER + _row(_cell(f'r="{text}"', "1")))),
    "letters": lambda text: handmade(sheet_xml(_HEADER + _row(_cell(f'r="A{text}"', "1")))),
    "row": lambda text: handmade(sheet_xml(_HEADER + _row(_cell("", "1"), f'r="{text}"'))),
    "style": lambda text: handmade(sheet_xml(_HEADER + _row(_cell(f's="{text}"', "1")))),
    "type": lambda text: handmade(sheet_xml(_HEADER + _row(_cell(f't="{text}"', "1")))),
    "merged cells": lambda text: handmade(
        sheet_xml(_HEADER + row_xml(SHORT), after=f'<mergeCells><mergeCell ref="{text}"/></mergeCells>')
    ),
    "number format": lambda text: handmade(
        sheet_xml(_HEADER + _row(_cell('s="1"', "1"))), styles=(_STYLES % (MAIN, text)).encode()
    ),
    "sheet's name": lambda text: handmade(sheet_xml(_HEADER + row_xml(SHORT)), workbook=_titled(text)),
    "white space": lambda text: handmade(sheet_xml(_HEADER + text)),
}


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("part", IN_WORKBOOKS)
def test_no_text_of_a_workbook_is_worked_on_where_it_is_long(
    api: Any, class_: Class, part: str, kinds: Iterable[str]
) -> None:
    sent = sender(api, class_, "import")
    write_workbook = IN_WORKBOOKS[part]
    watch = Stopwatch(sent(write_workbook(SHORT)))
    for kind in kinds:
        if kind != "hidden":
            text = escape(TEXTS[kind](MIB - 2000), {'"': "&quot;"})
            watch.judge(f"{part}: {kind}", sent(write_workbook(text)))


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("label", ["Assessment ID", "Stored then 1", "Class", "other"])
def test_no_detail_of_a_sheet_is_worked_on_where_it_is_long(
    api: Any, class_: Class, label: str, kinds: Iterable[str]
) -> None:
    sent = sender(api, class_, "scores")

    def details(name: str, value: str) -> bytes:
        return handmade(sheet_xml(row_xml(name, value)), workbook=_titled("Details"))

    watch = Stopwatch(sent(details(label, SHORT)))
    for kind in kinds:
        text = escape(TEXTS[kind](MIB - 2000), {'"': "&quot;"})
        watch.judge(f"{label}: {kind}", sent(details(label, text)))
        watch.judge(f"a label of {kind}", sent(details(text, SHORT)))
