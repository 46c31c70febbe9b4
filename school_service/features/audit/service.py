"""Writing the audit log, in the transaction of the change itself: there is never one without the other.

Entries go out with COMMIT, so they cost no round trip of their own. A refusal is the exception: its transaction is
rolled back, and its entries are stored in another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import orjson
from sqlalchemy import (
    ARRAY,
    BindParameter,
    Connection,
    DateTime,
    FromClause,
    Insert,
    Text,
    Uuid,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.database import RequestContext, request_context
from school_service.core.deletion import Deletion
from school_service.core.narrowing import judged_before
from school_service.core.read_models import Query, fetch_row
from school_service.core.records import array_text, change, unnest_rows
from school_service.core.statements import Executable, stored_in
from school_service.features.audit.models import ADDRESS_LENGTH, CREATE, DELETE, UPDATE, AuditEntry, ChangeSet
from tenants.clock import now
from tenants.connections.engines import json_text
from tenants.operator_log import operator_name
from tenants.tenancy import SeedRows

# All entries are one JSON document, which PostgreSQL takes apart faster than it reads that many parameters.
_INSERT = """
INSERT INTO {audit_entries}
    (id, at, actor, actor_name, action, entity, entity_id, old, new, request_id, address, change_set)
SELECT e.id, e.at, %(actor)s, %(actor_name)s, e.action, e.entity, e.entity_id, e.old, e.new, %(request_id)s,
    %(address)s, %(change_set)s
FROM json_to_recordset(%(entries)s) AS e (
    id uuid, at timestamptz, action text, entity text, entity_id uuid, old jsonb, new jsonb
)
"""
_INSERT_SET = "INSERT INTO {change_sets} (id, at) VALUES (%s, %s)"

_MOST_ADDRESSES = 1000
SIGN_IN, REFUSED_SIGN_IN, EXPORT = "sign-in", "refused-sign-in", "export"
OPERATOR = "operator"

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one record: the values before (None if it was created) and after (None if it was deleted).

    Values are JSON's values, and uuids, dates, times and decimals. The id is None if there is no record, as in a
    sign-in refused because nobody has the username.
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
    """Make the values of a score for the log: it was entered by the sheet of this file name, or else by hand.

    `downloaded` is the moment of the sheet's download, None if it was not downloaded. `forced` says that the score
    replaced another, entered since by somebody else.
    """
    if sheet is None:
        return {"score": score, "source": "hand"}
    values: dict[str, Any] = {"score": score, "source": "sheet", "file_name": sheet}
    if downloaded is not None:
        values["downloaded"] = downloaded
    if forced:
        values["forced"] = True
    return values


def addresses_of(entity: str, entity_id: Any, *, since: datetime) -> Any:
    """Make the expression for the addresses, an array, of a record's entries of an entity."""
    addresses = (
        select(AuditEntry.address)
        .distinct()
        .where(
            AuditEntry.entity_id == entity_id,
            AuditEntry.entity == entity,
            AuditEntry.at >= since,
            AuditEntry.address.is_not(None),
        )
        .limit(_MOST_ADDRESSES)
    )
    return func.array(addresses.scalar_subquery(), type_=ARRAY(Text))


class PastChange(NamedTuple):
    """A change of a record in the log: its author, its moment, and the values before and after.

    The id and the moment are texts, as PostgreSQL writes them in JSON. `downloaded` is the moment of the download of
    the sheet by which the change was made.
    """

    entity_id: str
    at: str
    actor: str
    actor_name: str
    old: Any
    new: Any
    downloaded: str | None


def newest_changes(
    entity: str, entity_ids: Iterable[object], *, newest: int, member: str | None
) -> list[PastChange]:
    """Find the newest changes of some records, at most `newest` of each, the newest first.

    `old` and `new` are the values before and after of this member, such as `score`, or of all members if it is None.
    """
    row = fetch_row(_newest_changes(entity, array_text(entity_ids), newest, member))
    return [] if row is None else [PastChange(*change) for change in orjson.loads(row["changes"])]


@judged_before
def _newest_changes(entity: str, entity_ids: str, newest: int, member: str | None = None) -> Query:
    """Select the newest changes of records, each as a `PastChange`, as JSON in a text; the ids are an array's."""
    old, new = AuditEntry.old, AuditEntry.new
    ids: Any = unnest_rows(id=(Uuid, entity_ids))
    of_record = (
        select(
            AuditEntry.entity_id,
            AuditEntry.at,
            AuditEntry.id,
            AuditEntry.actor,
            AuditEntry.actor_name,
            (old if member is None else old.op("->")(member)).label("old"),
            (new if member is None else new.op("->")(member)).label("new"),
            AuditEntry.new["downloaded"].astext.label("downloaded"),
        )
        # Of CASE PostgreSQL expects that half of the changes are of the entity: so it reads the changes of a record by
        # their index, the newest first, until it has enough. By the entity itself, without statistics of the log, it
        # would read all of the index of entities for each record.
        .where(AuditEntry.entity_id == ids.c.id, case((AuditEntry.entity == entity, true())))
        .order_by(AuditEntry.at.desc(), AuditEntry.id.desc())
        .limit(newest)
        .lateral("change")
    )
    change = of_record.c
    listed = func.json_agg(
        aggregate_order_by(
            func.json_build_array(*(change[name] for name in PastChange._fields)),
            change.at.desc(),
            change.id.desc(),
        )
    )
    written = cast(func.coalesce(listed, literal_column("'[]'")), Text).label("changes")
    return select(written).select_from(ids).join(of_record, true())


def audit_change(
    entity: str, entity_id: UUID | None, *, old: Values | None = None, new: Values | None = None
) -> None:
    """Write a change to the audit log. `entity` names the kind of the record, such as `user`."""
    audit_changes(entity, [Change(entity_id, old, new)])


def audit_changes(entity: str, changes: Iterable[Change]) -> None:
    """Write changes of records of one entity to the audit log, however many.

    Actor, address and request are read from the request context; outside of a request the actor is the operator.
    """
    request_context().audit_entries.extend(_entries(entity, changes))


def audit_member_changes(entity: str, entity_id: UUID, old: Values, new: Values) -> None:
    """Write the differing members of a record to the audit log; nothing if none differs."""
    changed = [name for name in new if old.get(name) != new[name]]
    if changed:
        audit_change(
            entity,
            entity_id,
            old={name: old.get(name) for name in changed},
            new={name: new[name] for name in changed},
        )


def change_audited(entity: str, record: Any, values: Mapping[str, Any]) -> UUID:
    """Give attributes of a record, whose row the caller has locked, other values, now, and return its id.

    The differing ones are written to the audit log under their names.
    """
    old, new = change(record, values)
    if new:
        audit_change(entity, record.id, old=old, new=new)
    record_id: UUID = record.id
    return record_id


def delete_audited(entity: str, deletion: Deletion, record_id: UUID, *before: Executable) -> UUID:
    """Delete a record that nothing refers to, after these locks, and return its id; the log has the told values.

    A record in use is a conflict. Raises NotFound.
    """
    record = deletion.lock(record_id, *before)
    audit_change(entity, record_id, old=record.values)
    return record.delete()


def audit_refusal(entity: str, entity_id: UUID | None, new: Values) -> None:
    """Write a refusal to the audit log: it is stored although the request ends in an error."""
    request_context().refusals.extend(_entries(entity, [Change(entity_id, None, new)]))


def insertions(context: RequestContext, entries: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Write the statements for adding entries to the audit log, in the name of a request, each with its parameters.

    The last one adds the change set of the transaction, if an entry has it: of these, or stored before.
    """
    written: list[tuple[str, Any]] = []
    if entries:
        sql = _INSERT.format(audit_entries=stored_in(AuditEntry.__tablename__, context.school_id))
        written.append((sql, {**_author(context), "entries": json_text(entries)}))
    if context.change_set is not None:
        sql = _INSERT_SET.format(change_sets=stored_in(ChangeSet.__tablename__, context.school_id))
        written.append((sql, (str(context.change_set), now())))
    return written


def logged_score(score: Any, sheet: Any) -> Any:
    """Write the log's value of a score as SQL: the score, and the file it came in, or that it came by hand.

    Both arguments are columns of the statement storing it.
    """
    hand = func.jsonb_build_object("score", func.trim_scale(score), "source", "hand")
    of_sheet = func.jsonb_build_object("score", func.trim_scale(score), "source", "sheet", "file_name", sheet)
    return case((sheet.is_(None), hand), else_=of_sheet)


def audit_written(
    entity: str, action: str, rows: FromClause, *, id: Any, moment: Any, entity_id: Any, old: Any, new: Any
) -> Insert:
    """Make the INSERT of an entry to the audit log for each of `rows`, to be sent with the statement for the records.

    PostgreSQL makes the values of the entries, however many there are. All arguments but `entity` and `action` are
    columns of the rows, or of the statement.
    """
    named: Any = (literal_column(f"'{action}'"), literal_column(f"'{entity}'"))
    values: Any = (id, moment, *named, entity_id, old, new)
    return insert(AuditEntry).from_select(
        ["id", "at", "action", "entity", "entity_id", "old", "new", *_AUTHOR],
        select(*values, *_author_binds()).select_from(rows),
        include_defaults=False,
    )


def audit_deleted(entity: str, *conditions: Any, entity_id: Any, old: Any) -> Insert:
    """Make the INSERT of an entry to the audit log for a row to be deleted by the next statement, if it is there.

    The conditions find the row, one at most; `entity_id` and `old` are made of its columns. Actor and moment are read
    when the statement runs.
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


_AUTHOR = ("actor", "actor_name", "request_id", "address", "change_set")


def _author_binds() -> list[BindParameter[str]]:
    return [
        bindparam(f"audit_{name}", callable_=_author_member(name), type_=AuditEntry.__table__.c[name].type)
        for name in _AUTHOR
    ]


def _author_member(name: str) -> Callable[[], str | None]:
    return lambda: _author(request_context())[name]


def acting(context: RequestContext | None = None) -> tuple[str, str]:
    """Name the actor, now or in a context, as the columns `actor` and `actor_name` of an entry do."""
    principal = (context or request_context()).principal
    return (principal.actor, principal.actor_name) if principal else (OPERATOR, OPERATOR)


def _author(context: RequestContext) -> dict[str, str | None]:
    """Name the actor, the request, the address and the change set, as columns of an entry."""
    actor, actor_name = acting(context)
    return {
        "actor": actor,
        "actor_name": actor_name,
        "request_id": context.request_id,
        "address": (context.address or "")[:ADDRESS_LENGTH] or None,
        "change_set": _change_set(context),
    }


def _change_set(context: RequestContext) -> str | None:
    """Give the change set of a transaction; a refusal has none, nor has a reading of one moment."""
    if context.refused or context.binding.snapshot:
        return None
    if context.change_set is None:
        context.change_set = uuid4()
    return str(context.change_set)


def record_changes(connection: Connection, entity: str, changes: Iterable[Change]) -> None:
    """Write changes by the operator to the audit log of the school of a connection, as a change set; none if none."""
    name, change_set = operator_name(), uuid4()
    by_operator = {"actor": name, "actor_name": name, "change_set": change_set}
    entries = [{**entry, **by_operator} for entry in _entries(entity, changes)]
    if entries:
        connection.execute(insert(AuditEntry), entries)
        connection.execute(insert(ChangeSet).values(id=change_set))


def operator_entry(
    operator: str, entity: str, entity_id: UUID, old: Values | None, new: Values | None
) -> SeedRows:
    """Make the entry of the operator's work on a school, with the columns of the log at every revision."""
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
