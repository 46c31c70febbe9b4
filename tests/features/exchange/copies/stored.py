"""All rows of a school, and the records that each row is part of, for tests."""

from __future__ import annotations

import json

from sqlalchemy import text

from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding

# Tables of no record: of security, of the service itself, and pictures: records have their digests.
OF_NO_RECORD = {
    *("audit_entries", "change_sets", "counters", "idempotency_keys", "invitations", "issued_transcripts"),
    *("left_out_students", "permissions", "pictures", "user_identities", "user_sessions"),
}
# Columns of users in no record: how they sign in, and how they are sorted.
OF_NO_USER = {
    *("password_hash", "password_given_at", "password_given_by", "password_given_by_name"),
    *("session_number", "username_key", "name_sort_key", "username_sort_key"),
}
SETTINGS = {
    "attendance_codes": "attendance-codes",
    "attendance_settings": "attendance-settings",
    "departments": "departments",
    "employee_categories": "employee-categories",
    "grade_configurations": "grade-configs",
    "grade_scales": "grade-scales",
    "letterheads": "letterhead",
    "level_settings": "level-settings",
    "positions": "positions",
    "promotion_rule_subjects": "promotion-rules",
    "promotion_rules": "promotion-rules",
    "result_settings": "result-settings",
    "school_settings": "settings",
}
# The resource of the record that a row is part of, and the columns of its key.
RECORD_OF = {
    "absences": ("absences", "assessment_id"),
    "assessments": ("assessments", "id"),
    "bank_accounts": ("bank-accounts", "id"),
    "batches": ("batches", "id"),
    "classrooms": ("classrooms", "id"),
    "cohort_subjects": ("cohort-subjects", "id"),
    "cohorts": ("cohorts", "id"),
    "contacts": ("contacts", "id"),
    "employees": ("employees", "id"),
    "enrollments": ("enrollments", "student_id"),
    "form_teachers": ("form-teachers", "batch_id"),
    "gradebook_entries": ("scores", "id"),
    "graduates": ("graduates", "id"),
    "guardians": ("guardians", "id"),
    "marks": ("registers", "register_id"),
    "metric_definitions": ("metric-definitions", "id"),
    "metric_scores": ("metrics", "metric_id"),
    "metrics": ("metrics", "id"),
    "next_of_kin": ("next-of-kin", "id"),
    "promotion_amendments": ("promotions", "promotion_id"),
    "promotion_batches": ("promotions", "promotion_id"),
    "promotion_decisions": ("promotions", "promotion_id"),
    "promotions": ("promotions", "id"),
    "publications": ("publications", "id"),
    "registers": ("registers", "id"),
    "report_cards": ("report-cards", "id"),
    "role_permissions": ("roles", "role_id"),
    "roles": ("roles", "id"),
    "school_days": ("school-days", "id"),
    "sessions": ("sessions", "id"),
    "student_guardians": ("student-guardians", "student_id"),
    "students": ("students", "id"),
    "subject_enrollments": ("subject-enrollments", "student_id"),
    "subject_teachers": ("subject-teachers", "cohort_subject_id"),
    "subjects": ("subjects", "id"),
    "submissions": ("submissions", "cohort_subject_id", "term_id"),
    "term_calendars": ("terms", "term_id"),
    "term_comments": ("comments", "student_id", "term_id"),
    "terms": ("terms", "id"),
    "user_photos": ("users", "user_id"),
    "user_roles": ("users", "user_id"),
    "users": ("users", "id"),
}


def rows_of(place):
    """Read all rows of the tables of records: each a table, and the row as JSON."""
    tables = (*RECORD_OF, *SETTINGS)
    each = " UNION ALL ".join(f"SELECT '{table}', to_jsonb(t) - 'image' FROM {table} t" for table in tables)
    with in_transaction(SchoolBinding(place.id)):
        rows = [(table, row) for table, row in db.session.execute(text(each))]
    return {
        (
            table,
            json.dumps(
                {name: row[name] for name in row if table != "users" or name not in OF_NO_USER},
                sort_keys=True,
            ),
        )
        for table, row in rows
    }


def key_of(table, row):
    """The resource and the key of the record that a row is part of."""
    if table in SETTINGS:
        return "settings", SETTINGS[table]
    resource, *columns = RECORD_OF[table]
    return resource, ":".join(json.loads(row)[column] for column in columns)
