"""Numbering change sets: readers number the committed ones, so no writer waits for another.

Readers do it one after the other, by a lock of the counter `changes`. A set that is committed later gets a higher
number, so a reader of a number has read, or can read, all that are smaller.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select, update

from school_service.core.counters import CHANGES, Counter
from school_service.core.read_models import unwrapped
from school_service.core.statements import statement
from school_service.features.audit.models import ChangeSet
from tenants.connections.statements import write

MOST = 10_000
"""The most change sets that are numbered, or looked through, at once."""


@statement
def lock_numbers() -> Any:
    """Lock the number of the newest change set: the next statement sees those that are numbered meanwhile."""
    return select(Counter.value).where(Counter.name == CHANGES).with_for_update()


@statement
def number_sets() -> Any:
    """Number the change sets without one, the oldest first; the numbers are locked before."""
    unnumbered = (
        select(ChangeSet.id, func.row_number().over(order_by=(ChangeSet.at, ChangeSet.id)).label("place"))
        .where(ChangeSet.number.is_(None))
        .order_by(ChangeSet.at, ChangeSet.id)
        .limit(MOST)
        .cte("found")
    )
    count = select(func.count()).select_from(unnumbered).scalar_subquery()
    last = update(Counter).where(Counter.name == CHANGES, count > 0).values(value=Counter.value + count)
    raised = last.returning((Counter.value - count).label("before")).cte("raised")
    numbered = update(ChangeSet).where(ChangeSet.id == unnumbered.c.id)
    return numbered.values(number=raised.c.before + unnumbered.c.place)


def number_by_operator(connection: Connection) -> None:
    """Number the change sets in the transaction of the operator's connection to a school."""
    for query in (lock_numbers(), number_sets()):
        write(connection, *query.text(unwrapped, None))
