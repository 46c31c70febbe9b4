"""Machine clients: what an operator lets another server do, and in which schools."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Connection, delete, func, select, update
from sqlalchemy import insert as plain_insert
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from tenants.clock import now
from tenants.exceptions import AlreadyExists, TenancyError, UnknownSchool
from tenants.registry.schools import client_schools, clients


class UnknownClient(TenancyError):
    """No client has this id, or it has been revoked."""


@dataclass(frozen=True, slots=True)
class Client:
    """A grant: the schools a client may enter and what it may do there, unless its token says so itself.

    `tells_addresses`: the addresses are believed that it tells of its end users.
    """

    id: str
    all_schools: bool
    schools: tuple[UUID, ...]
    all_permissions: bool
    permissions: tuple[str, ...]
    revoked: bool
    tells_addresses: bool = False

    def as_record(self) -> dict[str, Any]:
        """The client as an operator sees it, ready for JSON."""
        return {
            "id": self.id,
            "schools": "all" if self.all_schools else [str(school) for school in self.schools],
            "permissions": "all" if self.all_permissions else list(self.permissions),
            "revoked": self.revoked,
            "tells_addresses": self.tells_addresses,
        }


def create_client(
    connection: Connection,
    *,
    client_id: str,
    school_ids: Collection[UUID] = (),
    all_schools: bool = False,
    permissions: Collection[str] = (),
    all_permissions: bool = False,
    tells_addresses: bool = False,
) -> str:
    """Grant a client its schools and permissions; return its secret, which is stored nowhere.

    The secret has 256 random bits, so one round of SHA-256 guards it as well as a slow hash would.
    The id of a client that was revoked can be granted anew; no token of before is valid then. Raises AlreadyExists,
    UnknownSchool.
    """
    secret = secrets.token_urlsafe(32)
    grant = {
        "secret_hash": _hashed(secret),
        "all_schools": all_schools,
        "all_permissions": all_permissions,
        "permissions": sorted(set(permissions)),
        "tells_addresses": tells_addresses,
        "created_at": now(),
    }
    granted = (
        insert(clients)
        .values(id=client_id, **grant)
        .on_conflict_do_update(
            index_elements=[clients.c.id],
            set_={**grant, "revoked_at": None, "session_number": clients.c.session_number + 1},
            where=clients.c.revoked_at.is_not(None),
        )
        .returning(clients.c.id)
    )
    if connection.execute(granted).one_or_none() is None:
        raise AlreadyExists(f"A client {client_id} exists already.")
    connection.execute(delete(client_schools).where(client_schools.c.client_id == client_id))
    if school_ids:
        links = [{"client_id": client_id, "school_id": school_id} for school_id in sorted(set(school_ids))]
        try:
            connection.execute(plain_insert(client_schools), links)
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
            tells_addresses=row.tells_addresses,
        )
        for row in rows
    ]


def rotate_secret(connection: Connection, client_id: str, *, end_tokens: bool = False) -> str:
    """Give a client another secret and return it; the one before ends. Raises UnknownClient.

    Its tokens go on until they expire, unless `end_tokens`.
    """
    secret = secrets.token_urlsafe(32)
    changed = connection.execute(
        update(clients)
        .where(clients.c.id == client_id, clients.c.revoked_at.is_(None))
        .values(secret_hash=_hashed(secret), session_number=clients.c.session_number + int(end_tokens))
    )
    if changed.rowcount == 0:
        raise UnknownClient(f"No client {client_id}, or it is revoked.")
    return secret


def let_tell_addresses(connection: Connection, client_id: str, allowed: bool) -> None:
    """Let a client tell the addresses of its end users, or no more, from its next request on. Raises UnknownClient."""
    changed = connection.execute(
        update(clients)
        .where(clients.c.id == client_id, clients.c.revoked_at.is_(None))
        .values(tells_addresses=allowed)
    )
    if changed.rowcount == 0:
        raise UnknownClient(f"No client {client_id}, or it is revoked.")


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


def token_claims(connection: Connection, client_id: str) -> tuple[int, list[UUID]]:
    """Read what a client's token says: its session number, and the schools that it is granted by name.

    No schools where it has them all. Read it before the secret is checked: where the secret is changed meanwhile, the
    token is one of before.
    """
    query = (
        select(clients.c.session_number, client_schools.c.school_id)
        .outerjoin_from(
            clients,
            client_schools,
            (client_schools.c.client_id == clients.c.id) & clients.c.all_schools.is_(False),
        )
        .where(clients.c.id == client_id)
        .order_by(client_schools.c.school_id)
    )
    rows = connection.execute(query).all()
    return (rows[0].session_number if rows else 0), [row.school_id for row in rows if row.school_id]


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
