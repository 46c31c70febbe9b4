"""Migrating every school: a broken one alone, runs side by side, locks of other transactions, newer schools."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from uuid import uuid4

import psycopg2
import pytest
from sqlalchemy import event, text

from tenants.connections import engines as database
from tenants.exceptions import NotInstalled, UnknownSchool
from tenants.migrations.migrate import LockRetry, list_migration_states, migrate_schools
from tenants.migrations.migration_sql import head
from tenants.provisioning.create import create_school
from tenants.registry import schools as registry
from tenants.registry.installation import install
from tests.cli.program import wait_for
from tests.postgres import at_schools
from tests.tenants.catalogue import drift, read_catalogue
from tests.tenants.installations import ADMINISTRATOR, emptied, execute, installation
from tests.tenants.migrations.histories import later_history, small_history
from tests.tenants.migrations.upgrades import (
    CHANGE,
    await_lock,
    break_school,
    level,
    locked,
    make_schools,
    mend_school,
    revision,
    rows_of_schools,
)
from tests.threads import run_concurrently

TERMINATE_WAITING = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
IMPATIENT = LockRetry(lock_timeout=0.05, pauses=(0.01, 0.01))
PATIENT = LockRetry(lock_timeout=0.05, pauses=(0.05,) * 500)


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """The history of a program that knows few tables."""
    return small_history(tmp_path_factory.mktemp("history") / "origin")


@pytest.fixture(scope="module")
def history(tmp_path_factory, origin):
    """The same history, one revision on."""
    return later_history(tmp_path_factory.mktemp("history") / "later", CHANGE, origin=origin)


@pytest.fixture(scope="module")
def installed(server, origin):
    """The module's installation."""
    with installation(server, history=origin) as tenancy:
        yield tenancy


@pytest.fixture
def here(installed):
    """The installation without schools, which are created at the newest revision of the few tables."""
    with emptied(installed) as tenancy:
        yield tenancy


@pytest.fixture
def later(here, history):
    """The same installation, seen by a program that is one revision on."""
    tenancy = replace(here, history=history)
    yield tenancy
    tenancy.admin.dispose()


def standings(tenancy):
    with tenancy.admin.connect() as connection:
        return {standing.id: standing for standing in list_migration_states(connection, tenancy)}


def ids(schools):
    return {school.id for school in schools}


def test_every_school_is_brought_to_the_newest_revision(here, later):
    schools = make_schools(here, 3)

    report = migrate_schools(later)

    assert ids(report.migrated) == ids(schools)
    assert report.complete
    assert (report.revision, report.failed, report.newer, report.skipped) == (head(later.history), [], [], 0)
    assert [(revision(later, school), level(later, school)) for school in schools] == [
        (head(later.history), "0+")
    ] * 3


def test_a_migrated_school_is_like_one_that_was_created_afterwards(here, later):
    (migrated,) = make_schools(here, 1)
    migrate_schools(later)
    created = create_school(later, name="New", administrator=ADMINISTRATOR)

    with later.admin.connect() as connection:
        catalogues = [read_catalogue(connection, school.schema) for school in (migrated, created)]
        owners = connection.execute(
            text(
                "SELECT DISTINCT relowner::regrole::text FROM pg_class "
                "WHERE relnamespace = to_regnamespace(:name)"
            ),
            {"name": migrated.schema},
        ).scalars()

        assert owners.all() == [later.owner]
    assert drift(*catalogues) == []
    assert "column classrooms.motto" in catalogues[0]
    assert created.revision == head(later.history)


def test_several_revisions_are_gone_through_in_one_transaction(here, tmp_path):
    first, second, third = make_schools(here, 3)
    history = later_history(tmp_path / "one", CHANGE, origin=here.history)
    next_history = later_history(
        tmp_path / "two", "ALTER TABLE classrooms DROP COLUMN motto", "SELECT 1/0", origin=history
    )
    tenancy = replace(here, history=history)
    migrate_schools(tenancy, school_id=first.id)

    report = migrate_schools(replace(tenancy, history=next_history))

    assert {school.id for school, _ in report.failed} == ids([first, second, third])
    assert [revision(here, school) for school in (first, second)] == [head(history), head(here.history)]
    assert [level(here, school) for school in (first, second)] == ["0+", "0"]


def test_schools_at_different_revisions_arrive_together(here, tmp_path):
    first, second = make_schools(here, 2)
    history = later_history(tmp_path / "one", CHANGE, origin=here.history)
    next_history = later_history(
        tmp_path / "two", "UPDATE classrooms SET level = level || '!'", origin=history
    )
    migrate_schools(replace(here, history=history), school_id=first.id)

    report = migrate_schools(replace(here, history=next_history))

    assert ids(report.migrated) == ids([first, second])
    assert [level(here, school) for school in (first, second)] == ["0+!", "0+!"]


def test_a_suspended_school_is_migrated_too(here, later):
    (school,) = make_schools(here, 1)
    with here.admin.begin() as connection:
        registry.change_school(connection, school.id, status="suspended")

    assert ids(migrate_schools(later).migrated) == {school.id}
    with here.admin.connect() as connection:
        assert registry.find_school(connection, school.id).status == "suspended"


def test_with_nothing_to_do_the_registry_alone_is_read(here):
    make_schools(here, 2)
    sent = []
    event.listen(here.admin, "before_cursor_execute", lambda *arguments: sent.append(arguments[2]))

    report = migrate_schools(here)

    assert len(sent) == 3
    assert "registry.revision" in sent[0]
    assert "registry.also_served" in sent[1]
    assert "registry.schools" in sent[2]
    assert (report.migrated, report.skipped, report.complete) == ([], 2, True)


def test_an_installation_without_schools_has_nothing_to_migrate(later):
    report = migrate_schools(later)

    assert (report.migrated, report.skipped, report.complete) == ([], 0, True)


# One broken school.


def test_a_broken_school_does_not_hold_up_the_others(here, later):
    schools = make_schools(here, 8)
    broken = schools[3]
    break_school(here, broken)

    report = migrate_schools(later)

    ((named, error),) = report.failed
    assert not report.complete
    assert (named.id, error) == (
        broken.id,
        '42701: column "motto" of relation "classrooms" already exists',
    )
    assert ids(report.migrated) == ids(schools) - {broken.id}
    assert (revision(here, broken), level(here, broken)) == (head(here.history), "0")


def test_before_the_registry_names_the_programs_of_before_no_school_is_touched(here, later, monkeypatch):
    """They would be closed to each school that is migrated, also where the registry's revision stays."""
    (school,) = make_schools(here, 1)
    monkeypatch.setattr("migrations.tenant.SERVED_BY_EARLIER", ("t0001",))

    with pytest.raises(NotInstalled, match="tenants init"):
        migrate_schools(later)
    assert level(here, school) == "0"
    assert standings(later)[school.id].error is None

    install(later)
    assert ids(migrate_schools(later).migrated) == {school.id}


def test_a_failure_is_kept_with_its_error_until_the_school_is_migrated(here, later):
    broken, whole = make_schools(here, 2)
    break_school(here, broken)
    migrate_schools(later)
    states = standings(later)

    assert (states[whole.id].state, states[whole.id].error) == ("current", None)
    assert states[broken.id].state == "failed"
    assert states[broken.id].error.startswith("42701: ")
    assert (states[broken.id].revision, states[broken.id].failed_revision) == (
        head(here.history),
        head(later.history),
    )
    assert execute(here.admin_url, "SELECT sqlstate FROM registry.failed_migrations") == [("42701",)]

    first = states[broken.id].failed_at
    migrate_schools(later)
    assert standings(later)[broken.id].failed_at > first

    mend_school(here, broken)
    again = migrate_schools(later)
    assert (ids(again.migrated), again.skipped) == ({broken.id}, 1)
    assert execute(here.admin_url, "SELECT count(*) FROM registry.failed_migrations") == [(0,)]
    assert [level(here, school) for school in (broken, whole)] == ["0+", "0+"]


def test_failed_schools_alone_are_tried_again_on_demand(here, later):
    broken, untried = make_schools(here, 2)
    break_school(here, broken)
    assert not migrate_schools(later, school_id=broken.id).complete
    mend_school(here, broken)

    report = migrate_schools(later, retry_failed=True)

    assert (ids(report.migrated), report.skipped) == ({broken.id}, 1)
    assert revision(here, untried) == head(here.history)


def test_a_constraint_that_fails_at_the_commit_is_a_failure_too(here, tmp_path):
    (school,) = make_schools(here, 1)
    deferred = later_history(
        tmp_path / "deferred",
        [
            "CREATE TABLE notes (id uuid NOT NULL, user_id uuid NOT NULL, "
            "CONSTRAINT pk_notes PRIMARY KEY (id), CONSTRAINT fk_notes_user_id FOREIGN KEY (user_id) "
            "REFERENCES users (id) DEFERRABLE INITIALLY DEFERRED)",
            "INSERT INTO notes SELECT id, id FROM classrooms",
        ],
        origin=here.history,
    )

    ((_, error),) = migrate_schools(replace(here, history=deferred)).failed

    assert error.startswith("23503: ")
    assert revision(here, school) == head(here.history)


def test_a_failure_goes_with_its_school(here, later):
    (broken,) = make_schools(here, 1)
    break_school(here, broken)
    migrate_schools(later)

    execute(here.admin_url, "DELETE FROM registry.schools")

    assert execute(here.admin_url, "SELECT count(*) FROM registry.failed_migrations") == [(0,)]


# One school.


def test_one_school_can_be_migrated_alone(here, later):
    chosen, other = make_schools(here, 2)

    report = migrate_schools(later, school_id=chosen.id)

    assert (ids(report.migrated), report.skipped) == ({chosen.id}, 0)
    assert revision(here, other) == head(here.history)


def test_a_school_that_is_not_there_is_refused(later):
    with pytest.raises(UnknownSchool):
        migrate_schools(later, school_id=uuid4())


def test_a_newer_school_is_left_alone_and_named(here, later):
    newer, _ = make_schools(here, 2)
    migrate_schools(later, school_id=newer.id)

    report = migrate_schools(here)

    assert report.complete
    assert [(school.id, school.revision) for school in report.newer] == [(newer.id, head(later.history))]
    assert standings(here)[newer.id].state == "newer"
    assert level(here, newer) == "0+"


# Runs side by side, and schools that come and go meanwhile.


def test_two_runs_at_once_share_the_schools(here, later):
    schools = make_schools(here, 10)
    other = replace(later)

    reports = run_concurrently(2, lambda number: migrate_schools((later, other)[number]))

    other.admin.dispose()
    first, second = (ids(report.migrated) for report in reports)
    assert first | second == ids(schools)
    assert not first & second
    assert all(report.complete for report in reports)
    assert {level(here, school) for school in schools} == {"0+"}


@pytest.mark.parametrize("finishes", [True, False], ids=["finishes", "dies"])
def test_a_school_that_another_run_works_on_is_waited_for(here, later, finishes):
    taken, free = make_schools(here, 2)

    row = f"SELECT FROM {rows_of_schools(here)} WHERE id = %s FOR NO KEY UPDATE"
    with locked(here, row, (str(taken.id),)) as another_run:

        def run(number):
            if number == 0:
                return migrate_schools(later, retry=LockRetry(lock_timeout=30))
            await_lock(here)
            assert revision(here, free) == head(later.history)
            with another_run.cursor() as cursor:
                if finishes:
                    cursor.execute(
                        "UPDATE registry.schools SET revision = %s WHERE id = %s",
                        (head(later.history), str(taken.id)),
                    )
                    cursor.execute("COMMIT")
            another_run.close()
            return None

        report = run_concurrently(2, run)[0]

    assert report.complete
    assert ids(report.migrated) == ({free.id} if finishes else {free.id, taken.id})
    assert report.skipped == int(finishes)


def test_a_school_deleted_meanwhile_is_no_failure(here, later):
    gone, stays = make_schools(here, 2)

    row = f"SELECT FROM {rows_of_schools(here)} WHERE id = %s FOR NO KEY UPDATE"
    with locked(here, row, (str(gone.id),)) as deletion:

        def run(number):
            if number == 0:
                return migrate_schools(later, retry=LockRetry(lock_timeout=30))
            await_lock(here)
            with deletion.cursor() as cursor:
                cursor.execute("DELETE FROM registry.schools WHERE id = %s", (str(gone.id),))
            deletion.commit()
            return None

        report = run_concurrently(2, run)[0]

    assert (report.complete, ids(report.migrated), report.skipped) == (True, {stays.id}, 1)


def test_a_school_that_is_half_deleted_is_left_alone(here, later):
    gone, closed = make_schools(here, 2)
    for school, deletion in ((gone, "begun"), (closed, "closed")):
        execute(
            here.admin_url,
            "UPDATE registry.schools SET deletion = %s WHERE id = %s",
            (deletion, str(school.id)),
        )

    report = migrate_schools(later)

    # One whose tables are all there may be opened again.
    assert (report.complete, ids(report.migrated), report.skipped) == (True, {closed.id}, 1)
    assert [standings(later)[school.id].state for school in (gone, closed)] == ["deleting", "current"]


def test_a_school_created_meanwhile_is_no_failure(here, later):
    (school,) = make_schools(here, 1)
    with locked(here, f'LOCK TABLE "{school.schema}".classrooms') as request:

        def run(number):
            if number == 0:
                return migrate_schools(later, retry=LockRetry(lock_timeout=30))
            await_lock(here)
            created = create_school(replace(later), name="New", administrator=ADMINISTRATOR)
            request.rollback()
            return created

        report, created = run_concurrently(2, run)

    assert (report.complete, ids(report.migrated)) == (True, {school.id})
    assert created.revision == head(later.history)


# Locks.


def test_a_request_that_holds_the_table_delays_its_school_alone(here, later):
    busy, free = make_schools(here, 2)
    tries = Event()

    @event.listens_for(later.admin, "handle_error")
    def on_error(context):
        assert context.original_exception.pgcode == "55P03"
        tries.set()

    with locked(here, f'SELECT FROM "{busy.schema}".classrooms') as request:

        def run(number):
            if number == 0:
                return migrate_schools(later, retry=PATIENT)
            assert tries.wait(60)
            wait_for(lambda: revision(here, free) == head(later.history), "the other school is migrated")
            request.rollback()
            return None

        report = run_concurrently(2, run)[0]

    assert (report.complete, ids(report.migrated)) == (True, ids([busy, free]))
    assert {level(here, school) for school in (busy, free)} == {"0+"}


def test_a_table_that_is_never_free_is_a_failure_in_the_end(here, later):
    busy, free = make_schools(here, 2)

    with locked(here, f'SELECT FROM "{busy.schema}".classrooms'):
        report = migrate_schools(later, retry=IMPATIENT)

    assert ids(report.migrated) == {free.id}
    assert [(school.id, error) for school, error in report.failed] == [
        (busy.id, "55P03: canceling statement due to lock timeout")
    ]
    assert ids(migrate_schools(later, retry_failed=True).migrated) == {busy.id}


def test_a_school_that_nobody_lets_go_of_is_a_failure_that_can_not_be_kept(here, later):
    (school,) = make_schools(here, 1)

    with locked(here, "SELECT FROM registry.schools FOR UPDATE"):
        report = migrate_schools(later, retry=IMPATIENT)

    ((named, error),) = report.failed
    assert named.id == school.id
    assert error.startswith(
        "55P03: canceling statement due to lock timeout (not stored in the registry: 55P03"
    )
    assert standings(later)[school.id].state == "behind"


def test_a_grant_for_a_school_that_is_being_migrated_is_not_held_up(here, later):
    (school,) = make_schools(here, 1)
    execute(here.admin_url, "INSERT INTO registry.clients VALUES ('c', null, false, false, '{}', now())")

    with locked(here, f'LOCK TABLE "{school.schema}".classrooms') as request:

        def run(number):
            if number == 0:
                return migrate_schools(later, retry=LockRetry(lock_timeout=30))
            await_lock(here)
            execute(
                here.admin_url,
                "SET lock_timeout = '5s'; INSERT INTO registry.client_schools VALUES ('c', %s)",
                (str(school.id),),
            )
            request.rollback()
            return None

        assert run_concurrently(2, run)[0].complete


# Being stopped, and losing the database.


def test_a_stopped_run_finishes_the_schools_under_way_and_begins_none(here, later):
    schools = make_schools(here, 4)
    stop = Event()

    with locked(here, f'LOCK TABLE "{schools[0].schema}".classrooms') as request:

        def run(number):
            if number == 0:
                return migrate_schools(later, workers=1, stop=stop, retry=LockRetry(lock_timeout=30))
            await_lock(here)
            stop.set()
            request.rollback()
            return None

        report = run_concurrently(2, run)[0]

    assert (ids(report.migrated), report.remaining, report.stopped) == ({schools[0].id}, 3, True)
    assert not report.complete
    assert ids(migrate_schools(later).migrated) == ids(schools[1:])


def test_a_pause_ends_when_the_run_is_stopped(here, later):
    (school,) = make_schools(here, 1)
    stop = Event()
    event.listen(later.admin, "handle_error", lambda _: stop.set())

    with locked(here, f'LOCK TABLE "{school.schema}".classrooms'):
        report = migrate_schools(later, stop=stop, retry=LockRetry(lock_timeout=0.05, pauses=(3600.0,)))

    assert (report.migrated, report.failed, report.remaining) == ([], [], 1)


def test_a_connection_that_is_lost_fails_one_school_alone(here, later):
    first, second = make_schools(here, 2)
    with locked(here, f'LOCK TABLE "{first.schema}".classrooms'):

        def run(number):
            if number == 0:
                return migrate_schools(later, workers=1, retry=LockRetry(lock_timeout=30))
            await_lock(here)
            execute(here.admin_url, TERMINATE_WAITING)
            return None

        report = run_concurrently(2, run)[0]

    assert ids(report.migrated) == {second.id}
    assert [school.id for school, _ in report.failed] == [first.id]
    assert standings(later)[first.id].state == "failed"


def test_once_the_database_has_gone_nothing_more_is_begun(here, later):
    first, _ = make_schools(here, 2)
    with locked(here, f'LOCK TABLE "{first.schema}".classrooms'):

        def run(number):
            if number == 0:
                return migrate_schools(later, workers=1, retry=LockRetry(lock_timeout=30))
            await_lock(here)
            event.listen(later.admin, "do_connect", refuse)
            execute(here.admin_url, TERMINATE_WAITING)
            return None

        report = run_concurrently(2, run)[0]

    ((named, error),) = report.failed
    assert named.id == first.id
    assert error.endswith("(not stored in the registry: nobody is at home)")
    assert (report.migrated, report.remaining, report.complete) == ([], 1, False)


def refuse(*_):
    raise psycopg2.OperationalError("nobody is at home")


def test_a_connection_is_replaced_after_many_schools(here, later, monkeypatch):
    make_schools(here, 5)
    monkeypatch.setattr(database, "SCHOOLS_PER_ADMIN_CONNECTION", 2)
    made = []
    event.listen(later.admin, "connect", lambda *_: made.append(1))

    assert migrate_schools(later, workers=1).complete

    assert len(made) == 3


# The provisioning login.


@pytest.mark.parametrize("one_login", [True, False], ids=["one login", "two logins"])
@pytest.mark.parametrize("superuser", [True, False], ids=["superuser", "creator"])
def test_new_tables_are_open_to_the_serving_login(server, origin, tmp_path, one_login, superuser):
    folder = later_history(
        tmp_path / "later",
        "CREATE TABLE notes (id uuid NOT NULL, CONSTRAINT pk_notes PRIMARY KEY (id))",
        origin=origin,
    )
    with installation(server, one_login=one_login, superuser=superuser, history=origin) as here:
        school = create_school(here, name="A school", administrator=ADMINISTRATOR)
        later = replace(here, history=folder)
        assert migrate_schools(later).complete
        later.admin.dispose()

        assert execute(
            at_schools(here.serving_url),
            f'SET ROLE "{school.schema}"; INSERT INTO "{school.schema}".notes VALUES (%s) RETURNING 1',
            (str(uuid4()),),
        ) == [(1,)]


def test_literals_arrive_as_they_were_written(here, tmp_path):
    (school,) = make_schools(here, 1)
    written = "100% %s ;\n\n -- two  \n \\ ''it'' $1 Ẹ̀kọ́"
    change = [f"UPDATE classrooms SET level = '{written}' -- it's done", "UPDATE subjects SET name = name"]

    history = later_history(tmp_path / "later", change, origin=here.history)

    assert migrate_schools(replace(here, history=history)).complete
    assert level(here, school) == written.replace("''", "'")
