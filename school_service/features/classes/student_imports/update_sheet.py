"""The records of students who are there, as a sheet: a class list to be read, corrected and sent back."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any
from uuid import UUID

from sqlalchemy import ARRAY, Date, Uuid, any_, cast, func, or_, select, update

from school_service.auth.principal import CANONICAL_UUID, Principal
from school_service.core.database import current_school, db
from school_service.core.errors import Invalid
from school_service.core.facts import headed
from school_service.core.records import get_referenced, is_one_of, unnest_rows
from school_service.features.audit.service import EXPORT, Change, audit_change, audit_changes
from school_service.features.classes.student_imports.sheet import OF_RECORD, SHEET
from school_service.features.people.access import require_to_change
from school_service.features.people.models import Role, Student, User, UserRole
from school_service.features.people.students import leaving
from school_service.features.people.students.reads import BY_NAME
from school_service.features.people.students.service import AUDITED
from school_service.features.people.students.service import ENTITY as STUDENT
from school_service.features.people.students.sheet_rows import LAST_NAME, change_of, name_with_number
from school_service.features.people.users.service import ENTITY as USER
from school_service.features.school.cohorts.reads import class_name
from school_service.features.school.cohorts.service import find_session
from school_service.features.school.models import (
    CURRENT,
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Enrollment,
)
from school_service.features.school.settings.service import name_order, time_zone
from school_service.sheets.charsets import charset_errors
from school_service.sheets.columns import Column
from school_service.sheets.days import read_days
from school_service.sheets.downloads import Download, download_details, read_download
from school_service.sheets.import_sheets import column_of
from school_service.sheets.row_errors import (
    CHANGED,
    DUPLICATE,
    INVALID,
    REQUIRED,
    TAKEN,
    UNKNOWN,
    RowError,
    raise_changed_rows,
    raise_row_errors,
)
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import Row, SheetContent, read_details, read_sheet
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.uploads import RowCounts, SheetUpload
from tenants.clock import now
from tenants.names import composed

ID, CLASS, NUMBER = "id", "class", "admission_number"
FORMATS = (XLSX, CSV) = ("xlsx", "csv")
# Leaving concerns the enrollment, too: it is entered by PATCH.
_COLUMNS = tuple(
    replace(column_of(*column), required=False)
    for column in OF_RECORD
    if column[0].name not in leaving.OF_LEAVING
)
_DAYS = tuple(of.name for of, _ in OF_RECORD if isinstance(of.type, Date))
_WRITTEN = (
    Column(ID, locked=True, width=38),
    Column(CLASS, locked=True, width=16),
    *_COLUMNS,
)
_NAMES = ("first_name", "middle_name", "last_name")
_REMEDY = "download the sheet again, or send this one with force=true"

Validate = Callable[[dict[str, Any]], dict[str, Any]]
"""Validates changes as PATCH /students/{id} validates its body; raises Invalid, which names the fields."""


def download(
    *,
    batch: UUID | None = None,
    cohort: UUID | None = None,
    session: str | None = None,
    format: str = XLSX,
) -> tuple[str, bytes]:
    """Write the records of the students now in a batch, a cohort or a session's classes: file name and content.

    They are by class, then by name. Raises Invalid for an unknown batch, cohort or session.
    """
    name, is_there = _place(batch, cohort, session)
    students = db.session.execute(_listed(is_there)).mappings().all()
    settings = db.session.execute(
        select(time_zone().label("time_zone"), name_order().label("name_order"))
    ).one()
    columns = _columns(settings.name_order)
    rows = [{column.name: _cell(row[column.name]) for column in columns} for row in students]
    of = batch or cohort
    audit_change(EXPORT, of, new={"sheet": "students", "students": len(rows)})
    if format == CSV:
        text = io.StringIO()
        writer = csv.DictWriter(text, [column.name for column in columns], lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(rows)
        # By the mark spreadsheet programs see that it is UTF-8.
        return f"{name} students.csv", text.getvalue().encode("utf-8-sig")
    stored = {str(row[ID]): {column.name: row[column.name] for column in _COLUMNS} for row in rows}
    downloaded, hidden = download_details(now(), settings.time_zone, stored)
    details = [("School", current_school().name), ("Class", name), downloaded]
    page_header = (f"{current_school().name}\n{name}", "Students")
    content = write_workbook([Table(SHEET, columns, rows)], details, hidden=hidden, page_header=page_header)
    return f"{name} students.xlsx", content


def _columns(name_order: str) -> list[Column]:
    """Give the columns, the names in the order of the school's papers."""
    if name_order != "SURNAME_FIRST":
        return [*_WRITTEN]
    last = next(column for column in _WRITTEN if column.name == LAST_NAME)
    others = [column for column in _WRITTEN if column is not last]
    place = next(place for place, column in enumerate(others) if column.name in _NAMES)
    return [*others[:place], last, *others[place:]]


def _cell(value: Any) -> str | None:
    return None if value in {None, ""} else str(value)


def _place(batch: UUID | None, cohort: UUID | None, session: str | None) -> tuple[str, Any]:
    """Find the name of a place, and the condition for an enrollment to be there."""
    if session is not None:
        session_id = find_session(session, "session")
        stored = db.session.get_one(AcademicSession, session_id)
        return stored.name, Cohort.session_id == session_id
    if batch is not None:
        get_referenced(Batch, batch, "batch")
        is_there = Batch.id == batch
    elif cohort is not None:
        get_referenced(Cohort, cohort, "cohort")
        is_there = Cohort.id == cohort
    else:
        raise TypeError("A class list is of a batch, a cohort or a session.")
    named = (
        select(func.min(Classroom.name), func.min(AcademicSession.name), func.min(Batch.name), func.count())
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .where(is_there)
    )
    classroom, of_session, arm, arms = db.session.execute(named).one()
    return f"{classroom}{f' {arm}' if batch is not None or arms == 1 else ''} {of_session}", is_there


def _listed(is_there: Any) -> Any:
    """Select the students now at a place, by class, then by name."""
    of_class = class_name(Classroom.name, Batch.name, Batch.cohort_id).label(CLASS)
    return (
        select(Student.id, of_class, *(of for of, _ in OF_RECORD))
        .join(User, User.id == Student.user_id)
        .join(Enrollment, Enrollment.student_id == Student.id)
        .join(Batch, Batch.id == Enrollment.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .where(CURRENT, is_there)
        .order_by(Classroom.name.collate("C"), Batch.name.collate("C"), *BY_NAME)
    )


def upload(
    *,
    file: IO[bytes],
    validate: Validate,
    principal: Principal,
    dry_run: bool,
    force: bool,
    dates: str | None = None,
) -> dict[str, Any]:
    """Change the records of students by a sheet, all or none, and count its rows: changed, unchanged, blank.

    A row is of the student with its `id` or, without one, its admission number. A blank cell leaves the value alone.
    Of a downloaded sheet only cells that were changed since are looked at. Raises Invalid for a file that is no such
    sheet, InvalidRows naming every bad cell, RowsChanged if a value to be replaced was changed since the download,
    unless `force` replaces it, and Forbidden if a name or gender is of an account with permissions that the principal
    lacks.
    """
    return _Update(validate, principal, dry_run, force, dates).run(file)


Changes = list[tuple[Any, Row, dict[str, Any]]]
"""Each row with its student as stored, and the members that differ."""


@dataclass
class _Update(SheetUpload[Changes]):
    """The upload of changed records; the students and then their accounts are locked in the order of their ids."""

    validate: Validate
    principal: Principal
    dry_run: bool
    force: bool
    dates: str | None
    download: Download | None = field(init=False)
    content: SheetContent = field(init=False)
    students: list[Any] = field(init=False)

    def read_details(self, workbook: SheetFile) -> None:
        self.download = read_download(read_details(workbook) or {})

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        return read_sheet(workbook, SHEET, _WRITTEN)

    def judge(self, content: SheetContent) -> None:
        self.content = content
        if not {ID, NUMBER} & content.letters.keys():
            raise Invalid(
                "The sheet has neither a column id nor admission_number: nobody knows whose rows these are."
            )

    def lock(self) -> None:
        ids = [student_id for row in self.content.rows if (student_id := _id(row))]
        numbers = [_number(row) for row in self.content.rows if not _id(row)]
        meant = or_(_is_among(Student.id, ids), is_one_of(Student.admission_number, numbers))
        locking = select(Student.id).where(meant).order_by(Student.id).with_for_update(key_share=True)
        locked = [str(student_id) for student_id in db.session.scalars(locking)]
        # Read once both are locked.
        of_users = (
            select(User.id).join(Student, Student.user_id == User.id).where(_is_among(Student.id, locked))
        )
        db.session.execute(of_users.order_by(User.id).with_for_update(key_share=True, of=User))
        columns = (*(of for of, _ in OF_RECORD), Student.user_id, User.erased_at)
        stored = select(Student.id, *columns).join(User, User.id == Student.user_id)
        self.students = list(db.session.execute(stored.where(_is_among(Student.id, locked))))

    def match(self, content: SheetContent) -> Changes:
        by_id: dict[str | None, Any] = {str(student.id): student for student in self.students}
        by_number = {student.admission_number: student for student in self.students}
        errors = [*content.errors, *charset_errors(content.rows, names=_NAMES)]
        for column in _DAYS:
            days = read_days(content.rows, column, self.dates)
            errors.extend(days.errors)
            for warning in days.warnings(column):
                self.warn(warning)
        told = {(error.row, error.column) for error in errors}
        first: dict[Any, int] = {}
        matched: Changes = []
        for row in content.rows:
            student = by_id.get(_id(row)) if ID in row.values else by_number.get(_number(row))
            if student is None:
                errors.append(_unknown(row))
            elif first.setdefault(student.id, row.number) != row.number:
                column = ID if ID in row.values else NUMBER
                problem = f"is of the student in row {first[student.id]} already"
                errors.append(RowError(row.number, column, DUPLICATE, problem))
            else:
                changed, refused = self._changed(student, row)
                errors.extend(error for error in refused if (error.row, error.column) not in told)
                matched.append((student, row, changed))
        errors.extend(_numbers_in_use(matched))
        people = {row.number: name_with_number(student) for student, row, _ in matched}
        raise_row_errors(errors, letters=content.letters, people=people)
        return matched

    def _changed(self, student: Any, row: Row) -> tuple[dict[str, Any], list[RowError]]:
        """Find the members of a student that a row changes, and the errors in them."""
        given = self._written_values(student, row)
        if not given:
            return {}, []
        if student.erased_at is not None:
            problem = "is of a student whose data were erased"
            return {}, [RowError(row.number, next(iter(given)), INVALID, problem)]
        try:
            valid = self.validate(given)
            if "admitted_on" in valid:
                leaving.refuse_order(valid["admitted_on"], student.left_on, field="admitted_on")
        except Invalid as refused:
            return {}, list(_refusals(row, refused.errors))
        changed = {name: new for name, new in valid.items() if _text(new) != _text(getattr(student, name))}
        return changed, []

    def _written_values(self, student: Any, row: Row) -> dict[str, Any]:
        """Find the values of a row that somebody wrote: those other than at the download."""
        then = self.download.stored.get(str(student.id), {}) if self.download else {}
        names = {column.name for column in _COLUMNS} - (set() if ID in row.values else {NUMBER})
        return {
            name: value
            for name, value in row.values.items()
            if name in names and value != then.get(name) and _text(value) != _text(getattr(student, name))
        }

    def store(self, matched: Changes) -> RowCounts:
        self._refuse_changed(matched)
        changed = [(student, new) for student, _, new in matched if new]
        self._require(changed)
        if self.dry_run:
            self.answer["changes"] = [
                change_of(row, student, name, _text(getattr(student, name)), _text(value))
                for student, row, new in matched
                for name, value in new.items()
            ]
        else:
            _write(User, USER, [(student.user_id, student, new) for student, new in changed])
            _write(Student, STUDENT, [(student.id, student, new) for student, new in changed])
        return RowCounts(0, len(changed), len(matched) - len(changed))

    def _refuse_changed(self, matched: Changes) -> None:
        if self.download is None or self.force:
            return
        errors = []
        for student, row, changed in matched:
            then = self.download.stored.get(str(student.id), {})
            for name, new in changed.items():
                stored = _text(getattr(student, name))
                if name in then and then[name] != stored:
                    problem = (
                        f"would replace {stored or 'nothing'}, which somebody entered after the download,"
                    )
                    errors.append(RowError(row.number, name, CHANGED, problem, _text(new), _REMEDY))
        people = {row.number: name_with_number(student) for student, row, _ in matched}
        raise_changed_rows(errors, letters=self.content.letters, people=people)

    def _require(self, changed: Iterable[tuple[Any, Mapping[str, Any]]]) -> None:
        """Require what an account has of who renames its user; most students have roles given to all alone."""
        of_user = {of.name for of, _ in headed(User)}
        renamed = [student.user_id for student, new in changed if of_user & new.keys()]
        with_roles = (
            select(UserRole.user_id)
            .join(Role, Role.id == UserRole.role_id)
            .where(_is_among(UserRole.user_id, renamed), Role.given_to.is_(None))
            .distinct()
        )
        for user_id in db.session.scalars(with_roles).all() if renamed else ():
            require_to_change(self.principal, user_id, "Changing the name or gender of this student")


def _is_among(column: Any, ids: Iterable[object]) -> Any:
    return column == any_(cast([str(record_id) for record_id in ids], ARRAY(Uuid(as_uuid=False))))


def _id(row: Row) -> str | None:
    written = str(row.values.get(ID, "")).strip().lower()
    return written if CANONICAL_UUID.fullmatch(written) else None


def _number(row: Row) -> str:
    return composed(str(row.values.get(NUMBER, "")))


def _text(value: Any) -> str | None:
    return None if value in {None, ""} else str(value)


def _unknown(row: Row) -> RowError:
    if ID in row.values:
        return RowError(row.number, ID, UNKNOWN, "is the id of no student", str(row.values[ID]))
    if not _number(row):
        return RowError(row.number, NUMBER, REQUIRED, "the admission number is missing")
    return RowError(row.number, NUMBER, UNKNOWN, "is no student's admission number", _number(row))


def _refusals(row: Row, errors: Mapping[str, Any]) -> Iterator[RowError]:
    for name, messages in errors.items():
        if name not in row.bad:
            reason = " ".join(map(str, messages))
            reason = reason[:1].lower() + reason[1:].rstrip(".")
            yield RowError(row.number, name, INVALID, "is not accepted", str(row.values.get(name)), reason)


def _numbers_in_use(matched: Changes) -> Iterator[RowError]:
    """Find the new admission numbers that another student has, in the school or in the sheet."""
    renumbered = {student.id: (row, new[NUMBER]) for student, row, new in matched if NUMBER in new}
    small = func.lower(Student.admission_number)
    wanted = {number.lower() for _, number in renumbered.values()}
    others = db.session.execute(select(small, Student.id).where(is_one_of(small, wanted))) if wanted else ()
    taken: dict[str, UUID] = {row[0]: row[1] for row in others}
    first: dict[str, int] = {}
    for student, (row, number) in renumbered.items():
        if taken.get(number.lower(), student) != student:
            yield RowError(row.number, NUMBER, TAKEN, "is the number of another student", number)
        elif first.setdefault(number.lower(), row.number) != row.number:
            yield RowError(row.number, NUMBER, DUPLICATE, f"is in row {first[number.lower()]} too", number)


def _write(model: type[Any], entity: str, changed: Iterable[tuple[UUID, Any, Mapping[str, Any]]]) -> None:
    """Change columns of a model, in one statement, and write what differs to the audit log."""
    columns = [of for of, _ in headed(model)]
    names = {of.name for of in columns}
    rows = [
        (record, student, {name: new[name] for name in names & new.keys()})
        for record, student, new in changed
    ]
    rows = [row for row in rows if row[2]]
    if not rows:
        return
    values = {
        of.name: [_stored(of, new.get(of.name, getattr(student, of.name))) for _, student, new in rows]
        for of in columns
    }
    given: Any = unnest_rows(
        record=(Uuid, [record for record, *_ in rows]),
        **{of.name: (of.type, values[of.name]) for of in columns},
    )
    change = update(model).where(model.id == given.c.record)
    db.session.execute(
        change.values({of.name: given.c[of.name] for of in columns}),
        execution_options={"synchronize_session": False},
    )
    audit_changes(entity, [_audited(record, student, new) for record, student, new in rows])


def _stored(of: Any, value: Any) -> Any:
    return (None if of.nullable else "") if value in {None, ""} else value


def _audited(record: UUID, student: Any, new: Mapping[str, Any]) -> Change:
    told, hidden = AUDITED & new.keys(), sorted(new.keys() - AUDITED)
    return Change(
        record,
        {name: getattr(student, name) for name in told},
        {name: new[name] for name in told} | ({"changed": hidden} if hidden else {}),
    )
