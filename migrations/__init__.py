"""Two Alembic histories: `registry` for the schema common to all schools, `tenant` for the schema of each."""
