"""What results can be."""

from __future__ import annotations

from school_service.core.enumeration import Enumeration
from school_service.features.publications.models import PUBLISHED, REOPENED, WITHDRAWN

GRADED, INCOMPLETE = SUBJECT_STATUSES = Enumeration("SubjectResultStatus", "GRADED", "INCOMPLETE")
"""Of a subject result."""

COMPLETE, _, TOO_FEW, NONE = TERM_STATUSES = Enumeration(
    "TermResultStatus", "COMPLETE", INCOMPLETE, "TOO_FEW", "NONE"
)
"""Of a term result."""

PROVISIONAL = "PROVISIONAL"
STATES = Enumeration("ResultState", PROVISIONAL, PUBLISHED, REOPENED, WITHDRAWN)
"""Of what is read: live, or the last version that was published."""
