"""Students from a sheet: all of its rows or none, in a fixed number of statements.

A row may name a class, to enroll the student in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import func, insert, select

from school_service.auth.passwords import hash_new_password, password_faults
from school_service.auth.principal import Principal
from school_service.core.columns import EMAIL_LENGTH, NAME_LENGTH
from school_service.core.counters import STUDENTS, next_numbers
from school_service.core.database import db, outside_transaction
from school_service.core.errors import Invalid
from school_service.core.facts import headed
from school_service.core.permissions import Permission
from school_service.core.records import is_one_of
from school_service.core.statements import execute
from school_service.features.audit.service import Change, audit_changes
from school_service.features.classes.enrollments.service import lock_cohorts, start_enrollments
from school_service.features.people.gains.service import gain_of_accounts
from school_service.features.people.guardians.of_students import Finding
from school_service.features.people.guardians.people import require_results
from school_service.features.people.models import ACTIVE, Student, User
from school_service.features.people.models import STUDENTS as GIVEN_TO_STUDENTS
from school_service.features.people.roles.service import give_to_new
from school_service.features.people.students.leaving import OF_LEAVERS, OF_LEAVING
from school_service.features.people.students.service import ENTITY as STUDENT
from school_service.features.people.usernames import username_key
from school_service.features.people.users.service import AUDITED, ENTITY
from school_service.features.school.models import AcademicSession, Batch, Classroom, Cohort
from school_service.sheets.columns import Column, words_of
from school_service.sheets.import_sheets import (
    EMAILS,
    PHONES,
    PeopleUpload,
    column_of,
    write_template,
)
from school_service.sheets.row_errors import (
    DUPLICATE,
    INVALID,
    TAKEN,
    UNKNOWN,
    RowError,
    raise_row_errors,
)
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import Row, SheetContent, read_sheet
from school_service.sheets.uploads import RowCounts
from tenants.clock import now
from tenants.names import composed
from tenants.tenancy import MAX_PASSWORD_LENGTH

SHEET = "Students"
FILE_NAME = "students.xlsx"

# Rows with passwords that one import may have: hashing them takes some 15 seconds.
PASSWORDS_AT_ONCE = 300
_GIVING_PASSWORDS = "Giving students passwords"

CLASS = "class"
ARM = "arm"
MAX_CLASSES_SHOWN = 8  # classes that an error names at most
MAX_ROWS_SHOWN = 5  # rows that a warning names at most

_GUARDIANS = {"guardian_2": "guardian_2_", "guardian": "guardian_"}
"""The members of a record for guardians, and the beginnings of their columns; of two fitting ones, the first."""
DAYS = ("dob", "admitted_on", "left_on")
PHONE_NUMBERS = ("guardian_phone_number", "guardian_2_phone_number")


def _of_guardian(*words: str) -> tuple[str, ...]:
    """Usual headings of a column of the guardian: `parent phone`, `guardian s phone`."""
    people = ("guardian", "parent", "guardian s", "parent s", "parents", "parent guardian")
    return tuple(f"{person} {word}".strip() for person in people for word in words)


_NAMES = ("first_name", "middle_name", "last_name", "guardian_full_name", "guardian_2_full_name")
GUARDIAN_NAMES = _NAMES[3:]
_IMPOSSIBLE_DAYS = frozenset({"Is before 1900.", "Is in the future.", f"{OF_LEAVERS.capitalize()}."})
_FIRST = ("first_name", "middle_name", "last_name", "admission_number", "gender")
_HEADED = {column.name: (column, heading) for model in (User, Student) for column, heading in headed(model)}
OF_RECORD = [_HEADED[name] for name in dict.fromkeys((*_FIRST, *_HEADED))]
"""The columns of the account and of the student in a sheet, each with its heading."""


_MEANINGS = {
    **{
        column_of(*_HEADED[name]): _HEADED[name][1].meaning
        for name in (*_FIRST, *(column for column in _HEADED if column not in _FIRST))
    },
    Column("guardian_full_name", width=24, also=_of_guardian("", "name", "full name")): (
        "Parent or guardian. Needed where any other column of the guardian is filled in."
    ),
    Column(
        "guardian_relationship", width=20, also=("relationship", "relation")
    ): "Such as mother, father or aunt.",
    Column(PHONE_NUMBERS[0], width=20, also=_of_guardian(*PHONES)): "The guardian's telephone number.",
    Column(
        "guardian_email_address",
        most=EMAIL_LENGTH,
        width=26,
        also=_of_guardian(*EMAILS),
    ): "The guardian's e-mail address.",
    Column("guardian_2_full_name", width=24): (
        "A second parent or guardian. Needed where any other column of theirs is filled in."
    ),
    Column("guardian_2_relationship", width=20): "Such as mother, father or aunt.",
    Column(PHONE_NUMBERS[1], width=20): "Their telephone number.",
    Column("guardian_2_email_address", most=EMAIL_LENGTH, width=26): "Their e-mail address.",
    Column("username", width=20): (
        "The name of the student's account. Left blank, it is the admission number. "
        "No two accounts of the school have the same."
    ),
    Column("password", most=MAX_PASSWORD_LENGTH, width=16): (
        "The password of the account. Left blank, the account has none and nobody can sign in to it. "
        f"Passwords make an import slower, some 25 a second: a sheet may have {PASSWORDS_AT_ONCE:,} of them."
    ),
    # A classroom, an arm and a session, each a name.
    Column(CLASS, most=3 * NAME_LENGTH, width=20): (
        "The class that the student is in: such as JSS 1 A in the current session, or JSS 1 A 2025/2026. "
        "Left blank, the student is in none yet."
    ),
}
OF_GUARDIANS = tuple(column for column in _MEANINGS if column.name.startswith("guardian_"))
"""The columns of the guardian and of a second one."""
_OF_FAMILY = {
    Column("phone", also=PHONES): PHONE_NUMBERS[0],
    Column("email", also=EMAILS): "guardian_email_address",
}
"""Columns that lists of a class have of the family: without a column of the guardian's own they are the guardian's."""
_READ = (*_MEANINGS, Column(ARM), *_OF_FAMILY)
_MOST = {column.name: column.most for column in _READ}
COLUMNS = tuple(column for column in _MEANINGS if column.name not in OF_LEAVING)
"""The columns of the template: a new student has not left, and is refused where the sheet of a clerk says so."""


@dataclass(frozen=True, slots=True)
class _UniqueNames:
    """The unique values of a row; without `has_username` the username is the admission number."""

    row: int
    admission_number: str
    username: str
    has_username: bool

    @property
    def username_key(self) -> str:
        """The username as it is compared: no two accounts have the same key."""
        return username_key(self.username)


_Records = tuple[list[dict[str, Any]], list[_UniqueNames], list[Any]]
"""The records of the students, each with its unique names and its class, None without a class."""


def template() -> tuple[str, bytes]:
    """Write the workbook to fill in: its file name and its bytes."""
    return FILE_NAME, write_template(SHEET, {column: _MEANINGS[column] for column in COLUMNS})


@dataclass(kw_only=True)
class StudentUpload(PeopleUpload[_Records]):
    """The upload of new students, all or none. Cohorts and the counter alone are locked, once the rows are stored.

    With `dry_run` the answer is the same and nothing is stored. `dates` is DMY or MDY: how dates in text are written;
    without it the sheet itself has to show the order. Each password costs some 40 ms of computing. For it the
    transaction is ended and another begun: so `principal` is asked for the caller in the present one. Raises Invalid if
    the file can't be read, TooLarge, Busy, InvalidRows with the errors of the bad rows, and Forbidden if the sheet
    names classes and the principal may enroll nobody, and if it has passwords, or guardians with an account, and the
    principal may not read results.
    """

    principal: Callable[[], Principal]

    days = DAYS
    phone_numbers = PHONE_NUMBERS
    names = _NAMES
    most = _MOST
    impossible_days = _IMPOSSIBLE_DAYS
    number = "admission_number"
    secret = ("password",)

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        content = self._take_of_family(read_sheet(workbook, SHEET, _READ))
        for row in content.rows:
            # Some lists have the arm beside the class, or once more.
            arm, class_ = row.values.pop(ARM, None), str(row.values.get(CLASS, ""))
            if arm and not f" {words_of(class_)} ".count(f" {words_of(arm)} "):
                row.values[CLASS] = f"{class_} {arm}".strip()
        return content

    def _take_of_family(self, content: SheetContent) -> SheetContent:
        """Take the columns of the family for the guardian's, in the rows that name a guardian."""
        names = {}
        for column, of_guardian in _OF_FAMILY.items():
            unread = [row for row in content.rows if column.name in row.values]
            if of_guardian not in content.letters:
                names[column.name] = of_guardian
                unread = [row for row in unread if not row.values.get("guardian_full_name")]
                self._warn_of_nameless(column.name, [row.number for row in unread])
            elif column.name in content.letters:
                content.ignored.append(column.name)
            for row in unread:
                del row.values[column.name]
        return content.with_columns_named(names)

    def _warn_of_nameless(self, column: str, rows: Sequence[int]) -> None:
        if rows:
            shown = ", ".join(map(str, rows[:MAX_ROWS_SHOWN])) + ", …" * (len(rows) > MAX_ROWS_SHOWN)
            self.warn(f"Nothing was read of the column {column} in rows without guardian_full_name: {shown}.")

    def judge(self, content: SheetContent) -> None:
        if any(str(row.values.get(CLASS, "")).strip() for row in content.rows):
            self._require_enrolling()

    def match(self, content: SheetContent) -> _Records:
        passwords = sum("password" in row.values for row in content.rows)
        if passwords:
            require_results(_GIVING_PASSWORDS)
        if passwords > PASSWORDS_AT_ONCE:
            raise Invalid.field(
                "sheet",
                f"has {passwords:,} rows with passwords, and {PASSWORDS_AT_ONCE:,} may have one: "
                "divide it into several sheets, or leave the column blank",
            )
        errors = self.read_texts(content)
        students = self.validated(content.rows, errors, _record)
        names = [_unique_names(row) for row in content.rows]
        errors.extend(_weak_passwords(content.rows, names))
        errors.extend(_duplicates(names))
        classes, unknown = self._find_classes(content.rows)
        raise_row_errors(
            [*errors, *unknown, *_names_in_use(names)], letters=content.letters, people=self.people(content)
        )
        self.tell_replaced()
        return students, names, classes

    def store(self, matched: _Records) -> RowCounts:
        students, names, classes = matched
        if any(classes):
            self.answer["enrolled"] = sum(class_ is not None for class_ in classes)
        if self.dry_run:
            finding = _find_guardians(students, range(len(students)), lock=False)
            accounts = finding.accounts if finding else []
            told = gain_of_accounts(*accounts).foresee() if accounts else None
        else:
            hashes = self._hashes(students, names)
            if any(classes):
                # Asked again, since hashing may have begun another transaction.
                self._require_enrolling()
            finding, told = _store(students, names, classes, hashes)
        if finding is not None:
            self.answer |= {
                "guardians_created": finding.new_people,
                "guardians_found": finding.existing_people,
            }
        self.answer |= told or {}
        return RowCounts(created=len(students))

    def _hashes(
        self, students: Sequence[Mapping[str, Any]], names: Sequence[_UniqueNames]
    ) -> Sequence[str | None]:
        """Hash the passwords before anything is locked: hashing takes long, so no connection is held meanwhile."""
        if not any("password" in student for student in students):
            return [None] * len(students)
        hashes = outside_transaction(partial(_hash_passwords, students, names))
        require_results(_GIVING_PASSWORDS)
        return hashes

    def _require_enrolling(self) -> None:
        self.principal().require([Permission.COHORTS_WRITE], "Enrolling students")

    def _find_classes(self, rows: Sequence[Row]) -> tuple[list[Any], list[RowError]]:
        """Find the batch of each row with a class."""
        named = [str(row.values.get(CLASS, "")).strip() for row in rows]
        if not any(named):
            return [None] * len(rows), []
        known = _classes()
        batches = [known.get(words_of(name)) for name in named]
        remedy = _classes_remedy(known)
        errors = [
            RowError(row.number, CLASS, UNKNOWN, "is no class, or not one alone", name, remedy)
            for row, name, batch in zip(rows, named, batches, strict=True)
            if name and batch is None
        ]
        return batches, errors


def _record(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nest a row as the body of POST /students is nested; a second guardian beside the first."""
    record: dict[str, Any] = {}
    for name, value in values.items():
        member = next((guardian for guardian, prefix in _GUARDIANS.items() if name.startswith(prefix)), None)
        if member is not None:
            record.setdefault(member, {})[name.removeprefix(_GUARDIANS[member])] = value
        elif name != CLASS:
            record[name] = value
    return record


def _classes() -> dict[str, Any]:
    """Find the batches by their possible names in a sheet; None for a name of several.

    A name is classroom, arm and session. It may leave out the session if it is the current one, and the arm if the
    cohort has only one.
    """
    batches = db.session.execute(
        select(
            Batch.id,
            Batch.cohort_id,
            Batch.name,
            Classroom.name.label("classroom"),
            AcademicSession.name.label("session"),
            AcademicSession.current,
            (func.count().over(partition_by=Batch.cohort_id) == 1).label("alone"),
        )
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .order_by(AcademicSession.current.desc(), Classroom.name, Batch.name)
    ).all()
    classes: dict[str, Any] = {}
    for batch in batches:
        names = [f"{batch.classroom} {batch.name}", *([batch.classroom] if batch.alone else [])]
        in_full = [f"{name} {batch.session}" for name in names]
        for name in [str(batch.id), *(names if batch.current else ()), *in_full]:
            words = words_of(name)
            classes[words] = batch if words not in classes else None
    return classes


def _classes_remedy(known: Mapping[str, Any]) -> str:
    of_session = {
        f"{batch.classroom} {batch.name}": None
        for batch in known.values()
        if batch is not None and batch.current
    }
    if not of_session:
        return "add the class to the current session first"
    shown = list(of_session)[:MAX_CLASSES_SHOWN]
    more = ", …" if len(of_session) > len(shown) else ""
    return f"write one of {', '.join(shown)}{more}"


def _unique_names(row: Row) -> _UniqueNames:
    admission_number = composed(row.values.get("admission_number", ""))
    username = composed(row.values.get("username", ""))
    return _UniqueNames(row.number, admission_number, username or admission_number, bool(username))


def _weak_passwords(rows: Iterable[Row], names: Iterable[_UniqueNames]) -> Iterator[RowError]:
    """Find the passwords refused by the policy."""
    for row, name in zip(rows, names, strict=True):
        password = row.values.get("password")
        faults = password_faults(password, username=name.username) if password else []
        if faults:
            problem = f"the password {', and '.join(faults)}"
            yield RowError(row.number, "password", INVALID, problem, of_person=False)


def _duplicates(names: Iterable[_UniqueNames]) -> Iterator[RowError]:
    """Find numbers and usernames given twice in the sheet: the errors are those of every row but the first."""
    numbers: dict[str, int] = {}
    usernames: dict[str, int] = {}
    for each in names:
        first = numbers.setdefault(each.admission_number.casefold(), each.row)
        if first != each.row and each.admission_number:
            yield RowError(
                each.row, "admission_number", DUPLICATE, f"is in row {first} too", each.admission_number
            )
            if not each.has_username:
                continue
        first = usernames.setdefault(each.username_key, each.row)
        if first != each.row and each.username:
            yield RowError(
                each.row,
                "username",
                DUPLICATE,
                f"is the name of the account of row {first} too",
                each.username,
            )


def _names_in_use(names: Sequence[_UniqueNames]) -> Iterator[RowError]:
    """Find the admission numbers and usernames already taken in the school."""
    of_sheet = {each.admission_number.lower() for each in names}
    small = func.lower(Student.admission_number)
    of_students = select(small.label("number"), Student.admission_number.label("written")).where(
        is_one_of(small, of_sheet)
    )
    accounts_of_sheet = {each.username_key for each in names}
    of_users = select(User.username_key).where(is_one_of(User.username_key, accounts_of_sheet))
    numbers = {row.number: row.written for row in db.session.execute(of_students)}
    usernames = set(db.session.scalars(of_users))
    for each in names:
        written = numbers.get(each.admission_number.lower())
        if written is not None:
            of_whom = "" if written == each.admission_number else f", written {written}"
            problem = f"is the number of a student who exists already{of_whom}"
            yield RowError(each.row, "admission_number", TAKEN, problem, each.admission_number)
            if not each.has_username:
                continue
        if each.username_key in usernames:
            yield RowError(each.row, "username", TAKEN, "is a username that is taken", each.username)


def _deleted(names: Sequence[_UniqueNames], classes: Sequence[Any]) -> Iterator[RowError]:
    """Find the classes deleted since they were found; their cohorts must be locked."""
    ids = {batch.id for batch in classes if batch is not None}
    there = set(db.session.scalars(select(Batch.id).where(Batch.id.in_(ids)))) if ids else set()
    for each, batch in zip(names, classes, strict=True):
        if batch is not None and batch.id not in there:
            name = f"{batch.classroom} {batch.name}"
            yield RowError(each.row, CLASS, UNKNOWN, "was deleted meanwhile", name)


def _hash_passwords(students: Sequence[Mapping[str, Any]], names: Sequence[_UniqueNames]) -> list[str | None]:
    return [
        hash_new_password(student["password"], username=name.username) if "password" in student else None
        for student, name in zip(students, names, strict=True)
    ]


def _store(
    students: Sequence[Mapping[str, Any]],
    names: Sequence[_UniqueNames],
    classes: Sequence[Any],
    hashes: Sequence[str | None],
) -> tuple[Finding | None, dict[str, Any] | None]:
    """Store the students; returns their guardians, and others' changes of the accounts of these."""
    # Cohorts come before the counter: a transaction with a locked cohort never waits for a student's number.
    cohort_ids = {batch.cohort_id for batch in classes if batch is not None}
    if cohort_ids:
        lock_cohorts(cohort_ids=cohort_ids)
    numbers = next_numbers(STUDENTS, len(students))
    # Checked again under the locks: another import, or a deletion, may have been committed since.
    raise_row_errors([*_deleted(names, classes), *_names_in_use(names)])
    moment = now()
    accounts = [
        {
            "id": uuid4(),
            "username": student.get("username") or student["admission_number"],
            "password_hash": password_hash,
            **_row_values(User, student),
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
    finding = _find_guardians(students, ids)
    audit_changes(
        STUDENT,
        [
            Change(student_id, None, {"user": account["id"], "admission_number": student["admission_number"]})
            for student_id, account, student in zip(ids, accounts, students, strict=True)
        ],
    )
    db.session.execute(
        insert(Student),
        [
            {
                "id": student_id,
                "number": number,
                "user_id": account["id"],
                **_row_values(Student, student),
                "status": ACTIVE,
                "created_at": moment,
            }
            for student_id, number, account, student in zip(ids, numbers, accounts, students, strict=True)
        ],
    )
    batches: dict[UUID, Any] = {
        student_id: batch for student_id, batch in zip(ids, classes, strict=True) if batch is not None
    }
    enrolled = [(uuid4(), student_id, batch) for student_id, batch in batches.items()]
    writes = (
        give_to_new([account["id"] for account in accounts], GIVEN_TO_STUDENTS, moment),
        *(start_enrollments(enrolled) if enrolled else ()),
        *(finding.store() if finding else ()),
    )
    if finding and finding.accounts:
        return finding, gain_of_accounts(*finding.accounts).write(*writes)
    execute(*writes)
    return finding, None


def _row_values(model: type[Any], student: Mapping[str, Any]) -> dict[str, Any]:
    """Give the values of a row: for a blank in the sheet null, or an empty text in a column without nulls."""
    values = {column: student.get(column.name) for column, _ in headed(model)}
    return {
        column.name: (None if column.nullable else "") if value in {None, ""} else value
        for column, value in values.items()
    }


def _find_guardians(
    students: Sequence[Mapping[str, Any]], ids: Sequence[object], *, lock: bool = True
) -> Finding | None:
    """Find the guardians named by the rows, with the new ones among them; None if none is named.

    With `lock` they stay as they are. Raises Forbidden if one has an account and the caller may not read results, and
    Conflict if one would have too many children.
    """
    named = [
        (student_id, student[member], member == "guardian")
        for student_id, student in zip(ids, students, strict=True)
        for member in ("guardian", "guardian_2")
        if student.get(member)
    ]
    if not named:
        return None
    finding = Finding.of([guardian for _, guardian, _ in named], lock=lock)
    for place, (student_id, _, primary) in enumerate(named):
        finding.add(str(student_id), place, primary=primary)
    finding.refuse()
    return finding
