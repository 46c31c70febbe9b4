"""What submissions can be; their table is with the assessments that they hold."""

from __future__ import annotations

from school_service.core.enumeration import Enumeration
from school_service.features.absences.models import STATUSES

OPEN, SUBMITTED = SUBMISSION_STATES = Enumeration("SubmissionState", "OPEN", "SUBMITTED")
REFUSE, _, _ = BLANKS = Enumeration("Blanks", "REFUSE", *STATUSES)
"""What becomes of blanks when results are submitted: they are refused, or become such an absence."""
