"""Schools with open invitations of when their addresses were stored with their case folded."""

from __future__ import annotations

from uuid import uuid4

from sqlalchemy import text

from tenants.connections.engines import execute_script
from tenants.migrations.migration_sql import upgrade_statements

BEFORE, AFTER = "t0022", "t0024"
ENDED = ["strasse@example.com", "jessica@example.com", "ada@ssl.example", "ọlá@example.com", "ada@ẹ.example"]
KEPT = ["ada.obi@example.com", "s.s@example.com", "%s%s@example.com", "", None]


def test_invitations_whose_address_may_have_been_another_end(connection):
    schema = f"scratch_{uuid4().hex[:8]}"
    execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
    execute_script(connection, ";\n".join(upgrade_statements(None, BEFORE)))
    for email in ENDED + KEPT:
        name = str(uuid4())
        connection.execute(
            text(
                "INSERT INTO users (id, username, username_key, first_name, last_name, gender, session_number,"
                " created_at) VALUES (:name, :name, :name, 'Ada', 'Obi', '', 1, now())"
            ),
            {"name": name},
        )
        connection.execute(
            text(
                "INSERT INTO invitations (id, user_id, code_hash, email, created_at, created_by, created_by_name,"
                " expires_at) VALUES (:name, :name, :name, :email, now(), 'x', 'x', now() + interval '1 day')"
            ),
            {"name": name, "email": email},
        )

    execute_script(connection, ";\n".join(upgrade_statements(BEFORE, AFTER)))

    left = connection.execute(text("SELECT email FROM invitations")).scalars().all()
    assert sorted(left, key=str) == sorted(KEPT, key=str)
