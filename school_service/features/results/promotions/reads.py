"""Read models of rules of promotion and of promotions, and the facts for promoting and undoing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Text, and_, any_, case, cast, func, literal, literal_column, null, or_, select
from sqlalchemy.orm import aliased

from school_service.core.counters import GRADUATES, Counter
from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.core.records import lock_in_order, one_of
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.models import WITHDRAWN, Student, User
from school_service.features.people.students.leaving import last_day
from school_service.features.people.students.reads import BY_NAME, NAMED_STUDENT
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
    PromotionAmendment,
    PromotionBatch,
    PromotionDecision,
    PromotionRule,
    Publication,
    ReportCard,
    RequiredSubject,
)
from school_service.features.results.publications.reads import latest_card, results_of
from school_service.features.school.cohorts.reads import CLASS, session_by_id_or_name, with_class
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


# Rules


@read_model
def promotion_rules() -> Query:
    """Read model of PromotionRuleSchema, by level, the one for all others last."""
    return _rules(Subject.id).order_by(PromotionRule.level.nulls_last())


def _rules(subject: Any) -> Query:
    """Select the rules, each with its required subjects by name, as `subject` shows them."""
    required = (
        select(array_of(subject, Subject.name, Subject.id))
        .select_from(RequiredSubject)
        .join(Subject, Subject.id == RequiredSubject.subject_id)
        .where(RequiredSubject.rule_id == PromotionRule.id)
        .correlate(PromotionRule)
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
    )


@read_model
def replacing(levels: list[str], subject_ids: list[UUID]) -> Query:
    """Select the facts to replace rules: the present `rules`, and the known ones of `levels` and `subjects`."""
    found_levels = select(array_of(Classroom.level)).where(Classroom.level == one_of(levels, Text))
    found_subjects = select(array_of(Subject.id)).where(Subject.id == one_of(subject_ids))
    return select(
        _stored_rules().label("rules"),
        found_levels.scalar_subquery().label("levels"),
        found_subjects.scalar_subquery().label("subjects"),
    )


def _stored_rules() -> Any:
    """A column: the rules, each with its required subjects and their names."""
    rules = _rules(json_object(id=Subject.id, name=Subject.name)).subquery("stored_rules")
    return select(array_of(rules.table_valued())).select_from(rules).scalar_subquery()


# Promotions


@read_model
def promotions(session: str | None = None) -> Query:
    """Read model of PromotionSummarySchema, the newest first: all, or a session's, by id or name."""
    next_session = json_object(id=_NEXT.id, name=_NEXT.name)
    query = (
        select(
            Promotion.id,
            json_object(id=AcademicSession.id, name=AcademicSession.name).label("session"),
            case((_NEXT.id.is_not(None), next_session)).label("next_session"),
            Promotion.fingerprint,
            Promotion.committed_at,
            Promotion.committed_by_name,
            Promotion.undone_at,
            Promotion.undone_by_name,
            _counts().label("counts"),
        )
        .join(AcademicSession, AcademicSession.id == Promotion.session_id)
        .outerjoin(_NEXT, _NEXT.id == Promotion.next_session_id)
        .order_by(Promotion.committed_at.desc(), Promotion.id.desc())
    )
    if session is None:
        return query
    return query.where(Promotion.session_id == session_by_id_or_name(session).scalar_subquery())


@read_model
def promotion(promotion_id: UUID) -> Query:
    """Read model of PromotionSchema, for one."""
    decisions = (
        select(array_of(json_object(**_decision_members()), PromotionBatch.number, *BY_NAME))
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
    )
    shown = promotions.query().add_columns(_of_promotion(decisions).label("decisions"))
    return shown.where(Promotion.id == promotion_id)


@read_model
def decision(promotion_id: UUID, student_id: UUID) -> Query:
    """Read model of PromotionDecisionSchema, for one."""
    shown = (value.label(name) for name, value in _decision_members().items())
    return (
        select(*shown)
        .select_from(PromotionDecision)
        .join(Student, Student.id == PromotionDecision.student_id)
        .join(User, User.id == Student.user_id)
        .where(PromotionDecision.promotion_id == promotion_id, PromotionDecision.student_id == student_id)
    )


def _decision_members() -> dict[str, Any]:
    """The members of a decision."""
    told = ("average", "terms", "by_rule", "outcome", "reasons", "reason")
    amendment = json_object(
        outcome=PromotionAmendment.outcome,
        to_batch=PromotionAmendment.to_batch_id,
        reason=PromotionAmendment.reason,
        by_name=PromotionAmendment.amended_by_name,
        at=PromotionAmendment.amended_at,
    )
    amended = select(array_of(amendment, PromotionAmendment.amended_at, PromotionAmendment.id))
    return {
        "student": NAMED_STUDENT,
        "from_batch": PromotionDecision.from_batch_id,
        **{name: getattr(PromotionDecision, name) for name in told},
        "to_batch": PromotionDecision.to_batch_id,
        "amended": _amendments(amended).scalar_subquery(),
    }


def _amendments(query: Query) -> Query:
    """The amendments of a decision, of a query with its table."""
    return query.where(
        PromotionAmendment.promotion_id == PromotionDecision.promotion_id,
        PromotionAmendment.student_id == PromotionDecision.student_id,
    ).correlate(PromotionDecision)


def _counts() -> Any:
    """Count the decisions of a promotion, by outcome."""
    counts = {outcome: func.count().filter(PromotionDecision.outcome == outcome) for outcome in OUTCOMES}
    return _of_promotion(select(json_object(**counts)))


def _of_promotion(query: Query) -> Any:
    """A column of a query of Promotion: the result of another query among its decisions."""
    return query.where(PromotionDecision.promotion_id == Promotion.id).correlate(Promotion).scalar_subquery()


# Promoting


@read_model
def lock_students(batch_ids: list[UUID]) -> Query:
    """Lock the students of batches FOR NO KEY UPDATE, in order of id."""
    return lock_in_order(Student, Student.id.in_(_students_in(batch_ids)))


@read_model
def lock_cards(session: str, batch_ids: list[UUID]) -> Query:
    """Lock the cards in force of a session of the students in batches FOR SHARE, in order of id.

    The reopening of one of them, of any class, waits; the students have to be locked.
    """
    session_id = session_by_id_or_name(session).scalar_subquery()
    return (
        select(ReportCard.id)
        .join(Term, Term.id == ReportCard.term_id)
        .where(
            ReportCard.student_id.in_(_students_in(batch_ids)),
            Term.session_id == session_id,
            ReportCard.in_force,
        )
        .order_by(ReportCard.id)
        .with_for_update(read=True, of=ReportCard)
    )


def _students_in(batch_ids: Any) -> Query:
    return select(Enrollment.student_id).where(Enrollment.batch_id == one_of(batch_ids), CURRENT)


@read_model
def promoting(session: str, from_ids: list[UUID], batch_ids: list[UUID], fingerprint: str) -> Query:
    """Select the facts for a promotion, to be read once all is locked: one row.

    `session_id` is null if there is no session of this id or name. `committed` is the live promotion of this
    fingerprint. `batches` are the known ones of `batch_ids`, by name, each with its session, and whether it is in a
    `live` promotion; `rules` as they are stored. `from_ids` are among them: of these, `unpublished` names the batches
    with an unpublished latest term (`_unpublished`), with the term; `students` are their students, by name: with the
    open `enrollments`, and the members of the latest card in the session for the rules, `card`.
    """
    of_session = select(session_by_id_or_name(session).scalar_subquery().label("id")).cte("found")
    live = select(PromotionBatch.batch_id).where(PromotionBatch.batch_id == Batch.id, PromotionBatch.live)
    named = with_class(
        select(
            Batch.id,
            CLASS.label("name"),
            Classroom.level,
            Cohort.id.label("cohort"),
            AcademicSession.id.label("session"),
            AcademicSession.name.label("session_name"),
            AcademicSession.start_date,
            live.exists().label("live"),
        ).where(Batch.id == one_of(batch_ids))
    )
    classes = named.join(AcademicSession, AcademicSession.id == Cohort.session_id).cte("classes")
    batches = select(array_of(classes.table_valued(), classes.c.name)).select_from(classes)
    committed = select(Promotion.id).where(Promotion.fingerprint == fingerprint, LIVE)
    return (
        select(
            of_session.c.id.label("session_id"),
            AcademicSession.name.label("session_name"),
            AcademicSession.start_date,
            committed.scalar_subquery().label("committed"),
            batches.scalar_subquery().label("batches"),
            _stored_rules().label("rules"),
            _unpublished(classes, from_ids, of_session.c.id).label("unpublished"),
            _roster(of_session.c.id, from_ids).label("students"),
        )
        .select_from(of_session)
        .outerjoin(AcademicSession, AcademicSession.id == of_session.c.id)
    )


def _unpublished(classes: Any, from_ids: Any, session_id: Any) -> Any:
    """Name the classes with an unpublished latest term, with the term: the latest with an assessment that counts.

    It is published of a class without members who lack a card, such as an arm made later. If a student has a card of
    another class under review, it is not published of that class, too.
    """
    counted = counted_by(classes)
    # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
    latest = (
        select(Term.id, Term.display_name)
        .join(Assessment, Assessment.term_id == Term.id)
        .join(counted, counted.c.id == classes.c.id)
        .where(Assessment.cohort_id == classes.c.cohort, NOT_DELETED, *counts(counted))
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
        .where(
            classes.c.id == one_of(from_ids),
            case((state.is_(None), without_card.exists()), else_=state != PUBLISHED),
        )
    )
    card = latest_card(Enrollment.student_id, session_id)
    under_review = (
        select(results_of(Term).label("name"))
        .select_from(Enrollment)
        .join(card, literal(True))
        .join(Publication, Publication.id == card.c.publication)
        .join(Term, Term.id == Publication.term_id)
        .join(Batch, Batch.id == Publication.batch_id)
        .where(Enrollment.batch_id == one_of(from_ids), CURRENT, Publication.state != PUBLISHED)
    )
    name = own.union(with_class(under_review)).subquery("unpublished").c.name
    return select(array_of(name, name)).scalar_subquery()


def _roster(session_id: Any, from_ids: Any) -> Any:
    """The students in batches, by name, each with their open enrollments and parts of the session's latest card."""
    latest = latest_card(Student.id, session_id)
    card = json_object(
        publication=latest.c.publication,
        version=latest.c.version,
        pass_mark=latest.c.card["pass_mark"],
        cumulative=latest.c.card["cumulative"],
        bases=func.jsonb_path_query_array(latest.c.card, literal_column("'$.subjects[*].subject.base'")),
    )
    opened = aliased(Enrollment)
    enrollments = (
        select(array_of(_enrollment(opened, **last_day(opened))))
        .where(opened.student_id == Student.id, opened.ended_at.is_(None))
        .correlate(Student)
        .scalar_subquery()
    )
    student = json_object(
        id=Student.id,
        admission_number=Student.admission_number,
        first_name=User.first_name,
        last_name=User.last_name,
        status=Student.status,
        admitted_on=Student.admitted_on,
        batch=Enrollment.batch_id,
        enrollments=enrollments,
        card=case((latest.c.publication.is_not(None), card)),
    )
    return (
        select(array_of(student, *BY_NAME))
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
    """Lock the cohorts of a promotion FOR NO KEY UPDATE, in order of id."""
    return lock_in_order(Cohort, Cohort.id.in_(_cohorts_of(promotion_id)))


@read_model
def lock_assessments_of(promotion_id: UUID) -> Query:
    """Lock the assessments of the students' next cohorts FOR NO KEY UPDATE, in order of id: no score comes."""
    return lock_in_order(Assessment, Assessment.cohort_id.in_(cohorts_gone_to(promotion_id)))


@read_model
def lock_students_of(promotion_id: UUID) -> Query:
    """Lock the students of a promotion FOR NO KEY UPDATE, in order of id."""
    students = select(PromotionDecision.student_id).where(PromotionDecision.promotion_id == promotion_id)
    return lock_in_order(Student, Student.id.in_(students))


@read_model
def lock_numbers_of_graduates() -> Query:
    """Lock the counter of graduates: nobody graduates meanwhile."""
    return select(Counter.id).where(Counter.name == GRADUATES).with_for_update(key_share=True)


@read_model
def undoing(promotion_id: UUID) -> Query:
    """Select the facts for undoing a promotion, to be read once all is locked; no row without one.

    `undone` tells whether it is already. `rests` are the students, by name, each with a list of the records that rest
    on the promotion, empty without any; `enrollments` those made; `graduates`, each with the enrollments ended;
    `moved`, students with the enrollments in the next session that an amendment ended, and the promotion had not made;
    `students` are all ids; `counts`, by outcome.
    """
    was_ended = and_(PromotionDecision.outcome != GRADUATED, Enrollment.ended_at.is_not(None))
    moved = json_object(student=PromotionDecision.student_id, enrollments=_given_back(was_ended))
    is_moved = and_(PromotionDecision.outcome != GRADUATED, PromotionDecision.before.is_not(None))
    return select(
        Promotion.undone_at.is_not(None).label("undone"),
        _counts().label("counts"),
        _enrollments_made().label("enrollments"),
        _graduates().label("graduates"),
        _of_promotion(select(array_of(moved)).where(is_moved)).label("moved"),
        _of_promotion(select(array_of(PromotionDecision.student_id))).label("students"),
        _resting(promotion_id).label("rests"),
    ).where(Promotion.id == promotion_id)


# Amending


@read_model
def lock_cohorts_of_student(student_id: UUID, batch_id: UUID | None = None) -> Query:
    """Lock the cohorts in which a student is or was, and a batch's cohort, FOR SHARE, in order of id."""
    theirs = select(Enrollment.cohort_id).where(Enrollment.student_id == student_id)
    if batch_id is None:
        return lock_in_order(Cohort, Cohort.id.in_(theirs), shared=True)
    of_batch = select(Batch.cohort_id).where(Batch.id == batch_id)
    return lock_in_order(Cohort, Cohort.id.in_(theirs.union(of_batch)), shared=True)


@read_model
def amending(promotion_id: UUID, student_id: UUID, batch_id: UUID | None = None) -> Query:
    """Select the facts for amending the decision on a student, to be read once all is locked; no row without one.

    `outcome`, `to_batch` and `enrollment` are those that hold; `graduate` is the graduate of GRADUATED, with the
    enrollments to give back. `enrollments` are the open ones, `kept` those of the next session to give back when the
    promotion is undone. `batch` is the one to go to, null if unknown. `card`, `promoted` and `followed` tell whether
    there is a report card of the next session, a later promotion, and a later graduate.
    """
    rows = _of_next_session(student_id)
    opened = select(array_of(_enrollment(Enrollment))).where(Enrollment.student_id == student_id, CURRENT)
    graduate = select(_graduate()).where(Graduate.student_id == student_id).correlate(PromotionDecision)
    batch = select(json_object(id=Batch.id, cohort=Cohort.id, session=Cohort.session_id)).join(
        Cohort, Cohort.id == Batch.cohort_id
    )
    return (
        select(
            Promotion.undone_at.is_not(None).label("undone"),
            Promotion.next_session_id.label("next_session"),
            _NEXT.name.label("next_session_name"),
            PromotionDecision.outcome,
            PromotionDecision.to_batch_id.label("to_batch"),
            PromotionDecision.enrollment_id.label("enrollment"),
            Student.admission_number.label("number"),
            Student.status,
            User.erased_at.is_not(None).label("erased"),
            case((PromotionDecision.outcome == GRADUATED, graduate.scalar_subquery())).label("graduate"),
            opened.scalar_subquery().label("enrollments"),
            _given_back(_in_next(Enrollment)).label("kept"),
            (null() if batch_id is None else batch.where(Batch.id == batch_id).scalar_subquery()).label(
                "batch"
            ),
            rows["a report card"].where(ReportCard.in_force).exists().label("card"),
            rows["a later promotion"].exists().label("promoted"),
            _followed(promotion_id, student_id, of_promotion_too=True).exists().label("followed"),
        )
        .select_from(PromotionDecision)
        .join(Promotion, Promotion.id == PromotionDecision.promotion_id)
        .outerjoin(_NEXT, _NEXT.id == Promotion.next_session_id)
        .join(Student, Student.id == PromotionDecision.student_id)
        .join(User, User.id == Student.user_id)
        .where(PromotionDecision.promotion_id == promotion_id, PromotionDecision.student_id == student_id)
    )


def _enrollment(of: Any, **more: Any) -> Any:
    own = {"id": of.id, "student": of.student_id, "cohort": of.cohort_id, "batch": of.batch_id}
    return json_object(**{**own, "session": of.session_id, **more})


def _enrollments_made() -> Any:
    """Gather the enrollments made by a promotion and its amendments."""
    was_made = _amendments(select(PromotionAmendment.id)).where(
        Enrollment.id == any_(PromotionAmendment.ended)
    )
    made = select(array_of(_enrollment(Enrollment))).select_from(PromotionDecision)
    is_made = or_(
        Enrollment.id == PromotionDecision.enrollment_id,
        was_made.correlate(PromotionDecision, Enrollment).exists(),
    )
    is_theirs = Enrollment.student_id == PromotionDecision.student_id
    return _of_promotion(made.join(Enrollment, and_(is_theirs, is_made)))


def _given_back(*conditions: Any) -> Any:
    """Gather the enrollments to give back to a student of a decision."""
    was_left = PromotionDecision.before["enrollments"].has_key(cast(Enrollment.id, Text))
    return (
        select(array_of(_enrollment(Enrollment)))
        .where(Enrollment.student_id == PromotionDecision.student_id, was_left, *conditions)
        .correlate(PromotionDecision)
        .scalar_subquery()
    )


def _graduates() -> Any:
    """Gather the graduates of a promotion, each with the enrollments ended by it."""
    query = select(array_of(_graduate())).select_from(PromotionDecision)
    query = query.join(Graduate, Graduate.student_id == PromotionDecision.student_id)
    return _of_promotion(query.where(PromotionDecision.outcome == GRADUATED))


def _graduate() -> Any:
    return json_object(
        id=Graduate.id,
        number=Graduate.number,
        student=Graduate.student_id,
        graduation_class=Graduate.graduation_class,
        enrollments=_given_back(),
    )


def _resting(promotion_id: Any) -> Any:
    """List the students of a promotion, by name, each with the records that rest on it."""
    student_id = PromotionDecision.student_id
    has_place = PromotionDecision.enrollment_id.is_not(None)
    went = or_(has_place, _amendments(select(PromotionAmendment.id)).exists())
    graduated = PromotionDecision.outcome == GRADUATED
    stays = select(Enrollment.id).where(Enrollment.id == PromotionDecision.enrollment_id, CURRENT)
    # A place that an amendment ended is given back, unless they are in another one meanwhile.
    gives_back = func.jsonb_array_length(PromotionDecision.before["enrollments"]) > 0
    others = (
        select(Enrollment.id)
        .where(
            Enrollment.student_id == student_id,
            _in_next(Enrollment),
            CURRENT,
            ~PromotionDecision.before["enrollments"].has_key(cast(Enrollment.id, Text)),
        )
        .correlate(PromotionDecision, Promotion)
    )
    has_moved = or_(
        and_(has_place, ~stays.correlate(PromotionDecision).exists()),
        and_(~has_place, ~graduated, gives_back, others.exists()),
    )
    followed = _followed(promotion_id, student_id)
    what = func.concat_ws(
        ", ",
        *(
            case((and_(went, rows.correlate(PromotionDecision, Promotion).exists()), words))
            for words, rows in _of_next_session(student_id).items()
        ),
        case((has_moved, "moved or removed since")),
        case((and_(graduated, followed.correlate(PromotionDecision).exists()), "others graduated since")),
        case((and_(graduated, User.erased_at.is_not(None)), "their data were erased")),
    )
    student = json_object(student=Student.admission_number, what=what)
    query = select(array_of(student, *BY_NAME)).select_from(PromotionDecision)
    return _of_promotion(query.join(Student, Student.id == student_id).join(User, User.id == Student.user_id))


def _of_next_session(student_id: Any) -> dict[str, Query]:
    """Select the records of a student in the next session of the promotion, by their names."""
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


def _followed(promotion_id: Any, student_id: Any, *, of_promotion_too: bool = False) -> Query:
    """Select the number of a graduate while others have graduated after the promotion; or after them by it, too.

    Numbers have no gaps: a graduate with one above the highest of this promotion came later.
    """
    own, following = aliased(Graduate), aliased(Graduate)
    same = aliased(PromotionDecision)
    of_promotion = select(same.student_id).where(same.promotion_id == promotion_id, same.outcome == GRADUATED)
    query = select(own.id).join(following, following.number > own.number).where(own.student_id == student_id)
    return query if of_promotion_too else query.where(following.student_id.not_in(of_promotion))


def _in_next(model: Any) -> Any:
    """Tell whether a row is of the next session of the promotion."""
    return model.session_id == Promotion.next_session_id


def _cohorts_of(promotion_id: Any) -> Any:
    """Select the cohorts of the batches that students came from, and of their next ones."""
    of = PromotionBatch
    is_named = Batch.id.in_((of.batch_id, of.promote_to_id, of.repeat_in_id))
    named = select(Batch.cohort_id).join(of, is_named).where(of.promotion_id == promotion_id)
    return named.union(cohorts_gone_to(promotion_id))


def cohorts_gone_to(promotion_id: Any) -> Query:
    """Select the next cohorts of the students of a promotion."""
    return (
        select(Batch.cohort_id)
        .join(PromotionDecision, PromotionDecision.to_batch_id == Batch.id)
        .where(PromotionDecision.promotion_id == promotion_id)
    )
