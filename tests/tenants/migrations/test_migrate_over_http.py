"""Rolling upgrades as requests see them: 503 or an answer, never 500, and no other school waits."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from uuid import uuid4

import pytest
from sqlalchemy import delete, insert

from migrations.tenant import ALSO_SERVED
from school_service.app import create_app
from tenants.migrations.migrate import LockRetry, migrate_schools
from tenants.migrations.migration_sql import head, revisions, served_revisions
from tenants.registry.schools import also_served
from tests.conftest import dispose, make_place
from tests.tenants.migrations.histories import later_history
from tests.tenants.migrations.upgrades import await_lock, locked, revision
from tests.threads import run_concurrently

ADDED = ["ALTER TABLE classrooms ADD COLUMN motto text", "ALTER TABLE subjects ADD COLUMN motto text"]
TAKEN_AWAY = [
    "ALTER TABLE classrooms RENAME COLUMN name TO title",
    "ALTER TABLE subjects ADD COLUMN motto text",
]


@pytest.fixture(scope="module")
def added(tmp_path_factory):
    """A history whose newest revision the code of today could serve."""
    return later_history(tmp_path_factory.mktemp("history") / "added", ADDED)


@pytest.fixture(scope="module")
def taken_away(tmp_path_factory):
    """A history whose newest revision renames a column that the code of today reads."""
    return later_history(tmp_path_factory.mktemp("history") / "taken_away", TAKEN_AWAY)


@pytest.fixture(scope="module")
def written_anew(tmp_path_factory):
    """A history whose newest revision makes PostgreSQL write the table of users anew."""
    anew = [
        "ALTER TABLE users ADD COLUMN shouted text GENERATED ALWAYS AS (upper(username)) STORED",
        "ALTER TABLE subjects ADD COLUMN motto text",
    ]
    return later_history(tmp_path_factory.mktemp("history") / "written_anew", anew)


@pytest.fixture
def school(app, tenancy):
    """A school of the test's own."""
    return make_place(app, tenancy, "Migrated College")


@pytest.fixture(scope="module")
def other_school(app, tenancy):
    """A school that is not migrated."""
    return make_place(app, tenancy, "Untouched College")


@pytest.fixture
def migrate(tenancy):
    """Brings a school to the newest revision of a history."""

    def migrate(school, history, **options):
        later = replace(tenancy, history=history)
        try:
            return migrate_schools(later, school_id=school.id, **options)
        finally:
            later.admin.dispose()

    return migrate


@pytest.fixture
def both(settings, added):
    """An application that serves the revisions before and after, on one connection."""
    app = create_app(replace(settings, pool_size=1))
    state = app.extensions["school-service"]
    state.binding_options = replace(state.binding_options, serves=(*served_revisions(), head(added)))
    yield app
    dispose(app)


def request_classrooms(app, school, method="GET", **options):
    headers = {"Authorization": f"Bearer {school.admin_token}", "X-SCHOOL-ID": str(school.id)}
    return app.test_client().open("/classrooms", method=method, headers=headers, **options)


def add_classroom(app, school):
    return request_classrooms(app, school, "POST", json={"name": f"JSS {uuid4().hex[:8]}", "level": "Junior"})


def test_the_served_revisions_are_of_the_history():
    assert served_revisions() == (head(), *ALSO_SERVED)
    assert set(served_revisions()) <= set(revisions())
    assert len(set(served_revisions())) == len(served_revisions())


def test_a_school_that_is_newer_than_the_code_is_closed_for_a_while_and_others_go_on(
    app, school, other_school, migrate, added
):
    assert request_classrooms(app, school).status_code == 200

    assert migrate(school, added).complete

    for answer in (request_classrooms(app, school), add_classroom(app, school)):
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.get_json()["message"] == "This school is being upgraded. Try again shortly."
    assert request_classrooms(app, other_school).status_code == 200


def test_a_school_that_is_older_than_the_code_is_closed_until_it_is_migrated(
    settings, app, school, migrate, added
):
    later = create_app(settings)
    state = later.extensions["school-service"]
    state.binding_options = replace(state.binding_options, serves=(head(added),))

    assert request_classrooms(later, school).status_code == 503
    assert migrate(school, added).complete
    assert request_classrooms(later, school).status_code == 200


def test_code_that_serves_both_goes_on_over_the_migration_on_the_same_connection(
    both, school, migrate, added
):
    add_classroom(both, school)
    before = request_classrooms(both, school)
    assert before.status_code == 200

    assert migrate(school, added).complete

    # The statements were prepared for the table as it was, if anything had been prepared.
    assert request_classrooms(both, school).get_json() == before.get_json()
    assert add_classroom(both, school).status_code == 200
    assert len(request_classrooms(both, school).get_json()) == 2


@pytest.fixture
def expanding(tenancy, added):
    """The release of `added` declares its revision to be served by programs of today, too."""
    with tenancy.admin.begin() as connection:
        connection.execute(insert(also_served), {"revision": head(added), "served_by": head()})
    yield
    with tenancy.admin.begin() as connection:
        connection.execute(delete(also_served).where(also_served.c.revision == head(added)))


@pytest.mark.usefixtures("expanding")
def test_a_migration_that_only_adds_is_served_by_the_release_before_and_the_release_after_all_the_time(
    app, both, tenancy, school, other_school, migrate, added
):
    """The release before is the application of today; the one after serves a revision more. Neither answers 503."""
    releases = (app, both)
    begun, migrated = Event(), Event()

    def use(program):
        """Read and write, as long as the migration takes and once more after it."""
        statuses = []
        for last in (False, True):
            while not (last or migrated.is_set()):
                statuses += [
                    add_classroom(program, school).status_code,
                    request_classrooms(program, school).status_code,
                ]
                begun.set()
            statuses += [
                add_classroom(program, school).status_code,
                request_classrooms(program, school).status_code,
            ]
        return statuses

    def work(number):
        if number < len(releases):
            return use(releases[number])
        assert begun.wait(60)
        try:
            return migrate(school, added)
        finally:
            migrated.set()

    before, after, report = run_concurrently(3, work)

    assert (report.complete, revision(tenancy, school)) == (True, head(added))
    assert {*before, *after} == {200}
    # Each reads the other's writes; and a school that was not migrated is served by both.
    for program in releases:
        names = [classroom["name"] for classroom in request_classrooms(program, school).get_json()]
        assert len(names) == len(before) // 2 + len(after) // 2
        assert request_classrooms(program, other_school).status_code == 200


@contextmanager
def migrating(tenancy, school):
    """Keep a migration of a school from its end: it has changed classrooms, and waits for subjects."""
    with locked(tenancy, f'SELECT FROM "school_{school.id.hex}".subjects') as reader:
        yield reader


@pytest.mark.parametrize(("served_by", "status"), [("app", 503), ("both", 200)])
def test_a_request_in_the_midst_of_a_migration_waits_and_then_goes_on_or_is_put_off(
    request, tenancy, school, other_school, migrate, added, taken_away, served_by, status
):
    app = request.getfixturevalue(served_by)
    history = added if served_by == "both" else taken_away

    with migrating(tenancy, school) as reader:

        def work(number):
            if number == 0:
                return migrate(school, history, retry=LockRetry(lock_timeout=30))
            await_lock(tenancy)
            if number == 1:
                return request_classrooms(app, school)
            # The request has come in at the old revision, and waits for its table.
            await_lock(tenancy, 2)
            other = request_classrooms(request.getfixturevalue("app"), other_school)
            reader.rollback()
            return other

        report, answer, other = run_concurrently(3, work)

    assert report.complete
    assert (answer.status_code, other.status_code) == (status, 200)
    assert ("Retry-After" in answer.headers) == (status == 503)


def test_a_request_that_waited_for_a_table_of_users_written_anew_is_put_off_and_signs_nobody_out(
    app, tenancy, school, migrate, written_anew
):
    """To a statement that waited inside of a function, with the snapshot of before, such a table is empty."""
    with migrating(tenancy, school) as reader:

        def work(number):
            if number == 0:
                return migrate(school, written_anew, retry=LockRetry(lock_timeout=30))
            await_lock(tenancy)
            if number == 1:
                return request_classrooms(app, school)
            if number == 2:
                return add_classroom(app, school)
            await_lock(tenancy, 3)
            reader.rollback()
            return None

        report, read, written, _ = run_concurrently(4, work)

    assert report.complete
    assert (read.status_code, written.status_code) == (503, 503)


def test_a_migration_that_gives_up_lets_the_requests_pass_that_waited_behind_it(
    app, tenancy, school, migrate, taken_away
):
    with migrating(tenancy, school):

        def work(number):
            if number == 0:
                return migrate(school, taken_away, retry=LockRetry(lock_timeout=1, pauses=()))
            await_lock(tenancy)
            return request_classrooms(app, school)

        report, answer = run_concurrently(2, work)

    assert answer.status_code == 200
    assert [error.partition(":")[0] for _, error in report.failed] == ["55P03"]
    assert revision(tenancy, school) == head()


def test_a_statement_that_fails_in_a_school_that_is_served_is_no_upgrade(app, tenancy, school):
    with tenancy.admin.begin() as connection:
        connection.exec_driver_sql(
            f'ALTER TABLE "school_{school.id.hex}".classrooms RENAME COLUMN name TO title'
        )

    assert request_classrooms(app, school).status_code == 500
