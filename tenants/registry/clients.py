"""Machine clients: what an operator lets another server do, and in which schools."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Connection, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from tenants.clock import now
from tenants.exceptions import AlreadyExists, TenancyError, UnknownSchool
from tenants.registry.schools import client_schools, clients


class UnknownClient(TenancyError):
    """No client has this id, or it has been revoked."""


@dataclass(frozen=True, slots=True)
class Client:
    """A grant: the schools a client may enter and what it may do there, unless its token says so itself."""

    id: str
    all_schools: bool
    schools: tuple[UUID, ...]
    all_permissions: bool
    permissions: tuple[str, ...]
    revoked: bool

    def as_record(self) -> dict[str, Any]:
        """The client as an operator sees it, ready for JSON."""
        return {
            "id": self.id,
            "schools": "all" if self.all_schools else [str(school) for school in self.schools],
            "permissions": "all" if self.all_permissions else list(self.permissions),
            "revoked": self.revoked,
        }


def create_client(
    connection: Connection,
    *,
    client_id: str,
    school_ids: Collection[UUID] = (),
    all_schools: bool = False,
    permissions: Collection[str] = (),
    all_permissions: bool = False,
) -> str:
    """Grant a client its schools and permissions; return its secret, which is stored nowhere.

    The secret has 256 random bits, so one round of SHA-256 guards it as well as a slow hash would.
    Raises AlreadyExists, UnknownSchool.
    """
    secret = secrets.token_urlsafe(32)
    try:
        connection.execute(
            insert(clients).values(
                id=client_id,
                secret_hash=_hashed(secret),
                all_schools=all_schools,
                all_permissions=all_permissions,
                permissions=sorted(set(permissions)),
                created_at=now(),
            )
        )
    except IntegrityError:
        raise AlreadyExists(f"A client {client_id} exists already.") from None
    if school_ids:
        links = [{"client_id": client_id, "school_id": school_id} for school_id in sorted(set(school_ids))]
        try:
            connection.execute(insert(client_schools), links)
        except IntegrityError:
            raise UnknownSchool("One of the schools does not exist.") from None
    return secret


def list_clients(connection: Connection) -> list[Client]:
    """List every client, revoked ones too, by id."""
    links: dict[str, list[UUID]] = {}
    for client_id, school_id in connection.execute(
        select(client_schools).order_by(client_schools.c.school_id)
    ):
        links.setdefault(client_id, []).append(school_id)
    rows = connection.execute(select(clients).order_by(clients.c.id))
    return [
        Client(
            id=row.id,
            all_schools=row.all_schools,
            schools=tuple(links.get(row.id, ())),
            all_permissions=row.all_permissions,
            permissions=tuple(row.permissions),
            revoked=row.revoked_at is not None,
        )
        for row in rows
    ]


def revoke_client(connection: Connection, client_id: str) -> None:
    """Take a client's grant away; its tokens stop working at once. Raises UnknownClient."""
    changed = connection.execute(
        update(clients)
        .where(clients.c.id == client_id, clients.c.revoked_at.is_(None))
        .values(revoked_at=now())
    )
    if changed.rowcount == 0:
        raise UnknownClient(f"No client {client_id}, or it is revoked already.")


def check_secret(connection: Connection, client_id: str, secret: str) -> bool:
    """Tell whether a client of this id stands and this is its secret.

    PostgreSQL compares the hashes, as the login that serves can't read the one that is stored.
    """
    matches = func.registry.client_secret_matches(client_id, _hashed(secret), type_=Boolean)
    return connection.execute(select(matches)).scalar_one()


def named_schools(connection: Connection, client_id: str) -> list[UUID]:
    """List the schools that a client is granted by name, for its token; none where it has them all."""
    query = (
        select(client_schools.c.school_id)
        .join(clients, clients.c.id == client_schools.c.client_id)
        .where(client_schools.c.client_id == client_id, clients.c.all_schools.is_(False))
        .order_by(client_schools.c.school_id)
    )
    return list(connection.execute(query).scalars())


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
