"""The running release: its version, the commit of its build, and the revisions served by it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from school_service import __version__
from tenants.migrations.migration_sql import registry_head, served_revisions

_log = logging.getLogger(__name__)

COMMIT_FILE = "commit.txt"
"""The file of the commit: `setup.py` writes it into a package built from a work tree without changes."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of the program.

    `commit` is None in a work tree, and in a package built from one with changes. `registry` is the needed revision of
    the registry, `schools` are the served revisions of a school's tables, the newest first.
    """

    version: str
    commit: str | None
    registry: str
    schools: tuple[str, ...]

    def as_record(self) -> dict[str, Any]:
        """The release as the log and `/health` tell it, ready for JSON."""
        return {
            "version": self.version,
            "commit": self.commit,
            "revisions": {"registry": self.registry, "schools": list(self.schools)},
        }

    def as_text(self) -> str:
        """The release in one line."""
        version, *others = self.as_labels().items()
        return f"{version[1]} ({'; '.join(f'{name} {value}' for name, value in others)})"

    def as_labels(self) -> dict[str, str]:
        """The release as texts alone."""
        return {
            "version": self.version,
            "commit": self.commit or "unknown",
            "registry": self.registry,
            "schools": ", ".join(self.schools),
        }


@cache
def this_release() -> Release:
    """Describe the release of this program."""
    return Release(__version__, _read_commit(), registry_head(), served_revisions())


def log_release() -> None:
    """Begin the log of a serving process with its release."""
    _log.info("starting", extra=this_release().as_record())


def _read_commit() -> str | None:
    file = files("school_service") / COMMIT_FILE
    return file.read_text(encoding="ascii").strip() if file.is_file() else None
