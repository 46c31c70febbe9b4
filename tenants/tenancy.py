"""What the operator's work needs to know, handed over by the application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import URL, Connection
from sqlalchemy.engine import Engine

from tenants.database import admin_engine


@dataclass(frozen=True, slots=True)
class Administrator:
    """The first user of a new school."""

    username: str
    password: str


# Table name and rows: what a new school's tables hold from the start. Every column is given, none is
# defaulted.
Rows = tuple[str, Sequence[dict[str, Any]]]
Seed = Callable[[Administrator], Iterable[Rows]]
Reference = Callable[[Connection], None]


@dataclass(frozen=True)
class Tenancy:
    """The database of all schools.

    `admin_url` is the login that provisions, `serving_url` the one that serves requests. `roles` says whether
    each school has a role of its own. `seed` gives the first rows of a new school, `reference` fills the
    reference data that the registry keeps for all schools.
    """

    admin_url: URL
    serving_url: URL
    roles: bool
    seed: Seed
    reference: Reference

    @cached_property
    def admin(self) -> Engine:
        """The engine of the operator's work."""
        return admin_engine(self.admin_url)

    @property
    def serving_login(self) -> str:
        """The role that serves requests."""
        return self.serving_url.username or self.admin_url.username or ""

    @property
    def one_login(self) -> bool:
        """Whether the login that serves is the one that provisions."""
        return self.serving_login == self.admin_url.username
