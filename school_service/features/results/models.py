"""The tables of results: their release, the traits shown on cards beside figures, graduates, promotions."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Numeric,
    SmallInteger,
    String,
    UniqueConstraint,
    Uuid,
    or_,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, TEXT_LENGTH, Enumeration, created_at, refers_to
from school_service.core.database import Record, db
from school_service.core.deletion import goes_with
from school_service.core.facts import BY_SERVICE, EMPTIED, STAYS, differing, stored
from school_service.features.audit.models import ACTOR_LENGTH, ACTOR_NAME_LENGTH
from school_service.features.scores.models import ABSENCES, FILE_NAME_LENGTH
from tenants.clock import now

OPEN, SUBMITTED, NOTHING_COUNTS = SUBMISSION_STATES = Enumeration(
    "SubmissionState", "OPEN", "SUBMITTED", "NOTHING_COUNTS"
)
REFUSE, _, _ = BLANKS = Enumeration("Blanks", "REFUSE", *ABSENCES)
"""The fate of blanks when results are submitted: they are refused, or become such an absence."""


PUBLISHED, REOPENED, WITHDRAWN, SUPERSEDED = PUBLICATION_STATES = Enumeration(
    "PublicationState", "PUBLISHED", "REOPENED", "WITHDRAWN", "SUPERSEDED"
)

GRADED, INCOMPLETE = SUBJECT_STATUSES = Enumeration("SubjectResultStatus", "GRADED", "INCOMPLETE")
"""Of a subject result."""

COMPLETE, _, TOO_FEW, NONE = TERM_STATUSES = Enumeration(
    "TermResultStatus", "COMPLETE", INCOMPLETE, "TOO_FEW", "NONE"
)
"""Of a term result."""

PROVISIONAL = "PROVISIONAL"
RESULT_STATES = Enumeration("ResultState", PROVISIONAL, *PUBLICATION_STATES)
"""Of a result: live, the last version published, or one before it."""


def _picture() -> ForeignKey:
    message = "Results were published with the picture at this moment. Try again."
    return ForeignKey("pictures.id", info={"message": message})


class Publication(Record):
    """A version of a batch's results in a term, as it was released, and the rules applied in it.

    Cohort and session are the batch's own. The pictures of the letterhead of its cards are named here, and stay for as
    long as it does. `rules` are the result settings and `bands`, and other facts of the moment: `batch_name`,
    `session_name`, `subjects`, those of the cohort by id, each with `base`, `elective`, `submitted_by` and
    `submitted_by_name`, and `left`, the ids of the students with a card, but no longer enrolled in the batch.
    `takers_changed` are the differences between the takers of its subjects and their results on the cards, by the
    cohort subject, `{"in": [student], "out": [student]}`: takers without a result, and the students put in and taken
    out while it is REOPENED. Without it, as earlier releases published, the takers are those of the present.
    `published_by` and `reopened_by` are actors as in the audit log.
    """

    __tablename__ = "publications"
    __table_args__ = (
        UniqueConstraint("batch_id", "term_id", "version"),
        UniqueConstraint("id", "term_id"),
        *refers_to("batches", "batch_id", "cohort_id"),
        *refers_to("cohorts", "cohort_id", "session_id"),
        *refers_to("terms", "term_id", "session_id"),
        CheckConstraint("version > 0", name="version"),
        CheckConstraint("state IN ('PUBLISHED', 'REOPENED', 'WITHDRAWN', 'SUPERSEDED')", name="state"),
        CheckConstraint(
            "CASE WHEN state = 'PUBLISHED'"
            " THEN reopened_at IS NULL AND reopened_by IS NULL AND reopened_by_name IS NULL AND reason IS NULL"
            " ELSE reopened_at IS NOT NULL AND reopened_by IS NOT NULL AND reopened_by_name IS NOT NULL"
            " AND reason IS NOT NULL END",
            name="reopened",
        ),
        # Lists are newest first, all of them, or those of a session.
        Index(None, "published_at", "id"),
        Index(None, "session_id", "published_at", "id"),
    )

    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    version: Mapped[int]
    state: Mapped[str] = mapped_column(String(20))
    rules: Mapped[dict[str, Any]] = mapped_column(JSONB)
    takers_changed: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    logo_id: Mapped[UUID | None] = mapped_column(_picture(), index=True)
    signature_id: Mapped[UUID | None] = mapped_column(_picture(), index=True)
    published_at: Mapped[datetime]
    published_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    published_by_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))
    reopened_at: Mapped[datetime | None]
    reopened_by: Mapped[str | None] = mapped_column(String(ACTOR_LENGTH))
    reopened_by_name: Mapped[str | None] = mapped_column(String(ACTOR_NAME_LENGTH))
    reason: Mapped[str | None] = mapped_column(String(TEXT_LENGTH))


IN_FORCE = or_(Publication.state == PUBLISHED, Publication.state == REOPENED)
"""Tells whether a publication is the valid one: PUBLISHED, or REOPENED and not published again yet."""

# One version of a batch's term is in force: of two publications at the same time the second is refused.
Index(
    "uq_publications_batch_id_term_id",
    Publication.batch_id,
    Publication.term_id,
    unique=True,
    postgresql_where=text("state IN ('PUBLISHED', 'REOPENED')"),
)


LAYOUT = 3
"""The version of the layout of report cards printed from now on; a card without one has the first."""


class ReportCard(Record):
    """The results of a student in a publication, whole: published answers and paper are made of `card` alone.

    `code` is known to the paper alone. `photo` is the student's at the publication, where cards show it. `average`
    and `position` in the batch are the card's own. `term_id` is the publication's; `in_force` as long as the
    publication is PUBLISHED or REOPENED, and the student has at most one such card in a term. `changed` tells
    whether the version before said something else of the student, `class_figures_changed` whether the two differ in
    the figures of the class alone.
    """

    __tablename__ = "report_cards"
    __table_args__ = (
        UniqueConstraint("publication_id", "student_id"),
        UniqueConstraint("code"),
        *refers_to("publications", "publication_id", "term_id"),
        stored(
            "students",
            "published report cards, each version as it was released, with the photo where cards show it",
            "to confirm released cards",
            "read:results",
            STAYS,
            "TFSG",
        ),
    )

    publication_id: Mapped[UUID] = mapped_column(ForeignKey("publications.id"))
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), index=True)
    term_id: Mapped[UUID]
    code: Mapped[UUID] = mapped_column(info=differing(told=False))
    average: Mapped[Decimal | None] = mapped_column(Numeric(5, 2))
    position: Mapped[int | None]
    in_force: Mapped[bool]
    changed: Mapped[bool]
    class_figures_changed: Mapped[bool]
    card: Mapped[dict[str, Any]] = mapped_column(JSONB, info=differing(erased=BY_SERVICE))
    photo: Mapped[bytes | None] = mapped_column(LargeBinary, info=differing(erased=EMPTIED))


Index(
    "uq_report_cards_student_id_term_id",
    ReportCard.student_id,
    ReportCard.term_id,
    unique=True,
    postgresql_where=text("in_force"),
    info={"message": "A student has one report card of a term at most."},
)


class LeftOut(db.Model):
    """The exclusion of a student from a batch's results of a term by a publication, until another takes them in."""

    __tablename__ = "left_out_students"
    __table_args__ = (
        Index(None, "batch_id", "term_id"),
        Index(None, "term_id"),
        stored(
            "students",
            "which results leave them out",
            "so that they are in none of them",
            "read:results",
            STAYS,
            "F",
        ),
    )

    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True)
    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id"), primary_key=True)
    term_id: Mapped[UUID] = mapped_column(ForeignKey("terms.id"), primary_key=True)


class IssuedTranscript(Record):
    """A transcript as it was printed: `transcript` is its whole content, and `card_ids` name its report cards.

    `code` is known to the paper alone. The same transcript printed again on the same day is the same paper: `digest` is
    the SHA-256, in hexadecimal, of its content and of the day.
    """

    __tablename__ = "issued_transcripts"
    __table_args__ = (
        UniqueConstraint("student_id", "digest"),
        UniqueConstraint("code"),
        stored(
            "students",
            "transcripts, each as it was issued",
            "to confirm issued papers",
            "read:results",
            STAYS,
            "",
        ),
    )

    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"))
    code: Mapped[UUID] = mapped_column(info=differing(told=False))
    digest: Mapped[str] = mapped_column(String(64))
    issued_at: Mapped[datetime]
    card_ids: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid))
    transcript: Mapped[dict[str, Any]] = mapped_column(JSONB, info=differing(erased=BY_SERVICE))


PSYCHOMOTOR, AFFECTIVE = METRIC_TYPES = Enumeration("MetricType", "PSYCHOMOTOR", "AFFECTIVE")
POOREST, BEST = 1, 5
_KNOWN_TYPE = "metric_type IN ('PSYCHOMOTOR', 'AFFECTIVE')"


class MetricDefinition(Record):
    """A trait of students, such as punctuality, to be scored; `position` orders those of its type, from 1."""

    __tablename__ = "metric_definitions"
    __table_args__ = (
        UniqueConstraint("name", "metric_type"),
        UniqueConstraint("metric_type", "position"),
        CheckConstraint(_KNOWN_TYPE, name="metric_type"),
    )

    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    metric_type: Mapped[str] = mapped_column(String(20))
    position: Mapped[int]


class Metric(Record):
    """The scores of a student's traits in a term, of one type, and the batch of the last sheet with them.

    Cohort and session are the batch's own. They are here so that the term is always one of the session, and the cohort
    keeps its session, even under concurrent writes. `sheet` is the name of the last uploaded file; None if it was
    entered by hand.
    """

    __tablename__ = "metrics"
    __table_args__ = (
        UniqueConstraint("student_id", "term_id", "metric_type"),
        *refers_to("batches", "batch_id", "cohort_id"),
        *refers_to("cohorts", "cohort_id", "session_id"),
        *refers_to("terms", "term_id", "session_id"),
        CheckConstraint(_KNOWN_TYPE, name="metric_type"),
        stored("students", "behaviour and skills, 1 to 5", "results", "read:metrics", STAYS, "FSG"),
    )

    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"))
    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    metric_type: Mapped[str] = mapped_column(String(20))
    sheet: Mapped[str | None] = mapped_column(String(FILE_NAME_LENGTH))
    created_at: Mapped[datetime] = created_at()
    updated_at: Mapped[datetime] = mapped_column(default=now)


class MetricScore(db.Model):
    """The score of a trait in a metric record: 5 excellent, 4, 3, 2, 1 poor."""

    __tablename__ = "metric_scores"
    __table_args__ = (
        CheckConstraint("score BETWEEN 1 AND 5", name="score"),
        stored("students", "behaviour and skills, 1 to 5", "results", "read:metrics", STAYS, "FSG"),
    )

    metric_id: Mapped[UUID] = mapped_column(ForeignKey("metrics.id", info=goes_with()), primary_key=True)
    definition_id: Mapped[UUID] = mapped_column(
        ForeignKey("metric_definitions.id"), primary_key=True, index=True
    )
    score: Mapped[int] = mapped_column(SmallInteger)


CURRENT_CARD, REPLACED_CARD, WITHDRAWN_CARD = CARD_STATES = Enumeration(
    "CardState", "CURRENT", "REPLACED", "WITHDRAWN"
)

PDF, ZIP = FORMATS = Enumeration("CardsFormat", "pdf", "zip")
_, JSON = CARD_FORMATS = Enumeration("CardFormat", "pdf", "json")
"""The file formats for the cards of a batch."""

MAX_CARDS = 200
"""Of one file."""


class Graduate(Record):
    """A graduate, with their last class; `number` counts the school's graduates without gaps."""

    __tablename__ = "graduates"
    __table_args__ = stored(
        "students", "graduation and last class", "certificates", "read:graduates", STAYS, "FSG"
    )

    number: Mapped[int] = mapped_column(unique=True)
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), unique=True)
    # A classroom's name, a space and a session's name; empty where the student was never enrolled.
    graduation_class: Mapped[str] = mapped_column(String(2 * NAME_LENGTH + 1))
    created_at: Mapped[datetime] = created_at()


PROMOTED, PROMOTED_ON_TRIAL, REPEATED, GRADUATED, LEFT_OUT = OUTCOMES = Enumeration(
    "PromotionOutcome", "PROMOTED", "PROMOTED_ON_TRIAL", "REPEATED", "GRADUATED", "LEFT_OUT"
)
NO_RESULT = "NO_RESULT"
BY_RULE = Enumeration("OutcomeByRule", PROMOTED, PROMOTED_ON_TRIAL, REPEATED, GRADUATED, NO_RESULT)
"""The verdicts of a rule on a student; NO_RESULT is for one without a session result."""

PERCENT = Numeric(5, 2)
MAX_FAILED, MAX_REQUIRED = 40, 40
FINGERPRINT_LENGTH = 64


class PromotionRule(Record):
    """The conditions for promotion in a level of classrooms; without a level, in all levels without their own rule."""

    __tablename__ = "promotion_rules"
    __table_args__ = (
        CheckConstraint("minimum_average BETWEEN 0 AND 100", name="minimum_average"),
        CheckConstraint("trial_average >= 0 AND trial_average < minimum_average", name="trial_average"),
        CheckConstraint("required_percent BETWEEN 0 AND 100", name="required_percent"),
        CheckConstraint("maximum_failed BETWEEN 0 AND 40", name="maximum_failed"),
        CheckConstraint("minimum_terms BETWEEN 1 AND 3", name="minimum_terms"),
    )

    level: Mapped[str | None] = mapped_column(String(NAME_LENGTH), unique=True)
    minimum_average: Mapped[Decimal] = mapped_column(PERCENT)
    trial_average: Mapped[Decimal | None] = mapped_column(PERCENT)
    required_percent: Mapped[Decimal] = mapped_column(PERCENT)
    maximum_failed: Mapped[int | None] = mapped_column(SmallInteger)
    minimum_terms: Mapped[int] = mapped_column(SmallInteger)


# Of nulls a unique constraint allows many.
Index(
    "uq_promotion_rules_of_all_others",
    PromotionRule.level.is_(None),
    unique=True,
    postgresql_where=PromotionRule.level.is_(None),
)


class RequiredSubject(db.Model):
    """A subject of the school required by a rule."""

    __tablename__ = "promotion_rule_subjects"

    rule_id: Mapped[UUID] = mapped_column(
        ForeignKey("promotion_rules.id", ondelete="CASCADE"), primary_key=True
    )
    subject_id: Mapped[UUID] = mapped_column(ForeignKey("subjects.id"), primary_key=True, index=True)


class Promotion(Record):
    """The move of students of batches of a session, all at once; the next session is null if none was enrolled.

    It is live until it is undone. `fingerprint` is the dry run's, seen before the commit. `committed_by` and
    `undone_by` are actors as in the audit log.
    """

    __tablename__ = "promotions"
    __table_args__ = (
        CheckConstraint(
            "CASE WHEN undone_at IS NULL THEN undone_by IS NULL AND undone_by_name IS NULL"
            " ELSE undone_by IS NOT NULL AND undone_by_name IS NOT NULL END",
            name="undone",
        ),
        # Lists are newest first, all of them, or those of a session.
        Index(None, "committed_at", "id"),
        Index(None, "session_id", "committed_at", "id"),
    )

    session_id: Mapped[UUID] = mapped_column(ForeignKey("sessions.id"))
    next_session_id: Mapped[UUID | None] = mapped_column(ForeignKey("sessions.id"), index=True)
    fingerprint: Mapped[str] = mapped_column(String(FINGERPRINT_LENGTH))
    committed_at: Mapped[datetime]
    committed_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    committed_by_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))
    undone_at: Mapped[datetime | None]
    undone_by: Mapped[str | None] = mapped_column(String(ACTOR_LENGTH))
    undone_by_name: Mapped[str | None] = mapped_column(String(ACTOR_NAME_LENGTH))


LIVE = Promotion.undone_at.is_(None)

Index("uq_promotions_fingerprint", Promotion.fingerprint, unique=True, postgresql_where=LIVE)


class PromotionBatch(db.Model):
    """A batch of a promotion, with the default batches to go to; `number` orders those of a promotion.

    `live` while the promotion is: a batch is in one such at most.
    """

    __tablename__ = "promotion_batches"

    promotion_id: Mapped[UUID] = mapped_column(ForeignKey("promotions.id"), primary_key=True)
    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id"), primary_key=True, index=True)
    number: Mapped[int] = mapped_column(SmallInteger)
    promote_to_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), index=True)
    repeat_in_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), index=True)
    live: Mapped[bool]


Index(
    "uq_promotion_batches_batch_id",
    PromotionBatch.batch_id,
    unique=True,
    postgresql_where=text("live"),
    info={"message": "A batch is promoted at most once."},
)


class PromotionDecision(db.Model):
    """The outcome of a student in a promotion, the rule's verdict and reasons, and the reason of a decision against it.

    `outcome`, `to_batch_id` and `enrollment_id`, the enrollment made until it is taken back, are those of the last
    amendment, if there is one. `before` has the enrollments and subjects to give back when the promotion is undone,
    `{"enrollments": [id], "subjects": [{"cohort_subject_id": id, "created_at": time}]}`: all of a graduate, and those
    of the next session that an amendment ended, and the promotion had not made.
    """

    __tablename__ = "promotion_decisions"
    __table_args__ = (
        ForeignKeyConstraint(
            ["promotion_id", "from_batch_id"],
            ["promotion_batches.promotion_id", "promotion_batches.batch_id"],
        ),
        CheckConstraint(
            "outcome IN ('PROMOTED', 'PROMOTED_ON_TRIAL', 'REPEATED', 'GRADUATED', 'LEFT_OUT')",
            name="outcome",
        ),
        CheckConstraint(
            "by_rule IN ('PROMOTED', 'PROMOTED_ON_TRIAL', 'REPEATED', 'GRADUATED', 'NO_RESULT')",
            name="by_rule",
        ),
        CheckConstraint(
            "(to_batch_id IS NULL) = (outcome IN ('GRADUATED', 'LEFT_OUT'))",
            name="to_batch",
        ),
        Index(None, "promotion_id", "from_batch_id"),
        stored(
            "students",
            "the decision on them at the end of a session, and why",
            "to place them in the next session",
            "read:results",
            STAYS,
            "FSG",
        ),
    )

    promotion_id: Mapped[UUID] = mapped_column(ForeignKey("promotions.id"), primary_key=True)
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True, index=True)
    from_batch_id: Mapped[UUID]
    average: Mapped[Decimal | None] = mapped_column(PERCENT)
    terms: Mapped[int | None] = mapped_column(SmallInteger)
    by_rule: Mapped[str] = mapped_column(String(20))
    outcome: Mapped[str] = mapped_column(String(20))
    reasons: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    reason: Mapped[str | None] = mapped_column(String(TEXT_LENGTH), info=differing(erased=EMPTIED))
    to_batch_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), index=True)
    enrollment_id: Mapped[UUID | None] = mapped_column(ForeignKey("enrollments.id"), index=True)
    before: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))


class PromotionAmendment(Record):
    """A later decision on a student of a promotion.

    `ended` names the enrollments that the promotion had made until then: they are deleted when it is undone.
    `amended_by` is an actor as in the audit log.
    """

    __tablename__ = "promotion_amendments"
    __table_args__ = (
        ForeignKeyConstraint(
            ["promotion_id", "student_id"],
            ["promotion_decisions.promotion_id", "promotion_decisions.student_id"],
        ),
        CheckConstraint(
            "outcome IN ('PROMOTED', 'PROMOTED_ON_TRIAL', 'REPEATED', 'GRADUATED', 'LEFT_OUT')",
            name="outcome",
        ),
        CheckConstraint("(to_batch_id IS NULL) = (outcome IN ('GRADUATED', 'LEFT_OUT'))", name="to_batch"),
        Index(None, "promotion_id", "student_id"),
        stored(
            "students",
            "later decisions on them, and why",
            "to place them in the next session",
            "read:results",
            STAYS,
            "FSG",
        ),
    )

    promotion_id: Mapped[UUID]
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), index=True)
    outcome: Mapped[str] = mapped_column(String(20))
    to_batch_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), index=True)
    reason: Mapped[str | None] = mapped_column(String(TEXT_LENGTH), info=differing(erased=EMPTIED))
    ended: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid), info=differing(told=False))
    amended_at: Mapped[datetime]
    amended_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH), info=differing(told=False))
    amended_by_name: Mapped[str] = mapped_column(
        String(ACTOR_NAME_LENGTH), info=differing(told=False, erased=BY_SERVICE)
    )
