"""The reach of a school's transaction: its own rows alone, and a detector that is shown to see leaks."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid4

import psycopg2
import pytest
from marshmallow import fields
from sqlalchemy import text
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import sessionmaker

from school_service.app import create_app
from school_service.core.database import db
from school_service.web.blueprint import Blueprint
from school_service.web.schemas import Schema
from tenants.connections.binding import SchoolBinding
from tenants.connections.dialect import SchoolDialect
from tenants.connections.sessions import transaction
from tenants.connections.statements import write
from tenants.exceptions import NoSchool, SchoolChosen
from tests.client import ApiClient
from tests.conftest import Way, dispose
from tests.pgbouncer import is_bouncer, reconnect
from tests.postgres import at_schools, on_citus, with_one_server
from tests.savepoint_engine import CountingCursor
from tests.tenants.conftest import tag_of, tagged_school
from tests.tenants.installations import bound_sessions, execute, working

WAYS = [
    pytest.param(None, id="one login"),
    pytest.param(Way(logins=2), id="two logins"),
    pytest.param(Way(logins=2, pgbouncer=True), id="pgbouncer", marks=with_one_server),
]

TAGS = "SELECT name FROM classrooms WHERE level = 'tag' ORDER BY name"


@dataclass(frozen=True)
class Leak:
    """A row out of reach that was shown: where it was looked for, from which school, and whose it was."""

    query: str
    inside: UUID
    seen: UUID


def leaks(sessions, engine, schools):
    """Try, twice in each of two schools, all that must not show a row of another; list the rows shown."""
    rows = []
    for school, other in [*zip(schools, reversed(schools), strict=True)] * 2:
        inside = SchoolBinding(school.id)
        shown = {
            "its own tables": [tag for tag in tags(sessions, TAGS, inside) if tag != school.id],
            "the other's tables": tags(sessions, f'SELECT name FROM "{other.schema}".classrooms', inside),
            "the registry": tags(sessions, "SELECT id::text FROM registry.schools", inside),
            "a session without a school": tags(sessions, TAGS, None),
            "the connection given back": tags_by_hand(engine, TAGS),
        }
        rows += [Leak(query, school.id, tag) for query, seen in shown.items() for tag in seen]
    return rows


def tags(sessions, sql, binding):
    """Read the tags in a transaction; a refused one shows none."""
    with sessions() as session:
        try:
            if binding is not None:
                transaction(session, binding)
            values = [tag_of(name) for name in session.scalars(text(sql))]
            session.commit()
        except (DBAPIError, NoSchool):
            return []
        return values


def tags_by_hand(engine, sql):
    """Read the tags on a pooled connection as the last transaction left it."""
    connection = engine.raw_connection()
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return [tag_of(name) for (name,) in cursor.fetchall()]
    except engine.dialect.loaded_dbapi.ProgrammingError:
        return []
    finally:
        connection.close()


class WrongSchool(SchoolDialect):
    """Binds to the school before, as a mistaken memory of connections would."""

    supports_statement_cache = True
    before = None

    def binding_batch(self, binding, options):
        used, self.before = self.before or binding, binding
        return super().binding_batch(used, options)


class WithoutRole(SchoolDialect):
    """Leaves the role as it is."""

    supports_statement_cache = True

    def binding_batch(self, binding, options):
        batch, parameters = super().binding_batch(binding, options)
        return "".join(line for line in batch.splitlines(True) if "SET LOCAL ROLE" not in line), parameters


class WithoutPath(SchoolDialect):
    """Leaves the search_path as it is."""

    supports_statement_cache = True

    def binding_batch(self, binding, options):
        batch, parameters = super().binding_batch(binding, options)
        return "".join(line for line in batch.splitlines(True) if "search_path" not in line), parameters


class ForTheSession(SchoolDialect):
    """Says SET where it should say SET LOCAL."""

    supports_statement_cache = True

    def binding_batch(self, binding, options):
        batch, parameters = super().binding_batch(binding, options)
        return batch.replace("SET LOCAL", "SET"), parameters


class Once(ForTheSession):
    """Binds the first transaction of all, for the session, and trusts that it holds."""

    supports_statement_cache = True
    bound = False

    def binding_batch(self, binding, options):
        if self.bound:
            return self.begin_statement(binding.read_only), ()
        self.bound = True
        return super().binding_batch(binding, options)


class Trusting(ForTheSession):
    """Lets statements pass that no binding came before."""

    supports_statement_cache = True

    def require_binding(self, cursor):
        pass


for broken in (WrongSchool, WithoutRole, WithoutPath, ForTheSession, Once, Trusting):
    dialects.register(f"postgresql.{broken.__name__.lower()}", __name__, broken.__name__)


@pytest.fixture(autouse=True)
def clean_bouncer(request):
    """Lets PgBouncer throw away the server's connections after a test with a broken binding."""
    yield
    settings = request.getfixturevalue("settings") if "settings" in request.fixturenames else None
    if settings is not None and is_bouncer(settings.database_url):
        reconnect(settings.database_url)


@pytest.fixture
def broken_engine(make_engine, tenancy):
    """Makes engines of a broken dialect, as the serving login or as a superuser."""

    first_login = at_schools(tenancy.serving_url).set(username=tenancy.placement.school_logins[0])

    def make(dialect, url=first_login):
        return make_engine(url.set(drivername=f"postgresql+{dialect.__name__.lower()}"))

    return make


def test_nothing_leaks(sessions, engine, schools):
    assert leaks(sessions, engine, schools) == []


def test_a_school_sees_its_own_rows(sessions, schools):
    # The other tests would hold of a session that sees nothing at all.
    for school in schools:
        assert tags(sessions, TAGS, SchoolBinding(school.id)) == [school.id] * 2


@pytest.mark.parametrize(
    ("dialect", "shown"),
    [
        (WrongSchool, {"its own tables"}),
        (Once, {"its own tables", "the connection given back"}),
        (ForTheSession, {"the connection given back"}),
    ],
)
def test_the_detector_sees_a_broken_binding(broken_engine, options, schools, dialect, shown):
    engine = broken_engine(dialect)

    rows = leaks(bound_sessions(engine, options), engine, schools)

    assert {leak.query for leak in rows} >= shown
    assert {leak.seen for leak in rows} <= {school.id for school in schools}


def test_the_detector_sees_a_missing_role_of_a_login_that_may_do_everything(
    broken_engine, options, schools, tenancy
):
    engine = broken_engine(WithoutRole, at_schools(tenancy.admin_url))

    rows = leaks(bound_sessions(engine, options), engine, schools)

    assert {leak.query for leak in rows} >= {"the other's tables", "the registry"}


def test_the_detector_sees_sessions_that_nobody_guards(broken_engine, options, schools):
    engine = broken_engine(Trusting)
    with working(bound_sessions(engine, options), SchoolBinding(schools[0].id)):
        pass

    assert tags(sessionmaker(engine), TAGS, None) == [schools[0].id] * 2


@pytest.mark.parametrize("dialect", [WithoutRole, WithoutPath])
def test_a_binding_that_forgets_half_shows_nothing(broken_engine, options, schools, dialect):
    engine = broken_engine(dialect)

    with (
        pytest.raises(DBAPIError) as caught,
        working(bound_sessions(engine, options), SchoolBinding(schools[0].id)) as session,
    ):
        session.execute(text(TAGS))

    assert caught.value.orig.pgcode in {"42501", "42P01"}


# No school chosen.


def test_without_a_school_no_statement_is_sent(sessions, engine):
    engine.connect().close()  # the first connection of an engine asks the server for its version
    CountingCursor.messages = sent = []

    with sessions() as session:
        for _ in range(2):
            with pytest.raises(NoSchool):
                session.execute(text("SELECT 1"))

    assert sent == []


def test_the_engine_alone_sends_no_statement_either(engine):
    with engine.connect() as connection:
        with pytest.raises(NoSchool):
            connection.execute(text("SELECT 1"))
        with pytest.raises(NoSchool):
            connection.exec_driver_sql("SELECT 1")
        with pytest.raises(NoSchool):
            connection.execute(text("SELECT :number"), [{"number": 1}, {"number": 2}])
        with pytest.raises(NoSchool):
            write(connection, "SELECT 1", None)


@pytest.fixture
def make_public(tenancy):
    """Makes tables of the schema `public` that all may read."""
    made = []

    def make(name):
        made.append(name)
        execute(tenancy.admin_url, f"CREATE TABLE public.{name} (name text)")
        execute(tenancy.admin_url, f"GRANT SELECT ON public.{name} TO PUBLIC")

    yield make
    for name in made:
        execute(tenancy.admin_url, f"DROP TABLE public.{name}")


def test_the_serving_login_finds_no_table(tenancy, schools, make_public):
    url = at_schools(tenancy.serving_url)
    make_public("classrooms")

    assert execute(url, "SHOW search_path") == [('""',)]
    assert state_of(url, "SELECT name FROM classrooms") == "42P01"
    assert state_of(url, f'SELECT name FROM "{schools[0].schema}".classrooms') == "42501"


def test_a_school_finds_no_table_of_public(sessions, schools, make_public):
    make_public("playground")

    with pytest.raises(DBAPIError) as caught, working(sessions, SchoolBinding(schools[0].id)) as session:
        session.execute(text("SELECT name FROM playground"))

    assert caught.value.orig.pgcode == "42P01"


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_the_next_transaction_needs_a_school_of_its_own(sessions, schools, end):
    with sessions() as session:
        transaction(session, SchoolBinding(schools[0].id))
        getattr(session, end)()

        with pytest.raises(NoSchool):
            session.execute(text(TAGS))


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "COMMIT; BEGIN; COMMIT"])
def test_a_transaction_ended_by_hand_does_not_go_on(sessions, schools, end):
    with sessions() as session:
        transaction(session, SchoolBinding(schools[0].id))
        session.execute(text(end))

        with pytest.raises(NoSchool):
            session.execute(text(TAGS))


def test_the_school_of_a_transaction_never_changes(sessions, schools):
    school, other = schools
    with sessions() as session:
        transaction(session, SchoolBinding(school.id))

        with pytest.raises(SchoolChosen):
            transaction(session, SchoolBinding(other.id))

        assert {tag_of(name) for name in session.scalars(text(TAGS))} == {school.id}


# Savepoints.


def test_a_savepoint_keeps_the_binding(sessions, schools):
    school = schools[0]
    with working(sessions, SchoolBinding(school.id)) as session:
        with session.begin_nested():
            assert {tag_of(name) for name in session.scalars(text(TAGS))} == {school.id}
        with pytest.raises(DBAPIError), session.begin_nested():
            session.execute(text("SELECT 1/0"))

        assert {tag_of(name) for name in session.scalars(text(TAGS))} == {school.id}


def test_a_savepoint_undone_takes_its_rows_with_it(sessions, schools):
    with working(sessions, SchoolBinding(schools[0].id)) as session:
        before = session.scalars(text("SELECT count(*) FROM classrooms")).one()
        with session.begin_nested() as savepoint:
            session.execute(text("DELETE FROM classrooms"))
            savepoint.rollback()

        assert session.scalars(text("SELECT count(*) FROM classrooms")).one() == before


def test_a_savepoint_without_a_school_begins_nothing(sessions):
    with sessions() as session, pytest.raises(NoSchool), session.begin_nested():
        session.execute(text("SELECT 1"))


# Raw SQL inside a request.


@pytest.fixture(scope="module")
def sql_app(settings, tenancy):
    """An application with an endpoint that runs any SQL in the request's transaction."""
    app = create_app(settings)
    blp = Blueprint("sql", __name__)

    @blp.route("/sql", methods=["GET", "POST"])
    @blp.requires(None)
    @blp.arguments(Schema.from_dict({"sql": fields.String()}, name="SqlQuery"), location="query")
    def run(query):
        try:
            with db.session.begin_nested():
                answer = db.session.execute(text(query["sql"]))
                return {"rows": [list(map(str, row)) for row in answer] if answer.returns_rows else []}
        except DBAPIError as error:
            return {"sqlstate": error.orig.pgcode}

    app.register_blueprint(blp)
    yield app
    dispose(app)


@pytest.fixture
def run_sql(sql_app, document, place):
    """Runs SQL in a request of the school's administrator: GET reads, POST writes."""
    client = ApiClient(sql_app, document, place.admin_token, place.id)

    def run(sql, method="POST"):
        return client.ok(client.request(method, "/sql", query_string={"sql": sql.replace(":", "\\:")}))

    return run


def test_raw_sql_in_a_request_is_the_schools(run_sql, place):
    assert run_sql("SELECT username FROM users") == {"rows": [["admin"]]}
    assert run_sql("SELECT current_user, current_schema()") == {"rows": [[f"school_{place.id.hex}"] * 2]}


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM {other}.users",
        "SELECT count(*) FROM users JOIN {other}.users others USING (username)",
        "INSERT INTO {other}.classrooms (id, name, level) VALUES ('{id}', 'x', 'x')",
        "UPDATE {other}.users SET username = 'x'",
        "DELETE FROM {other}.users",
        "TRUNCATE {other}.users",
        "LOCK {other}.users",
        "DROP TABLE {other}.users",
        "DROP SCHEMA {other} CASCADE",
        "ALTER TABLE {other}.users ADD COLUMN x text",
        "ALTER SCHEMA {other} RENAME TO mine",
        "CREATE TABLE {other}.mine (id uuid)",
        "CREATE INDEX ON {other}.users (gender)",
        "CREATE VIEW mine AS SELECT * FROM {other}.users",
        "CREATE TABLE mine (id uuid REFERENCES {other}.users)",
        "GRANT SELECT ON {other}.users TO PUBLIC",
        "GRANT {other} TO CURRENT_USER",
        "ALTER ROLE {other} LOGIN",
        "DROP ROLE {other}",
        "SELECT query_to_xml('SELECT * FROM {other}.users', true, true, '')",
        "SELECT * FROM registry.schools",
        "SELECT secret_hash FROM registry.clients",
        "INSERT INTO registry.clients VALUES ('x', null, true, true, '{{}}', '2026-01-01', null)",
        "UPDATE registry.schools SET status = 'suspended'",
        "DROP SCHEMA registry CASCADE",
        "SELECT registry.enter('{id}', '{{}}', null)",
        "CREATE SCHEMA mine",
        "CREATE TABLE public.mine (id uuid)",
        "CREATE TEMPORARY TABLE mine (id uuid)",
        "CREATE ROLE mine",
        "SET SESSION AUTHORIZATION {other}",
        "SELECT * FROM pg_authid",
        "SELECT pg_read_file('/etc/passwd')",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "SET session_replication_role = 'replica'",
    ],
)
def test_postgresql_refuses_statements_that_reach_out_of_the_school(run_sql, other_place, statement):
    sql = statement.format(other=f'"school_{other_place.id.hex}"', id=uuid4())

    refused = run_sql(sql)

    # On a node of Citus: that it is an operation of the coordinator's alone.
    elsewhere = on_citus() and statement.startswith(("ALTER SCHEMA", "CREATE VIEW"))
    assert refused == {"sqlstate": "XX000" if elsewhere else "42501"}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO classrooms (id, name, level) VALUES ('{id}', 'x', 'x')",
        "UPDATE users SET gender = 'x'",
        "DELETE FROM user_roles",
        "TRUNCATE user_roles",
        "CREATE TABLE mine (id uuid)",
        "SELECT * FROM users FOR UPDATE",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "SET TRANSACTION READ WRITE",
    ],
)
def test_a_get_writes_nothing(run_sql, statement):
    state = run_sql(statement.format(id=uuid4()), method="GET")

    if on_citus() and statement.startswith("TRUNCATE"):
        # Citus would have other nodes do it, where the school's role can't sign in.
        assert state == {"sqlstate": "08006"}
        return
    # 25006: read-only transaction; 25001: too late to make it another.
    assert state in ({"sqlstate": "25006"}, {"sqlstate": "25001"})


def test_no_role_prevents_sql_from_taking_another_role(run_sql, tenancy, place):
    # The limit that `tenants.connections.binding` names: the login may become the role of each of its schools,
    # and SQL of a caller's own choice could say so. Should PostgreSQL ever refuse it, that page can promise more.
    login = tenancy.placement.login_of(place.id)
    role = tagged_school(tenancy, rows=0, login=login).schema

    assert run_sql(f'SET LOCAL ROLE "{role}"') == {"rows": []}
    assert run_sql(f"SELECT set_config('role', '{role}', true)") == {"rows": [[role]]}
    assert run_sql("RESET ROLE") == {"rows": []}


def test_a_login_becomes_no_role_of_another_logins_school(run_sql, tenancy, place):
    strange = [
        login for login in tenancy.placement.school_logins if login != tenancy.placement.login_of(place.id)
    ]
    for login in strange:
        role = tagged_school(tenancy, rows=0, login=login).schema

        assert run_sql(f'SET LOCAL ROLE "{role}"') == {"sqlstate": "42501"}
    assert len(strange) == tenancy.placement.logins - 1


def test_the_registrys_login_enters_no_school_of_the_others(tenancy, schools):
    states = {
        state_of(at_schools(tenancy.serving_url), f'SET ROLE "{school.schema}"')
        for school in schools
        if tenancy.placement.logins > 1
    }

    assert states == ({"42501"} if tenancy.placement.logins > 1 else set())


@pytest.mark.parametrize(
    "leftover",
    [
        'SET ROLE "{other}"',
        'SET search_path TO "{other}"',
        "SET search_path TO ''",
        "SET default_transaction_read_only TO on",
        "SET TIME ZONE 'Africa/Lagos'",
    ],
)
def test_a_setting_left_on_the_connection_changes_nothing(sessions, schools, leftover):
    school, other = schools
    with working(sessions, SchoolBinding(school.id)) as session:
        session.execute(text(leftover.format(other=other.schema)))

    with working(sessions, SchoolBinding(school.id)) as session:
        assert {tag_of(name) for name in session.scalars(text(TAGS))} == {school.id}
        assert session.scalars(text("SELECT current_user")).one() == school.schema
        assert session.scalars(text("SHOW transaction_read_only")).one() == "off"
        assert session.scalars(text("SHOW timezone")).one() == "UTC"


def test_two_applications_in_one_process_keep_their_own_rules(app, sql_app, document, place):
    for application in (app, sql_app, app):
        client = ApiClient(application, document, place.admin_token, place.id)
        client.ok(client.get("/classrooms"))


def state_of(url, sql):
    """Run SQL that must fail; answer its SQLSTATE."""
    with pytest.raises(psycopg2.Error) as caught:
        execute(url, sql)
    return caught.value.pgcode
