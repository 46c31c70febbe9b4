"""Read models of cohort subjects."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Select, select

from school_service.cohort_subjects.models import CohortSubject
from school_service.cohorts.models import Cohort
from school_service.reading import read_model
from school_service.subjects.models import Subject


@read_model
def cohort_subjects(
    cohort_id: UUID | None = None, subject_id: UUID | None = None, session_id: UUID | None = None
) -> Select[Any]:
    """Read model of CohortSubjectSchema, by the subject's name: all, or those of a cohort, a subject, a session."""
    found = (
        select(
            CohortSubject.id,
            CohortSubject.elective,
            Subject.name.label("subject"),
            Subject.code,
            CohortSubject.cohort_id.label("cohort"),
        )
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .order_by(Subject.name, CohortSubject.id)
    )
    if cohort_id is not None:
        found = found.where(CohortSubject.cohort_id == cohort_id)
    if subject_id is not None:
        found = found.where(CohortSubject.subject_id == subject_id)
    if session_id is not None:
        found = found.join(Cohort, Cohort.id == CohortSubject.cohort_id).where(
            Cohort.session_id == session_id
        )
    return found


@read_model
def cohort_subject(cohort_subject_id: UUID) -> Select[Any]:
    """Read model of CohortSubjectSchema, for one."""
    return cohort_subjects.query().where(CohortSubject.id == cohort_subject_id)
