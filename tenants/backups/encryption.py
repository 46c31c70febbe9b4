"""Backups encrypted to an operator's keys, in the format of age (age-encryption.org/v1).

Making backups needs the public key alone (`age1…`, a recipient), restoring them the private one (`AGE-SECRET-KEY-1…`,
an identity). Texts of keys are never repeated in messages: one could be private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyrage

from tenants.exceptions import BackupRefused

_MAX_KEY_FILE_BYTES = 1 << 16

Identity = Any  # pyrage.x25519.Identity
Recipient = Any  # pyrage.x25519.Recipient


class Readable(Protocol):
    """A source readable like a file of bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Read up to so many bytes; none at the end."""


def parse_recipient(text: str) -> Recipient:
    """Read a public key, such as age1…; raises ValueError, without the key in its message."""
    if text.strip().upper().startswith("AGE-SECRET-KEY-"):
        raise ValueError("this is a private key: give the public one, which begins with age1")
    try:
        return pyrage.x25519.Recipient.from_str(text.strip())
    except pyrage.RecipientError:
        raise ValueError("not a public key of age, which begins with age1") from None


def read_identities(path: Path) -> list[Identity]:
    """Read a file of private keys as age-keygen writes it: a key a line, and comments; raises BackupRefused."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_KEY_FILE_BYTES + 1).decode()
    except OSError as error:
        raise BackupRefused(f"The key file {path} can't be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        text = ""
    if text.startswith(("age-encryption.org/", "-----BEGIN AGE ENCRYPTED FILE-----")):
        raise BackupRefused(f"The key file {path} is encrypted itself: decrypt it first, with age --decrypt.")
    lines = [line.strip() for line in text.splitlines()]
    try:
        identities = [
            pyrage.x25519.Identity.from_str(line) for line in lines if line and not line.startswith("#")
        ]
    except pyrage.IdentityError:
        identities = []
    if not identities or len(text) > _MAX_KEY_FILE_BYTES:
        raise BackupRefused(f"The key file {path} is none of age's: its keys begin with AGE-SECRET-KEY-1.")
    return identities


def new_identity() -> Identity:
    """Make a private key."""
    return pyrage.x25519.Identity.generate()


def encrypt(source: Readable, write: Callable[[bytes], object], recipients: Sequence[Recipient]) -> None:
    """Encrypt a source, bit by bit, to the holders of the recipients' private keys."""
    reader, writer = _Reader(source), _Writer(write)
    with _own_errors(reader, writer):
        pyrage.encrypt_io(reader, writer, list(recipients))


def decrypt(source: Readable, write: Callable[[bytes], object], identities: Sequence[Identity]) -> None:
    """Decrypt a source, bit by bit; raises BackupRefused if no key fits, or it is damaged.

    The part written by then is authentic as far as it goes, and may be cut.
    """
    reader, writer = _Reader(source), _Writer(write)
    try:
        with _own_errors(reader, writer):
            pyrage.decrypt_io(reader, writer, list(identities))
    except pyrage.DecryptError:
        raise BackupRefused(
            "The backup can't be decrypted with this key: it was encrypted to another one, or is damaged."
        ) from None
    except OSError as error:
        if error in (reader.error, writer.error):
            raise
        raise BackupRefused("The backup is damaged: what is encrypted was changed, or cut.") from None


class _Reader:
    """A file for pyrage to read; it keeps the exception, since pyrage makes a text of it."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self.error: BaseException | None = None

    def read(self, size: int = -1) -> bytes:
        try:
            return self._file.read(size)
        except BaseException as error:
            self.error = error
            raise


class _Writer:
    """A file for pyrage to write; it keeps the exception: of its last bytes pyrage forgets it altogether."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self.error: BaseException | None = None

    def write(self, chunk: bytes) -> int:
        try:
            self._write(chunk)
        except BaseException as error:
            self.error = error
            raise
        return len(chunk)

    def flush(self) -> None:
        """Do nothing: all is written already."""


@contextmanager
def _own_errors(*files: _Reader | _Writer) -> Iterator[None]:
    """Raise the exceptions of reading and writing, in place of pyrage's version of them, if any."""
    try:
        yield
    finally:
        for file in files:
            if file.error is not None:
                raise file.error
