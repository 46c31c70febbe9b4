"""Read model of the audit log."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, read_model
from school_service.features.audit.models import AuditEntry


@read_model
def entries(entity: str | None = None, id: UUID | None = None, actor: str | None = None) -> Query:
    """Read model of AuditEntrySchema, the newest first.

    All, or those of an entity (such as `student`), of one record, by an actor.
    """
    query = select(
        AuditEntry.id,
        AuditEntry.at,
        AuditEntry.actor,
        AuditEntry.actor_name,
        AuditEntry.action,
        AuditEntry.entity,
        AuditEntry.entity_id,
        AuditEntry.old,
        AuditEntry.new,
        AuditEntry.request_id,
        AuditEntry.address,
    ).order_by(AuditEntry.at.desc(), AuditEntry.id.desc())
    if entity is not None:
        query = query.where(AuditEntry.entity == entity)
    if id is not None:
        query = query.where(AuditEntry.entity_id == id)
    if actor is not None:
        query = query.where(AuditEntry.actor == actor)
    return query
