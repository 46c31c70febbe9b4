"""Guardians as persons, as seen once they are locked, and the match of a named person among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from school_service.auth.principal import Principal
from school_service.core.database import request_context
from school_service.core.errors import Conflict, Locked
from school_service.core.permissions import Permission
from school_service.features.audit.service import OPERATOR
from tenants.clock import now

MOST_GUARDIANS = 20  # of a student
MOST_CHILDREN = 20  # of a guardian

NAMED = ("full_name", "phone_number", "email_address")
"""The texts for naming a guardian in the record of a student, and for finding them."""

Row = Mapping[str, Any]


@dataclass(slots=True)
class GuardianRow:
    """A guardian: the row, the keys for finding them, and the numbers of their children and stops."""

    row: dict[str, Any]
    name: str
    digits: str | None
    email: str | None
    children: int
    stops: int
    is_new: bool = False
    changed: set[str] = field(default_factory=set)

    @property
    def id(self) -> str:
        """The guardian's id, as PostgreSQL writes it."""
        return str(self.row["id"])

    @property
    def account(self) -> UUID | None:
        """The id of their account for reading of their children."""
        return None if self.row["user_id"] is None else UUID(str(self.row["user_id"]))

    @property
    def has_account(self) -> bool:
        """Tell whether they have an account for reading of their children."""
        return self.row["user_id"] is not None

    def change(self, texts: Row) -> None:
        """Give the person other texts."""
        differing = {name: value for name, value in texts.items() if self.row[name] != value}
        self.row |= differing
        self.changed |= differing.keys()

    def fill(self, texts: Row) -> None:
        """Give the person the texts they lack: known ones stay."""
        self.change({name: texts.get(name) for name in NAMED if self.row[name] is None and texts.get(name)})

    def refuse_erased(self) -> None:
        """Refuse to change a person with erased data; raises Conflict."""
        if self.row["erased_at"] is not None:
            raise Locked("The guardian's data were erased: nothing of them can be changed.")


def new_person(texts: Row, *, name: str, digits: str | None = None, email: str | None = None) -> GuardianRow:
    """Make a person of texts; `name`, `digits` and `email` are the keys for finding them from now on."""
    row = {
        "id": str(uuid4()),
        "user_id": None,
        "phone_number": None,
        "email_address": None,
        "physical_address": None,
        "created_at": now(),
        "erased_at": None,
        **texts,
    }
    return GuardianRow(row, name, digits, email, 0, 0, is_new=True)


class People:
    """The guardians possibly meant. A named person is one of them, or somebody new, and the same the next time."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.all = {person.id: person for person in (GuardianRow(**row) for row in rows)}
        self._by_key: dict[tuple[str, str, str], GuardianRow] = {}
        for person in self.all.values():
            if person.row["erased_at"] is None:
                self._note(person, person.digits, person.email)

    def find(self, key: Row) -> GuardianRow | None:
        """Find the person of the same name, and the same digits of the phone or the same e-mail: the oldest of them."""
        people = (self._by_key.get(each) for each in self._keys(key["name"], key["digits"], key["email"]))
        return next((person for person in people if person is not None), None)

    def find_or_make(self, texts: Row, key: Row) -> GuardianRow:
        """Find the named person, and give them the texts they lack; else make another person."""
        person = self.find(key)
        if person is None:
            named = {name: texts.get(name) for name in NAMED}
            person = new_person(named, name=key["name"], digits=key["digits"], email=key["email"])
            self.all[person.id] = person
        else:
            person.fill(texts)
        self._note(person, key["digits"], key["email"])
        return person

    def _note(self, person: GuardianRow, digits: str | None, email: str | None) -> None:
        for key in self._keys(person.name, digits, email):
            self._by_key.setdefault(key, person)

    @staticmethod
    def _keys(name: str, digits: str | None, email: str | None) -> list[tuple[str, str, str]]:
        by = (("digits", digits), ("email", email))
        return [(name, kind, value) for kind, value in by if value]


def new_link(student_id: UUID | str, guardian_id: UUID | str, **values: Any) -> dict[str, Any]:
    """Make the row of a guardianship of a student, with the values given of it."""
    return {
        "student_id": str(student_id),
        "guardian_id": str(guardian_id),
        "relationship": None,
        "is_primary": False,
        "receives_reports": True,
        "stopped_at": None,
        "stopped_by": None,
        "stopped_by_name": None,
        "stop_reason": None,
        "created_at": now(),
        **values,
    }


def is_stopped(link: Row) -> bool:
    """Tell whether a guardian's access to a student is stopped."""
    return link["stopped_at"] is not None


def author() -> tuple[str, str]:
    """Name the author of the request's acts: the actor, and their name."""
    principal = request_context().principal
    return (principal.actor, principal.actor_name) if principal else (OPERATOR, OPERATOR)


def require_results(purpose: str) -> None:
    """Require the right to read all results, for letting an account read a child's; raises Forbidden."""
    principal = request_context().principal
    if isinstance(principal, Principal):
        principal.require([Permission.RESULTS_READ], purpose)


def is_caller(user_id: object) -> bool:
    """Tell whether an account is the caller's."""
    principal = request_context().principal
    return isinstance(principal, Principal) and str(principal.user_id) == str(user_id)


ERASED_STUDENT = "The student's data were erased: nothing of them can be changed."


def refuse_stopped(name: str = "the student") -> None:
    """Refuse a way around a stop; raises Conflict."""
    raise Locked(f"This guardian's access to {name} is stopped: lift the stop first.")


def refuse_too_many_guardians(name: str = "The student") -> None:
    """Refuse another guardian of a student with as many as may be; raises Conflict."""
    raise Conflict(f"{name} has {MOST_GUARDIANS} guardians already.")


def refuse_too_many_children(name: str = "The guardian") -> None:
    """Refuse another child of a guardian with as many as may be; raises Conflict."""
    raise Conflict(f"{name} has {MOST_CHILDREN} children already.")
