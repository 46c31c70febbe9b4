"""Employees from a sheet: all of its rows or none, in a fixed number of statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import func, insert, select

from school_service.core.columns import EMAIL_LENGTH, TEXT_LENGTH
from school_service.core.database import db
from school_service.core.facts import headed
from school_service.core.records import is_one_of
from school_service.core.statements import execute, table_lock
from school_service.features.audit.service import Change, audit_changes
from school_service.features.people.employees.service import BANK_ACCOUNT, BORN_AFTER, ENTITY, NEXT_OF_KIN
from school_service.features.people.models import (
    NOT_DELETED,
    BankAccount,
    Contact,
    Employee,
    NextOfKin,
    User,
)
from school_service.features.people.usernames import stem_of, without_number, written_as
from school_service.features.people.users.service import AUDITED
from school_service.features.people.users.service import ENTITY as USER
from school_service.features.school.geography.service import list_lgas, list_nationalities, list_states
from school_service.features.school.models import Department, EmployeeCategory, Position
from school_service.sheets.columns import CellType, Column, words_of
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
    REQUIRED,
    TAKEN,
    UNKNOWN,
    RowError,
    raise_row_errors,
)
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.sheet_reader import Row, SheetContent, read_sheet
from school_service.sheets.uploads import RowCounts
from tenants.clock import now

SHEET = "Employees"
FILE_NAME = "employees.xlsx"
MAX_NAMES_SHOWN = 8  # names that an error offers at most

_OF_USER = {
    column.name: replace(column_of(column, heading), required=True) for column, heading in headed(User)
}
_NEXT_OF_KIN, _BANK = "next_of_kin", "bank_details"
_MEANINGS = {
    _OF_USER["first_name"]: "The employee's first name.",
    Column(
        "middle_name", width=18, also=("middle", "middlename", "other name", "other names", "othernames")
    ): "Further names.",
    _OF_USER["last_name"]: "The family name.",
    Column("title", also=("salutation",)): "Such as Mr, Mrs or Dr.",
    _OF_USER["gender"]: "FEMALE or MALE; F and M will do.",
    Column("category", required=True, width=16, also=("employee category", "staff category")): (
        "The name of an employee category of the school, such as Teaching."
    ),
    Column("department", width=18, also=("dept",)): "The name of a department of the school.",
    Column("position", width=18, also=("post", "designation", "job title")): (
        "The name of a position of the school."
    ),
    Column("dob", CellType.DAY, width=14, also=("d o b", "date of birth", "birth date", "birthday")): (
        "Date of birth: a date, or a text such as 1985-05-31."
    ),
    Column(
        "join_date",
        CellType.DAY,
        width=14,
        also=("date joined", "joined", "date of employment", "employment date", "start date"),
    ): "The day of joining the school: a date, or a text such as 2022-09-12.",
    Column("marital_status", width=16): "Such as Married.",
    Column("blood_group", width=14): "Such as O+.",
    Column("religion", width=14): "As the school writes it.",
    Column("status", width=12): "Left blank, it is ACTIVE.",
    Column("nationality", width=16, also=("country",)): "The name of a country, such as Nigeria.",
    Column("state", width=16, also=("state of origin",)): "The name of a state of Nigeria, such as Lagos.",
    Column("lga", width=18, also=("local government area", "l g a", "local government")): (
        "The name of a local government area of the state."
    ),
    Column("phone_number", width=20, also=PHONES): "The telephone number.",
    Column("email_address", most=EMAIL_LENGTH, width=26, also=EMAILS): "The e-mail address.",
    Column("physical_address", most=TEXT_LENGTH, width=26, also=("address", "home address")): "The address.",
    Column("bank_name", width=18, also=("bank",)): "The bank of the account for the pay.",
    Column("account_name", width=20): "The name that the account bears.",
    Column("account_number", width=16, also=("account no",)): "Ten digits, as a text.",
    Column("bank_sort_code", width=14, also=("sort code",)): "The sort code of the bank.",
    Column("account_type", width=14): "Such as Savings.",
    Column("employee_no", width=14, also=("staff no", "staff number", "employee number", "staff id")): (
        "The employee's number in the pay list."
    ),
    Column("next_of_kin_full_name", width=22, also=("next of kin", "next of kin name")): (
        "The person to tell if something happens to the employee."
    ),
    Column("next_of_kin_relationship", width=20): "Such as Wife or Brother.",
    Column("next_of_kin_phone_number", width=20, also=("next of kin phone",)): "Their telephone number.",
    Column("next_of_kin_physical_address", most=TEXT_LENGTH, width=26, also=("next of kin address",)): (
        "Their address."
    ),
}
COLUMNS = tuple(_MEANINGS)
_PARTS = {
    "contact": ("phone_number", "email_address", "physical_address"),
    _BANK: ("bank_name", "account_name", "account_number", "bank_sort_code", "account_type", "employee_no"),
}
_PART_OF = {column: part for part, columns in _PARTS.items() for column in columns}
_SETTINGS: dict[str, Any] = {"category": EmployeeCategory, "department": Department, "position": Position}
_ORIGIN = ("nationality", "state", "lga")
_REFERENCES = (*_SETTINGS, *_ORIGIN)
_TEXTS = ("middle_name", "title", "marital_status", "blood_group", "religion")

# Imports take turns, so that the same names are not stored by two at once.
_lock = table_lock(Employee)


def template() -> tuple[str, bytes]:
    """Write the workbook to fill in: its file name and its bytes."""
    return FILE_NAME, write_template(SHEET, _MEANINGS)


@dataclass(kw_only=True)
class EmployeeUpload(PeopleUpload[list[dict[str, Any]]]):
    """The upload of new employees, all or none; other imports of employees wait for it.

    With `dry_run` the answer is the same and nothing is stored. `dates` is DMY or MDY: how dates in text are written;
    without it the sheet itself has to show the order. The accounts have no password and no role. Raises Invalid if the
    file can't be read, TooLarge, Busy, and InvalidRows with the errors of the bad rows.
    """

    days = ("dob", "join_date")
    phone_numbers = ("phone_number", "next_of_kin_phone_number")
    names = ("first_name", "middle_name", "last_name", "next_of_kin_full_name")
    most = {column.name: column.most for column in COLUMNS}
    impossible_days = (f"{BORN_AFTER.capitalize()}.",)

    def read_rows(self, workbook: SheetFile) -> SheetContent:
        return read_sheet(workbook, SHEET, COLUMNS)

    def lock(self) -> None:
        if not self.dry_run:
            execute(_lock())

    def match(self, content: SheetContent) -> list[dict[str, Any]]:
        errors = self.read_texts(content)
        employees = self.validated(content.rows, errors, _record)
        references, unknown = _referred(content.rows)
        told = {(error.row, error.column) for error in errors}
        errors += [error for error in unknown if (error.row, error.column) not in told]
        raise_row_errors(
            [*errors, *_known_people(content.rows)], letters=content.letters, people=self.people(content)
        )
        self.tell_replaced()
        return [employee | reference for employee, reference in zip(employees, references, strict=True)]

    def store(self, matched: list[dict[str, Any]]) -> RowCounts:
        if not self.dry_run:
            _store(matched)
        return RowCounts(created=len(matched))

    def column_named(self, field: str) -> str:
        return field.removeprefix("contact_").removeprefix(f"{_BANK}_")


def _record(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nest a row as the body of POST /employees is nested, without the names of other records."""
    record: dict[str, Any] = {}
    for name, value in values.items():
        if name.startswith(f"{_NEXT_OF_KIN}_"):
            record.setdefault(_NEXT_OF_KIN, {})[name.removeprefix(f"{_NEXT_OF_KIN}_")] = value
        elif name in _PART_OF:
            record.setdefault(_PART_OF[name], {})[name] = value
        elif name not in _REFERENCES:
            record[name] = value
    return record


def _referred(rows: Sequence[Row]) -> tuple[list[dict[str, UUID]], list[RowError]]:
    """Find the records named by each row: the ids by column, and the errors of unknown names."""
    known = _names(rows)
    errors, references = [], []
    for row in rows:
        ids: dict[str, UUID] = {}
        for column in _REFERENCES:
            name = str(row.values.get(column, "")).strip()
            if not name:
                if column == "category" and column not in row.bad:
                    errors.append(RowError(row.number, column, REQUIRED, f"{column} is missing"))
                continue
            if column == "lga" and "state" not in ids:
                if not str(row.values.get("state", "")).strip():
                    problem, remedy = "lies in a state", "write the state, too"
                    errors.append(RowError(row.number, column, INVALID, problem, name, remedy))
                continue
            key = f"{ids['state']} {words_of(name)}" if column == "lga" else words_of(name)
            named = known[column].get(key.removesuffix(" state") if column == "state" else key)
            if named is not None:
                ids[column] = named[1]
            else:
                errors.append(_unknown(row.number, column, name, known))
        references.append(ids)
    return references, errors


_Known = Mapping[str, Mapping[str, tuple[str, UUID]]]


def _names(rows: Sequence[Row]) -> _Known:
    """Find name and id of the records that rows may name, by column and by the words of the name."""
    named = {column for row in rows for column in _REFERENCES if column in row.values}
    known: dict[str, dict[str, tuple[str, UUID]]] = {column: {} for column in _REFERENCES}
    for column, model in _SETTINGS.items():
        if column in named:
            listed = db.session.execute(select(model.name, model.id).order_by(model.name))
            known[column] = {words_of(name): (name, record) for name, record in listed}
    for column, listing in (("nationality", list_nationalities), ("state", list_states)):
        if column in named:
            known[column] = {words_of(each["name"]): (each["name"], each["id"]) for each in listing()}
    if "lga" in named:
        known["lga"] = {
            f"{each['state']} {words_of(each['name'])}": (each["name"], each["id"]) for each in list_lgas()
        }
    return known


_WHAT = {"lga": "local government area of the state"}


def _unknown(row: int, column: str, written: str, known: _Known) -> RowError:
    remedy = None
    if column in _SETTINGS:
        listed = [name for name, _ in known[column].values()]
        more = ", …" if len(listed) > MAX_NAMES_SHOWN else ""
        offered = ", ".join(listed[:MAX_NAMES_SHOWN])
        remedy = f"write one of {offered}{more}" if listed else f"add the {column} in the settings first"
    return RowError(row, column, UNKNOWN, f"is no {_WHAT.get(column, column)}", written, remedy)


def _known_people(rows: Sequence[Row]) -> Iterator[RowError]:
    """Find the people who are in the sheet or in the school already.

    Two of the same names are two people if both have a date of birth, and these differ.
    """
    seen: dict[str, dict[str | None, int | None]] = {}
    columns = (User.first_name, Employee.middle_name, User.last_name, Employee.dob)
    stored = select(*columns).join(User, User.id == Employee.user_id).where(NOT_DELETED)
    for first, middle, last, dob in db.session.execute(stored):
        seen.setdefault(_key([first, middle, last]), {})[str(dob) if dob else None] = None
    for row in rows:
        if not {"first_name", "last_name"} <= row.values.keys():
            continue
        names = [str(row.values.get(name, "")) for name in ("first_name", "middle_name", "last_name")]
        born = str(row.values["dob"]) if "dob" in row.values else None
        others = seen.setdefault(_key(names), {})
        same = [other for other in (born, None) if other in others] if born else [*others][:1]
        if same:
            yield _known_person_error(row.number, others[same[0]], " ".join(filter(None, names)))
        others.setdefault(born, row.number)


def _known_person_error(row: int, other: int | None, name: str) -> RowError:
    """Make the error of a person who is in another row, or in the school already."""
    remedy = "write the dates of birth if they are two people"
    code = TAKEN if other is None else DUPLICATE
    problem = "is an employee already" if other is None else f"is in row {other} too"
    return RowError(row, "last_name", code, problem, name, remedy, of_person=False)


def _key(names: Iterable[str]) -> str:
    return words_of(" ".join(filter(None, names)))


def _usernames(employees: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the account of each employee after them; with a number where the name is taken."""
    stems = [stem_of(each["first_name"], each["last_name"]) for each in employees]
    without = func.regexp_replace(User.username_key, "[0-9]+$", "")
    alike = select(User.username_key).where(is_one_of(without, {without_number(stem) for stem in stems}))
    taken = set(db.session.scalars(alike))
    numbered = {stem: written_as(stem) for stem in stems}
    names = []
    for stem in stems:
        names.append(next(name for name in numbered[stem] if name not in taken))
        taken.add(names[-1])
    return names


def _store(employees: Sequence[Mapping[str, Any]]) -> None:
    """Store the employees, each with account, contact, bank account and next of kin, empty where the sheet is."""
    moment = now()
    tables: dict[Any, list[dict[str, Any]]] = {
        model: [] for model in (User, Contact, Employee, BankAccount, NextOfKin)
    }
    for employee, username in zip(employees, _usernames(employees), strict=True):
        rows = _rows(employee)
        # It has no password: the setter of one is named then.
        rows[User] |= {"username": username, "password_given_by": None, "password_given_by_name": None}
        for model, row in rows.items():
            tables[model].append(row | ({} if model is BankAccount else {"created_at": moment}))
    for model, rows_of in tables.items():
        db.session.execute(insert(model), rows_of)
    _audit(tables)


def _rows(employee: Mapping[str, Any]) -> dict[Any, dict[str, Any]]:
    """Make the rows of an employee, by table."""
    user, contact, record = uuid4(), uuid4(), uuid4()
    of_employee = {name: employee.get(name, "") for name in _TEXTS}
    of_employee |= {f"{name}_id": employee.get(name) for name in _REFERENCES}
    of_employee |= {name: employee.get(name) for name in ("dob", "join_date")}
    kin = dict.fromkeys(("full_name", "relationship", "phone_number", "physical_address"), "")
    return {
        User: {"id": user, **{name: employee[name] for name in ("first_name", "last_name", "gender")}},
        Contact: {
            "id": contact,
            "owner_id": user,
            **dict.fromkeys(_PARTS["contact"], ""),
            **employee.get("contact", {}),
        },
        Employee: {
            "id": record,
            "user_id": user,
            "contact_id": contact,
            "status": employee.get("status", "ACTIVE"),
            **of_employee,
        },
        BankAccount: {
            "id": uuid4(),
            "employee_id": record,
            "employee_ref": 0,
            **dict.fromkeys(_PARTS[_BANK], ""),
            **employee.get(_BANK, {}),
        },
        NextOfKin: {
            "id": uuid4(),
            "employee_id": record,
            "employee_ref": 0,
            **kin,
            **employee.get(_NEXT_OF_KIN, {}),
        },
    }


def _audit(tables: Mapping[Any, Sequence[Mapping[str, Any]]]) -> None:
    """Write the entries of POST /employees to the audit log: employees with their names, records with their owner."""
    audit_changes(
        USER, [Change(row["id"], None, {name: row[name] for name in AUDITED}) for row in tables[User]]
    )
    audit_changes("contact", [Change(row["id"], None, {"owner": row["owner_id"]}) for row in tables[Contact]])
    for entity, model in ((BANK_ACCOUNT, BankAccount), (NEXT_OF_KIN, NextOfKin)):
        audit_changes(
            entity, [Change(row["id"], None, {"employee": row["employee_id"]}) for row in tables[model]]
        )
    audit_changes(
        ENTITY,
        [
            Change(
                row["id"],
                None,
                {
                    "first_name": user["first_name"],
                    "middle_name": row["middle_name"],
                    "last_name": user["last_name"],
                },
            )
            for row, user in zip(tables[Employee], tables[User], strict=True)
        ],
    )
