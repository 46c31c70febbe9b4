"""Schools in which a student had report cards of two arms in a term: the later published one is in force."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy import text

from tenants.connections.engines import execute_script
from tenants.migrations.migration_sql import migration_scripts, upgrade_statements

((REVISION, BEFORE),) = [
    (script.revision, script.down_revision)
    for script in migration_scripts()
    if "cards_in_force" in script.path
]
# The card of a student in each of these publications: by batch, version and state, and when they were published.
PUBLICATIONS = {
    "replaced": ("first", 1, "SUPERSEDED", "2025-12-10"),
    "reopened": ("first", 2, "REOPENED", "2025-12-11"),
    "later": ("second", 1, "PUBLISHED", "2025-12-12"),
    "withdrawn": ("third", 1, "WITHDRAWN", "2025-12-13"),
}


@pytest.fixture
def cards(connection):
    """A school of before in which two students have a card each in some of the publications: their ids."""
    schema = f"scratch_{uuid4().hex[:8]}"
    execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
    execute_script(connection, ";\n".join(upgrade_statements(None, BEFORE)))
    names = ("session", "classroom", "first", "second", "third", "term", "mover", "other", *PUBLICATIONS)
    ids = {name: uuid4() for name in names} | {"user": uuid4(), "user_2": uuid4()}

    def run(sql, **values):
        connection.execute(text(sql), {**ids, **values})

    run("INSERT INTO sessions VALUES (:session, '2025/2026', '2025-09-01', '2026-07-31', true)")
    run("INSERT INTO classrooms VALUES (:classroom, 'JSS 1', 'JSS')")
    run("INSERT INTO cohorts VALUES (:first, :classroom, :session)")
    run("INSERT INTO batches (id, number, cohort_id, name) VALUES (:first, 1, :first, 'A'), (:second, 2, :first, 'B'),"
        " (:third, 3, :first, 'C')")  # fmt: skip
    run("INSERT INTO terms VALUES (:term, :session, 'FIRST', 'First')")
    for number, (student, user) in enumerate((("mover", "user"), ("other", "user_2"))):
        run(
            "INSERT INTO users (id, username, username_key, first_name, last_name, gender, created_at, session_number)"
            f" VALUES (:{user}, 'u{number}', 'u{number}', 'Ada', 'Obi', '', '2025-01-01Z', 0)"
        )
        run(
            "INSERT INTO students (id, number, user_id, admission_number, status, created_at)"
            f" VALUES (:{student}, {number}, :{user}, 'A/{number}', 'ACTIVE', '2025-01-01Z')"
        )
    ids_of_cards = {}
    for name, (batch, version, state, day) in PUBLICATIONS.items():
        reopened = "NULL, NULL, NULL, NULL" if state == "PUBLISHED" else f"'{day}Z', 'x', 'x', 'x'"
        run(
            "INSERT INTO publications (id, batch_id, cohort_id, session_id, term_id, version, state, rules,"
            " published_at, published_by, published_by_name, reopened_at, reopened_by, reopened_by_name, reason)"
            f" VALUES (:{name}, :{batch}, :first, :session, :term, {version}, '{state}', '{{}}', '{day}Z', 'x', 'x',"
            f" {reopened})"
        )
        for student in ("mover",) if name == "later" else ("mover", "other"):
            ids_of_cards[name, student] = uuid4()
            run(
                "INSERT INTO report_cards (id, publication_id, student_id, code, changed, card)"
                f" VALUES (:card, :{name}, :{student}, :code, false, '{{}}')",
                card=ids_of_cards[name, student],
                code=uuid4(),
            )
    return ids_of_cards | {"term": ids["term"]}


def test_the_later_of_two_cards_of_a_term_stays_in_force(connection, cards):
    execute_script(connection, ";\n".join(upgrade_statements(BEFORE, REVISION)))

    rows = connection.execute(
        text("SELECT id, term_id, in_force, class_figures_changed FROM report_cards")
    ).all()
    assert {row.id for row in rows if row.in_force} == {cards["later", "mover"], cards["reopened", "other"]}
    assert {(row.term_id, row.class_figures_changed) for row in rows} == {(cards["term"], False)}
    assert len(rows) == 7
