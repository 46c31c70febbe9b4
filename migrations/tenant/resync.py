"""A change set that lets followers read everything anew, of a migration that changes records.

    def upgrade() -> None:
        op.execute("UPDATE …")
        resync()

Each cursor of before is gone then. A school being created has nothing to be read, and its first set is seeded.
"""

from __future__ import annotations

from alembic import op

# The moment puts it before other sets without a number, and has no other use.
RESYNC = """
INSERT INTO change_sets (id, at, resync)
SELECT gen_random_uuid(), CAST('2026-11-28 00:00:00+00' AS timestamptz), true
FROM counters WHERE name = 'students'
"""


def resync() -> None:
    """Add the change set to every school."""
    op.execute(RESYNC)
