"""The register of a class in a term, to be printed: codes by day and part, weekly totals, times opened, averages.

It has the form of a school's register on paper: a block of columns for each week, closed days shaded and named, and
below the class the number of students present, boys and girls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property, partial
from itertools import groupby, pairwise

from openpyxl.utils import get_column_letter

from school_service.features.attendance.models import AFTERNOON, DAY, EXCUSED, LATE, MORNING, PRESENT
from school_service.sheets.report_writer import lines_of
from school_service.sheets.workbook_layout import (
    CellStyle,
    ColumnStyles,
    Marked,
    Page,
    Rows,
    Sheet,
    SheetLayout,
    Value,
    styled_alike,
)
from school_service.sheets.workbook_writer import LINE_HEIGHT

SHEET = "Register"
_SHORT = {MORNING: "M", AFTERNOON: "A"}
_BOYS, _GIRLS = "MALE", "FEMALE"
_SEX = {_BOYS: "M", _GIRLS: "F"}
_CENTS = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class PrintedDay:
    """A day of the term: its open parts, and its name, such as a holiday."""

    date: date
    open_parts: frozenset[str]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class PrintedMark:
    """The mark of a student in one part of a day, as it counts: the code, and its kind."""

    code: str
    kind: str

    @property
    def is_present(self) -> bool:
        """Whether the student was there, late or not."""
        return self.kind in (PRESENT, LATE)


Slot = tuple[date, str]
"""A part of a day."""


@dataclass(frozen=True, slots=True)
class PrintedStudent:
    """A row: the student, and their marks of submitted registers."""

    admission_number: str
    name: str
    gender: str | None
    marks: Mapping[Slot, PrintedMark]

    def present(self, slots: Collection[Slot]) -> int:
        """How often the student was present in these parts."""
        return sum(slot in self.marks and self.marks[slot].is_present for slot in slots)

    def absent(self, slots: Collection[Slot]) -> int:
        """How often the student was absent in these parts."""
        return sum(slot in self.marks and not self.marks[slot].is_present for slot in slots)

    def of_kind(self, kind: str) -> int:
        """How many of the marks are of a kind."""
        return sum(mark.kind == kind for mark in self.marks.values())


@dataclass(frozen=True)
class PrintedRegister:
    """A register to print: `parts` of a day are the school's, `taken` those with a submitted register."""

    lines: Sequence[str]
    page_header: tuple[str, str]
    parts: Sequence[str]
    days: Sequence[PrintedDay]
    taken: frozenset[Slot]
    students: Sequence[PrintedStudent]
    codes: Sequence[tuple[str, str]] = field(default=())
    """Each code with its meaning, for the key."""

    @cached_property
    def weeks(self) -> list[list[PrintedDay]]:
        """The days, by week."""
        return [list(days) for _, days in groupby(self.days, lambda day: _monday(day.date))]


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def register_sheet(register: PrintedRegister) -> Sheet:
    """Lay out the sheet of a printed register."""
    return _Layout(register).sheet()


# The columns

_SHADED, _CLOSED, _RED = "D9E2EC", "BCCCDC", "9C0006"
_CELL = CellStyle(size=10, lines="around", horizontal="center", vertical="center")
_LEFT = CellStyle(size=10, lines="around", vertical="center")
_HEADING = _CELL._replace(bold=True, fill=_SHADED)
_TITLE = styled_alike(CellStyle(bold=True, size=16, vertical="center"))
_LINE = styled_alike(CellStyle(size=11, vertical="center"))
_MARGINS = (0.7, 0.5)  # above and below a page, in inches
_PAGE_WIDTH = 16.54 - 2 * 0.3  # of A3 in landscape, between the margins, in inches
_PAGE_HEIGHT = 11.69 - sum(_MARGINS)
_POINT = 1 / 72  # of an inch
_FONT = "Verdana"  # programs have it or DejaVu Sans, which is as wide: to fill a page, widths must be known
_CHARACTER = 9.4 / 96  # inches: a digit of this font, in the size of a workbook
_LEAST_SCALE, _MOST_SCALE = 80, 140  # percent: letters of 10 points are printed in 8 points or more
_FILLED, _MOST_SPARE = 0.96, 12  # of the height of a page, and points of a row
_TITLE_HEIGHT, _LINE_HEIGHT, _HEADING_HEIGHT = 24, 16, 62
_NAME = "Name"


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the sheet: its three headings, its width, the style of its cells, and its value in each row."""

    headings: tuple[str, str, str]
    width: float
    of_student: Callable[[int, PrintedStudent], Value]
    of_row: Callable[[_SummaryRow], Value] = lambda _: None
    style: CellStyle = _CELL
    closes_week: bool = False
    closed_name: str | None = None
    """The name of a closed day, which then stands in the column."""
    is_closed: bool = False
    upright: bool = False
    places: bool = False


@dataclass(frozen=True, slots=True)
class _SummaryRow:
    """A row below the class: the number of some students present, or another value of slots."""

    label: str
    of_slots: Callable[[Sequence[Slot]], Value]
    in_each: bool = True
    """Whether the value stands below each slot, too."""


class _Layout:
    """The sheet while it is laid out."""

    def __init__(self, register: PrintedRegister) -> None:
        self.register = register
        # With those in which a student was marked in another arm, before they came.
        self.called = register.taken.union(slot for student in register.students for slot in student.marks)
        self.called_by_week = [
            [(day.date, part) for day in week for part in register.parts if (day.date, part) in self.called]
            for week in register.weeks
        ]
        self.identity = list(self._identity())
        self.weeks = [list(self._week(number, days)) for number, days in enumerate(register.weeks, 1)]
        self.totals = list(self._totals())
        self.columns = [*self.identity, *(column for week in self.weeks for column in week), *self.totals]

    def sheet(self) -> Sheet:
        register, columns = self.register, self.columns
        key = "   ".join(f"{code} = {name}" for code, name in register.codes)
        lines = [*register.lines, key]
        header = len(lines) + 3
        summary = [[column.of_row(row) for column in columns] for row in self._summary()]
        widths = [column.width for column in columns]
        students = [
            [column.of_student(number, student) for column in columns]
            for number, student in enumerate(register.students, 1)
        ]
        named = self._with_names(students)
        lines_of_names = self._lines_of_names()
        heights = (
            _TITLE_HEIGHT
            + _LINE_HEIGHT * (len(lines) + 1)
            + _HEADING_HEIGHT
            + LINE_HEIGHT
            * (sum(lines_of_names[student.name] for student in register.students) + len(summary))
        )
        scale, breaks = self._pages(heights * _POINT)
        height = LINE_HEIGHT + self._spare(scale, heights, len(students) + len(summary))
        body = tuple(_cells(column) for column in columns)
        last = tuple(_summary_cells(column) for column in columns)
        layout = SheetLayout(
            SHEET,
            (
                (_TITLE,),
                (_LINE,),
                tuple(_heading(column, 0) for column in columns),
                tuple(_heading(column, 1) for column in columns),
                tuple(_heading(column, 2) for column in columns),
                body,
                last,
            ),
            Page(
                landscape=True,
                a3=True,
                margins=_MARGINS,
                repeated_columns=len(self.identity),
                scale=scale,
                breaks=breaks,
            ),
            header=header,
            frozen_columns=len(self.identity),
            header_rows=3,
            font=_FONT,
        )
        rows = (
            Rows([[line] for line in lines[:1]], height=_TITLE_HEIGHT),
            Rows([[line] for line in lines[1:]], height=_LINE_HEIGHT),
            *(
                Rows([[column.headings[level] for column in columns]], height=height)
                for level, height in enumerate((_LINE_HEIGHT, _LINE_HEIGHT, _HEADING_HEIGHT))
            ),
            Rows(named, lambda text, _: lines_of_names.get(text, 1), height),
            Rows(summary, height=height),
        )
        return Sheet(
            layout,
            widths,
            rows,
            page_header=register.page_header,
            merged=[*self._merged(header, len(students))],
        )

    def _lines_of_names(self) -> dict[str, int]:
        """How many lines the name of each student takes: its letters are as wide as the digits of the workbook."""
        width = next(column.width for column in self.identity if column.headings[-1] == _NAME)
        return {student.name: lines_of(student.name, width, spare=1) for student in self.register.students}

    def _identity(self) -> Iterator[_Column]:
        longest = max((len(student.name) for student in self.register.students), default=0)
        yield _Column(("", "", "No."), 4, lambda number, _: number)
        yield _Column(
            ("", "", "Admission number"),
            max(
                12,
                *(len(student.admission_number) + 1 for student in self.register.students),
                0,
            ),
            lambda _, student: student.admission_number,
            style=_LEFT,
        )
        yield _Column(
            ("", "", _NAME),
            min(max(longest + 1, 18), 34),
            lambda _, student: student.name,
            lambda row: row.label,
            style=_LEFT._replace(wrapped=True),
        )
        yield _Column(
            ("", "", "Sex"),
            4,
            lambda _, student: _SEX.get(student.gender or ""),
            closes_week=True,
        )

    def _week(self, number: int, days: Sequence[PrintedDay]) -> Iterator[_Column]:
        first, last = days[0].date, days[-1].date
        week = f"Week {number}: {_span(first, last)}"
        slots = self.called_by_week[number - 1]
        for day in days:
            for position, part in enumerate(self.register.parts):
                slot = (day.date, part)
                yield _Column(
                    (week, *_day_headings(day.date, part, first=position == 0)),
                    3.1 if len(self.register.parts) > 1 else 5.6,
                    partial(_mark_of, slot),
                    partial(self._present_in, slot),
                    is_closed=part not in day.open_parts,
                    closed_name=day.name if part not in day.open_parts else None,
                )
                week = ""
        yield _Column(
            ("", "", "Present"),
            5.2,
            lambda _, student: student.present(slots) if slots else None,
            lambda row: row.of_slots(slots) if slots else None,
            style=_CELL._replace(fill="F0F4F8"),
            upright=True,
        )
        yield _Column(
            ("", "", "Absent"),
            4.2,
            lambda _, student: student.absent(slots) if slots else None,
            style=_CELL._replace(fill="F0F4F8"),
            upright=True,
            closes_week=True,
        )

    def _present_in(self, slot: Slot, row: _SummaryRow) -> Value:
        return row.of_slots([slot]) if row.in_each and slot in self.called else None

    def _totals(self) -> Iterator[_Column]:
        slots = [slot for week in self.called_by_week for slot in week]
        figures: tuple[tuple[str, Callable[[PrintedStudent], Value]], ...] = (
            ("Times opened", lambda student: len(student.marks)),
            ("Present", lambda student: student.present(student.marks.keys())),
            ("of them late", lambda student: student.of_kind(LATE)),
            ("Absent", lambda student: student.absent(student.marks.keys())),
            ("of them excused", lambda student: student.of_kind(EXCUSED)),
            ("Percent", _percent),
        )
        for number, (heading, figure) in enumerate(figures):
            yield _Column(
                ("Term" if number == 0 else "", "", heading),
                7.6 if heading == "Percent" else 5.8,
                partial(_figure_of, figure),
                (lambda row: row.of_slots(slots)) if heading == "Present" else (lambda _: None),
                style=_CELL._replace(bold=heading in ("Times opened", "Present", "Absent")),
                upright=True,
                places=heading == "Percent",
                closes_week=number == len(figures) - 1,
            )

    def _summary(self) -> Iterator[_SummaryRow]:
        students = self.register.students
        boys = [student for student in students if student.gender == _BOYS]
        girls = [student for student in students if student.gender == _GIRLS]
        for label, of in (("Boys present", boys), ("Girls present", girls), ("Present", students)):
            yield _SummaryRow(label, partial(_present_in_all, of))
        yield _SummaryRow("Times opened", self._opened)
        yield _SummaryRow("Average present", self._average, in_each=False)

    def _opened(self, slots: Sequence[Slot]) -> int:
        """How often the class was called."""
        return sum(slot in self.register.taken for slot in slots)

    def _average(self, slots: Sequence[Slot]) -> Value:
        """How many were present on average when the class was called."""
        taken = [slot for slot in slots if slot in self.register.taken]
        return _average(_present_in_all(self.register.students, taken), len(taken))

    def _with_names(self, rows: list[list[Value]]) -> list[list[Value]]:
        """Write the name of a closed day into the first row of its columns, which are shown as one cell."""
        if not rows:
            return rows
        for column, *_ in self._closed_blocks():
            if self.columns[column].closed_name:
                rows[0][column] = self.columns[column].closed_name
        return rows

    def _closed_blocks(self) -> Iterator[tuple[int, int]]:
        """Find the first and the last column of consecutive closed days of one name in a week."""
        position = len(self.identity)
        for week in self.weeks:
            places = range(position, position + len(week))
            for (closed, name), block in groupby(
                places, lambda place: (self.columns[place].is_closed, self.columns[place].closed_name)
            ):
                days = list(block)
                if closed and name and not self._has_marks(days):
                    yield days[0], days[-1]
            position += len(week)

    def _has_marks(self, places: Sequence[int]) -> bool:
        return any(
            self.columns[place].of_student(0, student) is not None
            for student in self.register.students
            for place in places
        )

    def _merged(self, header: int, students: int) -> Iterator[str]:
        """Name the cells to merge: the weeks, the days of several parts, and closed days."""
        position = len(self.identity) + 1
        for week in self.weeks:
            yield _range(position, header - 2, position + len(week) - 1, header - 2)
            parts = len(self.register.parts)
            if parts > 1:
                for day in range(position, position + len(week) - 2, parts):
                    yield _range(day, header - 1, day + parts - 1, header - 1)
            position += len(week)
        if len(self.totals) > 1:
            yield _range(position, header - 2, position + len(self.totals) - 1, header - 2)
        if students:
            for first, last in self._closed_blocks():
                if first != last or students > 1:
                    yield _range(first + 1, header + 1, last + 1, header + students)

    def _pages(self, height: float) -> tuple[int, tuple[int, ...]]:
        """Find the scale of the print, and the last column of each page: weeks are not divided."""
        names, totals = _inches(self.identity), _inches(self.totals)
        weeks = [_inches(week) for week in self.weeks]
        fitting = _PAGE_WIDTH * 100 / _LEAST_SCALE
        whole = names + sum(weeks) + totals
        pages = 1
        while pages < len(weeks) and self._widest(pages, names, weeks, totals) > fitting:
            pages += 1
        widest = self._widest(pages, names, weeks, totals) if weeks else whole
        scale = min(_MOST_SCALE, int(100 * _PAGE_WIDTH / widest))
        high = int(100 * _PAGE_HEIGHT / height)
        if high >= _LEAST_SCALE:
            scale = min(scale, high)
        return scale, self._ends(pages)

    def _spare(self, scale: int, heights: float, rows: int) -> int:
        """Find by how many points each row may be higher, so that a small class fills its page."""
        room = _FILLED * _PAGE_HEIGHT / _POINT * 100 / scale - heights
        return max(0, min(int(room / rows), _MOST_SPARE))

    def _divided(self, pages: int) -> list[range]:
        """Divide the weeks into so many pages, the first with no fewer weeks than the last."""
        number = len(self.weeks)
        starts = [-(-number * page // pages) for page in range(pages + 1)]
        return [range(first, last) for first, last in pairwise(starts)]

    def _widest(self, pages: int, names: float, weeks: Sequence[float], totals: float) -> float:
        of_pages = [names + sum(weeks[week] for week in divided) for divided in self._divided(pages)]
        of_pages[-1] += totals
        return max(of_pages)

    def _ends(self, pages: int) -> tuple[int, ...]:
        columns = [len(week) for week in self.weeks]
        return tuple(
            len(self.identity) + sum(columns[: divided.stop]) for divided in self._divided(pages)[:-1]
        )


def _inches(columns: Sequence[_Column]) -> float:
    return sum(column.width for column in columns) * _CHARACTER


def _range(first_column: int, first_row: int, last_column: int, last_row: int) -> str:
    first, last = get_column_letter(first_column), get_column_letter(last_column)
    return f"{first}{first_row}:{last}{last_row}"


def _heading(column: _Column, level: int) -> ColumnStyles:
    style = _HEADING._replace(wrapped=level == 2, size=10)
    if level == 2 and column.upright:
        style = style._replace(upwards=True)
    if column.is_closed:
        style = style._replace(fill=_CLOSED)
    if column.closes_week:
        style = style._replace(lines="closing")
    return styled_alike(style)


def _cells(column: _Column) -> ColumnStyles:
    style = column.style._replace(lines="closing" if column.closes_week else "around")
    if column.is_closed:
        style = style._replace(bold=True, size=12, fill=_CLOSED, upwards=True)
    number = style._replace(number_format="0.00" if column.places else "0")
    return ColumnStyles(
        text=style,
        number=number,
        whole=style._replace(number_format="0"),
        day=style,
        marked=style._replace(bold=True, colour=_RED),
    )


def _summary_cells(column: _Column) -> ColumnStyles:
    style = column.style._replace(
        bold=True,
        fill=_CLOSED if column.is_closed else _SHADED,
        lines="closing" if column.closes_week else "around",
    )
    return ColumnStyles(
        text=style,
        number=style._replace(number_format="0.0"),
        whole=style._replace(number_format="0"),
        day=style,
        marked=style,
    )


def _day_headings(day: date, part: str, *, first: bool) -> tuple[str, str]:
    """Give the headings of a part of a day: above the parts of one day stands the day once."""
    if part == DAY:
        return f"{day:%a}", str(day.day)
    return (f"{day:%a} {day.day}" if first else ""), _SHORT[part]


def _mark_of(slot: Slot, _number: int, student: PrintedStudent) -> Value:
    mark = student.marks.get(slot)
    if mark is None:
        return None
    return mark.code if mark.is_present else Marked(mark.code)


def _figure_of(figure: Callable[[PrintedStudent], Value], _number: int, student: PrintedStudent) -> Value:
    return figure(student)


def _present_in_all(students: Sequence[PrintedStudent], slots: Sequence[Slot]) -> int:
    return sum(student.present(slots) for student in students)


def _percent(student: PrintedStudent) -> Decimal | None:
    return _average(100 * student.present(student.marks.keys()), len(student.marks))


def _average(total: int, times: int) -> Decimal | None:
    return (Decimal(total) / times).quantize(_CENTS, ROUND_HALF_UP) if times else None


def _span(first: date, last: date) -> str:
    if first.month == last.month:
        return f"{first.day}\N{EN DASH}{last.day} {last:%b}"
    return f"{first.day} {first:%b} \N{EN DASH} {last.day} {last:%b}"
