"""Looks at each message before it goes to the server of the schools, in transactions that commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2.extensions
from flask import Flask
from sqlalchemy import create_engine

from school_service.config import Settings
from tenants.connections.engines import school_url, serving_options
from tenants.tenancy import Tenancy
from tests.conftest import replaced_engines
from tests.postgres import at_schools

Look = Callable[[Any, str], str]
"""Gets the driver's connection and the text of the message that it is to send, and gives the text that is sent."""


@contextmanager
def watched_messages(
    app: Flask, tenancy: Tenancy, settings: Settings, look: Look, *, connections: int = 2
) -> Iterator[None]:
    """Let the application work on connections of its own, whose messages are looked at before they are sent."""

    class Watched(psycopg2.extensions.cursor):
        def execute(self, query: Any, vars: Any = None) -> None:
            message = query.decode() if isinstance(query, bytes) else str(query)
            super().execute(look(self.connection, message), vars)

    options = serving_options(connections)
    options["connect_args"]["cursor_factory"] = Watched
    engine = create_engine(school_url(at_schools(settings.database_url)), **options)
    try:
        with replaced_engines(app, dict.fromkeys(tenancy.placement.school_logins, engine)):
            yield
    finally:
        engine.dispose()


class Between:
    """Does something once, before the message of a number that goes to the school; counts the messages."""

    def __init__(self) -> None:
        self.act: Callable[[], None] | None = None
        self.number, self.sent = -1, 0

    def look(self, _connection: Any, message: str) -> str:
        """Note a message that is about to be sent."""
        number, self.sent = self.sent, self.sent + 1
        if number == self.number and self.act is not None:
            act, self.act = self.act, None
            act()
        return message

    @contextmanager
    def acting(self, number: int, act: Callable[[], None]) -> Iterator[None]:
        """Act before the message of this number in the block, or after the last."""
        self.number, self.sent, self.act = number, 0, act
        yield
        self.number = -1
        if self.act is not None:
            self.act()
