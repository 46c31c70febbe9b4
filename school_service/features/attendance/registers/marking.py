"""The rules of marking, without a database: changes of a register by a list of marks, and their limits.

Each mark has the register's version at its last change. The sender of marks names the last version seen: a mark changed
since is a conflict if the new one differs, and none if both are equal, sent in either order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from school_service.core.errors import Conflict, Incomplete, Invalid, Stale, Unknown, names_in_words
from school_service.features.attendance.models import DRAFT, LATE, NOT_TAKEN, SUBMITTED

MOST_NAMED = 200


@dataclass(frozen=True, slots=True)
class Attendee:
    """A student in a register and their stored mark.

    `in_class`: they are in the class's registers of the day, and take the subject; `began`: they were there by the day.
    `version` is the register's at the last change of the teacher's mark. `code` and `kind` are the teacher's, null
    without a mark.
    """

    id: str
    admission_number: str
    name: str
    in_class: bool
    began: bool
    code: str | None
    kind: str | None
    note: str | None
    arrived: str | None
    version: int
    correction: str | None
    correction_kind: str | None
    reason: str | None

    @property
    def counts(self) -> str | None:
        """The kind as it counts: the correction's, else the teacher's."""
        return self.correction_kind or self.kind

    def __str__(self) -> str:
        return f"{self.name} ({self.admission_number})"


@dataclass(frozen=True, slots=True)
class StoredRegister:
    """A register as it is stored, or as it is before anybody has marked or corrected anything: then `id` is null.

    `people` are those in it, by id.
    """

    id: str | None
    state: str
    version: int
    changed_at: str | None
    changed_by_name: str | None
    people: Mapping[str, Attendee]


@dataclass(frozen=True, slots=True)
class NewMark:
    """A mark as it is to be; without a code the student has none any more."""

    person: Attendee
    code: str | None
    kind: str | None
    note: str | None
    arrived: str | None


@dataclass(frozen=True, slots=True)
class Marking:
    """The outcome of a list of marks for a register: the changed marks, its state and version afterwards.

    `forced` are the ids of the students with a mark changed by somebody since, and replaced by force.
    """

    marks: Sequence[NewMark]
    state: str
    version: int
    forced: Collection[str] = ()


def mark(
    register: StoredRegister,
    codes: Mapping[str, tuple[str, str]],
    *,
    marks: Sequence[Mapping[str, Any]] = (),
    default: str | None = None,
    seen: int = 0,
    submit: bool = False,
    force: bool = False,
) -> Marking:
    """Find the changes of a register by marks, with `seen` as the last version seen.

    Each of `marks` has `student` and perhaps `code`, `note` and `arrived`: a member left out stays, None clears it.
    `default` is the code of everyone else in the class without one. `codes` are the school's, each with its kind, by
    its letters without regard to case.

    All have to be in the register. Raises Invalid for unknown codes, Conflict with each
    differing mark changed since, unless it is forced, and naming the unmarked students if the register is to be
    submitted.
    """
    given = {str(row["student"]): _new(number, row, register, codes) for number, row in enumerate(marks)}
    if seen > register.version:
        # The caller has seen another register: this one was made after its deletion.
        seen = 0
    changed = [new for new in given.values() if _differs(new)]
    conflicts = [new for new in changed if new.person.version > seen]
    if conflicts and not force:
        raise _conflict(register, conflicts)
    if default is not None:
        code, kind = _code_named(default, codes, "default")
        changed += [
            NewMark(person, code, kind, None, None)
            for person in register.people.values()
            if person.in_class and person.code is None and person.id not in given
        ]
    submitted = submit or register.state == SUBMITTED
    _refuse_unmarked(register, changed, submit=submit)
    state = SUBMITTED if submitted else DRAFT
    rises = bool(changed) or state != register.state
    return Marking(changed, state, register.version + rises, [new.person.id for new in conflicts])


def unmarked(people: Iterable[Attendee], changed: Iterable[NewMark] = ()) -> list[Attendee]:
    """List the students of the class by the day with neither a mark nor a correction once marks have changed."""
    codes = {new.person.id: new.code for new in changed}
    return [
        person
        for person in people
        if person.in_class
        and person.began
        and person.correction is None
        and codes.get(person.id, person.code) is None
    ]


def corrections(
    register: StoredRegister, codes: Mapping[str, tuple[str, str]], rows: Sequence[Mapping[str, Any]]
) -> list[tuple[Attendee, str | None, str | None, str | None]]:
    """Find the changes by corrections: each person with code, kind and reason, all None if one is taken back.

    All have to be in the register. Raises Invalid for unknown codes.
    """
    corrected = []
    for number, row in enumerate(rows):
        person = register.people[str(row["student"])]
        code, kind, reason = None, None, None
        if row["code"] is not None:
            place = f"corrections.{number}"
            code, kind = _kept_or_known(
                row["code"], person.correction, person.correction_kind, codes, person, place
            )
            reason = row["reason"]
        if (code, reason) != (person.correction, person.reason):
            corrected.append((person, code, kind, reason))
    return corrected


def _new(
    number: int, row: Mapping[str, Any], register: StoredRegister, codes: Mapping[str, tuple[str, str]]
) -> NewMark:
    """Make a mark of the given members and the stored ones. Raises Invalid."""
    person, place = register.people[str(row["student"])], f"marks.{number}"
    code, kind = person.code, person.kind
    if "code" in row:
        code, kind = None, None
        if row["code"] is not None:
            code, kind = _kept_or_known(row["code"], person.code, person.kind, codes, person, place)
    if code is None:
        for name in ("note", "arrived"):
            if row.get(name) is not None:
                raise _wrong(person, place, name, "is of a student with a code alone")
        if "code" not in row:
            raise _wrong(person, place, "code", "the student has none that could stay")
        return NewMark(person, None, None, None, None)
    arrived = row.get("arrived", person.arrived)
    if kind != LATE:
        if row.get("arrived") is not None:
            raise _wrong(person, place, "arrived", "is of a student who came late alone")
        arrived = None
    return NewMark(person, code, kind, row.get("note", person.note), arrived)


def _wrong(person: Attendee, place: str, name: str, reason: str) -> Invalid:
    """Refuse a member of a record of a list, in words that begin with the person."""
    return Invalid(f"{person}, {name}: {reason}", {f"{place}.{name}": [reason]})


def _kept_or_known(
    given: str,
    stored: str | None,
    kind: str | None,
    codes: Mapping[str, tuple[str, str]],
    person: Attendee,
    place: str,
) -> tuple[str, str]:
    """Give a code and its kind; a code stored already keeps its stored kind."""
    if stored is not None and kind is not None and given.casefold() == stored.casefold():
        return stored, kind
    named = codes.get(given.casefold())
    if named is None:
        raise _wrong(person, place, "code", _no_such_code(codes))
    return named


def _code_named(code: str, codes: Mapping[str, tuple[str, str]], field: str) -> tuple[str, str]:
    named = codes.get(code.casefold())
    if named is None:
        raise Invalid.field(field, _no_such_code(codes))
    return named


def _no_such_code(codes: Mapping[str, tuple[str, str]]) -> Unknown:
    return Unknown(f"no such code; there are {', '.join(each for each, _ in codes.values())}")


def _differs(new: NewMark) -> bool:
    stored = new.person
    return (new.code, new.note, new.arrived) != (stored.code, stored.note, stored.arrived)


def _conflict(register: StoredRegister, conflicts: Sequence[NewMark]) -> Conflict:
    names = names_in_words([str(new.person) for new in conflicts])
    who = register.changed_by_name or "somebody"
    return Stale(
        f"{names}: marks have changed since you saw them; nothing was stored. {who} changed the register last.",
        {
            "marks": [
                {
                    "student": new.person.id,
                    "admission_number": new.person.admission_number,
                    "stored": _values(new.person),
                    "given": _values(new),
                }
                for new in conflicts[:MOST_NAMED]
            ],
            "version": register.version,
            "changed_by_name": register.changed_by_name,
            "changed_at": register.changed_at,
        },
    )


def _values(mark: Attendee | NewMark) -> dict[str, str | None]:
    return {"code": mark.code, "note": mark.note, "arrived": mark.arrived}


def _refuse_unmarked(register: StoredRegister, changed: Sequence[NewMark], *, submit: bool) -> None:
    """Refuse to submit a register with somebody unmarked, and to take a mark out of a submitted one."""
    missing = unmarked(register.people.values(), changed)
    if not submit:
        cleared = {new.person.id for new in changed if new.code is None}
        missing = [person for person in missing if register.state == SUBMITTED and person.id in cleared]
    if missing:
        names = names_in_words([str(person) for person in missing])
        raise Incomplete(
            f"{names}: not marked. A register is submitted with everybody marked.",
            {"unmarked": [person.id for person in missing[:MOST_NAMED]]},
        )


def to_register(stored: Mapping[str, Any]) -> StoredRegister:
    """Make a register of its row in the database."""
    return StoredRegister(
        stored["id"],
        stored["state"] or NOT_TAKEN,
        stored["version"] or 0,
        stored["changed_at"],
        stored["changed_by_name"],
        {row["id"]: Attendee(**row) for row in stored["people"]},
    )
