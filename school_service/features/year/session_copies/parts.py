"""The parts of a session for a copy, and the outcomes of a record."""

from __future__ import annotations

from school_service.core.columns import Enumeration

TERMS, COHORTS, SUBJECTS, ASSESSMENTS, FORM_TEACHERS = COPIED_PARTS = Enumeration(
    "CopiedPart", "TERMS", "COHORTS", "SUBJECTS", "ASSESSMENTS", "FORM_TEACHERS"
)
"""The parts of a session copied into the next one, each resting on those before it."""
MADE, PRESENT, LEFT_OUT = COPY_OUTCOMES = Enumeration("CopyOutcome", "MADE", "PRESENT", "LEFT_OUT")
