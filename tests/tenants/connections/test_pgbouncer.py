"""Through PgBouncer in transaction mode: clients share the server's connections and nothing else."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InternalError

from school_service.app import create_app
from school_service.core.database import db
from tenants.connections.binding import SchoolBinding
from tenants.connections.sessions import transaction
from tenants.exceptions import UnknownSchool
from tests.client import ApiClient
from tests.conftest import Way, dispose
from tests.postgres import with_one_server
from tests.tenants.conftest import tag_of, tagged_school
from tests.tenants.installations import bound_sessions, end_connections, execute, working
from tests.threads import run_concurrently

# Each login has one connection of the server's.
WAYS = [pytest.param(Way(logins=2, pgbouncer=True), id="pgbouncer", marks=with_one_server)]
pytestmark = pytest.mark.operate

TAGS = text("SELECT name FROM classrooms WHERE level = 'tag'")
WRITE = text("INSERT INTO classrooms (id, name, level) VALUES (:id, :name, 'x')")
SETTINGS = ("search_path", "timezone", "statement_timeout", "idle_in_transaction_session_timeout")


@pytest.fixture(scope="module")
def schools(tenancy):
    """Two schools of the first login that no other module sees: rows are written here."""
    login = tenancy.placement.school_logins[0]
    return [tagged_school(tenancy, login=login) for _ in range(2)]


@pytest.fixture
def clients(make_engine, options):
    """Two clients, each with a connection of its own to PgBouncer."""
    return bound_sessions(make_engine(), options), bound_sessions(make_engine(), options)


def backend(session):
    return session.scalars(text("SELECT pg_backend_pid()")).one()


def write(session):
    session.execute(WRITE, {"id": uuid4(), "name": f"room {uuid4()}"})


def test_two_clients_in_two_schools_share_one_backend(clients, schools):
    seen = []
    for turn in range(6):
        client, school = clients[turn % 2], schools[(turn // 2) % 2]
        with working(client, SchoolBinding(school.id)) as session:
            if turn % 3 == 0:
                write(session)
            assert {tag_of(name) for name in session.scalars(TAGS)} == {school.id}
            assert session.scalars(text("SELECT current_user")).one() == school.schema
            seen.append(backend(session))

    assert len(set(seen)) == 1


def test_two_applications_share_one_backend(settings, tenancy, document, place):
    apps = create_app(settings), create_app(settings)
    first, second = (ApiClient(app, document, place.admin_token, place.id) for app in apps)

    statuses = run_concurrently(
        16, lambda number: (first, second)[number % 2].using().get("/users").status_code
    )
    rows = execute(
        tenancy.admin_url,
        "SELECT usename, count(*) FROM pg_stat_activity WHERE starts_with(usename, %s) GROUP BY 1",
        (tenancy.placement.login,),
    )
    for app in apps:
        with app.app_context():
            assert sum(engine.pool.checkedin() for engine in db.engines.values()) > 1
        dispose(app)

    assert statuses == [200] * 16
    assert {count for _, count in rows} == {1}


def test_another_client_waits_for_the_transaction_and_finds_nothing_of_it(clients, schools):
    client, other = clients
    names = run_concurrently(
        8,
        lambda number: _names((client, other)[number % 2], schools[number % 2]) == {schools[number % 2].id},
    )

    assert names == [True] * 8


def _names(client, school):
    with working(client, SchoolBinding(school.id)) as session:
        write(session)
        return {tag_of(name) for name in session.scalars(TAGS)}


def test_a_transaction_that_failed_leaves_nothing_to_the_next_client(clients, schools):
    client, other = clients
    for failure in (
        lambda session: session.execute(text("SELECT 1/0")),
        lambda session: session.execute(text("SET LOCAL work_mem TO '1MB'")) and 1 / 0,
        lambda session: session.begin_nested() and 1 / 0,
    ):
        with (
            suppress(DBAPIError, ZeroDivisionError),
            working(client, SchoolBinding(schools[0].id)) as session,
        ):
            write(session)
            failure(session)

        with working(other, SchoolBinding(schools[1].id)) as session:
            assert {tag_of(name) for name in session.scalars(TAGS)} == {schools[1].id}
            assert session.scalars(text("SHOW work_mem")).one() == "4MB"


def test_after_a_failed_statement_the_client_itself_goes_on(clients, schools):
    with (
        pytest.raises(InternalError, match="can't be committed"),
        working(clients[0], SchoolBinding(schools[0].id)) as session,
        suppress(DBAPIError),
    ):
        session.execute(text("SELECT 1/0"))

    assert _names(clients[0], schools[0]) == {schools[0].id}


def test_a_connection_of_the_server_that_died_between_transactions_is_replaced(clients, tenancy, schools):
    login = tenancy.placement.school_logins[0]
    for client in clients:
        with working(client, SchoolBinding(schools[0].id)) as session:
            before = backend(session)
    assert end_connections(tenancy.admin_url, login) == 1

    for client in clients:
        with working(client, SchoolBinding(schools[0].id)) as session:
            assert backend(session) != before


def test_a_connection_of_the_server_that_dies_in_a_transaction_ends_that_one_alone(clients, tenancy, schools):
    client, other = clients

    def die():
        with working(client, SchoolBinding(schools[0].id)) as session:
            write(session)
            end_connections(tenancy.admin_url, tenancy.placement.school_logins[0])
            write(session)

    with pytest.raises(DBAPIError) as caught:
        die()

    assert caught.value.connection_invalidated
    assert _names(other, schools[1]) == {schools[1].id}
    assert _names(client, schools[0]) == {schools[0].id}


def test_the_logins_settings_hold_on_the_servers_connections(tenancy):
    shown = ", ".join(f"current_setting('{name}')" for name in SETTINGS)
    for login in tenancy.placement.all_logins:
        settings = execute(tenancy.serving_url.set(username=login), f"SELECT {shown}")

        assert settings == [('""', "UTC", "1min", "1min")]


def test_without_a_school_nothing_is_found(tenancy, schools, clients):
    login = tenancy.serving_url.set(username=tenancy.placement.school_logins[0])
    with working(clients[0], SchoolBinding(schools[0].id)) as session:
        shared = backend(session)

    rows = execute(
        login, "SELECT pg_backend_pid(), session_user = current_user, to_regclass('classrooms')::text"
    )

    assert rows == [(shared, True, None)]


def test_a_school_that_is_unknown_is_refused_and_the_connection_goes_on(clients, schools):
    with clients[0]() as session:
        with pytest.raises(UnknownSchool):
            transaction(session, SchoolBinding(uuid4()))
        assert not session.in_transaction()

    assert _names(clients[1], schools[1]) == {schools[1].id}
