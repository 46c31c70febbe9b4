"""The sheet of a week's registers: downloaded to be filled in, and uploaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import orjson

from school_service.auth.principal import Principal
from school_service.core.database import current_school
from school_service.core.errors import Conflict, Invalid
from school_service.core.statements import Executable, execute, fetch_one
from school_service.features.attendance.models import AFTERNOON, MORNING
from school_service.features.attendance.registers import marking
from school_service.features.attendance.registers.marking import Attendee, StoredRegister
from school_service.features.attendance.registers.service import (
    ENTITY,
    LockedRegisters,
    lock_registers,
    storing,
)
from school_service.features.attendance.sheets import reads
from school_service.features.audit.service import EXPORT, audit_change
from school_service.features.people.students.naming import name_with_number
from school_service.features.people.students.sheet_rows import (
    ADMISSION_NUMBER,
    STUDENT_COLUMNS,
    change_of,
    student_columns,
)
from school_service.features.people.students.sheet_uploads import AuditTrail, ClassSheetUpload, Replaced
from school_service.features.school.cohorts.class_sheets import (
    BATCH,
    find_batch,
    judge_batch,
    named_details,
)
from school_service.sheets.columns import Column, SuggestedValues, normalized_name
from school_service.sheets.downloads import download_details, read_download
from school_service.sheets.row_errors import INVALID, UNKNOWN, RowError
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import DETAILS, Row, SheetContent, read_details, read_sheet
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.uploads import RowCounts
from tenants.clock import now
from tenants.names import composed

SHEET = "Register"
WEEK = "Week"

Time = tuple[date, str]
_HALVES = {MORNING: " AM", AFTERNOON: " PM"}


@dataclass(frozen=True, slots=True)
class Pupil:
    """A possible student of a sheet, with the teacher's codes by date and part."""

    id: str
    admission_number: str
    first_name: str
    middle_name: str | None
    last_name: str
    gender: str | None
    codes: Mapping[str, str]


_MatchedRows = list[tuple[Pupil, Row]]


def column_of(time: Time) -> str:
    """Name the column of a time: `Mon 5 Oct AM`, without the half if a day has one part."""
    day, part = time
    return f"{day:%a} {day.day} {day:%b}{_HALVES.get(part, '')}"


def download(*, batch: UUID, week: date) -> tuple[str, bytes]:
    """Write the sheet of a week to fill in: the file's name and the workbook.

    It has a row for everyone in the class or with a mark, and a column for each open part of a day, with the stored
    codes. `week` is its Monday. Raises Invalid for an unknown batch and another day, and Conflict if school is open on
    no day of the week.
    """
    arm = find_batch(batch, field="batch")
    stored = fetch_one(reads.week(batch, _days_of(_monday(week))))
    times = [(date.fromisoformat(time["date"]), time["part"]) for time in orjson.loads(stored["times"])]
    if not times:
        raise Conflict(f"School is open on no day of the week of {week}.")
    pupils = [Pupil(**pupil) for pupil in orjson.loads(stored["students"])]
    codes = tuple(code for code, _ in orjson.loads(stored["codes"]))
    audit_change(EXPORT, arm.id, new={"sheet": "register", "week": week, "students": len(pupils)})
    columns = [
        *student_columns(arm.name_order),
        *(Column(column_of(time), rule=SuggestedValues(codes), width=12) for time in times),
    ]
    marks = {pupil.admission_number: _codes_of(pupil, times) for pupil in pupils}
    rows = [
        {column.name: getattr(pupil, column.name) for column in STUDENT_COLUMNS}
        | marks[pupil.admission_number]
        for pupil in pupils
    ]
    downloaded, hidden = download_details(
        arm.moment, arm.time_zone, {number: of_pupil for number, of_pupil in marks.items() if of_pupil}
    )
    words = [
        ("School", current_school().name),
        ("Class", arm.class_name),
        (BATCH, arm.name),
        ("Session", arm.session),
        (WEEK, week.isoformat()),
        ("Codes", ", ".join(f"{code} {name}" for code, name in orjson.loads(stored["codes"]))),
        (f"{BATCH} ID", str(arm.id)),
    ]
    content = write_workbook(
        [Table(SHEET, columns, rows)],
        [*words, downloaded],
        hidden=hidden,
        page_header=(
            f"{current_school().name}\n{arm.class_name} {arm.session}",
            f"Register, week of {week.day} {week:%B %Y}",
        ),
    )
    return f"{arm.class_name} {arm.session} register {week}.xlsx", content


@dataclass(kw_only=True)
class RegisterUpload(ClassSheetUpload[Pupil]):
    """The upload of a sheet of registers: their marks, all or none; counts rows as new, changed, unchanged, blank.

    `week` is the week of a sheet without its own; without it the columns tell the days, within the session. A blank
    cell leaves a mark alone. A register with nobody unmarked afterwards is submitted. `dry_run` stores nothing, and
    answers the changes to come, too, and the students missing in the sheet. Raises Invalid for an unknown batch and for
    anything but a sheet of this batch, InvalidRows naming every bad row, RowsChanged for marks changed since the sheet
    was downloaded, unless `force` replaces them, and as marking a register does.
    """

    batch: UUID
    principal: Principal
    week: date | None = None
    arm: Any = field(init=False)
    pupils: Sequence[Pupil] = field(init=False)
    times: Mapping[str, Time] = field(init=False)
    """The possible times of the sheet, by the name of the column."""
    marked: Sequence[tuple[str, Time]] = field(init=False)
    """Those with marks in it."""
    today: date = field(init=False)
    locked: LockedRegisters = field(init=False)
    registers: Mapping[str, StoredRegister] = field(init=False)

    def find_record(self) -> None:
        self.arm = find_batch(self.batch, field="batch")

    def read_details(self, workbook: SheetFile) -> None:
        written = read_details(workbook)
        if written is None:
            self.download = None
            days = None if self.week is None else _days_of(_monday(self.week))
        else:
            named = named_details(written, self.arm, {})
            judge_batch(named, self.arm)
            self.download = read_download(named)
            days = _days_of(_named_week(named))
        listed = fetch_one(reads.class_list(self.arm.id, days))
        self.pupils = [Pupil(**pupil) for pupil in orjson.loads(listed["students"])]
        self.today = listed["today"]
        if days is None:
            days = [
                listed["first"] + timedelta(days=number)
                for number in range((listed["last"] - listed["first"]).days + 1)
            ]
        self.times = {column_of((day, part)): (day, part) for day in days for part in listed["parts"]}

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        content = read_sheet(workbook, SHEET, [*STUDENT_COLUMNS, *map(Column, self.times)])
        given = {name for row in content.rows for name in row.values}
        self.marked = [(name, time) for name, time in self.times.items() if name in given]
        return content

    def lock(self) -> None:
        """Lock the registers with marks in the sheet; of days to come there are none, and the rows say so."""
        names = [name for name, (day, _) in self.marked if day <= self.today]
        self.registers = {}
        if not names:
            return
        self.locked = lock_registers(
            self.arm.id,
            [self.times[name] for name in names],
            principal=self.principal,
            made=not self.dry_run,
        )
        self.registers = dict(zip(names, self.locked.registers, strict=True))

    def match(self, content: SheetContent) -> _MatchedRows:
        by_number = {pupil.admission_number: pupil for pupil in self.pupils}
        return self.match_class(
            content,
            self.pupils,
            not_in_class="is not in the class",
            validate=lambda row: self._row_errors(row, by_number),
        )

    def _row_errors(self, row: Row, by_number: Mapping[str, Pupil]) -> Iterator[RowError]:
        pupil = by_number.get(composed(str(row.values.get(ADMISSION_NUMBER, ""))))
        for name, (day, _) in self.marked:
            code = row.values.get(name)
            if code is None:
                continue
            if day > self.today:
                yield RowError(row.number, name, INVALID, "is of a day to come", code, "leave it blank")
                continue
            person = None if pupil is None else self.registers[name].people.get(pupil.id)
            if pupil is not None and person is None:
                problem = "is of a time at which the student is not in the class"
                yield RowError(row.number, name, INVALID, problem, code, "leave it blank")
            elif self._code(person, code) is None:
                known = ", ".join(code for code, _ in self.locked.codes.values())
                yield RowError(row.number, name, UNKNOWN, "is no code", code, f"write one of {known}")

    def _code(self, person: Attendee | None, written: str) -> str | None:
        """Find a written code, in any case; also a stored one, gone from the school's codes since."""
        code = composed(written).casefold()
        if person is not None and person.code is not None and person.code.casefold() == code:
            return person.code
        known = self.locked.codes.get(code)
        return None if known is None else known[0]

    def store(self, matched: _MatchedRows) -> RowCounts:
        given = [(pupil, row, [*self._row_codes(pupil, row)]) for pupil, row in matched]
        differing = [
            (pupil, row, [(name, code) for name, code in cells if self._stored(pupil, name) != code])
            for pupil, row, cells in given
        ]
        forced_rows = self.refuse_changed(self._replaced(differing), _TRAIL)
        forced = {pupil.id for pupil, row, _ in differing if row.number in forced_rows}
        if self.dry_run:
            self.answer["changes"] = [
                change_of(row, pupil, name, self._stored(pupil, name), code)
                for pupil, row, cells in differing
                for name, code in cells
            ]
        else:
            writes = [
                write
                for name in self.registers
                for write in self._storing(
                    name,
                    [(pupil, code) for pupil, _, cells in differing for of, code in cells if of == name],
                    forced,
                )
            ]
            if writes:
                execute(*writes)
        created = sum(
            bool(cells) and all(self._stored(pupil, name) is None for name, _ in cells)
            for pupil, _, cells in differing
        )
        changed = sum(bool(cells) for _, _, cells in differing)
        return RowCounts(created, changed - created, sum(bool(cells) for _, _, cells in given) - changed)

    def _row_codes(self, pupil: Pupil, row: Row) -> Iterator[tuple[str, str]]:
        """Go through the codes of a row, each with its column."""
        for name, register in self.registers.items():
            written = row.values.get(name)
            code = None if written is None else self._code(register.people.get(pupil.id), written)
            if code is not None:
                yield name, code

    def _stored(self, pupil: Pupil, name: str) -> str | None:
        person = self.registers[name].people.get(pupil.id)
        return None if person is None else person.code

    def _replaced(self, rows: Sequence[tuple[Pupil, Row, Sequence[tuple[str, str]]]]) -> Iterator[Replaced]:
        """Find the marks changed since the download, and to be replaced by the sheet."""
        if self.download is None:
            return
        for pupil, row, cells in rows:
            then = self.download.values_of(pupil.admission_number)
            for name, code in cells:
                stored = self._stored(pupil, name)
                if stored != then.get(name):
                    yield Replaced(
                        row.number,
                        name,
                        name_with_number(pupil),
                        self.registers[name].id,
                        stored,
                        code,
                        kind="mark",
                        key=pupil.id,
                    )

    def _storing(
        self, name: str, marks: Sequence[tuple[Pupil, str]], forced: frozenset[str] | set[str]
    ) -> list[Executable]:
        """Store the sheet's marks of a register; it is submitted if nobody is unmarked then."""
        register = self.registers[name]
        rows = [{"student": pupil.id, "code": code} for pupil, code in marks]
        marked = marking.mark(register, self.locked.codes, marks=rows, seen=register.version)
        if not marking.unmarked(register.people.values(), marked.marks):
            marked = marking.mark(register, self.locked.codes, marks=rows, seen=register.version, submit=True)
        if marked.version == register.version:
            return []
        marked = replace(marked, forced=[pupil.id for pupil, _ in marks if pupil.id in forced])
        return storing(
            self.times[name],
            register,
            marked,
            lesson=False,
            moment=now(),
            taken_at=None,
            **self.source,
        )


def _codes_of(pupil: Pupil, times: Sequence[Time]) -> dict[str, str]:
    """Give the stored codes of a student, by column."""
    return {
        column_of((day, part)): pupil.codes[f"{day} {part}"]
        for day, part in times
        if f"{day} {part}" in pupil.codes
    }


def _code_of(values: Any, student_id: str) -> Any:
    """Find a student's code in a register's change in the log."""
    return ((values or {}).get("changed") or {}).get(student_id)


# Of a register 100 changes: somebody changed this mark before these.
_TRAIL = AuditTrail(ENTITY, _code_of, 100, member=None)


def _days_of(monday: date) -> list[date]:
    """Give the days of a week. Raises Invalid for the last one, without a Sunday that could be written."""
    if (date.max - monday).days < 6:
        raise Invalid.field("week", f"does not end by {date.max}")
    return [monday + timedelta(days=number) for number in range(7)]


def _monday(day: date) -> date:
    """Refuse a day that is no Monday. Raises Invalid."""
    if day.weekday() != 0:
        raise Invalid.field("week", "is no Monday")
    return day


def _named_week(details: Mapping[str, str]) -> date:
    """Find the week named by the Details. Raises Invalid."""
    written = details.get(normalized_name(WEEK), "")
    try:
        monday = date.fromisoformat(written[:10])
    except ValueError:
        monday = None
    if monday is None or monday.weekday() != 0:
        raise Invalid(
            f"{WEEK} on the sheet {DETAILS} is no Monday: download the sheet, and fill that one in."
        )
    return monday
