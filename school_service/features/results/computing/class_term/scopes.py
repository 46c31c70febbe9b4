"""The class and the term of a request: SELECTs of one row, or of none.

Each has `batch_id`, `batch_name`, `cohort_id`, `classroom`, `level`, `session_id`, `session_name`, `term_id`, `term`
and `term_name`.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Text, and_, cast, column, exists, func, or_, select, true
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import aliased

from school_service.core.read_models import Query
from school_service.features.classes.models import CohortSubject
from school_service.features.results.models import Publication, ReportCard
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import (
    CURRENT,
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Enrollment,
    Term,
)
from school_service.features.school.sessions.service import is_term, is_term_id

Column = ColumnElement[Any]


def scope_of_batch(batch_id: Any, term: Any) -> Query:
    """Select the cohort of a batch and a term of its session, by id or as FIRST, SECOND or THIRD."""
    return _scope().where(Batch.id == batch_id, is_term(term))


def scope_of_subject(cohort_subject_id: Any, term: Any) -> Query:
    """Select the cohort of a cohort subject with its first batch, and a term of its session, by id or by name."""
    return (
        _scope()
        .join(CohortSubject, CohortSubject.cohort_id == Cohort.id)
        .where(CohortSubject.id == cohort_subject_id, Batch.id == Cohort.id, is_term(term))
    )


def scope_of_student(student_id: Any, term_id: Any) -> Query:
    """Select a term of a student, by its id as text (`term_of_student`), and the student's batch in it.

    It is the batch of their card in force, else of their enrollment.
    """
    enrolled = (
        select(Enrollment.batch_id)
        .where(Enrollment.student_id == student_id, Enrollment.session_id == Term.session_id, CURRENT)
        .correlate(Term)
        .scalar_subquery()
    )
    return _scope().where(
        Batch.id == func.coalesce(batch_of_card(student_id, Term.id), enrolled),
        is_term_id(term_id),
    )


def batch_of_card(student_id: Any, term_id: Any) -> Column:
    """The batch of a student's card of a term in force, one at most; else null."""
    card, publication = aliased(ReportCard), aliased(Publication)
    return (
        select(publication.batch_id)
        .join(card, card.publication_id == publication.id)
        .where(card.student_id == student_id, card.term_id == term_id, card.in_force)
        .correlate_except(card, publication)
        .scalar_subquery()
    )


def term_of_student(student_id: Any, term: Any, session: Any = None, own: Any = None) -> Column:
    """The id of a student's term named by a text, as text: by an id, or by a name in a session of theirs.

    It is the `session`, by id or name. Without one it is the current session, if the student is or was enrolled in it,
    else the latest with an enrollment or a report card of theirs, of the sessions with a term of this name. For a
    reading of one's own, if `own` is true, it is the latest session with the card of that term in force.
    """
    of_session = aliased(Term)
    query = select(cast(of_session.id, Text))
    if session is not None:
        is_meant = or_(cast(of_session.id, Text) == func.lower(term), of_session.term == term)
        meant = session_by_id_or_name(session).scalar_subquery()
        return query.where(is_meant, of_session.session_id == meant).scalar_subquery()
    is_staffs: Column = true() if own is None else ~own
    is_theirs = and_(is_staffs, of_session.session_id.in_(_sessions_of(student_id)))
    if own is not None:
        is_theirs = or_(and_(own, _has_card_in_force(student_id, of_session)), is_theirs)
    latest = (
        query.join(AcademicSession, AcademicSession.id == of_session.session_id)
        .where(of_session.term == term, is_theirs)
        .order_by(
            and_(is_staffs, AcademicSession.current).desc(),
            AcademicSession.start_date.desc(),
            AcademicSession.id,
        )
        .limit(1)
        .correlate(None)
    )
    return func.coalesce(latest.scalar_subquery(), term)


def _sessions_of(student_id: Any) -> Any:
    """The sessions with an enrollment or a report card of a student: an ended enrollment counts in the current one."""
    enrolled = (
        select(Enrollment.session_id)
        .join(AcademicSession, AcademicSession.id == Enrollment.session_id)
        .where(Enrollment.student_id == student_id, or_(CURRENT, AcademicSession.current))
    )
    published = (
        select(Publication.session_id)
        .join(ReportCard, ReportCard.publication_id == Publication.id)
        .where(ReportCard.student_id == student_id)
    )
    return enrolled.union_all(published)


def _has_card_in_force(student_id: Any, term: Any) -> Column:
    card = aliased(ReportCard)
    return exists().where(card.student_id == student_id, card.term_id == term.id, card.in_force)


def _scope() -> Query:
    return (
        select(
            Batch.id.label("batch_id"),
            Batch.name.label("batch_name"),
            Cohort.id.label("cohort_id"),
            Classroom.name.label("classroom"),
            Classroom.level,
            AcademicSession.id.label("session_id"),
            AcademicSession.name.label("session_name"),
            Term.id.label("term_id"),
            Term.term,
            Term.display_name.label("term_name"),
        )
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Term, Term.session_id == AcademicSession.id)
    )


def value_of(row: FromClause, name: str) -> Any:
    """A value of a CTE of one row: PostgreSQL looks it up once, before the parts of the query that depend on it."""
    return select(row.c[name]).scalar_subquery()


def subjects_of(array: Any) -> FromClause:
    """The subject results of a stored card, an array of it, as a table with the column `subject`."""
    rows = func.jsonb_array_elements(array).table_valued(column("subject", JSONB))
    return rows.render_derived(name="listed")
