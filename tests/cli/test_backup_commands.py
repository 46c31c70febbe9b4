"""Backing up, restoring and deleting by the real program: its output, and the remains of a killed run."""

import io
import json
import os
import signal
import zipfile
from contextlib import closing, suppress
from functools import partial
from uuid import uuid4

import psycopg2
import pytest

from tenants.backups import row_script
from tenants.backups.encryption import new_identity
from tenants.pg_programs import find_program
from tests.cli.program import (
    DEADLINE,
    ROOT,
    in_this_process,
    run,
    run_on_terminal,
    running,
    wait_for,
)
from tests.postgres import addresses
from tests.postgres import test_database as new_database

pytestmark = pytest.mark.program

# Of the first releases: restoring it starts a program.
FORMAT_1 = ROOT / "tests/tenants/backups/format1.zip"


@pytest.fixture
def school(cli):
    """A school, as printed."""
    return json.loads(cli("tenants", "create", "Moving College", "--json").stdout)


@pytest.fixture
def query(installed):
    """Query the database, as the operator; answers the rows."""
    with closing(psycopg2.connect(installed["ADMIN_DATABASE_URL"])) as connection:
        connection.autocommit = True

        def query(sql, *parameters):
            with connection.cursor() as cursor:
                cursor.execute(sql, parameters)
                return cursor.fetchall()

        yield query


@pytest.fixture
def key(folder):
    """A private key, and its file."""
    key = new_identity()
    file = folder / f"{uuid4()}.txt"
    file.write_text(f"# public key: {key.to_public()}\n{key}\n")
    return key, file


def traces(query, school_id):
    """List the traces of a school."""
    schema = f"school_{school_id.replace('-', '')}"
    return query(
        "SELECT 'role' FROM pg_roles WHERE rolname = %s UNION ALL SELECT 'schema' FROM pg_namespace "
        "WHERE nspname = %s UNION ALL SELECT 'row' FROM registry.schools WHERE id = %s",
        schema,
        schema,
        school_id,
    )


def failed(result, status=1):
    assert (result.exit_code, result.stdout) == (status, ""), result.output
    return result.stderr.splitlines()[-1]


def test_a_school_is_backed_up_restored_beside_itself_and_deleted(cli, school, folder):
    made = json.loads(cli("tenants", "backup", school["id"], "one.zip", "--json").stdout)
    copy = json.loads(
        cli("tenants", "restore", "one.zip", "--id", str(uuid4()), "--name", "Copy", "--json").stdout
    )
    assert (made["file"], made["id"], made["name"]) == ("one.zip", school["id"], "Moving College")
    assert made["rows"] > made["tables"] > 0
    assert (copy["name"], copy["status"], copy["revision"]) == ("Copy", "active", made["revision"])

    (folder / "backups").mkdir()
    deleted = json.loads(
        cli("tenants", "delete", school["id"], "--yes", "--backup-dir", "backups", "--json").stdout
    )
    (file,) = (folder / "backups").iterdir()
    assert deleted == {"id": school["id"], "name": "Moving College", "deleted": True, "backup": str(file)}
    assert failed(cli("tenants", "show", school["id"])) == f"Error: No school has the id {school['id']}."
    assert cli("tenants", "restore", str(file)).exit_code == 0
    without = json.loads(cli("tenants", "delete", school["id"], "--yes", "--no-backup", "--json").stdout)
    assert without["backup"] is None


def test_wrong_use_is_said_and_nothing_happens(cli, school, folder):
    assert "Add --yes" in failed(cli("tenants", "delete", school["id"]), 2)
    both = ("--yes", "--no-backup", "--backup-dir", ".")
    assert "exclude each other" in failed(cli("tenants", "delete", school["id"], *both), 2)
    assert "does not exist" in failed(cli("tenants", "restore", "missing.zip"), 2)
    assert cli("tenants", "show", school["id"]).exit_code == 0


def test_a_failure_is_said_in_one_line(cli, school, folder):
    file = folder / f"{uuid4()}.zip"
    file.write_text("something of value")
    lines = [
        cli("tenants", "backup", school["id"], str(file)),
        cli("tenants", "backup", str(uuid4()), "new.zip"),
        cli("tenants", "backup", school["id"], "no/folder/here.zip"),
        cli("tenants", "restore", str(file)),
        cli("tenants", "delete", str(uuid4()), "--yes"),
    ]
    assert [failed(line).startswith("Error: ") and len(line.stderr.splitlines()) for line in lines] == [1] * 5

    assert cli("tenants", "backup", school["id"], str(file), "--force").exit_code == 0
    assert "Give another id with --id" in failed(cli("tenants", "restore", str(file)))


@in_this_process
def test_a_backup_that_differs_from_the_school_fails_and_leaves_no_file(
    cli, school, folder, query, monkeypatch
):
    backups = folder / f"backups {uuid4()}"
    backups.mkdir()
    real = row_script.copy_rows

    def without_users(connection, statement, parameters, to, **options):
        users = '."users"' in statement
        real(connection, statement, parameters, io.BytesIO() if users else to, **options)

    monkeypatch.setattr(row_script, "copy_rows", without_users)
    refusal = "What was written is not what the school holds: users (0 rows, not 1 row)."
    assert failed(cli("tenants", "backup", school["id"], str(backups / "one.zip"))) == f"Error: {refusal}"
    deleting = cli("tenants", "delete", school["id"], "--yes", "--backup-dir", str(backups))
    assert failed(deleting) == f"Error: {refusal}"
    assert list(backups.iterdir()) == []
    assert len(traces(query, school["id"])) == 3

    monkeypatch.undo()
    assert cli("tenants", "backup", school["id"], str(backups / "one.zip")).exit_code == 0


def test_progress_is_shown_on_a_terminal_alone(installed, folder, school):
    file = f"{uuid4()}.zip"
    piped = run("tenants", "backup", school["id"], file, cwd=folder, settings=installed)
    assert (piped.returncode, piped.stderr) == (0, "")

    restore = ("tenants", "restore", file, "--id", str(uuid4()))
    printed, shown = run_on_terminal(*restore, cwd=folder, settings=installed)

    assert "100%" in shown
    assert "%" not in printed


# Killed.


def in_front(folder, program, script):
    """Put a program before the real one, which it finds as $REAL; answers the PATH."""
    real = find_program(program, 16).path
    bin_ = folder / f"{program} {uuid4()}"
    bin_.mkdir()
    (bin_ / program).write_text(f'#!/bin/sh\nREAL="{real}"\n{script}\n')
    (bin_ / program).chmod(0o755)
    return f"{bin_}:{os.environ['PATH']}"


# Writes half of the real one's output, tells so, and goes no further.
HALF = """
[ "$1" = --version ] && exec "$REAL" --version
"$REAL" "$@" > "{whole}"
head -c $(($(wc -c < "{whole}") / 2)) "{whole}"
echo $$ > "{begun}.new" && mv "{begun}.new" "{begun}"
exec sleep 600
"""


@pytest.fixture
def half(folder):
    """Puts a program before the real one that stops half-way; answers the settings, and the file of its sign."""
    made = []

    def half(program):
        begun, whole = folder / f"begun {uuid4()}", folder / f"whole {uuid4()}"
        made.append(begun)
        return {"PATH": in_front(folder, program, HALF.format(whole=whole, begun=begun))}, begun

    yield half
    for begun in made:
        # Where its parent was killed, it sleeps on.
        with suppress(ProcessLookupError):
            os.kill(int(begun.read_text()), signal.SIGKILL)


# Of pg_locks, which has the locks of all databases of the server.
HERE = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"


def working(query):
    """Count the operator's transactions under way in this database."""
    return query(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'school-service admin' "
        "AND datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
    )


def test_a_restore_killed_half_way_leaves_nothing(installed, folder, cli, query, half):
    file, copy = str(FORMAT_1), str(uuid4())
    settings, begun = half("pg_restore")

    with running(
        "tenants", "restore", file, "--id", copy, cwd=folder, settings={**installed, **settings}
    ) as restoring:
        restoring.wait_for(begun.exists, "half of the script")
        restoring.wait_for(
            lambda: query(
                f"SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND locktype = 'relation' AND {HERE}"
            ),
            "tables",
        )
        assert restoring.end(signal.SIGKILL) == -signal.SIGKILL

    wait_for(lambda: not working(query), "the end of its transaction")
    assert traces(query, copy) == []
    assert cli("tenants", "restore", file, "--id", copy).exit_code == 0
    assert len(traces(query, copy)) == 3


def test_a_restore_that_is_told_to_stop_leaves_nothing(installed, folder, query, half):
    file, copy = str(FORMAT_1), str(uuid4())
    settings, begun = half("pg_restore")

    with running(
        "tenants", "restore", file, "--id", copy, cwd=folder, settings={**installed, **settings}
    ) as restoring:
        restoring.wait_for(begun.exists, "half of the script")
        assert restoring.end(signal.SIGTERM) == 128 + signal.SIGTERM

    wait_for(lambda: not working(query), "the end of its transaction")
    assert traces(query, copy) == []


@pytest.mark.parametrize(
    ("number", "encrypted"),
    [
        pytest.param(signal.SIGKILL, False, id="killed"),
        pytest.param(signal.SIGTERM, True, id="told, encrypted"),
    ],
)
def test_a_backup_stopped_before_its_end_leaves_no_file_of_its_name(
    installed, folder, school, query, number, encrypted, key
):
    """Stopped at the latest moment: all is written and compared, and the log waits for the entry."""
    backups = folder / f"backups {uuid4()}"
    backups.mkdir()
    settings = {"BACKUP_RECIPIENT": str(key[0].to_public())} if encrypted else {}
    log = f"school_{school['id'].replace('-', '')}.audit_entries"
    waiting = f"SELECT FROM pg_locks WHERE NOT granted AND relation = to_regclass(%s) AND {HERE}"

    with closing(psycopg2.connect(installed["ADMIN_DATABASE_URL"])) as reader:
        reader.cursor().execute(f"LOCK TABLE {log} IN SHARE MODE")
        with running(
            "tenants",
            "backup",
            school["id"],
            str(backups / "one.zip"),
            cwd=folder,
            settings={**installed, **settings},
        ) as backing_up:
            backing_up.wait_for(lambda: query(waiting, log), "the log")
            (unnamed,) = backups.iterdir()
            assert zipfile.is_zipfile(unnamed)
            backing_up.process.send_signal(number)
            # The program is woken when PostgreSQL has answered.
            reader.rollback()
            status = backing_up.process.wait(DEADLINE)

    assert status == (-number if number == signal.SIGKILL else 128 + number)
    left = [path.name for path in backups.iterdir()]
    assert left == [] if number == signal.SIGTERM else [name[:15] for name in left] == [".school-backup-"]


def test_a_deletion_killed_half_way_goes_on_when_it_is_run_again(installed, folder, school, cli, query):
    backups = folder / f"backups {uuid4()}"
    backups.mkdir()
    arguments = ("tenants", "delete", school["id"], "--yes", "--backup-dir", str(backups))
    schema = f"school_{school['id'].replace('-', '')}"
    waiting = f"SELECT FROM pg_locks WHERE NOT granted AND relation = to_regclass(%s) AND {HERE}"

    with closing(psycopg2.connect(installed["ADMIN_DATABASE_URL"])) as reader:
        with reader.cursor() as cursor:
            cursor.execute(f'SELECT FROM "{schema}".users')
        with running(*arguments, cwd=folder, settings=installed) as deleting:
            deleting.wait_for(lambda: query(waiting, f"{schema}.users"), "the table that is read")
            deleting.end(signal.SIGKILL)
    wait_for(lambda: not working(query), "the end of its transaction")
    shown = json.loads(cli("tenants", "show", school["id"], "--json").stdout)
    (file,) = backups.iterdir()
    assert (shown["status"], shown["backup"]) == ("deleting", str(file))
    assert "parts of it are gone" in failed(cli("tenants", "resume", school["id"]))

    again = cli(*arguments, "--json")

    assert json.loads(again.stdout)["backup"] == str(file)
    assert "an earlier run had begun the deletion, and made the backup" in again.stderr
    assert traces(query, school["id"]) == []
    assert list(backups.iterdir()) == [file]
    assert cli("tenants", "restore", str(file)).exit_code == 0


# Keys, and every school.


@pytest.mark.parametrize("by", ["option", "setting"])
def test_a_backup_is_encrypted_and_restored_with_its_key(cli, school, folder, key, by):
    (private, key_file), file = key, f"{uuid4()}.zip"
    public = str(private.to_public())
    options = ("--encrypt-to", public) if by == "option" else ()
    settings = {} if by == "option" else {"BACKUP_RECIPIENT": public}

    assert cli("tenants", "backup", school["id"], file, *options, **settings).exit_code == 0

    with zipfile.ZipFile(folder / file) as archive:
        assert archive.namelist() == ["school.sql.gz.age", "manifest.json.age"]
    arguments = ("tenants", "restore", file, "--id", str(uuid4()))
    assert "--identity" in failed(cli(*arguments))
    if by == "option":  # after a deletion, the setting's own is restored
        assert cli(*arguments, "--identity", str(key_file)).exit_code == 0


def test_deletion_encrypts_its_backup_where_the_setting_says_so(cli, school, key):
    private, key_file = key
    deleted = cli(
        "tenants", "delete", school["id"], "--yes", "--json", BACKUP_RECIPIENT=str(private.to_public())
    )
    file = json.loads(deleted.stdout)["backup"]

    assert "--identity" in failed(cli("tenants", "restore", file))
    assert cli("tenants", "restore", file, "--identity", str(key_file)).exit_code == 0


def test_wrong_keys_are_said_and_never_repeated(cli, school, folder, key):
    private, key_file = key
    file = folder / f"{uuid4()}.zip"
    for wrong in (str(private), "age1nonsense"):
        refused = cli("tenants", "backup", school["id"], str(file), "--encrypt-to", wrong)
        assert "public" in failed(refused, 2)
        assert wrong not in refused.output
        refused = cli("tenants", "backup", school["id"], str(file), BACKUP_RECIPIENT=wrong)
        assert "BACKUP_RECIPIENT" in failed(refused, refused.exit_code)
        assert refused.exit_code != 0
        assert wrong not in refused.output
    assert not file.exists()
    assert cli("tenants", "backup", school["id"], str(file)).exit_code == 0
    assert "is not encrypted" in failed(cli("tenants", "restore", str(file), "--identity", str(key_file)))
    key_file.write_text("nonsense")
    assert "none of age's" in failed(cli("tenants", "restore", str(file), "--identity", str(key_file)))
    assert "does not exist" in failed(cli("tenants", "restore", str(file), "--identity", "missing"), 2)


@pytest.fixture
def elsewhere(cli, server):
    """Runs a verb on an installation that has no school yet."""
    with new_database(server) as (admin, login):
        run_there = partial(cli, **addresses(admin, login))
        assert run_there("tenants", "init").exit_code == 0
        yield run_there


def test_every_school_is_backed_up_and_a_failure_is_told_at_the_end(elsewhere, folder):
    cli = elsewhere
    school = json.loads(cli("tenants", "create", "Moving College", "--json").stdout)
    other = json.loads(cli("tenants", "create", "Failing College", "--json").stdout)
    backups = folder / f"backups {uuid4()}"
    backups.mkdir()
    arguments = ("tenants", "backup", "--all", str(backups), "--keep", "1")

    report = json.loads(cli(*arguments, "--json").stdout)
    made = {each["id"]: each["file"] for each in report["made"]}
    assert {school["id"], other["id"]} == made.keys()
    assert report["failed"] == report["skipped"] == report["removed"] == []

    os.rename(backups / other["id"], backups / "aside")
    (backups / other["id"]).write_text("no folder")
    again = cli(*arguments)
    assert again.exit_code == 1
    assert again.stdout == "1 school backed up, 1 failed, 0 deleted meanwhile, 1 older file removed.\n"
    assert again.stderr == (
        f"Failed: {other['id']} Failing College: The backup can't be written: File exists.\n"
    )
    (left,) = os.listdir(backups / school["id"])
    assert left > made[school["id"]].rpartition("/")[2]
    assert cli("tenants", "restore", str(backups / school["id"] / left), "--id", str(uuid4())).exit_code == 0
    assert cli("tenants", "delete", other["id"], "--yes", "--no-backup").exit_code == 0


def test_wrong_use_of_backup_is_said(cli, school, folder):
    for arguments, reason in (
        ((), "--all DIR"),
        ((school["id"],), "--all DIR"),
        ((school["id"], "x.zip", "--all", "."), "neither ID and FILE"),
        (("--all", ".", "--force"), "nor --force"),
        ((school["id"], "x.zip", "--keep", "1"), "--keep goes with --all"),
        (("--all", ".", "--keep", "0"), "x>=1"),
        (("--all", "missing"), "does not exist"),
    ):
        assert reason in failed(cli("tenants", "backup", *arguments), 2)
    assert not (folder / "x.zip").exists()
