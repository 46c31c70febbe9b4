"""The history of a school's schema, `baseline.sql`: the SQL of its newest revision, and what is served of it."""

from __future__ import annotations

# Revisions, besides the newest, that a school may be at and still be served. A release that names the one
# before can be rolled out while schools are being migrated; the next release empties it again
# (docs/operators.md, "Updating").
ALSO_SERVED: tuple[str, ...] = ()
