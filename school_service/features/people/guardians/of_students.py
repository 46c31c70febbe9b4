"""The guardian in a student's record: the primary, written with the student.

The named guardian may be an existing person: brothers and sisters share one. A search for one waits for all other
searches, by the lock of the table: else two would make the same person at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, literal_column, select
from sqlalchemy.orm import aliased

from school_service.core.errors import Locked
from school_service.core.read_models import json_object
from school_service.core.statements import Executable, execute, statement, table_lock
from school_service.features.audit.service import Change, audit_changes
from school_service.features.people.gains.service import gain_of_accounts
from school_service.features.people.guardians import reads
from school_service.features.people.guardians.people import (
    ERASED_STUDENT,
    MOST_CHILDREN,
    MOST_GUARDIANS,
    NAMED,
    GuardianRow,
    People,
    is_stopped,
    new_link,
    refuse_stopped,
    refuse_too_many_children,
    refuse_too_many_guardians,
    require_results,
)
from school_service.features.people.guardians.service import (
    ENTITY,
    LINK,
    audit_people,
    entry_of_change,
    entry_of_end,
    entry_of_start,
)
from school_service.features.people.guardians.storing import storing
from school_service.features.people.models import Guardian, StudentGuardian
from tenants.connections.engines import json_text

Given = Mapping[str, str | None]
"""A guardian as the record of a student names one: a name, and perhaps relationship, phone number, e-mail address."""

lock_finding = table_lock(Guardian)


@dataclass(slots=True)
class Finding:
    """The named persons: found among the existing ones, or made. Each is asked for by its place."""

    given: Sequence[Given]
    people: People
    keys: Mapping[int, Mapping[str, Any]]
    students: int
    """The last number given to a student."""
    links: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, given: Sequence[Given], *before: Executable, lock: bool = True) -> Finding:
        """Find the persons possibly meant, in one round trip after `before`; with `lock` they stay as they are."""
        named = guardians_as_json(given)
        locks = (lock_finding(), reads.lock(given=named)) if lock else ()
        seen = execute(*before, *locks, reads.facts_of_guardians(given=named)) or {}
        return cls(given, People(seen["people"]), by_place(seen["given"]), seen["students"])

    def person(self, place: int) -> GuardianRow:
        """Give the person named in this place."""
        return self.people.find_or_make(self.given[place], self.keys[place])

    @property
    def new_people(self) -> int:
        """How many persons are new."""
        return sum(person.is_new for person in self.people.all.values())

    @property
    def existing_people(self) -> int:
        """How many existing persons became guardians of a new student."""
        linked = {link["guardian_id"] for link in self.links}
        return sum(not person.is_new for guardian, person in self.people.all.items() if guardian in linked)

    def add(self, student_id: UUID | str, place: int, *, primary: bool = True) -> GuardianRow:
        """Make the person in this place a guardian of a new student, unless they are one; returns the person."""
        person = self.person(place)
        mine = {"student_id": str(student_id), "guardian_id": person.id}
        if any(link.items() >= mine.items() for link in self.links[-2:]):
            return person
        person.children += 1
        relationship = self.given[place].get("relationship")
        self.links.append(new_link(**mine, relationship=relationship, is_primary=primary))
        return person

    def refuse(self) -> None:
        """Refuse a child for an account without the caller's right to give it one, and a child too many for a guardian.

        Raises Forbidden, Conflict.
        """
        linked = {link["guardian_id"] for link in self.links}
        theirs = [person for guardian, person in self.people.all.items() if guardian in linked]
        for person in theirs:
            name = person.row["full_name"]
            if person.has_account:
                require_results(f"Giving {name}, a guardian with an account, a child")
            if person.children > MOST_CHILDREN:
                refuse_too_many_children(name)

    @property
    def accounts(self) -> list[UUID]:
        """The accounts getting a child."""
        linked = {link["guardian_id"] for link in self.links}
        theirs = (person.account for guardian, person in self.people.all.items() if guardian in linked)
        return [account for account in theirs if account is not None]

    def store(self) -> list[Executable]:
        """Give the statements storing the persons and their guardianships, and enter both in the audit log."""
        everybody = self.people.all.values()
        audit_people(everybody)
        audit_changes(LINK, [entry_of_start(link) for link in self.links])
        return storing(
            added=[person.row for person in everybody if person.is_new],
            changed=[person.row for person in everybody if person.changed and not person.is_new],
            links=self.links,
        )


def write_primary(student_id: UUID, given: Given | None) -> dict[str, Any] | None:
    """Write the guardian in the record of a student, locked already; None takes the guardian away.

    Returns the credentials others made for an account getting a child, None without such an account.

    The primary's own name, without regard to case and accents, changes the same person. Another name finds, or makes,
    another person. The former primary stays a guardian if they have an account or another child, and else goes. Raises
    Forbidden if an account gets a child, or is found by other texts, and the caller may not read results, and Conflict
    if the student's data were erased, if the named person is stopped here, and if there are as many guardians or
    children as may be.
    """
    named = guardians_as_json([given]) if given else None
    seen = execute(
        lock_finding(),
        reads.lock(student_id=student_id, given=named),
        reads.facts_of_guardians(student_id=student_id, given=named),
    )
    if seen is None:
        raise LookupError("The statement always answers a row.")
    if seen["erased"]:
        raise Locked(ERASED_STUDENT)
    people = People(seen["people"])
    links = {link["guardian_id"]: link for link in seen["links"]}
    former = next((link for link in links.values() if link["is_primary"]), None)
    if given is None:
        if former is not None:
            audit_changes(LINK, [entry_of_end(former)])
            execute(
                *storing(removed_links=[former], removed=_end_people([people.all[former["guardian_id"]]]))
            )
        return None
    setting = set_primary(student_id, given, people, links, by_place(seen["given"])[0])
    writes: dict[str, Any] = {"links": setting.links}
    changes = setting.changes
    if setting.left is not None:
        changes = [*changes, entry_of_end(setting.left)]
        before = people.all[setting.left["guardian_id"]]
        writes |= {"removed_links": [setting.left], "removed": _end_people([before])}
    person = setting.person
    audit_people([person])
    audit_changes(LINK, changes)
    if person.is_new:
        writes["added"] = [person.row]
    elif person.changed:
        writes["changed"] = [person.row]
    statements = storing(**writes)
    if person.account is not None and setting.gains:
        return gain_of_accounts(person.account).write(*statements)
    if statements:
        execute(*statements)
    return None


@dataclass(slots=True)
class Setting:
    """The guardian of a student to be set, with the changes of guardianships.

    `gains` tells whether the person gets a child. `left` is the guardianship of a former primary who goes.
    """

    person: GuardianRow
    links: list[dict[str, Any]]
    changes: list[Change]
    gains: bool
    left: dict[str, Any] | None = None


def set_primary(
    student_id: UUID | str,
    given: Given,
    people: People,
    links: Mapping[str, dict[str, Any]],
    key: Mapping[str, Any],
    *,
    stays: str | None = None,
) -> Setting:
    """Set the primary guardian of a student with these links, by the id of the guardian; as in `write_primary`.

    A former primary of the id `stays` remains a guardian.
    """
    former = next((link for link in links.values() if link["is_primary"]), None)
    own = own_guardian(key["name"], people, links)
    relationship = given.get("relationship")
    if own is not None:
        _change_own(own, given)
        old = dict(links[own.id])
        link = {**old, "relationship": relationship, "is_primary": True}
        setting = Setting(own, [link], entry_of_change(old, link), gains=False)
    else:
        person = people.find_or_make(given, key)
        goes = former is not None and _goes(people.all[former["guardian_id"]])
        _refuse_another(person, guardians=len(links) - goes)
        link = new_link(student_id, person.id, relationship=relationship, is_primary=True)
        setting = Setting(person, [link], [entry_of_start(link)], gains=True)
    if not setting.changes:
        setting.links = []
    if former is not None and former["guardian_id"] != setting.person.id:
        if former["guardian_id"] != stays and _goes(people.all[former["guardian_id"]]):
            setting.left = former
        else:
            demoted = {**former, "is_primary": False}
            setting.changes += entry_of_change(former, demoted)
            setting.links.append(demoted)
    return setting


def set_another(
    student_id: UUID | str,
    given: Given,
    people: People,
    links: Mapping[str, dict[str, Any]],
    key: Mapping[str, Any],
) -> Setting:
    """Set a guardian of a student with these links beside the primary: one of them of this name, or another person."""
    own = own_guardian(key["name"], people, links)
    if own is not None:
        _change_own(own, given)
        old = dict(links[own.id])
        link = {**old, "relationship": given.get("relationship")}
        changes = entry_of_change(old, link)
        return Setting(own, [link] if changes else [], changes, gains=False)
    person = people.find_or_make(given, key)
    _refuse_another(person, guardians=len(links))
    link = new_link(student_id, person.id, relationship=given.get("relationship"))
    return Setting(person, [link], [entry_of_start(link)], gains=True)


def _change_own(person: GuardianRow, given: Given) -> None:
    """Give a guardian of the student other texts.

    Raises Forbidden if an account is found by them and the caller may not read results.
    """
    person.change({name: given.get(name) for name in NAMED})
    if person.has_account and person.changed:
        require_results(f"Changing who {person.row['full_name']}, a guardian with an account, is")


def own_guardian(name: str, people: People, links: Mapping[str, Mapping[str, Any]]) -> GuardianRow | None:
    """Find the guardian of this name, a key, among a student's, the primary first. Raises Conflict if stopped."""
    own = [people.all[guardian_id] for guardian_id in links if people.all[guardian_id].name == name]
    if any(is_stopped(links[person.id]) for person in own):
        refuse_stopped()
    # The primary themselves, before another guardian of the student who has the same name.
    return min(own, key=lambda person: not links[person.id]["is_primary"], default=None)


def remove_guardians(student_id: UUID) -> None:
    """Take all guardians from a locked student; a guardian without an account and without another child then goes."""
    row = execute(reads.lock(student_id=student_id), _removing(student_id)) or {}
    audit_changes(LINK, [entry_of_end(link) for link in row["links"]])
    audit_changes(ENTITY, [Change(UUID(guardian), {}, None) for guardian in row["gone"]])


@statement
def _removing(student_id: UUID) -> Any:
    """Take all guardians from a student; answers the links and the ids of the deleted guardians."""
    theirs = StudentGuardian.student_id == student_id
    keys = StudentGuardian.student_id, StudentGuardian.guardian_id
    links = delete(StudentGuardian).where(theirs).returning(*keys).cte("links")
    others = aliased(StudentGuardian)
    another = select(others.guardian_id).where(
        others.guardian_id == Guardian.id, others.student_id != student_id
    )
    gone = (
        delete(Guardian)
        .where(
            Guardian.id.in_(select(links.c.guardian_id)),
            Guardian.user_id.is_(None),
            Guardian.erased_at.is_(None),
            ~another.correlate(Guardian).exists(),
        )
        .returning(Guardian.id)
        .cte("gone")
    )
    link = json_object(student_id=links.c.student_id, guardian_id=links.c.guardian_id)
    none: Any = literal_column("'[]'::json")
    return select(
        select(func.coalesce(func.json_agg(link), none)).select_from(links).scalar_subquery().label("links"),
        select(func.coalesce(func.json_agg(gone.c.id), none)).scalar_subquery().label("gone"),
    )


def _refuse_another(person: GuardianRow, *, guardians: int) -> None:
    if person.has_account:
        require_results("Giving a guardian with an account a child")
    if guardians >= MOST_GUARDIANS:
        refuse_too_many_guardians()
    if person.children >= MOST_CHILDREN:
        refuse_too_many_children()


def _goes(person: GuardianRow) -> bool:
    """Tell whether a person goes with this child: without an account, and without another child."""
    return not person.has_account and person.children <= 1


def _end_people(people: Sequence[GuardianRow]) -> list[str]:
    """Give the ids of the persons going with this child, and enter their end in the audit log."""
    gone = [person for person in people if _goes(person)]
    audit_gone(gone)
    return [person.id for person in gone]


def audit_gone(people: Sequence[GuardianRow]) -> None:
    """Enter the end of persons in the audit log."""
    audit_changes(ENTITY, [Change(UUID(person.id), {}, None) for person in people])


def guardians_as_json(given: Sequence[Given]) -> str:
    """Write the guardians given, each with its place, as JSON."""
    texts = [
        {"place": place, **{name: guardian.get(name) for name in NAMED}}
        for place, guardian in enumerate(given)
    ]
    return json_text(texts)


def by_place(keys: Sequence[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    return {key["place"]: key for key in keys}
