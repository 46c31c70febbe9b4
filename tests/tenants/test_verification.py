"""Verifying an installation: what is whole is good, and each thing that a recovery can lose is said."""

from __future__ import annotations

import shutil

import pytest

from tenants.backups.backup_all import back_up_all
from tenants.backups.encryption import new_identity
from tenants.migrations.migration_sql import head
from tenants.provisioning.create import create_school
from tenants.verification import verify
from tests.tenants.installations import ADMINISTRATOR, execute, installation


@pytest.fixture(scope="module")
def tenancy(server):
    """An installation whose operator is no superuser, as on a server of its own."""
    with installation(server, superuser=False) as tenancy:
        yield tenancy


@pytest.fixture(scope="module")
def school(tenancy):
    return create_school(tenancy, name="Ada College", administrator=ADMINISTRATOR)


@pytest.fixture(scope="module")
def backups(tenancy, school, tmp_path_factory):
    """A folder with two backups of the school: the entry of the first in the audit log is in the second."""
    folder = tmp_path_factory.mktemp("backups")
    assert [len(back_up_all(tenancy, folder).made) for _ in range(2)] == [1, 1]
    return folder


@pytest.fixture(scope="module")
def superuser(server, tenancy):
    """Who may do everything in the database of the installation."""
    return server.set(database=tenancy.admin_url.database)


def faults(tenancy, **options):
    found = verify(tenancy, **options)
    return [*found.faults, *(fault for one in found.schools for fault in one.faults)]


def test_what_is_whole_is_good(tenancy, school, backups):
    found = verify(tenancy, folder=backups)

    record = found.as_record()
    assert (record["good"], record["faults"], record["notes"]) == (True, [], [])
    (one,) = record["schools"]
    assert (one["id"], one["revision"], one["state"]) == (str(school.id), head(tenancy.history), "good")
    assert one["rows"] > 10
    assert one["backup"].endswith(".zip")
    # The entry of the backup itself.
    assert one["notes"] == ["rows since its newest backup: audit_entries +1"]


def test_each_thing_that_is_lost_or_wrong_is_said(tenancy, school, superuser, backups):
    schema = school.schema
    owner, login = tenancy.owner, tenancy.serving_login
    for broken, mended, said in (
        (
            f'DELETE FROM "{schema}".audit_entries',
            None,
            "audit_entries has 0 rows, and had",
        ),
        (
            f'REVOKE INSERT ON "{schema}".classrooms FROM "{schema}"',
            "GRANT",
            "lacks rights on classrooms (INSERT)",
        ),
        (
            f'GRANT DELETE ON "{schema}".audit_entries TO "{schema}"',
            f'REVOKE DELETE ON "{schema}".audit_entries FROM "{schema}"',
            "has rights that it should not have on audit_entries (DELETE)",
        ),
        (
            f'GRANT SELECT ON "{schema}".users TO PUBLIC',
            f'REVOKE SELECT ON "{schema}".users FROM PUBLIC',
            "PUBLIC has rights on users: SELECT",
        ),
        (
            f'REVOKE USAGE ON SCHEMA "{schema}" FROM "{schema}"',
            f'GRANT USAGE ON SCHEMA "{schema}" TO "{schema}"',
            "may not use the schema",
        ),
        (
            f'ALTER TABLE "{schema}".users OWNER TO "{login}"',
            f'ALTER TABLE "{schema}".users OWNER TO "{owner}"; REVOKE ALL ON "{schema}".users FROM "{login}"',
            f"tables have another owner than the schema: users ({login})",
        ),
        (
            f'ALTER SCHEMA "{schema}" OWNER TO "{login}"',
            f'ALTER SCHEMA "{schema}" OWNER TO "{owner}"',
            f"requests can become {login}, which owns the schema",
        ),
        (
            f'ALTER ROLE "{schema}" LOGIN',
            f'ALTER ROLE "{schema}" NOLOGIN',
            f"the role {schema} may sign in",
        ),
        (
            f'ALTER TABLE "{schema}".users ADD COLUMN shoe_size int',
            f'ALTER TABLE "{schema}".users DROP COLUMN shoe_size',
            "the schema is not that of its revision: column users.shoe_size",
        ),
        (
            f"UPDATE registry.schools SET revision = 't9999' WHERE id = '{school.id}'",
            f"UPDATE registry.schools SET revision = '{head(tenancy.history)}' WHERE id = '{school.id}'",
            "this program does not know the revision t9999",
        ),
        (
            "CREATE SCHEMA school_00000000000000000000000000000000",
            "DROP SCHEMA school_00000000000000000000000000000000",
            "the schema school_00000000000000000000000000000000 is of no school of the registry",
        ),
        (f'ALTER ROLE "{login}" NOLOGIN', f'ALTER ROLE "{login}" LOGIN', f"the login {login} is missing"),
        (
            f'ALTER SCHEMA "{schema}" RENAME TO elsewhere',
            f'ALTER SCHEMA elsewhere RENAME TO "{schema}"',
            f"the schema {schema} is missing",
        ),
        (
            f'ALTER ROLE "{schema}" RENAME TO nobody_knows_me',
            f'ALTER ROLE nobody_knows_me RENAME TO "{schema}"',
            f"the role {schema} is missing",
        ),
    ):
        if mended is None:
            execute(
                superuser,
                f'CREATE TABLE registry.kept AS SELECT * FROM "{schema}".audit_entries; {broken}',
            )
            mended = (
                f'INSERT INTO "{schema}".audit_entries SELECT * FROM registry.kept; DROP TABLE registry.kept'
            )
        else:
            execute(superuser, broken)
        if mended == "GRANT":
            mended = broken.replace("REVOKE", "GRANT").replace(" FROM ", " TO ")
        found = faults(tenancy, folder=backups)
        execute(superuser, mended)
        assert any(said in fault for fault in found), (broken, found)
        assert faults(tenancy, folder=backups) == [], broken


def test_backups_that_can_not_be_compared_are_said(tenancy, school, backups, tmp_path):
    own = str(school.id)
    lost = "00000000-0000-0000-0000-000000000001"
    shutil.copytree(backups / own, tmp_path / lost)
    found = verify(tenancy, folder=tmp_path)
    assert found.is_good
    assert [note for note in found.notes if lost in note and "is lost" in note]
    assert found.schools[0].notes == ["it has no backup in this folder"]

    shutil.copytree(backups / own, tmp_path / own)
    file = max((tmp_path / own).iterdir())
    file.write_bytes(file.read_bytes()[:-100])
    assert any(
        "its newest backup: The file is no backup" in fault for fault in faults(tenancy, folder=tmp_path)
    )

    shutil.copy(max((tmp_path / lost).iterdir()), file)
    assert faults(tenancy, folder=tmp_path) == []

    key = new_identity()
    back_up_all(tenancy, tmp_path, encrypt_to=[str(key.to_public())])
    assert any("encrypted" in fault for fault in faults(tenancy, folder=tmp_path))
    assert faults(tenancy, folder=tmp_path, identities=[key]) == []
