"""Uploads of sheets with a row for each student of a class: score sheets, metric sheets, comment sheets.

Values changed since the download of such a sheet are not replaced without telling the uploader.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic
from zoneinfo import ZoneInfo

from school_service.core.database import request_context
from school_service.core.errors import RowsChanged
from school_service.features.audit.service import PastChange, newest_changes
from school_service.features.people.students.sheet_rows import ClassMember, match_students, not_in_sheet
from school_service.features.school.settings.service import find_time_zone
from school_service.sheets.downloads import Download
from school_service.sheets.row_errors import CHANGED, RowError, raise_refused_rows
from school_service.sheets.sheet_reader import Row, SheetContent
from school_service.sheets.uploads import SheetUpload


@dataclass(frozen=True, slots=True)
class AuditTrail:
    """How the audit log tells of the changes of a kind of values, of records of the `entity`.

    `value_of` gives the value of a column among a record's values before or after a change, None if it had none.
    `newest`: how many changes of a record are looked through for the last of a value. `member` is the member of the
    log's values for `value_of`, or None for all of them.
    """

    entity: str
    value_of: Callable[[Any, str], Any]
    newest: int
    member: str | None = "score"


@dataclass(frozen=True, slots=True)
class Replaced:
    """A value to be replaced by a sheet, and other than the value stored at the sheet's download.

    `record_id`: of the record with the value, now or before, as PostgreSQL writes it. `stored` is None if there is none
    any more. `kind` is the word for such a value. `key` is its name in the log, if other than the column.
    """

    row: int
    column: str
    person: str
    record_id: str | None
    stored: object | None
    new: object
    kind: str = "score"
    key: str | None = None


@dataclass(kw_only=True)
class ClassSheetUpload(SheetUpload[list[tuple[ClassMember, Row]]], Generic[ClassMember]):
    """The upload of a sheet with a row for each student of a class.

    With `dry_run` nothing is stored, and the answer names the students missing in the sheet. `force` replaces values
    changed since the download. `download` is None for a sheet not downloaded.
    """

    file_name: str
    dry_run: bool
    force: bool
    download: Download | None = field(init=False)
    letters: Mapping[str, str] = field(init=False)

    @property
    def source(self) -> dict[str, str]:
        """The members of an entry in the audit log for the sheet, beside its values."""
        source = {"source": "sheet", "file_name": self.file_name}
        if self.download is not None:
            source["downloaded"] = self.download.moment
        return source

    def match_class(
        self,
        content: SheetContent,
        students: Iterable[ClassMember],
        *,
        not_in_class: str,
        validate: Callable[[Row], Iterable[RowError]],
    ) -> list[tuple[ClassMember, Row]]:
        """Find the student of each row among those of the class, by admission number.

        `not_in_class` says of a student of the school that they are outside the class, as a predicate; `validate`
        yields the errors of the other values of a row. Raises InvalidRows naming every bad row.
        """
        by_number = {student.admission_number: student for student in students}
        matched = match_students(
            content,
            by_number,
            not_in_class=not_in_class,
            validate=validate,
            own_names=self.download is not None,
        )
        self.letters = content.letters
        if self.dry_run:
            self.answer["not_in_sheet"] = not_in_sheet(by_number.values(), matched)
        return matched

    def refuse_changed(self, replaced: Iterable[Replaced], trail: AuditTrail) -> Collection[int]:
        """Refuse to replace values changed since the download, in words naming the author of the change.

        A change by the bearer of the same token, by this very download, is their own earlier upload and is let through.
        With `force` nothing is refused: returns the rows replacing other values all the same. Raises RowsChanged.
        """
        if self.download is None:
            return frozenset()
        return {each.row for each in self.refuse(with_last_change(replaced, trail))}

    def refuse(self, changes: Iterable[tuple[Replaced, PastChange | None]]) -> list[Replaced]:
        """Refuse to replace values, each with its last change, as `refuse_changed` does; returns those forced."""
        others = [(each, last) for each, last in changes if not self._is_own(last)]
        if not self.force:
            _refuse_replacing(others, ", after the download,", _REMEDY, letters=self.letters)
        return [each for each, _ in others]

    def _is_own(self, change: PastChange | None) -> bool:
        principal = request_context().principal
        return (
            change is not None
            and self.download is not None
            and principal is not None
            and change.actor == principal.actor
            and change.downloaded == self.download.moment
        )


def refuse_unexpected(replaced: Iterable[Replaced], trail: AuditTrail, *, list_name: str) -> None:
    """Refuse to replace values other than expected by a list in the body, `list_name`, naming the author of each.

    The rows are numbered from 0; the rest is as in `refuse_changed`. Raises RowsChanged.
    """
    refuse_unexpected_changes(with_last_change(replaced, trail), list_name=list_name)


def refuse_unexpected_changes(
    changes: Sequence[tuple[Replaced, PastChange | None]], *, list_name: str
) -> None:
    """Refuse to replace values other than expected, each with its last change; raises RowsChanged."""
    _refuse_replacing(changes, "", "read it again, or leave out what is expected", member=list_name)


def _refuse_replacing(
    changes: Sequence[tuple[Replaced, PastChange | None]],
    when: str,
    remedy: str,
    *,
    letters: Mapping[str, str] | None = None,
    member: str | None = None,
) -> None:
    zone = find_time_zone() if changes else None
    errors = [
        RowError(
            each.row,
            each.column,
            CHANGED,
            f"{_problem(each, last, zone)}{when}",
            _words(each.new),
            remedy,
        )
        for each, last in changes
    ]
    people = {each.row: each.person for each, _ in changes}
    raise_refused_rows(RowsChanged, errors, letters=letters, people=people, member=member)


def _words(value: object | None) -> str:
    return "nothing" if value is None else str(value)


def with_last_change(
    replaced: Iterable[Replaced], trail: AuditTrail
) -> list[tuple[Replaced, PastChange | None]]:
    """Find the newest change of each value; None if nobody knows it."""
    values = [*replaced]
    if not values:
        return []
    history: dict[str, list[PastChange]] = {}
    record_ids = {each.record_id for each in values if each.record_id}
    for change in newest_changes(trail.entity, record_ids, newest=trail.newest, member=trail.member):
        history.setdefault(change.entity_id, []).append(change)
    return [(each, _last_change(history.get(each.record_id or "", ()), each, trail)) for each in values]


_REMEDY = "download the sheet again, or send this one with force=true"


def _last_change(changes: Sequence[PastChange], value: Replaced, trail: AuditTrail) -> PastChange | None:
    """Find the newest change of a value among the changes of its record, given the newest first."""
    name, of = value.key or value.column, trail.value_of
    return next((change for change in changes if of(change.old, name) != of(change.new, name)), None)


def _problem(each: Replaced, last: PastChange | None, zone: ZoneInfo | None) -> str:
    who = "somebody" if last is None else last.actor_name
    when = "" if last is None else f" on {datetime.fromisoformat(last.at).astimezone(zone):%Y-%m-%d at %H:%M}"
    if each.stored is None:
        return f"would bring back a {each.kind} that {who} removed{when}"
    return f"would replace {each.stored}, which {who} entered{when}"
