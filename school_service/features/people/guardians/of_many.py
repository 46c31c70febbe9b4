"""The guardians of many students, set at once by the rules of the guardian in a student's record."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from school_service.core.errors import Conflict
from school_service.core.statements import Executable, execute
from school_service.features.audit.service import Change, audit_changes
from school_service.features.people.guardians import reads
from school_service.features.people.guardians.of_students import (
    Given,
    Setting,
    audit_gone,
    by_place,
    guardians_as_json,
    lock_finding,
    own_guardian,
    set_another,
    set_primary,
)
from school_service.features.people.guardians.people import NAMED, GuardianRow, People
from school_service.features.people.guardians.service import LINK, audit_people, entry_of_end
from school_service.features.people.guardians.storing import storing


@dataclass(frozen=True, slots=True)
class NewGuardian:
    """A guardian of a student as somebody wrote them: the texts, and the names of those that were written.

    Texts that were not written are of another person of that name alone: a guardian of the student keeps theirs.
    """

    student_id: str
    texts: Given
    written: Collection[str]
    primary: bool


def locking_families(student_ids: Sequence[UUID], given: Sequence[Given]) -> tuple[Executable, ...]:
    """Make the statements to lock the guardians of locked students, and the persons possibly meant."""
    return lock_finding(), reads.lock(student_ids=list(student_ids), given=guardians_as_json(given))


@dataclass(slots=True)
class Families:
    """The guardians of students, and their changes; nothing is stored before `store`."""

    people: People
    keys: Mapping[int, Mapping[str, Any]]
    links: dict[str, dict[str, dict[str, Any]]]
    """The guardianships by student and guardian, as they are to be."""
    changes: list[Change] = field(default_factory=list)
    put: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    left: list[dict[str, Any]] = field(default_factory=list)
    accounts: list[UUID] = field(default_factory=list)
    """The accounts that get a child."""
    _texts: dict[tuple[str, str], str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, guardians: Sequence[NewGuardian]) -> Families:
        """Find the families of students, and the persons possibly meant, in one round trip."""
        students = list(dict.fromkeys(UUID(guardian.student_id) for guardian in guardians))
        given = guardians_as_json([guardian.texts for guardian in guardians])
        seen = execute(reads.facts_of_guardians(given=given, student_ids=students)) or {}
        links: dict[str, dict[str, dict[str, Any]]] = {}
        for link in seen["links"]:
            links.setdefault(link["student_id"], {})[link["guardian_id"]] = link
        return cls(People(seen["people"]), by_place(seen["given"]), links)

    def set(self, place: int, guardian: NewGuardian, *, stays: str | None = None) -> GuardianRow:
        """Set the guardian named in this place; returns the person.

        Raises Conflict for one who is stopped, one too many, and texts other than another student's row has of the
        same person; Forbidden if an account gets a child, or is found by other texts, and the caller may not read
        results.
        """
        links, key = self.links.setdefault(guardian.student_id, {}), self.keys[place]
        own = own_guardian(key["name"], self.people, links)
        texts = dict(guardian.texts) if own is None else self._merged(own, links[own.id], guardian)
        of_student = guardian.student_id, texts, self.people, links, key
        setting = set_primary(*of_student, stays=stays) if guardian.primary else set_another(*of_student)
        if setting.gains:
            setting.person.children += 1
            if setting.person.account is not None:
                self.accounts.append(setting.person.account)
        self._take(setting, links)
        return setting.person

    def _merged(self, person: GuardianRow, link: Mapping[str, Any], guardian: NewGuardian) -> dict[str, Any]:
        """Give the texts of a guardian of the student: the written ones, and else theirs."""
        texts = {**{name: person.row[name] for name in NAMED}, "relationship": link["relationship"]}
        texts |= {name: guardian.texts[name] for name in guardian.written}
        for name in guardian.written:
            of_person = person.id, name
            if name in NAMED and self._texts.setdefault(of_person, texts[name]) != texts[name]:
                raise Conflict(
                    f"The guardian {person.row['full_name']} has {self._texts[of_person]} in a row before."
                )
        return texts

    def _take(self, setting: Setting, links: dict[str, dict[str, Any]]) -> None:
        self.changes += setting.changes
        for link in setting.links:
            links[link["guardian_id"]] = link
            self.put[link["student_id"], link["guardian_id"]] = link
        if setting.left is not None:
            former = setting.left["guardian_id"]
            self.people.all[former].children -= 1
            del links[former]
            self.put.pop((setting.left["student_id"], former), None)
            self.left.append(setting.left)
            self.changes.append(entry_of_end(setting.left))

    def store(self) -> list[Executable]:
        """Give the statements storing the families, and enter the changes in the audit log.

        A guardian who has left a student, without an account and another child, goes.
        """
        everybody = self.people.all.values()
        former = {link["guardian_id"] for link in self.left}
        gone = [
            person
            for person in everybody
            if person.id in former and person.children <= 0 and not person.has_account
        ]
        audit_people(everybody)
        audit_changes(LINK, self.changes)
        audit_gone(gone)
        return storing(
            added=[person.row for person in everybody if person.is_new],
            changed=[person.row for person in everybody if person.changed and not person.is_new],
            links=self.put.values(),
            removed_links=self.left,
            removed=[person.id for person in gone],
        )
