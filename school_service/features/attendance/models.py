"""The tables of attendance: how a school keeps registers, when it is open, its registers and the marks in them."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    ForeignKey,
    Index,
    SmallInteger,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import Enumeration, refers_to
from school_service.core.database import Record, db
from school_service.core.deletion import goes_with
from school_service.core.facts import BY_SERVICE, EMPTIED, STAYS, differing, stored
from school_service.features.audit.models import ACTOR_LENGTH, ACTOR_NAME_LENGTH

DAY, HALF_DAYS = REGISTER_PARTS = Enumeration("RegisterParts", "DAY", "HALF_DAYS")
"""How often a day a class is called: once, or in the morning and in the afternoon."""
TYPED, REGISTERS = ROLL_UPS = Enumeration("RollUp", "TYPED", "REGISTERS")
"""The source of attendance on cards: typed in, or taken from the registers."""
MARKS, SUMS, NOTHING = FAMILY_READINGS = Enumeration("FamilyReading", "MARKS", "SUMS", "NOTHING")
"""The share of attendance shown to students and guardians."""

MORNING, AFTERNOON = HALVES = Enumeration("HalfDay", "MORNING", "AFTERNOON")
DAY_PARTS = Enumeration("DayPart", DAY, *HALVES)
"""The parts of day registers."""
LESSON = "LESSON"
PARTS = Enumeration("RegisterPart", *DAY_PARTS, LESSON)

PRESENT, LATE, ABSENT, EXCUSED = KINDS = Enumeration("AttendanceKind", "PRESENT", "LATE", "ABSENT", "EXCUSED")
"""How a mark counts: the first two as present, the others as absent."""
OPEN, CLOSED, USUAL = DAY_STATUSES = Enumeration("SchoolDayStatus", "OPEN", "CLOSED", "USUAL")
"""The status of a day, against the weekdays of school: with USUAL it is no exception."""
NOT_TAKEN, DRAFT, SUBMITTED = REGISTER_STATES = Enumeration(
    "RegisterState", "NOT_TAKEN", "DRAFT", "SUBMITTED"
)

CODE_LENGTH = 4
DAY_NAME_LENGTH = CODE_NAME_LENGTH = 60
NOTE_LENGTH, REASON_LENGTH = 200, 500
MOST_CODES, MOST_PERIODS = 20, 20
MOST_LOCK_DAYS = 60

DEFAULTS: dict[str, Any] = {
    "parts": DAY,
    "weekdays": [1, 2, 3, 4, 5],
    "roll_up": TYPED,
    "lock_after": 7,
    "chronic_percent": 10,
    "families_read": NOTHING,
}
"""The settings of a school without a row, by column: nothing is seeded."""

DEFAULT_CODES = (
    ("P", "Present", PRESENT),
    ("L", "Late", LATE),
    ("A", "Absent", ABSENT),
    ("E", "Excused", EXCUSED),
)
"""The codes of a school without its own: code, name, kind."""

_IS_KIND = "IN ('PRESENT', 'LATE', 'ABSENT', 'EXCUSED')"


class AttendanceSettings(Record):
    """How a school keeps registers; without the row, as `DEFAULTS` say.

    `weekdays` are the days of school in a week, 1 being Monday. A register older than `lock_after` days is changed by
    the office alone; null without such a bound. Absence is chronic from `chronic_percent` on, a share of the times
    opened.
    """

    __tablename__ = "attendance_settings"
    __table_args__ = (
        UniqueConstraint("singleton"),
        CheckConstraint("singleton", name="singleton"),
        CheckConstraint("parts IN ('DAY', 'HALF_DAYS')", name="parts"),
        CheckConstraint(
            "cardinality(weekdays) > 0 AND weekdays <@ ARRAY[1, 2, 3, 4, 5, 6, 7]::smallint[]",
            name="weekdays",
        ),
        CheckConstraint("roll_up IN ('TYPED', 'REGISTERS')", name="roll_up"),
        CheckConstraint("lock_after BETWEEN 0 AND 60", name="lock_after"),
        CheckConstraint("chronic_percent BETWEEN 1 AND 100", name="chronic_percent"),
        CheckConstraint("families_read IN ('MARKS', 'SUMS', 'NOTHING')", name="families_read"),
    )

    singleton: Mapped[bool] = mapped_column(default=True)
    parts: Mapped[str] = mapped_column(String(20))
    weekdays: Mapped[list[int]] = mapped_column(ARRAY(SmallInteger))
    roll_up: Mapped[str] = mapped_column(String(20))
    lock_after: Mapped[int | None] = mapped_column(SmallInteger)
    chronic_percent: Mapped[int] = mapped_column(SmallInteger)
    families_read: Mapped[str] = mapped_column(String(20))


class AttendanceCode(Record):
    """The meaning of a mark, such as P for present; `position` orders them, from 1.

    Without rows, as `DEFAULT_CODES` say.
    """

    __tablename__ = "attendance_codes"
    __table_args__ = (
        UniqueConstraint("code"),
        UniqueConstraint("position"),
        CheckConstraint(f"kind {_IS_KIND}", name="kind"),
    )

    position: Mapped[int] = mapped_column(SmallInteger)
    code: Mapped[str] = mapped_column(String(CODE_LENGTH))
    name: Mapped[str] = mapped_column(String(CODE_NAME_LENGTH))
    kind: Mapped[str] = mapped_column(String(20))


class SchoolDay(Record):
    """An exceptional day, or half of one: closed, such as a holiday, or open, such as a Saturday.

    `part` is DAY for the whole of it. A half follows its own row, else the row of the day.
    """

    __tablename__ = "school_days"
    __table_args__ = (
        UniqueConstraint("date", "part"),
        CheckConstraint("part IN ('DAY', 'MORNING', 'AFTERNOON')", name="part"),
        CheckConstraint("status IN ('OPEN', 'CLOSED')", name="status"),
    )

    date: Mapped[date]
    part: Mapped[str] = mapped_column(String(20))
    status: Mapped[str] = mapped_column(String(20))
    name: Mapped[str | None] = mapped_column(String(DAY_NAME_LENGTH))


class Register(Record):
    """A class at one time: a batch on a day, or a batch in a lesson of a cohort subject.

    Cohort and session are the batch's own. Foreign keys on them keep the term within its session, and the cohort in its
    session, under concurrent writes, too. `version` rises by 1 with each change of a mark or of the state. `taken_at`
    is the moment of marking, by the teacher's device. `changed_by` is an actor as in the audit log; all three of the
    change are null until somebody has marked.
    """

    __tablename__ = "registers"
    __table_args__ = (
        *refers_to("batches", "batch_id", "cohort_id"),
        *refers_to("cohorts", "cohort_id", "session_id"),
        *refers_to("terms", "term_id", "session_id"),
        *refers_to("cohort_subjects", "cohort_subject_id", "cohort_id"),
        CheckConstraint("part IN ('DAY', 'MORNING', 'AFTERNOON', 'LESSON')", name="part"),
        CheckConstraint(
            "CASE WHEN part = 'LESSON' THEN cohort_subject_id IS NOT NULL AND period IS NOT NULL"
            " ELSE cohort_subject_id IS NULL AND period IS NULL END",
            name="lesson",
        ),
        CheckConstraint("period BETWEEN 1 AND 20", name="period"),
        CheckConstraint("state IN ('NOT_TAKEN', 'DRAFT', 'SUBMITTED')", name="state"),
        CheckConstraint("version >= 0", name="version"),
        Index(None, "date"),
    )

    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    cohort_subject_id: Mapped[UUID | None]
    date: Mapped[date]
    part: Mapped[str] = mapped_column(String(20))
    period: Mapped[int | None] = mapped_column(SmallInteger)
    state: Mapped[str] = mapped_column(String(20))
    version: Mapped[int]
    taken_at: Mapped[datetime | None]
    changed_at: Mapped[datetime | None]
    changed_by: Mapped[str | None] = mapped_column(String(ACTOR_LENGTH))
    changed_by_name: Mapped[str | None] = mapped_column(String(ACTOR_NAME_LENGTH))


IS_DAY = Register.part != LESSON
"""Whether a register is one of a day."""

Index(
    "uq_registers_batch_id_date_part",
    Register.batch_id,
    Register.date,
    Register.part,
    unique=True,
    postgresql_where=text("part <> 'LESSON'"),
)
Index(
    "uq_registers_cohort_subject_id_batch_id_date_period",
    Register.cohort_subject_id,
    Register.batch_id,
    Register.date,
    Register.period,
    unique=True,
    postgresql_where=text("part = 'LESSON'"),
)


class Mark(db.Model):
    """A student in a register: the teacher's mark, and beside it the office's correction, which counts.

    `kind` and `correction_kind` are the kinds of the codes at the moment of marking. `version` is the register's at the
    last change of the teacher's mark; 0 without one. `corrected_by` is an actor as in the audit log. Note and reason
    are empty once the student is erased.
    """

    __tablename__ = "marks"
    __table_args__ = (
        CheckConstraint("code IS NOT NULL OR correction_code IS NOT NULL", name="code"),
        CheckConstraint(f"num_nulls(code, kind) IN (0, 2) AND kind {_IS_KIND}", name="kind"),
        CheckConstraint("note IS NULL OR code IS NOT NULL", name="note"),
        CheckConstraint("arrived IS NULL OR kind = 'LATE'", name="arrived"),
        CheckConstraint("version >= 0", name="version"),
        CheckConstraint(
            "num_nulls(correction_code, correction_kind, corrected_at, corrected_by, corrected_by_name) IN (0, 5)"
            f" AND correction_kind {_IS_KIND} AND (reason IS NULL OR correction_code IS NOT NULL)",
            name="correction",
        ),
        stored(
            "students",
            "attendance: marks in registers, with a note, and the office's corrections, with the reason",
            "to know the present ones, and report cards",
            "read:attendance",
            STAYS,
            "TF",
        ),
    )

    register_id: Mapped[UUID] = mapped_column(
        ForeignKey("registers.id", info=goes_with()), primary_key=True, info=differing(own="TFSG")
    )
    student_id: Mapped[UUID] = mapped_column(
        ForeignKey("students.id"), primary_key=True, index=True, info=differing(own="TFSG")
    )
    code: Mapped[str | None] = mapped_column(String(CODE_LENGTH))
    kind: Mapped[str | None] = mapped_column(String(20), info=differing(own="TFSG"))
    note: Mapped[str | None] = mapped_column(String(NOTE_LENGTH), info=differing(erased=EMPTIED))
    arrived: Mapped[time | None]
    version: Mapped[int]
    correction_code: Mapped[str | None] = mapped_column(String(CODE_LENGTH))
    correction_kind: Mapped[str | None] = mapped_column(String(20), info=differing(own="TFSG"))
    reason: Mapped[str | None] = mapped_column(String(REASON_LENGTH), info=differing(erased=EMPTIED))
    corrected_at: Mapped[datetime | None]
    corrected_by: Mapped[str | None] = mapped_column(String(ACTOR_LENGTH), info=differing(told=False))
    corrected_by_name: Mapped[str | None] = mapped_column(
        String(ACTOR_NAME_LENGTH), info=differing(told=False, erased=BY_SERVICE)
    )
