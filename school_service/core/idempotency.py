"""Answers stored by the Idempotency-Key of their request, so that a request sent again does nothing twice.

The row is written in the transaction of its request: there is never one without the other, and a failed request leaves
none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Index, String, Text, UniqueConstraint, update
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import created_at
from school_service.core.database import Record, current_session, db, request_context
from school_service.core.error_types import ErrorType
from school_service.core.errors import Conflict, Invalid
from school_service.core.statements import stored_in
from tenants.clock import now
from tenants.connections.statements import write

KEY_LENGTH = 255
EXPIRES_AFTER = timedelta(hours=24)
EXPIRED_AT_ONCE = 20
"""How many expired rows a request with a key deletes at most."""

UNDER_WAY = "A request with this Idempotency-Key is under way. Try again shortly."


class RequestUnderWay(Conflict):
    """Another transaction works on the same request."""

    type = ErrorType.UNDER_WAY


class KeyReused(Invalid):
    """The key belongs to another request."""

    type = ErrorType.IDEMPOTENCY_KEY


class AnswerErased(Conflict):
    """The request was carried out, and its answer is stored no more."""

    type = ErrorType.IDEMPOTENCY_KEY


class StoredAnswer(Record):
    """The answer of a request with an Idempotency-Key.

    `key` and `actor`, the user or client sending it, find it; `operation` is its method and address, `fingerprint` a
    keyed hash of its body. `answer` is null once a person's data were erased in the school.
    """

    __tablename__ = "idempotency_keys"
    __table_args__ = (
        UniqueConstraint("key", "actor", info={"message": UNDER_WAY, "type": ErrorType.UNDER_WAY}),
        Index(None, "created_at"),
    )

    key: Mapped[str] = mapped_column(String(KEY_LENGTH))
    actor: Mapped[str] = mapped_column(Text)
    operation: Mapped[str] = mapped_column(Text)
    fingerprint: Mapped[str] = mapped_column(String(64))
    status: Mapped[int]
    answer: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = created_at()


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with an Idempotency-Key: its key, its sender, its operation, and its body, to recognize it again.

    `fingerprints` are keyed hashes of the body: the first is stored, and a stored one may be any of them.
    """

    key: str
    actor: str
    operation: str
    fingerprints: tuple[str, ...]


# The lock ends with the transaction. Where the other request commits between the snapshot of this statement and its
# lock, the unique constraint refuses the second row, and with it all that its request did.
_FIND = """
SELECT pg_try_advisory_xact_lock(%(lock)s) AS free, s.id, s.operation, s.fingerprint, s.status, s.answer
FROM (SELECT 1) AS one
LEFT JOIN {idempotency_keys} s ON s.key = %(key)s AND s.actor = %(actor)s AND s.created_at >= %(since)s
"""

_STORE = """
DELETE FROM {idempotency_keys} WHERE key = %(idempotency_key)s AND actor = %(idempotency_actor)s
    AND created_at < %(idempotency_since)s;
DELETE FROM {idempotency_keys} WHERE id IN (
    SELECT id FROM {idempotency_keys} WHERE created_at < %(idempotency_since)s
    ORDER BY created_at LIMIT %(idempotency_expired)s FOR UPDATE SKIP LOCKED
);
INSERT INTO {idempotency_keys} (id, key, actor, operation, fingerprint, status, answer, created_at)
VALUES (
    %(idempotency_id)s, %(idempotency_key)s, %(idempotency_actor)s, %(idempotency_operation)s,
    %(idempotency_fingerprint)s, %(idempotency_status)s, %(idempotency_answer)s, %(idempotency_at)s
)
"""


def find_answer(request: KeyedRequest) -> tuple[int, bytes] | None:
    """Find the status and body of the earlier answer to a request; None if it is new: it is under way then.

    Raises Conflict while another transaction works on the same request, and if its answer has been erased since;
    Invalid if its key belongs to another request.
    """
    values = {
        "lock": _lock_number(request),
        "key": request.key,
        "actor": request.actor,
        "since": now() - EXPIRES_AFTER,
    }
    row = write(current_session().bound_connection(), _with_table_name(_FIND), values)
    if row is None:
        raise RuntimeError("The search for a stored answer has always a row.")
    if row["id"] is None:
        if not row["free"]:
            raise RequestUnderWay(UNDER_WAY)
        return None
    if row["operation"] != request.operation or row["fingerprint"] not in request.fingerprints:
        raise KeyReused(
            "This Idempotency-Key was sent with another request before: each needs a key of its own."
        )
    if row["answer"] is None:
        raise AnswerErased(
            "The request with this Idempotency-Key was carried out. Its answer is stored no more: a person's data "
            "have been erased since."
        )
    return row["status"], row["answer"].encode()


def store_answer(request: KeyedRequest, status: int, body: bytes) -> None:
    """Store an answer for EXPIRES_AFTER, in one round trip with the commit; a few expired ones are deleted."""
    moment = now()
    values: dict[str, Any] = {
        "id": uuid4(),
        "key": request.key,
        "actor": request.actor,
        "operation": request.operation,
        "fingerprint": request.fingerprints[0],
        "status": status,
        "answer": body.decode(),
        "at": moment,
        "since": moment - EXPIRES_AFTER,
        "expired": EXPIRED_AT_ONCE,
    }
    named = {f"idempotency_{name}": value for name, value in values.items()}
    request_context().with_commit.append((_with_table_name(_STORE), named))


def erase_answers() -> None:
    """Empty all stored answers of the school: they may say something of a person whose data are erased.

    Their keys stay, so that nothing is done twice.
    """
    erasing = update(StoredAnswer).where(StoredAnswer.answer.is_not(None)).values(answer=None)
    db.session.execute(erasing.execution_options(synchronize_session=False))


def _with_table_name(sql: str) -> str:
    return sql.format(idempotency_keys=stored_in(StoredAnswer.__tablename__))


def _lock_number(request: KeyedRequest) -> int:
    """Number the advisory lock of a key, of its sender in the school."""
    named = f"{request_context().school_id}\n{request.actor}\n{request.key}"
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:8], "big", signed=True)
