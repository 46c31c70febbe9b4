"""Take the arguments of verbs: kinds of arguments, each refused in words of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from tenants.backups.encryption import parse_recipient
from tenants.migrations.migration_sql import TENANT
from tenants.names import LONGEST, TYPED_BYTES, composed, is_visible
from tenants.registry.details import check_detail
from tenants.registry.redirect_uris import check_redirect_uri
from tenants.registry.schools import SHORT_NAME
from tenants.tenancy import MAX_PASSWORD_LENGTH, Tenancy

_PERMISSION = re.compile(r"[a-z][a-z0-9-]*+:[a-z][a-z0-9-]*+")


def history_option(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make the option for a folder of migrations other than the program's own."""
    return click.option(
        "--history",
        "folder",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=TENANT,
        help=f"{text}  [default: the program's own]",
    )


def identity_option(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make the option for the file of the private key of backups."""
    return click.option(
        "--identity",
        "key_file",
        metavar="KEYFILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"File of the private key, as age-keygen writes it, {text}",
    )


class Checked(click.ParamType):  # type: ignore[type-arg]
    """A text as a function returns it; its ValueError says why the text is refused."""

    def __init__(self, name: str, check: Callable[[str], str]) -> None:
        self.name, self._check = name, check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the text, or refuse it."""
        try:
            return self._check(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _name(text: str) -> str:
    """Trim a name, and compose its letters with their marks (NFC); raises ValueError."""
    name = composed(text)
    if not name or len(name) > LONGEST or not is_visible(name):
        raise ValueError(f"a name has 1 to {LONGEST} characters that can be seen")
    return name


def _message(text: str) -> str:
    from tenants.migrations.new_revision import slug_of

    slug_of(text)
    return text


def _access(text: str) -> str:
    if not _PERMISSION.fullmatch(text):
        raise ValueError(f"{text[:100]!r} is not of the form ACCESS:SECTION, such as read:students")
    return text


def _detail(name: str, text: str) -> str:
    try:
        return check_detail(name, text) or ""
    except ValueError as error:
        raise ValueError(f"{text[:100]!r}: it {error}") from None


def _short_name(text: str) -> str:
    if text and not SHORT_NAME.fullmatch(text):
        raise ValueError(
            f"{text[:100]!r}: a short name has 3 to 40 small letters, digits and hyphens, and no hyphen at an end"
        )
    return text


def _redirect_uri(text: str) -> str:
    try:
        return check_redirect_uri(text) if text else ""
    except ValueError as error:
        raise ValueError(f"{text[:200]!r}: it {error}") from None


def _recipient(text: str) -> str:
    # The message does not repeat the text, perhaps a private key.
    parse_recipient(text)
    return text


NAME = Checked("name", _name)
MESSAGE = Checked("message", _message)
"""The change made by a migration, in words fit to name its file."""
ACCESS = Checked("access:section", _access)
"""A permission, such as read:students."""
SHORT_NAME_OF_SCHOOL = Checked("name", _short_name)
"""The short name of a school, typed by people; empty: none."""
REDIRECT_URI = Checked("uri", _redirect_uri)
"""An address to lead people back to; empty: none."""
RECIPIENT = Checked("recipient", _recipient)
"""A public key of age, such as age1…"""


def detail(name: str) -> Checked:
    """Make the kind of a detail of a school, as `tenants.registry.details` takes it; empty: none."""
    return Checked(name, partial(_detail, name))


def read_password(tenancy: Tenancy, username: str) -> str:
    """Read a user's new password from standard input, as it is but for the end of its line; raises UsageError."""
    most = TYPED_BYTES * MAX_PASSWORD_LENGTH
    content = sys.stdin.buffer.read(most + 1)
    try:
        password = content.decode("utf-8").removesuffix("\n") if len(content) <= most else ""
    except UnicodeDecodeError:
        raise click.UsageError("The password on standard input is no text in UTF-8.") from None
    if not 1 <= len(password) <= MAX_PASSWORD_LENGTH or "\0" in password:
        raise click.UsageError(
            f"The password on standard input must have 1 to {MAX_PASSWORD_LENGTH} characters, none of them NUL."
        )
    faults = tenancy.password_faults(password, username=username)
    if faults:
        raise click.UsageError(f"The password on standard input {', and '.join(faults)}.")
    return password
