"""Many threads in many schools on few connections: no row of another school, however the transactions end."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from random import Random
from threading import Lock
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.exc import DBAPIError, IntegrityError

from school_service.app import create_app
from school_service.auth.tokens import issue_client_token
from tenants.connections.binding import SchoolBinding
from tenants.connections.dialect import SchoolDialect
from tenants.registry.clients import create_client
from tests.conftest import Way, dispose, replaced_engines
from tests.postgres import on_citus, with_one_server
from tests.tenants.conftest import tag_of, tagged_school
from tests.tenants.installations import routed_sessions, working

THREADS = 32
SCHOOLS = 4
# Requests of each thread: 20,160 of all of them together before a release, and each run sends a part.
REQUESTS = {1: 125, 8: 140}  # by size of the pool
OVER_HTTP = 100
PATIENCE = 20  # times that a request is sent until it gets a connection

parts = pytest.mark.parametrize(
    "part", [pytest.param(10, id="a tenth"), pytest.param(1, id="all", marks=pytest.mark.release)]
)

WAYS = [
    pytest.param(None, id="one login"),
    pytest.param(Way(logins=2), id="two logins"),
    pytest.param(Way(logins=2, pgbouncer=True), id="pgbouncer", marks=with_one_server),
]

TAGS = text("SELECT name FROM classrooms WHERE level = 'tag'")
WRITE = text("INSERT INTO classrooms (id, name, level) VALUES (:id, :name, 'tag')")
ERASE = text("DELETE FROM classrooms WHERE id = :id")


@pytest.fixture(scope="module")
def many(tenancy):
    """Schools whose classrooms bear the school's id."""
    logins = tenancy.placement.school_logins
    return [tagged_school(tenancy, login=logins[number % len(logins)]) for number in range(SCHOOLS)]


class Crowd:
    """Threads that each query again and again, in a school drawn by lot; counts the rows seen of each."""

    def __init__(self, schools, ways):
        self.schools = schools
        self.ways = ways
        self.done = Counter()
        self.strangers = []
        self._lock = Lock()

    def run(self, requests, seed):
        """Ask so many times in each thread."""
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(self._thread, [requests] * THREADS, count(seed)):
                pass

    def _thread(self, requests, seed):
        lots = Random(seed)
        for _ in range(requests):
            school, way = lots.choice(self.schools), lots.choice(self.ways)
            names = way(school, lots)
            assert names, "a school sees its own rows"
            strangers = [(school.id, name) for name in names if tag_of(name) != school.id]
            with self._lock:
                self.strangers += strangers
                self.done[way.__name__] += 1


def session_ways(sessions, schools):
    """List the ways of a request that goes to the session: how it works, and how it ends."""

    def read(school, _lots):
        with working(sessions, SchoolBinding(school.id, read_only=True)) as session:
            return session.scalars(TAGS).all()

    def write_and_commit(school, _lots):
        row = uuid4()
        with working(sessions, SchoolBinding(school.id)) as session:
            session.execute(WRITE, {"id": row, "name": f"{school.id} {row}"})
            names = session.scalars(TAGS).all()
            session.execute(ERASE, {"id": row})
        return names

    def write_and_roll_back(school, _lots):
        row = uuid4()
        with working(sessions, SchoolBinding(school.id)) as session:
            session.execute(WRITE, {"id": row, "name": f"{school.id} {row}"})
            names = session.scalars(TAGS).all()
            session.rollback()
        return names

    def read_then(school, names, work):
        with working(sessions, SchoolBinding(school.id)) as session:
            names += session.scalars(TAGS)
            work(session)

    def fail(school, _lots):
        names = []
        with pytest.raises(ZeroDivisionError):
            read_then(school, names, lambda session: 1 / 0)
        return names

    def violate(school, _lots):
        names = []
        with pytest.raises(IntegrityError):
            read_then(
                school, names, lambda session: session.execute(WRITE, {"id": uuid4(), "name": names[0]})
            )
        return names

    def reach_out(school, lots):
        other = lots.choice([other for other in schools if other is not school])
        with working(sessions, SchoolBinding(school.id)) as session:
            with pytest.raises(DBAPIError), session.begin_nested():
                session.execute(text(f'SELECT name FROM "{other.schema}".classrooms'))
            return session.scalars(TAGS).all()

    return [read, write_and_commit, write_and_roll_back, fail, violate, reach_out]


def http_ways(app, token):
    """List the ways of a request over HTTP: its path, and its end."""

    def send(school, method, body=None):
        headers = {"Authorization": f"Bearer {token}", "X-SCHOOL-ID": str(school.id)}
        for _ in range(PATIENCE):
            response = app.test_client().open("/classrooms", method=method, headers=headers, json=body)
            # On a busy machine a thread may wait too long for one of the few connections. It tries again.
            if response.status_code != 503 or "overloaded" not in response.text:
                break
        return response

    def list_(school, _lots):
        answer = send(school, "GET")
        assert answer.status_code == 200, (answer.status_code, answer.text)
        assert {room["school"] for room in answer.get_json()} == {str(school.id)}
        return [room["name"] for room in answer.get_json()]

    def create(school, _lots):
        answer = send(school, "POST", {"name": f"{school.id} {uuid4()}", "level": "tag"}).get_json()
        assert answer["school"] == str(school.id)
        return [answer["name"]]

    def collide(school, lots):
        assert send(school, "POST", {"name": f"{school.id} 0", "level": "tag"}).status_code == 409
        return list_(school, lots)

    def get_wrong(school, lots):
        assert send(school, "POST", {"name": "", "level": "tag"}).status_code == 422
        return list_(school, lots)

    return [list_, create, collide, get_wrong]


@parts
@pytest.mark.parametrize("pool_size", REQUESTS)
def test_no_session_sees_a_row_of_another_school(make_engines, tenancy, many, pool_size, part):
    engines = make_engines(pool_size=pool_size, pool_timeout=60)
    crowd = Crowd(many, session_ways(routed_sessions(engines, tenancy), many))
    requests = REQUESTS[pool_size] // part // tenancy.placement.logins**2

    crowd.run(requests, seed=pool_size)

    assert crowd.strangers == []
    assert crowd.done.total() == requests * THREADS
    assert len(crowd.done) == len(crowd.ways)


@pytest.fixture(scope="module")
def busy_app(settings, tenancy):
    """An application with fewer connections than threads."""
    app = create_app(replace(settings, pool_size=4))
    yield app
    dispose(app)


@pytest.fixture(scope="module")
def token(busy_app, tenancy):
    """The token of a machine client that may do everything everywhere."""
    with tenancy.admin.begin() as connection:
        create_client(connection, client_id="crowd", all_schools=True, all_permissions=True)
    with busy_app.app_context():
        return issue_client_token(busy_app.extensions["school-service"].verifier.key, "crowd", [])[
            "access_token"
        ]


@parts
def test_no_request_sees_a_row_of_another_school(busy_app, tenancy, token, many, part):
    crowd = Crowd(many, http_ways(busy_app, token))

    requests = OVER_HTTP // part // tenancy.placement.logins
    crowd.run(requests, seed=0)

    assert crowd.strangers == []
    assert crowd.done.total() == requests * THREADS
    assert len(crowd.done) == len(crowd.ways)


# The same crowd, where up to one transaction in ten is bound to a wrong school.


class NowAndThenWrong(SchoolDialect):
    """Binds to the school before, now and then."""

    supports_statement_cache = True
    before = None
    bindings = count(1)

    def binding_batch(self, binding, options):
        before, self.before = self.before or binding, binding
        alike = all((a is None) == (b is None) for a, b in zip(kind(before), kind(binding), strict=True))
        if next(self.bindings) % 10 == 0 and alike:
            binding = before._replace(reading=binding.reading)
        return super().binding_batch(binding, options)


def kind(binding):
    """The members of a binding that decide the last columns of its batch."""
    return binding.state, binding.client, binding.reading


dialects.register("postgresql.nowandthenwrong", __name__, "NowAndThenWrong")


@pytest.fixture
def wrong_engines(make_engines):
    """Engines that now and then bind to a wrong school."""
    return make_engines("postgresql+nowandthenwrong", pool_size=8, pool_timeout=60)


def test_the_crowd_sees_a_session_in_a_wrong_school(wrong_engines, tenancy, many):
    read = session_ways(routed_sessions(wrong_engines, tenancy), many)[0]
    crowd = Crowd(many, [read])

    crowd.run(10, seed=0)

    assert crowd.strangers


def test_the_crowd_sees_a_request_in_a_wrong_school(busy_app, wrong_engines, token, many):
    crowd = Crowd(many, http_ways(busy_app, token)[:1])

    with replaced_engines(busy_app, wrong_engines):
        if on_citus():
            # Reads name the tables of the right school there, which the role of the wrong one may not read.
            with pytest.raises(AssertionError, match="500"):
                crowd.run(10, seed=0)
        else:
            crowd.run(10, seed=0)
            assert crowd.strangers
