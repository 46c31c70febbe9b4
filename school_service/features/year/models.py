"""The table of the year: the comments on a student's term.

It stands here, since the calendar of a term is held against it: nobody came more often than school opened.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    SmallInteger,
    String,
)
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import created_at, refers_to
from school_service.core.database import db
from school_service.core.facts import EMPTIED, STAYS, differing, stored
from school_service.features.scores.models import FILE_NAME_LENGTH
from tenants.clock import now

MAX_TIMES_OPENED = 400
COMMENT_LENGTH = 500


class TermComment(db.Model):
    """The comments of form teacher and principal on a student's term, how many times they came, and their batch.

    Cohort and session are the batch's own. They are here so that the term is always one of the session, and the cohort
    keeps its session, even under concurrent writes. `sheet` is the name of the file with the last change; None if it
    was made by hand.
    """

    __tablename__ = "term_comments"
    __table_args__ = (
        *refers_to("batches", "batch_id", "cohort_id"),
        *refers_to("cohorts", "cohort_id", "session_id"),
        *refers_to("terms", "term_id", "session_id"),
        CheckConstraint("times_present BETWEEN 0 AND 400", name="times_present"),
        stored(
            "students",
            "how often they came, and comments of form teacher and principal",
            "report cards",
            "read:results",
            STAYS,
            "FSG",
        ),
    )

    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True)
    term_id: Mapped[UUID] = mapped_column(primary_key=True)
    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    times_present: Mapped[int | None] = mapped_column(SmallInteger)
    form_teacher_comment: Mapped[str | None] = mapped_column(
        String(COMMENT_LENGTH), info=differing(erased=EMPTIED)
    )
    principal_comment: Mapped[str | None] = mapped_column(
        String(COMMENT_LENGTH), info=differing(erased=EMPTIED)
    )
    sheet: Mapped[str | None] = mapped_column(String(FILE_NAME_LENGTH))
    created_at: Mapped[datetime] = created_at()
    updated_at: Mapped[datetime] = mapped_column(default=now)
