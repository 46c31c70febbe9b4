"""The operator's work on the records of one school: a transaction within its schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from sqlalchemy import Connection

from tenants.connections.engines import execute_script
from tenants.exceptions import SchoolDeleting, SchoolUpgrading
from tenants.migrations.migration_sql import head
from tenants.provisioning.ownership import become_owner
from tenants.registry.schools import School, lock_school
from tenants.tenancy import Tenancy


@contextmanager
def connected_to_school(
    tenancy: Tenancy, school_id: UUID, *, as_owner: bool = False, snapshot: bool = False
) -> Iterator[tuple[Connection, School]]:
    """Yield the school, and a connection within it; its transaction commits when the block has ended well.

    The school is neither changed nor migrated nor deleted meanwhile. It works as the school's role, with the powers of
    requests, or `as_owner` of its tables. With `snapshot` all statements see one moment of the database. Raises
    UnknownSchool, SchoolDeleting, SchoolUpgrading.
    """
    with tenancy.admin.connect() as connection:
        if snapshot:
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            school = lock_school(connection, school_id, shared=True)
            if school.deletion == "begun":
                raise SchoolDeleting(f"The school {school_id} is being deleted: parts of it are gone.")
            if school.revision != head(tenancy.history):
                raise SchoolUpgrading(
                    f"The school {school_id} is at revision {school.revision}."
                    " Run: school-service tenants migrate"
                )
            if as_owner:
                become_owner(connection, school.schema)
            execute_script(connection, f'SET LOCAL search_path TO "{school.schema}", pg_temp')
            if tenancy.becomes_roles and not as_owner:
                execute_script(connection, f'SET LOCAL ROLE "{school.schema}"')
            yield connection, school
