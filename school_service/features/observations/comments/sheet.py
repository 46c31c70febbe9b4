"""The comment sheet of a batch and a term: downloaded to be filled in, and uploaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from school_service.auth.principal import Principal
from school_service.core.database import current_school
from school_service.core.statements import execute
from school_service.core.texts import term_title
from school_service.features.audit.service import EXPORT, audit_change
from school_service.features.observations.comments.service import (
    FROM_REGISTERS,
    MEMBERS,
    TIMES_PRESENT,
    ClassList,
    Commented,
    count,
    list_class,
    lock_class,
    require_for,
    storing,
    trail_of,
)
from school_service.features.people.students.naming import name_with_number
from school_service.features.people.students.sheet_rows import (
    ADMISSION_NUMBER,
    STUDENT_COLUMNS,
    change_of,
    student_columns,
)
from school_service.features.people.students.sheet_uploads import ClassSheetUpload, Replaced
from school_service.features.school.cohorts.class_sheets import (
    TERM,
    Place,
    about_class,
    find_batch,
    find_term,
    judge_batch,
    judge_term,
    named_details,
    place_of,
)
from school_service.features.year.models import COMMENT_LENGTH, MAX_TIMES_OPENED
from school_service.sheets.columns import CellType, Column, NumberRange
from school_service.sheets.downloads import download_details, read_download
from school_service.sheets.row_errors import INVALID, RowError
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import (
    ANY_NUMBER,
    Row,
    SheetContent,
    read_details,
    read_sheet,
    too_long,
)
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.uploads import RowCounts
from tenants.names import composed

SHEET = "Comments"

_MatchedRows = list[tuple[Commented, Row]]


def download(*, batch: UUID, term: str) -> tuple[str, bytes]:
    """Write a comment sheet to fill in: the file's name and the workbook.

    It has a row for each member of the batch in the term, with the stored comments. `term` is FIRST, SECOND or THIRD of
    the batch's session, or the id of a term. Raises Invalid for an unknown batch or term, and for a term of another
    session.
    """
    arm = find_batch(batch, field="batch")
    of_term = find_term(term, arm)
    listed = list_class(place_of(arm, of_term.id))
    columns = _columns(listed.times_opened, student_columns(arm.name_order))
    rows = [{column.name: getattr(student, column.name) for column in columns} for student in listed.students]
    audit_change(EXPORT, arm.id, new={"sheet": "comments", "students": len(rows)})
    stored = {
        student.admission_number: {name: getattr(student, name) for name in MEMBERS}
        for student in listed.students
        if student.commented or listed.by_registers
    }
    downloaded, hidden = download_details(arm.moment, arm.time_zone, stored)
    words, ids = about_class(arm, of_term)
    opened = [("Times opened", str(listed.times_opened))] if listed.times_opened is not None else []
    titled = partial(term_title, of_term.display_name, arm.session)
    page_header = f"{current_school().name}\n{arm.class_name}", f"Comments, {titled()}"
    content = write_workbook(
        [Table(SHEET, columns, rows)],
        [*words, *opened, *ids, downloaded],
        hidden=hidden,
        page_header=page_header,
    )
    return f"{arm.class_name} {titled(' ')} comments.xlsx", content


@dataclass(kw_only=True)
class CommentUpload(ClassSheetUpload[Commented]):
    """The upload of a comment sheet: its comments, all or none; counts rows as new, changed, unchanged, blank.

    `term` is for a sheet without a term of its own. A student missing in the sheet, and a blank cell there, stay as
    they are. `dry_run` stores nothing, and answers the changes to be made, too, and the students missing in the sheet.
    Raises Invalid for an unknown batch and a file other than a sheet of this batch, InvalidRows naming every bad row,
    Forbidden if the caller changes a principal's comment and may not write results, and RowsChanged if something was
    changed since the sheet was downloaded, unless `force` replaces it.
    """

    batch: UUID
    principal: Principal
    term: str | None = None
    arm: Any = field(init=False)
    place: Place = field(init=False)
    listed: ClassList = field(init=False)
    students: Mapping[str, Commented] = field(init=False)

    def find_record(self) -> None:
        self.arm = find_batch(self.batch, field="batch")

    def read_details(self, workbook: SheetFile) -> None:
        written = read_details(workbook)
        details = named_details(written, self.arm, {TERM: self.term})
        judge_batch(details, self.arm)
        self.place = place_of(self.arm, judge_term(details, self.arm).id)
        self.download = read_download(details)

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        content = read_sheet(workbook, SHEET, _columns(None))
        remedy = "write a whole number, or leave the cell blank"
        content.errors[:] = [
            replace(error, remedy=remedy) if error.remedy == ANY_NUMBER else error for error in content.errors
        ]
        return content

    def lock(self) -> None:
        self.listed = lock_class(self.place)
        self.students = {student.admission_number: student for student in self.listed.students}

    def match(self, content: SheetContent) -> _MatchedRows:
        return self.match_class(
            content,
            self.listed.students,
            not_in_class="is not in the batch",
            validate=self._row_errors,
        )

    def _row_errors(self, row: Row) -> Iterator[RowError]:
        """Yield the errors of a row; if the registers say how often a student came, the sheet can't change the number.

        The number downloaded with the sheet may stand there: nobody has typed it in.
        """
        yield from _row_errors(row, self.listed.times_opened)
        times = row.values.get(TIMES_PRESENT)
        if not self.listed.by_registers or times is None:
            return
        number = composed(str(row.values.get(ADMISSION_NUMBER, "")))
        student = self.students.get(number)
        then = None if self.download is None else self.download.values_of(number).get(TIMES_PRESENT)
        if student is not None and times not in (student.times_present, then):
            remedy = "leave it as it is, or blank"
            yield RowError(
                row.number, TIMES_PRESENT, INVALID, FROM_REGISTERS, f"{times.normalize():f}", remedy
            )

    def store(self, matched: _MatchedRows) -> RowCounts:
        given = [(student, row, _row_members(row)) for student, row in matched]
        rows = [(student, row, values, self._differing(student, values)) for student, row, values in given]
        changes = [(student, differing) for student, _, _, differing in rows if differing]
        require_for(
            ((row.number, student, differing) for student, row, _, differing in rows),
            self.principal,
            letters=self.letters,
        )
        refused = self.refuse_changed(
            self._replaced([(student, row, differing) for student, row, _, differing in rows]),
            trail_of(self.place),
        )
        forced = frozenset(student.student_id for student, row in matched if row.number in refused)
        if self.dry_run:
            self.answer["changes"] = [
                change_of(row, student, name, getattr(student, name), value)
                for student, row, _, differing in rows
                for name, value in differing.items()
            ]
        elif changes:
            execute(storing(self.place, changes, forced=forced, **self.source))
        return count([(student, values, differing) for student, _, values, differing in rows])

    def _differing(self, student: Commented, values: Mapping[str, Any]) -> dict[str, Any]:
        differing = {
            name: value
            for name, value in student.differing(values).items()
            # A spreadsheet program ends the lines of every cell in its own way.
            if name == TIMES_PRESENT or _lines(value) != _lines(getattr(student, name))
        }
        if self.listed.by_registers:
            differing.pop(TIMES_PRESENT, None)
        return differing

    def _replaced(self, rows: Sequence[tuple[Commented, Row, Mapping[str, Any]]]) -> Iterator[Replaced]:
        """Find the values changed since the download, to be replaced by the sheet."""
        if self.download is None:
            return
        for student, row, differing in rows:
            then = self.download.values_of(student.admission_number)
            for name, value in differing.items():
                stored = getattr(student, name)
                if stored != then.get(name):
                    whose = name_with_number(student), student.student_id
                    yield Replaced(row.number, name, *whose, stored, value, kind="value")


def _columns(times_opened: int | None, students: Iterable[Column] = STUDENT_COLUMNS) -> list[Column]:
    most = MAX_TIMES_OPENED if times_opened is None else times_opened
    times = NumberRange(Decimal(0), Decimal(most), whole=True)
    return [
        *students,
        Column(TIMES_PRESENT, CellType.NUMBER, rule=times, width=16, heading="Times present"),
        Column("form_teacher_comment", most=COMMENT_LENGTH, width=50, heading="Form teacher's comment"),
        Column("principal_comment", most=COMMENT_LENGTH, width=50, heading="Principal's comment"),
    ]


def _lines(text: str | None) -> list[str]:
    return re.split("\r\n?|\n", text or "")


def _row_members(row: Row) -> dict[str, Any]:
    """The members given in a row: a whole number, and texts without the space around them."""
    given = {name: row.values[name] for name in MEMBERS if name in row.values}
    return {name: int(value) if name == TIMES_PRESENT else value.strip() for name, value in given.items()}


def _row_errors(row: Row, times_opened: int | None) -> Iterator[RowError]:
    times = row.values.get(TIMES_PRESENT)
    most = MAX_TIMES_OPENED if times_opened is None else times_opened
    if times is not None and not (0 <= times <= most and times == int(times)):
        remedy = f"write a whole number from 0 to {most}"
        problem = "is more than the times that school opened" if times > most else "is no number of times"
        yield RowError(row.number, TIMES_PRESENT, INVALID, problem, f"{times.normalize():f}", remedy)
    for name in MEMBERS[1:]:
        text = row.values.get(name, "").strip()
        if len(text) > COMMENT_LENGTH:
            fault = too_long(text, COMMENT_LENGTH)
            yield RowError(row.number, name, INVALID, fault.problem, fault.value, fault.remedy)
        elif "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            yield RowError(row.number, name, INVALID, "has characters that are no text", None, "remove them")
