"""The history of a school's schema, `baseline.sql`: the SQL of its newest revision; what is served of it, and how."""

from __future__ import annotations

# Revisions, besides the newest, that a school may be at and still be served. A release that names the one
# before can be rolled out while schools are being migrated; the next release empties it again
# (docs/operators.md, "Updating").
ALSO_SERVED: tuple[str, ...] = ()

# Revisions whose programs serve a school at the newest one, too, as its migration only adds what they need not know. A
# release that names the one before can be taken back after schools were migrated.
SERVED_BY_EARLIER: tuple[str, ...] = ("t0022",)

# Tables to which requests add rows, and of which they change and delete none: so the role that serves is granted.
APPEND_ONLY = ("audit_entries", "change_sets")
# Of these tables, the one column that requests change all the same.
CHANGED_COLUMNS = {"change_sets": "number"}
