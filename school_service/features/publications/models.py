"""Publications and the report cards frozen in them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    ColumnElement,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    Numeric,
    String,
    UniqueConstraint,
    or_,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import TEXT_LENGTH, primary_key
from school_service.core.database import db
from school_service.core.enumeration import Enumeration
from school_service.features.audit.models import ACTOR_LENGTH, ACTOR_NAME_LENGTH

PUBLISHED, REOPENED, WITHDRAWN, SUPERSEDED = PUBLICATION_STATES = Enumeration(
    "PublicationState", "PUBLISHED", "REOPENED", "WITHDRAWN", "SUPERSEDED"
)


def _picture() -> ForeignKey:
    message = "Results were published with the picture at this moment. Try again."
    return ForeignKey("pictures.id", info={"message": message})


class Publication(db.Model):
    """A version of a batch's results in a term, as it was released, and the rules that it was made with.

    Cohort and session are the batch's own. The pictures of the letterhead that its cards bear are named here, so that
    they stay for as long as it does. `rules` are the result settings and `bands`, and what else was so at the moment:
    `batch_name`, `session_name`, and `subjects`, those of the cohort by id, each with `base`, `elective`,
    `submitted_by` and `submitted_by_name`. `published_by` and `reopened_by` are actors as in the audit log.
    """

    __tablename__ = "publications"
    __table_args__ = (
        UniqueConstraint("batch_id", "term_id", "version"),
        ForeignKeyConstraint(["batch_id", "cohort_id"], ["batches.id", "batches.cohort_id"]),
        ForeignKeyConstraint(["cohort_id", "session_id"], ["cohorts.id", "cohorts.session_id"]),
        ForeignKeyConstraint(["term_id", "session_id"], ["terms.id", "terms.session_id"]),
        CheckConstraint("version > 0", name="version"),
        CheckConstraint("state IN ('PUBLISHED', 'REOPENED', 'WITHDRAWN', 'SUPERSEDED')", name="state"),
        CheckConstraint(
            "CASE WHEN state = 'PUBLISHED'"
            " THEN reopened_at IS NULL AND reopened_by IS NULL AND reopened_by_name IS NULL AND reason IS NULL"
            " ELSE reopened_at IS NOT NULL AND reopened_by IS NOT NULL AND reopened_by_name IS NOT NULL"
            " AND reason IS NOT NULL END",
            name="reopened",
        ),
        Index(None, "batch_id", "cohort_id"),
        Index(None, "cohort_id", "session_id"),
        Index(None, "term_id", "session_id"),
        # Lists are newest first, all of them, or those of a session.
        Index(None, "published_at", "id"),
        Index(None, "session_id", "published_at", "id"),
    )

    id: Mapped[UUID] = primary_key()
    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    version: Mapped[int] = mapped_column(Integer)
    state: Mapped[str] = mapped_column(String(20))
    rules: Mapped[dict[str, Any]] = mapped_column(JSONB)
    logo_id: Mapped[UUID | None] = mapped_column(_picture(), index=True)
    signature_id: Mapped[UUID | None] = mapped_column(_picture(), index=True)
    published_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    published_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    published_by_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))
    reopened_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    reopened_by: Mapped[str | None] = mapped_column(String(ACTOR_LENGTH))
    reopened_by_name: Mapped[str | None] = mapped_column(String(ACTOR_NAME_LENGTH))
    reason: Mapped[str | None] = mapped_column(String(TEXT_LENGTH))


def in_force(publication: type[Publication]) -> ColumnElement[bool]:
    """Tell whether a publication is the one that counts: PUBLISHED, or REOPENED and not published again yet."""
    return or_(publication.state == PUBLISHED, publication.state == REOPENED)


IN_FORCE = in_force(Publication)

# Whoever publishes what is published already has not seen it: one version of a batch's term is the one in force.
Index(
    "uq_publications_batch_id_term_id",
    Publication.batch_id,
    Publication.term_id,
    unique=True,
    postgresql_where=text("state IN ('PUBLISHED', 'REOPENED')"),
)


class ReportCard(db.Model):
    """What a publication says of a student, whole: published answers and paper are made of `card` alone.

    `code` is known to the paper alone. `average` and `position` in the batch are the card's own; `changed` tells
    whether the version before said otherwise.
    """

    __tablename__ = "report_cards"
    __table_args__ = (UniqueConstraint("publication_id", "student_id"), UniqueConstraint("code"))

    id: Mapped[UUID] = primary_key()
    publication_id: Mapped[UUID] = mapped_column(ForeignKey("publications.id"))
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), index=True)
    code: Mapped[UUID]
    average: Mapped[Decimal | None] = mapped_column(Numeric(5, 2))
    position: Mapped[int | None] = mapped_column(Integer)
    changed: Mapped[bool] = mapped_column(Boolean)
    card: Mapped[dict[str, Any]] = mapped_column(JSONB)
