"""Read models of rules of promotion and of promotions, and what promoting and undoing need to know."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    Integer,
    Text,
    Uuid,
    and_,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    null,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.orm import aliased

from school_service.core.counters import GRADUATES, Counter
from school_service.core.read_models import Query, read_model
from school_service.core.records import one_of
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.models import WITHDRAWN, Student, User
from school_service.features.people.students.reads import BY_NAME
from school_service.features.results.computing.class_term.counting import counted_by, counts
from school_service.features.results.computing.class_term.roster import belongs_without_card
from school_service.features.results.models import (
    GRADUATED,
    IN_FORCE,
    LIVE,
    OUTCOMES,
    PUBLISHED,
    Graduate,
    Metric,
    Promotion,
    PromotionBatch,
    PromotionDecision,
    PromotionRule,
    Publication,
    ReportCard,
    RequiredSubject,
)
from school_service.features.results.promotions.rules import WITHOUT_FIGURES
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import (
    CURRENT,
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Enrollment,
    Subject,
    Term,
)
from school_service.features.scores.models import NOT_DELETED, Absence, Assessment, GradebookEntry
from school_service.features.year.models import TermComment

_NEXT = aliased(AcademicSession)
_STUDENT = (
    "id", Student.id,
    "admission_number", Student.admission_number,
    "first_name", User.first_name,
    "last_name", User.last_name,
)  # fmt: skip


# Rules


@read_model
def promotion_rules() -> Query:
    """Read model of PromotionRuleSchema, by level, that for all others last."""
    required = (
        select(
            func.coalesce(func.json_agg(aggregate_order_by(Subject.id, Subject.name, Subject.id)), _none())
        )
        .select_from(RequiredSubject)
        .join(Subject, Subject.id == RequiredSubject.subject_id)
        .where(RequiredSubject.rule_id == PromotionRule.id)
        .scalar_subquery()
    )
    return select(
        PromotionRule.level,
        PromotionRule.minimum_average,
        PromotionRule.trial_average,
        required.label("required_subjects"),
        PromotionRule.required_percent,
        PromotionRule.maximum_failed,
        PromotionRule.minimum_terms,
    ).order_by(PromotionRule.level.nulls_last())


@read_model
def replacing(levels: list[str], subject_ids: list[UUID]) -> Query:
    """Select what decides whether rules may be replaced: `rules`, those there are, and of these `levels`, `subjects`.

    All are JSON: the levels and subjects that there are.
    """
    found_levels = (
        select(Classroom.level).where(Classroom.level == one_of(levels, Text)).distinct().subquery()
    )
    found_subjects = select(Subject.id).where(Subject.id == one_of(subject_ids)).subquery()
    return select(
        _stored_rules().label("rules"),
        select(_array(found_levels.c.level)).scalar_subquery().label("levels"),
        select(_array(found_subjects.c.id)).scalar_subquery().label("subjects"),
    )


def _stored_rules() -> Any:
    """A column: the rules as JSON, their numbers as texts, the required subjects with their names, by level."""
    subject = func.json_build_object("id", Subject.id, "name", Subject.name)
    required = (
        select(func.coalesce(func.json_agg(aggregate_order_by(subject, Subject.name, Subject.id)), _none()))
        .select_from(RequiredSubject)
        .join(Subject, Subject.id == RequiredSubject.subject_id)
        .where(RequiredSubject.rule_id == PromotionRule.id)
        .correlate(PromotionRule)
        .scalar_subquery()
    )
    figures = ("minimum_average", "trial_average", "required_percent", "maximum_failed", "minimum_terms")
    rule = func.json_build_object(
        "level", PromotionRule.level,
        "required_subjects", required,
        *(part for name in figures for part in (name, cast(getattr(PromotionRule, name), Text))),
    )  # fmt: skip
    in_order = aggregate_order_by(rule, PromotionRule.level.nulls_last())
    return select(_array(in_order)).select_from(PromotionRule).scalar_subquery()


# Promotions


@read_model
def promotions(session: str | None = None) -> Query:
    """Read model of PromotionSummarySchema, the newest first: all, or those of a session, by id or name."""
    found = _promotions().order_by(Promotion.committed_at.desc(), Promotion.id.desc())
    if session is None:
        return found
    return found.where(Promotion.session_id == session_by_id_or_name(session).scalar_subquery())


@read_model
def promotion(promotion_id: UUID) -> Query:
    """Read model of PromotionSchema, for one."""
    return _promotion(promotion_id, PromotionDecision.average, PromotionDecision.reasons)


@read_model
def promotion_without_figures(promotion_id: UUID) -> Query:
    """Read model of PromotionSchema, for one: without averages, and without figures in what its reasons say."""
    each = (
        func.jsonb_array_elements(PromotionDecision.reasons)
        .table_valued(column("value", JSONB), with_ordinality="number")
        .render_derived(name="reason")
    )
    code = each.c.value["code"].astext
    reason = func.json_build_object("code", code, "message", case(WITHOUT_FIGURES, value=code))
    reasons = (
        select(func.coalesce(func.json_agg(aggregate_order_by(reason, each.c.number)), _none()))
        .select_from(each)
        .correlate(PromotionDecision)
        .scalar_subquery()
    )
    return _promotion(promotion_id, null(), reasons)


def _promotion(promotion_id: Any, average: Any, reasons: Any) -> Query:
    decision = func.json_build_object(
        "student", func.json_build_object(*_STUDENT),
        "from_batch", PromotionDecision.from_batch_id,
        "average", average,
        "terms", PromotionDecision.terms,
        "by_rule", PromotionDecision.by_rule,
        "outcome", PromotionDecision.outcome,
        "reasons", reasons,
        "reason", PromotionDecision.reason,
        "to_batch", PromotionDecision.to_batch_id,
    )  # fmt: skip
    decisions = (
        select(
            func.coalesce(
                func.json_agg(aggregate_order_by(decision, PromotionBatch.number, *BY_NAME)), _none()
            )
        )
        .select_from(PromotionDecision)
        .join(
            PromotionBatch,
            and_(
                PromotionBatch.promotion_id == PromotionDecision.promotion_id,
                PromotionBatch.batch_id == PromotionDecision.from_batch_id,
            ),
        )
        .join(Student, Student.id == PromotionDecision.student_id)
        .join(User, User.id == Student.user_id)
        .where(PromotionDecision.promotion_id == Promotion.id)
        .correlate(Promotion)
        .scalar_subquery()
    )
    return _promotions().add_columns(decisions.label("decisions")).where(Promotion.id == promotion_id)


def _promotions() -> Query:
    of_outcome = (
        part
        for outcome in OUTCOMES
        for part in (outcome, func.count().filter(PromotionDecision.outcome == outcome))
    )
    counted = (
        select(func.json_build_object(*of_outcome))
        .where(PromotionDecision.promotion_id == Promotion.id)
        .correlate(Promotion)
        .scalar_subquery()
    )
    next_session = func.json_build_object("id", _NEXT.id, "name", _NEXT.name)
    return (
        select(
            Promotion.id,
            func.json_build_object("id", AcademicSession.id, "name", AcademicSession.name).label("session"),
            case((_NEXT.id.is_not(None), next_session)).label("next_session"),
            Promotion.fingerprint,
            Promotion.committed_at,
            Promotion.committed_by_name,
            Promotion.undone_at,
            Promotion.undone_by_name,
            counted.label("counts"),
        )
        .join(AcademicSession, AcademicSession.id == Promotion.session_id)
        .outerjoin(_NEXT, _NEXT.id == Promotion.next_session_id)
    )


# Promoting


@read_model
def lock_students(batch_ids: list[UUID]) -> Query:
    """Lock the students of batches FOR NO KEY UPDATE, in order of id."""
    students = select(Enrollment.student_id).where(Enrollment.batch_id == one_of(batch_ids), CURRENT)
    return (
        select(Student.id)
        .where(Student.id.in_(students))
        .order_by(Student.id)
        .with_for_update(key_share=True)
    )


@read_model
def lock_cards(session: str, batch_ids: list[UUID]) -> Query:
    """Lock the cards of a session that are in force of who is in batches FOR SHARE, in order of id.

    Whoever reopens one of them waits, of whichever class it is; the students have to be locked.
    """
    students = select(Enrollment.student_id).where(Enrollment.batch_id == one_of(batch_ids), CURRENT)
    session_id = session_by_id_or_name(session).scalar_subquery()
    return (
        select(ReportCard.id)
        .join(Term, Term.id == ReportCard.term_id)
        .where(ReportCard.student_id.in_(students), Term.session_id == session_id, ReportCard.in_force)
        .order_by(ReportCard.id)
        .with_for_update(read=True, of=ReportCard)
    )


@read_model
def promoting(session: str, from_ids: list[UUID], batch_ids: list[UUID], fingerprint: str) -> Query:
    """Select what decides who is promoted, to be read once all is locked: one row, all of it JSON but ids and names.

    `session_id` is null where there is no session of this id or name. `committed` is the live promotion of this
    fingerprint. `batches` are those of `batch_ids` that there are, each with its session; `rules` as they are stored.
    Of `from_ids`, which are among them, `live` names those that are in a live promotion, `unpublished` those whose
    latest term in which something counts is not published, with that term; `students` is who is in them, by name: with
    the open `enrollments`, and of the latest card in the session what rules look at, `card`, numbers as texts.
    """
    found = select(session_by_id_or_name(session).scalar_subquery().label("id")).cte("found")
    name = Classroom.name + " " + Batch.name
    classes = (
        select(Batch.id, Batch.cohort_id, Cohort.session_id, Classroom.level, name.label("name"))
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(Batch.id == one_of(batch_ids))
        .cte("classes")
    )
    batch = func.json_build_object(
        "id", classes.c.id,
        "name", classes.c.name,
        "level", classes.c.level,
        "cohort", classes.c.cohort_id,
        "session", classes.c.session_id,
        "session_name", AcademicSession.name,
        "start_date", AcademicSession.start_date,
    )  # fmt: skip
    batches = (
        select(_array(batch))
        .select_from(classes)
        .join(AcademicSession, AcademicSession.id == classes.c.session_id)
    )
    is_of_class = classes.c.id == one_of(from_ids)
    live = (
        select(_array(aggregate_order_by(classes.c.name, classes.c.name)))
        .select_from(classes)
        .join(PromotionBatch, PromotionBatch.batch_id == classes.c.id)
        .where(is_of_class, PromotionBatch.live)
    )
    committed = select(Promotion.id).where(Promotion.fingerprint == fingerprint, LIVE)
    return (
        select(
            found.c.id.label("session_id"),
            AcademicSession.name.label("session_name"),
            AcademicSession.start_date,
            committed.scalar_subquery().label("committed"),
            batches.scalar_subquery().label("batches"),
            _stored_rules().label("rules"),
            live.scalar_subquery().label("live"),
            _unpublished(classes, is_of_class, from_ids, found.c.id).label("unpublished"),
            _roster(found.c.id, from_ids).label("students"),
        )
        .select_from(found)
        .outerjoin(AcademicSession, AcademicSession.id == found.c.id)
    )


def _unpublished(classes: Any, is_of_class: Any, from_ids: Any, session_id: Any) -> Any:
    """Name the classes whose latest term in which something counts is not published, with that term.

    It is published of a class in which nobody belongs to it without a card, as of an arm that was made later; and it is
    not of another class, too, whose card a student has, while that is under review.
    """
    counted = counted_by(classes)
    # The terms' own order is that of the alphabet: FIRST, SECOND, THIRD.
    latest = (
        select(Term.id, Term.display_name)
        .join(Assessment, Assessment.term_id == Term.id)
        .join(counted, counted.c.id == classes.c.id)
        .where(Assessment.cohort_id == classes.c.cohort_id, NOT_DELETED, *counts(counted))
        .order_by(Term.term.desc())
        .limit(1)
        .correlate(classes)
        .lateral("latest")
    )
    of_class = and_(Publication.batch_id == classes.c.id, Publication.term_id == latest.c.id)
    state = select(Publication.state).where(of_class, IN_FORCE).correlate(classes, latest).scalar_subquery()
    without_card = (
        select(Enrollment.id)
        .join(Student, Student.id == Enrollment.student_id)
        .where(
            Enrollment.batch_id == classes.c.id,
            CURRENT,
            Student.status != WITHDRAWN,
            belongs_without_card(latest.c.id),
        )
        .correlate(classes, latest)
    )
    own = (
        select((latest.c.display_name + " of " + classes.c.name).label("name"))
        .select_from(classes.join(latest, literal(True)))
        .where(is_of_class, case((state.is_(None), without_card.exists()), else_=state != PUBLISHED))
    )
    card = _latest_card(Enrollment.student_id, session_id)
    under_review = (
        select((Term.display_name + " of " + Classroom.name + " " + Batch.name).label("name"))
        .select_from(Enrollment)
        .join(card, literal(True))
        .join(Publication, Publication.id == card.c.publication)
        .join(Term, Term.id == Publication.term_id)
        .join(Batch, Batch.id == Publication.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(Enrollment.batch_id == one_of(from_ids), CURRENT, Publication.state != PUBLISHED)
    )
    name = own.union(under_review).subquery("unpublished").c.name
    return select(_array(aggregate_order_by(name, name))).scalar_subquery()


def _latest_card(student_id: Any, session_id: Any) -> Any:
    """The card in force of the latest term of a session that a student has one of, whichever class it is of."""
    return (
        select(ReportCard.card, ReportCard.publication_id.label("publication"), Publication.version)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .join(Term, Term.id == ReportCard.term_id)
        .where(ReportCard.student_id == student_id, Term.session_id == session_id, ReportCard.in_force)
        # The terms' own order is that of the alphabet: FIRST, SECOND, THIRD.
        .order_by(Term.term.desc())
        .limit(1)
        .correlate_except(ReportCard, Publication, Term)
        .lateral("latest_card")
    )


def _roster(session_id: Any, from_ids: Any) -> Any:
    """Who is in batches, by name, each with their open enrollments and what their latest card of the session says."""
    latest = _latest_card(Student.id, session_id)
    cumulative = latest.c.card["cumulative"]
    listed = func.jsonb_array_elements(cumulative["subjects"]).table_valued(column("subject", JSONB))
    listed = listed.render_derived(name="listed")
    subject = listed.c.subject
    is_of_term = latest.c.card["subjects"].contains(
        func.jsonb_build_array(
            func.jsonb_build_object("subject", func.jsonb_build_object("base", subject["base"])), type_=JSONB
        )
    )
    percents = (
        select(func.json_object_agg(subject["base"].astext, subject["percent"].astext))
        .select_from(listed)
        .where(is_of_term, subject["percent"].astext.is_not(None))
        .correlate(latest)
        .scalar_subquery()
    )
    card = func.json_build_object(
        "publication", latest.c.publication,
        "version", latest.c.version,
        "average", cumulative["average"].astext,
        "terms", cumulative["terms"],
        "pass_mark", latest.c.card["pass_mark"].astext,
        "percents", func.coalesce(percents, literal_column("'{}'::json")),
    )  # fmt: skip
    opened = aliased(Enrollment)
    enrollments = (
        select(
            func.json_agg(
                func.json_build_object(
                    "id", opened.id,
                    "cohort", opened.cohort_id,
                    "batch", opened.batch_id,
                    "session", opened.session_id,
                )
            )
        )
        .where(opened.student_id == Student.id, opened.ended_at.is_(None))
        .correlate(Student)
        .scalar_subquery()
    )  # fmt: skip
    student = func.json_build_object(
        *_STUDENT,
        "status", Student.status,
        "batch", Enrollment.batch_id,
        "enrollments", enrollments,
        "card", case((latest.c.publication.is_not(None), card)),
    )  # fmt: skip
    return (
        select(_array(aggregate_order_by(student, *BY_NAME)))
        .select_from(Enrollment)
        .join(Student, Student.id == Enrollment.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(latest, literal(True))
        .where(Enrollment.batch_id == one_of(from_ids), CURRENT)
        .correlate(session_id.table)
        .scalar_subquery()
    )


# Undoing


@read_model
def lock_cohorts_of(promotion_id: UUID) -> Query:
    """Lock the cohorts that a promotion concerns FOR NO KEY UPDATE, in order of id."""
    return (
        select(Cohort.id)
        .where(Cohort.id.in_(_cohorts_of(promotion_id)))
        .order_by(Cohort.id)
        .with_for_update(key_share=True)
    )


@read_model
def lock_assessments_of(promotion_id: UUID) -> Query:
    """Lock the assessments of the cohorts that students went to FOR NO KEY UPDATE, in order of id: no score comes."""
    return (
        select(Assessment.id)
        .where(Assessment.cohort_id.in_(cohorts_gone_to(promotion_id)))
        .order_by(Assessment.id)
        .with_for_update(key_share=True)
    )


@read_model
def lock_students_of(promotion_id: UUID) -> Query:
    """Lock the students of a promotion FOR NO KEY UPDATE, in order of id."""
    students = select(PromotionDecision.student_id).where(PromotionDecision.promotion_id == promotion_id)
    return (
        select(Student.id)
        .where(Student.id.in_(students))
        .order_by(Student.id)
        .with_for_update(key_share=True)
    )


@read_model
def lock_numbers_of_graduates() -> Query:
    """Lock the counter of graduates: nobody graduates meanwhile."""
    return select(Counter.id).where(Counter.name == GRADUATES).with_for_update(key_share=True)


@read_model
def undoing(promotion_id: UUID, at_most: int) -> Query:
    """Select what decides whether a promotion may be undone, to be read once all is locked; no row without one.

    `undone` tells whether it is already. As JSON: `rests`, students with something that rests on the promotion, by
    name, and what, at most so many; `enrollments`, those that were made; `graduates`, each with the enrollments that
    they left; `counts`, by outcome.
    """
    return select(
        Promotion.undone_at.is_not(None).label("undone"),
        _counts().label("counts"),
        _enrollments_made().label("enrollments"),
        _graduates().label("graduates"),
        _resting(promotion_id, at_most).label("rests"),
    ).where(Promotion.id == promotion_id)


def _counts() -> Any:
    """Count the decisions of a promotion, by outcome."""
    of_outcome = (
        part
        for outcome in OUTCOMES
        for part in (outcome, func.count().filter(PromotionDecision.outcome == outcome))
    )
    return (
        select(cast(func.json_build_object(*of_outcome), Text))
        .where(PromotionDecision.promotion_id == Promotion.id)
        .correlate(Promotion)
        .scalar_subquery()
    )


def _enrollments_made() -> Any:
    """Gather the enrollments that a promotion made."""
    enrollment = func.json_build_object(
        "id", Enrollment.id,
        "student", Enrollment.student_id,
        "cohort", Enrollment.cohort_id,
        "batch", Enrollment.batch_id,
    )  # fmt: skip
    return (
        select(_array(enrollment))
        .select_from(PromotionDecision)
        .join(Enrollment, Enrollment.id == PromotionDecision.enrollment_id)
        .where(PromotionDecision.promotion_id == Promotion.id)
        .correlate(Promotion)
        .scalar_subquery()
    )


def _graduates() -> Any:
    """Gather the students who graduated with a promotion, each with the enrollments that they left."""
    left = func.jsonb_array_elements_text(PromotionDecision.before["enrollments"]).table_valued("id")
    left = left.render_derived(name="left_behind")
    enrollment = func.json_build_object(
        "id", Enrollment.id, "cohort", Enrollment.cohort_id, "batch", Enrollment.batch_id
    )
    enrollments = (
        select(func.json_agg(enrollment))
        .select_from(left)
        .join(Enrollment, Enrollment.id == cast(left.c.id, Uuid))
        .correlate(PromotionDecision)
        .scalar_subquery()
    )
    graduate = func.json_build_object(
        "id", Graduate.id,
        "number", Graduate.number,
        "student", Graduate.student_id,
        "graduation_class", Graduate.graduation_class,
        "enrollments", func.coalesce(enrollments, _none()),
    )  # fmt: skip
    return (
        select(_array(graduate))
        .select_from(PromotionDecision)
        .join(Graduate, Graduate.student_id == PromotionDecision.student_id)
        .where(PromotionDecision.promotion_id == Promotion.id, PromotionDecision.outcome == GRADUATED)
        .correlate(Promotion)
        .scalar_subquery()
    )


def _resting(promotion_id: Any, at_most: Any) -> Any:
    """Name students with what rests on their promotion, by name."""
    student_id = PromotionDecision.student_id
    went = PromotionDecision.enrollment_id.is_not(None)
    graduated = PromotionDecision.outcome == GRADUATED
    stays = select(Enrollment.id).where(Enrollment.id == PromotionDecision.enrollment_id, CURRENT)
    followed = _followed(promotion_id, student_id)
    what = func.concat_ws(
        ", ",
        *(
            case((and_(went, rows.correlate(PromotionDecision, Promotion).exists()), words))
            for words, rows in _of_next_session(student_id).items()
        ),
        case((and_(went, ~stays.correlate(PromotionDecision).exists()), "moved or removed since")),
        case((and_(graduated, followed.correlate(PromotionDecision).exists()), "others graduated since")),
        case((and_(graduated, User.erased_at.is_not(None)), "their data were erased")),
    )
    rested = (
        select(
            Student.admission_number.label("admission_number"),
            what.label("what"),
            func.row_number().over(order_by=BY_NAME).label("number"),
        )
        .select_from(PromotionDecision)
        .join(Promotion, Promotion.id == PromotionDecision.promotion_id)
        .join(Student, Student.id == student_id)
        .join(User, User.id == Student.user_id)
        .where(PromotionDecision.promotion_id == promotion_id, what != "")
        .order_by(*BY_NAME)
        .limit(cast(at_most, Integer))
        .subquery("rested")
    )
    one = func.json_build_object("student", rested.c.admission_number, "what", rested.c.what)
    return select(_array(aggregate_order_by(one, rested.c.number))).scalar_subquery()


def _of_next_session(student_id: Any) -> dict[str, Query]:
    """Select what a student has of the session that the promotion leads to, by what it is called."""
    later, others = aliased(Promotion), aliased(PromotionDecision)
    return {
        "a score": select(GradebookEntry.id)
        .join(Assessment, Assessment.id == GradebookEntry.assessment_id)
        .where(GradebookEntry.student_id == student_id, NOT_DELETED, _in_next(Assessment)),
        "an absence": select(Absence.assessment_id)
        .join(Assessment, Assessment.id == Absence.assessment_id)
        .where(Absence.student_id == student_id, NOT_DELETED, _in_next(Assessment)),
        "traits": select(Metric.id).where(Metric.student_id == student_id, _in_next(Metric)),
        "a comment": select(TermComment.term_id).where(
            TermComment.student_id == student_id, _in_next(TermComment)
        ),
        "a report card": select(ReportCard.id)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .where(ReportCard.student_id == student_id, _in_next(Publication)),
        "an elective": select(SubjectEnrollment.student_id)
        .join(CohortSubject, CohortSubject.id == SubjectEnrollment.cohort_subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .where(SubjectEnrollment.student_id == student_id, CohortSubject.elective, _in_next(Cohort)),
        "a later promotion": select(later.id)
        .join(others, others.promotion_id == later.id)
        .where(others.student_id == student_id, later.undone_at.is_(None), _in_next(later)),
    }


def _followed(promotion_id: Any, student_id: Any) -> Query:
    """Select the number of a graduate while others have graduated after the promotion.

    Numbers have no gaps: who has one above the highest of this promotion came later.
    """
    own, following = aliased(Graduate), aliased(Graduate)
    same = aliased(PromotionDecision)
    of_promotion = select(same.student_id).where(same.promotion_id == promotion_id, same.outcome == GRADUATED)
    return (
        select(own.id)
        .join(following, following.number > own.number)
        .where(own.student_id == student_id, following.student_id.not_in(of_promotion))
    )


def _in_next(model: Any) -> Any:
    """Tell whether a row is of the session that the promotion leads to."""
    return model.session_id == Promotion.next_session_id


def _cohorts_of(promotion_id: Any) -> Any:
    """Select the cohorts of the batches that students came from and were to go to."""
    batches = aliased(PromotionBatch)
    named = [
        select(Batch.cohort_id)
        .join(batches, Batch.id == getattr(batches, name))
        .where(batches.promotion_id == promotion_id)
        for name in ("batch_id", "promote_to_id", "repeat_in_id")
    ]
    return named[0].union(*named[1:], cohorts_gone_to(promotion_id))


def cohorts_gone_to(promotion_id: Any) -> Query:
    """Select the cohorts that students of a promotion went to."""
    return (
        select(Batch.cohort_id)
        .join(PromotionDecision, PromotionDecision.to_batch_id == Batch.id)
        .where(PromotionDecision.promotion_id == promotion_id)
    )


def _none() -> Any:
    return literal_column("'[]'::json")


def _array(rows: Any) -> Any:
    """Gather rows as an array, as text."""
    return func.coalesce(cast(func.json_agg(rows, type_=JSON), Text), "[]")
