"""By table, the entries of the audit log that name its deleted rows: so a row that is lost is told from one deleted.

A table that is not here has rows that expire: sign-ins, invitations, stored answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenants.tenancy import NamedDeletions as Named

_PEOPLE = ("student", "employee", "guardian", "user")
_WITH_ASSESSMENTS = ("cohort-subject", "cohort", "term")
"""The records with which deleted assessments go, and their scores and absences."""

DELETIONS: Mapping[str, Named] = {
    "absences": Named(each=("absence",), some=_WITH_ASSESSMENTS),
    "assessments": Named(some=_WITH_ASSESSMENTS),
    "attendance_codes": Named(each=("attendance-code",)),
    "attendance_settings": Named(),
    "audit_entries": Named(some=("audit-pruning",)),
    "bank_accounts": Named(some=("employee",)),
    "batches": Named(each=("batch",)),
    "change_sets": Named(some=("audit-pruning",)),
    "classrooms": Named(each=("classroom",)),
    "cohort_subjects": Named(each=("cohort-subject",)),
    "cohorts": Named(each=("cohort",)),
    "contacts": Named(each=("contact",), some=("student", "employee", "guardian")),
    "counters": Named(),
    "departments": Named(each=("department",)),
    "employee_categories": Named(each=("employee-category",)),
    "employees": Named(),
    "enrollments": Named(each=("enrollment",)),
    "form_teachers": Named(each=("form-teacher",), some=("employee",)),
    "grade_scales": Named(some=("grade-scale",)),
    "level_settings": Named(),
    "grade_configurations": Named(each=("grade-config",)),
    "gradebook_entries": Named(each=("gradebook",), some=(*_WITH_ASSESSMENTS, "batch")),
    "graduates": Named(each=("graduate",)),
    "guardians": Named(each=("guardian",)),
    "issued_transcripts": Named(),
    "left_out_students": Named(some=("publication",)),
    "letterheads": Named(),
    "marks": Named(some=("register", "attendance-correction")),
    "metric_definitions": Named(each=("metric-definition",)),
    "metric_scores": Named(some=("metric",)),
    "metrics": Named(each=("metric",)),
    "next_of_kin": Named(some=("employee",)),
    "permissions": Named(),
    "pictures": Named(some=("letterhead", "publication")),
    "positions": Named(each=("position",)),
    "promotion_amendments": Named(),
    "promotion_batches": Named(),
    "promotion_decisions": Named(),
    "promotion_rule_subjects": Named(some=("promotion-rules",)),
    "promotion_rules": Named(some=("promotion-rules",)),
    "promotions": Named(),
    "publications": Named(),
    "registers": Named(some=("register", "attendance-correction")),
    "report_cards": Named(),
    "result_settings": Named(),
    "role_permissions": Named(some=("role",)),
    "roles": Named(each=("role",)),
    "school_days": Named(each=("school-day",)),
    "school_settings": Named(),
    "sessions": Named(each=("session",)),
    "student_guardians": Named(each=("student-guardian",)),
    "students": Named(each=("student",)),
    "subject_enrollments": Named(each=("subject-enrollment",), some=("cohort-subject", "enrollment")),
    "subject_teachers": Named(each=("subject-teacher",), some=("employee",)),
    "subjects": Named(each=("subject",)),
    "submissions": Named(some=("submission",)),
    "term_calendars": Named(each=("term",)),
    "term_comments": Named(),
    "terms": Named(each=("term",)),
    "user_identities": Named(each=("identity",), some=_PEOPLE),
    "user_photos": Named(some=_PEOPLE),
    "user_roles": Named(some=_PEOPLE),
    "users": Named(each=("user",)),
}
