"""Machine clients: an operator's permissions for another server, and the schools they hold in."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Boolean, Connection, Row, delete, func, or_, select, update
from sqlalchemy import insert as plain_insert
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from tenants.clock import now
from tenants.exceptions import AlreadyExists, TenancyError, UnknownSchool
from tenants.registry.redirect_uris import reserved_in
from tenants.registry.schools import IN_FORCE, client_schools, clients


class UnknownClient(TenancyError):
    """No client has this id, or it has been revoked."""


class NoSecret(TenancyError):
    """A public client has no secret."""


@dataclass(frozen=True, slots=True)
class PeoplesOptions:
    """A client's options for the people signing in by it; nobody signs in by one without redirect URIs.

    `name` is shown to these people, by default the id. `is_public`: it has no secret. `user_permissions` are the most
    permissions of a token of theirs: None for all of their roles, none for nothing but signing in. A session ends after
    `idle_days` without use, and after `session_days`.
    """

    name: str | None = None
    is_public: bool = False
    redirect_uris: tuple[str, ...] = ()
    post_logout_uris: tuple[str, ...] = ()
    user_permissions: tuple[str, ...] | None = None
    idle_days: int = 14
    session_days: int = 90

    def as_row(self) -> dict[str, Any]:
        """The columns of the registry."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True)
class Client:
    """A grant: the schools a client may enter and its permissions there, unless its token says so itself.

    `tells_addresses`: the addresses it tells of its end users are believed. `of_people` are its options for them.
    """

    id: str
    all_schools: bool
    schools: tuple[UUID, ...]
    all_permissions: bool
    permissions: tuple[str, ...]
    revoked: bool
    tells_addresses: bool = False
    of_people: PeoplesOptions = PeoplesOptions()

    def as_record(self) -> dict[str, Any]:
        """The client as an operator sees it, ready for JSON."""
        return {
            "id": self.id,
            "schools": "all" if self.all_schools else [str(school) for school in self.schools],
            "permissions": "all" if self.all_permissions else list(self.permissions),
            "revoked": self.revoked,
            "tells_addresses": self.tells_addresses,
            **self.of_people.as_row(),
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
    of_people: PeoplesOptions = PeoplesOptions(),
) -> str:
    """Grant a client its schools and permissions; return its secret, stored nowhere; a public one's is empty.

    The secret has 256 random bits, so one round of SHA-256 guards it as well as a slow hash would. The id of a revoked
    client can be granted anew; no token of before is valid then. Raises AlreadyExists, UnknownSchool.
    """
    secret = _new_secret(of_people)
    grant = {
        "secret_hash": _hashed(secret) if secret else None,
        "all_schools": all_schools,
        "all_permissions": all_permissions,
        "permissions": sorted(set(permissions)),
        "tells_addresses": tells_addresses,
        "created_at": now(),
        **of_people.as_row(),
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
    return [_client_of(row, links.get(row.id, ())) for row in rows]


def rotate_secret(connection: Connection, client_id: str, *, end_tokens: bool = False) -> str:
    """Give a client another secret and return it; the one before ends. Raises UnknownClient.

    Its tokens, and those of the people signed in by it, go on until they expire, unless `end_tokens`. A public client
    gets no secret: its tokens can be ended, and the secret is empty. Raises NoSecret unless they are.
    """
    client = find_client(connection, client_id)
    if client.of_people.is_public and not end_tokens:
        raise NoSecret(f"The client {client_id} is public: it has no secret. --end-tokens ends its tokens.")
    secret = _new_secret(client.of_people)
    hashed = {"secret_hash": _hashed(secret)} if secret else {}
    connection.execute(
        update(clients)
        .where(clients.c.id == client_id)
        .values(**hashed, session_number=clients.c.session_number + int(end_tokens))
    )
    return secret


def find_client(connection: Connection, client_id: str) -> Client:
    """Find a client in force, not a revoked one, and lock it; without its schools. Raises UnknownClient."""
    wanted = select(clients).where(clients.c.id == client_id, IN_FORCE)
    row = connection.execute(wanted.with_for_update()).one_or_none()
    if row is None:
        raise UnknownClient(f"No client {client_id}, or it is revoked.")
    return _client_of(row, ())


def change_client(
    connection: Connection,
    client_id: str,
    *,
    tells_addresses: bool | None = None,
    of_people: Mapping[str, Any] | None = None,
    end_sessions: bool = False,
) -> str:
    """Change the given options of a client, from its next request on; `of_people` are members of PeoplesOptions.

    Its tokens stay as they are, unless `end_sessions`, but a lower ceiling holds from each session's next refresh. Its
    secret stays, too, while `is_public` does: a newly public client has none any more. The new secret of a client no
    longer public is returned, in all other cases an empty text. Raises UnknownClient.
    """
    before = find_client(connection, client_id).of_people
    options = replace(before, **(of_people or {}))
    values, secret = options.as_row(), ""
    if options.is_public != before.is_public:
        secret = _new_secret(options)
        values["secret_hash"] = _hashed(secret) if secret else None
    if tells_addresses is not None:
        values["tells_addresses"] = tells_addresses
    values["session_number"] = clients.c.session_number + int(end_sessions)
    connection.execute(update(clients).where(clients.c.id == client_id).values(**values))
    return secret


def is_lowered(before: Collection[str] | None, after: Collection[str] | None) -> bool:
    """Tell whether a ceiling has less than the one before; None is no ceiling: the roles alone decide."""
    return after is not None and (before is None or not set(before) <= set(after))


def uris_with_reserved_names(connection: Connection) -> list[str]:
    """List redirect URIs with a parameter of our answer in their query, each with its client; new ones are refused."""
    query = select(clients.c.id, clients.c.redirect_uris).where(IN_FORCE)
    rows = connection.execute(query.order_by(clients.c.id))
    return [f"{row.id}: {uri}" for row in rows for uri in row.redirect_uris if reserved_in(uri)]


def revoke_client(connection: Connection, client_id: str) -> None:
    """Take a client's grant away; its tokens stop working at once. Raises UnknownClient."""
    in_force = update(clients).where(clients.c.id == client_id, IN_FORCE)
    changed = connection.execute(in_force.values(revoked_at=now()))
    if changed.rowcount == 0:
        raise UnknownClient(f"No client {client_id}, or it is revoked already.")


def check_secret(connection: Connection, client_id: str, secret: str) -> bool:
    """Tell whether a client of this id stands and this is its secret.

    PostgreSQL compares the hashes, as the serving login can't read the stored one.
    """
    matches = func.registry.client_secret_matches(client_id, _hashed(secret), type_=Boolean)
    return connection.execute(select(matches)).scalar_one()


def granted_in(
    connection: Connection, client_ids: Collection[str], school_id: UUID
) -> dict[str, list[str] | None]:
    """Read the permissions of clients in a school, by id; None for all permissions.

    Clients revoked, unknown, or not granted the school are left out.
    """
    entered = select(client_schools.c.client_id).where(client_schools.c.school_id == school_id)
    query = select(clients.c.id, clients.c.permissions, clients.c.all_permissions).where(
        clients.c.id.in_(client_ids),
        IN_FORCE,
        or_(clients.c.all_schools, clients.c.id.in_(entered)),
    )
    return {
        row.id: None if row.all_permissions else list(row.permissions) for row in connection.execute(query)
    }


class TokenClient(NamedTuple):
    """The token endpoint's view of a client."""

    id: str
    is_public: bool
    session_number: int
    idle_days: int
    session_days: int
    post_logout_uris: list[str]
    user_permissions: list[str] | None


def find_token_client(connection: Connection, client_id: str) -> TokenClient | None:
    """Find a client in force, not a revoked one, as it is now; None without such a client."""
    columns = [clients.c[name] for name in TokenClient._fields]
    wanted = select(*columns).where(clients.c.id == client_id, IN_FORCE)
    row = connection.execute(wanted).one_or_none()
    return None if row is None else TokenClient(*row)


class TokenClaims(NamedTuple):
    """The grant of a client at the token endpoint: no schools if it has them all, None for all permissions."""

    session_number: int
    schools: list[UUID]
    permissions: list[str] | None


def token_claims(connection: Connection, client_id: str) -> TokenClaims:
    """Read the contents of a client's token: its session number, the schools granted to it by name, its permissions.

    Read it before the secret is checked: if the secret is changed meanwhile, the token is one of before.
    """
    grant = clients.c.session_number, clients.c.all_permissions, clients.c.permissions
    query = (
        select(*grant, client_schools.c.school_id)
        .outerjoin_from(
            clients,
            client_schools,
            (client_schools.c.client_id == clients.c.id) & clients.c.all_schools.is_(False),
        )
        .where(clients.c.id == client_id)
        .order_by(client_schools.c.school_id)
    )
    rows = connection.execute(query).all()
    if not rows:
        return TokenClaims(0, [], [])
    permissions = None if rows[0].all_permissions else list(rows[0].permissions)
    schools = [row.school_id for row in rows if row.school_id]
    return TokenClaims(rows[0].session_number, schools, permissions)


def _client_of(row: Row[Any], schools: Iterable[UUID]) -> Client:
    names = (field.name for field in fields(PeoplesOptions))
    options = {name: _as_tuple(getattr(row, name)) for name in names}
    return Client(
        id=row.id,
        all_schools=row.all_schools,
        schools=tuple(schools),
        all_permissions=row.all_permissions,
        permissions=tuple(row.permissions),
        revoked=row.revoked_at is not None,
        tells_addresses=row.tells_addresses,
        of_people=PeoplesOptions(**options),
    )


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _new_secret(options: PeoplesOptions) -> str:
    return "" if options.is_public else secrets.token_urlsafe(32)


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
