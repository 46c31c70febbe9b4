"""The tables of scores: assessments, submissions, scores, absences, the bands of grades, how results are computed."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    ColumnElement,
    ForeignKey,
    Index,
    Numeric,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    Uuid,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, ExcludeConstraint
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, POINTS, TEXT_LENGTH, Enumeration, created_at, refers_to
from school_service.core.database import Record, db
from school_service.core.deletion import goes_with
from school_service.core.facts import EMPTIED, STAYS, differing, stored
from school_service.core.texts import GIVEN_FIRST, SURNAME_FIRST
from school_service.features.audit.models import ACTOR_LENGTH, ACTOR_NAME_LENGTH
from tenants.clock import now

CATEGORIES = Enumeration(
    "AssessmentCategory", "CA1", "CA2", "CA3", "EXAM", "FIRST_TERM", "SECOND_TERM", "THIRD_TERM"
)
FILE_NAME_LENGTH = 255
FULL = Decimal(100)  # percent


class Submission(Record):
    """The submission of an arm's results in a cohort subject and term; reopening them deletes it.

    Cohort and session are the cohort subject's own. `submitted_by` is an actor as in the audit log.
    """

    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("cohort_subject_id", "batch_id", "term_id"),
        *refers_to("cohort_subjects", "cohort_subject_id", "cohort_id"),
        *refers_to("batches", "batch_id", "cohort_id"),
        *refers_to("cohorts", "cohort_id", "session_id"),
        *refers_to("terms", "term_id", "session_id"),
    )

    cohort_subject_id: Mapped[UUID]
    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    submitted_at: Mapped[datetime]
    submitted_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    submitted_by_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))


def _is_deleted(assessment: Table) -> ColumnElement[bool]:
    return assessment.c.deleted_at.is_not(None)


_DELETED_GO = goes_with(_is_deleted)
"""A deleted assessment is in nobody's way: it goes with its subject, cohort or term, and so do its marks."""


def _is_of_deleted(mark: Table) -> ColumnElement[bool]:
    assessment = Assessment.__table__.alias()
    deleted_at = select(assessment.c.deleted_at).where(assessment.c.id == mark.c.assessment_id)
    return deleted_at.correlate(mark).scalar_subquery().is_not(None)


_MARKS_GO = goes_with(_is_of_deleted)


class Assessment(Record):
    """An exam, a test or a continuous assessment of a cohort subject, in a term of the cohort's session.

    Cohort and session are the cohort subject's own. Foreign keys on them keep the term within its session, and the
    cohort in its session, under concurrent writes, too. `submitted_batches` are the arms with submitted results of the
    subject and term: while there is any nothing of the assessment changes, nor do scores of students of these arms. A
    writer of those holds the row, and reads it there.
    """

    __tablename__ = "assessments"
    __table_args__ = (
        *refers_to("cohort_subjects", "cohort_subject_id", "cohort_id", _DELETED_GO),
        *refers_to("cohorts", "cohort_id", "session_id", _DELETED_GO),
        *refers_to("terms", "term_id", "session_id", _DELETED_GO),
        CheckConstraint(
            "category IN ('CA1', 'CA2', 'CA3', 'EXAM', 'FIRST_TERM', 'SECOND_TERM', 'THIRD_TERM')",
            name="category",
        ),
        CheckConstraint("total_points > 0", name="total_points"),
    )

    cohort_subject_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    abbreviation: Mapped[str] = mapped_column(String(NAME_LENGTH))
    due_date: Mapped[date]
    total_points: Mapped[Decimal] = mapped_column(POINTS)
    description: Mapped[str] = mapped_column(String(TEXT_LENGTH))
    category: Mapped[str] = mapped_column(String(20))
    file_name: Mapped[str] = mapped_column(String(FILE_NAME_LENGTH))
    include_in_final: Mapped[bool]
    publish_scores: Mapped[bool]
    created_at: Mapped[datetime] = created_at()
    deleted_at: Mapped[datetime | None]
    submitted_batches: Mapped[list[UUID]] = mapped_column(
        ARRAY(Uuid), default=list, server_default=text("'{}'")
    )


NOT_DELETED = Assessment.deleted_at.is_(None)


ABSENT, EXCUSED = ABSENCES = Enumeration("AbsenceStatus", "ABSENT", "EXCUSED")


class Absence(db.Model):
    """The absence of a student from an assessment: ABSENT counts 0, EXCUSED counts nowhere.

    A student has an absence or a score in an assessment, or neither, never both.
    """

    __tablename__ = "absences"
    __table_args__ = (
        CheckConstraint("status IN ('ABSENT', 'EXCUSED')", name="status"),
        stored(
            "students", "absences from assessments, with a note", "results", "read:gradebooks", STAYS, "TFSG"
        ),
    )

    assessment_id: Mapped[UUID] = mapped_column(
        ForeignKey("assessments.id", info=_MARKS_GO), primary_key=True
    )
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True, index=True)
    status: Mapped[str] = mapped_column(String(20))
    note: Mapped[str | None] = mapped_column(String(TEXT_LENGTH), info=differing(erased=EMPTIED))
    created_at: Mapped[datetime] = created_at()


class GradebookEntry(Record):
    """The score of a student in an assessment, and the batch they were in when it was entered.

    `sheet` is the name of the file of the score; None for a score entered by hand.
    """

    __tablename__ = "gradebook_entries"
    # Lists are in order of creation, all of them or one batch's: there is an index for each.
    __table_args__ = (
        UniqueConstraint("assessment_id", "student_id"),
        CheckConstraint("score >= 0", name="score"),
        Index(None, "created_at", "id"),
        Index(None, "batch_id", "created_at", "id"),
        # Sheets change many scores at once: with room on each page a changed row stays there, and no index is
        # touched.
        {
            "postgresql_with": {"fillfactor": 70},
            **stored(
                "students",
                "scores, with the file they came in",
                "results",
                "read:gradebooks, read:scoresheets",
                STAYS,
                "TFSG",
            ),
        },
    )

    assessment_id: Mapped[UUID] = mapped_column(ForeignKey("assessments.id", info=_MARKS_GO))
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), index=True)
    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id", info=_MARKS_GO))
    score: Mapped[Decimal] = mapped_column(POINTS)
    sheet: Mapped[str | None] = mapped_column(String(FILE_NAME_LENGTH))
    created_at: Mapped[datetime] = created_at()
    updated_at: Mapped[datetime] = mapped_column(default=now)


HUNDREDTHS = Numeric(5, 2)


class GradeConfiguration(Record):
    """A band of percentages and the letter of its grade, such as A1 from 75 to 100.

    Bands don't overlap, even with two transactions writing at the same time; both thresholds are within. Between two
    bands the lower one counts: a grade is the band with the highest lower threshold not above the score.
    """

    __tablename__ = "grade_configurations"
    __table_args__ = (
        CheckConstraint(
            "0 <= lower_threshold AND lower_threshold <= upper_threshold AND upper_threshold <= 100",
            name="thresholds",
        ),
        ExcludeConstraint(
            (
                func.numrange(
                    literal_column("lower_threshold"),
                    literal_column("upper_threshold"),
                    literal_column("'[]'"),
                ),
                "&&",
            ),
            name="ex_grade_configurations_thresholds",
            using="gist",
        ),
    )

    lower_threshold: Mapped[Decimal] = mapped_column(HUNDREDTHS)
    upper_threshold: Mapped[Decimal] = mapped_column(HUNDREDTHS)
    letter_grade: Mapped[str] = mapped_column(String(NAME_LENGTH))
    remarks: Mapped[str] = mapped_column(String(TEXT_LENGTH))

    def __str__(self) -> str:
        lower, upper = (f"{number.normalize():f}" for number in (self.lower_threshold, self.upper_threshold))
        return f"{self.letter_grade} ({lower} to {upper})"


BY_POINTS, BY_CATEGORY = WEIGHTINGS = Enumeration("Weighting", "POINTS", "CATEGORIES")
AVERAGE, TOTAL = RANKINGS = Enumeration("RankBy", "AVERAGE", "TOTAL")
EXACT, MARKS = PERCENT_FROM = Enumeration("PercentFrom", "EXACT", "MARKS")
BOTH, BATCH, COHORT, _ = SHOWN_POSITIONS = Enumeration("ShownPositions", "BOTH", "BATCH", "COHORT", "NONE")
NAME_ORDERS = Enumeration("NameOrder", SURNAME_FIRST, GIVEN_FIRST)
"""How the parts of a student's name follow one another on paper."""
_, _, PICTURES_OR_LINES = SIGNATURES = Enumeration("Signatures", "NONE", "LINES", "PICTURES")
"""Places for signatures on cards: none; lines, and a space for the stamp; or pictures, and lines without one."""
OF_COHORT = (BOTH, COHORT)
"""The choices of positions on cards with those in the cohort: results of each arm rest on those of all."""
COUNTING = Enumeration("CountingCategory", *(name for name in CATEGORIES if not name.endswith("_TERM")))
"""The counting categories of a term: those of the others bring a term's result in from elsewhere."""

MAX_PLACES, MAX_SUBJECTS, MAX_TERMS = 2, 40, 3


class ResultSettings(Record):
    """How a school's results are computed from now on; without the row, as `DEFAULTS` say.

    `weights` is an array of `{"level": text or null, "category": text, "weight": number}`, with null for every level
    without weights of its own; those of one level sum to 100. `principal_comments` is an array of `{"lower_threshold":
    number, "comment": text}`, highest first. The weights of the terms are 0 or more, one above 0.
    """

    __tablename__ = "result_settings"
    __table_args__ = (
        UniqueConstraint("singleton"),
        CheckConstraint("singleton", name="singleton"),
        CheckConstraint("weighting IN ('POINTS', 'CATEGORIES')", name="weighting"),
        CheckConstraint("percent_places BETWEEN 0 AND 2", name="percent_places"),
        CheckConstraint("pass_mark BETWEEN 0 AND 100", name="pass_mark"),
        CheckConstraint("minimum_subjects BETWEEN 1 AND 40", name="minimum_subjects"),
        CheckConstraint("minimum_terms BETWEEN 1 AND 3", name="minimum_terms"),
        CheckConstraint("rank_by IN ('AVERAGE', 'TOTAL')", name="rank_by"),
        CheckConstraint("positions IN ('BOTH', 'BATCH', 'COHORT', 'NONE')", name="positions"),
        CheckConstraint("name_order IN ('SURNAME_FIRST', 'GIVEN_FIRST')", name="name_order"),
        CheckConstraint("signatures IN ('NONE', 'LINES', 'PICTURES')", name="signatures"),
        CheckConstraint(
            "first_term_weight >= 0 AND second_term_weight >= 0 AND third_term_weight >= 0"
            " AND first_term_weight + second_term_weight + third_term_weight > 0",
            name="term_weights",
        ),
    )

    singleton: Mapped[bool] = mapped_column(default=True)
    weighting: Mapped[str] = mapped_column(String(20))
    weights: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    percent_places: Mapped[int] = mapped_column(SmallInteger)
    pass_mark: Mapped[Decimal] = mapped_column(HUNDREDTHS)
    minimum_subjects: Mapped[int] = mapped_column(SmallInteger)
    minimum_terms: Mapped[int] = mapped_column(SmallInteger)
    rank_by: Mapped[str] = mapped_column(String(20))
    first_term_weight: Mapped[Decimal] = mapped_column(HUNDREDTHS)
    second_term_weight: Mapped[Decimal] = mapped_column(HUNDREDTHS)
    third_term_weight: Mapped[Decimal] = mapped_column(HUNDREDTHS)
    positions: Mapped[str] = mapped_column(String(20))
    principal_comments: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    verification: Mapped[bool]
    name_order: Mapped[str] = mapped_column(String(20))
    signatures: Mapped[str] = mapped_column(String(20))
    show_teachers: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    percent_from: Mapped[str] = mapped_column(String(20), default="EXACT", server_default=text("'EXACT'"))
    show_ca_total: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    show_photo: Mapped[bool] = mapped_column(default=False, server_default=text("false"))


OF_LEVEL = ("pass_mark", "positions", "percent_places", "marks")
"""The settings that a level may have of its own."""


class LevelSettings(Record):
    """The settings of a level in place of the school's; null where these hold. `marks`: whether it has results."""

    __tablename__ = "level_settings"
    __table_args__ = (
        UniqueConstraint("level"),
        CheckConstraint("percent_places BETWEEN 0 AND 2", name="percent_places"),
        CheckConstraint("pass_mark BETWEEN 0 AND 100", name="pass_mark"),
        CheckConstraint("positions IN ('BOTH', 'BATCH', 'COHORT', 'NONE')", name="positions"),
    )

    level: Mapped[str] = mapped_column(String(NAME_LENGTH))
    pass_mark: Mapped[Decimal | None] = mapped_column(HUNDREDTHS)
    positions: Mapped[str | None] = mapped_column(String(20))
    percent_places: Mapped[int | None] = mapped_column(SmallInteger)
    marks: Mapped[bool | None]


class GradeScale(Record):
    """The grade bands of a level in place of the school's.

    `bands` is an array of `{"lower_threshold": number, "upper_threshold": number, "letter_grade": text, "remarks":
    text}`, highest first, never empty.
    """

    __tablename__ = "grade_scales"
    __table_args__ = (UniqueConstraint("level"),)

    level: Mapped[str] = mapped_column(String(NAME_LENGTH))
    bands: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)


DEFAULTS: dict[str, Any] = {
    "weighting": BY_POINTS,
    "weights": [],
    "percent_places": 2,
    "pass_mark": Decimal("40.00"),
    "minimum_subjects": 1,
    "minimum_terms": 1,
    "rank_by": AVERAGE,
    "first_term_weight": Decimal("1.00"),
    "second_term_weight": Decimal("1.00"),
    "third_term_weight": Decimal("1.00"),
    "positions": BOTH,
    "principal_comments": [],
    "verification": True,
    "name_order": GIVEN_FIRST,
    "signatures": PICTURES_OR_LINES,
    "show_teachers": False,
    "percent_from": EXACT,
    "show_ca_total": False,
    "show_photo": False,
}
"""The settings of a school without a row, by column: nothing is seeded."""
