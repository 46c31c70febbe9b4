"""Moving a school to another node, while it is used.

Citus copies its tables, and lets its users wait for a moment at the end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from tenants.connections.engines import execute_script
from tenants.distribution.nodes import Node, find_node, locate_school, lock_out_backups
from tenants.driver_errors import first_line
from tenants.exceptions import SchoolBusy, SchoolDeleting, TenancyError
from tenants.operator_log import record_operation
from tenants.progress import Progress, no_progress
from tenants.registry.schools import find_school
from tenants.tenancy import Tenancy

_log = logging.getLogger(__name__)

_POLL_INTERVAL = 0.5  # seconds
LOCK_TIMEOUT = 30  # seconds for the requests that are under way in the school, at the end of the move

_MOVE = text("SELECT citus_schema_move(CAST(:schema AS regnamespace), :host, :port)")
# Of everything that is being moved at the moment.
_COPIED = text(
    """
    SELECT coalesce(sum(source_shard_size), 0), coalesce(sum(least(target_shard_size, source_shard_size)), 0)
    FROM get_rebalance_progress()
    """
)


class MoveRefused(TenancyError):
    """A school can't be moved to a node; the message says why."""


@dataclass(frozen=True, slots=True)
class MovedSchool:
    """A school, and the nodes of its move; `moved` is False if it was there already."""

    id: UUID
    name: str
    source: str
    target: str
    moved: bool

    def as_record(self) -> dict[str, Any]:
        """The move as an operator sees it, ready for JSON."""
        return {
            "id": str(self.id),
            "name": self.name,
            "from": self.source,
            "to": self.target,
            "moved": self.moved,
        }


def move_school(
    tenancy: Tenancy,
    school_id: UUID,
    target: str,
    *,
    lock_timeout: float = LOCK_TIMEOUT,
    progress: Progress = no_progress,
) -> MovedSchool:
    """Move a school to another node, `host:port`, while its users go on working.

    All of it or nothing. Its users wait at the end, once the requests under way have ended, until Citus has changed the
    school's node; if these requests do not end within `lock_timeout` seconds, the school stays on its node. The steps
    of `progress` are hundredths.

    Raises UnknownSchool; SchoolDeleting; SchoolBusy; UnknownNode; UnfitPlacement; MoveRefused if the node takes no
    schools, or Citus does not have the school, or can't move it.
    """
    tenancy.placement.prepare(tenancy.admin)
    with tenancy.admin.begin() as connection:
        state = find_node(connection, target)
        school = find_school(connection, school_id)
        if school.deletion is not None:
            raise SchoolDeleting(f"The school {school_id} is being deleted.")
        if not lock_out_backups(connection, school_id):
            raise SchoolBusy(
                f"The school {school_id} is being backed up, or moved by someone else: try again."
            )
        location = locate_school(connection, school_id)
        if location is None:
            raise MoveRefused(f"Citus does not have the school {school_id}: restore it from a backup.")
        if location.node == state.node:
            return MovedSchool(school_id, school.name, target, target, moved=False)
        if not state.takes_schools:
            raise MoveRefused(f"The node {target} takes no schools (shouldhaveshards is off).")
        execute_script(connection, tenancy.placement.limit_waiting(lock_timeout))
        with _watched(tenancy, progress):
            _move(connection, school.schema, state.node)
        old, new = {"node": str(location.node)}, {"node": target}
        record_operation(connection, tenancy, school_id, "school", old=old, new=new)
    return MovedSchool(school_id, school.name, str(location.node), target, moved=True)


def _move(connection: Connection, schema: str, node: Node) -> None:
    try:
        connection.execute(_MOVE, {"schema": schema, "host": node.host, "port": node.port})
    except DBAPIError as error:
        raise MoveRefused(f"The school stays where it is: {first_line(error.orig)}") from None


@contextmanager
def _watched(tenancy: Tenancy, progress: Progress) -> Iterator[None]:
    """Report, in hundredths, how much of the move has been copied, as far as Citus tells it."""
    with progress(100) as advance:
        ended = threading.Event()
        watcher = threading.Thread(target=_watch, args=(tenancy, advance, ended), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def _watch(tenancy: Tenancy, advance: Callable[[int], None], ended: threading.Event) -> None:
    """Report until the move has ended, or as long as Citus tells of it: a fault of both is the move's to report."""
    try:
        _report(tenancy, advance, ended)
    except DBAPIError as error:
        _log.debug("Citus tells no more of the move", extra={"reason": first_line(error.orig)})


def _report(tenancy: Tenancy, advance: Callable[[int], None], ended: threading.Event) -> None:
    reported = 0
    with tenancy.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not ended.wait(_POLL_INTERVAL):
            total, copied = connection.execute(_COPIED).one()
            share = int(100 * copied / total) if total else 0
            if share > reported:
                advance(share - reported)
                reported = share
    advance(100 - reported)
