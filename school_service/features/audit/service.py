"""Writing the audit log, in the transaction of the change itself: there is never one without the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import JSON, TableValuedAlias, Text, Uuid, bindparam, column, func
from sqlalchemy.dialects.postgresql import JSONB

from school_service.core.database import request_context
from school_service.core.records import insert_rows
from school_service.features.audit.models import CREATE, DELETE, UPDATE, AuditEntry
from tenants.clock import now

OPERATOR = "operator"

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one record: the values before (None: it was made) and after (None: it is gone).

    Values are of any type of JSON, and uuids, dates, times and decimals.
    """

    entity_id: UUID
    old: Values | None
    new: Values | None

    @property
    def action(self) -> str:
        """Name the change: create, update or delete."""
        return CREATE if self.old is None else DELETE if self.new is None else UPDATE


def score_values(score: Any, sheet: str | None = None) -> Values:
    """What the log says of a score: it was entered by a sheet, the file of this name, or else by hand."""
    if sheet is None:
        return {"score": score, "source": "hand"}
    return {"score": score, "source": "sheet", "file_name": sheet}


def audit_change(
    entity: str, entity_id: UUID, *, old: Values | None = None, new: Values | None = None
) -> None:
    """Write a change to the audit log. `entity` names what was changed, such as `user`."""
    audit_changes(entity, [Change(entity_id, old, new)])


def audit_changes(entity: str, changes: Iterable[Change]) -> None:
    """Write changes of records of one entity to the audit log, however many, in one statement.

    Who acted, and in which request, is read from the request context; outside of a request it is the operator.
    """
    context = request_context()
    principal = context.principal
    common = {
        "at": now(),
        "actor": principal.actor if principal else OPERATOR,
        "actor_name": principal.actor_name if principal else OPERATOR,
        "entity": entity,
        "request_id": context.request_id,
    }
    rows = [
        {
            "id": uuid4(),
            "action": change.action,
            "entity_id": change.entity_id,
            "old": change.old,
            "new": change.new,
        }
        for change in changes
    ]
    if rows:
        # As one JSON document: PostgreSQL is quicker to take it apart than to read as many parameters.
        insert_rows(AuditEntry, _as_rows(rows), **common)


def _as_rows(rows: list[dict[str, Any]]) -> TableValuedAlias:
    names = (
        column("id", Uuid),
        column("action", Text),
        column("entity_id", Uuid),
        column("old", JSONB),
        column("new", JSONB),
    )
    return (
        func.json_to_recordset(bindparam(None, rows, type_=JSON))
        .table_valued(*names)
        .render_derived(with_types=True)
    )
