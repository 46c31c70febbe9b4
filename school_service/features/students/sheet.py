"""Students from a sheet: all of its rows or none, in a fixed number of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any
from uuid import uuid4

from sqlalchemy import insert, select

from school_service.auth.passwords import hash_new_password, password_faults
from school_service.core.counters import STUDENTS, next_numbers
from school_service.core.database import db
from school_service.core.errors import Invalid
from school_service.features.audit.service import Change, audit_changes
from school_service.features.students.models import ACTIVE, Student
from school_service.features.students.service import ENTITY as STUDENT
from school_service.features.students.service import guardian_columns
from school_service.features.users.models import User
from school_service.features.users.service import AUDITED, ENTITY
from school_service.features.users.usernames import username_key
from school_service.sheets.columns import CellType, Column, SuggestedValues
from school_service.sheets.row_errors import DUPLICATE, INVALID, REQUIRED, TAKEN, RowError, raise_row_errors
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import Row, SheetContent, read_sheet
from school_service.sheets.sheet_writer import Table, write_workbook
from school_service.sheets.uploads import RowCounts, SheetUpload
from tenants.clock import now

SHEET = "Students"
FILE_NAME = "students.xlsx"

_GUARDIAN = "guardian_"
_MEANINGS = {
    Column("first_name", required=True, width=18): "The student's first name.",
    Column("middle_name", width=18): "Further names.",
    Column("last_name", required=True, width=18): "The family name.",
    Column("admission_number", required=True, width=20): (
        "The number under which the school admitted the student. No two students have the same."
    ),
    Column("gender", rule=SuggestedValues(("FEMALE", "MALE")), width=12): "FEMALE, MALE or another word.",
    Column("dob", CellType.DAY, width=14): "Date of birth: a date, or a text such as 2012-05-31.",
    Column("guardian_full_name", width=24): (
        "Parent or guardian. Needed where any other column of the guardian is filled in."
    ),
    Column("guardian_relationship", width=20): "Such as mother, father or aunt.",
    Column("guardian_phone_number", width=20): "The guardian's telephone number.",
    Column("guardian_email_address", width=26): "The guardian's e-mail address.",
    Column("username", width=20): (
        "The name of the student's account. Left blank, it is the admission number. "
        "No two accounts of the school have the same."
    ),
    Column("password", width=16): (
        "The password of the account. Left blank, the account has none and nobody can sign in to it. "
        "Passwords make an import slower: some 25 a second."
    ),
}
COLUMNS = tuple(_MEANINGS)

# Validates a record as POST /students validates its body; raises Invalid, which names the fields.
Validate = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _UniqueNames:
    """What has to be unique of a row; without `has_username` the username is the admission number."""

    row: int
    admission_number: str
    username: str
    has_username: bool

    @property
    def username_key(self) -> str:
        """What no two usernames may have in common."""
        return username_key(self.username)


_Records = tuple[list[dict[str, Any]], list[_UniqueNames]]
"""The records of the students, each with its unique names."""


def template() -> tuple[str, bytes]:
    """Write the workbook to fill in: its file name and its bytes."""
    meanings = [
        {"column": column.name, "needed": "yes" if column.required else "no", "what to write": meaning}
        for column, meaning in _MEANINGS.items()
    ]
    help_columns = [Column(name, locked=True) for name in ("column", "needed", "what to write")]
    return FILE_NAME, write_workbook([Table(SHEET, COLUMNS), Table("Help", help_columns, meanings)])


def upload(*, file: IO[bytes], validate: Validate, dry_run: bool) -> dict[str, Any]:
    """Add the students of a sheet, all or none; counts the rows and the students created.

    `dry_run` answers the same and stores nothing. Each password costs some 40 ms of computing. Raises Invalid
    where the file can't be read, TooLarge, and InvalidRows with the errors of the bad rows.
    """
    counts = _StudentUpload(validate, dry_run).run(file)
    return {"rows": counts["rows"], "created": counts["created"], "errors": []}


@dataclass
class _StudentUpload(SheetUpload[_Records]):
    """The upload of new students. Only the counter is locked, and not before the rows are stored."""

    validate: Validate
    dry_run: bool

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        return read_sheet(workbook, SHEET, COLUMNS)

    def match(self, content: SheetContent) -> _Records:
        errors = list(content.errors)
        students = []
        for row in content.rows:
            try:
                students.append(self.validate(_record(row.values)))
            except Invalid as refused:
                errors.extend(_row_errors(row, refused.errors))
        names = [_unique_names(row) for row in content.rows]
        errors.extend(_weak_passwords(content.rows, names))
        errors.extend(_duplicates(names))
        raise_row_errors([*errors, *_taken(names)])
        return students, names

    def store(self, matched: _Records) -> RowCounts:
        students, names = matched
        if students and not self.dry_run:
            _store(students, names)
        return RowCounts(created=len(students))


def _record(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nest a row as the body of POST /students is nested."""
    record = {name: value for name, value in values.items() if not name.startswith(_GUARDIAN)}
    guardian = {name.removeprefix(_GUARDIAN): value for name, value in values.items() if name not in record}
    return {**record, "guardian": guardian} if guardian else record


def _row_errors(row: Row, errors: Mapping[str, Any], prefix: str = "") -> Iterator[RowError]:
    """Name the refused fields by column: the guardian's `full_name` is `guardian_full_name`."""
    for name, messages in errors.items():
        column = prefix + name
        if isinstance(messages, Mapping):
            yield from _row_errors(row, messages, f"{column}_")
        elif column not in row.bad:
            code = INVALID if column in row.values else REQUIRED
            yield RowError(row.number, column, code, " ".join(map(str, messages)))


def _unique_names(row: Row) -> _UniqueNames:
    admission_number = row.values.get("admission_number", "").strip()
    username = row.values.get("username", "").strip()
    return _UniqueNames(row.number, admission_number, username or admission_number, bool(username))


def _weak_passwords(rows: Iterable[Row], names: Iterable[_UniqueNames]) -> Iterator[RowError]:
    """Find the passwords that the policy refuses."""
    for row, name in zip(rows, names, strict=True):
        password = row.values.get("password")
        faults = password_faults(password, username=name.username) if password else []
        if faults:
            yield RowError(row.number, "password", INVALID, f"The password {', and '.join(faults)}.")


def _duplicates(names: Iterable[_UniqueNames]) -> Iterator[RowError]:
    """Find the names that the sheet has twice: the first row is good, the others are not."""
    numbers: dict[str, int] = {}
    usernames: dict[str, int] = {}
    for each in names:
        first = numbers.setdefault(each.admission_number, each.row)
        if first != each.row and each.admission_number:
            yield RowError(each.row, "admission_number", DUPLICATE, f"Row {first} has it too.")
            if not each.has_username:
                continue
        first = usernames.setdefault(each.username_key, each.row)
        if first != each.row and each.username:
            yield RowError(each.row, "username", DUPLICATE, f"The account of row {first} has this name too.")


def _taken(names: Sequence[_UniqueNames]) -> Iterator[RowError]:
    """Find the names that the school has already."""
    of_sheet = {each.admission_number for each in names}
    of_students = select(Student.admission_number).where(Student.admission_number.in_(of_sheet))
    accounts_of_sheet = {each.username_key for each in names}
    of_users = select(User.username_key).where(User.username_key.in_(accounts_of_sheet))
    numbers, usernames = set(db.session.scalars(of_students)), set(db.session.scalars(of_users))
    for each in names:
        if each.admission_number in numbers:
            yield RowError(each.row, "admission_number", TAKEN, "A student with this number exists already.")
            if not each.has_username:
                continue
        if each.username_key in usernames:
            yield RowError(each.row, "username", TAKEN, f"The username {each.username} is taken.")


def _store(students: Sequence[Mapping[str, Any]], names: Sequence[_UniqueNames]) -> None:
    # Computing these takes long, so it comes before the counter's row is locked: others who add students wait.
    hashes = [
        hash_new_password(student["password"], username=name.username) if "password" in student else None
        for student, name in zip(students, names, strict=True)
    ]
    numbers = next_numbers(STUDENTS, len(students))
    # Again, under the lock: another import may have been committed since.
    raise_row_errors(_taken(names))
    moment = now()
    accounts = [
        {
            "id": uuid4(),
            "username": student.get("username") or student["admission_number"],
            "password_hash": password_hash,
            "first_name": student["first_name"],
            "last_name": student["last_name"],
            "gender": student.get("gender") or "",
            "created_at": moment,
        }
        for password_hash, student in zip(hashes, students, strict=True)
    ]
    db.session.execute(insert(User), accounts)
    audit_changes(
        ENTITY,
        [Change(account["id"], None, {name: account[name] for name in AUDITED}) for account in accounts],
    )
    ids = [uuid4() for _ in students]
    audit_changes(
        STUDENT,
        [
            Change(one, None, {"user": account["id"], "admission_number": student["admission_number"]})
            for one, account, student in zip(ids, accounts, students, strict=True)
        ],
    )
    db.session.execute(
        insert(Student),
        [
            {
                "id": student_id,
                "number": number,
                "user_id": account["id"],
                "admission_number": student["admission_number"],
                "middle_name": student.get("middle_name") or None,
                "dob": student.get("dob"),
                "status": ACTIVE,
                **guardian_columns(student.get("guardian")),
                "created_at": moment,
            }
            for student_id, number, account, student in zip(ids, numbers, accounts, students, strict=True)
        ],
    )
