"""The caller: a verified token's content, without the database; then the principal in its school."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, NoReturn
from uuid import UUID

from school_service.core.error_types import ErrorType
from school_service.core.errors import Forbidden, Invalid, NotAuthenticated
from school_service.core.texts import mailbox
from tenants.clock import now
from tenants.connections.binding import SchoolBinding
from tenants.names import is_storable

MAX_CLIENT_ID_LENGTH = 255  # characters (OpenID Connect Core, section 2, `sub`)

SCHOOLS_REMEMBERED = 10_000  # values of X-SCHOOL-ID that are cached with the UUID that was read from them

CANONICAL_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class InvalidSchoolHeader(Invalid):
    """X-SCHOOL-ID is missing though it is needed, or is no uuid (400)."""

    type = ErrorType.SCHOOL_HEADER


class NotLinked(Forbidden):
    """An outside sign-in is linked to no account of the school."""

    type = ErrorType.NOT_LINKED

    def __init__(self) -> None:
        super().__init__("This sign-in is linked to no account of the school.", {"token": ["not linked"]})


class LinkGone(NotLinked):
    """The link between the identity of a token and its user is gone."""


class PasswordGiven(Forbidden):
    """The user has a password given by somebody else, to be changed first."""

    type = ErrorType.PASSWORD_CHANGE

    def __init__(self, user_id: UUID | None) -> None:
        super().__init__(
            f"Your password was given to you and must be changed first: PUT /users/{user_id}/password."
        )


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """The content of a verified token on its bearer.

    `user_id`: a user of the service; the token works in one school, the permissions are those of the roles.
    `client_id`: a machine client, or the client named by an outside token (`azp`, `client_id` or `sub`). The token is
    refused if this client is revoked in the registry. `own`: the service issued the token itself. `schools`: the
    schools named by the token; None if it names none and the grant of the client decides. `granted`: the client's grant
    in the registry must cover the school. `permissions`: those carried by the token; None if roles or the grant decide.
    `session_number`: the number of the user or client when the service issued the token; their other tokens have ended.

    Of a token given to a user by signing in by a client, `client_id`: `session_id` is the session, still to be there;
    `client_session` the client's session number, `scope` the granted scope. `ceiling`, unless it is None, has the
    permissions to narrow those of the roles, or of the client's grant, to; without any the token is for signing in
    alone.
    `link`: issuer and subject of an outside token, by which its user was found; the link must still be there.

    `identity`: issuer and subject of an outside token, by which a user of the request's school is still to be found;
    `email`: the address verified by its provider, as it says itself, in the form for comparing (`mailbox`).
    """

    user_id: UUID | None
    client_id: str | None
    own: bool
    schools: frozenset[UUID] | None
    granted: bool
    permissions: frozenset[str] | None
    session_number: int | None = None
    session_id: UUID | None = None
    client_session: int | None = None
    scope: frozenset[str] = frozenset()
    ceiling: frozenset[str] | None = None
    link: tuple[str, str] | None = None
    identity: tuple[str, str] | None = None
    email: str | None = None
    actor: str = field(init=False)
    """The user's id or the client's, as the actor in logs and in the audit log."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "actor", str(self.user_id) if self.user_id else self.client_id or "")

    @property
    def is_for_signing_in(self) -> bool:
        """Tell whether the token names its user, and does nothing else."""
        return self.ceiling is not None and not self.ceiling

    def unnamed(self, permissions: Iterable[str]) -> set[str]:
        """Find the permissions, of these, missing in the ceiling; none if there is no ceiling.

        All narrowing of a token stands here: condition and judgement of a policy ask it alike.
        """
        return set() if self.ceiling is None else {str(each) for each in permissions} - self.ceiling

    def of_linked(self, user_id: UUID) -> VerifiedToken:
        """Make the token of the user linked to its identity: their roles decide, no claim of the token."""
        return replace(self, user_id=user_id, permissions=None, link=self.identity, identity=None, email=None)

    @property
    def is_of_client(self) -> bool:
        """Tell whether it is the token of a machine client for itself, so its grant in the registry holds for it."""
        return self.user_id is None and (self.own or self.granted)

    def choose_school(self, header: str | None, *, required: bool) -> UUID:
        """Choose the school by X-SCHOOL-ID or, while that is optional and absent, by the token's only school.

        Raises InvalidSchoolHeader, and Forbidden for a school not covered by the token.
        """
        if header is None:
            if required:
                raise InvalidSchoolHeader("The header X-SCHOOL-ID is missing.")
            if self.schools is None or len(self.schools) != 1:
                raise InvalidSchoolHeader(
                    "The header X-SCHOOL-ID is missing, and the token does not name exactly one school."
                )
            return next(iter(self.schools))
        school_id = _named_school(header)
        if self.schools is not None and school_id not in self.schools:
            raise Forbidden("The token does not cover this school.")
        return school_id

    def bind_to(
        self, school_id: UUID, user_state: str, *, read_only: bool, relations: bool = False
    ) -> SchoolBinding:
        """Make the binding of a transaction; `user_state` is the SELECT of a user's state, a row or none.

        `relations` reads the relations also of a user whose permissions reach the whole school.
        """
        if self.user_id is not None:
            return SchoolBinding(
                school_id,
                read_only,
                client=self.client_id,
                granted=False,
                state=user_state,
                state_parameters=(
                    self.actor,
                    self.actor,
                    now(),
                    relations,
                    None if self.session_id is None else str(self.session_id),
                    *(self.link or _NO_LINK),
                ),
                client_session=self.client_session,
            )
        return SchoolBinding(school_id, read_only, client=self.client_id or "", granted=self.granted)

    def stands(self, *, with_given_password: bool) -> tuple[str, tuple[Any, ...]]:
        """Write the condition, as SQL, for making a principal of a user's state, and its parameters.

        It is over the columns of the state, `caller`, and empty if there is none. A user with a password to be changed
        becomes a principal only `with_given_password`.
        """
        sql = _stands(self.own, self.link is not None, with_given_password)
        return sql, (self.session_number,) if self.own else ()

    def principal(self, state: Mapping[str, Any] | None) -> Principal:
        """Make the principal of the token and its state in the school, the row read with its binding.

        Raises NotAuthenticated if the user is deleted, or the session of the token has ended.
        """
        if self.user_id is not None:
            if state is None:
                raise NotAuthenticated("The token's user does not exist any more.")
            if self.own and state["session_number"] != self.session_number:
                raise NotAuthenticated("The token's session has ended.")
            if self.link is not None and state["session_number"] < 0:
                raise LinkGone
            permissions, own_permissions = (
                frozenset(state["permissions"]),
                frozenset(state["own_permissions"]),
            )
            if self.ceiling is not None:
                permissions, own_permissions = permissions & self.ceiling, own_permissions & self.ceiling
            return Principal(
                self,
                permissions,
                all_permissions=False,
                own_permissions=own_permissions,
                user_name=state["name"],
                # An outside provider's token was not given for the password.
                must_change_password=self.own and state["must_change_password"],
            )
        if self.own and state is not None and state["session_number"] != self.session_number:
            raise NotAuthenticated("The token is of an earlier grant of its client, or was ended.")
        if self.permissions is not None:
            return Principal(self, self.permissions, all_permissions=False)
        if state is None:
            return Principal(self, frozenset(), all_permissions=False)
        if self.ceiling is None:
            return Principal(self, frozenset(state["permissions"]), all_permissions=state["all_permissions"])
        within = self.ceiling if state["all_permissions"] else self.ceiling.intersection(state["permissions"])
        return Principal(self, within, all_permissions=False)


@lru_cache(SCHOOLS_REMEMBERED)
def _named_school(header: str) -> UUID:
    """Read X-SCHOOL-ID; raises InvalidSchoolHeader."""
    if not CANONICAL_UUID.fullmatch(header):
        raise InvalidSchoolHeader("The header X-SCHOOL-ID must be a uuid.")
    return UUID(header)


_NO_LINK = (None, None)


@cache
def _stands(own: bool, linked: bool, with_given_password: bool) -> str:
    parts = ["caller.session_number IS NOT DISTINCT FROM %s::int"] if own else []
    if own and not with_given_password:
        # An outside provider's token was not given for the password.
        parts.append("NOT caller.must_change_password")
    if linked:
        parts.append("caller.session_number >= 0")
    return " AND ".join(parts)


@dataclass(frozen=True, slots=True)
class Principal:
    """The bearer of a token inside a school, with its permissions there.

    `permissions` reach the whole school, `own_permissions` the bearer's own records alone. `all_permissions` is the
    grant of every permission, `user_name` the first and last name of a user. `must_change_password`: until the user has
    set another password, nothing else is allowed.
    """

    token: VerifiedToken
    permissions: frozenset[str]
    all_permissions: bool
    own_permissions: frozenset[str] = frozenset()
    user_name: str | None = None
    must_change_password: bool = False

    @property
    def user_id(self) -> UUID | None:
        """The user, or None for a machine client."""
        return self.token.user_id

    @property
    def actor(self) -> str:
        """The user's id or the client's, as the actor."""
        return self.token.actor

    @property
    def actor_name(self) -> str:
        """The name of the actor, for the audit log: the user's, or the client's id."""
        return self.user_name or self.actor

    def has(self, permission: str) -> bool:
        """Tell whether the principal has a permission for the whole school."""
        return self.all_permissions or permission in self.permissions

    def may(self, permission: str) -> bool:
        """Tell whether the principal has a permission, for the whole school or for their own records alone."""
        return self.has(permission) or permission in self.own_permissions

    def require_named(self, permissions: Iterable[str]) -> None:
        """Refuse a narrowed token if it does not name one of the permissions; raises Forbidden naming those.

        The bearer's roles need not have them.
        """
        missing = self.token.unnamed(permissions)
        if missing:
            self._refuse(missing, "This")

    def require(self, permissions: Iterable[str], purpose: str = "This") -> None:
        """Refuse a principal without one of the permissions for the whole school; raises Forbidden naming those."""
        missing = {str(permission) for permission in permissions if not self.has(permission)}
        if missing:
            where = " for the whole school" if missing <= self.own_permissions else ""
            self._refuse(missing, purpose, where)

    def require_own(self, permissions: Iterable[str], purpose: str = "This") -> None:
        """Refuse a principal without one of the permissions, of any reach; raises Forbidden naming those."""
        missing = {str(permission) for permission in permissions if not self.may(permission)}
        if missing:
            self._refuse(missing, purpose)

    @staticmethod
    def _refuse(missing: Collection[str], purpose: str, where: str = "") -> NoReturn:
        word = "permission" if len(missing) == 1 else "permissions"
        raise Forbidden(f"{purpose} needs the {word} {', '.join(sorted(missing))}{where}.")


def schools_claim(claim: Any) -> frozenset[UUID] | None:
    """Read the schools named by a token: one uuid or an array of them; None if the claim is absent.

    Other values name no school.
    """
    if claim is None:
        return None
    values = claim if isinstance(claim, list) else [claim]
    return frozenset(
        UUID(value) for value in values if isinstance(value, str) and CANONICAL_UUID.fullmatch(value)
    )


def client_claim(claims: dict[str, Any]) -> str | None:
    """Read the client named by an outside token: by `azp`, else `client_id`, else `sub`.

    None if it can't be a name, in logs and in the database: it must be short, and visible.
    """
    name = next(
        (claims[claim] for claim in ("azp", "client_id", "sub") if claims.get(claim) is not None), None
    )
    if not isinstance(name, str) or not name.isprintable():
        return None
    return name if 0 < len(name) <= MAX_CLIENT_ID_LENGTH else None


def identity_claims(claims: Mapping[str, Any]) -> tuple[str, str] | None:
    """Read the identity of an outside token, its `iss` and `sub`; None if these can't be linked."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not (isinstance(issuer, str) and isinstance(subject, str) and subject.isprintable()):
        return None
    return (issuer, subject) if 0 < len(subject) <= MAX_CLIENT_ID_LENGTH else None


def email_claim(claims: Mapping[str, Any]) -> str | None:
    """Read the e-mail address of an outside token, in the form for comparing; None unless its provider verified it."""
    email = claims.get("email")
    verified = claims.get("email_verified") is True
    return mailbox(email) if verified and isinstance(email, str) and is_storable(email) else None


def user_claim(value: Any) -> UUID:
    """Read the user of a school, named by id in the claim of AUTH_USER_CLAIM; raises ValueError for anything else."""
    if not isinstance(value, str) or not CANONICAL_UUID.fullmatch(value):
        raise ValueError("the claim names no user by id")
    return UUID(value)


def is_clients_own(claims: Mapping[str, Any], client_id: str | None, client_claim: str | None) -> bool:
    """Tell whether an outside token was issued to a client for itself (RFC 6749, section 4.4), not to an end user.

    It was if `sub` is the client's id or `<id>@clients`, or if the claim of AUTH_CLIENT_CLAIM says so: `name=value` has
    that value, `name` alone has the client's id.
    """
    if client_id is None:
        return False
    if claims.get("sub") in (client_id, f"{client_id}@clients"):
        return True
    if client_claim is None:
        return False
    name, _, value = client_claim.partition("=")
    return bool(claims.get(name) == (value or client_id))


def is_access_token(header: Mapping[str, Any], claims: Mapping[str, Any]) -> bool:
    """Tell whether an outside token is an access token, as far as it says its type.

    ID tokens have a nonce or a hash of an access token or code (OpenID Connect Core, section 2), logout tokens have
    events (OpenID Connect Back-Channel Logout, section 2.4). Types: `typ` in the header (RFC 9068: `at+jwt`), `typ`
    and `token_use` as claims.
    """
    if not _ID_OR_LOGOUT_CLAIMS.isdisjoint(claims):
        return False
    return (
        str(header.get("typ", "JWT")).lower() in {"jwt", "at+jwt", "application/at+jwt"}
        and str(claims.get("typ", "Bearer")).lower() in {"bearer", "at+jwt"}
        and claims.get("token_use", "access") == "access"
    )


_ID_OR_LOGOUT_CLAIMS = frozenset({"nonce", "at_hash", "c_hash", "events"})


def permissions_claim(
    claims: Mapping[str, Any], path: tuple[str, ...] | None = None
) -> frozenset[str] | None:
    """Read the permissions of a token in `permissions` (array), else in `scope` (space-separated).

    With a `path` (AUTH_PERMISSION_CLAIM) in the claim at its end, array or space-separated, and in no other. None if
    there is none. A claim of another form carries no permission, and does not leave the decision to the client's grant.
    """
    if path is not None:
        return _permissions(_at(claims, path), (list, str))
    permissions, scope = claims.get("permissions"), claims.get("scope")
    if permissions is not None:
        return _permissions(permissions, (list,))
    return _permissions(scope, (str,))


def _at(claims: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Follow a path of members: None if one is absent, False if a value on the way has no members."""
    value: Any = claims
    for name in path:
        if value is None:
            return None
        if not isinstance(value, Mapping):
            return False
        value = value.get(name)
    return value


def _permissions(value: Any, forms: tuple[type, ...]) -> frozenset[str] | None:
    if value is None:
        return None
    if type(value) not in forms:
        return frozenset()
    named: list[Any] = value.split() if isinstance(value, str) else value
    return frozenset(name for name in named if isinstance(name, str))
