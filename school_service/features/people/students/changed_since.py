"""What was changed since a sheet was downloaded: such values are not replaced without being told of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from school_service.core.database import request_context
from school_service.features.audit.service import newest_changes
from school_service.sheets.downloads import Download
from school_service.sheets.row_errors import CHANGED, RowError, raise_changed_rows

ScoreOf = Callable[[Any, str], Any]
"""The value of a column in what a record's values were before or after a change; None where it had none."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A value that a sheet would replace, and that is not what was stored when the sheet was downloaded.

    `record_id`: of the record that has the value, or had it. `stored` is None where there is none any more. `kind` is
    what such a value is called.
    """

    row: int
    column: str
    person: str
    record_id: UUID | None
    stored: object | None
    new: object
    kind: str = "score"


def refuse_changed(
    replaced: Sequence[Replaced],
    *,
    entity: str,
    score_of: ScoreOf,
    download: Download,
    letters: Mapping[str, str],
    force: bool,
    newest: int,
    member: str | None = "score",
) -> Collection[int]:
    """Refuse to replace values that were changed since the download, in words that name who changed them.

    What the bearer of the same token changed by this very download is their own earlier upload and is let through.
    `newest`: how many changes of a record are looked through for the last of a value; `member` is that of the log's
    values which `score_of` gets, or None for all of them. With `force` nothing is refused:
    returns the rows whose values replace others all the same. Raises RowsChanged.
    """
    if not replaced:
        return frozenset()
    history: dict[UUID, list[Any]] = {}
    record_ids = {each.record_id for each in replaced if each.record_id}
    for change in newest_changes(entity, record_ids, newest=newest, member=member):
        history.setdefault(change.entity_id, []).append(change)
    errors = []
    forced = set()
    for each in replaced:
        last = _last_change(history.get(each.record_id, ()) if each.record_id else (), each.column, score_of)
        if last is not None and _is_own(last, download):
            continue
        if force:
            forced.add(each.row)
        else:
            errors.append(
                RowError(each.row, each.column, CHANGED, _problem(each, last), str(each.new), _REMEDY)
            )
    raise_changed_rows(errors, letters=letters, people={each.row: each.person for each in replaced})
    return forced


_REMEDY = "download the sheet again, or send this one with force=true"


def _last_change(changes: Sequence[Any], column: str, score_of: ScoreOf) -> Any:
    """Find the newest change of a value among those of its record, which are the newest first."""
    return next(
        (change for change in changes if score_of(change.old, column) != score_of(change.new, column)), None
    )


def _is_own(change: Any, download: Download) -> bool:
    principal = request_context().principal
    return principal is not None and change.actor == principal.actor and change.downloaded == download.moment


def _problem(each: Replaced, last: Any) -> str:
    who = "somebody" if last is None else last.actor_name
    when = "" if last is None else f" on {last.at:%Y-%m-%d at %H:%M} UTC"
    if each.stored is None:
        return f"would bring back a {each.kind} that {who} removed{when}, after the download,"
    return f"would replace {each.stored}, which {who} entered{when}, after the download,"
