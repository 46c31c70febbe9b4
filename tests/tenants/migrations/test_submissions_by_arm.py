"""Schools that submitted results of a subject for all arms at once: each arm has its submission afterwards."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy import text

from tenants.connections.engines import execute_script
from tenants.migrations.migration_sql import head, migration_scripts, upgrade_statements

((REVISION, BEFORE),) = [
    (script.revision, script.down_revision)
    for script in migration_scripts()
    if "submissions_by_arm" in script.path
]
NAMES = ("session", "classroom", "first", "second", "other", "subject", "taught", "term", "next")


@pytest.fixture
def school(connection):
    """A school of before with a cohort of two arms and one of one arm, as the ids of its records."""
    schema = f"scratch_{uuid4().hex[:8]}"
    execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
    execute_script(connection, ";\n".join(upgrade_statements(None, BEFORE)))
    ids = {name: uuid4() for name in NAMES} | {"classroom_2": uuid4(), "elsewhere": uuid4()}
    ids |= {name: uuid4() for name in ("submitted", "submitted_too", "paper", "paper_2", "open_paper")}

    def run(sql):
        connection.execute(text(sql), ids)

    run("INSERT INTO sessions VALUES (:session, '2025/2026', '2025-09-01', '2026-07-31', true)")
    run("INSERT INTO classrooms VALUES (:classroom, 'JSS 1', 'JSS'), (:classroom_2, 'JSS 2', 'JSS')")
    run("INSERT INTO cohorts VALUES (:first, :classroom, :session), (:other, :classroom_2, :session)")
    run("INSERT INTO batches (id, number, cohort_id, name) VALUES (:first, 1, :first, 'A'), (:second, 2, :first, 'B'),"
        " (:other, 3, :other, 'A')")  # fmt: skip
    run("INSERT INTO subjects VALUES (:subject, 'Physics', 'PHY')")
    run("INSERT INTO cohort_subjects (id, cohort_id, subject_id, elective) VALUES (:taught, :first, :subject, false),"
        " (:elsewhere, :other, :subject, false)")  # fmt: skip
    run("INSERT INTO terms VALUES (:term, :session, 'FIRST', 'First'), (:next, :session, 'SECOND', 'Second')")
    for submission, taught, cohort in (
        ("submitted", "taught", "first"),
        ("submitted_too", "elsewhere", "other"),
    ):
        values = (
            f":{submission}, :{taught}, :{cohort}, :session, :term, '2025-12-12 10:00Z', 'ada', 'Ada Obi'"
        )
        run(
            "INSERT INTO submissions (id, cohort_subject_id, cohort_id, session_id, term_id, submitted_at,"
            f" submitted_by, submitted_by_name) VALUES ({values})"
        )
    for paper, term, submission in (
        ("paper", "term", ":submitted"),
        ("paper_2", "term", ":submitted"),
        ("open_paper", "next", "NULL"),
    ):
        values = (
            f":{paper}, :taught, :first, :session, :{term}, 'Test', 'T', '2025-10-01', 20, '', 'CA1', 'x.xlsx',"
            f" true, true, '2025-10-01Z', {submission}"
        )
        run(
            "INSERT INTO assessments (id, cohort_subject_id, cohort_id, session_id, term_id, name, abbreviation,"
            " due_date, total_points, description, category, file_name, include_in_final, publish_scores, created_at,"
            f" submission_id) VALUES ({values})"
        )
    return ids


def test_a_submission_of_all_arms_becomes_one_for_each_arm(connection, school):
    execute_script(connection, ";\n".join(upgrade_statements(BEFORE, REVISION)))

    rows = connection.execute(
        text(
            "SELECT cohort_subject_id, batch_id, term_id, submitted_at, submitted_by, submitted_by_name, id"
            " FROM submissions"
        )
    ).all()
    assert {(row.cohort_subject_id, row.batch_id) for row in rows} == {
        (school["taught"], school["first"]),
        (school["taught"], school["second"]),
        (school["elsewhere"], school["other"]),
    }
    assert len(rows) == len({row.id for row in rows}) == 3
    assert {(row.term_id, row.submitted_by, row.submitted_by_name) for row in rows} == {
        (school["term"], "ada", "Ada Obi")
    }
    assert {row.submitted_at.isoformat()[:16] for row in rows} == {"2025-12-12T10:00"}
    held = connection.execute(text("SELECT id, CAST(submitted_batches AS text[]) AS held FROM assessments"))
    arms = {str(school["first"]), str(school["second"])}
    assert {row.id: set(row.held) for row in held} == {
        school["paper"]: arms,
        school["paper_2"]: arms,
        school["open_paper"]: set(),
    }


def test_the_same_rows_come_of_it_wherever_it_runs(connection, school):
    """A migrated school, and one restored from its backup of before, are the same."""
    ids = []
    for _ in range(2):
        with connection.begin_nested() as attempt:
            execute_script(connection, ";\n".join(upgrade_statements(BEFORE, head())))
            ids.append(connection.execute(text("SELECT id FROM submissions ORDER BY id")).scalars().all())
            attempt.rollback()

    assert ids[0] == ids[1]
