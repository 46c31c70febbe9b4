"""Encrypted backups: readable with the private key, and with nothing else."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from uuid import uuid4

import pyrage
import pytest

from tenants.backups import backup as backups
from tenants.backups.archive import Archive
from tenants.backups.backup import back_up
from tenants.backups.encryption import decrypt, encrypt, new_identity, parse_recipient, read_identities
from tenants.backups.restore import restore
from tenants.exceptions import BackupRefused
from tenants.provisioning.create import create_school
from tenants.provisioning.delete import delete_school
from tests.lent_schools import Lender
from tests.tenants.backups.test_backup import contents, flipped, places_in, rewrite, without_log
from tests.tenants.installations import ADMINISTRATOR
from tests.tenants.provisioning.test_create import traces

SECRET = "Queen's College, Yaba"


@pytest.fixture(scope="module")
def tenancy(few):
    """The installation of few tables: its tests do not depend on their number."""
    return few


@pytest.fixture(scope="module")
def schools(tenancy):
    """Lends a school."""
    return Lender(tenancy, lambda: create_school(tenancy, name=SECRET, administrator=ADMINISTRATOR))


@pytest.fixture
def school(schools):
    """A school."""
    return schools.lend()


@pytest.fixture
def file(tmp_path):
    """The place of the backup."""
    return tmp_path / "school.zip"


@pytest.fixture(scope="module")
def key():
    """A private key."""
    return new_identity()


@pytest.fixture(scope="module")
def other_key():
    """Another private key."""
    return new_identity()


def public(key):
    return str(key.to_public())


@pytest.fixture(scope="module")
def encrypted(tenancy, key, tmp_path_factory):
    """The bytes of an encrypted backup."""
    school = create_school(tenancy, name="Encrypted", administrator=ADMINISTRATOR)
    file = tmp_path_factory.mktemp("encrypted") / "school.zip"
    back_up(tenancy, school.id, file, encrypt_to=[public(key)])
    return file.read_bytes()


def refused(tenancy, file, identities):
    copy = uuid4()
    with pytest.raises(BackupRefused) as refusal:
        restore(tenancy, file, school_id=copy, identities=identities)
    assert traces(tenancy, copy) == []
    return str(refusal.value)


def test_an_encrypted_school_is_restored_with_its_key(tenancy, school, file, key):
    manifest = back_up(tenancy, school.id, file, encrypt_to=[public(key)])

    copy = restore(tenancy, file, school_id=uuid4(), identities=[new_identity(), key])

    assert without_log(contents(tenancy, copy)) == without_log(manifest.tables)
    assert copy.name == school.name


def test_either_of_two_keys_opens_it(tenancy, school, file, key, other_key):
    back_up(tenancy, school.id, file, encrypt_to=[public(key), public(other_key)])

    for each in (key, other_key):
        assert restore(tenancy, file, school_id=uuid4(), identities=[each]).name == school.name


def test_the_file_shows_nothing_of_the_school(tenancy, school, file, key, tmp_path):
    plain = tmp_path / "plain.zip"
    back_up(tenancy, school.id, file, encrypt_to=[public(key)])
    back_up(tenancy, school.id, plain)

    # The names of its tables are in every manifest that is not encrypted.
    for text in (SECRET.encode(), b"classrooms", str(school.id).encode(), school.schema.encode()):
        assert text not in file.read_bytes()
    assert b"classrooms" in plain.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600


def test_common_tools_open_it(encrypted, file, key):
    """Each member is a file of age, here read by the library alone."""
    with zipfile.ZipFile(io.BytesIO(encrypted)) as archive:
        assert archive.namelist() == ["school.sql.gz.age", "manifest.json.age"]
        members = [archive.read(name) for name in archive.namelist()]

    assert all(member.startswith(b"age-encryption.org/v1\n") for member in members)
    script, manifest = (pyrage.decrypt(member, [key]) for member in members)
    assert b"COPY " in gzip.decompress(script)
    assert b'"format": 2' in manifest


def test_the_installations_key_is_used_by_itself_and_by_deletion(tenancy, school, tmp_path, key, other_key):
    cautious = replace(tenancy, backup_recipients=(public(key),))
    file, own = tmp_path / "one.zip", tmp_path / "two.zip"
    try:
        back_up(cautious, school.id, file)
        back_up(cautious, school.id, own, encrypt_to=[public(other_key)])
        deleted = delete_school(cautious, school.id, backup_folder=tmp_path)
    finally:
        cautious.admin.dispose()

    # A key that is named stands in the place of the installation's.
    assert "can't be decrypted with this key" in refused(tenancy, own, [key])
    assert "is encrypted: name the file of its private key" in refused(tenancy, file, [])
    assert restore(tenancy, tmp_path / deleted.backup, identities=[key]).id == school.id


def test_without_a_key_or_with_another_the_message_says_so(tenancy, encrypted, file, other_key):
    file.write_bytes(encrypted)

    assert "is encrypted: name the file of its private key with --identity" in refused(tenancy, file, [])
    assert "can't be decrypted with this key: it was encrypted to another" in refused(
        tenancy, file, [other_key]
    )


def test_a_key_for_a_plain_backup_is_refused(tenancy, school, file, key):
    back_up(tenancy, school.id, file)

    assert "is not encrypted" in refused(tenancy, file, [key])


def test_a_byte_that_flipped_anywhere_is_refused(tenancy, encrypted, file, key):
    for place in places_in(encrypted):
        file.write_bytes(flipped(encrypted, place))
        assert "damaged" in refused(tenancy, file, [key]), place


def test_damage_behind_the_zips_checksums_is_refused(tenancy, encrypted, file, key):
    """A zip written anew has the right checksums: then age's own speak."""
    with zipfile.ZipFile(io.BytesIO(encrypted)) as archive:
        rows = archive.read("school.sql.gz.age")
    payload = rows.index(b"\n---") + 60
    for changed in (
        flipped(rows, (payload + len(rows)) // 2),
        rows[:-1],
        rows[: payload + 100],
        rows[:20],
        b"",
        rows + b"x",
        rows + rows,
    ):
        file.write_bytes(encrypted)
        rewrite(file, **{"school.sql.gz.age": changed})
        assert "damaged" in refused(tenancy, file, [key])


def test_members_of_two_kinds_are_refused(tenancy, school, encrypted, file, tmp_path, key):
    plain = tmp_path / "plain.zip"
    back_up(tenancy, school.id, plain)
    with zipfile.ZipFile(plain) as archive:
        manifest = archive.read("manifest.json")
    for members in (
        {"manifest.json": manifest},
        {"manifest.json": manifest, "manifest.json.age": None},
        {"surplus": b""},
        {"manifest.json.age": None},
    ):
        file.write_bytes(encrypted)
        rewrite(file, **members)
        assert "no backup of a school" in refused(tenancy, file, [key])


def test_an_encrypted_backup_is_read_again_before_it_is_called_complete(
    tenancy, school, file, key, monkeypatch
):
    read = []
    monkeypatch.setattr(
        Archive,
        "write_dump",
        lambda self, to, advance: read.append(to.write(self.manifest.revision.encode())),
    )

    with pytest.raises(BackupRefused, match="its rows can't be unpacked"):
        back_up(tenancy, school.id, file, encrypt_to=[public(key)])
    assert read
    assert os.listdir(file.parent) == []


def test_a_file_without_a_tables_rows_is_not_called_complete(tenancy, school, file, monkeypatch):
    real = backups.table_checksums

    def counting_more(connection, schema):
        sums = real(connection, schema)
        return {**sums, "roles": replace(sums["roles"], rows=7)}

    monkeypatch.setattr(backups, "table_checksums", counting_more)

    with pytest.raises(BackupRefused, match="not what the school holds: roles"):
        back_up(tenancy, school.id, file)
    assert os.listdir(file.parent) == []


def test_a_full_disk_is_said_even_of_the_last_bytes(tenancy, school, tmp_path, key):
    class Full(io.BytesIO):
        def write(self, chunk):
            raise OSError(28, "No space left on device")

    # pyrage itself forgets the exception of writing its last bytes.
    pyrage.encrypt_io(io.BytesIO(b"short"), Full(), [key.to_public()])
    with pytest.raises(OSError, match="No space left"):
        encrypt(io.BytesIO(b"short"), Full().write, [key.to_public()])


def test_exceptions_of_reading_and_writing_pass_unchanged(key):
    class Stopped(io.BytesIO):
        def read(self, size=-1, /):
            raise KeyboardInterrupt

    def broken(_chunk):
        raise BrokenPipeError

    whole = io.BytesIO()
    encrypt(io.BytesIO(b"x" * 200_000), whole.write, [key.to_public()])
    with pytest.raises(KeyboardInterrupt):
        encrypt(Stopped(), io.BytesIO().write, [key.to_public()])
    with pytest.raises(KeyboardInterrupt):
        decrypt(Stopped(), io.BytesIO().write, [key])
    with pytest.raises(BrokenPipeError):
        decrypt(io.BytesIO(whole.getvalue()), broken, [key])


# Keys.


@pytest.mark.parametrize("text", ["", "age1", "x", "ssh-ed25519 AAAA", "age1" + "q" * 58])
def test_a_text_that_is_no_public_key_is_refused(text):
    with pytest.raises(ValueError, match="not a public key of age"):
        parse_recipient(text)


def test_a_private_key_in_place_of_a_public_one_is_named_as_such_and_not_repeated(key):
    with pytest.raises(ValueError, match="this is a private key") as refusal:
        parse_recipient(str(key))
    assert str(key) not in str(refusal.value)


def test_a_key_file_is_read_as_age_keygen_writes_it(key, other_key, tmp_path):
    file = tmp_path / "key.txt"
    file.write_text(f"# created: 2026-11-22\n# public key: {public(key)}\n{key}\r\n\n  {other_key}\n")

    assert [str(each) for each in read_identities(file)] == [str(key), str(other_key)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "none of age's"),
        (b"# only a comment\n", "none of age's"),
        (b"AGE-SECRET-KEY-1WRONG\n", "none of age's"),
        (b"\xff\xfe", "none of age's"),
        (b"age-encryption.org/v1\n-> scrypt", "is encrypted itself"),
        (b"-----BEGIN AGE ENCRYPTED FILE-----\n", "is encrypted itself"),
        (b"#" * (1 << 17), "none of age's"),
    ],
)
def test_a_file_without_a_key_is_refused(tmp_path, content, reason):
    file = tmp_path / "key.txt"
    file.write_bytes(content)

    with pytest.raises(BackupRefused, match=reason) as refusal:
        read_identities(file)
    assert "WRONG" not in str(refusal.value)


def test_a_key_file_that_is_missing_is_said(tmp_path):
    with pytest.raises(BackupRefused, match=r"can't be read: No such file or directory"):
        read_identities(tmp_path / "missing")


def test_a_public_key_in_the_key_file_is_refused(key, tmp_path):
    file = tmp_path / "key.txt"
    file.write_text(public(key))

    with pytest.raises(BackupRefused, match="none of age's"):
        read_identities(file)


# Memory.

_MEASURE = """
import resource, sys
from tenants.backups.encryption import decrypt, encrypt, new_identity

class Source:
    left = int(sys.argv[1])
    def read(self, size=-1):
        chunk = b"x" * min(self.left, size)
        self.left -= len(chunk)
        return chunk

key = new_identity()
with open(sys.argv[2], "w+b") as file:
    encrypt(Source(), file.write, [key.to_public()])
    file.seek(0)
    decrypt(file, lambda chunk: None, [key])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.program
def test_memory_stays_flat(tmp_path):
    def peak(size):
        output = subprocess.run(
            [sys.executable, "-c", _MEASURE, str(size), str(tmp_path / "file")],
            capture_output=True,
            check=True,
        ).stdout
        return int(output)  # KiB

    assert peak(64 << 20) - peak(1 << 20) < 16 << 10
