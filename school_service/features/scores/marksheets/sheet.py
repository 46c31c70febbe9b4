"""The mark sheet of a subject: an arm's students and all assessments of a term, downloaded and uploaded.

Its sheet Held, which is hidden, has the assessment of each column and the mark of each cell: cells that differ from it
are changed, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from school_service.auth.principal import Principal
from school_service.core.columns import MIN_POINTS
from school_service.core.database import current_school
from school_service.core.errors import Incomplete, Invalid, InvalidRows
from school_service.core.read_models import fetch_rows
from school_service.core.statements import execute
from school_service.core.texts import full_name, plain_file_name, term_title
from school_service.features.audit.service import EXPORT, Change, PastChange, audit_change, audit_changes
from school_service.features.people.students.sheet_rows import (
    ADMISSION_NUMBER,
    NAME,
    SERIAL_NUMBER,
    STUDENT_COLUMNS,
    change_of,
    not_in_sheet,
    without_serial_number,
)
from school_service.features.people.students.sheet_uploads import ClassSheetUpload, Replaced
from school_service.features.school.cohorts.class_sheets import find_batch, find_term
from school_service.features.scores.marksheets import reads
from school_service.features.scores.marksheets.marks import (
    Cell,
    Entering,
    SubjectMarks,
    load_marks,
)
from school_service.features.scores.models import ABSENT, EXCUSED
from school_service.features.scores.scoresheets.class_scores import (
    ABSENCE,
    SCORE,
    STATUSES,
    Mark,
    Taker,
    mark_text,
    score_errors,
)
from school_service.printing.archives import zip_of
from school_service.sheets.columns import CellType, Column, NumberRange
from school_service.sheets.downloads import CHANGED_DETAILS, download_details, read_download
from school_service.sheets.row_errors import UNKNOWN, RowError
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import (
    ANY_NUMBER,
    Row,
    SheetContent,
    check_details,
    find_sheet,
    read_details,
    read_sheet,
)
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.uploads import RowCounts
from tenants.names import composed

SHEET, HELD = "Marks", "Held"
SUBJECT, BATCH, TERM = "Subject", "Batch", "Term"
_HEADING, _ASSESSMENT, _MARK, _ENTRY = "heading", "assessment", "mark", "entry"
_WORDS = tuple(STATUSES)
_PEOPLE = (STUDENT_COLUMNS[0], Column(NAME, locked=True, width=30, heading="Name"))
_OF_HELD = (
    Column(_HEADING, most=200),
    Column(_ASSESSMENT, required=True),
    Column(ADMISSION_NUMBER),
    Column(_MARK, CellType.NUMBER, rule=NumberRange(MIN_POINTS, MIN_POINTS, words=_WORDS)),
    Column(_ENTRY),
)


def download(*, cohort_subject_id: UUID, batch: UUID, term: str) -> tuple[str, bytes]:
    """Write a mark sheet to fill in: the file's name and the workbook.

    It has a row for each student of the batch with the subject, and a column for each assessment of the term, with the
    stored marks. Raises NotFound, and Invalid for an unknown batch or term and one of another cohort or session.
    """
    marks = load_marks(cohort_subject_id=cohort_subject_id, batch=batch, term=term, sheet=True)
    audit_change(EXPORT, cohort_subject_id, new=_exported(marks))
    return _file_name(marks), _workbook(marks, current_school().name)


def download_of_arm(*, batch: UUID, term: str) -> tuple[str, Any]:
    """Write the mark sheets of an arm in a term, of each subject with students and an assessment: a zip.

    Raises Invalid for an unknown batch or term, and Incomplete if there is none.
    """
    sheets = [SubjectMarks.of(row) for row in fetch_rows(reads.sheets_of_arm(batch, term))]
    if not sheets:
        arm = find_batch(batch, field="batch")
        of_term = find_term(term, arm)
        raise Incomplete(
            f"There is nothing to mark: no subject of {arm.class_name} has an assessment in {of_term.display_name}."
        )
    audit_changes(EXPORT, [Change(UUID(marks.about["id"]), None, _exported(marks)) for marks in sheets])
    about, school = sheets[0].about, current_school().name
    name = f"{_class(about)} {_term(about, ' ')} mark sheets.zip"
    return name, lambda: zip_of((*_stamped(marks), _workbook(marks, school)) for marks in sheets)


def _exported(marks: SubjectMarks) -> dict[str, Any]:
    return {"sheet": "marks", "students": len(marks.students)}


def _stamped(marks: SubjectMarks) -> tuple[str, tuple[int, ...]]:
    moment = datetime.fromisoformat(marks.about["moment"]).astimezone(ZoneInfo(marks.about["time_zone"]))
    return plain_file_name(_file_name(marks)), moment.timetuple()[:6]


def _class(about: Mapping[str, Any]) -> str:
    return f"{about['classroom']} {about['arm']}"


def _term(about: Mapping[str, Any], between: str = ", ") -> str:
    return term_title(about["term"], about["session"], between)


def _file_name(marks: SubjectMarks) -> str:
    about = marks.about
    return f"{about['subject']} {_class(about)} {_term(about, ' ')}.xlsx"


def _workbook(marks: SubjectMarks, school: str) -> bytes:
    about = marks.about
    rows = [
        {
            SERIAL_NUMBER.name: number,
            ADMISSION_NUMBER: student.admission_number,
            NAME: full_name(student._asdict(), about["name_order"]),
            **{
                assessment.heading: marks.mark_of(student.id, assessment.id)
                for assessment in marks.assessments.values()
            },
        }
        for number, student in enumerate(marks.students, 1)
    ]
    columns = [
        Column(
            assessment.heading,
            CellType.NUMBER,
            required=True,
            rule=NumberRange(MIN_POINTS, assessment.total_points, words=_WORDS),
            width=12,
        )
        for assessment in marks.assessments.values()
    ]
    downloaded, hidden = download_details(datetime.fromisoformat(about["moment"]), about["time_zone"], {})
    page_header = (f"{school}\n{_class(about)}", f"{about['subject']}\n{_term(about)}")
    return write_workbook(
        [Table(SHEET, [SERIAL_NUMBER, *_PEOPLE, *columns], rows), _held_table(marks)],
        [*_details(about, school), downloaded],
        hidden=hidden,
        page_header=page_header,
        signed_by="Subject teacher",
    )


def _held_table(marks: SubjectMarks) -> Table:
    rows: list[dict[str, Any]] = [
        {_HEADING: assessment.heading, _ASSESSMENT: assessment.id}
        for assessment in marks.assessments.values()
    ]
    for student in marks.students:
        for assessment in marks.assessments:
            mark = marks.mark_of(student.id, assessment)
            if mark is not None:
                entry, _ = marks.entries.get((student.id, assessment), (None, None))
                number = student.admission_number
                rows.append({_ASSESSMENT: assessment, ADMISSION_NUMBER: number, _MARK: mark, _ENTRY: entry})
    return Table(HELD, [replace(column, locked=True) for column in _OF_HELD], rows, hidden=True)


def _details(about: Mapping[str, Any], school: str) -> list[tuple[str, str]]:
    return [
        ("School", school),
        (SUBJECT, about["subject"]),
        ("Teacher", ", ".join(about["teachers"])),
        ("Class", _class(about)),
        ("Session", about["session"]),
        (TERM, about["term"]),
        (f"{SUBJECT} ID", about["id"]),
        (f"{BATCH} ID", about["batch_id"]),
        (f"{TERM} ID", about["term_id"]),
    ]


class Held(NamedTuple):
    """The contents of a sheet at its download: assessments' headings, and each mark with the id of its entry."""

    headings: dict[str, str]
    marks: dict[tuple[str, str], tuple[Mark, str | None]]

    @classmethod
    def read(cls, workbook: SheetFile) -> Held | None:
        """Read the sheet Held, by admission number and assessment; None without one. Raises Invalid."""
        if find_sheet(workbook, HELD) is None:
            return None
        try:
            content = read_sheet(workbook, HELD, _OF_HELD)
        except InvalidRows:
            raise Invalid(CHANGED_DETAILS) from None
        if content.errors:
            raise Invalid(CHANGED_DETAILS)
        held = cls({}, {})
        for row in content.rows:
            values = row.values
            assessment = str(values.get(_ASSESSMENT, "")).lower()
            if ADMISSION_NUMBER in values:
                key = composed(str(values[ADMISSION_NUMBER])), assessment
                held.marks[key] = values.get(_MARK), values.get(_ENTRY)
            elif _HEADING in values:
                held.headings[assessment] = str(values[_HEADING])
        return held


@dataclass(kw_only=True)
class MarkUpload(ClassSheetUpload[Taker]):
    """The upload of a mark sheet: its changed cells, all or none; counts rows as new, changed, unchanged, blank.

    A cell is changed where it differs from the download; in a sheet without the sheet Held, where it is filled in. A
    score takes an absence away. `dry_run` stores nothing, and answers the changes to come, too, and the students
    missing in the sheet. Raises NotFound, Invalid for anything but a sheet of this subject, batch and term, InvalidRows
    naming every bad cell, RowsScored for an absence beside a score, RowsChanged for marks changed since the download,
    unless `force` replaces them, RowsForbidden for marks taken away without the right to delete, and Conflict if a cell
    changes submitted results. `assessments` are the ids of its columns, by their headings in the sheet.
    """

    cohort_subject_id: UUID
    batch: UUID
    term: str
    principal: Principal
    marks: SubjectMarks = field(init=False)
    held: Held | None = field(init=False)
    assessments: dict[str, str] = field(init=False)

    def find_record(self) -> None:
        self.marks = load_marks(cohort_subject_id=self.cohort_subject_id, batch=self.batch, term=self.term)

    def read_details(self, workbook: SheetFile) -> None:
        details, about = read_details(workbook) or {}, self.marks.about
        for record, name in ((SUBJECT, "id"), (BATCH, "batch_id"), (TERM, "term_id")):
            check_details(details, record, UUID(about[name]))
        self.download, self.held = read_download(details), Held.read(workbook)

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        self.assessments = self._columns()
        rule = NumberRange(MIN_POINTS, MIN_POINTS, words=_WORDS)
        columns = [Column(heading, CellType.NUMBER, rule=rule) for heading in self.assessments]
        content = without_serial_number(read_sheet(workbook, SHEET, [*_PEOPLE, *columns]))
        content.errors[:] = map(_with_words, content.errors)
        return content

    def _columns(self) -> dict[str, str]:
        """Find the headings of the sheet: of its download, and of assessments that it did not have."""
        then = self.held.headings if self.held else {}
        headings = {heading: assessment for assessment, heading in then.items()}
        for assessment in self.marks.assessments.values():
            if assessment.id not in then:
                headings.setdefault(assessment.heading, assessment.id)
        return headings

    def lock(self) -> None:
        self.marks = load_marks(
            cohort_subject_id=self.cohort_subject_id, batch=self.batch, term=self.term, lock=True
        )

    def match(self, content: SheetContent) -> list[tuple[Taker, Row]]:
        self.letters = content.letters
        changed = {
            _number(row)
            for row in content.rows
            if any(self._is_changed(row, heading) for heading in content.letters)
        }
        # All rows of a student: one that is there twice is a mistake.
        rows = [row for row in content.rows if _number(row) in changed]
        numbers = {row.number for row in rows}
        errors = [error for error in content.errors if error.row in numbers]
        self.match_class(
            SheetContent(rows, errors, content.letters, content.ignored),
            self.marks.students,
            not_in_class="does not take the subject in this arm",
            validate=self._errors,
        )
        there = {_number(row): row for row in content.rows}
        every = [
            (student, there[student.admission_number])
            for student in self.marks.students
            if student.admission_number in there
        ]
        if self.dry_run:
            self.answer["not_in_sheet"] = not_in_sheet(self.marks.students, every)
        return every

    def _is_changed(self, row: Row, heading: str) -> bool:
        assessment = self.assessments.get(heading)
        if assessment is None:
            return False
        if heading in row.bad:
            return True
        mark, then = _mark(row, heading), self._then(row, assessment)
        return mark is not None if then is None else mark != then[0]

    def _then(self, row: Row, assessment: str) -> tuple[Mark, str | None] | None:
        """Find the mark of a cell at the download, and its entry; None where it is unknown."""
        if self.held is None or assessment not in self.held.headings:
            return None
        return self.held.marks.get((_number(row), assessment), (None, None))

    def _errors(self, row: Row) -> Iterator[RowError]:
        for heading, assessment in self.assessments.items():
            if not self._is_changed(row, heading) or heading in row.bad:
                continue
            mark, assessed = _mark(row, heading), self.marks.assessments.get(assessment)
            if assessed is None:
                problem = "is of an assessment that is not there any more"
                written = mark_text(mark) or "nothing"
                yield RowError(row.number, heading, UNKNOWN, problem, written, "download the sheet again")
            elif isinstance(mark, Decimal):
                of_score = Row(row.number, {SCORE: mark}, frozenset())
                for error in score_errors(of_score, assessed.total_points):
                    yield replace(error, column=heading)

    def _cells(self, matched: Sequence[tuple[Taker, Row]]) -> Iterator[Cell]:
        for student, row in matched:
            for heading, assessment in self.assessments.items():
                if not self._is_changed(row, heading):
                    continue
                mark, then = _mark(row, heading), self._then(row, assessment)
                values = {} if mark is None else {SCORE if isinstance(mark, Decimal) else ABSENCE: mark}
                yield Cell(
                    self.marks.taker(student, assessment),
                    Row(row.number, values, frozenset()),
                    assessment,
                    heading,
                    then is not None,
                    *(then or (None, None)),
                )

    def store(self, matched: list[tuple[Taker, Row]]) -> RowCounts:
        entering = Entering(
            marks=self.marks, cells=list(self._cells(matched)), clears=lambda row, _name: not row.values
        )
        entering.judge(self.principal, letters=self.letters)
        unexpected = entering.unexpected() if self.held else self._changed_since(entering)
        forced: dict[str, set[str]] = {}
        of_cell = {(cell.row.number, cell.column): cell for cell in entering.changed}
        for each in self.refuse(unexpected):
            cell = of_cell[each.row, each.column]
            forced.setdefault(cell.assessment, set()).add(cell.taker.id)
        self.answer["totals"] = self.marks.totals(entering.after())
        if self.dry_run:
            self.answer["changes"] = [
                change_of(cell.row, cell.taker, cell.column, cell.stored, cell.new)
                for cell in entering.changed
            ]
        else:
            moment = self.download.moment if self.download else None
            writes = entering.storing(sheet=self.file_name, downloaded=moment, forced=forced)
            if writes:
                execute(*writes)
        return self._counts(matched, entering)

    def _changed_since(self, entering: Entering) -> list[tuple[Replaced, PastChange | None]]:
        """Find the marks that were changed after the moment of the download, of a sheet that says no more than that."""
        if self.download is None:
            return []
        moment = datetime.fromisoformat(self.download.moment)
        return [
            (each, last)
            for each, last in entering.replacing()
            if last is not None and datetime.fromisoformat(last.at) > moment
        ]

    def _counts(self, matched: Sequence[tuple[Taker, Row]], entering: Entering) -> RowCounts:
        """Count the rows: new are those that change nothing that is stored."""
        changed: dict[int, list[Cell]] = {}
        for cell in entering.changed:
            changed.setdefault(cell.row.number, []).append(cell)
        created = sum(all(cell.stored is None for cell in cells) for cells in changed.values())
        filled = sum(
            row.number not in changed and any(heading in row.values for heading in self.assessments)
            for _, row in matched
        )
        return RowCounts(created, len(changed) - created, filled)


def _number(row: Row) -> str:
    return composed(str(row.values.get(ADMISSION_NUMBER, "")))


def _mark(row: Row, heading: str) -> Mark:
    mark = row.values.get(heading)
    return STATUSES[mark] if isinstance(mark, str) else mark


def _with_words(error: RowError) -> RowError:
    """Say how an absence is written, where a cell has another word for it, or no number."""
    word = (error.value or "").strip(" .").casefold()
    status = _OTHER_WORDS.get(word)
    if status is not None:
        return replace(error, remedy=f"write {status}, or leave the cell blank")
    return replace(error, remedy=_ANY_MARK) if error.remedy == ANY_NUMBER else error


_ANY_MARK = f"write a number such as 12.5, {ABSENT} or {EXCUSED}, or leave the cell as it was"
_OTHER_WORDS = {"a": ABSENT, "ab": ABSENT, "exempt": EXCUSED, "sick": EXCUSED}
