"""demo.json: all one needs to use the demo, and the secrets for a second start."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tenants.atomic_file import write_private

FILE = "demo.json"


@dataclass(frozen=True)
class Login:
    """The username and the password of a school's administrator."""

    username: str
    password: str


@dataclass(frozen=True)
class DemoSchool:
    """A school of the demo, and its administrator."""

    id: str
    name: str
    admin: Login


@dataclass
class DemoFile:
    """The content of demo.json, member for member (docs/rules/operation.md, "The demo")."""

    base_url: str | None = None
    auth_url: str | None = None
    audience: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    schools: list[DemoSchool] = field(default_factory=list)

    def login(self, school_id: str) -> Login | None:
        """Find the administrator of a school."""
        return next((school.admin for school in self.schools if school.id == school_id), None)


def read(folder: Path) -> DemoFile:
    """Read the file of an earlier start; an empty content if there is no such file, or it can't be read."""
    try:
        document: Any = json.loads((folder / FILE).read_text(encoding="utf-8"))
        schools = [
            DemoSchool(school["id"], school["name"], Login(**school["admin"]))
            for school in document.pop("schools")
        ]
        return DemoFile(**document, schools=schools)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return DemoFile()


def write(folder: Path, demo: DemoFile) -> Path:
    """Write the file, for its owner's eyes alone."""
    path = folder / FILE
    write_private(path, json.dumps(asdict(demo), ensure_ascii=False, indent=2) + "\n")
    return path
