"""The one list of permissions: an access to a section of the service (docs/rules/tokens.md, "Permissions").

A permission is written `access:section` in tokens and in the OpenAPI document.
"""

from __future__ import annotations

from enum import StrEnum


class Permission(StrEnum):
    """A permission an operation can ask of its caller; schools may add pairs of their own beside these."""

    ASSESSMENTS_DELETE = "delete:assessments"
    ASSESSMENTS_READ = "read:assessments"
    ASSESSMENTS_WRITE = "write:assessments"
    ATTENDANCE_CORRECTIONS_WRITE = "write:attendance-corrections"
    ATTENDANCE_DELETE = "delete:attendance"
    ATTENDANCE_READ = "read:attendance"
    ATTENDANCE_WRITE = "write:attendance"
    AUDIT_READ = "read:audit"
    CLASSROOMS_DELETE = "delete:classrooms"
    CHANGES_READ = "read:changes"
    CLASSROOMS_READ = "read:classrooms"
    CLASSROOMS_WRITE = "write:classrooms"
    COHORT_SUBJECTS_DELETE = "delete:cohort-subjects"
    COHORT_SUBJECTS_READ = "read:cohort-subjects"
    COHORT_SUBJECTS_WRITE = "write:cohort-subjects"
    COHORTS_DELETE = "delete:cohorts"
    COHORTS_READ = "read:cohorts"
    COHORTS_WRITE = "write:cohorts"
    CONTACTS_DELETE = "delete:contacts"
    CONTACTS_READ = "read:contacts"
    CONTACTS_WRITE = "write:contacts"
    EMPLOYEES_DELETE = "delete:employees"
    EMPLOYEES_READ = "read:employees"
    EMPLOYEES_WRITE = "write:employees"
    EXPORT_READ = "read:export"
    GRADEBOOKS_DELETE = "delete:gradebooks"
    GRADEBOOKS_READ = "read:gradebooks"
    GRADEBOOKS_WRITE = "write:gradebooks"
    GRADUATES_DELETE = "delete:graduates"
    GRADUATES_READ = "read:graduates"
    GRADUATES_WRITE = "write:graduates"
    METRICS_DELETE = "delete:metrics"
    METRICS_READ = "read:metrics"
    METRICS_WRITE = "write:metrics"
    RESULTS_DELETE = "delete:results"
    RESULTS_READ = "read:results"
    RESULTS_WRITE = "write:results"
    ROLES_DELETE = "delete:roles"
    ROLES_READ = "read:roles"
    ROLES_WRITE = "write:roles"
    SCORESHEETS_DELETE = "delete:scoresheets"
    SCORESHEETS_READ = "read:scoresheets"
    SCORESHEETS_WRITE = "write:scoresheets"
    SETTINGS_DELETE = "delete:settings"
    SETTINGS_READ = "read:settings"
    SETTINGS_WRITE = "write:settings"
    STUDENTS_DELETE = "delete:students"
    STUDENTS_READ = "read:students"
    STUDENTS_WRITE = "write:students"
    SUBJECTS_DELETE = "delete:subjects"
    SUBJECTS_READ = "read:subjects"
    SUBJECTS_WRITE = "write:subjects"
    TEACHERS_DELETE = "delete:teachers"
    TEACHERS_READ = "read:teachers"
    TEACHERS_WRITE = "write:teachers"
    TERMS_DELETE = "delete:terms"
    TERMS_READ = "read:terms"
    TERMS_WRITE = "write:terms"
    USERS_DELETE = "delete:users"
    USERS_READ = "read:users"
    USERS_WRITE = "write:users"

    @property
    def access(self) -> str:
        """`read` (GET), `write` (POST, PUT, PATCH) or `delete` (DELETE)."""
        return self.value.split(":")[0]

    @property
    def section(self) -> str:
        """The part of the service, such as `students`."""
        return self.value.split(":")[1]
