"""The operator's export of a school in the form of OneRoster."""

import json
import resource
import stat
from contextlib import closing
from uuid import UUID

import psycopg2
import pytest

from tests.factories import UNKNOWN_ID
from tests.features.exchange.oneroster.csv_binding import TABLES, TABLES_1_1, read_zip

pytestmark = pytest.mark.program


@pytest.fixture
def school(cli):
    """A school without records but its administrator."""
    return json.loads(cli("tenants", "create", "Exported School", "--json").stdout)["id"]


def exports_of(installed, school):
    """The exports in the audit log of a school: the actor, and the contents."""
    with (
        closing(psycopg2.connect(installed["ADMIN_DATABASE_URL"])) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(
            f"SELECT actor_name, action, new FROM school_{UUID(school).hex}.audit_entries WHERE entity = 'export'"
        )
        return cursor.fetchall()


def test_must_hold_13_an_empty_school_is_exported_and_its_audit_log_says_so(cli, installed, school, tmp_path):
    path = tmp_path / "school.zip"
    path.write_bytes(b"an older one")
    assert exports_of(installed, school) == []

    done = cli("tenants", "export-oneroster", school, str(path), "--json")

    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"id": school, "session": None, "file": str(path)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    manifest, files = read_zip(path.read_bytes())
    assert manifest["source.systemCode"] == school
    assert set(files) == set(TABLES)
    assert not any(files.values())
    ((actor, action, new),) = exports_of(installed, school)
    assert actor.startswith("operator:")
    assert (action, new["format"], new["session"]) == ("create", "OneRoster 1.2", None)
    assert set(new["files"]) == set(TABLES)


def test_a_school_is_exported_in_the_form_of_1_1(cli, installed, school, tmp_path):
    path = tmp_path / "school.zip"

    done = cli("tenants", "export-oneroster", school, str(path), "--version", "1.1")

    assert (done.exit_code, done.stderr) == (0, "")
    _, files = read_zip(path.read_bytes(), "1.1")
    assert set(files) == set(TABLES_1_1)
    ((_, _, new),) = exports_of(installed, school)
    assert new["format"] == "OneRoster 1.1"
    assert cli("tenants", "export-oneroster", school, str(path), "--version", "1.0").exit_code == 2


def test_files_are_exported_by_their_names(cli, installed, school, tmp_path):
    path = tmp_path / "school.zip"

    done = cli("tenants", "export-oneroster", school, str(path), "--only", "users", "--only", "orgs")

    assert (done.exit_code, done.stderr) == (0, "")
    _, files = read_zip(path.read_bytes())
    assert set(files) == {"users", "orgs"}
    ((_, _, new),) = exports_of(installed, school)
    assert set(new["files"]) == {"users", "orgs"}
    assert cli("tenants", "export-oneroster", school, str(path), "--only", "manifest").exit_code == 2


def test_an_impossible_export_leaves_no_file(cli, installed, school, tmp_path):
    path = tmp_path / "school.zip"
    for arguments, problem in (
        ((UNKNOWN_ID, str(path)), "no school"),
        ((school, str(path), "--session", "1066/1067"), "no session 1066/1067"),
        ((school, str(tmp_path / "none" / "school.zip")), "can't be written"),
    ):
        done = cli("tenants", "export-oneroster", *arguments)
        assert done.exit_code == 1
        assert problem in done.stderr.lower()
    assert list(tmp_path.iterdir()) == []


def test_a_suspended_school_is_exported(cli, school, tmp_path):
    path = tmp_path / "school.zip"
    assert cli("tenants", "suspend", school).exit_code == 0

    assert cli("tenants", "export-oneroster", school, str(path)).exit_code == 0
    assert cli("tenants", "resume", school).exit_code == 0
    read_zip(path.read_bytes())


def test_a_file_that_can_not_be_written_to_its_end_leaves_the_older_one(cli, installed, school, tmp_path):
    path = tmp_path / "school.zip"
    path.write_bytes(b"an older one")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # bytes
    try:
        done = cli("tenants", "export-oneroster", school, str(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert done.exit_code == 1
    assert done.stderr == f"Error: {path} can't be written: File too large\n"
    assert path.read_bytes() == b"an older one"
    assert list(tmp_path.iterdir()) == [path]
    assert exports_of(installed, school) == []
    assert cli("tenants", "export-oneroster", school, str(path)).exit_code == 0


def test_a_folder_is_no_file(cli, school, tmp_path):
    done = cli("tenants", "export-oneroster", school, str(tmp_path))

    assert done.exit_code == 2
    assert "is a directory" in done.stderr
