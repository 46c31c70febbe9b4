"""The owner of a school's schema and tables, and the serving role's rights to them.

With a role for each school, the schema and its tables belong to an owner without a serving login (`Tenancy.owner`). The
school's role is granted the rights of requests: SELECT, INSERT, UPDATE and DELETE, of the tables of APPEND_ONLY no more
than SELECT and INSERT, and UPDATE of a column of CHANGED_COLUMNS. So no statement of a request can change the audit
log, or the schema, in any wording.

Schools created by an earlier release are owned by their own roles. They serve as they are; migrating moves them to the
owner, a few tables in a transaction and the schema last: its owner tells whether the move is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Text, literal_column, text

from migrations.tenant import APPEND_ONLY, CHANGED_COLUMNS
from tenants.connections.engines import execute_script, quote_identifier, quote_literal
from tenants.registry.schools import school_id_of
from tenants.relations import RELATIONS_OF_SCHEMA
from tenants.tenancy import Tenancy

# Locks of one transaction that moves tables: fewer than PostgreSQL has room for in each connection by default.
_LOCKS = 56

_SCHEMA_OWNER = text("SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = :schema")
SCHEMA_OWNER = literal_column(
    "(SELECT pg_get_userbyid(n.nspowner) FROM pg_namespace n "
    "WHERE n.nspname = 'school_' || replace(CAST(registry.schools.id AS text), '-', ''))",
    Text,
)
"""The owner of a school's schema, for a query of the registry's schools; null without such a schema."""
# By the dependencies on the owner, which have an index: the catalogue of tables is large where schools are many.
# Each with the locks that changing its owner takes: on itself, its indexes, its TOAST table and the index of that.
_TABLES_OF_OWNER = text(
    """
    SELECT c.relname, 1 + (SELECT count(*) FROM pg_index i WHERE i.indrelid = c.oid)
        + CASE WHEN c.reltoastrelid = 0 THEN 0 ELSE 2 END AS locks
    FROM pg_shdepend d JOIN pg_class c ON c.oid = d.objid
    WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = to_regrole(:owner) AND d.deptype = 'o'
        AND d.classid = 'pg_class'::regclass
        AND d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND c.relnamespace = to_regnamespace(:schema) AND c.relkind IN ('r', 'p')
    ORDER BY c.relname
    """
)


def login_grant(tenancy: Tenancy, schema: str) -> str:
    """Write the statement to let the serving login into a school with an existing role."""
    login = quote_identifier(tenancy.placement.login_of(school_id_of(schema)))
    return f'GRANT "{schema}" TO {login} WITH INHERIT FALSE, SET TRUE'


def schema_owner(connection: Connection, schema: str) -> str | None:
    """Name the role that owns a school's schema; None without such a schema."""
    owner: str | None = connection.execute(_SCHEMA_OWNER, {"schema": schema}).scalar_one_or_none()
    return owner


def is_old_owner(tenancy: Tenancy, schema: str, owner: str | None) -> bool:
    """Tell whether a schema is to be moved to another owner: requests can become its present one."""
    if owner is None or owner == tenancy.owner:
        return False
    return owner == schema or owner in tenancy.placement.all_logins


def table_grants(schema: str) -> list[str]:
    """Write the statements to let a school's role at all of its tables; their owner runs them."""
    quoted = quote_identifier(schema)
    return [
        f"GRANT USAGE ON SCHEMA {quoted} TO {quoted}",
        f"DO {quote_literal(_granting(schema))}",
        *(f"DO {quote_literal(_restricting(quoted, table))}" for table in APPEND_ONLY),
    ]


def _granting(schema: str) -> str:
    """Write the block to let a school's role at all tables of its schema present when it runs."""
    # Not ON ALL TABLES IN SCHEMA, for which PostgreSQL reads the catalogue of all schools.
    role = quote_identifier(schema)
    relations = RELATIONS_OF_SCHEMA.replace(":schema", quote_literal(role))
    return f"""
DECLARE
    tables text;
BEGIN
    SELECT string_agg(c.oid::regclass::text, ', ') INTO tables FROM {relations}
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f');
    IF tables IS NOT NULL THEN
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON ' || tables || {quote_literal(f" TO {role}")};
    END IF;
END"""  # noqa: S608 -- names, quoted


def _restricting(quoted: str, table: str) -> str:
    """Write the block to take rights on a table from a school's role, if the school's revision has the table."""
    name = f"{quoted}.{table}"
    taken = f"REVOKE UPDATE, DELETE ON {name} FROM {quoted}"
    column = CHANGED_COLUMNS.get(table)
    kept = "" if column is None else f"; GRANT UPDATE ({column}) ON {name} TO {quoted}"
    return f"BEGIN IF to_regclass({quote_literal(name)}) IS NOT NULL THEN {taken}{kept}; END IF; END"


def move_statements(tenancy: Tenancy, connection: Connection, schema: str, owner: str) -> list[str]:
    """Write the statements of the next transaction for moving a school from its old owner to `Tenancy.owner`.

    A few tables; once all are moved, the schema. Until then both owners may use the schema, as PostgreSQL checks a
    foreign key in the name of the referenced table's owner.
    """
    rows = connection.execute(_TABLES_OF_OWNER, {"schema": schema, "owner": quote_identifier(owner)})
    old, new, quoted = quote_identifier(owner), quote_identifier(tenancy.owner), quote_identifier(schema)
    tables = {table: f"{quoted}.{quote_identifier(table)}" for table in _first_batch(rows)}
    if tables:
        moved = [f"GRANT USAGE, CREATE ON SCHEMA {quoted} TO {new}"]
        moved += [f"ALTER TABLE {name} OWNER TO {new}" for name in tables.values()]
        granted = [f"GRANT {_rights(table)} ON {name} TO {quoted}" for table, name in tables.items()]
    else:
        moved = [f"ALTER SCHEMA {quoted} OWNER TO {new}"]
        granted = [f"GRANT USAGE ON SCHEMA {quoted} TO {quoted}"]
    statements = [*moved, f"SET LOCAL ROLE {new}", *granted, "SET LOCAL ROLE NONE"]
    if owner == tenancy.admin_url.username:
        return statements
    return [
        # Only a role with the old owner's rights may give its objects away: for this moment.
        f"GRANT {old} TO CURRENT_USER WITH INHERIT TRUE, SET TRUE",
        *statements,
        f"GRANT {old} TO CURRENT_USER WITH INHERIT FALSE",
    ]


def become_owner(connection: Connection, schema: str) -> None:
    """Go on as the owner of a school's schema, until the transaction ends; unchanged without such a schema."""
    owner = schema_owner(connection, schema)
    if owner is not None:
        execute_script(connection, f"SET LOCAL ROLE {quote_identifier(owner)}")


def _rights(table: str) -> str:
    if table not in APPEND_ONLY:
        return "SELECT, INSERT, UPDATE, DELETE"
    column = CHANGED_COLUMNS.get(table)
    return "SELECT, INSERT" if column is None else f"SELECT, INSERT, UPDATE ({column})"


def _first_batch(tables: Iterable[Any]) -> list[str]:
    batch: list[str] = []
    room = _LOCKS
    for table in tables:
        if batch and table.locks > room:
            break
        batch.append(table.relname)
        room -= table.locks
    return batch
