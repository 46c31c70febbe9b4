"""Schools from before names were composed (NFC) and sorted by a key."""

from __future__ import annotations

import unicodedata
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from tenants.connections.engines import execute_script
from tenants.migrations.migration_sql import migration_scripts, upgrade_statements

((REVISION, BEFORE),) = [
    (script.revision, script.down_revision)
    for script in migration_scripts()
    if "names_sorted_by_key" in script.path
]
NAME = "Ògúnlẹ́yẹ"
APART = unicodedata.normalize("NFD", NAME)
OTHERWISE = "O\u0300gu\u0301nle\u0301\u0323ye\u0323"
"""The same name with two marks the other way round."""


@pytest.fixture
def run(connection):
    """Runs a statement in the tables of a school as they were."""
    schema = f"scratch_{uuid4().hex[:8]}"
    execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
    execute_script(connection, ";\n".join(upgrade_statements(None, BEFORE)))
    return lambda sql, **values: connection.execute(text(sql), values)


def upgrade(connection):
    execute_script(connection, ";\n".join(upgrade_statements(BEFORE, REVISION)))


def add_user(run, username, first_name="Ada", last_name="Obi", key=None, user_id=None):
    made = user_id or uuid4()
    run(
        "INSERT INTO users (id, username, username_key, first_name, last_name, gender, created_at, session_number)"
        " VALUES (:id, :username, :key, :first, :last, '', '2025-01-01Z', 0)",
        id=made,
        username=username,
        key=key or unicodedata.normalize("NFKC", username.casefold()),
        first=first_name,
        last=last_name,
    )
    return made


def test_names_are_composed_and_sorted(connection, run):
    names = [("Ogunleye", "Cal"), (APART, "Bola"), (NAME, "Àdá"), ("Zubair", "Ada"), ("Ɗantata", "Ada")]
    for number, (last, first) in enumerate(names):
        user = add_user(run, f"u{number}", first, last)
        run(
            "INSERT INTO students (id, number, user_id, admission_number, status, created_at, middle_name,"
            " guardian_full_name) VALUES (:id, :number, :user, :admission, 'ACTIVE', '2025-01-01Z', :middle, NULL)",
            id=uuid4(), number=number, user=user, admission=f"{APART}/{number}", middle=APART,
        )  # fmt: skip
    run("INSERT INTO subjects (id, name, code) VALUES (:id, :name, :name)", id=uuid4(), name=APART)

    upgrade(connection)

    listed = run("SELECT last_name, first_name FROM users ORDER BY name_sort_key").all()
    assert [tuple(row) for row in listed] == [
        ("Ɗantata", "Ada"),
        (NAME, "Àdá"),
        (NAME, "Bola"),
        ("Ogunleye", "Cal"),
        ("Zubair", "Ada"),
    ]
    students = run("SELECT middle_name, admission_number, guardian_full_name FROM students ORDER BY number")
    assert [tuple(row) for row in students] == [(NAME, f"{NAME}/{number}", None) for number in range(5)]
    assert tuple(run("SELECT name, code FROM subjects").one()) == (NAME, NAME)


def test_of_names_that_would_be_one_each_stays(connection, run):
    def add(name, number):
        run(
            "INSERT INTO classrooms (id, name, level) VALUES (:id, :name, :name)",
            id=UUID(int=number),
            name=name,
        )

    add(APART, 1)
    add(NAME, 2)
    add("JSS 1 e\u0301", 3)
    add("x\u0323\u0307", 4)
    add("x\u0307\u0323", 5)

    upgrade(connection)

    rows = run("SELECT name, level FROM classrooms ORDER BY id").all()
    assert [row.name for row in rows] == [APART, NAME, "JSS 1 é", "\u1e8b\u0323", "x\u0307\u0323"]
    assert all(unicodedata.is_normalized("NFC", row.level) for row in rows)


def test_a_user_found_by_exactly_their_username_keeps_it(connection, run):
    plain = unicodedata.normalize("NFC", "Adé")
    add_user(run, unicodedata.normalize("NFD", "adé"))
    twin = uuid4()
    add_user(run, unicodedata.normalize("NFD", "ADÉ"), key=f"{plain.casefold()}#{twin}", user_id=twin)

    upgrade(connection)

    usernames = run("SELECT username FROM users ORDER BY username_key").scalars().all()
    assert usernames == [plain.lower(), unicodedata.normalize("NFD", "ADÉ")]


def test_a_name_that_would_be_too_long_stays(connection, run):
    # Excluded from composition: NFC writes each as two.
    add_user(run, "u", last_name="\u0958" * 120)

    upgrade(connection)

    row = run("SELECT last_name, name_sort_key FROM users").one()
    assert (row.last_name, len(row.name_sort_key)) == ("\u0958" * 120, 244)


def test_the_key_follows_the_name(connection, run):
    add_user(run, "Ṣadé", "Ada", "Ẹ̀zẹ")
    upgrade(connection)
    assert tuple(run("SELECT name_sort_key, username_sort_key FROM users").one()) == ("eze\x01ada", "sade")

    run("UPDATE users SET last_name = 'Ọbi', username = 'B'")

    assert tuple(run("SELECT name_sort_key, username_sort_key FROM users").one()) == ("obi\x01ada", "b")
