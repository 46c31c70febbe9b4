"""The Tenancy of the operator's verbs, made from the settings: without the views of the API, slow to import."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

from sqlalchemy import MetaData

from school_service import __version__, core, features
from school_service.auth import passwords
from school_service.config import Settings
from school_service.core.database import db
from school_service.core.permissions import Permission
from school_service.features.audit.deletions import DELETIONS
from school_service.features.audit.service import operator_entry
from school_service.features.school.geography import service as geography
from school_service.release import this_release
from school_service.seed.school import seed_school
from tenants.placement import Placement
from tenants.tenancy import Tenancy


def tenancy_of(settings: Settings) -> Tenancy:
    """Describe the database of all schools to the operator's commands."""
    return Tenancy(
        admin_url=settings.admin_database_url,
        serving_url=settings.database_url,
        placement=placement_of_settings(settings),
        seed=seed_school,
        reference=geography.fill,
        password_faults=passwords.strict_faults,
        models=import_models,
        operator_entry=operator_entry,
        release=__version__,
        program=lambda: this_release().as_text(),
        backup_recipients=settings.backup_recipients,
        permissions=tuple(map(str, Permission)),
        cors_origins=settings.cors_origins,
        not_restored=("user_sessions", "invitations"),
        deletions=DELETIONS,
    )


def placement_of_settings(settings: Settings) -> Placement:
    """Make the placement of the schools: the serving login of each, and its server."""
    login = str(settings.database_url.username)
    if not settings.tenant_distributed:
        return Placement(login, settings.serving_logins)
    # Imported here: most installations do without.
    from tenants.distribution.placement import NodePlacement

    return NodePlacement(login, settings.serving_logins)


def import_models() -> MetaData:
    """Import every module with tables of a school, and give all of their tables."""
    for module in ("counters", "idempotency"):
        import_module(f"{core.__name__}.{module}")
    for package in walk_packages(features.__path__, f"{features.__name__}."):
        if package.name.endswith(".models"):
            import_module(package.name)
    return db.metadata
