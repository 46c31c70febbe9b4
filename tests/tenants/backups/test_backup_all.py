"""Backing up every school: one folder each, older files given up for newer ones, a failure alone."""

from __future__ import annotations

import os
import zipfile
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from tenants.backups import backup_all
from tenants.backups.backup_all import back_up_all
from tenants.backups.encryption import new_identity
from tenants.backups.restore import restore
from tenants.connections.engines import admin_engine
from tenants.provisioning.create import create_school
from tenants.provisioning.delete import delete_school
from tenants.registry.schools import change_school, list_schools, schools
from tenants.verification import verify
from tests.postgres import on_postgresql_alone
from tests.tenants.backups.test_backup import contents, without_log
from tests.tenants.installations import ADMINISTRATOR, execute, lending
from tests.tenants.migrations.histories import few_rows
from tests.threads import run_concurrently


@pytest.fixture(scope="module")
def lent(server, few_tables):
    """An installation for all tests of this module, which lends schools."""
    with lending(server, history=few_tables, seed=few_rows) as lent:
        yield lent


@pytest.fixture
def tenancy(lent):
    """An installation with the schools Ada and Bisi, where a test has them, and no other."""
    tenancy, schools = lent
    schools.clear()
    return tenancy


@pytest.fixture
def ada(tenancy, lent):
    """A school."""
    return lent[1].lend("Ada")


@pytest.fixture
def bisi(tenancy, lent):
    """Another school."""
    return lent[1].lend("Bisi")


def files(folder):
    """List the files of a folder and of those in it."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def between(work):
    """Progress that does something once the schools are listed, before the first one."""

    @contextmanager
    def progress(_schools):
        work()
        yield lambda _done: None

    return progress


def test_every_school_has_a_file_of_its_own(tenancy, ada, bisi, tmp_path):
    with tenancy.admin.begin() as connection:
        change_school(connection, bisi.id, status="suspended")
    report = back_up_all(tenancy, tmp_path)

    assert [manifest.school["name"] for _, manifest in report.made] == ["Ada", "Bisi"]
    assert (report.failed, report.skipped, report.removed) == ([], [], [])
    assert files(tmp_path) == sorted(str(path.relative_to(tmp_path)) for path, _ in report.made)
    for (path, _), school in zip(report.made, (ada, bisi), strict=True):
        assert path.parent == tmp_path / str(school.id)
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.stat().st_mode & 0o777 == 0o600
        copy = restore(tenancy, path, school_id=uuid4())
        assert without_log(contents(tenancy, copy)) == without_log(contents(tenancy, school))


def test_no_school_is_no_failure(tenancy, tmp_path):
    report = back_up_all(tenancy, tmp_path, keep=1)

    assert report.as_record() == {"made": [], "failed": [], "skipped": [], "removed": []}
    assert os.listdir(tmp_path) == []


def test_backups_are_encrypted_where_a_key_is_named(tenancy, ada, tmp_path):
    key = new_identity()

    ((path, _),) = back_up_all(tenancy, tmp_path, encrypt_to=[str(key.to_public())]).made

    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["school.sql.gz.age", "manifest.json.age"]
    assert restore(tenancy, path, school_id=uuid4(), identities=[key]).name == "Ada"


# A failing school.


def test_a_school_that_fails_does_not_hold_up_the_others(tenancy, ada, bisi, tmp_path):
    execute(tenancy.admin_url, f'CREATE TABLE "{ada.schema}".strange (id int)')
    (tmp_path / str(ada.id)).mkdir()
    old = tmp_path / str(ada.id) / "20200101T000000000000Z.zip"
    old.write_text("the only one")

    report = back_up_all(tenancy, tmp_path, keep=1)

    assert [manifest.school["name"] for _, manifest in report.made] == ["Bisi"]
    ((failed, reason),) = report.failed
    assert failed.id == ada.id
    assert "table strange" in reason
    # Nothing gives way to a file that was not made.
    assert old.read_text() == "the only one"
    assert os.listdir(old.parent) == [old.name]


def test_an_error_of_the_database_in_one_school_does_not_hold_up_the_others(tenancy, ada, bisi, tmp_path):
    execute(tenancy.admin_url, f'REVOKE ALL ON "{ada.schema}".users FROM "{ada.schema}"')

    report = back_up_all(tenancy, tmp_path)

    assert [(school.id, "permission denied" in reason) for school, reason in report.failed] == [
        (ada.id, True)
    ]
    assert [manifest.school["name"] for _, manifest in report.made] == ["Bisi"]


@on_postgresql_alone
def test_where_the_database_goes_away_the_run_stops(tenancy, ada, bisi, tmp_path, monkeypatch):
    seen = []

    def lost(_tenancy, school_id, path, **_options):
        seen.append(school_id)
        raise OperationalError("SELECT", {}, Exception("connection lost"))

    monkeypatch.setattr(backup_all, "back_up", lost)
    with pytest.raises(OperationalError):
        back_up_all(tenancy, tmp_path)
    assert seen == [ada.id]


def test_a_folder_that_cant_be_made_is_that_schools_failure(tenancy, ada, bisi, tmp_path):
    (tmp_path / str(ada.id)).write_text("a file")

    report = back_up_all(tenancy, tmp_path)

    assert [(school.id, reason) for school, reason in report.failed] == [
        (ada.id, "The backup can't be written: File exists.")
    ]
    assert len(report.made) == 1


# Schools that come and go.


def test_schools_deleted_or_created_meanwhile_are_no_failures(tenancy, ada, bisi, tmp_path):
    def change():
        delete_school(tenancy, ada.id, backup_folder=None)
        create_school(tenancy, name="Chidi", administrator=ADMINISTRATOR)

    report = back_up_all(tenancy, tmp_path, progress=between(change))

    assert [manifest.school["name"] for _, manifest in report.made] == ["Bisi"]
    assert ([school.id for school in report.skipped], report.failed) == ([ada.id], [])


def test_a_school_that_is_half_deleted_is_skipped_and_has_no_folder(tenancy, ada, bisi, tmp_path):
    with tenancy.admin.begin() as connection:
        connection.execute(update(schools).where(schools.c.id == ada.id).values(deletion="begun"))

    report = back_up_all(tenancy, tmp_path)

    assert ([school.id for school in report.skipped], len(report.made)) == ([ada.id], 1)
    assert os.listdir(tmp_path) == [str(bisi.id)]


def test_the_files_of_a_school_that_is_gone_stay(tenancy, ada, bisi, tmp_path):
    back_up_all(tenancy, tmp_path)
    delete_school(tenancy, ada.id, backup_folder=None)
    before = files(tmp_path / str(ada.id))

    back_up_all(tenancy, tmp_path, keep=1)

    assert files(tmp_path / str(ada.id)) == before != []


# The number of backups that stay.


def test_the_newest_files_stay_and_older_ones_go_once_the_new_one_is_complete(tenancy, ada, tmp_path):
    runs = [back_up_all(tenancy, tmp_path, keep=2) for _ in range(4)]

    made = [run.made[0][0] for run in runs]
    assert files(tmp_path) == sorted(str(path.relative_to(tmp_path)) for path in made[2:])
    assert [run.removed for run in runs] == [[], [], [made[0]], [made[1]]]
    assert made == sorted(made)


def test_without_a_number_all_stay(tenancy, ada, tmp_path):
    for _ in range(3):
        back_up_all(tenancy, tmp_path)

    assert len(files(tmp_path)) == 3


def test_no_other_file_is_removed(tenancy, ada, tmp_path):
    own = tmp_path / str(ada.id)
    own.mkdir()
    (own / "20200101T000000000000Z.zip").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("of value")
    (own / "20200102T000000000000Z.zip").symlink_to(elsewhere)
    others = [
        "notes.txt",
        "20200101T000000000000Z.zip.bak",
        "x20200101T000000000000Z.zip",
        "20200101T000000000000Z.ZIP",
        "20200101T0000Z.zip",
        "\uff120200101T000000000000Z.zip",
        ".school-backup-abc",
        f"{ada.id}-20200101T000000000000Z.zip",
        # The clock was wrong once: this is newer than the new one.
        "29991231T235959999999Z.zip",
    ]
    for name in others:
        (own / name).write_text("of value")
    strangers = tmp_path / str(uuid4())
    strangers.mkdir()
    (strangers / "20200101T000000000000Z.zip").write_text("of value")
    (own / "20200103T000000000000Z.zip").write_text("an old one")

    report = back_up_all(tenancy, tmp_path, keep=1)

    assert report.removed == [own / "20200103T000000000000Z.zip"]
    new = report.made[0][0]
    assert sorted(os.listdir(own)) == sorted(
        [*others, new.name, "20200101T000000000000Z.zip", "20200102T000000000000Z.zip"]
    )
    assert os.listdir(strangers) == ["20200101T000000000000Z.zip"]
    assert elsewhere.read_text() == "of value"


def test_an_older_file_that_cant_be_removed_is_said(tenancy, ada, tmp_path, monkeypatch):
    back_up_all(tenancy, tmp_path)

    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    report = back_up_all(tenancy, tmp_path, keep=1)

    ((_, reason),) = report.failed
    assert "was made, but older files can't be removed: Permission denied" in reason
    assert len(report.made) == 1


def test_three_runs_at_once_end_well_and_the_newest_backup_stays(tenancy, ada, bisi, tmp_path):
    def run(_number):
        return back_up_all(tenancy, tmp_path, keep=1)

    for _ in range(2):
        reports = run_concurrently(3, run)

        assert [report.failed for report in reports] == [[], [], []]
        made = [path for report in reports for path, _ in report.made]
        for school in (ada, bisi):
            newest = max(path.name for path in made if path.parent.name == str(school.id))
            left = os.listdir(tmp_path / str(school.id))
            # The run with an older backup may have ended last: then that backup stays too, until the next run.
            assert newest in left
            assert len(left) <= 3


# Several servers


@pytest.fixture
def server_away(tenancy, ada, lent, monkeypatch):
    """Two servers; the server of Ada and of a third school takes no connections, and the attempts are counted."""
    eve = lent[1].lend("Eve")
    placement, tried = tenancy.placement, []
    away = admin_engine(tenancy.admin_url.set(host="127.0.0.1", port=1, query={}))

    @contextmanager
    def admin_of(admin, school_id):
        tried.append(school_id)
        yield away if school_id in {ada.id, eve.id} else admin

    monkeypatch.setattr(placement, "admin_of", admin_of)
    servers = {ada.schema: "one", eve.schema: "one"}
    monkeypatch.setattr(
        placement,
        "servers_of_schools",
        lambda connection: {
            school.schema: servers.get(school.schema, "two") for school in list_schools(connection)
        },
    )
    yield tried
    away.dispose()


@on_postgresql_alone
def test_a_server_that_is_away_fails_its_schools_alone_and_is_tried_once(
    tenancy, bisi, server_away, tmp_path
):
    report = back_up_all(tenancy, tmp_path)

    assert [manifest.school["name"] for _, manifest in report.made] == ["Bisi"]
    assert [(school.name, reason.partition(":")[0]) for school, reason in report.failed] == [
        ("Ada", "one can't be reached"),
        ("Eve", "one can't be reached"),
    ]
    assert len(server_away) == 2

    verification = verify(tenancy, folder=tmp_path)

    assert {
        school.school.name: [fault.partition(":")[0] for fault in school.faults]
        for school in verification.schools
    } == {
        "Ada": ["one can't be reached"],
        "Bisi": [],
        "Eve": ["one can't be reached"],
    }
    assert not verification.is_good
    assert len(server_away) == 4
