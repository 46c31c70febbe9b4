"""The tables of results: how they are computed and released, what cards say beside figures, graduates, promotions."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Boolean,
    CheckConstraint,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
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

from school_service.core.columns import (
    EMAIL_LENGTH,
    NAME_LENGTH,
    TEXT_LENGTH,
    Enumeration,
    created_at,
    primary_key,
)
from school_service.core.database import db
from school_service.core.deletion import goes_with
from school_service.features.audit.models import ACTOR_LENGTH, ACTOR_NAME_LENGTH
from school_service.features.scores.models import ABSENCES, CATEGORIES, FILE_NAME_LENGTH
from tenants.clock import now

POINTS, BY_CATEGORY = WEIGHTINGS = Enumeration("Weighting", "POINTS", "CATEGORIES")
AVERAGE, TOTAL = RANKINGS = Enumeration("RankBy", "AVERAGE", "TOTAL")
BOTH, BATCH, COHORT, _ = SHOWN_POSITIONS = Enumeration("ShownPositions", "BOTH", "BATCH", "COHORT", "NONE")
SURNAME_FIRST, GIVEN_FIRST = NAME_ORDERS = Enumeration("NameOrder", "SURNAME_FIRST", "GIVEN_FIRST")
"""How the parts of a student's name follow one another on paper."""
_, _, PICTURES_OR_LINES = SIGNATURES = Enumeration("Signatures", "NONE", "LINES", "PICTURES")
"""What cards have for those who sign: nothing; lines, and a space for the stamp; or pictures, and lines without one."""
OF_COHORT = (BOTH, COHORT)
"""What cards show when positions in the cohort are on them: results of each arm rest on those of all."""
COUNTING = Enumeration("CountingCategory", *(name for name in CATEGORIES if not name.endswith("_TERM")))
"""The categories that count in a term: those of the others bring a term's result in from elsewhere."""

MAX_PLACES, MAX_SUBJECTS, MAX_TERMS = 2, 40, 3
HUNDREDTHS = Numeric(5, 2)


class ResultSettings(db.Model):
    """How a school's results are computed from now on; without the row, as `DEFAULTS` say.

    `weights` is an array of `{"level": text or null, "category": text, "weight": number}`, where null stands for
    every level that has no weights of its own; those of one level sum to 100. `principal_comments` is an array of
    `{"lower_threshold": number, "comment": text}`, highest first. The weights of the terms are 0 or more, one above 0.
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

    id: Mapped[UUID] = primary_key()
    singleton: Mapped[bool] = mapped_column(Boolean, default=True)
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
    verification: Mapped[bool] = mapped_column(Boolean)
    name_order: Mapped[str] = mapped_column(String(20))
    signatures: Mapped[str] = mapped_column(String(20))
    show_teachers: Mapped[bool] = mapped_column(Boolean, default=False, server_default=text("false"))


DEFAULTS: dict[str, Any] = {
    "weighting": POINTS,
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
}
"""The settings of a school without a row, by column: nothing is seeded."""


PNG, JPEG = "image/png", "image/jpeg"
LOGO, SIGNATURE = PICTURES = Enumeration("LetterheadPicture", "logo", "signature")
MOTTO_LENGTH = 250
WEBSITE_LENGTH = 254
MOST_BYTES = 512 * 1024  # of a picture
LEAST_PIXELS, MOST_PIXELS = 16, 2000  # a side


class Picture(db.Model):
    """A picture that is printed, known by the SHA-256 of its bytes, in hexadecimal: it never changes.

    It is there for as long as the letterhead or a publication names it; `width` and `height` are pixels.
    """

    __tablename__ = "pictures"
    __table_args__ = (
        CheckConstraint("media_type IN ('image/png', 'image/jpeg')", name="media_type"),
        CheckConstraint("width BETWEEN 16 AND 2000 AND height BETWEEN 16 AND 2000", name="size"),
    )

    id: Mapped[UUID] = primary_key()
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    media_type: Mapped[str] = mapped_column(String(20))
    width: Mapped[int] = mapped_column(SmallInteger)
    height: Mapped[int] = mapped_column(SmallInteger)
    image: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = created_at()


class Letterhead(db.Model):
    """What stands on paper instead of the registry's details of the school; null where the registry's hold."""

    __tablename__ = "letterheads"
    __table_args__ = (UniqueConstraint("singleton"), CheckConstraint("singleton", name="singleton"))

    id: Mapped[UUID] = primary_key()
    singleton: Mapped[bool] = mapped_column(Boolean, default=True)
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


MAX_TIMES_OPENED = 400


OPEN, SUBMITTED = SUBMISSION_STATES = Enumeration("SubmissionState", "OPEN", "SUBMITTED")
REFUSE, _, _ = BLANKS = Enumeration("Blanks", "REFUSE", *ABSENCES)
"""What becomes of blanks when results are submitted: they are refused, or become such an absence."""


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
"""Of what is read: live, the last version that was published, or one before it."""


def _picture() -> ForeignKey:
    message = "Results were published with the picture at this moment. Try again."
    return ForeignKey("pictures.id", info={"message": message})


class Publication(db.Model):
    """A version of a batch's results in a term, as it was released, and the rules that it was made with.

    Cohort and session are the batch's own. The pictures of the letterhead that its cards bear are named here, so that
    they stay for as long as it does. `rules` are the result settings and `bands`, and what else was so at the moment:
    `batch_name`, `session_name`, `subjects`, those of the cohort by id, each with `base`, `elective`, `submitted_by`
    and `submitted_by_name`, and `left`, the ids of the students with a card who were not enrolled in the batch any
    more. `published_by` and `reopened_by` are actors as in the audit log.
    """

    __tablename__ = "publications"
    __table_args__ = (
        UniqueConstraint("batch_id", "term_id", "version"),
        UniqueConstraint("id", "term_id"),
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


IN_FORCE = or_(Publication.state == PUBLISHED, Publication.state == REOPENED)
"""Tells whether a publication is the one that counts: PUBLISHED, or REOPENED and not published again yet."""

# Whoever publishes what is published already has not seen it: one version of a batch's term is the one in force.
Index(
    "uq_publications_batch_id_term_id",
    Publication.batch_id,
    Publication.term_id,
    unique=True,
    postgresql_where=text("state IN ('PUBLISHED', 'REOPENED')"),
)


LAYOUT = 2
"""The version of the layout that report cards are printed in from now on; a card without one has the first."""


class ReportCard(db.Model):
    """What a publication says of a student, whole: published answers and paper are made of `card` alone.

    `code` is known to the paper alone. `average` and `position` in the batch are the card's own. `term_id` is the
    publication's; `in_force` as long as the publication is PUBLISHED or REOPENED, and the student has at most one such
    card in a term. `changed` tells whether the version before said something else of the student,
    `class_figures_changed` whether it differs from that in the figures of the class alone.
    """

    __tablename__ = "report_cards"
    __table_args__ = (
        UniqueConstraint("publication_id", "student_id"),
        UniqueConstraint("code"),
        ForeignKeyConstraint(["publication_id", "term_id"], ["publications.id", "publications.term_id"]),
        Index(None, "publication_id", "term_id"),
    )

    id: Mapped[UUID] = primary_key()
    publication_id: Mapped[UUID] = mapped_column(ForeignKey("publications.id"))
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), index=True)
    term_id: Mapped[UUID]
    code: Mapped[UUID]
    average: Mapped[Decimal | None] = mapped_column(Numeric(5, 2))
    position: Mapped[int | None] = mapped_column(Integer)
    in_force: Mapped[bool] = mapped_column(Boolean)
    changed: Mapped[bool] = mapped_column(Boolean)
    class_figures_changed: Mapped[bool] = mapped_column(Boolean)
    card: Mapped[dict[str, Any]] = mapped_column(JSONB)


Index(
    "uq_report_cards_student_id_term_id",
    ReportCard.student_id,
    ReportCard.term_id,
    unique=True,
    postgresql_where=text("in_force"),
    info={"message": "A student has one report card of a term at most."},
)


class LeftOut(db.Model):
    """That a publication left a student out of a batch's results of a term, until another takes them in."""

    __tablename__ = "left_out_students"
    __table_args__ = (Index(None, "batch_id", "term_id"), Index(None, "term_id"))

    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True)
    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id"), primary_key=True)
    term_id: Mapped[UUID] = mapped_column(ForeignKey("terms.id"), primary_key=True)


class IssuedTranscript(db.Model):
    """A transcript as it was printed: `transcript` is all that it says, and `card_ids` name the cards that it rests on.

    `code` is known to the paper alone. Whoever prints the same transcript again on the same day gets the same paper:
    `digest` is the SHA-256, in hexadecimal, of what it says and of that day.
    """

    __tablename__ = "issued_transcripts"
    __table_args__ = (UniqueConstraint("student_id", "digest"), UniqueConstraint("code"))

    id: Mapped[UUID] = primary_key()
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"))
    code: Mapped[UUID]
    digest: Mapped[str] = mapped_column(String(64))
    issued_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    card_ids: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid))
    transcript: Mapped[dict[str, Any]] = mapped_column(JSONB)


PSYCHOMOTOR, AFFECTIVE = METRIC_TYPES = Enumeration("MetricType", "PSYCHOMOTOR", "AFFECTIVE")
POOREST, BEST = 1, 5
_KNOWN_TYPE = "metric_type IN ('PSYCHOMOTOR', 'AFFECTIVE')"


class MetricDefinition(db.Model):
    """A trait that students are scored for, such as punctuality; `position` orders those of its type, from 1."""

    __tablename__ = "metric_definitions"
    __table_args__ = (
        UniqueConstraint("name", "metric_type"),
        UniqueConstraint("metric_type", "position"),
        CheckConstraint(_KNOWN_TYPE, name="metric_type"),
    )

    id: Mapped[UUID] = primary_key()
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    metric_type: Mapped[str] = mapped_column(String(20))
    position: Mapped[int] = mapped_column(Integer)


class Metric(db.Model):
    """What was seen of a student in a term, of one type, and the batch on whose sheet it came last.

    Cohort and session are the batch's own. They are here so that the term is always one of that session, and
    the cohort keeps its session, whoever writes at the same time. `sheet` is the name of the file that it
    came in last; None where it was entered by hand.
    """

    __tablename__ = "metrics"
    __table_args__ = (
        UniqueConstraint("student_id", "term_id", "metric_type"),
        ForeignKeyConstraint(["batch_id", "cohort_id"], ["batches.id", "batches.cohort_id"]),
        ForeignKeyConstraint(["cohort_id", "session_id"], ["cohorts.id", "cohorts.session_id"]),
        ForeignKeyConstraint(["term_id", "session_id"], ["terms.id", "terms.session_id"]),
        CheckConstraint(_KNOWN_TYPE, name="metric_type"),
        Index(None, "batch_id", "cohort_id"),
        Index(None, "cohort_id", "session_id"),
        Index(None, "term_id", "session_id"),
    )

    id: Mapped[UUID] = primary_key()
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"))
    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    metric_type: Mapped[str] = mapped_column(String(20))
    sheet: Mapped[str | None] = mapped_column(String(FILE_NAME_LENGTH))
    created_at: Mapped[datetime] = created_at()
    updated_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), default=now)


class MetricScore(db.Model):
    """The score of a trait in a metric record: 5 excellent, 4, 3, 2, 1 poor."""

    __tablename__ = "metric_scores"
    __table_args__ = (CheckConstraint("score BETWEEN 1 AND 5", name="score"),)

    metric_id: Mapped[UUID] = mapped_column(ForeignKey("metrics.id", info=goes_with()), primary_key=True)
    definition_id: Mapped[UUID] = mapped_column(
        ForeignKey("metric_definitions.id"), primary_key=True, index=True
    )
    score: Mapped[int] = mapped_column(SmallInteger)


COMMENT_LENGTH = 500


class TermComment(db.Model):
    """What form teacher and principal say of a student's term, how many times they came, and their batch.

    Cohort and session are the batch's own. They are here so that the term is always one of that session, and the
    cohort keeps its session, whoever writes at the same time. `sheet` is the name of the file that a change came
    in last; None where it was made by hand.
    """

    __tablename__ = "term_comments"
    __table_args__ = (
        ForeignKeyConstraint(["batch_id", "cohort_id"], ["batches.id", "batches.cohort_id"]),
        ForeignKeyConstraint(["cohort_id", "session_id"], ["cohorts.id", "cohorts.session_id"]),
        ForeignKeyConstraint(["term_id", "session_id"], ["terms.id", "terms.session_id"]),
        CheckConstraint("times_present BETWEEN 0 AND 400", name="times_present"),
        Index(None, "batch_id", "cohort_id"),
        Index(None, "cohort_id", "session_id"),
        Index(None, "term_id", "session_id"),
    )

    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True)
    term_id: Mapped[UUID] = mapped_column(primary_key=True)
    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    times_present: Mapped[int | None] = mapped_column(SmallInteger)
    form_teacher_comment: Mapped[str | None] = mapped_column(String(COMMENT_LENGTH))
    principal_comment: Mapped[str | None] = mapped_column(String(COMMENT_LENGTH))
    sheet: Mapped[str | None] = mapped_column(String(FILE_NAME_LENGTH))
    created_at: Mapped[datetime] = created_at()
    updated_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), default=now)


CURRENT_CARD, REPLACED_CARD, WITHDRAWN_CARD = CARD_STATES = Enumeration(
    "CardState", "CURRENT", "REPLACED", "WITHDRAWN"
)

PDF, ZIP = FORMATS = Enumeration("CardsFormat", "pdf", "zip")
"""As what the cards of a batch come."""

MAX_CARDS = 200
"""Of one file."""


class Graduate(db.Model):
    """A student who graduated, from which class; `number` counts the school's graduates without gaps."""

    __tablename__ = "graduates"

    id: Mapped[UUID] = primary_key()
    number: Mapped[int] = mapped_column(Integer, unique=True)
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), unique=True)
    # A classroom's name, a space and a session's name; empty where the student was never enrolled.
    graduation_class: Mapped[str] = mapped_column(String(2 * NAME_LENGTH + 1))
    created_at: Mapped[datetime] = created_at()


PROMOTED, PROMOTED_ON_TRIAL, REPEATED, GRADUATED, LEFT_OUT = OUTCOMES = Enumeration(
    "PromotionOutcome", "PROMOTED", "PROMOTED_ON_TRIAL", "REPEATED", "GRADUATED", "LEFT_OUT"
)
NO_RESULT = "NO_RESULT"
BY_RULE = Enumeration("OutcomeByRule", PROMOTED, PROMOTED_ON_TRIAL, REPEATED, GRADUATED, NO_RESULT)
"""What a rule says of a student; it has nothing to say of one without a session result."""

PERCENT = Numeric(5, 2)
MAX_FAILED, MAX_REQUIRED = 40, 40
FINGERPRINT_LENGTH = 64


class PromotionRule(db.Model):
    """Who of a level of classrooms is promoted; without a level, who of all levels that have no rule of their own."""

    __tablename__ = "promotion_rules"
    __table_args__ = (
        CheckConstraint("minimum_average BETWEEN 0 AND 100", name="minimum_average"),
        CheckConstraint("trial_average >= 0 AND trial_average < minimum_average", name="trial_average"),
        CheckConstraint("required_percent BETWEEN 0 AND 100", name="required_percent"),
        CheckConstraint("maximum_failed BETWEEN 0 AND 40", name="maximum_failed"),
        CheckConstraint("minimum_terms BETWEEN 1 AND 3", name="minimum_terms"),
    )

    id: Mapped[UUID] = primary_key()
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
    """A subject of the school that a rule requires."""

    __tablename__ = "promotion_rule_subjects"

    rule_id: Mapped[UUID] = mapped_column(
        ForeignKey("promotion_rules.id", ondelete="CASCADE"), primary_key=True
    )
    subject_id: Mapped[UUID] = mapped_column(ForeignKey("subjects.id"), primary_key=True, index=True)


class Promotion(db.Model):
    """That students of batches of a session went on, all at once; the next session is null where none was enrolled.

    It is live until it is undone. `fingerprint` tells what was seen before it was committed. `committed_by` and
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

    id: Mapped[UUID] = primary_key()
    session_id: Mapped[UUID] = mapped_column(ForeignKey("sessions.id"))
    next_session_id: Mapped[UUID | None] = mapped_column(ForeignKey("sessions.id"), index=True)
    fingerprint: Mapped[str] = mapped_column(String(FINGERPRINT_LENGTH))
    committed_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    committed_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    committed_by_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))
    undone_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    undone_by: Mapped[str | None] = mapped_column(String(ACTOR_LENGTH))
    undone_by_name: Mapped[str | None] = mapped_column(String(ACTOR_NAME_LENGTH))


LIVE = Promotion.undone_at.is_(None)

Index("uq_promotions_fingerprint", Promotion.fingerprint, unique=True, postgresql_where=LIVE)


class PromotionBatch(db.Model):
    """A batch whose students a promotion moved, by default where; `number` orders those of a promotion.

    `live` while the promotion is: a batch is in one such at most.
    """

    __tablename__ = "promotion_batches"

    promotion_id: Mapped[UUID] = mapped_column(ForeignKey("promotions.id"), primary_key=True)
    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id"), primary_key=True, index=True)
    number: Mapped[int] = mapped_column(SmallInteger)
    promote_to_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), index=True)
    repeat_in_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), index=True)
    live: Mapped[bool] = mapped_column(Boolean)


Index(
    "uq_promotion_batches_batch_id",
    PromotionBatch.batch_id,
    unique=True,
    postgresql_where=text("live"),
    info={"message": "A batch is promoted at most once."},
)


class PromotionDecision(db.Model):
    """What became of a student in a promotion, what the rule said and why, and the reason of whoever decided otherwise.

    `enrollment_id` is the enrollment that was made, until it is taken back; `before` what a graduate left, as
    `{"enrollments": [id], "subjects": [{"cohort_subject_id": id, "created_at": time}]}`.
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
    )

    promotion_id: Mapped[UUID] = mapped_column(ForeignKey("promotions.id"), primary_key=True)
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True, index=True)
    from_batch_id: Mapped[UUID]
    average: Mapped[Decimal | None] = mapped_column(PERCENT)
    terms: Mapped[int | None] = mapped_column(SmallInteger)
    by_rule: Mapped[str] = mapped_column(String(20))
    outcome: Mapped[str] = mapped_column(String(20))
    reasons: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    reason: Mapped[str | None] = mapped_column(String(TEXT_LENGTH))
    to_batch_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), index=True)
    enrollment_id: Mapped[UUID | None] = mapped_column(ForeignKey("enrollments.id"), index=True)
    before: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
