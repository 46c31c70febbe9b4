"""Score sheets: whether there is one."""

from __future__ import annotations

from uuid import UUID

from school_service.core.records import get
from school_service.features.classes.models import CohortSubject
from school_service.features.school.models import Cohort
from school_service.features.school.sessions.service import check_term


def check_scoresheet(*, id: UUID, term: str | None = None) -> None:
    """Tell whether there are the cohort subject and the term of a score sheet. Raises NotFound, Invalid."""
    subject = get(CohortSubject, id)
    if term is not None:
        check_term(term, get(Cohort, subject.cohort_id).session_id)
