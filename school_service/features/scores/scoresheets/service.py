"""Score sheets: whether there is one."""

from __future__ import annotations

from uuid import UUID

from school_service.core.records import get, get_referenced
from school_service.features.classes.models import CohortSubject
from school_service.features.school.models import Term


def check_scoresheet(*, id: UUID, term: UUID | None = None) -> None:
    """Tell whether there are the cohort subject and the term of a score sheet. Raises NotFound, Invalid."""
    get(CohortSubject, id)
    if term is not None:
        get_referenced(Term, term, "term")
