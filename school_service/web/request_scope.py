"""The life of a request: token, school, transaction, work, commit (in this order, and only here)."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from cachetools import TTLCache
from flask import current_app, g, request
from sqlalchemy.exc import DBAPIError

from school_service.auth.principal import Caller, Principal
from school_service.auth.tokens import Verifier
from school_service.config import Settings
from school_service.core.database import db
from school_service.core.errors import NotAuthenticated
from school_service.web.request_log import request_id
from tenants.connections.binding import Entry, Rules, refusal
from tenants.connections.engines import enter, guard
from tenants.exceptions import ClientUnknown, sqlstate
from tenants.registry.schools import School, find_school

# What a statement fails with where the tables are not those that it was written for.
_OTHER_TABLES = re.compile(r"42...|23502|0A000")

SCHOOLS_REMEMBERED = 10_000
# Seconds that a school's public details are remembered; its state is asked in every request.
SCHOOL_FRESH = 5.0


@dataclass
class House:
    """What every request of an application shares.

    `user_state` is the SELECT of a user's state in its school: a row with `permissions` (array of text) and `name`, or
    no row where the user does not exist any more; its one parameter is the user's id. `rules`: how its transactions
    enter a school.
    """

    settings: Settings
    verifier: Verifier
    user_state: str
    rules: Rules
    _schools: TTLCache[UUID, School] = field(
        default_factory=lambda: TTLCache(SCHOOLS_REMEMBERED, SCHOOL_FRESH)
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def school(self, school_id: UUID) -> School:
        """Find the public details of a school, at most SCHOOL_FRESH seconds old."""
        with self._lock:
            known = self._schools.get(school_id)
        if known is None:
            with db.engines["registry"].connect() as connection:
                known = find_school(connection, school_id)
            with self._lock:
                self._schools[school_id] = known
        return known


def house() -> House:
    """The application's own House."""
    found: House = current_app.extensions["school-service"]
    return found


# Once: the applications of a process share db.session.
guard(db.session, lambda: house().rules)


def current_principal() -> Principal:
    """The caller of this request, inside its school."""
    principal: Principal = g.principal
    return principal


def current_school() -> UUID:
    """The school of this request."""
    entry: Entry = db.session().info["entry"]
    return entry.school_id


def authenticate() -> Caller:
    """Verify the request's token; raises NotAuthenticated."""
    header = request.environ.get("HTTP_AUTHORIZATION", "")
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        raise NotAuthenticated("A bearer token is needed.")
    return house().verifier.caller(token.strip())


def live(view: Callable[..., Any], *, school_required: bool, check: Callable[[Principal], None]) -> Any:
    """Run a view in its request's school: one transaction, committed once after the answer is written.

    `check` is asked about the caller before the view runs. Any error rolls back; GET runs read-only.
    """
    caller = authenticate()
    school_id = caller.school(request.environ.get("HTTP_X_SCHOOL_ID"), required=school_required)
    read_only = request.method in {"GET", "HEAD"}
    try:
        with in_school(caller.entry(school_id, house().user_state, read_only=read_only)) as state:
            g.principal = principal = caller.principal(state)
            db.session().info.update(principal=principal, request_id=request_id())
            check(principal)
            return view()
    except ClientUnknown:
        if caller.own:
            raise NotAuthenticated("The token's client has no grant any more.") from None
        raise
    except DBAPIError as error:
        if _OTHER_TABLES.fullmatch(sqlstate(error) or ""):
            _ask_again(school_id)
        raise


def _ask_again(school_id: UUID) -> None:
    """Ask the registry whether a school is still open, at a revision that is served; raises its refusal.

    Between the beginning of a transaction and its statements a migration may have been committed.
    """
    try:
        with db.engines["registry"].connect() as connection:
            connection.exec_driver_sql(
                "SELECT registry.enter(%s, %s::text[], NULL)", (str(school_id), list(house().rules.serves))
            )
    except DBAPIError as error:
        refused = refusal(error)
        if refused is not None:
            raise refused from None
        raise


@contextmanager
def in_school(entry: Entry) -> Iterator[Any]:
    """Work in a school: yields the row of the caller's state, commits at the end, rolls back on any error.

    For code outside a request, such as sample data and tests, `Entry(school_id)` is enough.
    """
    session = db.session()
    state = enter(session, entry)
    session.info.update(school=partial(house().school, entry.school_id), principal=None, request_id=None)
    try:
        yield state
        if not entry.read_only:
            # What has only read has nothing to commit: closing the session ends its transaction.
            session.commit()
    except BaseException:
        session.rollback()
        raise
    finally:
        session.close()
