"""The order of locks in every transaction, so that none of them wait in a circle.

A transaction locks rows of these tables in this order, parents before children, the rows of one table in order of id; a
deletion takes the same order, from the deleted record downwards. The foreign keys of a new row lock its parents as it
is inserted, FOR KEY SHARE, which waits for a deletion alone. If a deletion locks more than its own row, an insertion
has locked the parent before (`once_locked` of `core.records` does it in the statement locking the next table). The
batches and the subjects of a cohort are deleted under its lock, which stands for them. Batches come after assessments,
since a score is entered under the lock of its assessment alone, and refers to its batch.

Tables not named here come last, under a lock of their parent: an entry under its assessment's, a mark under its
register's, a card under its student's, a contact under its owner's. A writer of several rows of such a table without
this lock, as an erasure, locks them in order of id. Locks of whole tables (`table_lock`) come first if a rule about the
table decides, such as the school's days; the lock of guardians comes before these, the lock of administrators last. A
row of `counters` is locked by one statement, at the end (graduates) or before all else.
"""

from __future__ import annotations

LOCK_ORDER = (
    "sessions",
    "terms",
    "cohorts",
    "cohort_subjects",
    "assessments",
    "batches",
    "registers",
    "students",
    "employees",
    "guardians",
    "roles",
    "users",
    "school_settings",
)


def rank(table: str) -> int:
    """Give the place of a table in the order; tables not named there are behind all others."""
    return LOCK_ORDER.index(table) if table in LOCK_ORDER else len(LOCK_ORDER)
