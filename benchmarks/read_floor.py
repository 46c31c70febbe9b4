"""The reads of `benchmarks.throughput`: the records, the requests, and the floor's statements.

The floor makes one round trip a request: binding, caller's state, permission and query go together.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert

from benchmarks.sheet_floor import STATE
from school_service.core.database import db
from school_service.features.classes.cohort_subjects.service import create_cohort_subject
from school_service.features.classes.enrollments.service import enroll
from school_service.features.people.students.service import create_student
from school_service.features.people.users.service import create_user
from school_service.features.school.classrooms.service import create_classroom
from school_service.features.school.cohorts.service import create_cohort
from school_service.features.school.models import Enrollment
from school_service.features.school.sessions.service import create_session, create_term
from school_service.features.school.subjects.service import create_subject
from school_service.features.scores.assessments.service import create_assessment
from school_service.features.scores.models import GradebookEntry

CLASSROOMS, USERS, STUDENTS = 40, 50, 40
CATEGORIES = ("CA1", "CA2", "CA3", "EXAM")
PAGE = "pageNumber=0&pageSize=50"

_CLASSROOMS = """
SELECT coalesce(json_agg(row_to_json(answer)), '[]')::text FROM (
    SELECT id, name, %(school)s::uuid AS school FROM classrooms ORDER BY name, id
) answer
"""
_PAGE = """
SELECT json_build_object(
    'page_number', 0, 'page_size', 50, 'total_pages', (total + 49) / 50, 'total', total,
    'data', (SELECT coalesce(json_agg(row_to_json(answer)), '[]') FROM ({rows} LIMIT 50 OFFSET 0) answer)
)::text
FROM (SELECT count(*) AS total FROM {counted}) counted
"""
_USERS = _PAGE.format(
    counted="users WHERE deleted_at IS NULL",
    rows="""
    SELECT id, username, first_name, last_name, gender, photo,
        (SELECT coalesce(json_agg(json_build_object('roleId', role_id, 'userId', user_id, 'createdAt', created_at)
                                  ORDER BY created_at, role_id), '[]')
         FROM user_roles WHERE user_id = u.id) AS roles,
        %(shown_of_school)s::json AS school,
        (SELECT json_build_object('id', id, 'admission_number', admission_number, 'status', status)
         FROM students WHERE user_id = u.id) AS student
    FROM users u WHERE deleted_at IS NULL ORDER BY username_sort_key, id
""",
)
_STUDENTS = _PAGE.format(
    counted="students",
    # The records of a student are looked up for the students of the page alone.
    rows="""
    SELECT p.id, p.number, p.first_name, p.middle_name, p.last_name, p.admission_number,
        nullif(p.gender, '') AS gender, p.dob, p.admitted_on, p.former_school, p.left_on, p.leaving_reason, p.status,
        e.batch_id AS batch, e.cohort_id AS cohort,
        p.user_id AS "user", (SELECT json_build_object(
            'full_name', g.full_name, 'relationship', l.relationship,
            'phone_number', g.phone_number, 'email_address', g.email_address)
         FROM student_guardians l JOIN guardians g ON g.id = l.guardian_id
         WHERE l.student_id = p.id AND l.is_primary) AS guardian,
        p.created_at AS "createdAt", p.photo
    FROM (
        SELECT s.*, u.first_name, u.last_name, u.gender, u.photo, u.name_sort_key
        FROM students s JOIN users u ON u.id = s.user_id
        ORDER BY u.name_sort_key, s.admission_number COLLATE "C", s.id LIMIT 50 OFFSET 0
    ) p LEFT JOIN LATERAL (
        SELECT batch_id, cohort_id FROM enrollments WHERE student_id = p.id AND ended_at IS NULL
        ORDER BY started_at DESC, id DESC LIMIT 1
    ) e ON true
    ORDER BY p.name_sort_key, p.admission_number COLLATE "C", p.id
""",
)
# Put together as texts, which takes PostgreSQL less time than objects of JSON do; names are escaped as JSON has it.
_SCORESHEET = """
SELECT '[' || coalesce(string_agg(
    '{"student":{"id":"' || s.id || '","first_name":' || to_json(u.first_name) || ',"last_name":'
    || to_json(u.last_name) || ',"admission_number":' || to_json(s.admission_number)
    || '},"gradebooks":[' || coalesce(g.entries, '') || ']}',
    ',' ORDER BY u.name_sort_key, s.admission_number COLLATE "C", s.id
), '') || ']'
FROM subject_enrollments t JOIN students s ON s.id = t.student_id JOIN users u ON u.id = s.user_id LEFT JOIN (
    SELECT e.student_id, string_agg(
        '{"id":"' || e.id || '","assessment":"' || a.id || '","assessment_category":"' || a.category || '","score":'
        || e.score || ',"student":"' || e.student_id || '","batch":"' || e.batch_id || '","subject":"'
        || a.cohort_subject_id || '"}',
        ',' ORDER BY a.category, a.due_date, a.id
    ) AS entries
    FROM gradebook_entries e JOIN assessments a ON a.id = e.assessment_id
    WHERE a.cohort_subject_id = %(subject)s AND a.deleted_at IS NULL AND a.term_id = %(term)s
    GROUP BY e.student_id
) g ON g.student_id = s.id
WHERE t.cohort_subject_id = %(subject)s AND EXISTS (SELECT FROM terms WHERE id = %(term)s)
"""


@dataclass(frozen=True)
class Read:
    """A kind of request: the permission it needs, and the statement whose one value is its answer."""

    permission: str
    sql: str

    def statement(self) -> str:
        """Write the statement that goes behind the binding: no row for a caller without the permission."""
        return (
            f"WITH {STATE} SELECT ({self.sql}) FROM state WHERE '{self.permission}' = ANY (state.permissions)"
        )


_READS = {
    "classrooms": Read("read:classrooms", _CLASSROOMS),
    "users": Read("read:users", _USERS),
    "students": Read("read:students", _STUDENTS),
    "scoresheets": Read("read:scoresheets", _SCORESHEET),
}


def floor_of(environ: dict[str, Any], shown_of_school: str) -> tuple[str, dict[str, Any]] | None:
    """Find the statement that answers a request, and its parameters; None for a request of another kind."""
    first, *rest = environ["PATH_INFO"].strip("/").split("/")
    read = _STATEMENTS.get(first)
    if read is None:
        return None
    parameters = {"shown_of_school": shown_of_school}
    if rest:
        parameters |= {"subject": rest[0], "term": environ["QUERY_STRING"].removeprefix("term=")}
    return read, parameters


_STATEMENTS = {name: read.statement() for name, read in _READS.items()}


def fill() -> str:
    """Make classrooms, users and a class with its scores, in the transaction under way.

    Returns the path of the class's score sheet.
    """
    for number in range(USERS - 1):
        create_user(username=f"user{number:02}", first_name="Adaeze", last_name="Okonkwo", gender="FEMALE")
    for number in range(CLASSROOMS - 1):
        create_classroom(name=f"Classroom {number:02}", level="Junior Secondary")
    room = create_classroom(name="JSS 1", level="Junior Secondary")
    year = create_session(name="2025/2026", start_date=date(2025, 9, 8), end_date=date(2026, 7, 24))
    cohort = create_cohort(classroom=room.id, session_id=str(year.id))
    students = [
        create_student(first_name="Adaeze", last_name=f"Okonkwo {n:03}", admission_number=f"A/{n:04}").id
        for n in range(STUDENTS)
    ]
    enroll(cohort_id=cohort.id, batch=cohort.id, students=students)
    subject = create_cohort_subject(
        cohort_id=cohort.id, subject_id=create_subject(name="Mathematics", code="MTH").id, elective=False
    )
    term = create_term(session_id=year.id, term="FIRST", display_name="First term")
    _score([_assess(subject.id, term.id, category) for category in CATEGORIES], students)
    return f"/scoresheets/{subject.id}/scoresheet?term={term.id}"


def _assess(subject: UUID, term: UUID, category: str) -> UUID:
    return create_assessment(
        subject=subject,
        term=term,
        category=category,
        name=category,
        abbreviation=category,
        due_date=date(2025, 10, 17),
        total_points=Decimal(20),
        description="",
        file_name="",
        include_in_final=True,
        publish_scores=False,
    ).id


def _score(assessments: list[UUID], students: list[UUID]) -> None:
    batch = db.session.scalars(db.select(Enrollment.batch_id).limit(1)).one()
    rows = [
        {"id": uuid4(), "assessment_id": a, "student_id": s, "batch_id": batch, "score": Decimal("12.5")}
        for a in assessments
        for s in students
    ]
    db.session.execute(insert(GradebookEntry), rows)
