"""Assessments: create, find, delete softly."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from school_service.core.database import db
from school_service.core.errors import Invalid
from school_service.core.records import add, find, get, missing, now, referred
from school_service.features.assessments.models import Assessment
from school_service.features.audit.service import record
from school_service.features.cohort_subjects.models import CohortSubject
from school_service.features.cohorts.models import Batch, Cohort
from school_service.features.sessions.models import Term
from school_service.features.subjects.models import Subject

ENTITY = "assessment"


def create_assessment(
    *,
    subject: UUID,
    term: UUID,
    category: str,
    name: str,
    abbreviation: str,
    due_date: date,
    total_points: Decimal,
    description: str,
    file_name: str,
    include_in_final: bool,
    publish_scores: bool,
) -> Assessment:
    """Add an assessment of a cohort subject in a term of its cohort's session.

    `total_points` is the maximum score. Raises Invalid for an unknown cohort subject or term, and for a term
    of another session.
    """
    taught = referred(CohortSubject, subject, "subject")
    cohort = get(Cohort, taught.cohort_id)
    if referred(Term, term, "term").session_id != cohort.session_id:
        raise Invalid.field("term", "is not of the cohort's session")
    assessment = add(
        Assessment(
            cohort_subject_id=taught.id,
            cohort_id=cohort.id,
            session_id=cohort.session_id,
            term_id=term,
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
    )
    record(ENTITY, assessment.id, new=_shown(assessment))
    return assessment


def check_filter(*, batch_id: UUID, subject_id: UUID, term_id: UUID) -> None:
    """Tell whether there are the records that a filter of assessments names.

    The subject may be a cohort subject or a base subject. Raises Invalid, naming the field.
    """
    referred(Batch, batch_id, "cohort")
    if db.session.get(CohortSubject, subject_id) is None:
        referred(Subject, subject_id, "subject")
    referred(Term, term_id, "term")


def find_assessment(assessment_id: UUID, *, lock: bool = False, share: bool = False) -> Assessment | None:
    """Find an assessment, unless it is deleted; `lock` and `share` as in `get`."""
    assessment = find(Assessment, assessment_id, lock=lock, share=share)
    return None if assessment is None or assessment.deleted_at is not None else assessment


def delete_assessment(*, assessment_id: UUID) -> UUID:
    """Delete an assessment softly: it is gone from every answer, its entries with it. Raises NotFound."""
    assessment = find_assessment(assessment_id, lock=True)
    if assessment is None:
        raise missing(Assessment)
    assessment.deleted_at = now()
    record(ENTITY, assessment.id, old=_shown(assessment))
    return assessment.id


def _shown(assessment: Assessment) -> dict[str, Any]:
    """What the audit log holds of an assessment."""
    return {
        "name": assessment.name,
        "category": assessment.category,
        "total_points": assessment.total_points,
    }
