"""The workbook of a broadsheet: the results of a batch, to be printed and hung up in the staff room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from school_service.core.errors import NotFound
from school_service.core.read_models import fetch_made
from school_service.core.texts import full_name, position_text, term_title
from school_service.features.audit.service import EXPORT, audit_change
from school_service.features.results.figures.answers import broadsheet
from school_service.features.results.figures.broadsheets import passes
from school_service.features.results.figures.service import check_broadsheet
from school_service.features.results.models import INCOMPLETE, PROVISIONAL
from school_service.features.school.models import TERMS
from school_service.features.scores.models import BATCH, BOTH, COHORT
from school_service.printing.wording import long_date, mark
from school_service.sheets.report_writer import Report, ReportColumn, write_report
from school_service.sheets.workbook_layout import Marked, Value

BROADSHEET, SUBJECTS = "Broadsheet", "Subjects"
ON_A4 = 10  # subjects; more are printed on A3
NOT_TAKEN, NOT_COMPLETE = "–", "inc"  # noqa: RUF001 -- a dash, as tables have it

_SIGNED_BY = ("Form teacher", "Principal")

_POSITIONS = {
    BATCH: ReportColumn("Position", least=9),
    COHORT: ReportColumn("Position in all arms", least=10),
}

_PERSON = (
    ReportColumn("No.", least=5),
    ReportColumn("Admission number", least=12, most=24, text=True),
    ReportColumn("Name", least=16, most=40, text=True),
)


def download(*, batch: UUID, **asked: Any) -> tuple[str, bytes]:
    """Write the broadsheet of a batch in a term, or in a session, as a workbook: the file's name, and the workbook.

    It is the one `asked` for, by the arguments of `answers.broadsheet`. Raises Invalid, and NotFound if nothing of a
    session is published.
    """
    sheet = fetch_made(broadsheet(batch=batch, **asked, printed=True))
    if sheet is None:
        check_broadsheet(batch=batch, **asked)
        raise NotFound("No such broadsheet.")
    audit_change(EXPORT, batch, new={"sheet": "broadsheet", "students": len(sheet["students"])})
    name = f"Broadsheet {sheet['class_name']} {_titled(sheet, ' ')}.xlsx"
    return name, write_report([_broadsheet(sheet), _subjects(sheet)])


def _broadsheet(sheet: Mapping[str, Any]) -> Report:
    subjects, places, average_places = sheet["subjects"], sheet["places"], sheet["average_places"]
    # A session's shows the averages of its terms, too.
    terms = () if sheet["term"] else TERMS
    columns = [
        *_PERSON,
        *(ReportColumn(subject["code"], least=7, most=12, places=places) for subject in subjects),
        *(ReportColumn(f"{term.title()} term", least=9, places=average_places) for term in terms),
        ReportColumn("Total", least=9, places=places),
        ReportColumn("Average", least=9, places=average_places),
        ReportColumn("Grade", least=7, most=16),
        *(_POSITIONS[name] for name in _shown_positions(sheet)),
        ReportColumn("Subjects graded", least=10),
    ]
    rows = [_row(number, student, sheet, terms) for number, student in enumerate(sheet["students"], 1)]
    return Report(
        BROADSHEET,
        [*_lines(sheet)],
        columns,
        rows,
        [*_summary(sheet, terms)],
        frozen=len(_PERSON),
        large=len(subjects) > ON_A4,
        page_header=(
            f"{sheet['school_name']}, {sheet['class_name']}",
            _page_note(sheet, _titled(sheet)),
        ),
        key=_key(sheet),
        signed_by=_SIGNED_BY,
    )


def _titled(sheet: Mapping[str, Any], between: str = ", ") -> str:
    return term_title(sheet["term_name"], sheet["session"]["name"], between)


def _key(sheet: Mapping[str, Any]) -> list[str]:
    """Explain the codes of the subjects and the signs in the cells."""
    codes = (
        f"{subject['code']} = {subject['name']}"
        for subject in sheet["subjects"]
        if subject["code"] != subject["name"]
    )
    low = (
        []
        if sheet["pass_mark"] is None
        else [f"bold, slanting: below the pass mark of {mark(sheet['pass_mark'])}"]
    )
    shared = ["= behind a position: place shared with others"] if _shown_positions(sheet) else []
    return [*codes, f"{NOT_TAKEN} = not taken", f"{NOT_COMPLETE} = incomplete", *low, *shared]


def _shown_positions(sheet: Mapping[str, Any]) -> list[str]:
    """Name the positions shown by the school: in the arm, in all arms."""
    return [name for name in _POSITIONS if sheet["positions"] in (name, BOTH)]


def _lines(sheet: Mapping[str, Any]) -> Iterator[str]:
    yield sheet["school_name"]
    yield f"Broadsheet of {sheet['class_name']}, {_titled(sheet)}"
    is_live = sheet["state"] == PROVISIONAL
    day = long_date(sheet["moment" if is_live else "published_at"], sheet["time_zone"])
    yield (
        f"{PROVISIONAL}: as of {day}" if is_live else f"{sheet['state']}: version {sheet['version']} of {day}"
    )


def _page_note(sheet: Mapping[str, Any], titled: str) -> str:
    state = PROVISIONAL if sheet["state"] == PROVISIONAL else f"{sheet['state']}, version {sheet['version']}"
    return f"{state}, {titled}"


def _row(number: int, row: Mapping[str, Any], sheet: Mapping[str, Any], terms: Sequence[str]) -> list[Value]:
    student = row["student"]
    positions = {
        BATCH: position_text(row["position"], tied=row["tied"]),
        COHORT: position_text(row["cohort_position"], tied=row["cohort_tied"]),
    }
    return [
        number,
        student["admission_number"],
        full_name(student, sheet["name_order"]),
        *(_cell(row["results"].get(subject["id"]), sheet["pass_mark"]) for subject in sheet["subjects"]),
        *(_number(row["averages"][term]) for term in terms),
        _number(row["total"]),
        _number(row["average"]),
        row["grade"] or "",
        *(positions[name] for name in _shown_positions(sheet)),
        row["graded"],
    ]


def _cell(result: Mapping[str, Any] | None, pass_mark: Decimal | None) -> Value:
    if result is None:
        return NOT_TAKEN
    if result["status"] == INCOMPLETE:
        return NOT_COMPLETE
    percent = Decimal(result["percent"])
    return percent if passes(percent, pass_mark) else Marked(percent)


def _summary(sheet: Mapping[str, Any], terms: Sequence[str]) -> Iterator[list[Value]]:
    of_class = sheet["summary"]
    for label, name, figure in (
        ("Average", "average", of_class["average"]),
        ("Highest", "highest", of_class["highest"]),
        ("Lowest", "lowest", of_class["lowest"]),
        ("Passes", "passes", of_class["passed"]),
    ):
        figures = [subject[name] for subject in sheet["subjects"]]
        shown = [value if name == "passes" else _number(value) for value in (*figures, figure)]
        after = [None] * (2 + len(_shown_positions(sheet)))
        yield [None, None, label, *shown[:-1], *(None for _ in terms), None, shown[-1], *after]


def _subjects(sheet: Mapping[str, Any]) -> Report:
    places = sheet["places"]
    columns = (
        ReportColumn("Code", least=8, most=24, text=True),
        ReportColumn("Subject", least=20, most=50, text=True),
        ReportColumn("Teacher", least=20, most=40, text=True),
        ReportColumn("Takers", least=9),
        ReportColumn("Average", least=9, places=sheet["average_places"]),
        ReportColumn("Lowest", least=9, places=places),
        ReportColumn("Highest", least=9, places=places),
        ReportColumn("Passes", least=9),
        ReportColumn("Submitted by", least=20, most=40, text=True),
    )
    rows = [
        [
            subject["code"],
            subject["name"],
            ", ".join(subject["teachers"]),
            subject["takers"],
            *(_number(subject[name]) for name in ("average", "lowest", "highest")),
            subject["passes"],
            subject["submitted_by"] or "",
        ]
        for subject in sheet["subjects"]
    ]
    return Report(
        SUBJECTS, (), columns, rows, page_header=(sheet["school_name"], _page_note(sheet, _titled(sheet)))
    )


def _number(figure: Decimal | int | None) -> Decimal | None:
    """Give a figure as a Decimal, written with the places of its column: JSON has some of them as whole numbers."""
    return None if figure is None else Decimal(figure)
