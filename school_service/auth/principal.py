"""The caller: what its token says (the database is not asked), then what it may do in the school."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from school_service.core.errors import Forbidden, Invalid, NotAuthenticated
from tenants.connections.binding import Entry

LONGEST_NAME = 255  # characters of a client's name (OpenID Connect Core, section 2, `sub`)

CANONICAL_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class BadSchool(Invalid):
    """X-SCHOOL-ID is missing where it is needed, or is no uuid (400)."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What a verified token says of its bearer.

    `user_id`: a user of the service; the token works in one school, the permissions are those of the roles.
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
        """Choose the school by X-SCHOOL-ID or, where that is optional and absent, by the token's only school.

        Raises BadSchool, and Forbidden where the token does not cover the school.
        """
        if header is None:
            if required:
                raise BadSchool("The header X-SCHOOL-ID is missing.")
            if self.schools is None or len(self.schools) != 1:
                raise BadSchool(
                    "The header X-SCHOOL-ID is missing, and the token does not name exactly one school."
                )
            return next(iter(self.schools))
        if not CANONICAL_UUID.fullmatch(header):
            raise BadSchool("The header X-SCHOOL-ID must be a uuid.")
        school_id = UUID(header)
        if self.schools is not None and school_id not in self.schools:
            raise Forbidden("The token does not cover this school.")
        return school_id

    def entry(self, school_id: UUID, user_state: str, *, read_only: bool) -> Entry:
        """Say how the caller enters a school; `user_state` is the SELECT of a user's state, a row or none."""
        if self.user_id is not None:
            return Entry(school_id, read_only, state=user_state, state_parameters=(str(self.user_id),))
        client_id = self.client_id or ""
        return Entry(
            school_id,
            read_only,
            client=client_id if self.granted else None,
            client_state=client_id if self.permissions is None else None,
        )

    def principal(self, state: Mapping[str, Any] | None) -> Principal:
        """Join the caller with its state in the school, the row that `tenants.connections.engines.enter` returns.

        Raises NotAuthenticated where the user is deleted.
        """
        if self.user_id is not None:
            if state is None:
                raise NotAuthenticated("The token's user does not exist any more.")
            return Principal(self, frozenset(state["permissions"]), everything=False, user_name=state["name"])
        if self.permissions is not None:
            return Principal(self, self.permissions, everything=False)
        if state is None:
            return Principal(self, frozenset(), everything=False)
        return Principal(self, frozenset(state["permissions"]), everything=state["all_permissions"])


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller inside a school, with what it may do there.

    `everything` is the grant of all permissions, `user_name` the first and last name of a user.
    """

    caller: Caller
    permissions: frozenset[str]
    everything: bool
    user_name: str | None = None

    @property
    def user_id(self) -> UUID | None:
        """The user, or None for a machine client."""
        return self.caller.user_id

    @property
    def actor(self) -> str:
        """Who acts: the user's id or the client's."""
        return self.caller.actor

    @property
    def actor_name(self) -> str:
        """The name of who acts, for the audit log: the user's, or the client's id."""
        return self.user_name or self.actor

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
    return frozenset(
        UUID(value) for value in values if isinstance(value, str) and CANONICAL_UUID.fullmatch(value)
    )


def client_of(claims: dict[str, Any]) -> str | None:
    """Read whom an outside token names: by `azp`, else `client_id`, else `sub`.

    None where that can't be a name, in logs and in the database: it must be short, and visible.
    """
    name = next(
        (claims[claim] for claim in ("azp", "client_id", "sub") if claims.get(claim) is not None), None
    )
    if not isinstance(name, str) or not name.isprintable():
        return None
    return name if 0 < len(name) <= LONGEST_NAME else None


def permissions_of(claims: dict[str, Any]) -> frozenset[str] | None:
    """Read the permissions that a token carries in `permissions` (array), else in `scope` (space-separated).

    None where it has neither. What is of another form carries no permission, and does not leave the decision
    to the client's grant.
    """
    permissions, scope = claims.get("permissions"), claims.get("scope")
    if permissions is not None:
        named = permissions if isinstance(permissions, list) else []
        return frozenset(value for value in named if isinstance(value, str))
    if scope is not None:
        return frozenset(scope.split() if isinstance(scope, str) else ())
    return None
