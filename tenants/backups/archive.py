"""The file of one school: a zip of two members, neither of them compressed by it.

    school.sql.gz   the rows: a compressed script of COPY (format 2)
    school.dump     in its place, of earlier versions (format 1): pg_dump's custom format, compressed by pg_dump itself
    manifest.json   a description of the rows, the school, and the SHA-256 of the other member

Common tools open it: `unzip -p FILE school.sql.gz | gunzip`. If it is encrypted, each member is by itself, in the
format of age, and bears `.age` at the end of its name:
`unzip -p FILE school.sql.gz.age | age --decrypt --identity KEYFILE | gunzip`.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from tenants.atomic_file import atomic_file
from tenants.backups.checksums import TableChecksum
from tenants.backups.encryption import Identity, Readable, Recipient, decrypt, encrypt
from tenants.exceptions import BackupRefused

DUMP, SCRIPT, MANIFEST = "school.dump", "school.sql.gz", "manifest.json"
FORMATS = {1: DUMP, 2: SCRIPT}
ENCRYPTED = ".age"
# Columns of the registry's row that belong to the school in any installation.
DETAILS = ("name", "status", "address", "phone_number", "email_address", "motto", "logo_url", "created_at")
# Members that backups of earlier versions do not have.
LATER_DETAILS = ("website",)
_MAX_MANIFEST_BYTES = 16 << 20
_CHUNK = 1 << 18  # bytes

# Errors of reading a damaged zip.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    UnicodeDecodeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a backup: the school, its revision, the moment, the program, and each table's state.

    `school` has the school's own members of the registry's row. `pg_dump` is the version of the dumping program in an
    earlier version's backup, else empty; `postgresql` the version of the server, `program` the version of this service.
    `size` and `sha256` are those of the script, or of the dump.
    """

    program: str
    created_at: datetime
    school: dict[str, Any]
    revision: str
    postgresql: str
    pg_dump: str
    size: int
    sha256: str
    tables: dict[str, TableChecksum]

    @property
    def school_id(self) -> UUID:
        """The school's id."""
        return UUID(self.school["id"])

    @property
    def format(self) -> int:
        """The format of the file: 2 if it holds a script, and not a dump."""
        return 1 if self.pg_dump else 2

    @property
    def member(self) -> str:
        """The name of the member with the rows."""
        return FORMATS[self.format]

    @property
    def pg_dump_major(self) -> int:
        """The major version of the program of the dump."""
        return int(re.split(r"\D", self.pg_dump)[0])

    def as_record(self) -> dict[str, Any]:
        """The backup as an operator sees it, ready for JSON."""
        return {
            "id": self.school["id"],
            "name": self.school["name"],
            "revision": self.revision,
            "created_at": self.created_at.isoformat(),
            "tables": len(self.tables),
            "rows": sum(table.rows for table in self.tables.values()),
            "sha256": self.sha256,
        }

    def to_json(self) -> str:
        """Write the manifest."""
        return json.dumps(
            {"format": self.format, **asdict(self), "created_at": self.created_at.isoformat()},
            ensure_ascii=False,
            indent=1,
        )

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Read a manifest; raises BackupRefused."""
        try:
            document = json.loads(text)
            version = document.pop("format")
            if version not in FORMATS:
                raise BackupRefused(
                    f"The backup is of format {version}, and this program knows {' and '.join(map(str, FORMATS))}: "
                    "restore it with the program that made it, or a newer one."
                )
            tables = {name: TableChecksum(**table) for name, table in document.pop("tables").items()}
            created_at = datetime.fromisoformat(document.pop("created_at"))
            manifest = cls(**document, tables=tables, created_at=created_at)
            manifest._check()
            if manifest.format != version:
                raise ValueError("it is of another format than it says")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupRefused(f"The backup's manifest is not what it should be: {error!r}.") from None
        return manifest

    def _check(self) -> None:
        """See that the members have their types, as far as other code relies on it."""
        UUID(self.school["id"])
        datetime.fromisoformat(self.school["created_at"])
        details = [self.school[name] or "" for name in DETAILS]
        details += [self.school.get(name) or "" for name in LATER_DETAILS]
        for value in (self.revision, self.school["name"], *details):
            if "\0" in value:
                raise ValueError("a text holds NUL")
            value.encode()
        if self.size < 0 or (self.pg_dump and self.pg_dump_major < 0):
            raise ValueError("a number is below 0")


@contextmanager
def readable_errors(what: str) -> Iterator[None]:
    """Report a refusal of the operating system as the backup's, such as "can't be read"; raises BackupRefused."""
    try:
        yield
    except OSError as error:
        raise BackupRefused(f"The backup can't be {what}: {error.strerror or error}.") from None


@contextmanager
def new_file(path: Path, *, replace: bool) -> Iterator[IO[bytes]]:
    """Yield a file, for its owner's eyes alone; it gets its name when the block has ended well.

    It is on the disk by then; if the block fails, or the process dies, nothing bears the name. Raises BackupRefused if
    something does already, unless it may be replaced.
    """
    refuse = partial(refuse_existing, path, replace=replace)
    refuse()
    with atomic_file(path, prefix=".school-backup-", before_naming=refuse) as file:
        yield file


def refuse_existing(path: Path, *, replace: bool) -> None:
    """Refuse a taken name, or the name of a folder; raises BackupRefused."""
    if path.is_dir():
        raise BackupRefused(f"{path} is a folder: name a file.")
    if path.exists() and not replace:
        raise BackupRefused(f"{path} exists already. Name another file, or add --force.")


def write_archive(
    file: IO[bytes],
    script: IO[bytes],
    describe: Callable[[int, str], Manifest],
    recipients: Sequence[Recipient] = (),
) -> Manifest:
    """Write a backup from a script in the making; `describe` gets its size in bytes and SHA-256.

    It is encrypted to the recipients, if there are any.
    """
    measured = _Measured(script)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _write_member(archive, SCRIPT, measured, recipients)
        manifest = describe(measured.size, measured.sha256)
        _write_member(archive, MANIFEST, BytesIO(manifest.to_json().encode()), recipients)
    return manifest


def _write_member(
    archive: zipfile.ZipFile, name: str, source: Readable, recipients: Sequence[Recipient]
) -> None:
    with archive.open(name + ENCRYPTED * bool(recipients), "w", force_zip64=name != MANIFEST) as member:
        if recipients:
            encrypt(source, member.write, recipients)
            return
        while chunk := source.read(_CHUNK):
            member.write(chunk)


class _Measured:
    """A file in the course of reading, or writing, with the size of the part done, in bytes, and its SHA-256."""

    def __init__(self, file: Readable | None = None) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def read(self, size: int = -1, /) -> bytes:
        assert self._file is not None  # noqa: S101 -- for mypy
        chunk = self._file.read(size)
        self.write(chunk)
        return chunk

    def write(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        self.size += len(chunk)


class Archive:
    """A backup opened and found whole."""

    def __init__(self, zipped: zipfile.ZipFile, identities: Sequence[Identity]) -> None:
        self._zipped, self._identities = zipped, identities
        self._member, self._suffix = self._find_members()
        self.manifest = self._read_manifest()
        self._check_dump()

    def write_dump(self, to: IO[bytes], advance: Callable[[int], None] = lambda _bytes: None) -> None:
        """Write the dump somewhere; `advance` is called with the bytes of each chunk."""

        def write(chunk: bytes) -> None:
            to.write(chunk)
            advance(len(chunk))

        self._read(self._member, write)

    def _find_members(self) -> tuple[str, str]:
        """Name the member with the rows, and tell the suffix of the names: none, or the suffix of encrypted ones."""
        names = sorted(self._zipped.namelist())
        for suffix, member in product(("", ENCRYPTED), FORMATS.values()):
            if not {member + suffix, MANIFEST + suffix} <= set(names):
                continue
            if len(names) > 2:
                raise BackupRefused("The file is no backup of a school: it has members that no backup has.")
            if suffix and not self._identities:
                raise BackupRefused(
                    "The backup is encrypted: name the file of its private key with --identity."
                )
            if self._identities and not suffix:
                raise BackupRefused(
                    "The backup is not encrypted: leave out --identity, if that is as it should be."
                )
            return member, suffix
        raise BackupRefused("The file is no backup of a school: it has no manifest.")

    def _read_manifest(self) -> Manifest:
        if self._zipped.getinfo(MANIFEST + self._suffix).file_size > _MAX_MANIFEST_BYTES:
            raise BackupRefused("The backup's manifest is not what it should be: it is too long.")
        text = BytesIO()
        self._read(MANIFEST, text.write)
        return Manifest.from_json(text.getvalue())

    def _check_dump(self) -> None:
        measured = _Measured()
        if self.manifest.member != self._member:
            raise BackupRefused("The backup's manifest is not what it should be: it is of another dump.")
        self._read(self._member, measured.write)
        if (measured.size, measured.sha256) != (self.manifest.size, self.manifest.sha256):
            raise BackupRefused("The backup is damaged: its dump is not the one that was written.")

    def _read(self, name: str, write: Callable[[bytes], object]) -> None:
        with self._zipped.open(name + self._suffix) as member:
            if self._suffix:
                decrypt(member, write, self._identities)
                return
            while chunk := member.read(_CHUNK):
                write(chunk)


@contextmanager
def open_archive(file: Path | IO[bytes], identities: Sequence[Identity] = ()) -> Iterator[Archive]:
    """Open a backup, and see that it is whole; raises BackupRefused if it is none, cut, damaged or newer.

    `identities` are the keys of an encrypted one: without them, or with others, it is refused too.
    """
    with _undamaged(), readable_errors("read"):
        zipped = zipfile.ZipFile(file)
    with zipped:
        with _undamaged(), readable_errors("read"):
            archive = Archive(zipped, identities)
        yield archive


@contextmanager
def _undamaged() -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise BackupRefused(f"The file is no backup of a school, or cut, or damaged: {error}.") from None
