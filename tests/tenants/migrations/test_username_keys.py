"""Schools that were there before usernames were folded: nobody is locked out, and no new name collides."""

from __future__ import annotations

import unicodedata
from uuid import uuid4

import pytest
from sqlalchemy import text

from school_service.features.people.usernames import MAX_KEY_LENGTH, username_key
from tenants.connections.engines import execute_script
from tenants.migrations.migration_sql import upgrade_statements

BEFORE = "t0004"


@pytest.fixture
def old_users(connection):
    """Makes the tables of a school as they were, with accounts of these names, oldest first; answers their ids."""

    def making(usernames):
        schema = f"scratch_{uuid4().hex[:8]}"
        execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
        execute_script(connection, ";\n".join(upgrade_statements(None, BEFORE)))
        ids = [uuid4() for _ in usernames]
        connection.execute(
            text(
                "INSERT INTO users (id, username, first_name, last_name, gender, session_number, created_at)"
                " SELECT id, username, 'Ada', 'Obi', '', 1, timestamptz '2026-01-01' + second * interval '1 s'"
                " FROM unnest(CAST(:ids AS uuid[]), CAST(:usernames AS text[]))"
                " WITH ORDINALITY AS given (id, username, second)"
            ),
            {"ids": list(map(str, ids)), "usernames": list(usernames)},
        )
        connection.execute(
            text("INSERT INTO counters (id, name, value) VALUES (:id, 'students', 0)"), {"id": uuid4()}
        )
        return ids

    return making


def upgrade(connection):
    """Migrate the school, and read its accounts' keys by id."""
    execute_script(connection, ";\n".join(upgrade_statements(BEFORE)))
    return {
        row.id: row.username_key for row in connection.execute(text("SELECT id, username_key FROM users"))
    }


def test_keys_are_as_the_program_computes_them(connection, old_users):
    # Of Unicode 3.2, whose letters are folded alike by every later version.
    letters = [
        letter
        for letter in map(chr, range(1, 0x10000))
        if unicodedata.ucd_3_2_0.category(letter) not in {"Cn", "Cs", "Co"}
    ]
    usernames = ["".join(letters[start : start + 40]) + str(start) for start in range(0, len(letters), 40)]
    usernames += ["Ada", "ÀDÀ\u0323", "Straße", "ΣΑΣ", "\u1fb3", "İ", "\ufdfa" * 120, "ﬃ" * 120]
    ids = old_users(usernames)

    keys = upgrade(connection)

    wrong = {
        name: keys[id] for id, name in zip(ids, usernames, strict=True) if keys[id] != username_key(name)
    }
    assert wrong == {}
    assert max(map(len, keys.values())) == MAX_KEY_LENGTH


def test_of_names_that_differ_in_case_the_oldest_has_the_plain_key(connection, old_users):
    first, second, third, other = old_users(["Ada", "ada", "ÀDA", "ADA"])

    assert upgrade(connection) == {
        first: "ada",
        second: f"ada#{second}",
        third: "àda",
        other: f"ada#{other}",
    }


def test_passwords_that_are_there_count_as_the_users_own(connection, old_users):
    old_users(["Ada"])
    upgrade(connection)

    assert connection.execute(text("SELECT password_given_at FROM users")).scalars().all() == [None]
    since = connection.execute(text("SELECT must_change_password_since FROM school_settings")).scalars().all()
    assert since == [None]


def test_a_school_without_rows_stays_without(connection):
    schema = f"scratch_{uuid4().hex[:8]}"
    execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
    execute_script(connection, ";\n".join(upgrade_statements(None)))

    assert connection.execute(text("SELECT count(*) FROM school_settings")).scalar() == 0
