"""Take the arguments of verbs: kinds of arguments, each refused in words of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
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


class Name(click.ParamType):  # type: ignore[type-arg]
    """A name of 1 to 120 characters, trimmed, its letters composed with their marks (NFC)."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Trim the name, or refuse it."""
        text = composed(str(value))
        if not text or len(text) > LONGEST or not is_visible(text):
            self.fail(f"a name has 1 to {LONGEST} characters that can be seen", param, ctx)
        return text


class Message(click.ParamType):  # type: ignore[type-arg]
    """The change made by a migration, in words fit to name its file."""

    name = "message"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a message with a letter or digit in it."""
        from tenants.migrations.new_revision import slug_of

        try:
            slug_of(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class Access(click.ParamType):  # type: ignore[type-arg]
    """A permission written ACCESS:SECTION, such as read:students."""

    name = "access:section"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a permission of the right form."""
        if not _PERMISSION.fullmatch(str(value)):
            self.fail(
                f"{str(value)[:100]!r} is not of the form ACCESS:SECTION, such as read:students", param, ctx
            )
        return str(value)


class Detail(click.ParamType):  # type: ignore[type-arg]
    """A detail of a school, as `tenants.registry.details` takes it; empty: none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Trim the detail, or refuse it; empty stays empty."""
        try:
            return check_detail(self.name, str(value)) or ""
        except ValueError as error:
            self.fail(f"{str(value)[:100]!r}: it {error}", param, ctx)


class ShortName(click.ParamType):  # type: ignore[type-arg]
    """The short name of a school, typed by people: small letters, digits and hyphens."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a short name; empty stays empty."""
        if value and not SHORT_NAME.fullmatch(str(value)):
            self.fail(
                f"{str(value)[:100]!r}: a short name has 3 to 40 small letters, digits and hyphens, and no hyphen at "
                "an end",
                param,
                ctx,
            )
        return str(value)


class RedirectUri(click.ParamType):  # type: ignore[type-arg]
    """An address to lead people back to."""

    name = "uri"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept an address permitted to a client; empty stays empty."""
        try:
            return check_redirect_uri(str(value)) if value else ""
        except ValueError as error:
            self.fail(f"{str(value)[:200]!r}: it {error}", param, ctx)


class Recipient(click.ParamType):  # type: ignore[type-arg]
    """A public key of age, such as age1…"""

    name = "recipient"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a public key; the message does not repeat the value, perhaps a private one."""
        try:
            parse_recipient(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


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
