"""A client for people's sign-in, and its schools, as the sign-in page needs them, in one round trip."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Select, bindparam, func, null, or_, select

from tenants.registry.schools import IN_FORCE, SHORT_NAME, client_schools, clients, schools

MOST_CHOICES = 12
"""The most schools of a client for a person to choose from by name."""
_OF_SCHOOL = ("id", "name", "short_name", "status", "revision")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class SchoolOfClient:
    """A school open to a client; `status` and `revision` as the registry has them."""

    id: UUID
    name: str
    short_name: str | None
    status: str
    revision: str

    @property
    def known_as(self) -> str:
        """Its name in an address: its short name, or without one its id."""
        return self.short_name or str(self.id)


@dataclass(frozen=True, slots=True)
class PeoplesClient:
    """A client for people's sign-in.

    `user_permissions`: the most permissions of its tokens; None if a person's roles alone decide. `named` is the school
    asked for, None if the client has no such school. `schools` are all its schools, by name, or none if they are more
    than MOST_CHOICES.
    """

    id: str
    name: str
    session_number: int
    redirect_uris: tuple[str, ...]
    user_permissions: tuple[str, ...] | None
    idle_days: int
    session_days: int
    named: SchoolOfClient | None
    schools: tuple[SchoolOfClient, ...]
    has_several: bool

    @property
    def only_school(self) -> SchoolOfClient | None:
        """The client's school, if it has one alone."""
        return self.schools[0] if len(self.schools) == 1 and not self.has_several else None


def find_peoples_client(connection: Connection, client_id: str, school: str | None) -> PeoplesClient | None:
    """Find a client in force, and its school of this name (`name_of_school`); None without such a client."""
    column, name = _named_by(school) if school else (None, None)
    row = connection.execute(_client_query(column), {"client": client_id, "school": name}).one_or_none()
    if row is None:
        return None
    schools = tuple(_school(school) for school in row.schools or ())
    has_many = len(schools) > MOST_CHOICES
    return PeoplesClient(
        id=row.id,
        name=row.name or row.id,
        session_number=row.session_number,
        redirect_uris=tuple(row.redirect_uris),
        user_permissions=None if row.user_permissions is None else tuple(row.user_permissions),
        idle_days=row.idle_days,
        session_days=row.session_days,
        named=None if row.named is None else _school(row.named),
        schools=()
        if has_many
        else tuple(sorted(schools, key=lambda school: (school.name.casefold(), school.id))),
        has_several=len(schools) > 1,
    )


class NamedClient(NamedTuple):
    """A client's name as people are shown it, and its session number."""

    name: str
    session_number: int


def find_names(connection: Connection, client_ids: Collection[str]) -> dict[str, NamedClient]:
    """Find clients in force, not revoked ones, by their ids."""
    query = select(clients.c.id, clients.c.name, clients.c.session_number).where(
        clients.c.id.in_(client_ids), IN_FORCE
    )
    return {row.id: NamedClient(row.name or row.id, row.session_number) for row in connection.execute(query)}


def find_named_school(connection: Connection, school: str) -> SchoolOfClient | None:
    """Find the school of a name (`name_of_school`), for any caller; None without such a school."""
    columns = (schools.c[name] for name in _OF_SCHOOL)
    column, name = _named_by(school)
    query = select(*columns).where(schools.c.deletion.is_(None), schools.c[column] == name)
    row = connection.execute(query).one_or_none()
    return None if row is None else SchoolOfClient(**row._mapping)


@cache
def _client_query(school_by: str | None) -> Select[Any]:
    """Select the `client`, with its schools and the one with `school` in the column `school_by`.

    It is built once for each column: building takes longer than running it.
    """
    granted = or_(
        clients.c.all_schools,
        select(client_schools.c.school_id)
        .where(client_schools.c.client_id == clients.c.id, client_schools.c.school_id == schools.c.id)
        .correlate(clients, schools)
        .exists(),
    )
    told = func.json_build_object(*(part for name in _OF_SCHOOL for part in (name, schools.c[name])))
    of_client = select(told.label("school")).where(granted, schools.c.deletion.is_(None)).correlate(clients)
    some = of_client.limit(MOST_CHOICES + 1).subquery("some")
    named: Any = null()
    if school_by is not None:
        named = of_client.where(schools.c[school_by] == bindparam("school")).scalar_subquery()
    return select(
        clients.c.id,
        clients.c.name,
        clients.c.session_number,
        clients.c.redirect_uris,
        clients.c.user_permissions,
        clients.c.idle_days,
        clients.c.session_days,
        select(func.json_agg(some.c.school)).scalar_subquery().label("schools"),
        named.label("named"),
    ).where(clients.c.id == bindparam("client"), IN_FORCE)


def name_of_school(text: str) -> str:
    """Write a school's id or short name as it is stored, in lower case; empty for all other texts."""
    name = text.strip().lower()
    return name if _UUID.fullmatch(name) or SHORT_NAME.fullmatch(name) else ""


def _named_by(school: str) -> tuple[str, UUID | str]:
    """Tell the column of a school's name, and its value there."""
    return ("id", UUID(school)) if _UUID.fullmatch(school) else ("short_name", school)


def _school(told: dict[str, Any]) -> SchoolOfClient:
    return SchoolOfClient(**{**told, "id": UUID(told["id"])})
