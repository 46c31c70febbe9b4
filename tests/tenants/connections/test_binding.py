"""The binding to a school: refusals and their reasons, at once after the operator changed something."""

from __future__ import annotations

from uuid import uuid4

import pytest
from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError, InternalError, PendingRollbackError

from school_service.features.school.models import Classroom
from tenants.connections.binding import BindingOptions, SchoolBinding
from tenants.connections.sessions import transaction
from tenants.connections.statements import SchoolConnection, write
from tenants.exceptions import (
    ClientUnknown,
    NoSchool,
    NotInstalled,
    SchoolForbidden,
    SchoolSuspended,
    SchoolUpgrading,
    UnknownSchool,
)
from tenants.migrations.migration_sql import head
from tenants.registry.clients import create_client, revoke_client
from tenants.registry.schools import change_school
from tests.savepoint_engine import CountingCursor
from tests.tenants.conftest import tagged_school
from tests.tenants.installations import binding_options, bound_sessions, execute, installation, working


@pytest.fixture(scope="module")
def school(tenancy):
    """A school that the operator may do anything to."""
    return tagged_school(tenancy, rows=0)


@pytest.fixture
def change(tenancy, school):
    """Changes the school in the registry; all is well again after the test."""

    def changed(**values):
        with tenancy.admin.begin() as connection:
            change_school(connection, school.id, **values)

    yield changed
    changed(status="active", revision=head())


@pytest.fixture
def client(tenancy):
    """Makes a machine client; answers its id."""

    def make(**grant):
        client_id = f"client {uuid4()}"
        with tenancy.admin.begin() as connection:
            create_client(connection, client_id=client_id, **grant)
        return client_id

    return make


def role_inside(sessions, binding):
    with working(sessions, binding) as session:
        return session.scalars(text("SELECT current_user")).one()


def test_an_open_school_is_entered(sessions, school):
    assert role_inside(sessions, SchoolBinding(school.id)) == school.schema


def test_an_unknown_school(sessions):
    with pytest.raises(UnknownSchool), working(sessions, SchoolBinding(uuid4())):
        pass


def test_a_suspended_school_is_closed_at_once_and_open_again_at_once(sessions, school, change):
    change(status="suspended")
    with pytest.raises(SchoolSuspended), working(sessions, SchoolBinding(school.id)):
        pass

    change(status="active")
    assert role_inside(sessions, SchoolBinding(school.id)) == school.schema


def test_a_school_at_another_revision_is_not_served(sessions, school, change):
    change(revision="t9999")

    with pytest.raises(SchoolUpgrading), working(sessions, SchoolBinding(school.id)):
        pass


@pytest.mark.parametrize(
    ("serves", "served"),
    [(("t0000", head()), True), ((head(), "t9999"), True), (("t0000",), False), ((), False)],
)
def test_any_of_the_revisions_that_the_code_serves_will_do(engine, school, serves, served):
    sessions = bound_sessions(engine, BindingOptions(serves=serves))

    if served:
        assert role_inside(sessions, SchoolBinding(school.id)) == school.schema
    else:
        with pytest.raises(SchoolUpgrading), working(sessions, SchoolBinding(school.id)):
            pass


def test_a_client_of_all_schools_enters_those_made_later_too(sessions, tenancy, client):
    everywhere = client(all_schools=True)
    later = tagged_school(tenancy, rows=0)

    assert role_inside(sessions, SchoolBinding(later.id, client=everywhere)) == later.schema


def test_a_client_enters_the_schools_it_was_granted_alone(sessions, school, schools, client):
    listed = client(school_ids=[school.id])

    assert role_inside(sessions, SchoolBinding(school.id, client=listed)) == school.schema
    with pytest.raises(SchoolForbidden), working(sessions, SchoolBinding(schools[0].id, client=listed)):
        pass


def test_a_client_of_no_school_enters_none(sessions, school, client):
    with pytest.raises(SchoolForbidden), working(sessions, SchoolBinding(school.id, client=client())):
        pass


def test_a_client_of_listed_schools_learns_nothing_of_others(sessions, school, change, client):
    elsewhere = client()
    change(status="suspended")

    for school_id in (school.id, uuid4()):
        with pytest.raises(SchoolForbidden), working(sessions, SchoolBinding(school_id, client=elsewhere)):
            pass


def test_a_client_of_all_schools_is_told_that_a_school_is_unknown(sessions, client):
    with (
        pytest.raises(UnknownSchool),
        working(sessions, SchoolBinding(uuid4(), client=client(all_schools=True))),
    ):
        pass


def test_a_client_that_is_refused_is_no_error_to_postgresql(sessions, school, client):
    """It would be logged there, with the whole statement batch, as often as a stranger likes."""
    CountingCursor.errors = failed = []

    for refused in ("nobody", client()):
        for granted_school in (school.id, uuid4()):
            with pytest.raises((ClientUnknown, SchoolForbidden)):
                transaction(sessions(), SchoolBinding(granted_school, client=refused))
    assert failed == []
    with pytest.raises(UnknownSchool):
        transaction(sessions(), SchoolBinding(uuid4()))
    assert len(failed) == 1


def test_an_unknown_client(sessions, school):
    with pytest.raises(ClientUnknown), working(sessions, SchoolBinding(school.id, client="nobody")):
        pass


def test_a_revoked_client_is_out_at_once(sessions, tenancy, school, client):
    revoked = client(all_schools=True)
    assert role_inside(sessions, SchoolBinding(school.id, client=revoked)) == school.schema

    with tenancy.admin.begin() as connection:
        revoke_client(connection, revoked)

    with pytest.raises(ClientUnknown), working(sessions, SchoolBinding(school.id, client=revoked)):
        pass


@pytest.mark.parametrize("grant", [{"permissions": ["read:users"]}, {"all_permissions": True}])
def test_the_state_of_a_client_comes_with_the_entry(sessions, school, client, grant):
    granted = client(all_schools=True, **grant)

    with sessions() as session:
        state = transaction(session, SchoolBinding(school.id, client=granted))

    assert (state["all_permissions"], state["permissions"]) == (
        grant.get("all_permissions", False),
        grant.get("permissions", []),
    )


def test_a_client_without_a_grant_may_do_nothing_and_is_confined_all_the_same(sessions, school):
    # Its token names the school and no permissions, and the operator has granted it none.
    with sessions() as session:
        state = transaction(session, SchoolBinding(school.id, client="nobody", granted=False))

        assert (state["all_permissions"], state["permissions"]) == (False, [])
        assert session.scalars(text("SELECT current_user")).one() == school.schema


def test_the_state_of_a_user_is_read_inside_the_school(sessions, school):
    state = "SELECT username, current_user AS role FROM users WHERE username = %s"
    with sessions() as session:
        user = transaction(session, SchoolBinding(school.id, state=state, state_parameters=("admin",)))
        session.rollback()
        missing = transaction(session, SchoolBinding(school.id, state=state, state_parameters=("nobody",)))

    assert (user["username"], user["role"]) == ("admin", school.schema)
    assert missing is None


def test_a_refusal_leaves_no_transaction_open(sessions, engine, school, change):
    change(status="suspended")
    with sessions() as session:
        with pytest.raises(SchoolSuspended):
            transaction(session, SchoolBinding(school.id))

        assert not session.in_transaction()
    with engine.raw_connection().cursor() as cursor:
        assert cursor.connection.get_transaction_status() == TRANSACTION_STATUS_IDLE


def test_entering_costs_one_message_for_every_kind_of_binding(sessions, engine, school, client):
    engine.connect().close()
    everywhere = client(all_schools=True)
    for binding in (
        SchoolBinding(school.id),
        SchoolBinding(school.id, state="SELECT %s AS one", state_parameters=("1",)),
        SchoolBinding(school.id, client=everywhere),
    ):
        CountingCursor.messages = sent = []
        with working(sessions, binding):
            pass

        assert [message.split()[0].rstrip(";") for message in sent] == ["BEGIN", "COMMIT"]


def test_without_a_registry_the_message_names_init(server, make_engine):
    with installation(server, installed=False) as tenancy:
        engine = make_engine(tenancy.admin_url.set(drivername="postgresql+school"))

        with (
            pytest.raises(NotInstalled, match="tenants init"),
            working(bound_sessions(engine, binding_options(tenancy)), SchoolBinding(uuid4())),
        ):
            pass
        engine.dispose()


def test_a_login_that_was_never_let_in_is_told_to_install(server, make_engine):
    with installation(server) as tenancy:
        stranger = f"{tenancy.placement.login}_2"
        execute(tenancy.admin_url, f"CREATE ROLE \"{stranger}\" LOGIN PASSWORD 'a password'")
        database = tenancy.admin_url.database
        execute(tenancy.admin_url, f'GRANT CONNECT ON DATABASE "{database}" TO "{stranger}"')
        engine = make_engine(tenancy.serving_url.set(drivername="postgresql+school", username=stranger))

        with (
            pytest.raises(NotInstalled, match="tenants init"),
            working(bound_sessions(engine, binding_options(tenancy)), SchoolBinding(uuid4())),
        ):
            pass
        engine.dispose()
        execute(tenancy.admin_url, f'DROP OWNED BY "{stranger}"')
        execute(tenancy.admin_url, f'DROP ROLE "{stranger}"')


class TestBoundConnection:
    """The connection of a transaction, as the session remembers it."""

    def test_the_connection_is_the_sessions_own(self, sessions, school):
        with working(sessions, SchoolBinding(school.id)) as session:
            connection = session.connection()
            assert session.bound_connection() is connection

    def test_the_connection_ends_with_the_transaction(self, sessions, schools):
        first, second = schools[:2]
        with sessions() as session:
            for school in (first, second):
                transaction(session, SchoolBinding(school.id))
                row = write(session.bound_connection(), "SELECT current_user AS role", ())
                session.rollback()
                assert row == {"role": school.schema}
            with pytest.raises(NoSchool):
                session.bound_connection()

    def test_the_connection_is_not_given_where_a_write_has_failed(self, sessions, school):
        with sessions() as session:
            transaction(session, SchoolBinding(school.id))
            with session.begin_nested():
                assert session.bound_connection() is session.connection()
            session.add_all(Classroom(name="Twice", level="Junior") for _ in range(2))
            with pytest.raises(IntegrityError):
                session.flush()
            with pytest.raises(PendingRollbackError):
                session.bound_connection()
            session.rollback()


class TestWithoutSqlalchemy:
    """A transaction that SQLAlchemy knows nothing of, until something asks the session."""

    @pytest.fixture(autouse=True)
    def begun(self, sessions, school):
        """The first transaction of an engine is SQLAlchemy's."""
        with working(sessions, SchoolBinding(school.id)):
            pass

    @pytest.fixture
    def count_connections(self, sessions):
        """The number of connections that are taken."""
        with sessions() as session:
            return session.engine_of(uuid4()).pool.checkedout

    @pytest.fixture
    def names(self, sessions, school):
        """The classrooms that the test has stored."""
        before = self.all_names(sessions, school)
        return lambda: self.all_names(sessions, school) - before

    def all_names(self, sessions, school):
        with working(sessions, SchoolBinding(school.id)) as session:
            return set(session.scalars(select(Classroom.name)))

    def add(self, session, name):
        row = (str(uuid4()), name, "Junior")
        write(session.bound_connection(), "INSERT INTO classrooms (id, name, level) VALUES (%s, %s, %s)", row)

    def test_a_transaction_without_sqlalchemy_commits_and_rolls_back(
        self, sessions, school, count_connections, names
    ):
        with sessions() as session:
            transaction(session, SchoolBinding(school.id))
            assert session.in_transaction()
            assert isinstance(session.bound_connection(), SchoolConnection)
            self.add(session, "Own 1")
            session.commit()
            for end in (session.rollback, session.close):
                transaction(session, SchoolBinding(school.id))
                self.add(session, "Own 2")
                end()
                assert (session.in_transaction(), count_connections()) == (False, 0)
            with pytest.raises(NoSchool):
                session.execute(text("SELECT 1"))

        assert names() == {"Own 1"}

    def test_the_session_takes_it_over(self, sessions, school, count_connections, names):
        with sessions() as session:
            transaction(session, SchoolBinding(school.id))
            self.add(session, "Own 3")
            session.add(Classroom(name="Own 4", level="Junior"))
            session.flush()
            assert count_connections() == 1
            assert not isinstance(session.bound_connection(), SchoolConnection)
            session.rollback()
            assert names() == set()

            transaction(session, SchoolBinding(school.id))
            self.add(session, "Own 5")
            with session.begin_nested() as savepoint:
                session.execute(text("SELECT 1"))
                self.add(session, "Own 6")
                savepoint.rollback()
            session.add(Classroom(name="Own 7", level="Junior"))
            session.commit()

        assert count_connections() == 0
        assert names() == {"Own 5", "Own 7"}

    def test_an_added_record_is_stored_by_the_commit_alone(self, sessions, school, count_connections, names):
        with sessions() as session:
            transaction(session, SchoolBinding(school.id))
            session.add(Classroom(name="Own 8", level="Junior"))
            session.commit()
        assert (count_connections(), names()) == (0, {"Own 8"})

    def test_after_an_error_nothing_can_be_committed(self, sessions, school, count_connections):
        with sessions() as session:
            transaction(session, SchoolBinding(school.id))
            with pytest.raises(IntegrityError):
                self.add(session, None)
            with pytest.raises(InternalError):
                session.commit()
            assert (session.in_transaction(), count_connections()) == (False, 0)

    def test_a_refusal_leaves_nothing_open(self, sessions, count_connections):
        with sessions() as session, pytest.raises(UnknownSchool):
            transaction(session, SchoolBinding(uuid4()))
        assert count_connections() == 0
