"""The records for a copy of a session, and the statements to make it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Text, cast, insert, or_, select

from school_service.core.read_models import Query, ReadModel, array_of, json_object, read_model
from school_service.core.records import json_rows, lock_in_order
from school_service.core.statements import statement
from school_service.features.classes.models import CohortSubject
from school_service.features.people.models import Employee, FormTeacher, User
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import (
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Subject,
    Term,
    TermCalendar,
)
from school_service.features.scores.models import NOT_DELETED, Assessment, Submission


@read_model
def lock_session(session_id: UUID) -> Query:
    """Lock a session FOR NO KEY UPDATE: copies into it follow one another."""
    return select(AcademicSession.id).where(AcademicSession.id == session_id).with_for_update(key_share=True)


@read_model
def lock_cohorts(session_id: UUID) -> Query:
    """Lock the cohorts of a session FOR NO KEY UPDATE, in order of id, as the addition of a subject does."""
    return lock_in_order(Cohort, Cohort.session_id == session_id)


@read_model
def lock_teachers(source: str) -> Query:
    """Lock the form teachers of a session FOR SHARE, with their accounts: neither is deleted meanwhile."""
    session_id = session_by_id_or_name(source).scalar_subquery()
    return (
        select(Employee.id)
        .join(User, User.id == Employee.user_id)
        .join(FormTeacher, FormTeacher.employee_id == Employee.id)
        .join(Batch, Batch.id == FormTeacher.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .where(Cohort.session_id == session_id)
        .order_by(Employee.id)
        .with_for_update(read=True, of=(Employee, User))
    )


@read_model
def both(session_id: UUID, source: str) -> Query:
    """Select the records of a session and of the source of a copy, by its id or name, as JSON in texts.

    No row without the first; `source` is null without the second. Each column is an array of the records of both, in
    the order of the answer.
    """
    source_id = session_by_id_or_name(source).scalar_subquery()
    other = select(_SESSION).where(AcademicSession.id == source_id).scalar_subquery()

    def of_both(session: Any) -> Any:
        return or_(session == session_id, session == source_id)

    records = {
        "terms": _terms().where(of_both(Term.session_id)),
        "cohorts": _cohorts().where(of_both(Cohort.session_id)),
        "batches": _batches().where(of_both(Cohort.session_id)),
        "subjects": _subjects().where(of_both(Cohort.session_id)),
        "assessments": _assessments().where(of_both(Assessment.session_id), NOT_DELETED),
        "teachers": _teachers().where(of_both(Cohort.session_id)),
        # Submissions of the target stand in the way.
        "submissions": _submissions().where(Submission.session_id == session_id),
    }
    return select(
        cast(_SESSION, Text).label("target"),
        cast(other, Text).label("source"),
        *(rows.scalar_subquery().label(name) for name, rows in records.items()),
    ).where(AcademicSession.id == session_id)


def _terms() -> Any:
    calendar = _object(TermCalendar, "term_id", "start_date", "end_date", "next_term_begins")
    term = _object(Term, "id", "session_id", "term", "display_name", calendar=calendar)
    return _array(term, Term.term).select_from(Term).outerjoin(TermCalendar, TermCalendar.term_id == Term.id)


def _cohorts() -> Any:
    cohort = _object(Cohort, "id", "session_id", "classroom_id", name=Classroom.name)
    return (
        _array(cohort, Classroom.name, Cohort.id)
        .select_from(Cohort)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
    )


def _batches() -> Any:
    batch = _object(Batch, "id", "cohort_id", "name")
    return _array(batch, Batch.number).select_from(Batch).join(Cohort, Cohort.id == Batch.cohort_id)


def _subjects() -> Any:
    subject = _object(CohortSubject, "id", "cohort_id", "subject_id", "elective", name=Subject.name)
    return (
        _array(subject, Subject.name, CohortSubject.id)
        .select_from(CohortSubject)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
    )


def _assessments() -> Any:
    assessment = _object(
        Assessment,
        "id",
        "cohort_subject_id",
        "term_id",
        *ASSESSMENT_FIELDS,
        total_points=cast(Assessment.total_points, Text),
    )
    return _array(assessment, Assessment.due_date, Assessment.created_at, Assessment.id).select_from(
        Assessment
    )


def _teachers() -> Any:
    """Select the form teachers of arms, former employees too."""
    teacher = _object(
        FormTeacher,
        "batch_id",
        "employee_id",
        name=User.first_name + " " + User.last_name,
        deleted=or_(Employee.deleted_at.is_not(None), User.deleted_at.is_not(None)),
    )
    return (
        _array(teacher, FormTeacher.created_at, FormTeacher.employee_id)
        .select_from(FormTeacher)
        .join(Employee, Employee.id == FormTeacher.employee_id)
        .join(User, User.id == Employee.user_id)
        .join(Batch, Batch.id == FormTeacher.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
    )


def _submissions() -> Any:
    submission = _object(Submission, "cohort_subject_id", "term_id")
    return _array(submission, Submission.id).select_from(Submission)


ASSESSMENT_FIELDS = (
    "name",
    "abbreviation",
    "due_date",
    "description",
    "category",
    "file_name",
    "include_in_final",
    "publish_scores",
)
"""The members of an assessment to copy as they are, beside its total points; the due date is shifted."""


def _object(model: type[Any], *names: str, **others: Any) -> Any:
    """Make an object of columns of a model, and of others."""
    return json_object(**{name: getattr(model, name) for name in names}, **others)


_SESSION = _object(AcademicSession, "id", "name", "start_date", "end_date")


def _array(row: Any, *order: Any) -> Any:
    return select(cast(array_of(row, *order), Text))


def _insertion(model: type[Any], *names: str) -> ReadModel[[str]]:
    """Make the statement to insert rows of a model, given as the text of a JSON array of objects."""

    @statement
    def insertion(rows: str) -> Any:
        given = json_rows("given", rows, **{name: model.__table__.c[name].type for name in names})
        return insert(model).from_select(list(names), select(*given.c), include_defaults=False)

    return insertion


INSERTIONS = {
    Term: _insertion(Term, "id", "session_id", "term", "display_name"),
    TermCalendar: _insertion(TermCalendar, "term_id", "start_date", "end_date", "next_term_begins"),
    Cohort: _insertion(Cohort, "id", "classroom_id", "session_id"),
    Batch: _insertion(Batch, "id", "number", "cohort_id", "name"),
    CohortSubject: _insertion(CohortSubject, "id", "cohort_id", "subject_id", "elective"),
    Assessment: _insertion(
        Assessment,
        "id",
        "cohort_subject_id",
        "cohort_id",
        "session_id",
        "term_id",
        *ASSESSMENT_FIELDS,
        "total_points",
        "created_at",
    ),
    FormTeacher: _insertion(FormTeacher, "batch_id", "employee_id", "created_at"),
}
"""The statement to insert rows of each model, in the order of their references."""
