"""The script of COPY that a school is backed up as: written and read without any program."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from io import BytesIO
from uuid import uuid4

import pytest

from tenants.backups.backup import back_up
from tenants.backups.encryption import new_identity
from tenants.backups.restore import restore
from tenants.backups.row_script import piped
from tenants.exceptions import BackupRefused
from tests.tenants.conftest import tagged_school
from tests.tenants.installations import execute

ODD = "Ọmọ\t\\. \\N \r\n 🏫 'x' \"y\" ;\\"


@pytest.fixture(scope="module")
def tenancy(few):
    """The installation of few tables: its tests do not depend on their number."""
    return few


@pytest.fixture(scope="module")
def school(tenancy):
    """A school whose rooms have names that COPY has to escape."""
    school = tagged_school(tenancy)
    room = f'INSERT INTO "{school.schema}".classrooms (id, name, level) VALUES (%s, %s, %s)'
    execute(tenancy.admin_url, room, (str(uuid4()), ODD, ""))
    return school


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_school_comes_back_as_it_was_without_any_program(tenancy, school, tmp_path, encrypted):
    key = new_identity()
    recipients, identities = ([str(key.to_public())], [key]) if encrypted else ([], [])
    file, steps = tmp_path / "school.zip", []

    class Steps:
        def __init__(self, length):
            self.length = length

        def __enter__(self):
            return steps.append

        def __exit__(self, *_):
            assert sum(steps) == self.length

    manifest = back_up(tenancy, school.id, file, encrypt_to=recipients, progress=Steps)
    restored = restore(tenancy, file, school_id=uuid4(), identities=identities)

    assert (manifest.format, manifest.pg_dump) == (2, "")
    rooms = [
        execute(tenancy.admin_url, f'SELECT * FROM "{copy.schema}".classrooms ORDER BY id')
        for copy in (school, restored)
    ]
    assert rooms[0] == rooms[1]
    assert ODD in [name for _, name, _ in rooms[1]]


def test_common_tools_open_it(tenancy, school, tmp_path):
    back_up(tenancy, school.id, tmp_path / "school.zip")

    with zipfile.ZipFile(tmp_path / "school.zip") as file:
        assert sorted(file.namelist()) == ["manifest.json", "school.sql.gz"]
        script = gzip.decompress(file.read("school.sql.gz")).decode()
        assert json.loads(file.read("manifest.json"))["format"] == 2
    assert f'COPY "{school.schema}"."classrooms" ("id", "name", "level") FROM stdin;\n' in script


@pytest.mark.parametrize("change", ["format", "member", "cut", "no gzip"])
def test_a_script_that_contradicts_its_manifest_is_refused_and_leaves_nothing(
    tenancy, school, tmp_path, change
):
    path = tmp_path / "school.zip"
    back_up(tenancy, school.id, path)
    with zipfile.ZipFile(path) as file:
        script, manifest = file.read("school.sql.gz"), json.loads(file.read("manifest.json"))
    member = "school.dump" if change == "member" else "school.sql.gz"
    if change == "format":
        manifest["format"] = 1
    if change in {"cut", "no gzip"}:
        # With the right sum: the content is at fault.
        script = script[: len(script) // 2] if change == "cut" else b"COPY"
        manifest |= {"size": len(script), "sha256": hashlib.sha256(script).hexdigest()}
    changed = BytesIO()
    with zipfile.ZipFile(changed, "w") as file:
        file.writestr(member, script)
        file.writestr("manifest.json", json.dumps(manifest))
    path.write_bytes(changed.getvalue())
    school_id = uuid4()

    with pytest.raises(BackupRefused):
        restore(tenancy, path, school_id=school_id)

    assert execute(tenancy.admin_url, "SELECT FROM registry.schools WHERE id = %s", (str(school_id),)) == []


def test_an_error_of_the_writer_is_raised_and_the_end_of_the_reader_stops_it():
    def fail(to):
        to.write(b"some")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"), piped(fail) as read:
        assert read.read() == b"some"

    def write_for_ever(to):
        while True:
            to.write(b"x" * 100_000)

    def read_a_little():
        with piped(write_for_ever) as read:
            read.read(10)
            raise KeyError

    with pytest.raises(KeyError):
        read_a_little()
