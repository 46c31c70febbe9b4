"""Switching roles by the operator, on a connection of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select

from school_service.core.errors import DomainError
from school_service.core.read_models import batch_of
from school_service.core.statements import Executable
from school_service.features.audit.service import record_changes
from school_service.features.people.gains.service import Means
from school_service.features.people.models import Role
from school_service.features.role_reaches.service import switch
from tenants.connections.statements import write
from tenants.exceptions import TenancyError
from tenants.operator_connection import connected_to_school
from tenants.registry.clients import granted_in
from tenants.tenancy import Tenancy


class NotSwitched(TenancyError):
    """The roles can not be switched so."""


def switch_roles(
    tenancy: Tenancy,
    school_id: UUID,
    reaches: Mapping[str, str],
    *,
    add_seeded: bool,
    commit: bool,
    served: Collection[str],
) -> dict[str, Any]:
    """Give roles, by their names, other reaches, and tell the changes; without `commit` only tell them.

    `served` are the permissions serving OWN at all. Raises UnknownSchool, SchoolDeleting, SchoolUpgrading, and
    NotSwitched for an unknown role and each refusal of `switch`.
    """
    with connected_to_school(tenancy, school_id) as (connection, _):
        named = select(Role.name, Role.id).where(Role.name.in_(reaches))
        known = {row.name: row.id for row in connection.execute(named)}
        unknown = sorted(reaches.keys() - known.keys())
        if unknown:
            raise NotSwitched(f"The school {school_id} has no role {', '.join(unknown)}.")
        try:
            return switch(
                roles=[{"role": known[name], "reach": reach} for name, reach in reaches.items()],
                add_seeded=add_seeded,
                dry_run=not commit,
                served=served,
                principal=None,
                means=Means(
                    send=partial(_send, connection),
                    end=partial(_send, connection),
                    audit=partial(record_changes, connection),
                    grants=partial(_grants, tenancy, school_id),
                    may_read_users=lambda: True,
                ),
            )
        except DomainError as error:
            raise NotSwitched(error.message) from None


def _send(connection: Connection, *executables: Executable) -> dict[str, Any] | None:
    return write(connection, *batch_of(executables))


def _grants(
    tenancy: Tenancy, school_id: UUID, client_ids: Collection[str]
) -> Mapping[str, Collection[str] | None]:
    with tenancy.admin.connect() as connection:
        return granted_in(connection, client_ids, school_id)
