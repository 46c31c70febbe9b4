"""The history of the schema `registry`."""

from __future__ import annotations

# Revisions whose programs can work with a registry at the newest one, too, as its migration only adds what they need
# not know: they can be started beside it.
SERVED_BY_EARLIER: tuple[str, ...] = ()
