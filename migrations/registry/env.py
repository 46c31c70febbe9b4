"""Alembic's environment of the registry: runs on the connection that `tenants.registry.installation` hands it."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="revision",
    version_table_schema="registry",
)
with context.begin_transaction():
    context.run_migrations()
