"""The records of students who are there, as a sheet: a class list to be read, corrected and sent back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from sqlalchemy import Date, Uuid, func, null, or_, select, update

from school_service.auth.principal import CANONICAL_UUID, Principal
from school_service.core.database import current_school, db
from school_service.core.errors import Conflict, Invalid, RowsChanged
from school_service.core.facts import fact_of, headed
from school_service.core.narrowing import caller_has_own, everybodys, judged_before, within
from school_service.core.records import get, get_referenced, is_one_of, lock_in_order, one_of, unnest_rows
from school_service.core.statements import execute
from school_service.core.texts import SURNAME_FIRST
from school_service.features.audit.service import EXPORT, Change, audit_change, audit_changes
from school_service.features.classes.student_imports.guardian_cells import (
    GUARDIANS,
    PREFIXES,
    cells_of,
    flat,
    guardians_of,
    nested,
    texts_of,
)
from school_service.features.classes.student_imports.sheet import (
    CLASS,
    GUARDIAN_NAMES,
    OF_GUARDIANS,
    OF_RECORD,
    PHONE_NUMBERS,
    SHEET,
)
from school_service.features.people.access import require_to_change
from school_service.features.people.gains.service import gain_of_accounts
from school_service.features.people.guardians.of_many import Families, locking_families
from school_service.features.people.models import ACTIVE, Role, Student, User, UserRole
from school_service.features.people.students import leaving
from school_service.features.people.students.naming import name_with_number
from school_service.features.people.students.reads import BY_NAME
from school_service.features.people.students.service import AUDITED
from school_service.features.people.students.service import ENTITY as STUDENT
from school_service.features.people.students.sheet_rows import LAST_NAME, change_of
from school_service.features.people.users.service import ENTITY as USER
from school_service.features.reach import scopes
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
from school_service.sheets.csv_writer import write_csv
from school_service.sheets.days import read_days
from school_service.sheets.downloads import Download, download_details, read_download
from school_service.sheets.import_sheets import column_of
from school_service.sheets.phone_numbers import country_of, read_numbers
from school_service.sheets.row_errors import (
    CHANGED,
    DUPLICATE,
    INVALID,
    REQUIRED,
    TAKEN,
    UNKNOWN,
    RowError,
    raise_refused_rows,
    raise_row_errors,
)
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import Row, SheetContent, read_details, read_sheet
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.uploads import RowCounts, SheetUpload
from tenants.clock import now
from tenants.names import composed

ID, NUMBER = "id", "admission_number"
FORMATS = (XLSX, CSV) = ("xlsx", "csv")
_COLUMNS = (*(replace(column_of(*column), required=False) for column in OF_RECORD), *OF_GUARDIANS)
_NAMED = frozenset(column.name for column in _COLUMNS)
_DAYS = tuple(of.name for of, _ in OF_RECORD if isinstance(of.type, Date))
_WRITTEN = (
    Column(ID, locked=True, width=38),
    Column(CLASS, locked=True, width=16),
    *_COLUMNS,
)
_NAMES = ("first_name", "middle_name", "last_name")
_NOT_CHANGED = {
    "username": "the username is not changed by this sheet",
    "password": "a password is given to one person, and not by this sheet",
}
"""The columns of the import that no update has, each with the reason."""
_OF_CLASS = "enroll the student in the class to move them there, and leave the cell as it was"
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

    They are by class, then by name; a form teacher gets the batches looked after. Raises Invalid for an unknown batch,
    cohort or session.
    """
    name, is_there = _place(batch, cohort, session)
    students = db.session.execute(_listed(is_there)).mappings().all()
    settings = db.session.execute(
        everybodys(select(time_zone().label("time_zone"), name_order().label("name_order")))
    ).one()
    columns = _columns(settings.name_order)
    records = [{**row, **cells_of(row["guardian"], row["guardian_2"])} for row in students]
    rows = [{column.name: _cell(row[column.name]) for column in columns} for row in records]
    of = batch or cohort
    audit_change(EXPORT, of, new={"sheet": "students", "students": len(rows)})
    if format == CSV:
        names = [column.name for column in columns]
        return f"{name} students.csv", write_csv([names, *([row[name] for name in names] for row in rows)])
    stored = {str(row[ID]): {name: row[name] for name in (*_NAMED, CLASS)} for row in rows}
    downloaded, hidden = download_details(now(), settings.time_zone, stored)
    details = [("School", current_school().name), ("Class", name), downloaded]
    page_header = (f"{current_school().name}\n{name}", "Students")
    content = write_workbook([Table(SHEET, columns, rows)], details, hidden=hidden, page_header=page_header)
    return f"{name} students.xlsx", content


def _columns(name_order: str) -> list[Column]:
    """Give the columns, the names in the order of the school's papers."""
    if name_order != SURNAME_FIRST:
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
        return get(AcademicSession, session_id).name, Cohort.session_id == session_id
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
    classroom, of_session, arm, arms = db.session.execute(judged_before(named)).one()
    return f"{classroom}{f' {arm}' if batch is not None or arms == 1 else ''} {of_session}", is_there


def _listed(is_there: Any) -> Any:
    """Select the students now at a place, by class, then by name."""
    of_class = class_name(Classroom.name, Batch.name, Batch.cohort_id).label(CLASS)
    listed = (
        select(Student.id, of_class, *map(_cell_in_reach, (of for of, _ in OF_RECORD)), *GUARDIANS)
        .join(User, User.id == Student.user_id)
        .join(Enrollment, Enrollment.student_id == Student.id)
        .join(Batch, Batch.id == Enrollment.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .where(CURRENT, is_there)
        .order_by(Classroom.name.collate("C"), Batch.name.collate("C"), *BY_NAME)
    )
    return within(listed, scopes.is_form_batch, Batch.id)


def _cell_in_reach(of: Any) -> Any:
    """Give a column of the record, null to a form teacher who may not see it."""
    fact = fact_of(of)
    return of if not caller_has_own() or (fact and "F" in fact.own) else null().label(of.key)


Changes = list[tuple[Any, Row, dict[str, Any]]]
"""Each row with its student as stored, and the members that differ."""


@dataclass(kw_only=True)
class StudentUpdate(SheetUpload[Changes]):
    """The upload of changed records, all or none; counts rows as changed, unchanged, blank.

    The students and then their accounts are locked in the order of their ids. A row is of the student with its `id` or,
    without one, its admission number. A blank cell leaves the value alone. Of a downloaded sheet only cells that were
    changed since are looked at. Raises Invalid for a file that is no such sheet, InvalidRows naming every bad cell,
    RowsChanged if a value to be replaced was changed since the download, unless `force` replaces it, and Forbidden if a
    name or gender is of an account with permissions that the principal lacks.
    """

    validate: Validate
    principal: Principal
    dry_run: bool
    force: bool
    dates: str | None = None
    download: Download | None = field(init=False)
    content: SheetContent = field(init=False)
    families: Families | None = field(init=False)
    students: list[Any] = field(init=False)

    def read_details(self, workbook: SheetFile) -> None:
        self.download = read_download(read_details(workbook) or {})

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        return read_sheet(workbook, SHEET, [*_WRITTEN, *map(Column, _NOT_CHANGED)])

    def judge(self, content: SheetContent) -> None:
        self.content = content
        if not {ID, NUMBER} & content.letters.keys():
            raise Invalid(
                "The sheet has neither a column id nor admission_number: nobody knows whose rows these are."
            )

    def lock(self) -> None:
        ids = [student_id for row in self.content.rows if (student_id := _id(row))]
        numbers = [_number(row) for row in self.content.rows if not _id(row)]
        of_ids = Student.id == one_of(ids, Uuid(as_uuid=False))
        locking = lock_in_order(Student, or_(of_ids, is_one_of(Student.admission_number, numbers)))
        ids_of_students = db.session.scalars(locking).all()
        # The guardians between the student and the account, as all do who lock them.
        if written := [texts for row in self.content.rows for texts in self._written_guardians(row)]:
            execute(*locking_families(ids_of_students, written))
        # Read once all are locked.
        is_locked = Student.id == one_of(ids_of_students)
        of_users = select(User.id).join(Student, Student.user_id == User.id).where(is_locked)
        db.session.execute(of_users.order_by(User.id).with_for_update(key_share=True, of=User))
        columns = (*(of for of, _ in OF_RECORD), Student.user_id, Student.status, User.erased_at, *GUARDIANS)
        opened = leaving.opened_by(Student.id).label("opened")
        stored = select(Student.id, opened, *columns).join(User, User.id == Student.user_id)
        records = db.session.execute(stored.where(is_locked)).mappings()
        self.students = [
            SimpleNamespace(**record, **cells_of(record["guardian"], record["guardian_2"]))
            for record in records
        ]

    def _written_guardians(self, row: Row) -> Iterator[dict[str, str]]:
        """Find the texts of the guardians of a row in whose cells somebody wrote."""
        then = self._then(_id(row))
        for prefix in PREFIXES:
            texts = texts_of(row.values, prefix)
            if any(then.get(prefix + name) != text for name, text in texts.items()):
                yield texts

    def match(self, content: SheetContent) -> Changes:
        by_id: dict[str | None, Any] = {str(student.id): student for student in self.students}
        by_number = {student.admission_number: student for student in self.students}
        errors = [*content.errors, *charset_errors(content.rows, names=(*_NAMES, *GUARDIAN_NAMES))]
        errors += _refused_columns(content.rows)
        self._read_numbers(content.rows, errors)
        if self.download is None and CLASS in content.letters:
            self.warn(
                f"Nothing was read of the column {CLASS}: enroll students in a class to move them there."
            )
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
        errors.extend(self._set_guardians(matched))
        people = {row.number: name_with_number(student) for student, row, _ in matched}
        raise_row_errors(errors, letters=content.letters, people=people)
        return matched

    def _changed(self, student: Any, row: Row) -> tuple[dict[str, Any], list[RowError]]:
        """Find the members of a student that a row changes, and the errors in them."""
        given = self._written_values(student, row)
        if self._is_moved(student, row):
            return {}, [
                RowError(row.number, CLASS, INVALID, "is another class", str(row.values[CLASS]), _OF_CLASS)
            ]
        if not given:
            return {}, []
        if student.erased_at is not None:
            problem = "is of a student whose data were erased"
            return {}, [RowError(row.number, next(iter(given)), INVALID, problem)]
        try:
            valid = self.validate(nested(given, row.values, student))
            _refuse_dates(student, valid)
        except Invalid as refused:
            return {}, list(_refusals(row, flat(refused.errors)))
        valid = flat(valid)
        names = given.keys() & valid.keys()
        return {name: valid[name] for name in given if name in names and _differs(valid, student, name)}, []

    def _is_moved(self, student: Any, row: Row) -> bool:
        """Tell whether somebody wrote another class into a downloaded row."""
        then = self._then(str(student.id)).get(CLASS)
        return then is not None and row.values.get(CLASS, then) != then

    def _then(self, student_id: str | None) -> Mapping[str, Any]:
        """Give the values of a student at the download; none of a sheet that was not downloaded."""
        return self.download.stored.get(student_id or "", {}) if self.download else {}

    def _read_numbers(self, rows: Sequence[Row], errors: list[RowError]) -> None:
        """Read the telephone numbers that were written, as the import reads them."""
        country = country_of(current_school().phone_number)
        for column in PHONE_NUMBERS:
            written = [row for row in rows if row.values.get(column) != self._then(_id(row)).get(column)]
            numbers = read_numbers(written, column, country)
            errors.extend(numbers.errors)
            for warning in numbers.warnings(column):
                self.warn(warning)

    def _set_guardians(self, matched: Changes) -> list[RowError]:
        """Set the guardians in the families of the students, in memory; returns the errors."""
        setting = [written for each in matched for written in guardians_of(*each)]
        self.families = None
        if not setting:
            return []
        self.families = Families.of([written.guardian for written in setting])
        errors = []
        stays: dict[str, str] = {}
        for place, written in enumerate(setting):
            student_id = written.guardian.student_id
            try:
                person = self.families.set(place, written.guardian, stays=stays.get(student_id))
                stays[student_id] = person.id
            except Conflict as refused:
                reason = refused.message[:1].lower() + refused.message[1:].rstrip(".")
                errors.append(
                    RowError(written.row, written.column, INVALID, "is not accepted", written.value, reason)
                )
        return errors

    def _written_values(self, student: Any, row: Row) -> dict[str, Any]:
        """Find the values of a row that somebody wrote: those other than at the download."""
        then = self._then(str(student.id))
        names = _NAMED - (set() if ID in row.values else {NUMBER})
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
        self.answer |= self._store(changed) or {}
        return RowCounts(0, len(changed), len(matched) - len(changed))

    def _store(self, changed: Sequence[tuple[Any, Mapping[str, Any]]]) -> dict[str, Any] | None:
        """Store the changes; returns others' credentials of accounts that get a child. A dry run foresees them."""
        accounts = self.families.accounts if self.families else []
        if self.dry_run:
            return gain_of_accounts(*accounts).foresee() if accounts else None
        _write(User, USER, [(student.user_id, student, new) for student, new in changed])
        _write(Student, STUDENT, [(student.id, student, new) for student, new in changed])
        days = {student.id: new["left_on"] for student, new in changed if "left_on" in new}
        opened = {student.id: student.opened for student, _ in changed}
        writes: list[Any] = (
            [leaving.forget_last_days([*days]), *leaving.last_days(days, opened)] if days else []
        )
        writes += self.families.store() if self.families else []
        if accounts:
            return gain_of_accounts(*accounts).write(*writes)
        if writes:
            execute(*writes)
        return None

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
        raise_refused_rows(RowsChanged, errors, letters=self.content.letters, people=people)

    def _require(self, changed: Iterable[tuple[Any, Mapping[str, Any]]]) -> None:
        """Require an account's permissions for renaming its user; most students have roles given to all alone."""
        of_user = {of.name for of, _ in headed(User)}
        renamed = [student.user_id for student, new in changed if of_user & new.keys()]
        with_roles = (
            select(UserRole.user_id)
            .join(Role, Role.id == UserRole.role_id)
            .where(UserRole.user_id == one_of(renamed), Role.given_to.is_(None))
            .distinct()
        )
        for user_id in db.session.scalars(with_roles).all() if renamed else ():
            require_to_change(self.principal, user_id, "Changing the name or gender of this student")


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
        if name not in row.values and name not in row.bad:
            yield RowError(row.number, name, REQUIRED, f"{name} is missing")
        elif name not in row.bad:
            reason = " ".join(map(str, messages))
            reason = reason[:1].lower() + reason[1:].rstrip(".")
            yield RowError(row.number, name, INVALID, "is not accepted", str(row.values.get(name)), reason)


def _differs(new: Mapping[str, Any], student: Any, name: str) -> bool:
    return _text(new[name]) != _text(getattr(student, name))


def _refused_columns(rows: Iterable[Row]) -> Iterator[RowError]:
    """Find the first cell of each column that no update has."""
    for column, problem in _NOT_CHANGED.items():
        first = next((row.number for row in rows if column in row.values), None)
        if first is not None:
            yield RowError(first, column, INVALID, problem, None, "leave the column out", of_person=False)


def _refuse_dates(student: Any, valid: Mapping[str, Any]) -> None:
    """Refuse dates in the wrong order, and those of leaving of a student who is there. Raises Invalid."""
    of_leaving = [name for name in leaving.OF_LEAVING if name in valid]
    if of_leaving and student.status == ACTIVE:
        raise Invalid.field(of_leaving[0], leaving.OF_LEAVERS)
    admitted_on, left_on = (valid.get(name, getattr(student, name)) for name in ("admitted_on", "left_on"))
    leaving.refuse_order(admitted_on, left_on, field="left_on" if "left_on" in valid else "admitted_on")
    if "left_on" in valid:
        leaving.refuse_last_day(student.opened, valid["left_on"])


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
    """Change columns of a model, in one statement, and write the differences to the audit log."""
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
