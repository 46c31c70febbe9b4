"""The tables of people: roles and permissions, accounts, contacts, students, guardians, employees, form teachers.

Last the sign-ins of people: sessions, links to outside identities, invitations; and their photos.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    Computed,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    and_,
    column,
    func,
    literal,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import INET, JSONB
from sqlalchemy.orm import Mapped, mapped_column, validates

from school_service.core.columns import (
    EMAIL_LENGTH,
    NAME_LENGTH,
    TEXT_LENGTH,
    Enumeration,
    created_at,
    primary_key,
)
from school_service.core.database import Actor, Record, db, request_context
from school_service.core.deletion import goes_with
from school_service.core.facts import BY_SERVICE, EMPTIED, STAYS, Heading, differing, fact, stored
from school_service.core.genders import GENDERS
from school_service.core.reach import OWN_REACH, SCHOOL_REACH
from school_service.core.search import folded, search_index
from school_service.core.sort_keys import sort_key
from school_service.features.audit.models import ACTOR_LENGTH, ACTOR_NAME_LENGTH
from school_service.features.audit.service import OPERATOR
from school_service.features.people.usernames import username_key
from school_service.features.school.models import SchoolSettings
from tenants.clock import now

ADMINISTRATOR = "Administrator"

EVERYBODY = "everybody with an account"


class StoredPermission(Record):
    """An access to a section: each of the service's permissions, and the ones added by the school."""

    __tablename__ = "permissions"
    __table_args__ = (UniqueConstraint("section", "access"),)

    section: Mapped[str] = mapped_column(String(NAME_LENGTH))
    access: Mapped[str] = mapped_column(String(NAME_LENGTH))

    def __str__(self) -> str:
        return f"{self.access}:{self.section}"


SCHOOL, OWN = REACHES = Enumeration("RoleReach", SCHOOL_REACH, OWN_REACH)
STUDENTS, GUARDIANS = GIVEN_TO = Enumeration("RoleGivenTo", "STUDENTS", "GUARDIANS")


class Role(Record):
    """A named bundle of permissions, given to users.

    Its `reach` is the whole school's records, or only the records reached by the relations of the user. Each account of
    students or guardians has the role `given_to` its kind from its making.
    """

    __tablename__ = "roles"
    __table_args__ = (
        CheckConstraint("reach IN ('SCHOOL', 'OWN')", name="reach"),
        CheckConstraint(
            "given_to IS NULL OR given_to IN ('STUDENTS', 'GUARDIANS') AND reach = 'OWN'", name="given_to"
        ),
    )

    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    avatar_number: Mapped[int]
    reach: Mapped[str] = mapped_column(String(20), default=SCHOOL, server_default=SCHOOL)
    given_to: Mapped[str | None] = mapped_column(String(20), unique=True)


class RolePermission(db.Model):
    """A permission of a role."""

    __tablename__ = "role_permissions"

    role_id: Mapped[UUID] = mapped_column(ForeignKey("roles.id", ondelete="CASCADE"), primary_key=True)
    permission_id: Mapped[UUID] = mapped_column(
        ForeignKey("permissions.id", ondelete="CASCADE"), primary_key=True, index=True
    )


CREATED = 0
"""The session number of an account without any sign-in so far, and without any permission given to it."""


def _key_of_username(context: Any) -> str:
    return username_key(context.get_current_parameters()["username"])


def _giver() -> str | None:
    principal = request_context().principal
    return None if principal is None else principal.actor


def _givers_name() -> str:
    principal = request_context().principal
    return OPERATOR if principal is None else principal.actor_name


def _sorted_by(*names: str, info: dict[str, Any]) -> Mapped[str]:
    """Make the column of a key of names, for sorting accounts; PostgreSQL computes it."""
    key = sort_key(*(column(name, String) for name in names))
    computed = Computed(key, persisted=True)
    return mapped_column(Text(collation="C"), computed, index=True, deferred=True, info=info)


class User(db.Model):
    """An account. A deleted account stays stored, with the time of its deletion, and its username stays taken.

    An erased account is deleted too: it has neither a name nor a password any more, and can not be restored.
    `username_key` makes usernames unique without regard to case; it is made whenever the username is set.
    `name_sort_key` and `username_sort_key` order people and accounts in lists. `password_given_at` is the moment of
    making the account, or of setting its password, by somebody else; null since its user set one. `password_given_by`
    is the id of the user or client as its giver, null for the operator; if the name is null, too, nobody knows: the
    password is older than these columns.
    """

    __tablename__ = "users"
    __table_args__ = (
        CheckConstraint("erased_at IS NULL OR deleted_at IS NOT NULL", name="erased"),
        UniqueConstraint("username_key", info={"field": "username"}),
        stored(EVERYBODY, None, "to sign in, and to name the actor", "read:users"),
    )

    id: Mapped[UUID] = primary_key(info=fact(None, STAYS, own="TFSGM", exported=True))
    username: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        unique=True,
        info=fact(
            "username",
            BY_SERVICE,
            own="M",
            says="The name that the user signs in with, unique in the school.",
            exported=True,
        ),
    )
    username_key: Mapped[str] = mapped_column(
        Text, default=_key_of_username, info=fact("username", BY_SERVICE, own="")
    )
    password_hash: Mapped[str | None] = mapped_column(
        Text, info=fact("hash of the password", EMPTIED, own="", told=False)
    )
    password_given_at: Mapped[datetime | None] = mapped_column(
        default=now, info=fact("when it was given", STAYS, own="")
    )
    password_given_by: Mapped[str | None] = mapped_column(
        String(ACTOR_LENGTH), default=_giver, info=fact("its giver", EMPTIED, own="")
    )
    password_given_by_name: Mapped[str | None] = mapped_column(
        String(ACTOR_NAME_LENGTH), default=_givers_name, info=fact("its giver", EMPTIED, own="")
    )
    first_name: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        info=fact(
            "names",
            BY_SERVICE,
            own="TFSGM",
            says="The first name.",
            exported=True,
            heading=Heading(
                "The student's first name.",
                required=True,
                also="firstname, given name, given names, first names, forename",
            ),
        ),
    )
    last_name: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        info=fact(
            "names",
            BY_SERVICE,
            own="TFSGM",
            says="The last name.",
            exported=True,
            heading=Heading(
                "The family name.", required=True, also="surname, lastname, family name, sur name, last names"
            ),
        ),
    )
    gender: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        info=fact(
            "gender",
            EMPTIED,
            own="TFSGM",
            says="The gender, as the school writes it.",
            exported=True,
            heading=Heading("FEMALE or MALE; F and M will do.", width=12, also="sex", suggested=GENDERS),
        ),
    )
    photo: Mapped[str | None] = mapped_column(
        Text,
        info=fact(
            "photo", EMPTIED, own="TFSGM", says="The address of a photograph; null where there is none."
        ),
    )
    session_number: Mapped[int] = mapped_column(default=CREATED, info=fact(None, BY_SERVICE, own=""))
    created_at: Mapped[datetime] = created_at(info=fact("when the account was created", STAYS, own=""))
    deleted_at: Mapped[datetime | None] = mapped_column(
        info=fact("deleted", BY_SERVICE, own="", exported=True)
    )
    erased_at: Mapped[datetime | None] = mapped_column(info=fact("erased", BY_SERVICE, own=""))
    name_sort_key: Mapped[str] = _sorted_by(
        "last_name", "first_name", info=fact("names", BY_SERVICE, own="TFSGM")
    )
    username_sort_key: Mapped[str] = _sorted_by("username", info=fact("username", BY_SERVICE, own="M"))

    def given_by(self, giver: Actor | None) -> None:
        """Note the giver of the password, now; None is the user, with one of their own."""
        self.password_given_at = None if giver is None else now()
        self.password_given_by = None if giver is None else giver.actor
        self.password_given_by_name = None if giver is None else giver.actor_name

    @validates("username")
    def _set_key(self, _name: str, username: str) -> str:
        self.username_key = username_key(username)
        return username


_user = User.__table__.c
SEARCHED_OF_USER = _user.username + " " + _user.first_name + " " + _user.last_name
"""The searched texts of a user."""
search_index("ix_users_search", SEARCHED_OF_USER)


def must_change_password() -> ColumnElement[bool]:
    """Tell of a row of users whether its password has to be changed.

    It has to if somebody else gave it after the school began to demand a change.
    """
    since = select(SchoolSettings.must_change_password_since).scalar_subquery()
    return func.coalesce(User.password_given_at >= since, literal(False))


class UserRole(db.Model):
    """A role of a user, and the time of its giving."""

    __tablename__ = "user_roles"
    __table_args__ = stored(
        EVERYBODY, "roles", "for their permissions", "read:users, read:roles", BY_SERVICE, "M"
    )

    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    role_id: Mapped[UUID] = mapped_column(ForeignKey("roles.id"), primary_key=True, index=True)
    created_at: Mapped[datetime] = created_at()


class Contact(db.Model):
    """An e-mail address, phone number and postal address of the owner of a user account."""

    __tablename__ = "contacts"
    __table_args__ = (
        UniqueConstraint("owner_id", "email_address", info={"members": ("email_address",)}),
        stored(EVERYBODY, None, "to reach them", "read:contacts"),
    )

    id: Mapped[UUID] = primary_key(info=fact(None, STAYS, own="FM", exported=True))
    owner_id: Mapped[UUID] = mapped_column(
        ForeignKey("users.id", info=goes_with()), info=fact(None, STAYS, own="FM", exported=True)
    )
    email_address: Mapped[str] = mapped_column(
        String(EMAIL_LENGTH), info=fact("e-mail address", EMPTIED, own="FM", exported=True)
    )
    phone_number: Mapped[str] = mapped_column(
        String(NAME_LENGTH), info=fact("phone number", EMPTIED, own="FM")
    )
    physical_address: Mapped[str] = mapped_column(
        String(TEXT_LENGTH), info=fact("postal address", EMPTIED, own="FM")
    )
    created_at: Mapped[datetime] = created_at(info=fact(None, STAYS, own="", exported=True))


ACTIVE, GRADUATED, WITHDRAWN = STUDENT_STATUSES = Enumeration(
    "StudentStatus", "ACTIVE", "GRADUATED", "WITHDRAWN"
)


SCHOOLING_LENGTH = 500  # of the former school, and of the reason for leaving
_OF_LEAVERS = "Of a student who has withdrawn or graduated; blank for a new one."


class Student(db.Model):
    """A student; first name, last name and gender are in the user account of each student.

    The four columns of a guardian are empty since guardians have a table, and go with the next release.
    """

    __tablename__ = "students"
    __table_args__ = (
        CheckConstraint("status IN ('ACTIVE', 'GRADUATED', 'WITHDRAWN')", name="status"),
        stored("students", None, "to teach them", "read:students"),
    )

    id: Mapped[UUID] = primary_key(info=fact(None, STAYS, own="TFSGM", exported=True))
    number: Mapped[int] = mapped_column(unique=True, info=fact(None, STAYS, own="TFSG"))
    user_id: Mapped[UUID] = mapped_column(
        ForeignKey("users.id"), unique=True, info=fact(None, STAYS, own="TFSG", exported=True)
    )
    admission_number: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        unique=True,
        info=fact(
            "admission number",
            BY_SERVICE,
            own="TFSGM",
            says="The student's admission number, unique in the school.",
            exported=True,
            heading=Heading(
                "The number under which the school admitted the student. No two students have the same.",
                required=True,
                width=20,
                also=(
                    "admission no, admission nr, admission num, admission, admissionnumber, admissionno, adm no, "
                    "adm number, adm num, admn no, reg no, reg number, registration no, registration number"
                ),
            ),
        ),
    )
    middle_name: Mapped[str | None] = mapped_column(
        String(NAME_LENGTH),
        info=fact(
            "middle name",
            EMPTIED,
            own="TFSG",
            says="The middle name.",
            exported=True,
            heading=Heading(
                "Further names.", also="middle, middlename, middle names, other name, other names, othernames"
            ),
        ),
    )
    dob: Mapped[date | None] = mapped_column(
        info=fact(
            "date of birth",
            EMPTIED,
            own="FSG",
            says="The date of birth.",
            exported=True,
            heading=Heading(
                "Date of birth: a date, or a text such as 2012-05-31.",
                width=14,
                also="d o b, date of birth, birth date, birthdate, birthday",
            ),
        )
    )
    status: Mapped[str] = mapped_column(
        String(20),
        default=ACTIVE,
        index=True,
        info=fact("status", BY_SERVICE, own="TFSGM", says="The student's status.", exported=True),
    )
    admitted_on: Mapped[date | None] = mapped_column(
        info=fact(
            "dates of admission and of leaving",
            EMPTIED,
            own="TFSG",
            says="The date of admission to the school; null where nobody has entered it.",
            heading=Heading(
                "Date of admission: a date, or a text such as 2022-09-12.",
                width=14,
                also="admission date, date admitted, date of admission, admitted",
            ),
        )
    )
    former_school: Mapped[str | None] = mapped_column(
        String(SCHOOLING_LENGTH),
        info=fact(
            "former school",
            EMPTIED,
            own="FSG",
            says="The school before this one.",
            heading=Heading("The school before this one.", width=24, also="previous school, last school"),
        ),
    )
    left_on: Mapped[date | None] = mapped_column(
        info=fact(
            "dates of admission and of leaving",
            EMPTIED,
            own="TFSG",
            says="The date of leaving the school; null for students who are there.",
            heading=Heading(_OF_LEAVERS, width=14, also="leaving date, date left, date of leaving"),
        )
    )
    leaving_reason: Mapped[str | None] = mapped_column(
        String(SCHOOLING_LENGTH),
        info=fact(
            "reason for leaving",
            EMPTIED,
            own="",
            says="The reason for leaving, for the school alone.",
            heading=Heading(_OF_LEAVERS, width=24, also="reason for leaving"),
        ),
    )
    guardian_full_name: Mapped[str | None] = mapped_column(
        String(NAME_LENGTH), info=fact(None, STAYS, own="", told=False)
    )
    guardian_relationship: Mapped[str | None] = mapped_column(
        String(NAME_LENGTH), info=fact(None, STAYS, own="", told=False)
    )
    guardian_phone_number: Mapped[str | None] = mapped_column(
        String(NAME_LENGTH), info=fact(None, STAYS, own="", told=False)
    )
    guardian_email_address: Mapped[str | None] = mapped_column(
        String(EMAIL_LENGTH), info=fact(None, STAYS, own="", told=False)
    )
    created_at: Mapped[datetime] = created_at(info=fact(None, STAYS, own="TFSG"))

    def __str__(self) -> str:
        return student_name(self.admission_number, self.id)


_student = Student.__table__.c
SEARCHED_OF_STUDENT = _student.admission_number + " " + func.coalesce(_student.middle_name, "")
"""The searched texts of a student's own row; the other names are the user account's."""
search_index("ix_students_search", SEARCHED_OF_STUDENT)


def student_name(admission_number: str, student_id: object) -> str:
    """Name a student in an error, by admission number and id."""
    return f"{admission_number} ({student_id})"


class Guardian(db.Model):
    """A person looking after students: a parent, an aunt. `user_id` is their account for reading of their children.

    An erased guardian has a pseudonym, and neither an account nor children.
    """

    __tablename__ = "guardians"
    __table_args__ = (
        UniqueConstraint("user_id", info={"message": "The user is the account of another guardian already."}),
        stored("guardians", None, "to reach who looks after the students", "read:students"),
    )

    id: Mapped[UUID] = primary_key(info=fact(None, STAYS, own="FG"))
    user_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("users.id"), info=fact("account", BY_SERVICE, own="FG")
    )
    full_name: Mapped[str] = mapped_column(
        String(NAME_LENGTH), info=fact("name", BY_SERVICE, own="FG", says="The whole name.")
    )
    phone_number: Mapped[str | None] = mapped_column(
        String(NAME_LENGTH), info=fact("phone", EMPTIED, own="FG")
    )
    email_address: Mapped[str | None] = mapped_column(
        String(EMAIL_LENGTH), info=fact("e-mail address", EMPTIED, own="FG")
    )
    physical_address: Mapped[str | None] = mapped_column(
        String(TEXT_LENGTH), info=fact("postal address", EMPTIED, own="FG")
    )
    created_at: Mapped[datetime] = created_at(info=fact(None, STAYS, own="FG"))
    erased_at: Mapped[datetime | None] = mapped_column(info=fact("erased", BY_SERVICE, own=""))


_guardian = Guardian.__table__.c
SEARCHED_OF_GUARDIAN = (
    _guardian.full_name
    + " "
    + func.coalesce(_guardian.phone_number, "")
    + " "
    + func.coalesce(_guardian.email_address, "")
)
"""The searched texts of a guardian."""
search_index("ix_guardians_search", SEARCHED_OF_GUARDIAN)
# The same person is found by the folded name first (guardians/reads.py).
Index("ix_guardians_folded_name", folded(_guardian.full_name))


STOP_REASON_LENGTH = 500


class StudentGuardian(db.Model):
    """A guardianship of a student. One guardian of a student may be the primary, shown in the student's record.

    A stop, by a member of staff and for a reason, ends the guardian's access to this student; the row stays.
    """

    __tablename__ = "student_guardians"
    __table_args__ = (
        CheckConstraint(
            "num_nulls(stopped_at, stopped_by, stopped_by_name, stop_reason) IN (0, 4)"
            " AND NOT (is_primary AND stopped_at IS NOT NULL)",
            name="stopped",
        ),
        Index(
            "uq_student_guardians_student_id", "student_id", unique=True, postgresql_where=text("is_primary")
        ),
        stored("students", None, "to reach their guardians, and to stop access", "read:students"),
    )

    student_id: Mapped[UUID] = mapped_column(
        ForeignKey("students.id", info=goes_with()), primary_key=True, info=fact(None, BY_SERVICE, own="FG")
    )
    guardian_id: Mapped[UUID] = mapped_column(
        ForeignKey("guardians.id"),
        primary_key=True,
        index=True,
        info=fact("their guardians", BY_SERVICE, own="FG"),
    )
    relationship: Mapped[str | None] = mapped_column(
        String(NAME_LENGTH),
        info=fact(
            "relationship",
            BY_SERVICE,
            own="FG",
            says="The relationship to the other person, such as `Mother`.",
        ),
    )
    is_primary: Mapped[bool] = mapped_column(
        default=False,
        info=fact(
            "the primary one",
            BY_SERVICE,
            own="FG",
            says="Whether the student's record shows this guardian.",
        ),
    )
    receives_reports: Mapped[bool] = mapped_column(
        default=True,
        info=fact(
            "receivers of reports",
            BY_SERVICE,
            own="FG",
            says="Whether reports on the student are sent to the guardian.",
        ),
    )
    stopped_at: Mapped[datetime | None] = mapped_column(
        info=fact(
            "whose access is stopped",
            BY_SERVICE,
            own="FG",
            says="Since when the guardian's access to the student is stopped.",
        )
    )
    stopped_by: Mapped[str | None] = mapped_column(
        String(ACTOR_LENGTH), info=fact("by whom", BY_SERVICE, own="", told=False)
    )
    stopped_by_name: Mapped[str | None] = mapped_column(
        String(ACTOR_NAME_LENGTH), info=fact("by whom", BY_SERVICE, own="", told=False)
    )
    stop_reason: Mapped[str | None] = mapped_column(
        String(STOP_REASON_LENGTH),
        info=fact(
            "why", BY_SERVICE, own="", told=False, says="Why the guardian is stopped, as the school wrote it."
        ),
    )
    created_at: Mapped[datetime] = created_at(info=fact(None, BY_SERVICE, own=""))


class Employee(db.Model):
    """A member of staff; first name, last name and gender are in the user account of each.

    State, local government area and nationality are of the reference data in the registry, out of reach of foreign
    keys. A deleted employee stays stored, with the time of the deletion. All but the category may be missing, null or
    an empty text, of an employee who came by the import, and after an erasure.
    """

    __tablename__ = "employees"
    __table_args__ = stored("employees", None, "employment", "read:employees")

    id: Mapped[UUID] = primary_key(info=fact(None, STAYS, own="TFSGM", exported=True))
    user_id: Mapped[UUID] = mapped_column(
        ForeignKey("users.id"), unique=True, info=fact(None, STAYS, own="M", exported=True)
    )
    contact_id: Mapped[UUID] = mapped_column(
        ForeignKey("contacts.id"), unique=True, info=fact(None, STAYS, own="M")
    )
    department_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("departments.id"), index=True, info=fact("department", STAYS, own="M")
    )
    category_id: Mapped[UUID] = mapped_column(
        ForeignKey("employee_categories.id"), index=True, info=fact("category", STAYS, own="M", exported=True)
    )
    position_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("positions.id"), index=True, info=fact("position", STAYS, own="M")
    )
    middle_name: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        info=fact("middle name", EMPTIED, own="M", says="The middle name.", exported=True),
    )
    title: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        info=fact("title", EMPTIED, own="TFSGM", says="How the person is addressed, such as `Dr`."),
    )
    dob: Mapped[date | None] = mapped_column(
        info=fact("date of birth", EMPTIED, own="M", says="The date of birth.")
    )
    join_date: Mapped[date | None] = mapped_column(
        info=fact("joining", EMPTIED, own="M", says="The day on which the employee joined the school.")
    )
    marital_status: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        info=fact("marital status", EMPTIED, own="M", says="The marital status, as the school writes it."),
    )
    blood_group: Mapped[str] = mapped_column(
        String(NAME_LENGTH), info=fact("blood group", EMPTIED, own="M", says="The blood group, such as `O+`.")
    )
    lga_id: Mapped[UUID | None] = mapped_column(info=fact("local government area", EMPTIED, own="M"))
    state_id: Mapped[UUID | None] = mapped_column(info=fact("state", EMPTIED, own="M"))
    nationality_id: Mapped[UUID | None] = mapped_column(info=fact("nationality", EMPTIED, own="M"))
    religion: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        info=fact("religion", EMPTIED, own="M", says="The religion, as the school writes it."),
    )
    status: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        info=fact("status", EMPTIED, own="M", says="The employee's status, as the school writes it."),
    )
    created_at: Mapped[datetime] = created_at(info=fact(None, STAYS, own=""))
    deleted_at: Mapped[datetime | None] = mapped_column(info=fact(None, STAYS, own="", exported=True))


NOT_DELETED = Employee.deleted_at.is_(None)
IS_THERE = and_(NOT_DELETED, User.deleted_at.is_(None))
"""Whether an employee may teach: neither they nor their account is deleted."""


class BankAccount(Record):
    """The account for an employee's pay.

    `employee_ref` and `employee_no` are stored as the client's own system gave them, and link nothing.
    """

    __tablename__ = "bank_accounts"
    __table_args__ = stored("employees", "bank account", "pay", "read:employees", BY_SERVICE, "M")

    employee_id: Mapped[UUID] = mapped_column(ForeignKey("employees.id"), unique=True)
    bank_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    account_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    account_number: Mapped[str] = mapped_column(String(NAME_LENGTH))
    bank_sort_code: Mapped[str] = mapped_column(String(NAME_LENGTH))
    account_type: Mapped[str] = mapped_column(String(NAME_LENGTH))
    employee_no: Mapped[str] = mapped_column(String(NAME_LENGTH))
    employee_ref: Mapped[int]


class NextOfKin(db.Model):
    """The person to tell if something happens to an employee.

    `employee_ref` is stored as the client's own system gave it, and links nothing.
    """

    __tablename__ = "next_of_kin"
    __table_args__ = stored("employees", None, "emergencies", "read:employees")

    id: Mapped[UUID] = primary_key(info=fact(None, BY_SERVICE, own="M"))
    employee_id: Mapped[UUID] = mapped_column(
        ForeignKey("employees.id"), unique=True, info=fact(None, BY_SERVICE, own="M")
    )
    full_name: Mapped[str] = mapped_column(
        String(NAME_LENGTH), info=fact("name of the next of kin", BY_SERVICE, own="M", says="The whole name.")
    )
    relationship: Mapped[str] = mapped_column(
        String(NAME_LENGTH),
        info=fact(
            "relationship",
            BY_SERVICE,
            own="M",
            says="The relationship to the other person, such as `Mother`.",
        ),
    )
    phone_number: Mapped[str] = mapped_column(String(NAME_LENGTH), info=fact("phone", BY_SERVICE, own="M"))
    physical_address: Mapped[str] = mapped_column(
        String(TEXT_LENGTH), info=fact("address", BY_SERVICE, own="M")
    )
    employee_ref: Mapped[int] = mapped_column(info=fact(None, BY_SERVICE, own="M"))
    created_at: Mapped[datetime] = created_at(info=fact(None, BY_SERVICE, own="M"))


class FormTeacher(db.Model):
    """An employee looking after a batch, and the time of the assignment."""

    __tablename__ = "form_teachers"
    __table_args__ = stored(
        "employees",
        "classes they look after",
        "to know the form teachers",
        "read:teachers",
        BY_SERVICE,
        "TFSG",
    )

    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id"), primary_key=True)
    employee_id: Mapped[UUID] = mapped_column(ForeignKey("employees.id"), primary_key=True, index=True)
    created_at: Mapped[datetime] = created_at()


# Tables of an account: sign-ins of its user, and the photo.

CLIENT_ID_LENGTH = 120
REDIRECT_URI_LENGTH = 2000
NONCE_LENGTH = 500
USER_AGENT_LENGTH = 200
ISSUER_LENGTH = 1000
SUBJECT_LENGTH = 255
HASH_LENGTH = 64  # hex digits of SHA-256


class UserSession(Record):
    """One sign-in of a user by a client, with its refresh token.

    It is born with its code and, until the code is exchanged, ends with it. `session_number` and
    `client_session_number` are the user's and the client's at the sign-in: when one of them has risen since, the
    session has ended. `scope` is the granted scope, `permissions` are the most its tokens may use (None: all
    permissions of the roles; none: nothing but signing in). `handle` names the session in its refresh tokens, and is
    told nowhere else. `token_hash` is of the refresh token in force, `previous_hash` of the one before; from the latter
    and `salt` the token in force was made at `rotated_at`. `idle_until`, no later than `expires_at`, is the end of a
    session without use.
    """

    __tablename__ = "user_sessions"
    __table_args__ = (
        CheckConstraint("code_used = (token_hash IS NOT NULL)", name="exchanged"),
        CheckConstraint("idle_until <= expires_at", name="ends"),
        stored(
            EVERYBODY,
            (
                "where they are signed in by an app or website: by which, since when, last used, "
                "until when, from which network address, with which browser"
            ),
            "to keep them signed in, and so that they see where",
            "read:users",
            BY_SERVICE,
            "M",
        ),
    )

    handle: Mapped[UUID] = mapped_column(unique=True, info=differing(told=False))
    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    client_id: Mapped[str] = mapped_column(String(CLIENT_ID_LENGTH))
    client_session_number: Mapped[int]
    session_number: Mapped[int]
    scope: Mapped[str] = mapped_column(Text)
    permissions: Mapped[list[str] | None] = mapped_column(JSONB(none_as_null=True))
    redirect_uri: Mapped[str] = mapped_column(String(REDIRECT_URI_LENGTH))
    nonce: Mapped[str | None] = mapped_column(String(NONCE_LENGTH), info=differing(told=False))
    code_hash: Mapped[str] = mapped_column(String(HASH_LENGTH), unique=True, info=differing(told=False))
    code_challenge: Mapped[str] = mapped_column(String(43), info=differing(told=False))
    code_used: Mapped[bool] = mapped_column(default=False)
    token_hash: Mapped[str | None] = mapped_column(String(HASH_LENGTH), info=differing(told=False))
    previous_hash: Mapped[str | None] = mapped_column(String(HASH_LENGTH), info=differing(told=False))
    salt: Mapped[str | None] = mapped_column(String(64), info=differing(told=False))
    rotated_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = created_at()
    last_used_at: Mapped[datetime]
    idle_until: Mapped[datetime] = mapped_column(index=True)
    expires_at: Mapped[datetime]
    address: Mapped[str | None] = mapped_column(INET)
    user_agent: Mapped[str | None] = mapped_column(String(USER_AGENT_LENGTH))


BY_ADMINISTRATOR, BY_INVITATION, BY_EMAIL, BY_PASSWORD = WAYS = Enumeration(
    "IdentityWay", "ADMINISTRATOR", "INVITATION", "EMAIL", "PASSWORD"
)
"""The ways of linking an identity to an account."""


class UserIdentity(Record):
    """The link of an account to an identity of an outside provider, its `iss` and `sub`."""

    __tablename__ = "user_identities"
    __table_args__ = (
        CheckConstraint("way IN ('ADMINISTRATOR', 'INVITATION', 'EMAIL', 'PASSWORD')", name="way"),
        UniqueConstraint(
            "issuer",
            "subject",
            info={"message": "The identity is linked to an account of the school already."},
        ),
        stored(
            EVERYBODY,
            (
                "sign-ins of an outside provider that open the account: issuer and subject, "
                "author, time and way of the link"
            ),
            "so that they sign in by it",
            "read:users",
            BY_SERVICE,
            "M",
        ),
    )

    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    issuer: Mapped[str] = mapped_column(String(ISSUER_LENGTH))
    subject: Mapped[str] = mapped_column(String(SUBJECT_LENGTH))
    way: Mapped[str] = mapped_column(String(20))
    created_at: Mapped[datetime] = created_at()
    created_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    created_by_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))


class Invitation(Record):
    """The open invitation of an account: by its code the bearer sets the password or links an identity."""

    __tablename__ = "invitations"
    __table_args__ = stored(
        EVERYBODY,
        "the open invitation: the hash of its code, an e-mail address, its author, from when, until when",
        "so that they set their password themselves",
        "read:users",
        BY_SERVICE,
        "M",
    )

    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), unique=True)
    code_hash: Mapped[str] = mapped_column(String(HASH_LENGTH), unique=True, info=differing(told=False))
    email: Mapped[str | None] = mapped_column(String(EMAIL_LENGTH), index=True)
    created_at: Mapped[datetime] = created_at()
    created_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    created_by_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))
    expires_at: Mapped[datetime] = mapped_column(index=True)


PHOTO_DIGITS = "^[0-9a-f]{12}$"
"""The form of `users.photo` for a photo kept here: the first digits of its hash."""


class UserPhoto(db.Model):
    """The photo of a user: a JPEG, made anew from the upload."""

    __tablename__ = "user_photos"
    __table_args__ = stored(
        EVERYBODY,
        "the photo, its size and when it was set",
        "to know them by sight",
        "read:users",
        BY_SERVICE,
        "TFSGM",
    )

    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    image: Mapped[bytes] = mapped_column(LargeBinary)
    width: Mapped[int]
    height: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(HASH_LENGTH))
    created_at: Mapped[datetime] = created_at()
