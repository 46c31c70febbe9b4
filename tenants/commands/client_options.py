"""Options of verbs for the sign-in of people by a client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from tenants.commands.arguments import NAME, REDIRECT_URI
from tenants.registry.redirect_uris import MAX_REDIRECT_URIS
from tenants.tenancy import Tenancy

_DAYS = click.IntRange(1, 365)

PEOPLE = {
    "name": (
        "--name",
        {"type": click.STRING, "help": "Its name where people sign in; default: its id."},
    ),
    "redirect_uris": (
        "--redirect-uri",
        {
            "type": REDIRECT_URI,
            "multiple": True,
            "help": "An address of its own, to which people are led back.",
        },
    ),
    "post_logout_uris": (
        "--post-logout-uri",
        {"type": REDIRECT_URI, "multiple": True, "help": "The same for people who have signed out."},
    ),
    "user_permissions": (
        "--user-permission",
        {
            "type": click.STRING,
            "multiple": True,
            "metavar": "ACCESS:SECTION",
            "help": "A permission that a person may use by it; default: all of their roles.",
        },
    ),
    "sign_in_only": (
        "--sign-in-only",
        {"is_flag": True, "default": None, "help": "Let it know who signs in, and do nothing for them."},
    ),
    "idle_days": (
        "--idle-days",
        {"type": _DAYS, "help": "Days without use after which a person signs in again.  [default: 14]"},
    ),
    "session_days": (
        "--session-days",
        {"type": _DAYS, "help": "Days after which they do so anyway.  [default: 90]"},
    ),
}


def people_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Let a verb take a client's options for people; the given ones are handed to it, as `of_people`.

    An empty value takes the present one away.
    """

    @wraps(verb)
    def with_options(tenancy: Tenancy, *arguments: Any, **options: Any) -> None:
        given = {name: options.pop(name) for name in PEOPLE}
        verb(tenancy, *arguments, of_people=_of_people(tenancy, given), **options)

    for flag, kind in reversed(PEOPLE.values()):
        with_options = click.option(flag, _parameter(flag), **kind)(with_options)  # type: ignore[arg-type]
    return with_options


def _parameter(flag: str) -> str:
    return next(name for name, (option, _) in PEOPLE.items() if option == flag)


def _of_people(tenancy: Tenancy, given: dict[str, Any]) -> dict[str, Any]:
    """Make members of PeoplesOptions of the given options; raises UsageError."""
    only = given.pop("sign_in_only")
    fields = {name: value for name, value in given.items() if value not in (None, ())}
    for name in ("redirect_uris", "post_logout_uris", "user_permissions"):
        if name in fields:
            fields[name] = tuple(dict.fromkeys(value for value in fields[name] if value))
            if len(fields[name]) > MAX_REDIRECT_URIS and name != "user_permissions":
                raise click.UsageError(f"A client has at most {MAX_REDIRECT_URIS} of {PEOPLE[name][0]}.")
    if "name" in fields:
        fields["name"] = NAME.convert(fields["name"], None, None) if fields["name"].strip() else None
    if only and "user_permissions" in fields:
        raise click.UsageError("--user-permission and --sign-in-only exclude each other.")
    if "user_permissions" in fields:
        require_permissions(tenancy, fields["user_permissions"])
        fields["user_permissions"] = tuple(sorted(fields["user_permissions"])) or None
    if only:
        fields["user_permissions"] = ()
    return fields


def require_permissions(tenancy: Tenancy, permissions: Sequence[str]) -> None:
    """Refuse an unknown permission; raises UsageError."""
    unknown = sorted(set(permissions).difference(tenancy.permissions))
    if unknown:
        raise click.UsageError(
            f"There is no permission {', '.join(unknown)}. Permissions: {', '.join(sorted(tenancy.permissions))}."
        )
