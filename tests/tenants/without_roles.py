"""Installations without roles for schools, as 0.3.0 made them with TENANT_ROLES=off, and the step that makes roles."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sqlalchemy import URL

from tenants.backups.checksums import table_checksums
from tenants.pg_programs import find_program
from tenants.registry.schools import list_schools
from tenants.tenancy import OWNER_SUFFIX, Tenancy
from tests.tenants.installations import execute

ROLES = Path(__file__).parents[2] / "docs" / "deployment" / "roles.sql"


def take_roles_away(tenancy: Tenancy) -> None:
    """Leave the schools to the logins alone; where two logins are, the serving one has its rights by name."""
    admin = tenancy.admin_url
    schemas = execute(admin, r"SELECT nspname FROM pg_namespace WHERE nspname LIKE 'school\_%'")
    if not tenancy.one_login:
        execute(admin, f'REASSIGN OWNED BY "{tenancy.owner}" TO "{admin.username}"')
    for (schema,) in schemas:
        execute(admin, f'DROP OWNED BY "{schema}"; DROP ROLE "{schema}"')
        if not tenancy.one_login:
            login = tenancy.placement.login
            execute(
                admin,
                f'GRANT USAGE ON SCHEMA "{schema}" TO "{login}";'
                f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}" TO "{login}";'
                f'REVOKE UPDATE, DELETE ON "{schema}".audit_entries FROM "{login}"',
            )


def turn_roles_on(admin: URL, serving: URL) -> None:
    """Run the step of docs/deployment/update.md."""
    one_login = admin.username == serving.username
    names = {
        "serves": serving.username,
        "provisions": admin.username,
        "owner": admin.username if one_login else f"{serving.username}{OWNER_SUFFIX}",
    }
    done = subprocess.run(
        [
            find_program("psql", 16).path,
            "--quiet",
            *(part for name, value in names.items() for part in ("--set", f"{name}={value}")),
            f"--file={ROLES}",
            admin.set(drivername="postgresql").render_as_string(hide_password=False),
        ],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def everything(tenancy: Tenancy) -> list[object]:
    """Read all that a refused verb could have changed: roles, owners, grants, registry, and rows of each school."""
    admin = tenancy.admin_url
    with tenancy.admin.connect() as connection:
        schemas = [school.schema for school in list_schools(connection)]
        rows = [table_checksums(connection, schema) for schema in schemas]
    return [
        execute(
            admin,
            "SELECT rolname, rolcanlogin FROM pg_roles WHERE starts_with(rolname, current_database()) "
            "OR rolname = ANY (%s) ORDER BY 1",
            (schemas,),
        ),
        execute(
            admin,
            "SELECT c.oid::regclass::text, c.relowner, c.relacl::text, n.nspowner, n.nspacl::text "
            "FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid WHERE n.nspname = ANY (%s) ORDER BY 1",
            (schemas,),
        ),
        execute(admin, "SELECT to_jsonb(s) FROM registry.schools s ORDER BY s.id"),
        execute(admin, "SELECT to_jsonb(f) FROM registry.failed_migrations f ORDER BY f.school_id"),
        rows,
    ]
