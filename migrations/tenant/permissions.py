"""Permissions that schools which are there get by a migration; a new school is seeded with all of them.

    def upgrade() -> None:
        add_permissions("read:audit")

Schools seeded before a permission was added to the program's catalogue have no row of it, and no role that holds it.
"""

from __future__ import annotations

import re
from uuid import UUID, uuid5

from alembic import op

_NAMESPACE = UUID("7d6f3a2e-5a0b-4f0e-9a39-6c1c5c2d8e41")
_PERMISSION = re.compile(r"([a-z][a-z0-9-]*+):([a-z][a-z0-9-]*+)")
_ADMINISTRATOR = "Administrator"


def add_permissions(*permissions: str) -> None:
    """Add permissions, each written access:section, to every school, and grant them to its role Administrator.

    A pair that the school made itself stays, and is granted. The role of that name may be gone: then the pair is
    there to be granted by the school. The ids are the same in each school. Raises ValueError for another form.
    """
    for permission in permissions:
        match = _PERMISSION.fullmatch(permission)
        if match is None:
            raise ValueError(f"{permission!r} is not of the form access:section, such as read:students")
        access, section = match.groups()
        op.execute(
            "INSERT INTO permissions (id, section, access)\n"
            f"SELECT '{uuid5(_NAMESPACE, permission)}', '{section}', '{access}'\n"
            # A school that is being created has no counters yet: its permissions are seeded.
            "FROM counters WHERE name = 'students' AND NOT EXISTS (\n"
            f"    SELECT FROM permissions WHERE section = '{section}' AND access = '{access}'\n"
            ")"
        )
        op.execute(
            "INSERT INTO role_permissions (role_id, permission_id)\n"
            "SELECT roles.id, permissions.id FROM roles CROSS JOIN permissions\n"
            f"WHERE roles.name = '{_ADMINISTRATOR}'\n"
            f"    AND permissions.section = '{section}' AND permissions.access = '{access}'\n"
            "    AND NOT EXISTS (\n"
            "        SELECT FROM role_permissions AS granted\n"
            "        WHERE granted.role_id = roles.id AND granted.permission_id = permissions.id\n"
            "    )"
        )
