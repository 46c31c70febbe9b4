"""The refusals of this package, and their reasons."""

from __future__ import annotations

_NOT_INSTALLED = (
    "The registry is missing, of another version, or closed to this login. Run: school-service tenants init"
)


class TenancyError(Exception):
    """Base of every refusal of this package."""


class NoSchool(TenancyError):
    """A statement was about to run with no school chosen."""


class UnknownSchool(TenancyError):
    """No school has this id."""


class UnknownAccount(TenancyError):
    """No account of the school has this name."""


class SchoolChosen(TenancyError):
    """The session's transaction has begun already; the school of a transaction never changes."""


class SchoolSuspended(TenancyError):
    """The operator has suspended the school."""


class SchoolUpgrading(TenancyError):
    """The school's schema is at a revision that the running code can't serve."""


class SchoolRoleUnknown(SchoolUpgrading):
    """PostgreSQL does not know the school's role, as after restoring a database without the server's roles."""


class MissingRole(TenancyError):
    """A school has no role: neither is it served nor does the operator work on it before it has one."""

    def __init__(self, role: str) -> None:
        super().__init__(
            f"PostgreSQL does not know the role {role} of a school. Was the school made with TENANT_ROLES=off? Turn "
            'roles on before the update, with the release before: docs/deployment/update.md, "Schools without roles". '
            "Was the database restored without the server's roles? Restore them first (pg_dumpall --roles-only), then "
            'the database, or each school from its backup: docs/operators.md, "Moving the database to another server".'
        )


class SchoolForbidden(TenancyError):
    """The token does not cover the school."""


class RegistrySilent(TenancyError):
    """The registry does not answer, or too many wait for it."""

    def __init__(self) -> None:
        super().__init__("The database can't be reached. Try again shortly.")


class ClientUnknown(TenancyError):
    """The token's client has no grant, or its grant was revoked."""


class AlreadyExists(TenancyError):
    """A school or client of this id exists already."""


class NotInstalled(TenancyError):
    """The database has no registry, or one of another version, or one closed to this login."""

    def __init__(self, message: str = _NOT_INSTALLED) -> None:
        super().__init__(message)


class UnfitPlacement(TenancyError):
    """The schools are on one server, or on several, and the settings say the other."""


class SchoolElsewhere(TenancyError):
    """The school is not on the server asked for it: it has been moved, or the server replaced."""


class UnfitLogin(TenancyError):
    """The login meant to serve requests has powers that reach around the schools' roles."""


class SchoolDeleting(TenancyError):
    """The school is being deleted, or was opened again meanwhile: the operation can't go on."""


class SchoolBusy(TenancyError):
    """Others are at work in the school, and did not end in time."""


class StaleBaseline(TenancyError):
    """The file baseline.sql differs from the sum of the migrations."""


class ProgramMissing(TenancyError):
    """No program of PostgreSQL was found in a version fit for the server."""


class ProgramFailed(TenancyError):
    """A program of PostgreSQL failed; the message repeats its own."""


class ServerAway(TenancyError):
    """The server of a school, of several servers, can't be reached; the message repeats the driver's."""


class BackupRefused(TenancyError):
    """A backup can't be written or read, or is damaged or unfit; the message says why."""
