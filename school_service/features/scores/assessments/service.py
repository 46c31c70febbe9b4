"""Assessments: create, find, delete softly; and whether their results are submitted.

Results are submitted by arm. Whoever submits them locks the cohort subject and its assessments of the term FOR NO KEY
UPDATE. Whoever adds an assessment locks the cohort subject FOR SHARE, then looks for a submission; whoever writes
scores or absences locks the assessment, and reads there which arms are submitted. So no write is lost between a
submission and its figures. What concerns all arms, such as a change of the assessment, is refused once one is
submitted; a score or an absence, once that of its student is.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import select

from school_service.core.database import db, session_reach
from school_service.core.errors import Conflict, Forbidden, Invalid
from school_service.core.read_models import fetch_row
from school_service.core.records import find, get, get_referenced, not_found, unknown_reference
from school_service.core.statements import NewRow, execute, insert_row
from school_service.features.audit.service import audit_change
from school_service.features.classes.models import CohortSubject
from school_service.features.reach import scopes
from school_service.features.school.models import Batch, Cohort, Subject, Term
from school_service.features.school.sessions.service import check_term
from school_service.features.scores.assessments import reads
from school_service.features.scores.models import NOT_DELETED, Assessment
from tenants.clock import now

ENTITY = "assessment"


def create_assessment(
    *,
    subject: UUID,
    term: str,
    category: str,
    name: str,
    abbreviation: str,
    due_date: date,
    total_points: Decimal,
    description: str,
    file_name: str,
    include_in_final: bool,
    publish_scores: bool,
) -> NewRow:
    """Add an assessment of a cohort subject in a term of its cohort's session.

    `term` is the id of a term or its name in that session, `total_points` the maximum score. Raises Invalid for an
    unknown cohort subject or term, and for a term of another session, and Conflict where results of the subject and
    term are submitted, of whichever arm; Forbidden where the caller teaches some of the arms alone.
    """
    found = execute(reads.lock_subject(subject), reads.taught(subject, term))
    if found is None:
        raise unknown_reference(CohortSubject, "subject")
    require_every_arm(found.get("to_all", True))
    if found["of_session"] is None:
        raise unknown_reference(Term, "term")
    if not found["of_session"]:
        raise Invalid.field("term", "is not of the cohort's session")
    term_id = UUID(found["term_id"])
    refuse_submitted(found["submitted"], subject, term_id)
    assessment = insert_row(
        Assessment,
        cohort_subject_id=subject,
        cohort_id=found["cohort_id"],
        session_id=found["session_id"],
        term_id=term_id,
        category=category,
        name=name,
        abbreviation=abbreviation,
        due_date=due_date,
        total_points=total_points,
        description=description,
        file_name=file_name,
        include_in_final=include_in_final,
        publish_scores=publish_scores,
    )
    audit_change(
        ENTITY, assessment.id, new={"name": name, "category": category, "total_points": total_points}
    )
    return assessment


def check_assessment_filter(*, cohort: UUID, subject: UUID, term: str) -> None:
    """Tell whether there are the records that a filter of assessments names.

    `cohort` is a batch of it, `subject` a cohort subject or a base subject, `term` the id of a term or its name in the
    cohort's session. Raises Invalid, naming the field.
    """
    batch = get_referenced(Batch, cohort, "cohort")
    if find(CohortSubject, subject) is None:
        get_referenced(Subject, subject, "subject")
    check_term(term, get(Cohort, batch.cohort_id).session_id)


def find_assessment(
    assessment_id: UUID, *, for_update: bool = False, for_share: bool = False
) -> Assessment | None:
    """Find an assessment, unless it is deleted; `for_update` and `for_share` as in `get`."""
    assessment = find(Assessment, assessment_id, for_update=for_update, for_share=for_share)
    return None if assessment is None or assessment.deleted_at is not None else assessment


def lock_assessment(assessment_id: UUID) -> Assessment:
    """Lock an assessment FOR NO KEY UPDATE, to change what belongs to it. Raises NotFound."""
    assessment = find_assessment(assessment_id, for_update=True)
    if assessment is None:
        raise not_found(Assessment)
    return assessment


def lock_open_assessment(assessment_id: UUID) -> Assessment:
    """Lock an assessment FOR NO KEY UPDATE, to change what concerns all arms.

    Raises NotFound, Conflict where results of an arm are submitted, and Forbidden where the caller teaches some of the
    arms alone.
    """
    assessment = _lock_for_every_arm(assessment_id)
    refuse_submitted(assessment.submitted_batches, assessment.cohort_subject_id, assessment.term_id)
    return assessment


def _lock_for_every_arm(assessment_id: UUID) -> Assessment:
    reach = session_reach()
    if reach is None:
        return lock_assessment(assessment_id)
    to_all = scopes.is_taught_to_all(reach, Assessment.cohort_subject_id, Assessment.cohort_id)
    found = db.session.execute(
        select(Assessment, to_all.label("to_all"))
        .where(Assessment.id == assessment_id, NOT_DELETED, reads.in_reach(reach))
        .with_for_update(key_share=True, of=Assessment)
        .execution_options(populate_existing=True, judged=True)
    ).one_or_none()
    if found is None:
        raise not_found(Assessment)
    require_every_arm(found.to_all)
    locked: Assessment = found.Assessment
    return locked


def require_every_arm(is_taught_to_all: bool) -> None:
    """Refuse what concerns every arm to whoever teaches the subject to some of them; raises Forbidden."""
    if not is_taught_to_all:
        raise Forbidden(
            "This concerns every arm of the class, and you teach the subject to some of them alone."
        )


def refuse_held(
    student_id: UUID,
    *,
    assessment_id: UUID,
    submitted_batches: Collection[Any],
    cohort_subject_id: UUID,
    term_id: UUID,
) -> None:
    """Refuse to change what a submission holds of a student in an assessment that is locked; raises Conflict.

    Whose submission it is costs a statement, and is asked only where an arm is submitted.
    """
    if submitted_batches:
        held = fetch_row(reads.holding(assessment_id, student_id))
        refuse_submitted(held["submitted"] if held else submitted_batches, cohort_subject_id, term_id)


def refuse_submitted(batch_ids: Collection[Any], cohort_subject_id: UUID, term_id: UUID) -> None:
    """Refuse to change what is submitted, of a cohort subject and term; raises Conflict.

    `batch_ids` are the arms whose submission holds it, in an assessment whose row is locked, or of a cohort subject
    that is.
    """
    if not batch_ids:
        return
    found = fetch_row(reads.submitted(cohort_subject_id, term_id, sorted(map(str, batch_ids))))
    if found is None:
        raise RuntimeError(f"There is no cohort subject {cohort_subject_id} with the term {term_id}.")
    of_some = f" for {found['arms']}" if found["arms"] else ""
    raise Conflict(
        f"The results of {found['subject']}, {found['term']}, are submitted{of_some}: reopen them first."
    )


def delete_assessment(*, assessment_id: UUID) -> UUID:
    """Delete an assessment softly: it is gone from every answer, its entries with it.

    Raises NotFound, and Conflict where results of an arm are submitted.
    """
    assessment = lock_open_assessment(assessment_id)
    assessment.deleted_at = now()
    audit_change(ENTITY, assessment.id, old=_audited(assessment))
    return assessment.id


def _audited(assessment: Assessment) -> dict[str, Any]:
    """What the audit log says of an assessment."""
    return {
        "name": assessment.name,
        "category": assessment.category,
        "total_points": assessment.total_points,
    }
