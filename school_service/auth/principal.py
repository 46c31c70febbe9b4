"""The caller: what its token says (without asking the database), and then what it may do in the school it enters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from school_service.errors import Forbidden, Invalid, NotAuthenticated
from tenants.binding import Entry

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class BadSchool(Invalid):
    """X-SCHOOL-ID is missing where it is needed, or is no uuid (400)."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What a verified token says of its bearer.

    `user_id`: a user of the service, whose token works in its one school; its permissions are those of its roles.
    `client_id`: a machine client, or whoever an outside token names (`azp`, `client_id` or `sub`).
    `own`: the service issued the token itself.
    `schools`: the schools that the token names; None where it names none and the grant of the client decides.
    `granted`: the client's grant in the registry must cover the school.
    `permissions`: those that the token carries; None where roles or the grant decide.
    """

    user_id: UUID | None
    client_id: str | None
    own: bool
    schools: frozenset[UUID] | None
    granted: bool
    permissions: frozenset[str] | None

    @property
    def actor(self) -> str:
        """Who acts, for logs and the audit log: the user's id or the client's."""
        return str(self.user_id) if self.user_id else self.client_id or ""

    def school(self, header: str | None, *, required: bool) -> UUID:
        """Choose the school from X-SCHOOL-ID or, where that is optional and absent, from the token's only school.

        Raises BadSchool, and Forbidden where the token does not cover the school.
        """
        if header is None:
            if required:
                raise BadSchool("The header X-SCHOOL-ID is missing.")
            if self.schools is None or len(self.schools) != 1:
                raise BadSchool("The header X-SCHOOL-ID is missing, and the token does not name exactly one school.")
            return next(iter(self.schools))
        if not _UUID.fullmatch(header):
            raise BadSchool("The header X-SCHOOL-ID must be a uuid.")
        school_id = UUID(header)
        if self.schools is not None and school_id not in self.schools:
            raise Forbidden("The token does not cover this school.")
        return school_id

    def entry(self, school_id: UUID, user_state: str, *, read_only: bool) -> Entry:
        """Say how the caller enters a school; `user_state` is the SELECT of a user's state (one row, or none)."""
        if self.user_id is not None:
            return Entry(school_id, read_only, state=user_state, state_parameters=(str(self.user_id),))
        client_id = self.client_id or ""
        return Entry(
            school_id,
            read_only,
            client=client_id if self.granted else None,
            client_state=client_id if self.permissions is None else None,
        )

    def principal(self, state: Any) -> Principal:
        """Join the caller with its state in the school, the row that `tenants.database.enter` returns.

        Raises NotAuthenticated where the user is deleted.
        """
        if self.user_id is not None:
            if state is None:
                raise NotAuthenticated("The token's user does not exist any more.")
            return Principal(self, frozenset(state.permissions), everything=False)
        if self.permissions is not None:
            return Principal(self, self.permissions, everything=False)
        if state is None:
            return Principal(self, frozenset(), everything=False)
        return Principal(self, frozenset(state.permissions), everything=state.all_permissions)


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller inside a school, with what it may do there; `everything` is the grant of all permissions."""

    caller: Caller
    permissions: frozenset[str]
    everything: bool

    @property
    def user_id(self) -> UUID | None:
        """The user, or None for a machine client."""
        return self.caller.user_id

    @property
    def actor(self) -> str:
        """Who acts: the user's id or the client's."""
        return self.caller.actor

    def holds(self, permission: str) -> bool:
        """Tell whether the caller may do this."""
        return self.everything or permission in self.permissions

    def demand(self, permissions: Iterable[str], purpose: str = "This") -> None:
        """Refuse where the caller lacks one of the permissions; raises Forbidden naming those."""
        lacking = sorted({str(permission) for permission in permissions if not self.holds(permission)})
        if lacking:
            word = "permission" if len(lacking) == 1 else "permissions"
            raise Forbidden(f"{purpose} needs the {word} {', '.join(lacking)}.")


def schools_of(claim: Any) -> frozenset[UUID] | None:
    """Read the schools that a token names: one uuid or an array of them; None where the claim is absent.

    What is no uuid names no school.
    """
    if claim is None:
        return None
    values = claim if isinstance(claim, list) else [claim]
    return frozenset(UUID(value) for value in values if isinstance(value, str) and _UUID.fullmatch(value))


def permissions_of(claims: dict[str, Any]) -> frozenset[str] | None:
    """Read the permissions that a token carries in `permissions` (array) or `scope` (space-separated), or None."""
    permissions, scope = claims.get("permissions"), claims.get("scope")
    if isinstance(permissions, list):
        return frozenset(value for value in permissions if isinstance(value, str))
    if isinstance(scope, str):
        return frozenset(scope.split())
    return None


