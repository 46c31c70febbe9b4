"""Statements storing guardians and guardianships, each of any number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, DateTime, Text, Uuid, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from school_service.core.statements import Executable, statement
from school_service.features.people.guardians.reads import rows_of
from school_service.features.people.models import Guardian, StudentGuardian
from tenants.connections.engines import json_text

Row = Mapping[str, Any]

TEXTS = ("full_name", "phone_number", "email_address", "physical_address")
"""The texts of a guardian."""

_KINDS = {Boolean: Boolean(), DateTime: DateTime(timezone=True), Uuid: Uuid()}


def _types(model: type[Any]) -> dict[str, Any]:
    return {column.name: _KINDS.get(type(column.type), Text()) for column in model.__table__.columns}


_GUARDIAN, _LINK = _types(Guardian), _types(StudentGuardian)


@statement
def _add_people(rows: str) -> Any:
    added = rows_of(rows, "added", **_GUARDIAN)
    return insert(Guardian).from_select([*_GUARDIAN], select(added))


@statement
def _change_people(rows: str) -> Any:
    changed = rows_of(rows, "changed", **_GUARDIAN)
    return (
        update(Guardian)
        .where(Guardian.id == changed.c.id)
        .values({name: changed.c[name] for name in (*TEXTS, "user_id", "erased_at")})
    )


@statement
def _remove_people(rows: str) -> Any:
    removed = rows_of(rows, "removed", id=Uuid())
    return delete(Guardian).where(Guardian.id.in_(select(removed.c.id)))


@statement
def _put_links(rows: str) -> Any:
    putting = insert(StudentGuardian).from_select([*_LINK], select(rows_of(rows, "put", **_LINK)))
    key = ["student_id", "guardian_id"]
    return putting.on_conflict_do_update(
        index_elements=key,
        set_={name: putting.excluded[name] for name in _LINK if name not in {*key, "created_at"}},
    )


@statement
def _remove_links(rows: str) -> Any:
    removed = rows_of(rows, "removed", student_id=Uuid(), guardian_id=Uuid())
    return delete(StudentGuardian).where(
        StudentGuardian.student_id == removed.c.student_id,
        StudentGuardian.guardian_id == removed.c.guardian_id,
    )


def storing(
    *,
    added: Iterable[Row] = (),
    changed: Iterable[Row] = (),
    links: Iterable[Row] = (),
    removed_links: Iterable[Row] = (),
    removed: Iterable[UUID | str] = (),
) -> list[Executable]:
    """Give the statements storing these rows of guardians and of guardianships; no rows, no statement.

    Of `links`, replacing existing ones, nobody becomes the primary before another ceases to be.
    """
    links = list(links)
    others = [link for link in links if not link["is_primary"]]
    primaries = [link for link in links if link["is_primary"]]
    parts = (
        (_remove_links, list(removed_links)),
        (_remove_people, [{"id": guardian} for guardian in removed]),
        (_add_people, list(added)),
        (_change_people, list(changed)),
        (_put_links, others),
        (_put_links, primaries),
    )
    return [make(json_text(rows)) for make, rows in parts if rows]
