"""The tables of the school itself: settings, letterhead, sessions, terms, classrooms, subjects, cohorts and batches."""

from __future__ import annotations

from datetime import date, datetime
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    LargeBinary,
    SmallInteger,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import (
    EMAIL_LENGTH,
    NAME_LENGTH,
    TEXT_LENGTH,
    Enumeration,
    created_at,
    refers_to,
)
from school_service.core.database import Record, db
from school_service.core.deletion import goes_with
from school_service.core.facts import EMPTIED, STAYS, differing, stored


class Department(Record):
    """A part of the school with its employees, such as Sciences."""

    __tablename__ = "departments"

    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    created_at: Mapped[datetime] = created_at()


class EmployeeCategory(Record):
    """A kind of employee, such as Teaching."""

    __tablename__ = "employee_categories"

    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)


class Position(Record):
    """A post of employees, such as Principal."""

    __tablename__ = "positions"

    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)


NamedSetting = Department | EmployeeCategory | Position
"""A setting known by its name alone."""


TIME_ZONE = "Africa/Lagos"
"""The time zone of a school until it chooses one."""


class SchoolSettings(Record):
    """The choices of a school for itself; one row, there in every school from its creation.

    `must_change_password_since` is a moment: a password given by somebody else since then has to be changed; null if
    none has to be. `time_zone` is IANA's name of the time zone for the days on the school's papers.
    """

    __tablename__ = "school_settings"

    must_change_password_since: Mapped[datetime | None]
    time_zone: Mapped[str] = mapped_column(String(NAME_LENGTH), default=TIME_ZONE)


LOGO, SIGNATURE = PICTURES = Enumeration("LetterheadPicture", "logo", "signature")
MOTTO_LENGTH = 250
WEBSITE_LENGTH = 254
MOST_BYTES = 512 * 1024  # of a picture
LEAST_PIXELS, MOST_PIXELS = 16, 2000  # a side


class Picture(Record):
    """A picture to be printed, known by the SHA-256 of its bytes, in hexadecimal: it never changes.

    It is there for as long as the letterhead or a publication names it; `width` and `height` are pixels.
    """

    __tablename__ = "pictures"
    __table_args__ = (
        CheckConstraint("media_type IN ('image/png', 'image/jpeg')", name="media_type"),
        CheckConstraint("width BETWEEN 16 AND 2000 AND height BETWEEN 16 AND 2000", name="size"),
    )

    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    media_type: Mapped[str] = mapped_column(String(20))
    width: Mapped[int] = mapped_column(SmallInteger)
    height: Mapped[int] = mapped_column(SmallInteger)
    image: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = created_at()


LETTERHEAD_TEXTS = (
    "name",
    "address",
    "phone_number",
    "email_address",
    "website",
    "motto",
    "principal_name",
    "principal_title",
)
"""The members of a letterhead that are texts, in the order of the paper."""


class Letterhead(Record):
    """The details on paper instead of the registry's details of the school; null if the registry's hold."""

    __tablename__ = "letterheads"
    __table_args__ = (UniqueConstraint("singleton"), CheckConstraint("singleton", name="singleton"))

    singleton: Mapped[bool] = mapped_column(default=True)
    name: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    address: Mapped[str | None] = mapped_column(String(TEXT_LENGTH))
    phone_number: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    email_address: Mapped[str | None] = mapped_column(String(EMAIL_LENGTH))
    website: Mapped[str | None] = mapped_column(String(WEBSITE_LENGTH))
    motto: Mapped[str | None] = mapped_column(String(MOTTO_LENGTH))
    principal_name: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    principal_title: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    logo_id: Mapped[UUID | None] = mapped_column(ForeignKey("pictures.id"), index=True)
    signature_id: Mapped[UUID | None] = mapped_column(ForeignKey("pictures.id"), index=True)


TERMS = Enumeration("TermName", "FIRST", "SECOND", "THIRD")


class AcademicSession(Record):
    """An academic session, such as 2025/2026; at most one is current."""

    __tablename__ = "sessions"
    __table_args__ = (CheckConstraint("start_date <= end_date", name="dates"),)

    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    start_date: Mapped[date]
    end_date: Mapped[date]
    current: Mapped[bool]


Index("uq_sessions_current", AcademicSession.current, unique=True, postgresql_where=text("current"))


class Term(Record):
    """One of the three terms of a session."""

    __tablename__ = "terms"
    __table_args__ = (
        UniqueConstraint("session_id", "term", info={"members": ("term",)}),
        # Rows of a term are rows of its session: other tables refer to both together.
        UniqueConstraint("id", "session_id"),
        CheckConstraint("term IN ('FIRST', 'SECOND', 'THIRD')", name="term"),
    )

    session_id: Mapped[UUID] = mapped_column(ForeignKey("sessions.id"))
    term: Mapped[str] = mapped_column(String(20))
    display_name: Mapped[str] = mapped_column(String(NAME_LENGTH))


NOTICE_LENGTH = 500


class TermCalendar(db.Model):
    """The first and last day of a term, how many times school opened in it, and the notice of its cards to parents."""

    __tablename__ = "term_calendars"
    __table_args__ = (
        CheckConstraint("start_date <= end_date", name="dates"),
        CheckConstraint("times_opened BETWEEN 0 AND 400", name="times_opened"),
    )

    term_id: Mapped[UUID] = mapped_column(ForeignKey("terms.id", info=goes_with()), primary_key=True)
    start_date: Mapped[date | None]
    end_date: Mapped[date | None]
    times_opened: Mapped[int | None] = mapped_column(SmallInteger)
    next_term_begins: Mapped[date | None]
    notice: Mapped[str | None] = mapped_column(String(NOTICE_LENGTH))


class Classroom(Record):
    """A room of the school's structure, such as JSS 1: a cohort is one of these in one session."""

    __tablename__ = "classrooms"

    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    level: Mapped[str] = mapped_column(String(NAME_LENGTH))


class Subject(Record):
    """A subject of the school, such as Mathematics: a cohort subject is one of these taught to one cohort.

    `position` orders subjects before their names do; those without one are the last.
    """

    __tablename__ = "subjects"

    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    code: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    position: Mapped[int | None] = mapped_column(SmallInteger)


IN_ORDER = (Subject.position, Subject.name)
"""The order of subjects in lists and on papers; PostgreSQL has null last."""


FIRST_BATCH = "A"


class Cohort(Record):
    """A classroom in one academic session, such as JSS 1 of 2025/2026."""

    __tablename__ = "cohorts"
    # Rows of a cohort are rows of its session: other tables refer to both together, so that a cohort with a history
    # can't be moved to another session.
    __table_args__ = (
        UniqueConstraint("classroom_id", "session_id", info={"members": ("classroom", "session_id")}),
        UniqueConstraint("id", "session_id"),
    )

    classroom_id: Mapped[UUID] = mapped_column(ForeignKey("classrooms.id"))
    session_id: Mapped[UUID] = mapped_column(ForeignKey("sessions.id"), index=True)


class Batch(Record):
    """An arm of a cohort, such as A; the first arm of a cohort has the cohort's id."""

    __tablename__ = "batches"
    __table_args__ = (
        UniqueConstraint("cohort_id", "name", info={"members": ("name",)}),
        UniqueConstraint("id", "cohort_id"),
    )

    number: Mapped[int] = mapped_column(unique=True)
    cohort_id: Mapped[UUID] = mapped_column(ForeignKey("cohorts.id", info=goes_with()))
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))


class Enrollment(Record):
    """A student in a batch: the beginning and, once it has ended, the end.

    Cohort and session are the batch's own. The session is here so that a unique index holds a student to one batch of
    it. `started_at` and `ended_at` are the moments of entering both; `started_on` and `ended_on` are the first and the
    last day in the class, as the school knows them, else null.
    """

    __tablename__ = "enrollments"
    __table_args__ = (
        *refers_to("batches", "batch_id", "cohort_id"),
        *refers_to("cohorts", "cohort_id", "session_id"),
        Index(None, "student_id", "started_at"),
        stored(
            "students",
            "classes and subjects, with when they began and ended",
            "class lists",
            "read:cohorts, read:students",
            STAYS,
            "TFSG",
        ),
    )

    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"))
    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    started_at: Mapped[datetime] = created_at()
    ended_at: Mapped[datetime | None]
    started_on: Mapped[date | None] = mapped_column(
        info=differing(erased=EMPTIED, says="The first day in the class; null where it is not known.")
    )
    ended_on: Mapped[date | None] = mapped_column(
        info=differing(erased=EMPTIED, says="The last day in the class; null where it is not known.")
    )


CURRENT = Enrollment.ended_at.is_(None)

Index(
    "uq_enrollments_student_id_session_id",
    Enrollment.student_id,
    Enrollment.session_id,
    unique=True,
    postgresql_where=text("ended_at IS NULL"),
)
