"""Writing the audit log, in the transaction of the change itself: there is never one without the other.

Entries go out with COMMIT, in one message: to write them costs no round trip. What was refused is an exception: its
transaction is rolled back, and its entries are stored in one of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    BindParameter,
    DateTime,
    FromClause,
    Insert,
    Text,
    Uuid,
    bindparam,
    case,
    func,
    insert,
    literal_column,
    select,
    true,
)

from school_service.core.database import RequestContext, db, request_context
from school_service.core.records import unnest_rows
from school_service.core.statements import stored_in
from school_service.features.audit.models import ADDRESS_LENGTH, CREATE, DELETE, UPDATE, AuditEntry
from tenants.clock import now
from tenants.connections.engines import json_text
from tenants.tenancy import SeedRows

# As one JSON document: PostgreSQL is quicker to take it apart than to read as many parameters.
_INSERT = """
INSERT INTO {audit_entries}
    (id, at, actor, actor_name, action, entity, entity_id, old, new, request_id, address)
SELECT e.id, e.at, %(actor)s, %(actor_name)s, e.action, e.entity, e.entity_id, e.old, e.new, %(request_id)s, %(address)s
FROM json_to_recordset(%(entries)s) AS e (
    id uuid, at timestamptz, action text, entity text, entity_id uuid, old jsonb, new jsonb
)
"""

SIGN_IN, REFUSED_SIGN_IN, EXPORT = "sign-in", "refused-sign-in", "export"
OPERATOR = "operator"

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one record: the values before (None: it was made) and after (None: it is gone).

    Values are of any type of JSON, and uuids, dates, times and decimals. Without an id it is of no record: of a
    refused sign-in, say, with a username that nobody has.
    """

    entity_id: UUID | None
    old: Values | None
    new: Values | None

    @property
    def action(self) -> str:
        """Name the change: create, update or delete."""
        return CREATE if self.old is None else DELETE if self.new is None else UPDATE


def score_values(
    score: Any, sheet: str | None = None, *, downloaded: str | None = None, forced: bool = False
) -> Values:
    """What the log says of a score: it was entered by a sheet, the file of this name, or else by hand.

    `downloaded`: the moment of the sheet's download, where it was one. `forced`: it replaced what somebody else had
    entered since.
    """
    if sheet is None:
        return {"score": score, "source": "hand"}
    values: dict[str, Any] = {"score": score, "source": "sheet", "file_name": sheet}
    if downloaded is not None:
        values["downloaded"] = downloaded
    if forced:
        values["forced"] = True
    return values


def newest_changes(
    entity: str, entity_ids: Collection[UUID], *, newest: int, member: str | None
) -> Sequence[Any]:
    """Find the newest changes of some records: who made them, when, and what was before and after.

    Those of one record come the newest first, so many at most. `old` and `new` are what this member of the values was
    and is, such as `score`, or all of the values where it is None; `downloaded` is as in `score_values`.
    """
    old, new = AuditEntry.old, AuditEntry.new
    ids = unnest_rows(id=(Uuid, list(entity_ids)))
    of_record = (
        select(
            AuditEntry.entity_id,
            AuditEntry.at,
            AuditEntry.id,
            AuditEntry.actor,
            AuditEntry.actor_name,
            (old if member is None else old[member]).label("old"),
            (new if member is None else new[member]).label("new"),
            AuditEntry.new["downloaded"].astext.label("downloaded"),
        )
        # Written so that the index of entities is no use: it would be read as a whole for each record, where PostgreSQL
        # has no statistics of the log yet.
        .where(AuditEntry.entity_id == ids.c.id, AuditEntry.entity.concat("") == entity)
        .order_by(AuditEntry.at.desc(), AuditEntry.id.desc())
        .limit(newest)
        .lateral("change")
    )
    changes = select(of_record).select_from(ids).join(of_record, true())
    return db.session.execute(changes.order_by(of_record.c.at.desc(), of_record.c.id.desc())).all()


def audit_change(
    entity: str, entity_id: UUID | None, *, old: Values | None = None, new: Values | None = None
) -> None:
    """Write a change to the audit log. `entity` names what was changed, such as `user`."""
    audit_changes(entity, [Change(entity_id, old, new)])


def audit_changes(entity: str, changes: Iterable[Change]) -> None:
    """Write changes of records of one entity to the audit log, however many.

    Who acted, from which address, and in which request, is read from the request context; outside of a request it is
    the operator.
    """
    request_context().audit_entries.extend(_entries(entity, changes))


def audit_member_changes(entity: str, entity_id: UUID, old: Values, new: Values) -> None:
    """Write the members of a record that differ to the audit log; nothing where none does."""
    changed = [name for name in new if old.get(name) != new[name]]
    if changed:
        audit_change(
            entity,
            entity_id,
            old={name: old.get(name) for name in changed},
            new={name: new[name] for name in changed},
        )


def audit_refusal(entity: str, entity_id: UUID | None, new: Values) -> None:
    """Write to the audit log that something was refused: it is stored although the request ends in an error."""
    request_context().refusals.extend(_entries(entity, [Change(entity_id, None, new)]))


def insertion(context: RequestContext, entries: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Write the statement that adds entries to the audit log, in the name of a request, and its parameters."""
    sql = _INSERT.format(audit_entries=stored_in(AuditEntry.__tablename__, context.school_id))
    return sql, {**_author(context), "entries": json_text(entries)}


def logged_score(score: Any, sheet: Any) -> Any:
    """What `score_values` says of a score that is stored, and of the file that it came in: columns of a statement."""
    hand = func.jsonb_build_object("score", func.trim_scale(score), "source", "hand")
    of_sheet = func.jsonb_build_object("score", func.trim_scale(score), "source", "sheet", "file_name", sheet)
    return case((sheet.is_(None), hand), else_=of_sheet)


def audit_written(
    entity: str, action: str, rows: FromClause, *, id: Any, moment: Any, entity_id: Any, old: Any, new: Any
) -> Insert:
    """Make the INSERT that writes each of `rows` to the audit log, for the message that writes the records, too.

    For many rows at once: what the log says of them is made by PostgreSQL. All but `action` and who acted are columns
    of the rows, or of the statement.
    """
    named: Any = (literal_column(f"'{action}'"), literal_column(f"'{entity}'"))
    values: Any = (id, moment, *named, entity_id, old, new)
    return insert(AuditEntry).from_select(
        ["id", "at", "action", "entity", "entity_id", "old", "new", *_AUTHOR],
        select(*values, *_author_binds()).select_from(rows),
        include_defaults=False,
    )


def audit_deleted(entity: str, *conditions: Any, entity_id: Any, old: Any) -> Insert:
    """Make the INSERT that writes a row to the audit log which the next statement of the message deletes.

    For what nobody knows before whether it is there: the conditions find the row, one at most, and `entity_id` and
    `old` are made of its columns. All else is read when the statement runs.
    """
    values: Any = (
        bindparam("audit_id", callable_=uuid4, type_=Uuid()),
        bindparam("audit_at", callable_=now, type_=DateTime(timezone=True)),
        literal_column(f"'{DELETE}'"),
        literal_column(f"'{entity}'"),
        entity_id,
        old,
    )
    return insert(AuditEntry).from_select(
        ["id", "at", "action", "entity", "entity_id", "old", *_AUTHOR],
        select(*values, *_author_binds()).where(*conditions),
        include_defaults=False,
    )


_AUTHOR = ("actor", "actor_name", "request_id", "address")


def _author_binds() -> list[BindParameter[str]]:
    return [bindparam(f"audit_{name}", callable_=_author_member(name), type_=Text()) for name in _AUTHOR]


def _author_member(name: str) -> Callable[[], str | None]:
    return lambda: _author(request_context())[name]


def _author(context: RequestContext) -> dict[str, str | None]:
    """Who acted, in which request, from which address."""
    principal = context.principal
    return {
        "actor": principal.actor if principal else OPERATOR,
        "actor_name": principal.actor_name if principal else OPERATOR,
        "request_id": context.request_id,
        "address": (context.address or "")[:ADDRESS_LENGTH] or None,
    }


def operator_entry(
    operator: str, entity: str, entity_id: UUID, old: Values | None, new: Values | None
) -> SeedRows:
    """Give the row of what the operator did to a school, by the columns that the log has had from the beginning."""
    (entry,) = _entries(entity, [Change(entity_id, old, new)])
    values = {name: None if entry[name] is None else json_text(entry[name]) for name in ("old", "new")}
    return AuditEntry.__tablename__, [{**entry, **values, "actor": operator, "actor_name": operator}]


def _entries(entity: str, changes: Iterable[Change]) -> list[dict[str, Any]]:
    moment = now()
    return [
        {
            "id": uuid4(),
            "at": moment,
            "action": change.action,
            "entity": entity,
            "entity_id": change.entity_id,
            "old": change.old,
            "new": change.new,
        }
        for change in changes
    ]
