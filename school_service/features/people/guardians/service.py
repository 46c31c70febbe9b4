"""Guardians, guardianships, and stops: a stop cuts a guardian off from a child at once.

A change of a student's guardians locks the student, then guardians by id, then the accounts of these; a change of a
guardian, or the removal of one, locks the guardian.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import delete, update

from school_service.core.database import db
from school_service.core.errors import Forbidden, InUse, Invalid, Locked, NotFound, Unknown
from school_service.core.read_models import BoundQuery
from school_service.core.records import check_of_filters, get, not_found
from school_service.core.statements import Executable, execute, in_one_round_trip, row_lock, statement
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.features.people.gains.service import NOTHING, gain_of_accounts
from school_service.features.people.guardians import reads
from school_service.features.people.guardians.people import (
    ERASED_STUDENT,
    MOST_CHILDREN,
    MOST_GUARDIANS,
    GuardianRow,
    People,
    author,
    is_caller,
    is_stopped,
    new_link,
    new_person,
    refuse_stopped,
    refuse_too_many_children,
    refuse_too_many_guardians,
    require_results,
)
from school_service.features.people.guardians.storing import storing
from school_service.features.people.models import Guardian, Student, StudentGuardian
from tenants.clock import now
from tenants.connections.engines import json_text

ENTITY = "guardian"
LINK = "student-guardian"
"""The audit log's name of a guardianship of a student; the id is the student's."""

_FOUND_BY = frozenset({"full_name", "phone_number", "email_address"})
"""The texts for finding an existing guardian by a student's record or an import."""

_lock_student, _lock_guardian = row_lock(Student), row_lock(Guardian)


check_guardian_filter = check_of_filters(student=Student)


def check_student(*, id: UUID, **_others: Any) -> None:
    """Check the existence of the student; raises NotFound."""
    get(Student, id)


# Persons.


def create_guardian(*, students: Sequence[Mapping[str, Any]] = (), **texts: str | None) -> BoundQuery:
    """Add a guardian of students, of none perhaps; returns the read model of the guardian, stored with it.

    Raises Invalid naming a student unknown or named twice, and Conflict for too many students, and if one of them was
    erased, has a stopped guardian of this name, or as many guardians as may be.
    """
    person = new_person(texts, name="")
    ids = [each["student"] for each in students]
    known = _lock_children(ids, str(texts["full_name"])) if ids else {}
    _refuse_children(ids, known)
    links = [
        new_link(each["student"], person.id, **_columns({"primary": False, **each})) for each in students
    ]
    demoted = [
        {"student_id": link["student_id"], "guardian_id": primary}
        for link in links
        if link["is_primary"] and (primary := known[link["student_id"]]["primary"]) is not None
    ]
    audit_people([person])
    audit_changes(LINK, [*map(entry_of_start, links), *map(_demoted, demoted)])
    writes = storing(added=[person.row], links=links)
    return in_one_round_trip(*demoting(demoted), *writes, read=reads.guardian(UUID(person.id)))


def change_guardian(*, guardian_id: UUID, **texts: str | None) -> BoundQuery:
    """Change any of a guardian's texts; the names of the account stay.

    Returns the read model of the guardian, changed with it. Raises NotFound, Conflict if the guardian's data were
    erased, or another guardian of the new name is stopped for one of the children, and Forbidden if a guardian with an
    account would be found as somebody else, and so get children, and the caller may not read results.
    """
    seen = reads.facts_of_renamed(guardian_id, texts.get("full_name"))
    person, facts = lock_and_see(guardian_id, seen)
    person.refuse_erased()
    person.change(texts)
    if "full_name" in person.changed and facts["stops_of_name"]:
        refuse_stopped("one of their students")
    if person.has_account and _FOUND_BY & person.changed:
        require_results("Changing who a guardian with an account is")
    audit_people([person])
    changed = [person.row] if person.changed else []
    return in_one_round_trip(*storing(changed=changed), read=reads.guardian(guardian_id))


def delete_guardian(*, guardian_id: UUID) -> UUID:
    """Delete a guardian, and their guardianships.

    Raises NotFound, and Conflict if the guardian has an account, or is stopped for a child.
    """
    person = lock_guardian(guardian_id)
    if person.has_account:
        raise InUse("The guardian has an account: take that away first.")
    if person.stops:
        raise Locked("The guardian's access to a student is stopped: lift the stop first.")
    remove_links(StudentGuardian.guardian_id == guardian_id)
    execute(*storing(removed=[guardian_id]))
    audit_change(ENTITY, guardian_id, old={})
    return guardian_id


# Whose guardians they are.


def put_link(
    *,
    student_id: UUID,
    guardian_id: UUID,
    relationship: str | None,
    primary: bool | None = None,
    receives_reports: bool | None = None,
) -> BoundQuery:
    """Make somebody a guardian of a student, or change the guardianship; values of None stay, and so does a stop.

    Returns the read model of the student's guardians, stored with it; if an account gets a child, with the credentials
    others made for the account. Raises NotFound, Forbidden if an account gets a child and the caller may not read
    results, and Conflict if a stopped guardian would be the primary, another of the same name is stopped, one of them
    was erased, or there are as many as may be.
    """
    family = _lock_family(student_id, guardian_id)
    person, link = family.people[str(guardian_id)], family.links.get(str(guardian_id))
    given = {"relationship": relationship, "primary": primary, "receives_reports": receives_reports}
    columns = _columns(
        {name: value for name, value in given.items() if name == "relationship" or value is not None}
    )
    if link is None:
        if person.has_account:
            require_results("Giving this guardian a child")
        family.refuse_another(person)
        link = new_link(student_id, guardian_id, **columns)
        changes, gains = [entry_of_start(link)], True
    else:
        gains = False
        if is_stopped(link) and columns.get("is_primary"):
            refuse_stopped()
        old = dict(link)
        link |= columns
        changes = entry_of_change(old, link)
    if not changes:
        return reads.guardians_of_student(student_id)
    former = [
        other
        for other in family.links.values()
        if other["is_primary"] and other["guardian_id"] != link["guardian_id"]
    ]
    demoted = former if link["is_primary"] else []
    audit_changes(LINK, [*changes, *map(_demoted, demoted)])
    writes = [*demoting(demoted), *storing(links=[link])]
    return _answer(writes, student_id, person.account if gains else None)


def take_link(*, student_id: UUID, guardian_id: UUID) -> BoundQuery:
    """Take away a guardianship of a student; the person stays.

    Returns the read model of the student's guardians. Raises NotFound, and Conflict if the guardian is stopped.
    """
    link = _lock_family(student_id, guardian_id).link(guardian_id)
    if is_stopped(link):
        refuse_stopped()
    audit_changes(LINK, [entry_of_end(link)])
    return in_one_round_trip(*storing(removed_links=[link]), read=reads.guardians_of_student(student_id))


def stop(*, student_id: UUID, guardian_id: UUID, reason: str) -> BoundQuery:
    """Cut a guardian off from a student, for a reason: they read nothing more, and are not the primary.

    Of an existing stop the reason changes alone. Returns the read model of the student's guardians, stored with it.
    Raises NotFound.
    """
    link = _lock_family(student_id, guardian_id).link(guardian_id)
    old = dict(link)
    if not is_stopped(link):
        actor, name = author()
        link |= {"stopped_at": now(), "stopped_by": actor, "stopped_by_name": name, "is_primary": False}
    link["stop_reason"] = reason
    changes = entry_of_change(old, link)
    audit_changes(LINK, changes)
    return _answer(storing(links=[link] if changes else []), student_id)


def lift_stop(*, student_id: UUID, guardian_id: UUID) -> BoundQuery:
    """Lift a stop: the guardian reads of the student again, and is not the primary.

    Returns the read model of the student's guardians, with the credentials others made for the account. Raises NotFound
    without a stop, and Forbidden if the child goes back to the caller's own account, or to any account while the caller
    may not read results.
    """
    family = _lock_family(student_id, guardian_id)
    link = family.link(guardian_id)
    if not is_stopped(link):
        raise NotFound("The guardian is not stopped.")
    account = family.people[str(guardian_id)].account
    if account is not None:
        if is_caller(account):
            raise Forbidden("Nobody lifts a stop on themselves.")
        require_results("Giving this guardian a child back")
    old = dict(link)
    link |= dict.fromkeys(("stopped_at", "stopped_by", "stopped_by_name", "stop_reason"))
    audit_changes(LINK, entry_of_change(old, link))
    return _answer(storing(links=[link]), student_id, account)


def _answer(writes: Sequence[Executable], student_id: UUID, account: UUID | None = None) -> BoundQuery:
    """Store writes, with the gain of a child by an account, if one is named; returns the student's guardians."""
    if account is None:
        return in_one_round_trip(*writes, read=reads.guardians_of_student(student_id))
    told = gain_of_accounts(account).write(*writes)
    return reads.guardians_of_student(student_id, json_text({"": NOTHING, str(account): told or NOTHING}))


@dataclass(frozen=True, slots=True)
class _Family:
    """A student's guardians, once they are locked: the links and the persons, by the ids of these."""

    erased: bool
    links: dict[str, dict[str, Any]]
    people: dict[str, GuardianRow]

    def link(self, guardian_id: UUID) -> dict[str, Any]:
        """Give the link of a guardian; raises NotFound."""
        link = self.links.get(str(guardian_id))
        if link is None:
            raise NotFound("The student has no such guardian.")
        return link

    def refuse_another(self, person: GuardianRow) -> None:
        """Refuse somebody as another guardian of the student; raises Conflict."""
        if self.erased:
            raise Locked(ERASED_STUDENT)
        person.refuse_erased()
        if any(
            is_stopped(link) and self.people[guardian].name == person.name
            for guardian, link in self.links.items()
        ):
            refuse_stopped()
        if len(self.links) >= MOST_GUARDIANS:
            refuse_too_many_guardians()
        if person.children >= MOST_CHILDREN:
            refuse_too_many_children()


def _lock_family(student_id: UUID, guardian_id: UUID) -> _Family:
    """Lock a student and their guardians, with this one. Raises NotFound."""
    locks = _lock_student(student_id), reads.lock(student_id, guardian_id)
    row = execute(*locks, reads.facts_of_guardians(student_id, guardian_id))
    if row is None or row["erased"] is None:
        raise not_found(Student)
    people = People(row["people"]).all
    if str(guardian_id) not in people:
        raise not_found(Guardian)
    return _Family(row["erased"], {link["guardian_id"]: link for link in row["links"]}, people)


def lock_guardian(
    guardian_id: UUID, *, before: Executable | None = None, then: Executable | None = None
) -> GuardianRow:
    """Lock a guardian FOR NO KEY UPDATE, with the locks `before`, and `then`. Raises NotFound."""
    return lock_and_see(
        guardian_id, reads.facts_of_guardians(guardian_id=guardian_id), before=before, then=then
    )[0]


def lock_and_see(
    guardian_id: UUID,
    seen: BoundQuery,
    *,
    before: Executable | None = None,
    then: Executable | None = None,
) -> tuple[GuardianRow, dict[str, Any]]:
    """Lock a guardian, and read more of them than `reads.facts_of_guardians` has; returns the person and the row.

    Raises NotFound.
    """
    locks = (before, _lock_guardian(guardian_id), then)
    row = execute(*(lock for lock in locks if lock is not None), seen)
    if row is None or not row["people"]:
        raise not_found(Guardian)
    return GuardianRow(**row["people"][0]), row


def _lock_children(student_ids: list[UUID], full_name: str) -> dict[str, Any]:
    """Lock students about to get a guardian of this name; returns the facts for deciding on each, by id."""
    locks = reads.lock_students(student_ids), reads.lock_primaries(student_ids)
    row = execute(*locks, reads.students_seen(student_ids, full_name))
    return (row or {})["students"] or {}


def _refuse_children(student_ids: Sequence[UUID], known: Mapping[str, Any]) -> None:
    """Refuse students unable to be children of a new guardian. Raises Invalid, Conflict."""
    for number, student_id in enumerate(student_ids):
        field = f"students.{number}.student"
        if str(student_id) not in known:
            raise Invalid.field(field, Unknown("no such student"))
        if student_id in student_ids[:number]:
            raise Invalid(f"{known[str(student_id)]['name']}: named twice", {field: ["is named twice"]})
    if len(student_ids) > MOST_CHILDREN:
        refuse_too_many_children()
    for student in known.values():
        if student["erased"]:
            raise Locked(f"{student['name']}: the data were erased, and nothing of them can be changed.")
        if student["stopped"]:
            refuse_stopped(student["name"])
        if student["guardians"] >= MOST_GUARDIANS:
            refuse_too_many_guardians(student["name"])


def remove_links(*conditions: Any) -> list[UUID]:
    """Take away guardianships, of the rows fitting the conditions; returns the ids of the guardians."""
    removing = delete(StudentGuardian).where(*conditions)
    columns = StudentGuardian.student_id, StudentGuardian.guardian_id
    rows = db.session.execute(
        removing.returning(*columns), execution_options={"synchronize_session": False}
    ).all()
    audit_changes(LINK, [entry_of_end(row._asdict()) for row in rows])
    return [row.guardian_id for row in rows]


def demoting(links: Iterable[Mapping[str, Any]]) -> list[Executable]:
    """Give the statements ending the primacy of these guardians of students."""
    return [_demote(link["student_id"]) for link in links]


@statement
def _demote(student_id: UUID) -> Any:
    return (
        update(StudentGuardian)
        .where(StudentGuardian.student_id == student_id, StudentGuardian.is_primary)
        .values(is_primary=False)
    )


_SHOWN = {"is_primary": "primary", "receives_reports": "receives_reports"}
"""The columns of a link in the audit log, and their names there."""


def _columns(given: Mapping[str, Any]) -> dict[str, Any]:
    columns = {"primary": "is_primary"}
    return {columns.get(name, name): value for name, value in given.items() if name != "student"}


def entry_of_start(link: Mapping[str, Any]) -> Change:
    """Make the entry of a guardianship of a student beginning now."""
    shown = {called: link[name] for name, called in _SHOWN.items()}
    return Change(UUID(str(link["student_id"])), None, {"guardian": link["guardian_id"], **shown})


def entry_of_end(link: Mapping[str, Any]) -> Change:
    """Make the entry of a guardianship of a student ending now."""
    return Change(UUID(str(link["student_id"])), {"guardian": link["guardian_id"]}, None)


def _demoted(link: Mapping[str, Any]) -> Change:
    whose = {"guardian": link["guardian_id"]}
    student_id = UUID(str(link["student_id"]))
    return Change(student_id, {**whose, "primary": True}, {**whose, "primary": False})


def entry_of_change(old: Mapping[str, Any], link: Mapping[str, Any]) -> list[Change]:
    """Make the entry of a link's change, if any: of changed texts the names, never the values."""
    named = {"guardian": link["guardian_id"]}
    before, after = dict(named), dict(named)
    for name, called in _SHOWN.items():
        if old[name] != link[name]:
            before[called], after[called] = old[name], link[name]
    if is_stopped(old) != is_stopped(link):
        before["stopped"], after["stopped"] = is_stopped(old), is_stopped(link)
    texts = [name for name in ("relationship", "stop_reason") if old[name] != link[name]]
    if "stopped" in after:
        texts = [name for name in texts if name != "stop_reason"]
    if texts:
        after["changed"] = texts
    return [Change(UUID(str(link["student_id"])), before, after)] if after != named else []


def audit_people(people: Iterable[GuardianRow]) -> None:
    """Enter in the audit log new persons, and persons with changed texts: never the texts."""
    entries = [
        Change(UUID(person.id), None, {})
        if person.is_new
        else Change(UUID(person.id), {}, {"changed": sorted(person.changed)})
        for person in people
        if person.is_new or person.changed
    ]
    audit_changes(ENTITY, entries)
