"""Read model of score sheets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import and_, func, literal_column, select

from school_service.core.reach import Reach
from school_service.core.read_models import Query, json_object, read_model
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME
from school_service.features.reach import scopes
from school_service.features.school.models import CURRENT, Cohort, Enrollment, Term
from school_service.features.scores.gradebooks.reads import ENTRY
from school_service.features.scores.models import NOT_DELETED, Absence, Assessment, GradebookEntry

STUDENT = json_object(
    id=Student.id,
    first_name=User.first_name,
    last_name=User.last_name,
    admission_number=Student.admission_number,
)
"""A student as ScoresheetStudentSchema shows them."""


@read_model
def scoresheet(
    cohort_subject_id: UUID,
    term_id: UUID | None = None,
    term: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of ScoresheetEntrySchema: the present students of the subject, by name.

    With the scores of one term: by its id, or by its name in the cohort's session. There are no rows for an unknown
    term.
    """
    # The alphabet has the categories in their order: CA1, CA2, CA3, EXAM, FIRST_TERM …
    order = (Assessment.category, Assessment.due_date, Assessment.id)
    entries = (
        select(*ENTRY)
        .join(Assessment, Assessment.id == GradebookEntry.assessment_id)
        .where(Assessment.cohort_subject_id == cohort_subject_id, NOT_DELETED)
        .order_by(GradebookEntry.student_id, *order)
    )
    if term_id is not None:
        entries = entries.where(Assessment.term_id == term_id)
    if term is not None:
        entries = entries.join(Term, Term.id == Assessment.term_id).where(Term.term == term)
    table = entries.subquery("found")
    # Rows as they are, in the order of the subquery: objects made member by member cost a tenth of the request.
    by_student = (
        select(table.c.student, func.json_agg(table.table_valued()).label("gradebooks"))
        .group_by(table.c.student)
        .subquery("by_student")
    )
    takers = (
        select(
            STUDENT.label("student"),
            func.coalesce(by_student.c.gradebooks, literal_column("'[]'::json")).label("gradebooks"),
        )
        .select_from(SubjectEnrollment)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(by_student, by_student.c.student == Student.id)
        .where(SubjectEnrollment.cohort_subject_id == cohort_subject_id)
        .order_by(*BY_NAME)
    )
    if reach is not None:
        in_reach = scopes.scores_in_reach(reach, SubjectEnrollment.cohort_subject_id, Student.id)
        takers = takers.where(in_reach)
    if term_id is not None:
        return takers.where(select(Term.id).where(Term.id == term_id).exists())
    if term is None:
        return takers
    named = (
        select(Term.id)
        .join(Cohort, Cohort.session_id == Term.session_id)
        .join(CohortSubject, CohortSubject.cohort_id == Cohort.id)
        .where(CohortSubject.id == cohort_subject_id, Term.term == term)
    )
    return takers.where(named.exists())


@read_model
def class_scores(assessment_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of ClassScoreSchema: the students now with the subject of an assessment and in its cohort, by name."""
    of_student = GradebookEntry.student_id == Student.id, GradebookEntry.assessment_id == Assessment.id
    away = Absence.student_id == Student.id, Absence.assessment_id == Assessment.id
    query = (
        select(
            STUDENT.label("student"),
            Enrollment.batch_id.label("batch"),
            GradebookEntry.score,
            Absence.status.label("absence"),
        )
        .select_from(Assessment)
        .join(SubjectEnrollment, SubjectEnrollment.cohort_subject_id == Assessment.cohort_subject_id)
        .join(Student, Student.id == SubjectEnrollment.student_id)
        .join(User, User.id == Student.user_id)
        .join(
            Enrollment,
            and_(Enrollment.student_id == Student.id, Enrollment.cohort_id == Assessment.cohort_id, CURRENT),
        )
        .outerjoin(GradebookEntry, and_(*of_student))
        .outerjoin(Absence, and_(*away))
        .where(Assessment.id == assessment_id, NOT_DELETED)
        .order_by(*BY_NAME)
    )
    if reach is None:
        return query
    return query.where(scopes.scores_in_reach(reach, Assessment.cohort_subject_id, Student.id))


def looked_up(column: Any, condition: Any) -> Any:
    """A column of the one record meeting a condition.

    PostgreSQL plans a few of these sooner than a join of as many tables: it compares the orders of a join.
    """
    return select(column).where(condition).correlate_except(column.table).scalar_subquery()
