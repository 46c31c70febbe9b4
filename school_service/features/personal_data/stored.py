"""Which columns of a table belong to what is stored of a person: all of them, and those not told are named here."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, LargeBinary, func

NOT_TOLD = {
    "users": frozenset({"password_hash"}),
    "user_sessions": frozenset(
        {"handle", "nonce", "code_hash", "code_challenge", "token_hash", "previous_hash", "salt"}
    ),
    "invitations": frozenset({"code_hash"}),
    "report_cards": frozenset({"code"}),
    "issued_transcripts": frozenset({"code"}),
    "students": frozenset(
        f"guardian_{name}" for name in ("full_name", "relationship", "phone_number", "email_address")
    ),
    "marks": frozenset({"corrected_by", "corrected_by_name"}),
    "student_guardians": frozenset({"stopped_by", "stopped_by_name", "stop_reason"}),
}
"""By table. The hash of a password or token and the code of a paper say nothing of a person, and help whoever gets hold
of the document. The columns of students hold nothing any more. Who corrected a mark is somebody else. Who stopped a
guardian, and why, may harm others: a child, and whoever asked for it."""

OF_THE_ACTOR = frozenset({"actor", "actor_name", "address"})
"""Columns of the audit log that tell of whoever made a change: told where that is the person, and null elsewhere."""


def told_columns(model: type[Any]) -> list[Column[Any]]:
    """List the columns of a model's table that the document tells, in their order; bytes as base64."""
    table = model.__table__
    told = (column for column in table.columns if column.name not in NOT_TOLD.get(table.name, ()))
    return [_in_base64(column) if isinstance(column.type, LargeBinary) else column for column in told]


def _in_base64(column: Column[Any]) -> Any:
    # PostgreSQL divides it into lines.
    return func.replace(func.encode(column, "base64"), "\n", "").label(column.name)
