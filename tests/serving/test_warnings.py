"""What `serve` warns of at its start, without a process of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import text

from school_service.serving.checks import check_database

THREADS = 8


@pytest.fixture
def warnings(app, settings, place, caplog) -> Callable[[], list[str]]:
    """Answers what is warned of where the process that serves has DATABASE_URL alone."""
    alone = replace(settings, admin_database_url=settings.database_url)

    def check() -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="school_service.serving.checks"):
            check_database(app, alone, THREADS)
        return [record.getMessage() for record in caplog.records]

    return check


@contextmanager
def may_create(tenancy, login: str) -> Iterator[None]:
    """Let a login create schemas for a while, as the one that provisions does."""
    with tenancy.admin.begin() as connection:
        database = connection.scalar(text("SELECT quote_ident(current_database())"))
        connection.execute(text(f'GRANT CREATE ON DATABASE {database} TO "{login}"'))
    try:
        yield
    finally:
        with tenancy.admin.begin() as connection:
            connection.execute(text(f'REVOKE CREATE ON DATABASE {database} FROM "{login}"'))


def test_a_login_that_serves_and_provisions_is_warned_of_and_one_that_only_serves_is_not(
    warnings, tenancy, settings
):
    told = [warning for warning in warnings() if warning.startswith("the same login")]
    with may_create(tenancy, settings.database_url.username):
        told_of_both = [warning for warning in warnings() if warning.startswith("the same login")]

    assert (len(told), len(told_of_both)) == (0, 1)
