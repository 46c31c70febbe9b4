"""`tenants migrate` as an operator runs it: reports, signals, kill -9, terminals."""

import json
import signal
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tenants.migrations.migrate import migrate_schools
from tenants.migrations.migration_sql import head
from tests.cli.program import DEADLINE, run, run_on_terminal, running
from tests.factories import UNKNOWN_ID
from tests.postgres import addresses
from tests.tenants.installations import emptied, execute, installation
from tests.tenants.migrations.histories import later_history, script_of_program, small_history
from tests.tenants.migrations.upgrades import (
    CHANGE,
    await_lock,
    break_school,
    level,
    locked,
    make_schools,
    mend_school,
    revision,
)

pytestmark = pytest.mark.program


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
    """The installation without schools."""
    with emptied(installed) as tenancy:
        yield tenancy


@pytest.fixture
def started(here, history, tmp_path):
    """The program's start: with the installation's settings, and one revision on."""
    settings = addresses(here.admin_url, here.serving_url)
    return {"cwd": tmp_path, "settings": settings, "script": script_of_program(history)}


@pytest.fixture
def migrate(started):
    """Runs the verb to its end."""

    def migrate(*arguments):
        return run("tenants", "migrate", *arguments, **started)

    return migrate


@pytest.fixture
def migrating(started):
    """Starts the verb."""

    @contextmanager
    def migrating(*arguments):
        with running("tenants", "migrate", *arguments, **started) as process:
            yield process

    return migrating


def names(report, kind):
    return [school["name"] for school in report[kind]]


def test_the_report_names_everything(here, history, migrate):
    schools = make_schools(here, 8)
    broken = schools[3]
    break_school(here, broken)

    done = migrate("--json")

    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert report["revision"] == head(history)
    assert names(report, "migrated") == [school.name for school in schools if school is not broken]
    assert report["failed"] == [
        {
            "id": str(broken.id),
            "name": broken.name,
            "error": '42701: column "motto" of relation "classrooms" already exists',
        }
    ]
    assert (report["newer"], report["skipped"], report["remaining"]) == ([], 0, 0)
    assert 0 < report["seconds"] < 60
    assert done.stderr == f"Failed: {broken.id} {broken.name}: {report['failed'][0]['error']}\n"

    mend_school(here, broken)
    again = json.loads(migrate("--json").stdout)
    assert (names(again, "migrated"), again["failed"], again["skipped"]) == ([broken.name], [], 7)


def test_status_shows_the_failed_schools_and_their_errors(here, history, started, migrate):
    broken, whole = make_schools(here, 2)
    break_school(here, broken)
    migrate()

    def status(*arguments):
        done = run("tenants", "status", *arguments, **started)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    schools = {school["id"]: school for school in json.loads(status("--json"))}
    assert schools[str(whole.id)]["state"] == "current"
    assert schools[str(broken.id)]["state"] == "failed"
    assert schools[str(broken.id)]["failed_revision"] == head(history)
    assert schools[str(broken.id)]["failed_at"]
    text = status()
    assert '42701: column "motto" of relation "classrooms" already exists' in text
    assert f"2 schools, newest revision {head(history)}, 1 behind (1 failed)." in text


def test_a_run_is_reported_in_one_line(here, history, migrate):
    make_schools(here, 2)

    first, second = migrate("--workers", "3"), migrate()

    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout.startswith(f"2 schools migrated to {head(history)} in ")
    assert first.stdout.endswith(" s, 0 failed, 0 left as they were.\n")
    assert second.stdout.endswith(" s, 0 failed, 2 left as they were.\n")
    assert (first.stderr, second.stderr) == ("", "")


def test_one_school_alone_and_failed_schools_alone_are_migrated(here, migrate):
    broken, other = make_schools(here, 2)
    break_school(here, broken)
    assert migrate("--school", str(broken.id)).returncode == 1
    mend_school(here, broken)

    report = json.loads(migrate("--retry-failed", "--json").stdout)

    assert names(report, "migrated") == [broken.name]
    assert revision(here, other) == head(here.history)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--school", UNKNOWN_ID), 1, "No school has the id"),
        (("--school", "x"), 2, "'x' is not a valid UUID"),
        (("--workers", "0"), 2, "--workers"),
        (("--workers", "21"), 2, "--workers"),
        (("everything",), 2, "unexpected extra argument"),
    ],
    ids=str,
)
def test_wrong_use(migrate, arguments, status, words):
    done = migrate(*arguments)

    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr


def test_without_a_registry_the_operator_is_told_to_run_init(server, tmp_path):
    with installation(server, installed=False) as bare:
        url = bare.admin_url.render_as_string(hide_password=False)
        done = run("tenants", "migrate", cwd=tmp_path, settings={"DATABASE_URL": url})

    assert (done.returncode, done.stdout) == (1, "")
    assert "Run: school-service tenants init" in done.stderr


def test_before_the_registry_is_upgraded_it_says_so_and_marks_nothing_as_failed(here, migrate):
    """As where `tenants init` of a new release was forgotten, or the program is the one of before."""
    (school,) = make_schools(here, 1)
    version = execute(here.admin_url, "SELECT version_num FROM registry.revision")[0][0]
    try:
        for revision, words in (
            (
                "r0001",
                f"at the revision r0001, and this program needs {version}. Run: school-service tenants init",
            ),
            (
                "r9999",
                f"at the revision r9999, and this program knows {version} and older ones. Use release ",
            ),
        ):
            execute(here.admin_url, "UPDATE registry.revision SET version_num = %s", (revision,))
            done = migrate()
            assert (done.returncode, done.stdout) == (1, "")
            assert words in done.stderr
            assert len(done.stderr.splitlines()) == 1
    finally:
        execute(here.admin_url, "UPDATE registry.revision SET version_num = %s", (version,))
    assert execute(here.admin_url, "SELECT count(*) FROM registry.failed_migrations") == [(0,)]
    assert level(here, school) == "0"
    assert migrate().returncode == 0


def test_a_newer_school_is_named_and_left_alone(here, origin, history, started):
    (school,) = make_schools(here, 1)
    later = replace(here, history=history)
    assert migrate_schools(later).complete
    later.admin.dispose()

    # A program that knows nothing of that revision.
    done = run("tenants", "migrate", **{**started, "script": script_of_program(origin)})

    assert done.returncode == 0
    assert done.stderr == (
        f"Newer than this program: {school.id} {school.name}, at {head(history)}; left alone.\n"
    )
    assert level(here, school) == "0+"


# Killed, stopped, and two at once.


def test_killed_half_way_a_second_run_does_the_rest_and_nothing_twice(here, history, migrate, migrating):
    schools = make_schools(here, 12)
    # They are begun in the order of their names.
    ordered = sorted(schools, key=lambda school: school.name)
    done, stuck, rest = ordered[:4], ordered[4:6], ordered[6:]

    locks = "; ".join(f'LOCK TABLE "{school.schema}".classrooms' for school in stuck)
    with locked(here, locks), migrating() as runner:
        await_lock(here, 2)
        assert [revision(here, school) for school in done] == [head(history)] * 4
        assert [revision(here, school) for school in (*stuck, *rest)] == [head(here.history)] * 8
        assert runner.end(signal.SIGKILL) == -signal.SIGKILL

    report = json.loads(migrate("--json").stdout)
    assert (len(report["migrated"]), report["failed"], report["skipped"]) == (8, [], 4)
    assert {revision(here, school) for school in schools} == {head(history)}
    assert {level(here, school) for school in schools} == {"0+"}


def test_two_programs_at_once_share_the_schools(here, history, migrating):
    schools = make_schools(here, 12)

    with migrating("--json") as first, migrating("--json") as second:
        assert [runner.process.wait(DEADLINE) for runner in (first, second)] == [0, 0]

    reports = [json.loads(runner.printed) for runner in (first, second)]
    school_names = [name for report in reports for name in names(report, "migrated")]
    assert sorted(school_names) == sorted(school.name for school in schools)
    assert {level(here, school) for school in schools} == {"0+"}


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name
)
def test_a_stopped_run_ends_the_schools_under_way_and_reports(here, history, migrating, migrate, number):
    first, *_ = make_schools(here, 5)

    with (
        locked(here, f'LOCK TABLE "{first.schema}".classrooms') as request,
        migrating("--workers", "1", "--json") as runner,
    ):
        await_lock(here)
        runner.process.send_signal(number)
        runner.wait_for(lambda: "Finishing what is under way." in runner.err.read_text(), "it was heard")
        request.rollback()
        assert runner.process.wait(DEADLINE) == 1

    report = json.loads(runner.printed)
    assert (names(report, "migrated"), report["failed"], report["remaining"]) == ([first.name], [], 4)
    assert "Stopped; 4 schools were not begun." in runner.err.read_text()
    assert len(json.loads(migrate("--json").stdout)["migrated"]) == 4


# The progress bar.


def on_a_terminal(started, *arguments):
    """Run the verb with standard error on a terminal; answers the text written there, and standard output."""
    printed, written = run_on_terminal("tenants", "migrate", *arguments, **started)
    return written, printed


def test_a_progress_bar_is_shown_on_a_terminal_alone(here, started):
    make_schools(here, 3)

    written, printed = on_a_terminal(started)

    assert "100%" in written
    assert printed.startswith("3 schools migrated")
    assert "%" not in printed


def test_no_progress_bar_disturbs_json_or_a_run_with_nothing_to_do(here, started):
    make_schools(here, 1)

    assert on_a_terminal(started, "--json")[0] == ""
    assert on_a_terminal(started)[0] == ""
