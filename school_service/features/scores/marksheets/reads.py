"""Read models of the marks of a subject: of an arm, in the assessments of a term."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Text, and_, cast, func, or_, select
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, read_model
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.classes.subject_teachers.reads import teachers_of
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME
from school_service.features.reach import scopes
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
from school_service.features.school.sessions.service import is_term_id
from school_service.features.school.settings.service import name_order, time_zone
from school_service.features.scores.assessments.reads import holding_batches
from school_service.features.scores.models import Absence, Assessment, GradebookEntry
from school_service.features.scores.scoresheets.reads import looked_up


@read_model
def marks(cohort_subject_id: UUID, batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Select the contents of `SubjectMarks`; no row without the cohort subject.

    `term` is the id of a term or its name in the cohort's session. `of_cohort` and `of_session` are null for an unknown
    batch and an unknown term.
    """
    return _marks(CohortSubject.id == cohort_subject_id, batch_id, term, reach)


@read_model
def sheet(cohort_subject_id: UUID, batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Select the contents of a mark sheet: the same, with words for Details."""
    return _sheets(CohortSubject.id == cohort_subject_id, batch_id, term, reach)


@read_model
def sheets_of_arm(batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Select the contents of the mark sheets of an arm, by subject: of those with an assessment and with students."""
    of_batch = select(Batch.cohort_id).where(Batch.id == batch_id).scalar_subquery()
    sheets = _sheets(CohortSubject.cohort_id == of_batch, batch_id, term, reach).subquery("sheets")
    has_both = (
        func.json_array_length(sheets.c.assessments) > 0,
        func.json_array_length(sheets.c.students) > 0,
    )
    by_name = sheets.c.subject.collate("C"), sheets.c.id
    return select(sheets).where(*has_both, sheets.c.of_cohort, sheets.c.of_session).order_by(*by_name)


def _sheets(is_one: Any, batch_id: Any, term: Any, reach: Reach | None) -> Query:
    return _marks(is_one, batch_id, term, reach).add_columns(
        looked_up(Subject.name, Subject.id == CohortSubject.subject_id).label("subject"),
        looked_up(Classroom.name, Classroom.id == Cohort.classroom_id).label("classroom"),
        looked_up(AcademicSession.name, AcademicSession.id == Cohort.session_id).label("session"),
        Batch.name.label("arm"),
        Term.display_name.label("term"),
        name_order().label("name_order"),
        time_zone().label("time_zone"),
        teachers_of(CohortSubject.id, batch_id).label("teachers"),
        func.statement_timestamp().label("moment"),
    )


def _marks(is_one: Any, batch_id: Any, term: Any, reach: Reach | None) -> Query:
    of_session = Term.session_id == Cohort.session_id
    is_batch = Batch.id == batch_id
    if reach is not None:
        is_batch = and_(is_batch, scopes.results_in_reach(reach, CohortSubject.id, Batch.id))
    query = (
        select(
            CohortSubject.id,
            (Batch.cohort_id == CohortSubject.cohort_id).label("of_cohort"),
            of_session.label("of_session"),
            cast(Batch.id, Text).label("batch_id"),
            cast(Term.id, Text).label("term_id"),
            _assessments().label("assessments"),
            _students(batch_id, reach).label("students"),
            _of_students(batch_id, GradebookEntry, GradebookEntry.id, GradebookEntry.score).label("entries"),
            _of_students(batch_id, Absence, Absence.status, Absence.note).label("absences"),
        )
        .select_from(CohortSubject)
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .outerjoin(Batch, is_batch)
        .outerjoin(Term, or_(is_term_id(term), and_(Term.term == term, of_session)))
        .where(is_one)
    )
    if reach is None:
        return query
    return query.where(scopes.subjects_in_reach(reach, CohortSubject.id, CohortSubject.cohort_id))


def _is_assessed(assessment: Any) -> Any:
    """Whether an assessment is of the subject and the term, and not deleted."""
    return and_(
        assessment.cohort_subject_id == CohortSubject.id,
        assessment.term_id == Term.id,
        assessment.deleted_at.is_(None),
    )


def _assessments() -> Any:
    """The assessments, in the order of their columns."""
    # The alphabet has the categories in their order: CA1, CA2, CA3, EXAM, FIRST_TERM …
    order = Assessment.category, Assessment.due_date, Assessment.created_at, Assessment.id
    members = (
        *(Assessment.id, Assessment.name, Assessment.abbreviation),
        *(Assessment.category, Assessment.total_points),
    )
    return (
        select(array_of(func.json_build_array(*members), *order))
        .where(_is_assessed(Assessment))
        .correlate(CohortSubject, Term)
        .scalar_subquery()
    )


def _students(batch_id: Any, reach: Reach | None) -> Any:
    """The students of the arm with the subject, by name, each with the arms with a submission holding their scores."""
    assessment = aliased(Assessment)
    # Submitting marks all assessments of a subject and term alike: any of them tells.
    any_assessment = (
        select(assessment.id)
        .where(_is_assessed(assessment))
        .order_by(assessment.id)
        .limit(1)
        .correlate(CohortSubject, Term)
    )
    student = func.json_build_array(
        *(Student.admission_number, User.first_name, Student.middle_name, User.last_name, Student.id),
        *(Enrollment.batch_id, Student.status, holding_batches(Student.id)),
    )
    query = (
        select(array_of(student, *BY_NAME))
        .select_from(SubjectEnrollment)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .join(User, User.id == Student.user_id)
        .join(
            Enrollment,
            and_(Enrollment.student_id == Student.id, Enrollment.batch_id == batch_id, CURRENT),
        )
        .outerjoin(Assessment, Assessment.id == any_assessment.scalar_subquery())
        .where(SubjectEnrollment.cohort_subject_id == CohortSubject.id)
    )
    if reach is not None:
        query = query.where(scopes.scores_in_reach(reach, SubjectEnrollment.cohort_subject_id, Student.id))
    return query.correlate(CohortSubject, Term).scalar_subquery()


def _of_students(batch_id: Any, table: Any, *columns: Any) -> Any:
    """The entries or absences of the arm's students now, each with its student and assessment."""
    in_arm = select(Enrollment.student_id).where(Enrollment.batch_id == batch_id, CURRENT)
    return (
        select(array_of(func.json_build_array(table.student_id, table.assessment_id, *columns)))
        .join(Assessment, Assessment.id == table.assessment_id)
        .where(_is_assessed(Assessment), table.student_id.in_(in_arm))
        .correlate(CohortSubject, Term)
        .scalar_subquery()
    )
