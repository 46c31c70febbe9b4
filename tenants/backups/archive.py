"""The file that holds one school: a zip of two members, neither of them compressed by it.

    school.dump     pg_dump's custom format, which compresses its own data
    manifest.json   what the dump holds, of which school, and the dump's SHA-256

Common tools open it: `unzip -p FILE school.dump | pg_restore --list`.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from tenants.atomic_file import atomic_file
from tenants.backups.checksums import TableChecksum
from tenants.exceptions import BackupRefused

FORMAT = 1
DUMP, MANIFEST = "school.dump", "manifest.json"
# What of the registry's row belongs to the school, wherever it is.
DETAILS = ("name", "status", "address", "phone_number", "email_address", "motto", "logo_url", "created_at")
_MAX_MANIFEST_BYTES = 16 << 20
_CHUNK = 1 << 18  # bytes

# What reading a zip raises where it is not what it should be.
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
    """What a backup holds: of which school, at which revision and moment, made by what, and each table's state.

    `school` has the members of the registry's row that are the school's own. `pg_dump` is the version of the
    program that made the dump, `postgresql` that of the server, `program` that of this service.
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
    def pg_dump_major(self) -> int:
        """The major version of the program that made the dump."""
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
            {"format": FORMAT, **asdict(self), "created_at": self.created_at.isoformat()},
            ensure_ascii=False,
            indent=1,
        )

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Read a manifest; raises BackupRefused."""
        try:
            found = json.loads(text)
            version = found.pop("format")
            if version != FORMAT:
                raise BackupRefused(
                    f"The backup is of format {version}, and this program knows {FORMAT}: "
                    "restore it with the program that made it, or a newer one."
                )
            tables = {name: TableChecksum(**table) for name, table in found.pop("tables").items()}
            created_at = datetime.fromisoformat(found.pop("created_at"))
            manifest = cls(**found, tables=tables, created_at=created_at)
            manifest._check()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BackupRefused(f"The backup's manifest is not what it should be: {error!r}.") from None
        return manifest

    def _check(self) -> None:
        """See that the members have their types, as far as others rely on it."""
        UUID(self.school["id"])
        datetime.fromisoformat(self.school["created_at"])
        for value in (self.revision, self.school["name"], *(self.school[name] or "" for name in DETAILS)):
            if "\0" in value:
                raise ValueError("a text holds NUL")
            value.encode()
        if self.size < 0 or self.pg_dump_major < 0:
            raise ValueError("a number is below 0")


@contextmanager
def readable_errors(what: str) -> Iterator[None]:
    """Say of what the operating system refuses that it was the backup; raises BackupRefused."""
    try:
        yield
    except OSError as error:
        raise BackupRefused(f"The backup can't be {what}: {error.strerror or error}.") from None


@contextmanager
def new_file(path: Path, *, replace: bool) -> Iterator[IO[bytes]]:
    """Yield a file, for its owner's eyes alone, that gets its name when the block has ended well.

    It is on the disk by then; where the block fails, or the process dies, nothing bears the name. Raises
    BackupRefused where something does already, unless it may be replaced.
    """
    refuse = partial(refuse_existing, path, replace=replace)
    refuse()
    with atomic_file(path, prefix=".school-backup-", before_naming=refuse) as file:
        yield file


def refuse_existing(path: Path, *, replace: bool) -> None:
    """Refuse a name that is taken, or that can't be had; raises BackupRefused."""
    if path.is_dir():
        raise BackupRefused(f"{path} is a folder: name a file.")
    if path.exists() and not replace:
        raise BackupRefused(f"{path} exists already. Name another file, or add --force.")


def write_archive(file: IO[bytes], dump: IO[bytes], describe: Callable[[int, str], Manifest]) -> Manifest:
    """Write a backup from a dump that is being made; `describe` gets the dump's size in bytes and SHA-256."""
    digest, size = hashlib.sha256(), 0
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with archive.open(DUMP, "w", force_zip64=True) as member:
            while chunk := dump.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                member.write(chunk)
        manifest = describe(size, digest.hexdigest())
        archive.writestr(MANIFEST, manifest.to_json())
    return manifest


class Archive:
    """A backup that has been opened, and found whole."""

    def __init__(self, zipped: zipfile.ZipFile) -> None:
        self._zipped = zipped
        self.manifest = self._read_manifest()
        self._check_dump()

    def write_dump(self, to: IO[bytes], advance: Callable[[int], None] = lambda _bytes: None) -> None:
        """Write the dump somewhere; `advance` is called with the bytes of each chunk."""
        for chunk in self._dump():
            to.write(chunk)
            advance(len(chunk))

    def _read_manifest(self) -> Manifest:
        names = set(self._zipped.namelist())
        if not {DUMP, MANIFEST} <= names:
            raise BackupRefused("The file is no backup of a school: it has no manifest.")
        member = self._zipped.getinfo(MANIFEST)
        if member.file_size > _MAX_MANIFEST_BYTES:
            raise BackupRefused("The backup's manifest is not what it should be: it is too long.")
        return Manifest.from_json(self._zipped.read(member))

    def _check_dump(self) -> None:
        digest, size = hashlib.sha256(), 0
        for chunk in self._dump():
            digest.update(chunk)
            size += len(chunk)
        if (size, digest.hexdigest()) != (self.manifest.size, self.manifest.sha256):
            raise BackupRefused("The backup is damaged: its dump is not the one that was written.")

    def _dump(self) -> Iterator[bytes]:
        with self._zipped.open(DUMP) as member:
            while chunk := member.read(_CHUNK):
                yield chunk


@contextmanager
def open_archive(file: Path | IO[bytes]) -> Iterator[Archive]:
    """Open a backup, and see that it is whole; raises BackupRefused where it is none, cut, damaged or newer."""
    with _undamaged(), readable_errors("read"):
        zipped = zipfile.ZipFile(file)
    with zipped:
        with _undamaged(), readable_errors("read"):
            archive = Archive(zipped)
        yield archive


@contextmanager
def _undamaged() -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise BackupRefused(f"The file is no backup of a school, or cut, or damaged: {error}.") from None
