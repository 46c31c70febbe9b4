"""Deleting a school: closed first, then backed up, then dropped in batches; stopped, it goes on or the school stays."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg2
import pytest
from sqlalchemy import event, text

from tenants.backups.backup import back_up
from tenants.backups.checksums import table_checksums
from tenants.backups.restore import restore
from tenants.connections.binding import SchoolBinding
from tenants.connections.engines import serving_engine
from tenants.exceptions import BackupRefused, SchoolBusy, SchoolDeleting, UnknownSchool
from tenants.migrations.migrate import list_migration_states
from tenants.provisioning import delete
from tenants.provisioning.create import create_school
from tenants.provisioning.delete import LOCKS, delete_school
from tenants.registry.clients import create_client, list_clients
from tenants.registry.schools import change_school, find_school
from tests.cli.program import wait_for
from tests.postgres import at_schools, on_postgresql_alone
from tests.tenants.conftest import tagged_school
from tests.tenants.installations import ADMINISTRATOR, binding_options, bound_sessions, execute, working
from tests.tenants.provisioning.test_create import traces
from tests.threads import run_concurrently


@pytest.fixture
def school(few):
    """A school of few tables, with a few rows."""
    return tagged_school(few)


@pytest.fixture
def sessions(few):
    """Sessions of that installation, on one connection."""
    engine = serving_engine(at_schools(few.serving_url), pool_size=1)
    yield bound_sessions(engine, binding_options(few))
    engine.dispose()


def registry_row(tenancy, school):
    """Find the school's row of the registry."""
    with tenancy.admin.connect() as connection:
        return find_school(connection, school.id)


def tables(tenancy, school):
    """Count the school's tables."""
    ((count,),) = execute(
        tenancy.admin_url, "SELECT count(*) FROM pg_tables WHERE schemaname = %s", (school.schema,)
    )
    return count


@contextmanager
def locked(tenancy, school, table="users"):
    """Hold a table of the school, as a reader does, in a transaction that no school's request made."""
    connection = psycopg2.connect(tenancy.admin_url.set(drivername="postgresql").render_as_string(False))
    with closing(connection), connection.cursor() as cursor:
        cursor.execute(f'LOCK TABLE "{school.schema}".{table} IN ACCESS SHARE MODE')
        yield


class Stopped(BaseException):
    """Stops a run where it stands."""


@contextmanager
def stopping_at_the_first_batch(total):
    """Show progress by an end: after the first tables were dropped."""

    def advance(_steps):
        raise Stopped

    yield advance


def begin_and_stop(tenancy, school, folder):
    """Leave a school half dropped."""

    @contextmanager
    def progress(length):
        backing_up = registry_row(tenancy, school).deletion == "closed"
        with stopping_at_the_first_batch(length) as advance:
            yield (lambda _steps: None) if backing_up else advance

    before = tables(tenancy, school)
    with pytest.raises(Stopped):
        delete_school(tenancy, school.id, backup_folder=folder, progress=progress)
    left = registry_row(tenancy, school)
    assert (left.deletion, left.as_record()["status"]) == ("begun", "deleting")
    assert 0 < tables(tenancy, school) < before
    return left


# Gone, and nothing else.


def test_nothing_is_left_but_the_backup_and_the_id_can_be_had_again(few, school, tmp_path):
    other = tagged_school(few)
    client = f"client {uuid4()}"
    with few.admin.begin() as connection:
        create_client(connection, client_id=client, school_ids=[school.id, other.id])
        before = table_checksums(connection, other.schema)

    deleted = delete_school(few, school.id, backup_folder=tmp_path)

    assert traces(few, school.id) == []
    (name,) = os.listdir(tmp_path)
    assert name.startswith(f"{school.id}-")
    assert (deleted.name, deleted.backup, deleted.resumed) == (school.name, str(tmp_path / name), False)
    with few.admin.begin() as connection:
        assert [c.schools for c in list_clients(connection) if c.id == client] == [(other.id,)]
        assert table_checksums(connection, other.schema) == before
    with pytest.raises(UnknownSchool):
        delete_school(few, school.id, backup_folder=None)
    assert restore(few, Path(deleted.backup)) == school


# Requests under way.


def test_rows_of_a_request_under_way_are_in_the_backup(few, sessions, school, tmp_path):
    with ThreadPoolExecutor(1) as pool:
        with working(sessions, SchoolBinding(school.id)) as session:
            run = pool.submit(delete_school, few, school.id, backup_folder=tmp_path)
            wait_for(lambda: registry_row(few, school).deletion == "closed", "the closing")
            # The request has touched no table so far.
            insert = "INSERT INTO classrooms (id, name, level) VALUES (:id, 'under way', 'x')"
            session.execute(text(insert), {"id": uuid4()})
            assert not run.done()
        deleted = run.result(60)

    copy = restore(few, Path(deleted.backup))
    names = execute(few.admin_url, f'SELECT name FROM "{copy.schema}".classrooms')
    assert ("under way",) in names


def test_a_request_that_does_not_end_leaves_the_school_as_it_was(few, sessions, school, tmp_path):
    with working(sessions, SchoolBinding(school.id)):
        with pytest.raises(SchoolBusy, match="try again"):
            delete_school(few, school.id, backup_folder=tmp_path, timeout=0.05)
        assert registry_row(few, school) == school
        assert os.listdir(tmp_path) == []


def test_the_school_is_unknown_from_the_first_moment_on(app, tenancy, document, committing, tmp_path):
    api = committing.api
    school = registry_row(tenancy, type("Place", (), {"id": api.school}))
    with ThreadPoolExecutor(1) as pool:
        with locked(tenancy, school):
            run = pool.submit(delete_school, tenancy, api.school, backup_folder=None)
            wait_for(lambda: registry_row(tenancy, school).deletion == "begun", "the first drop")
            assert api.get("/classrooms").status_code == 404
            assert api.get("/users?pageNumber=0&pageSize=50").status_code == 404
        run.result(60)
    assert api.get("/classrooms").status_code == 404


def test_a_lock_that_is_not_given_up_ends_the_run_and_the_next_goes_on(few, school):
    with locked(few, school), pytest.raises(SchoolBusy, match="goes on when delete is run again"):
        delete_school(few, school.id, backup_folder=None, timeout=0.2)
    assert registry_row(few, school).deletion == "begun"

    assert delete_school(few, school.id, backup_folder=None).resumed
    assert traces(few, school.id) == []


# Failures, and deletions that were broken off.


def test_where_the_backup_fails_the_school_is_open_again(few, school, tmp_path):
    execute(few.admin_url, f'CREATE VIEW "{school.schema}".strange AS SELECT 1')
    count = tables(few, school)

    with pytest.raises(BackupRefused, match="view strange"):
        delete_school(few, school.id, backup_folder=tmp_path)

    assert registry_row(few, school) == school
    assert tables(few, school) == count
    assert os.listdir(tmp_path) == []


def test_a_deletion_that_was_broken_off_goes_on_with_its_first_backup(few, school, tmp_path):
    left = begin_and_stop(few, school, tmp_path)

    deleted = delete_school(few, school.id, backup_folder=tmp_path)

    assert (deleted.backup, deleted.resumed) == (left.backup, True)
    assert os.listdir(tmp_path) == [Path(left.backup).name]
    assert traces(few, school.id) == []
    assert restore(few, Path(left.backup)) == school


def test_a_school_that_is_half_gone_is_neither_opened_nor_backed_up_nor_migrated(few, school, tmp_path):
    left = begin_and_stop(few, school, tmp_path)

    with few.admin.begin() as connection, pytest.raises(SchoolDeleting, match="parts of it are gone"):
        change_school(connection, school.id, status="active", deletion=None)
    with pytest.raises(SchoolDeleting, match=f"Its backup is {left.backup}"):
        back_up(few, school.id, tmp_path / "half.zip")
    with few.admin.connect() as connection:
        standings = {standing.id: standing for standing in list_migration_states(connection, few)}
    assert standings[school.id].state == "deleting"
    delete_school(few, school.id, backup_folder=None)


def test_a_run_killed_before_the_first_drop_can_be_taken_back_or_run_again(few, school, tmp_path):
    execute(few.admin_url, "UPDATE registry.schools SET deletion = 'closed' WHERE id = %s", (str(school.id),))
    with few.admin.begin() as connection:
        assert change_school(connection, school.id, status="active", deletion=None) == school
    execute(few.admin_url, "UPDATE registry.schools SET deletion = 'closed' WHERE id = %s", (str(school.id),))

    deleted = delete_school(few, school.id, backup_folder=tmp_path)

    assert (deleted.resumed, os.listdir(tmp_path)) == (False, [Path(deleted.backup).name])


def test_a_school_that_was_opened_again_meanwhile_stays(few, school, tmp_path, monkeypatch):
    def back_up_and_open(*arguments, **options):
        back_up(*arguments, **options)
        opening = "UPDATE registry.schools SET deletion = NULL WHERE id = %s AND deletion = 'closed'"
        execute(few.admin_url, opening, (str(school.id),))

    monkeypatch.setattr(delete, "back_up", back_up_and_open)
    with pytest.raises(SchoolDeleting, match="opened again meanwhile: it stays"):
        delete_school(few, school.id, backup_folder=tmp_path)
    assert registry_row(few, school) == school


def test_two_at_once_delete_it_once(few, school, tmp_path):
    first, second = run_concurrently(2, lambda _: delete_school(few, school.id, backup_folder=tmp_path))

    assert (first.id, second.id) == (school.id, school.id)
    assert traces(few, school.id) == []
    made = {deleted.backup for deleted in (first, second) if deleted.backup}
    assert set() < made <= {str(path) for path in tmp_path.iterdir()}


# In batches.


@on_postgresql_alone
def test_a_transaction_takes_no_more_locks_than_it_may(tenancy):
    """Of a school with far more tables than ours has, each with references to others."""
    watched = replace(tenancy)  # with an engine of its own
    school = create_school(tenancy, name="Large", administrator=ADMINISTRATOR)
    create = "".join(
        f'CREATE TABLE "{school.schema}".extra_{n} (id uuid PRIMARY KEY, a text, '
        f'u uuid REFERENCES "{school.schema}".users, s uuid REFERENCES "{school.schema}".extra_{n});'
        for n in range(80)
    )
    execute(tenancy.admin_url, f'SET ROLE "{tenancy.owner}"; {create}')
    locks, dropped = [], []

    def count(connection, _cursor, statement, *_):
        if statement.startswith("DROP"):
            with connection.connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()")
                locks.append(cursor.fetchone()[0])
                dropped.append(statement.count(f'"{school.schema}".'))

    event.listen(watched.admin, "after_cursor_execute", count)
    delete_school(watched, school.id, backup_folder=None)
    watched.admin.dispose()

    assert traces(tenancy, school.id) == []
    assert sum(dropped) > 80
    # A table to which all others refer goes last, by itself or with few.
    several = [count for count, tables in zip(locks, dropped, strict=True) if tables > 1]
    assert max(several) <= LOCKS
    assert len(locks) > 10
