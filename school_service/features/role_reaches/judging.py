"""Whether roles may be switched, and the changes by it: figures of one row, without a database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson

from school_service.core.errors import Conflict, Invalid, Locked, Unknown
from school_service.features.people.models import ADMINISTRATOR, OWN, SCHOOL
from school_service.features.people.roles.seeded import ROLES_OF_NEW_SCHOOL, SEEDED_ROLES, SeededRole

MOST = 1000  # entries of a list of a switch's changes


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch of a school's roles: its state at `present`, as `reads.switching` has it, and the one to be.

    `roles` are all roles there are, and `targets` the reach of the named ones, both by id. `added` are new seeded
    roles, and `given` the permissions of the role of each kind of account due to have its own.
    """

    present: Mapping[str, Any]
    roles: Mapping[str, Mapping[str, Any]]
    targets: Mapping[str, str]
    added: Sequence[SeededRole]
    given: Mapping[str, Collection[str]]

    @property
    def changing(self) -> dict[str, str]:
        """The new reach of each role with another one now, by id."""
        return {role: reach for role, reach in self.targets.items() if self.roles[role]["reach"] != reach}

    @property
    def gaining(self) -> list[tuple[str, str]]:
        """The accounts of students and of guardians to be given the role of their kind: user, name of the role."""
        names = {role["given_to"]: role["name"] for role in self.roles.values()}
        names |= {role.given_to: role.name for role in self.added}
        kinds = ((user["user"], kind) for user in self.present["users"] for kind in user["kinds"] or ())
        return [(user, names[kind]) for user, kind in kinds if kind in self.given]

    @property
    def needed_permissions(self) -> set[str]:
        """The permissions demanded for the whole school by a switch like this."""
        named = (self.roles[role]["permissions"] for role in self.targets)
        made = (map(str, role.permissions) for role in self.added)
        return {permission for each in (*named, *made, *self.given.values()) for permission in each}

    def require_administrator(self) -> None:
        """Refuse a switch if it leaves nobody with every permission. Raises Conflict."""
        if self._administrated({}) and not self._administrated(self.targets):
            raise Conflict(
                "Switching these roles would leave nobody who has every permission for the whole school."
            )

    def users(self, served: Collection[str]) -> list[dict[str, Any]]:
        """List the users with changed answers, and the changes: users with a loss first, each by username."""
        effect = cache(self._effect)
        users = []
        for user in self.present["users"]:
            shown = {member: value for member, value in user.items() if member not in ("roles", "kinds")}
            narrowed, widened = effect(tuple(user["roles"]), tuple(user["kinds"] or ()))
            if narrowed or widened:
                own = [permission for permission in narrowed if permission in served]
                refused = [permission for permission in narrowed if permission not in served]
                users.append(shown | {"narrowed": own, "refused": refused, "widened": widened})
        return sorted(users, key=loses_nothing)

    def differing(self) -> Iterator[dict[str, Any]]:
        """List the roles with the name of a seeded one and other permissions: the ones added, and the ones lacking."""
        for role in self.roles.values():
            seeded, held = ROLES_OF_NEW_SCHOOL.get(role["name"]), set(role["permissions"])
            if seeded is not None and held != seeded:
                more, less = sorted(held - seeded), sorted(map(str, seeded - held))
                yield {"role": role["id"], "name": role["name"], "more": more, "less": less}

    def _effect(self, roles: Iterable[str], kinds: Iterable[str]) -> tuple[list[str], list[str]]:
        """Give the permissions becoming OWN for a user of these roles, and the ones new or of the whole school then."""
        held = {permission for role in roles for permission in self.roles[role]["permissions"]}
        before, after = self._for_school(roles, {}), self._for_school(roles, self.targets)
        given = {permission for kind in kinds for permission in self.given.get(kind, ())}
        narrowed, widened = before - after, (after - before) | (given - held)
        in_order = [permission["name"] for permission in self.present["permissions"]]
        return [each for each in in_order if each in narrowed], [each for each in in_order if each in widened]

    def _for_school(self, roles: Iterable[str], targets: Mapping[str, str]) -> set[str]:
        """Give the permissions of these roles for the whole school, some of the roles with another reach."""
        wide = (role for role in roles if targets.get(role, self.roles[role]["reach"]) == SCHOOL)
        return {permission for role in wide for permission in self.roles[role]["permissions"]}

    def _administrated(self, targets: Mapping[str, str]) -> bool:
        every = len(self.present["permissions"])
        return any(
            len(self._for_school(bearer["roles"], targets)) == every for bearer in self.present["bearing"]
        )


def loses_nothing(user: Mapping[str, Any]) -> bool:
    """Tell whether all changes of a user's answers are gains."""
    return not (user["narrowed"] or user["refused"])


def judge(texts: Mapping[str, str], named: Sequence[Mapping[str, Any]], *, add_seeded: bool) -> Switch:
    """Make the switch of a row of `reads.switching`. Raises Invalid, and Conflict for an unsuitable reach."""
    facts = {part: orjson.loads(rows) for part, rows in texts.items()}
    roles = {role["id"]: role for role in facts["roles"]}
    targets = _targets(named, roles)
    if not add_seeded:
        return Switch(facts, roles, targets, (), {})
    there = {role["given_to"]: role["permissions"] for role in roles.values() if role["given_to"]}
    names = {role["name"] for role in roles.values()}
    added = [role for role in SEEDED_ROLES if role.name not in names and role.given_to not in there]
    made = {role.given_to: [*map(str, role.permissions)] for role in added if role.given_to}
    return Switch(facts, roles, targets, added, there | made)


def _targets(named: Sequence[Mapping[str, Any]], roles: Mapping[str, Any]) -> dict[str, str]:
    """Give the intended reach of each role, by id. Raises Invalid, and Conflict for a role unable to have it."""
    targets: dict[str, str] = {}
    wrong: dict[str, str] = {}
    words = []
    for place, each in enumerate(named):
        role = str(each["role"])
        if role not in roles:
            wrong[f"roles.{place}.role"] = Unknown("no such role")
            words.append(f"{role}: no such role")
        elif role in targets:
            wrong[f"roles.{place}.role"] = "named more than once"
            words.append(f"{roles[role]['name']}: named more than once")
        targets[role] = each["reach"]
    if wrong:
        raise Invalid("; ".join(words), {place: [reason] for place, reason in wrong.items()})
    for role, reach in targets.items():
        if reach == OWN and roles[role]["name"] == ADMINISTRATOR:
            raise Locked(f"The role {ADMINISTRATOR} reaches the whole school.")
        if reach == SCHOOL and roles[role]["given_to"]:
            raise Locked(f"The role {roles[role]['name']} is given to all of a kind: it is OWN.")
    return targets
