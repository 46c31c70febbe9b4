"""Pooled connections: replaced when they died, given back clean, not in a transaction, and replaced in time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg2 import OperationalError
from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from sqlalchemy import text
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InternalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from school_service.app import create_app
from school_service.core.database import db
from school_service.web.blueprint import Blueprint
from tenants.connections import pool
from tenants.connections.binding import Reading, SchoolBinding
from tenants.connections.sessions import transaction
from tenants.connections.statements import read
from tenants.driver_errors import constraint_names
from tenants.exceptions import UnknownSchool
from tests.cli.program import wait_for
from tests.client import ApiClient
from tests.conftest import dispose
from tests.postgres import at_schools
from tests.savepoint_engine import CountingCursor
from tests.tenants.conftest import tagged_school
from tests.tenants.installations import bound_sessions, end_connections, execute, working
from tests.threads import run_concurrently

SCHOOL = uuid4()

BACKEND = Reading("SELECT pg_backend_pid()::text, false")

WRITE = text("INSERT INTO classrooms (id, name, level) VALUES (:id, :name, 'x')")


@pytest.fixture(scope="module")
def school(tenancy):
    """A school of this module's own."""
    return tagged_school(tenancy)


def kill(tenancy):
    """Let the server end every connection of the serving login; answer how many there were."""
    return end_connections(at_schools(tenancy.admin_url), tenancy.placement.login)


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
                transaction(session, SchoolBinding(school.id))
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
        transaction(session, SchoolBinding(uuid4()))

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
            row = cursor.fetchone()
    finally:
        connection.close()
    return [row] == execute(tenancy.serving_url, f"SELECT {settings}")


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
            (tenancy.placement.login,),
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
            transaction(late, SchoolBinding(school.id))
        assert not late.in_transaction()

    with working(sessions, SchoolBinding(school.id)) as session:
        assert backend(session)


def served_by(sessions, school):
    with working(sessions, SchoolBinding(school.id)) as session:
        return backend(session)


def test_a_connection_is_replaced_after_so_many_schools(make_engine, options, school, schools):
    sessions = bound_sessions(make_engine(schools_per_connection=3), options)
    first, second, third = school, *schools

    # The third school is the last of the first connection, however often the others were served by it.
    served = [served_by(sessions, place) for place in (first, second, first, second, third, first, second)]

    assert len(set(served[:5])) == 1
    assert len(set(served[5:])) == 1
    assert served[4] != served[5]


def test_a_connection_is_closed_when_it_is_given_back_and_not_before(make_engine, options, tenancy, school):
    sessions = bound_sessions(make_engine(schools_per_connection=1), options)

    for place in (school, tagged_school(tenancy, rows=0)) * 3:
        with working(sessions, SchoolBinding(place.id)) as session:
            driver = session.connection().connection.dbapi_connection.driver
            write(session)
            with session.begin_nested():
                write(session)
            assert not driver.closed
        assert driver.closed


def test_a_pool_fills_up_before_a_connection_serves_another_school(make_engine, options, school, schools):
    sessions = bound_sessions(make_engine(pool_size=3), options)
    ones = school, *schools

    first_round = [served_by(sessions, place) for place in ones]
    second_round = [served_by(sessions, place) for place in reversed(ones)]

    assert len(set(first_round)) == 3
    assert second_round == first_round[::-1]


def test_a_school_takes_another_connection_where_the_one_that_has_served_it_is_busy(
    make_engine, options, school, schools
):
    sessions = bound_sessions(make_engine(pool_size=2, pool_timeout=0.05), options)
    other = schools[0]
    first = served_by(sessions, school)

    with working(sessions, SchoolBinding(school.id)) as session:
        assert backend(session) == first
        stand_in = served_by(sessions, school)
        assert served_by(sessions, other) == stand_in

    assert stand_in != first


def test_a_stranger_goes_to_the_connection_that_has_served_the_fewest_schools(
    make_engine, options, tenancy, school, schools
):
    sessions = bound_sessions(make_engine(pool_size=2), options)
    first, second = schools
    with working(sessions, SchoolBinding(school.id)) as session:
        served_one = backend(session)
        served_two = {served_by(sessions, first), served_by(sessions, second)}

    stranger = tagged_school(tenancy, rows=0)

    assert served_by(sessions, stranger) == served_one
    assert len(served_two - {served_one}) == 1


class FullPool:
    """Two connections, each in two schools so far, as many as it may before anybody waits: A and C, B and D.

    B's works for B, or for another school, while A's is idle.
    """

    def __init__(self, make_engine, options, schools, monkeypatch, *, patience, limit=4):
        monkeypatch.setattr(pool, "PATIENCE", patience)
        self.engine = make_engine(pool_size=2, schools_per_connection=limit, pool_timeout=0.05)
        self.sessions = bound_sessions(self.engine, options)
        self.schools = schools
        self.served = [served_by(self.sessions, place) for place in schools]
        assert self.served[:2] == self.served[2:]
        assert len(set(self.served)) == 2

    def working_for(self, number):
        return working(self.sessions, SchoolBinding(self.schools[number].id))

    def serve(self, number):
        return served_by(self.sessions, self.schools[number])


@pytest.fixture(scope="module")
def four(tenancy):
    """Four schools, of this module alone."""
    return [tagged_school(tenancy, rows=0) for _ in range(4)]


def test_a_request_waits_for_the_connection_that_has_served_its_school(
    make_engine, options, four, monkeypatch
):
    full = FullPool(make_engine, options, four, monkeypatch, patience=60)

    with ThreadPoolExecutor() as threads, full.working_for(1) as session:
        busy = backend(session)
        waiting = threads.submit(full.serve, 3)
        wait_for(lambda: full.engine.pool.connections._waiters, "the request that waits")
        # The idle one goes on working for the schools that it has served.
        assert full.serve(0) == full.served[0] != busy
        assert not waiting.done()
        session.rollback()
        session.close()
        assert waiting.result() == busy


def test_a_request_does_not_wait_long_for_a_connection_of_its_school(make_engine, options, four, monkeypatch):
    full = FullPool(make_engine, options, four, monkeypatch, patience=0.001)

    with full.working_for(1):
        assert full.serve(3) == full.served[0]

    assert full.engine.pool.connections._waiters == []
    assert full.serve(3) in full.served


@pytest.mark.parametrize(
    ("held", "wanted", "limit"),
    [(1, 1, 4), (1, 3, 24)],
    ids=["whose school has several requests at once", "while there is room for another school"],
)
def test_a_request_does_not_wait(make_engine, options, four, monkeypatch, held, wanted, limit):
    full = FullPool(make_engine, options, four, monkeypatch, patience=60, limit=limit)

    with full.working_for(held):
        assert full.serve(wanted) == full.served[0]


def test_behind_a_transaction_that_takes_long_nobody_waits(make_engine, options, four, monkeypatch):
    full = FullPool(make_engine, options, four, monkeypatch, patience=60)

    with full.working_for(1):
        (taken,) = full.engine.pool.connections._taken
        taken.taken_at -= 61
        assert full.serve(3) == full.served[0]


def test_the_longer_transactions_take_the_longer_a_request_waits(make_engine):
    connections = make_engine(pool_size=1).pool.connections
    assert connections._patience() == pool.PATIENCE

    for seconds, longest in ((0.02, 4 * 0.02), (3600, pool.LONGEST_PATIENCE)):
        for _ in range(200):
            connection = connections.take(SCHOOL)
            connection.taken_at -= seconds
            connection.close()
        assert connections._patience() >= 0.99 * longest
    assert connections._patience() == pool.LONGEST_PATIENCE


def test_where_no_connection_has_served_the_school_nobody_waits(
    make_engine, options, four, schools, monkeypatch
):
    full = FullPool(make_engine, options, four, monkeypatch, patience=60)

    with full.working_for(1):
        assert served_by(full.sessions, schools[0]) == full.served[0]


def test_the_pool_of_an_engine_that_was_disposed_of_has_new_connections_and_the_same_limit(
    make_engine, options, school
):
    engine = make_engine(schools_per_connection=7)
    sessions = bound_sessions(engine, options)
    before = served_by(sessions, school)

    engine.dispose()

    assert engine.pool.checkedin() == 0
    assert served_by(sessions, school) != before
    assert engine.pool.connections.schools_per_connection == 7


def test_where_postgresql_takes_no_more_connections_the_open_ones_serve(
    make_engine, options, tenancy, school, schools
):
    sessions = bound_sessions(make_engine(pool_size=3), options)
    first = served_by(sessions, school)
    login = f'"{tenancy.placement.login}"'
    execute(tenancy.admin_url, f"ALTER ROLE {login} NOLOGIN")

    try:
        assert served_by(sessions, schools[0]) == first
        with working(sessions, SchoolBinding(school.id)), sessions() as session, pytest.raises(DBAPIError):
            transaction(session, SchoolBinding(school.id))
    finally:
        execute(tenancy.admin_url, f"ALTER ROLE {login} LOGIN")

    with working(sessions, SchoolBinding(school.id)):
        assert served_by(sessions, schools[0]) != first


def page_faults(pid):
    """The pages that a process of PostgreSQL has had to take from the system so far."""
    status = Path(f"/proc/{pid}/stat")
    if not status.exists() or "(postgres)" not in status.read_text():
        pytest.skip("PostgreSQL's processes can't be seen from here")
    return int(status.read_text().rpartition(")")[2].split()[7])


def test_a_connection_keeps_the_memory_of_a_long_answer_for_the_next(make_engine, options, school):
    sessions = bound_sessions(make_engine(), options)

    with working(sessions, SchoolBinding(school.id)) as session:
        answer = text("SELECT string_agg(md5(n::text), ',') FROM generate_series(1, 3000) n")
        for _ in range(5):
            session.scalar(answer)
        before = page_faults(backend(session))
        for _ in range(20):
            session.scalar(answer)
        # A hundred for each answer, of a connection that gives it back.
        assert page_faults(backend(session)) - before < 20


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
        transaction(session, SchoolBinding(uuid4()))

    assert [message.split()[0] for message in sent] == ["BEGIN", "ROLLBACK"]


# Statements are not repeated.


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


class TestReading:
    """Reading in a round trip of its own, on a connection without a session."""

    @staticmethod
    def backend_of(engine, school, options):
        return read(engine, SchoolBinding(school.id), options, BACKEND).portions

    def test_the_connection_is_given_back_and_taken_again(self, engine, school, options):
        backends = [self.backend_of(engine, school, options) for _ in range(3)]

        assert backends == backends[:1] * 3
        assert (engine.pool.checkedin(), engine.pool.checkedout()) == (1, 0)

    def test_an_error_leaves_the_connection_to_the_next(self, engine, tenancy, school, options):
        backend = self.backend_of(engine, school, options)
        with pytest.raises(DBAPIError) as caught:
            read(engine, SchoolBinding(school.id), options, Reading("SELECT (1 / 0)::text, false"))

        assert isinstance(caught.value, DataError)
        assert caught.value.orig.pgcode == "22012"
        assert not caught.value.connection_invalidated
        assert self.backend_of(engine, school, options) == backend
        assert as_it_was_made(engine, tenancy)

    def test_a_lost_connection_is_replaced_and_so_are_all_as_old(self, make_engine, tenancy, school, options):
        engine = make_engine(pool_size=3)
        taken = [engine.pool.connections.take(school.id) for _ in range(3)]
        for connection in taken:
            connection.close()
        assert kill(tenancy)
        CountingCursor.errors = errors = []

        for _ in range(3):
            self.backend_of(engine, school, options)

        assert len(errors) == 1
        assert all(connection.closed for connection in taken)
        assert (engine.pool.checkedin(), engine.pool.checkedout()) == (1, 0)

    def test_one_that_is_lost_each_time_is_replaced_once(self, engine, tenancy, school, options, monkeypatch):
        send = CountingCursor.execute

        def lose(cursor, query, parameters=None):
            assert kill(tenancy)
            send(cursor, query, parameters)

        CountingCursor.errors = errors = []
        with monkeypatch.context() as patch:
            patch.setattr(CountingCursor, "execute", lose)
            with pytest.raises(DBAPIError) as caught:
                self.backend_of(engine, school, options)

        assert caught.value.connection_invalidated
        assert len(errors) == 2
        assert (engine.pool.checkedin(), engine.pool.checkedout()) == (0, 0)
        assert self.backend_of(engine, school, options)

    def test_its_values_are_not_in_the_error(self, engine, school, options):
        with pytest.raises(DBAPIError) as caught:
            read(engine, SchoolBinding(school.id), options, Reading("SELECT (1 / %s)::text, false", (0.0,)))

        assert "parameters hidden" in str(caught.value)


class TestTaking:
    """Taking a connection, and giving it back."""

    @pytest.fixture
    def connections(self, engine):
        return engine.pool.connections

    def test_a_connection_given_back_is_taken_again(self, connections):
        taken = []
        for _ in range(3):
            taken.append(connections.take(SCHOOL))
            assert connections.checkedout() == 1
            taken[-1].close()
            assert connections.checkedout() == 0
        assert connections.checkedin() == 1
        assert len(set(taken)) == 1

    def test_a_connection_is_given_back_once(self, connections):
        connection = connections.take()
        connection.close()
        connection.close()
        connection.discard()

        assert (connections.checkedin(), connections.checkedout()) == (1, 0)
        assert not connection.closed

    def test_with_a_transaction_under_way_it_is_closed(self, connections):
        connection = connections.take(SCHOOL)
        with connection.cursor() as cursor:
            cursor.execute("BEGIN; SET LOCAL search_path TO elsewhere")
        connection.close()

        assert connection.closed
        assert (connections.checkedin(), connections.checkedout()) == (0, 0)

    def test_where_none_can_be_made_the_place_in_the_pool_stays(self, connections, monkeypatch):
        def refuse():
            raise OperationalError("no more connections")

        with monkeypatch.context() as patch:
            patch.setattr(connections, "_connect", refuse)
            for _ in range(2):
                with pytest.raises(OperationalError):
                    connections.take(SCHOOL)

        assert connections.checkedout() == 0
        connections.take(SCHOOL).close()
        assert connections.checkedin() == 1

    def test_a_school_gets_the_connection_that_has_served_it_last_then_that_with_the_fewest_others(
        self, make_engine
    ):
        connections = make_engine(pool_size=4).pool.connections
        four = [connections.take(SCHOOL) for _ in range(4)]
        served = ([SCHOOL], [SCHOOL, uuid4()], [uuid4(), uuid4()], [uuid4()])
        for connection, schools in zip(four, served, strict=True):
            connection.schools.update(schools)
        for connection in four:
            connection.close()

        assert [connections.take(SCHOOL) for _ in range(4)] == [four[1], four[0], four[3], four[2]]
        for connection in four:
            connection.close()

    def test_one_that_has_served_enough_schools_is_closed_when_it_is_given_back(self, make_engine):
        connections = make_engine(schools_per_connection=2).pool.connections
        taken = []
        for number in range(3):
            connection = connections.take(SCHOOL)
            taken.append(connection)
            connection.schools.add(SCHOOL if number == 0 else uuid4())
            connection.close()

        # The second request was in its second school.
        assert taken[0] is taken[1] is not taken[2]
        assert (taken[1].closed != 0, taken[2].closed) == (True, 0)

    def test_more_are_opened_in_passing_and_closed_again(self, make_engine):
        connections = make_engine(pool_size=1, max_overflow=1).pool.connections
        taken = [connections.take() for _ in range(2)]
        for connection in taken:
            connection.close()

        assert (connections.checkedin(), connections.checkedout()) == (1, 0)
        assert [connection.closed != 0 for connection in taken] == [False, True]

    def test_a_waiting_request_opens_a_connection_in_place_of_a_closed_one(self, make_engine):
        connections = make_engine(pool_size=1, pool_timeout=60).pool.connections
        lost = connections.take()
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(connections.take, SCHOOL)
            wait_for(lambda: connections.waits.waiting, "the request that waits")
            lost.discard()
            made = waiting.result()

        assert made is not lost
        assert (lost.closed != 0, made.closed, connections.checkedout()) == (True, 0, 1)
        assert connections.waits.count == 1
        made.close()

    def test_a_request_of_the_connections_school_comes_before_others(self, make_engine):
        connections = make_engine(pool_size=1, pool_timeout=60).pool.connections
        busy = connections.take()
        busy.schools.add(SCHOOL)
        with ThreadPoolExecutor() as threads:
            stranger = threads.submit(connections.take, uuid4())
            wait_for(lambda: connections.waits.waiting == 1, "the stranger")
            waiting = threads.submit(connections.take, SCHOOL)
            wait_for(lambda: connections.waits.waiting == 2, "the request of the school")
            busy.close()
            assert waiting.result() is busy
            assert not stranger.done()
            busy.close()
            assert stranger.result() is busy
        busy.close()
