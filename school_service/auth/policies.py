"""Policies: the admission to an operation, judged in SQL by the statement of the read, and in Python by the same state.

A policy says the same twice. `condition` is the condition on the state of a user for running the read in the message
that reads the state. `admit` judges a principal by the same state and says how they are let in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self
from uuid import UUID

from school_service.auth.principal import PasswordGiven, Principal, VerifiedToken
from school_service.core.errors import Forbidden
from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING, REFUSED, Own, Reach, leading, reach_by

Condition = tuple[str, tuple[Any, ...]]
"""An expression of SQL over the columns of a user's state, `caller`, and its parameters."""


class Admission(NamedTuple):
    """The way a principal is let in: `by_own` by permissions as OWN; `reach` is None for the whole school."""

    by_own: bool = False
    reach: Reach | None = None


_WHOLE = Admission()


@dataclass(frozen=True, slots=True)
class Policy:
    """Lets in the holders of all permissions, for the whole school or, if `own` serves them, as OWN.

    A narrowed token has to name the permissions, also if the policy asks for none of them. The other policies let in
    some callers without them.
    """

    permissions: tuple[Permission, ...] = ()
    own: Own = REFUSED

    name: ClassVar[str] = "permission"
    # Whether the relations of a user are read also where all their permissions reach the whole school.
    reads_relations: ClassVar[bool] = False
    # Whether the first message carries the query of records in reach, instead of the one for the whole school.
    reads_own: ClassVar[bool] = False
    # Whether a token will do that is for signing in alone, and an identity that is linked to nobody.
    takes_signing_in: ClassVar[bool] = False
    takes_unlinked: ClassVar[bool] = False

    def at(self, path: Mapping[str, Any]) -> Self:
        """Give the policy of a request with these parameters of its path."""
        return self

    def condition(self, token: VerifiedToken) -> Condition:
        """Write the condition for the first message to run its query for the token's bearer."""
        if (token.is_for_signing_in and not self.takes_signing_in) or token.unnamed(self.permissions):
            return "false", ()
        stands, of_token = token.stands(with_given_password=self._takes_given_password(token.user_id))
        has, of_permissions = self._has(token)
        return " AND ".join(filter(None, (stands, has))) or "true", (*of_token, *of_permissions)

    def admit(self, principal: Principal, state: Mapping[str, Any] | None) -> Admission:
        """Judge a principal by their state, as it was read; raises Forbidden."""
        if principal.token.is_for_signing_in and not self.takes_signing_in:
            raise Forbidden("The token says who has signed in, and is for nothing else.")
        if principal.must_change_password and not self._takes_given_password(principal.user_id):
            raise PasswordGiven(principal.user_id)
        admission = self._judge(principal, state or {})
        # Last, so that who lacks a permission is told of the same ones with a narrowed token and without.
        principal.require_named(self.permissions)
        return admission

    def _takes_given_password(self, user_id: UUID | None) -> bool:
        """Tell whether a user is let in with a password given to them, still to be changed."""
        return False

    def _has(self, token: VerifiedToken) -> Condition:
        return _all_of(self.permissions, own_too=self.own == EVERYTHING)

    def _judge(self, principal: Principal, state: Mapping[str, Any]) -> Admission:
        if all(map(principal.has, self.permissions)):
            return _WHOLE
        if self.own.refused:
            principal.require(self.permissions)
        principal.require_own(self.permissions)
        return Admission(by_own=True, reach=self._reach(state))

    def narrower(self, principal: Principal) -> Reach | None:
        """Give the reach of a principal let in as OWN alone; None if nothing narrows the answer."""
        if all(map(principal.has, self.permissions)) or not all(map(principal.may, self.permissions)):
            return None
        return reach_by(self.own.relations) if self.own.relations else None

    def _reach(self, state: Mapping[str, Any]) -> Reach | None:
        """Give the reach by the state; None if the operation answers everything."""
        return reach_by(leading(self.own.relations, state)) if self.own.relations else None


@dataclass(frozen=True, slots=True)
class OwnAccount(Policy):
    """Lets in the user of the account in the path without the permission; all others need it.

    With `given_password` also before the user has changed a password given to them.
    """

    given_password: bool = False
    account: UUID | None = None

    name: ClassVar[str] = "own account"

    def at(self, path: Mapping[str, Any]) -> Self:
        """Take the account from the path."""
        return replace(self, account=path["id"])

    def _is_own(self, user_id: UUID | None) -> bool:
        return user_id is not None and user_id == self.account

    def _takes_given_password(self, user_id: UUID | None) -> bool:
        return self.given_password and self._is_own(user_id)

    def _has(self, token: VerifiedToken) -> Condition:
        return ("", ()) if self._is_own(token.user_id) else Policy._has(self, token)

    def _judge(self, principal: Principal, state: Mapping[str, Any]) -> Admission:
        return _WHOLE if self._is_own(principal.user_id) else Policy._judge(self, principal, state)


@dataclass(frozen=True, slots=True)
class OwnStudent(Policy):
    """Lets in the student in the path, and their guardians, without the permission: as for the whole school.

    They are shown published records only, by the read model itself. With the permission as OWN they read records in
    reach.
    """

    student: UUID | None = None

    name: ClassVar[str] = "own student"
    reads_relations: ClassVar[bool] = True

    def at(self, path: Mapping[str, Any]) -> Self:
        """Take the student from the path."""
        return replace(self, student=path["id"])

    def _has(self, token: VerifiedToken) -> Condition:
        for_school, needed = _all_of(self.permissions)
        at_all, _ = _all_of(self.permissions, own_too=True)
        student = str(self.student)
        return f"(NOT ({at_all}) AND {_IS_KIN} OR {for_school})", (*needed, student, student, *needed)

    def _judge(self, principal: Principal, state: Mapping[str, Any]) -> Admission:
        if principal.user_id is not None and not all(map(principal.may, self.permissions)):
            student = str(self.student)
            if str(state["student"]) == student or student in map(str, state["children"]):
                return _WHOLE
        return Policy._judge(self, principal, state)


@dataclass(frozen=True, slots=True)
class ByRelation(Policy):
    """Lets in every user: without the permission for the whole school they get the records of OWN. Clients need it."""

    name: ClassVar[str] = "by relation"
    reads_relations: ClassVar[bool] = True

    def _judge(self, principal: Principal, state: Mapping[str, Any]) -> Admission:
        if principal.user_id is None or all(map(principal.has, self.permissions)):
            return Policy._judge(self, principal, state)
        return Admission(by_own=True, reach=self._reach(state))


@dataclass(frozen=True, slots=True)
class Mine(Policy):
    """Answers the records of OWN to every user with the permissions, of any reach.

    With `given_password` also before they change it. A client is answered within the reach of its permissions.
    """

    given_password: bool = False

    name: ClassVar[str] = "oneself"
    reads_relations: ClassVar[bool] = True
    reads_own: ClassVar[bool] = True

    def _takes_given_password(self, user_id: UUID | None) -> bool:
        return self.given_password

    def _has(self, token: VerifiedToken) -> Condition:
        return _all_of(self.permissions, own_too=True)

    def _judge(self, principal: Principal, state: Mapping[str, Any]) -> Admission:
        if principal.user_id is None:
            return Policy._judge(self, principal, state)
        principal.require_own(self.permissions)
        return Admission(reach=self._reach(state))


@dataclass(frozen=True, slots=True)
class SigningIn(Policy):
    """Lets in every token of the school, also one for signing in alone."""

    name: ClassVar[str] = "signing in"
    takes_signing_in: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Unlinked(Policy):
    """Lets in every token of the school, also one of an outside identity with a link to nobody."""

    name: ClassVar[str] = "unlinked"
    takes_unlinked: ClassVar[bool] = True


def own_account(permission: Permission, *, given_password: bool = False) -> Policy:
    """Require a permission of all but the user of the account in the path."""
    return OwnAccount((permission,), given_password=given_password)


def own_student(permission: Permission) -> Policy:
    """Require a permission of all but the student in the path, and their guardians."""
    return OwnStudent((permission,))


def by_relation(permission: Permission) -> Policy:
    """Require a permission of clients alone: users without it get the records of OWN."""
    return ByRelation((permission,))


ONESELF = Mine(given_password=True)
SIGNING_IN = SigningIn()
UNLINKED = Unlinked()

_IS_KIN = "(caller.student IS NOT DISTINCT FROM %s::uuid OR %s::uuid = ANY (caller.children))"


def _all_of(permissions: tuple[Permission, ...], *, own_too: bool = False) -> Condition:
    """Write the condition of a state with all permissions for the whole school or, with `own_too`, at all."""
    held = "(caller.permissions || caller.own_permissions)" if own_too else "(caller.permissions)"
    return " AND ".join([f"%s = ANY {held}"] * len(permissions)), tuple(map(str, permissions))
