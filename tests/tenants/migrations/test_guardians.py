"""Schools whose students have guardians in their own rows: each guardian is a person afterwards."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from tenants.connections.engines import execute_script
from tenants.migrations.migration_sql import head, migration_scripts, upgrade_statements

((REVISION, BEFORE),) = [
    (script.revision, script.down_revision)
    for script in migration_scripts()
    if script.path.endswith("_guardians.py")
]
NGOZI = ("Ngọzi Òbí", "0803", None)
# Admission number, guardian's name, phone and e-mail, relationship.
STUDENTS = [
    ("A/1", *NGOZI, "mother"),
    ("A/2", *NGOZI, "aunt"),
    ("A/3", "Ngọzi Òbí", "0803", "n@example.com", "mother"),
    ("A/4", "Ngọzi Òbí", None, None, None),
    ("A/5", "Ngọzi Òbí", None, None, None),
    ("A/6", None, None, None, None),
]


@pytest.fixture
def school(connection):
    """A school of before, with students with and without guardians."""
    schema = f"scratch_{uuid4().hex[:8]}"
    execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
    execute_script(connection, ";\n".join(upgrade_statements(None, BEFORE)))
    for number, (admission_number, *guardian) in enumerate(STUDENTS, 1):
        ids = {"id": UUID(int=number), "user": uuid4()}
        connection.execute(
            text(
                "INSERT INTO users (id, username, username_key, first_name, last_name, gender, session_number,"
                " created_at) VALUES (:user, :name, :name, 'A', 'B', '', 0, '2025-09-01Z')"
            ),
            {**ids, "name": admission_number},
        )
        names = ("full_name", "phone_number", "email_address", "relationship")
        connection.execute(
            text(
                "INSERT INTO students (id, number, user_id, admission_number, status, created_at,"
                " guardian_full_name, guardian_phone_number, guardian_email_address, guardian_relationship)"
                " VALUES (:id, :number, :user, :admission, 'ACTIVE', '2025-09-01Z',"
                " :full_name, :phone_number, :email_address, :relationship)"
            ),
            {
                **ids,
                "number": number,
                "admission": admission_number,
                **dict(zip(names, guardian, strict=True)),
            },
        )
    return connection


def rows(connection, query):
    return [tuple(row) for row in connection.execute(text(query))]


FAMILIES = (
    "SELECT s.admission_number, g.full_name, g.phone_number, g.email_address, l.relationship FROM students s"
    " JOIN student_guardians l ON l.student_id = s.id AND l.is_primary AND l.receives_reports"
    " JOIN guardians g ON g.id = l.guardian_id ORDER BY 1"
)


def test_each_guardian_becomes_a_person_and_equals_are_one(school):
    execute_script(school, ";\n".join(upgrade_statements(BEFORE, REVISION)))

    assert rows(school, FAMILIES) == STUDENTS[:5]
    first, second, *others = (
        row[0] for row in rows(school, "SELECT guardian_id FROM student_guardians ORDER BY student_id")
    )
    assert first == second
    assert len({first, *others}) == 4
    emptied = (
        "SELECT count(*) FROM students WHERE num_nonnulls(guardian_full_name, guardian_phone_number) > 0"
    )
    assert rows(school, emptied) == [(0,)]


def test_the_same_rows_come_of_it_wherever_it_runs(school):
    """A migrated school, and one restored from its backup of before, are the same."""
    rows_of_runs = []
    for _ in range(2):
        with school.begin_nested() as attempt:
            execute_script(school, ";\n".join(upgrade_statements(BEFORE, head())))
            rows_of_runs.append(rows(school, "SELECT id FROM guardians ORDER BY id"))
            attempt.rollback()

    assert rows_of_runs[0] == rows_of_runs[1]
