"""Schools in which people had invited themselves: these invitations end, all others stay."""

from __future__ import annotations

from uuid import uuid4

from sqlalchemy import text

from tenants.connections.engines import execute_script
from tenants.migrations.migration_sql import upgrade_statements

BEFORE = "t0024"


def test_an_invitation_that_somebody_made_for_themselves_ends(connection):
    schema = f"scratch_{uuid4().hex[:8]}"
    execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
    execute_script(connection, ";\n".join(upgrade_statements(None, BEFORE)))
    users = [uuid4() for _ in range(3)]
    for user, creator in zip(users, (str(users[0]), str(users[0]), "a client"), strict=True):
        connection.execute(
            text(
                "INSERT INTO users (id, username, username_key, first_name, last_name, gender, session_number,"
                " created_at) VALUES (:id, :name, :name, 'Ada', 'Obi', '', 1, '2026-01-01Z')"
            ),
            {"id": user, "name": str(user)},
        )
        connection.execute(
            text(
                "INSERT INTO invitations (id, user_id, code_hash, created_at, created_by, created_by_name,"
                " expires_at) VALUES (:id, :id, :hash, '2026-01-01Z', :creator, 'Ada Obi', '2026-02-01Z')"
            ),
            {"id": user, "hash": uuid4().hex, "creator": creator},
        )

    execute_script(connection, ";\n".join(upgrade_statements(BEFORE)))

    left = connection.execute(text("SELECT user_id FROM invitations")).scalars().all()
    assert {*left} == {*users[1:]}
