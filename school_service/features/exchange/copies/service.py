"""Changes of a school since a cursor."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from school_service.auth.principal import Principal
from school_service.core.database import request_context
from school_service.core.errors import Gone
from school_service.core.read_models import RenderedRow, unwrapped
from school_service.features.audit.numbering import MOST, lock_numbers, number_sets
from school_service.features.exchange.copies.resources import NAMES, PERMISSIONS
from school_service.features.exchange.copies.telling import changes_between, entities_of, with_table_names
from tenants.connections.statements import Texts

START = "start"

# The newest set, and whether sets wait for a number: enough where nothing is new.
_NEWEST = """
SELECT json_build_object(
    'newest', json_build_array(number, id), 'waiting', EXISTS (SELECT FROM {change_sets} WHERE number IS NULL)
)::text AS body, NULL::boolean AS empty
FROM {change_sets} WHERE number IS NOT NULL ORDER BY number DESC LIMIT 1
"""

# Where a reader stands: whether the set of the cursor is there and nothing since asks to read everything anew, the
# newest set, and whether sets wait for a number. And of the next sets, MOST of them, those with entries of some
# entities, as many as asked for: the last number, its set, and the entities.
_PLACE = """
WITH following AS (
    SELECT id, number FROM {change_sets} WHERE number > %s ORDER BY number LIMIT %s
), telling AS MATERIALIZED (
    SELECT number, entities FROM following, LATERAL (
        SELECT array_agg(DISTINCT entity) AS entities FROM {audit_entries}
        WHERE change_set = following.id AND entity = ANY (%s)
    ) each WHERE entities IS NOT NULL ORDER BY number LIMIT %s
), until AS (
    SELECT CASE WHEN count(*) = %s THEN max(number) ELSE (SELECT max(number) FROM following) END AS number
    FROM telling
)
SELECT json_build_object(
    'there', %s OR (
        EXISTS (SELECT FROM {change_sets} WHERE number = %s AND id = %s)
        AND NOT EXISTS (SELECT FROM {change_sets} WHERE resync AND number > %s)
        AND NOT EXISTS (SELECT FROM {change_sets} WHERE resync AND number IS NULL)
    ),
    'waiting', EXISTS (SELECT FROM {change_sets} WHERE number IS NULL),
    'newest', json_build_array(newest.number, newest.id),
    'until', (SELECT json_build_array(s.number, s.id) FROM following s JOIN until USING (number)),
    'entities', (SELECT json_agg(DISTINCT entity) FROM telling, unnest(entities) AS entity)
)::text AS body, NULL::boolean AS empty
FROM (SELECT number, id FROM {change_sets} WHERE number IS NOT NULL ORDER BY number DESC LIMIT 1) newest
"""


class Cursor(NamedTuple):
    """A place among the change sets: the number and the id of the last set that was read."""

    number: int
    id: str

    @classmethod
    def of(cls, text: str) -> Cursor:
        """Read a cursor; raises Gone."""
        if text == START:
            return cls(0, str(UUID(int=0)))
        match = _CURSOR.fullmatch(text)
        if match is None:
            raise gone_error()
        number = int(match[1])
        if number > LARGEST:
            raise gone_error()
        return cls(number, str(UUID(match[2])))

    def __str__(self) -> str:
        return f"{self.number}-{UUID(self.id).hex}"


_CURSOR = re.compile(r"([1-9][0-9]{0,9})-([0-9a-f]{32})")
LARGEST = 2**31 - 1


def gone_error() -> Gone:
    """Make the error of a cursor whose set is not there: read everything anew."""
    return Gone("Read everything anew.", {"after": ["resync"]})


def changes(
    *,
    principal_of: Callable[[], Principal],
    write: Callable[[str, tuple[Any, ...]], Texts],
    limit: int,
    after: str | None = None,
    resource: Sequence[str] = NAMES,
) -> RenderedRow:
    """Answer the changes of resources behind a cursor, about `limit`, and the cursor behind them; no names, no values.

    Without a cursor it is the cursor of now; behind START all changes that are kept. Resources that the principal,
    known once something was read, can't read in the whole school are left out. `write` sends statements in a
    transaction of their own. Raises Gone.
    """
    cursor = None if after is None else Cursor.of(after)
    place = _place(cursor, entities_of(resource), limit, write)
    newest = Cursor(*place["newest"])
    if cursor is None or cursor == newest:
        return _answer([], newest, more=False)
    if not place["there"]:
        raise gone_error()
    principal = principal_of()
    names = {name for name in resource if principal.has(PERMISSIONS[name])}
    told, end = [], Cursor(*place["until"])
    query = changes_between(cursor, end.number, limit, place["entities"] or (), names)
    if query is not None:
        row = read_text(*query)
        if row is None:
            raise gone_error()
        told, end = row["changes"], Cursor(row["number"], row["id"])
    return _answer(told, end, more=end.number < newest.number or place["waiting"])


def _place(
    cursor: Cursor | None, entities: list[str], limit: int, write: Callable[[str, tuple[Any, ...]], Texts]
) -> dict[str, Any]:
    """Find where a reader stands: of one who has read everything, or begins now, the newest set alone.

    Sets that wait for a number get one before, in a message of their own.
    """
    place, sql = read_text(with_table_names(_NEWEST), ()), with_table_names(_PLACE)
    number, set_id = cursor or Cursor.of(START)
    parameters = (number, MOST, entities, limit, limit, not number, number, set_id, number)
    if place is not None and place["waiting"]:
        lock, numbering = (statement.text(unwrapped, None) for statement in (lock_numbers(), number_sets()))
        answer = write(f"{lock[0]};\n{numbering[0]};\n{sql}", (*lock[1], *numbering[1], *parameters))
        place = orjson.loads(answer.portions[0])
    elif place is not None and cursor not in {None, (*place["newest"],)}:
        place = read_text(sql, parameters)
    if place is None:
        raise RuntimeError("A school has a change set from the beginning.")
    return dict(place)


def number_all(write: Callable[[str, tuple[Any, ...]], Texts]) -> None:
    """Number the change sets that wait for it, in a transaction of their own."""
    _place(None, [], 1, write)


def read_portion(sql: str, parameters: tuple[Any, ...]) -> bytes:
    """Read the one text of a statement in a message of its own; nothing if there is none."""
    read = request_context().read
    if read is None:
        raise RuntimeError("Copies are read by requests that write nothing.")
    answer = read(lambda _reach: (sql, parameters))
    return answer.portions[0] if answer.portions else b""


def read_text(sql: str, parameters: tuple[Any, ...]) -> Any:
    """Read the one text of a statement, JSON; None without one."""
    text = read_portion(sql, parameters)
    return orjson.loads(text) if text else None


def _answer(changes: list[Any], cursor: Cursor, *, more: bool) -> RenderedRow:
    return RenderedRow(orjson.dumps({"changes": changes, "cursor": str(cursor), "more": more}))
