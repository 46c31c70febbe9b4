"""Read models of absences."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import exists, select
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME, NAMED_STUDENT
from school_service.features.reach import scopes
from school_service.features.scores.models import NOT_DELETED, Absence, Assessment


@read_model
def absences(assessment_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of AbsenceSchema for an assessment, by name."""
    query = (
        select(
            NAMED_STUDENT.label("student"),
            Absence.status,
            Absence.note,
            Absence.created_at.label("createdAt"),
        )
        .join(Student, Student.id == Absence.student_id)
        .join(User, User.id == Student.user_id)
        .where(
            Absence.assessment_id == assessment_id,
            exists().where(Assessment.id == assessment_id, NOT_DELETED),
        )
        .order_by(*BY_NAME)
    )
    if reach is None:
        return query
    of = aliased(Assessment)
    in_reach = scopes.scores_in_reach(reach, of.cohort_subject_id, Absence.student_id)
    return query.join(of, of.id == Absence.assessment_id).where(in_reach)
