"""Read models of cohort subjects."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import exists, select

from school_service.core.narrowing import judged_before
from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.features.classes.models import CohortSubject
from school_service.features.reach import scopes
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import Batch, Cohort, Subject


@read_model
def cohort_subjects(
    batch: UUID | None = None,
    base: UUID | None = None,
    session: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of CohortSubjectSchema, by the subject's name.

    All, or those of a cohort (any of its batches), of a subject, of a session (its id or name).
    """
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
    if reach is not None:
        found = found.where(scopes.subjects_in_reach(reach, CohortSubject.id, CohortSubject.cohort_id))
        if batch is not None:
            found = found.where(scopes.arms_in_reach(reach, batch))
    if batch is not None:
        cohort = select(Batch.cohort_id).where(Batch.id == batch).scalar_subquery()
        found = found.where(CohortSubject.cohort_id == cohort)
    if base is not None:
        found = found.where(CohortSubject.subject_id == base)
    if session is not None:
        meant = session_by_id_or_name(session).scalar_subquery()
        found = found.join(Cohort, Cohort.id == CohortSubject.cohort_id).where(Cohort.session_id == meant)
    return found


@read_model
def cohort_subject(cohort_subject_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of CohortSubjectSchema, for one."""
    return cohort_subjects.query(reach=reach).where(CohortSubject.id == cohort_subject_id)


@read_model
def lock_cohort(cohort_id: UUID, subject_id: UUID) -> Query:
    """Lock a cohort FOR NO KEY UPDATE and tell whether there is a subject to teach to it; no row without a cohort."""
    return (
        select(exists().where(Subject.id == subject_id).label("subject"))
        .select_from(Cohort)
        .where(Cohort.id == cohort_id)
        .with_for_update(key_share=True, of=Cohort)
    )


@judged_before
def lock_cohort_of(cohort_subject_id: UUID) -> Query:
    """Lock the cohort of a cohort subject FOR NO KEY UPDATE: nobody enrolls students, who take its subjects."""
    return (
        select(Cohort.id)
        .join(CohortSubject, CohortSubject.cohort_id == Cohort.id)
        .where(CohortSubject.id == cohort_subject_id)
        .with_for_update(key_share=True, of=Cohort)
    )
