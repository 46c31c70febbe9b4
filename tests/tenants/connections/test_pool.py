"""Pooled connections: replaced when they died, given back clean, not in a transaction, and replaced in time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

import pytest
from psycopg2 import OperationalError
from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError, InternalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from school_service.app import create_app
from school_service.core.database import db
from school_service.web.blueprint import Blueprint
from tenants.connections import pool
from tenants.connections.binding import SchoolBinding
from tenants.connections.engines import fetch_row_apart, school_url, serving_engine, serving_options
from tenants.connections.pool import mark_school
from tenants.connections.sessions import begin_in_school
from tenants.driver_errors import constraint_names
from tenants.exceptions import UnknownSchool
from tests.cli.program import wait_for
from tests.client import ApiClient
from tests.conftest import dispose
from tests.postgres import at_schools
from tests.savepoint_engine import CountingCursor
from tests.tenants.conftest import tagged_school
from tests.tenants.installations import bound_sessions, execute, working
from tests.threads import run_concurrently

SCHOOL = uuid4()

WRITE = text("INSERT INTO classrooms (id, name, level) VALUES (:id, :name, 'x')")


@pytest.fixture(scope="module")
def school(tenancy):
    """A school of this module's own."""
    return tagged_school(tenancy)


def kill(tenancy):
    """Let the server end every connection of the serving login; answer how many there were."""
    killed = execute(
        at_schools(tenancy.admin_url),
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s",
        (tenancy.serving_login,),
    )
    assert all(gone for (gone,) in killed)
    return len(killed)


def do(sessions, school, *steps, read_only=False):
    """Take the steps, each with the session, in one transaction of the school."""
    with working(sessions, SchoolBinding(school.id, read_only)) as session:
        for step in steps:
            step(session)


def backend(session):
    return session.scalars(text("SELECT pg_backend_pid()")).one()


def write(session):
    session.execute(WRITE, {"id": uuid4(), "name": f"room {uuid4()}"})


def rooms(tenancy, school):
    return execute(tenancy.admin_url, f'SELECT count(*) FROM "{school.schema}".classrooms')[0][0]


# Connections that died.


def test_a_connection_that_died_in_the_pool_is_replaced(sessions, tenancy, school):
    with working(sessions, SchoolBinding(school.id)) as session:
        before = backend(session)
    assert kill(tenancy)

    with working(sessions, SchoolBinding(school.id)) as session:
        assert backend(session) != before


def test_requests_go_on_after_every_connection_died(app, document, tenancy, place):
    client = ApiClient(app, document, place.admin_token, place.id)
    # Users show their school, nationalities are the registry's: both pools are in use.
    paths = ("/classrooms", "/users", "/nationalities") * 7

    def statuses():
        return set(run_concurrently(len(paths), lambda number: client.get(paths[number]).status_code))

    assert statuses() == {200}
    assert kill(tenancy) > 1
    assert statuses() == {200}


def test_a_connection_that_dies_in_a_transaction_is_not_taken_up_again(sessions, tenancy, school):
    before = rooms(tenancy, school)

    with pytest.raises(DBAPIError) as caught:
        do(sessions, school, write, lambda _: kill(tenancy), write)

    assert caught.value.connection_invalidated
    assert rooms(tenancy, school) == before
    do(sessions, school, write)
    assert rooms(tenancy, school) == before + 1


def test_a_connection_that_dies_before_the_commit_stores_nothing(sessions, tenancy, school):
    before = rooms(tenancy, school)

    with pytest.raises(DBAPIError):
        do(sessions, school, write, lambda _: kill(tenancy))

    assert rooms(tenancy, school) == before


def test_where_the_server_is_away_entering_fails_once_and_for_all(make_engine, options, tenancy, school):
    nowhere = tenancy.serving_url.set(drivername="postgresql+school", database="nowhere")
    sessions = bound_sessions(make_engine(nowhere), options)

    for _ in range(2):
        with sessions() as session:
            with pytest.raises(DBAPIError):
                begin_in_school(session, SchoolBinding(school.id))
            assert not session.in_transaction()


# Connections given back.


def swallow(session):
    with suppress(DBAPIError):
        session.execute(text("SELECT 1/0"))


def leave_settings(session):
    session.execute(text("SET LOCAL work_mem TO '1MB'"))
    session.execute(text("SET LOCAL TIME ZONE 'Africa/Lagos'"))


ENDINGS = {
    "commit": write,
    "settings": leave_settings,
    "rollback": lambda session: session.rollback(),
    "error": lambda session: session.execute(text("SELECT 1/0")),
    "error, swallowed": swallow,
    "violation": lambda session: session.execute(WRITE, {"id": None, "name": None}),
    "exception": lambda session: 1 / 0,
    "savepoint": lambda session: session.begin_nested(),
    "close": lambda session: session.close(),
    "nothing": lambda session: None,
}


@pytest.mark.parametrize("read_only", [False, True], ids=["writing", "reading"])
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_nothing_of_a_transaction_stays_on_its_connection(
    sessions, engine, tenancy, school, ending, read_only
):
    with suppress(DBAPIError, ZeroDivisionError):
        do(sessions, school, ending, read_only=read_only)

    assert as_it_was_made(engine, tenancy)


def test_nothing_of_a_refused_entry_stays_on_its_connection(sessions, engine, tenancy):
    with sessions() as session, pytest.raises(UnknownSchool):
        begin_in_school(session, SchoolBinding(uuid4()))

    assert as_it_was_made(engine, tenancy)


def as_it_was_made(engine, tenancy):
    """Tell whether the pool's connection is idle and has the settings that a new one has."""
    settings = "current_user::text, {}".format(
        ", ".join(
            f"current_setting('{name}')"
            for name in ("search_path", "timezone", "transaction_read_only", "role", "work_mem")
        )
    )
    connection = engine.raw_connection()
    try:
        assert connection.get_transaction_status() == TRANSACTION_STATUS_IDLE
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {settings}")
            found = cursor.fetchone()
    finally:
        connection.close()
    return [found] == execute(tenancy.serving_url, f"SELECT {settings}")


def test_requests_leave_no_transaction_open(app, document, tenancy, place):
    client = ApiClient(app, document, place.admin_token, place.id)
    for answer in (
        client.get("/classrooms"),
        client.post("/classrooms", {"name": "", "level": "x"}),
        client.get(f"/classrooms/{uuid4()}"),
        client.using(school=uuid4()).get("/classrooms"),
        client.using(token=None).get("/classrooms"),
    ):
        assert answer.status_code in {200, 401, 403, 404, 422}

        open_ones = execute(
            tenancy.admin_url,
            "SELECT query FROM pg_stat_activity WHERE usename = %s AND state LIKE 'idle in transaction%%'",
            (tenancy.serving_login,),
        )
        assert open_ones == []


def test_a_failure_swallowed_is_not_taken_for_a_success(sessions, tenancy, school):
    before = rooms(tenancy, school)

    with pytest.raises(InternalError, match="can't be committed"):
        do(sessions, school, write, swallow)

    assert rooms(tenancy, school) == before


def test_a_failure_within_a_savepoint_takes_nothing_else_with_it(sessions, tenancy, school):
    before = rooms(tenancy, school)

    with working(sessions, SchoolBinding(school.id)) as session:
        write(session)
        with pytest.raises(DBAPIError), session.begin_nested():
            session.execute(text("SELECT 1/0"))

    assert rooms(tenancy, school) == before + 1


def test_a_reader_writes_nothing(sessions, tenancy, school):
    with pytest.raises(InternalError, match="read-only"):
        do(sessions, school, write, read_only=True)


def test_a_violation_keeps_its_name(sessions, school):
    def write_the_same(session):
        session.execute(WRITE, {"id": uuid4(), "name": "the same"})

    with pytest.raises(IntegrityError) as caught:
        do(sessions, school, write_the_same, write_the_same)

    assert "uq_classrooms_name" in constraint_names(caught.value)


# The pool.


def test_a_pool_that_is_used_up_says_so(make_engine, options, school):
    sessions = bound_sessions(make_engine(pool_timeout=0.05), options)

    with working(sessions, SchoolBinding(school.id)), sessions() as late:
        with pytest.raises(PoolTimeout):
            begin_in_school(late, SchoolBinding(school.id))
        assert not late.in_transaction()

    with working(sessions, SchoolBinding(school.id)) as session:
        assert backend(session)


def served_by(sessions, one):
    with working(sessions, SchoolBinding(one.id)) as session:
        return backend(session)


def test_a_connection_is_replaced_after_so_many_schools(make_engine, options, school, schools):
    sessions = bound_sessions(make_engine(schools_per_connection=3), options)
    first, second, third = school, *schools

    # The third school is the last of the first connection, however often the others were served by it.
    served = [served_by(sessions, one) for one in (first, second, first, second, third, first, second)]

    assert len(set(served[:5])) == 1
    assert len(set(served[5:])) == 1
    assert served[4] != served[5]


def test_a_connection_is_closed_when_it_is_given_back_and_not_before(make_engine, options, tenancy, school):
    engine = make_engine(schools_per_connection=1)
    closed = []
    event.listen(engine, "close", lambda *_: closed.append(1))
    sessions = bound_sessions(engine, options)

    for number, one in enumerate((school, tagged_school(tenancy, rows=0)) * 3):
        with working(sessions, SchoolBinding(one.id)) as session:
            write(session)
            with session.begin_nested():
                write(session)
            assert len(closed) == number
        assert len(closed) == number + 1


def test_a_pool_fills_up_before_a_connection_meets_another_school(make_engine, options, school, schools):
    sessions = bound_sessions(make_engine(pool_size=3), options)
    ones = school, *schools

    first_round = [served_by(sessions, one) for one in ones]
    second_round = [served_by(sessions, one) for one in reversed(ones)]

    assert len(set(first_round)) == 3
    assert second_round == first_round[::-1]


def test_a_school_takes_another_connection_where_the_one_that_knows_it_is_busy(
    make_engine, options, school, schools
):
    sessions = bound_sessions(make_engine(pool_size=2, pool_timeout=0.05), options)
    other = schools[0]
    known = served_by(sessions, school)

    with working(sessions, SchoolBinding(school.id)) as session:
        assert backend(session) == known
        stand_in = served_by(sessions, school)
        assert served_by(sessions, other) == stand_in

    assert stand_in != known


def test_a_stranger_goes_to_the_connection_that_knows_the_fewest_schools(
    make_engine, options, tenancy, school, schools
):
    sessions = bound_sessions(make_engine(pool_size=2), options)
    one, other = schools
    with working(sessions, SchoolBinding(school.id)) as session:
        knows_one = backend(session)
        knows_two = {served_by(sessions, one), served_by(sessions, other)}

    stranger = tagged_school(tenancy, rows=0)

    assert served_by(sessions, stranger) == knows_one
    assert len(knows_two - {knows_one}) == 1


class FullPool:
    """Two connections of which each has been in two schools, half of those that it may: A and C, B and D.

    B's works for B, or for another school, while A's is idle.
    """

    def __init__(self, make_engine, options, schools, monkeypatch, *, patience, limit=4):
        monkeypatch.setattr(pool, "PATIENCE", patience)
        self.engine = make_engine(pool_size=2, schools_per_connection=limit, pool_timeout=0.05)
        self.sessions = bound_sessions(self.engine, options)
        self.schools = schools
        self.known = [served_by(self.sessions, one) for one in schools]
        assert self.known[:2] == self.known[2:]
        assert len(set(self.known)) == 2

    def working_for(self, number):
        return working(self.sessions, SchoolBinding(self.schools[number].id))

    def serve(self, number):
        return served_by(self.sessions, self.schools[number])


@pytest.fixture(scope="module")
def four(tenancy):
    """Four schools, of this module alone."""
    return [tagged_school(tenancy, rows=0) for _ in range(4)]


def test_a_request_waits_for_the_connection_that_knows_its_school(make_engine, options, four, monkeypatch):
    full = FullPool(make_engine, options, four, monkeypatch, patience=60)

    with ThreadPoolExecutor() as threads, full.working_for(1) as session:
        busy = backend(session)
        waiting = threads.submit(full.serve, 3)
        wait_for(lambda: full.engine.pool._waiters, "the request that waits")
        # The idle one goes on working for the schools that it knows.
        assert full.serve(0) == full.known[0] != busy
        assert not waiting.done()
        session.rollback()
        session.close()
        assert waiting.result() == busy


def test_it_does_not_wait_for_long(make_engine, options, four, monkeypatch):
    full = FullPool(make_engine, options, four, monkeypatch, patience=0.001)

    with full.working_for(1):
        assert full.serve(3) == full.known[0]

    assert full.engine.pool._waiters == []
    assert full.serve(3) in full.known


@pytest.mark.parametrize(
    ("held", "wanted", "limit"),
    [(1, 1, 4), (1, 3, 6)],
    ids=["whose school has several requests at once", "while there is room for another school"],
)
def test_a_request_does_not_wait(make_engine, options, four, monkeypatch, held, wanted, limit):
    full = FullPool(make_engine, options, four, monkeypatch, patience=60, limit=limit)

    with full.working_for(held):
        assert full.serve(wanted) == full.known[0]


def test_where_nobody_knows_the_school_nobody_waits(make_engine, options, four, schools, monkeypatch):
    full = FullPool(make_engine, options, four, monkeypatch, patience=60)

    with full.working_for(1):
        assert served_by(full.sessions, schools[0]) == full.known[0]


def test_a_pool_made_anew_has_the_same_limit(make_engine):
    made = make_engine(schools_per_connection=7).pool

    assert made.recreate()._schools_per_connection == made._schools_per_connection == 7


def test_where_postgresql_takes_no_more_connections_those_that_there_are_do(
    make_engine, options, tenancy, school, schools
):
    sessions = bound_sessions(make_engine(pool_size=3), options)
    known = served_by(sessions, school)
    login = f'"{tenancy.serving_login}"'
    execute(tenancy.admin_url, f"ALTER ROLE {login} NOLOGIN")

    try:
        assert served_by(sessions, schools[0]) == known
        with working(sessions, SchoolBinding(school.id)), sessions() as session, pytest.raises(DBAPIError):
            begin_in_school(session, SchoolBinding(school.id))
    finally:
        execute(tenancy.admin_url, f"ALTER ROLE {login} LOGIN")

    with working(sessions, SchoolBinding(school.id)):
        assert served_by(sessions, schools[0]) != known


# Round trips.


def test_a_transaction_costs_its_statements_and_two_messages(sessions, engine, school):
    engine.connect().close()
    CountingCursor.messages = sent = []

    with working(sessions, SchoolBinding(school.id, state="SELECT 1")) as session:
        session.execute(text("SELECT 2"))
        session.execute(text("SELECT 3"))

    assert [message.split()[0] for message in sent] == ["BEGIN", "SELECT", "SELECT", "COMMIT"]


def test_a_savepoint_costs_two_messages(sessions, engine, school):
    engine.connect().close()
    CountingCursor.messages = sent = []

    with working(sessions, SchoolBinding(school.id)) as session, session.begin_nested():
        session.execute(text("SELECT 1"))

    assert [message.split()[0] for message in sent] == ["BEGIN", "SAVEPOINT", "SELECT", "RELEASE", "COMMIT"]


def test_a_refusal_costs_two_messages(sessions, engine):
    engine.connect().close()
    CountingCursor.messages = sent = []

    with sessions() as session, pytest.raises(UnknownSchool):
        begin_in_school(session, SchoolBinding(uuid4()))

    assert [message.split()[0] for message in sent] == ["BEGIN", "ROLLBACK"]


# What was done is not done twice.


def test_a_view_runs_once_even_where_the_connection_dies_under_it(settings, tenancy, document, place):
    app, runs = create_app(settings), []
    blp = Blueprint("once", __name__)

    @blp.route("/once", methods=["POST"])
    @blp.requires(None)
    def once():
        runs.append(1)
        kill(tenancy)
        db.session.execute(WRITE, {"id": uuid4(), "name": "never"})

    app.register_blueprint(blp)
    answer = ApiClient(app, document, place.admin_token, place.id).post("/once")

    assert (answer.status_code, len(runs)) == (503, 1)
    assert answer.headers["Retry-After"]
    dispose(app)


class TestTaking:
    """Taking a connection without SQLAlchemy's object around it."""

    @pytest.fixture
    def engine(self, tenancy):
        engine = serving_engine(at_schools(tenancy.serving_url), pool_size=1)
        yield engine
        engine.dispose()

    def test_what_is_given_back_is_taken_again(self, engine):
        for _ in range(3):
            connection = engine.pool.take(SCHOOL)
            assert engine.pool.checkedout() == 1
            connection.close()
            assert engine.pool.checkedout() == 0
        assert engine.pool.checkedin() == 1

    def test_what_is_under_way_is_rolled_back(self, engine, tenancy):
        connection = engine.pool.take(SCHOOL)
        with connection.dbapi_connection.cursor() as cursor:
            cursor.execute("BEGIN; SET LOCAL search_path TO elsewhere")
        connection.close()

        assert engine.pool.checkedin() == 1
        assert as_it_was_made(engine, tenancy)

    def test_an_error_leaves_the_connection_to_the_next(self, engine, tenancy):
        connection = engine.pool.take(SCHOOL)
        backend = connection.dbapi_connection.get_backend_pid()
        with pytest.raises(DBAPIError):
            fetch_row_apart(engine, connection, "SELECT 1 / 0", ())
        connection.close()

        assert engine.pool.checkedin() == 1
        again = engine.pool.take(SCHOOL)
        assert again.dbapi_connection.get_backend_pid() == backend
        again.close()
        assert as_it_was_made(engine, tenancy)

    def test_a_lost_connection_is_replaced_and_so_are_all_as_old(self, engine, tenancy):
        connection = engine.pool.take(SCHOOL)
        assert kill(tenancy)
        with pytest.raises(DBAPIError) as caught:
            fetch_row_apart(engine, connection, "SELECT 1 AS one", ())
        connection.close()

        assert caught.value.connection_invalidated
        again = engine.pool.take(SCHOOL)
        assert fetch_row_apart(engine, again, "SELECT 1 AS one", ()) == {"one": 1}
        again.close()
        assert engine.pool.checkedout() == 0

    def test_where_none_can_be_made_the_place_in_the_pool_stays(self, engine, monkeypatch):
        engine.pool.take(SCHOOL).close()
        entry = engine.pool._pool.queue[0]
        entry.invalidate()

        def refuse(*_arguments):
            raise OperationalError("no more connections")

        with monkeypatch.context() as patch:
            patch.setattr(engine.pool, "_invoke_creator", refuse)
            with pytest.raises(OperationalError):
                engine.pool.take(SCHOOL)

        assert engine.pool.checkedout() == 0
        engine.pool.take(SCHOOL).close()
        assert engine.pool.checkedin() == 1

    def test_a_school_gets_the_connection_that_knows_it_and_the_fewest_others(self, tenancy):
        engine = serving_engine(tenancy.serving_url, pool_size=3)
        connections = [engine.pool.take(SCHOOL) for _ in range(3)]
        for connection, schools in zip(connections, ([SCHOOL, uuid4()], [SCHOOL], [uuid4()]), strict=True):
            for one in schools:
                mark_school(connection, one)
        drivers = [connection.dbapi_connection for connection in connections]
        for connection in connections:
            connection.close()

        taken = [engine.pool.take(SCHOOL) for _ in range(3)]

        assert [one.dbapi_connection for one in taken] == [drivers[1], drivers[0], drivers[2]]
        for one in taken:
            one.close()
        engine.dispose()

    def test_a_connection_that_has_been_in_enough_schools_is_closed_when_it_is_given_back(self, tenancy):
        url, options = school_url(tenancy.serving_url), serving_options(1, schools_per_connection=2)
        engine = create_engine(url, **options)
        backends = []
        for number in range(3):
            connection = engine.pool.take(SCHOOL)
            backends.append(connection.dbapi_connection.get_backend_pid())
            mark_school(connection, SCHOOL if number == 0 else uuid4())
            connection.close()

        # The second request was in its second school.
        assert backends[0] == backends[1] != backends[2]
        engine.dispose()

    def test_whoever_listens_for_what_is_given_back_hears_of_it(self, engine):
        heard = []
        event.listen(engine.pool, "checkin", lambda driver, _entry: heard.append(driver))
        connection = engine.pool.take(SCHOOL)
        driver = connection.dbapi_connection
        connection.close()

        assert heard == [driver]
        assert engine.pool.checkedin() == 1
