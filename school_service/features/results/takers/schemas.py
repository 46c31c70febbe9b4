"""Changes of cohort subjects, as the interface takes them."""

from __future__ import annotations

from school_service.web.fields import StrictBoolean
from school_service.web.schemas import Schema


class CohortSubjectChangesSchema(Schema):
    """Whether a cohort subject is an elective from now on."""

    elective = StrictBoolean()
