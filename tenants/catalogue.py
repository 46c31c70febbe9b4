"""A school's schema as PostgreSQL's catalogue has it, read by one statement, and compared with a new school's.

A new school's schema is made by our own migrations, in a schema of the moment, in a transaction rolled back at its end;
once in a process. Names take the place of ids, and of the schema's own name nothing is left. So the schemas of two
schools, of two servers, or of two moments give the same rows where they are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, text

from migrations.tenant import APPEND_ONLY, CHANGED_COLUMNS
from tenants.connections.engines import execute_script, quote_identifier
from tenants.migrations.migration_sql import baseline_statements, head, upgrade_statements
from tenants.relations import RELATIONS_OF_SCHEMA
from tenants.tenancy import Tenancy
from tenants.wording import some

Catalogue = dict[tuple[str, str], str]
"""By kind and name, such as `column` and `users.username`: the definition."""

RELATIONS = {
    "r": "table",
    "v": "view",
    "m": "materialized view",
    "S": "sequence",
    "f": "foreign table",
    "p": "partitioned table",
}
OWNER, ROLE, PUBLIC, SCHEMA = "the owner", "the role", "PUBLIC", "the schema"
RIGHTS = "rights of {} on"
_PARTS = {*RELATIONS.values(), "column", "constraint", "index", "function"}
_LONGEST = 100  # characters of a definition that a message repeats
# PostgreSQL writes other casts and parentheses where it has read its own text of a condition in again, as of a dump.
_CONDITIONS = {"constraint", "index", "default of", "generation of"}
_REREAD = re.compile(r"::(character varying|text)(\[\])?|[()]")
# Of a shard of Citus, which a function of a school reads in place of its table.
_SHARD = re.compile(r"_\d{6,}+\b")

# Definitions of constraints, indexes and the like are PostgreSQL's own texts. NOT NULL is a fact of a column; since
# PostgreSQL 18 it is a constraint, too, whose name PostgreSQL makes up. Citus hides shards, as it does from everybody.
CATALOGUE = text(
    f"""
    WITH schema AS (
        SELECT oid, nspowner, nspacl, coalesce(CAST(:owner AS text), pg_get_userbyid(nspowner)) AS owner
        FROM pg_namespace WHERE oid = to_regnamespace(:schema)
    ), relation AS MATERIALIZED (
        SELECT c.* FROM {RELATIONS_OF_SCHEMA}
    ), attribute AS MATERIALIZED (
        SELECT r.relname, r.relowner, a.* FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid
        WHERE r.relkind IN ('r', 'p', 'f') AND a.attnum > 0 AND NOT a.attisdropped
    ), function AS MATERIALIZED (
        SELECT p.*, p.proname || '(' || oidvectortypes(p.proargtypes) || ')' AS name
        FROM schema s JOIN pg_depend d ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = s.oid
            AND d.classid = 'pg_proc'::regclass
        JOIN pg_proc p ON p.oid = d.objid
    ), granted (name, owner, grantee, privilege_type, is_grantable) AS (
        SELECT '{SCHEMA}'::text, s.nspowner, acl.grantee, acl.privilege_type, acl.is_grantable
        FROM schema s, aclexplode(coalesce(s.nspacl, acldefault('n', s.nspowner))) acl
        UNION ALL
        SELECT r.relname, r.relowner, acl.grantee, acl.privilege_type, acl.is_grantable
        FROM relation r, aclexplode(
            coalesce(r.relacl, acldefault(CASE r.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", r.relowner))
        ) acl
        UNION ALL
        SELECT a.relname || '.' || a.attname, a.relowner, acl.grantee, acl.privilege_type, acl.is_grantable
        FROM attribute a, aclexplode(a.attacl) acl
        UNION ALL
        SELECT f.name, f.proowner, acl.grantee, acl.privilege_type, acl.is_grantable
        FROM function f, aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) acl
    )
    SELECT CASE r.relkind {" ".join(f"WHEN '{kind}' THEN '{word}'" for kind, word in RELATIONS.items())} END,
        r.relname::text, CASE WHEN r.relkind IN ('v', 'm') THEN pg_get_viewdef(r.oid) ELSE '' END
    FROM relation r
    UNION ALL
    SELECT fact.kind, r.relname, fact.definition
    FROM relation r, schema s, LATERAL (VALUES
        ('storage of', CASE r.relpersistence WHEN 'p' THEN 'logged' ELSE 'unlogged' END),
        ('row-level security of', CASE WHEN NOT r.relrowsecurity AND NOT r.relforcerowsecurity THEN 'off'
            ELSE concat_ws(', ', CASE WHEN r.relrowsecurity THEN 'on' ELSE 'off' END,
                CASE WHEN r.relforcerowsecurity THEN 'forced upon the owner' END) END),
        ('replica identity of', CASE r.relreplident
            WHEN 'd' THEN 'default' WHEN 'f' THEN 'full' WHEN 'i' THEN 'an index' ELSE 'nothing' END),
        ('parents of', coalesce(
            (SELECT string_agg(i.inhparent::regclass::text, ', ') FROM pg_inherits i WHERE i.inhrelid = r.oid), 'none'
        )),
        ('options of', coalesce(array_to_string(r.reloptions, ', '), 'none')),
        ('owner of', CASE pg_get_userbyid(r.relowner) WHEN s.owner THEN '{OWNER}' ELSE pg_get_userbyid(r.relowner) END)
    ) AS fact (kind, definition)
    UNION ALL
    SELECT fact.kind, a.relname || '.' || a.attname, fact.definition
    FROM attribute a JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum, LATERAL (VALUES
        ('column', format_type(a.atttypid, a.atttypmod)),
        ('collation of', CASE WHEN a.attcollation <> t.typcollation THEN a.attcollation::regcollation::text END),
        ('NOT NULL of', CASE WHEN a.attnotnull THEN '' END),
        ('default of', CASE a.attgenerated WHEN '' THEN pg_get_expr(d.adbin, d.adrelid) END),
        ('generation of', CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid)
            WHEN a.attidentity <> '' THEN 'identity' END)
    ) AS fact (kind, definition)
    WHERE fact.definition IS NOT NULL
    UNION ALL
    SELECT 'constraint', r.relname || '.' || k.conname, pg_get_constraintdef(k.oid)
    FROM relation r JOIN pg_constraint k ON k.conrelid = r.oid
    WHERE k.contype <> 'n' OR NOT k.convalidated
    UNION ALL
    SELECT fact.kind, r.relname || '.' || c.relname, fact.definition
    FROM relation r JOIN pg_index i ON i.indrelid = r.oid JOIN pg_class c ON c.oid = i.indexrelid, LATERAL (VALUES
        ('index', pg_get_indexdef(i.indexrelid)),
        ('state of index', CASE WHEN i.indisvalid AND i.indisready AND i.indislive THEN 'valid' ELSE 'invalid' END)
    ) AS fact (kind, definition)
    UNION ALL
    SELECT 'trigger', r.relname || '.' || t.tgname, pg_get_triggerdef(t.oid)
    FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal
    UNION ALL
    SELECT DISTINCT CASE t.tgenabled WHEN 'D' THEN 'disabled trigger' ELSE 'trigger of replicas' END,
        r.relname || '.' || coalesce(k.conname, t.tgname), ''
    FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid LEFT JOIN pg_constraint k ON k.oid = t.tgconstraint
    WHERE t.tgenabled <> 'O'
    UNION ALL
    SELECT 'rule', r.relname || '.' || w.rulename, pg_get_ruledef(w.oid)
    FROM relation r JOIN pg_rewrite w ON w.ev_class = r.oid WHERE w.rulename <> '_RETURN'
    UNION ALL
    SELECT 'policy', r.relname || '.' || p.polname,
        concat_ws(' ', p.polcmd, pg_get_expr(p.polqual, r.oid), pg_get_expr(p.polwithcheck, r.oid))
    FROM relation r JOIN pg_policy p ON p.polrelid = r.oid
    UNION ALL
    SELECT fact.kind, f.name, fact.definition
    FROM function f, schema s, LATERAL (VALUES
        ('function', CASE f.prokind WHEN 'a' THEN 'aggregate' ELSE pg_get_functiondef(f.oid) END),
        ('owner of', CASE pg_get_userbyid(f.proowner) WHEN s.owner THEN '{OWNER}' ELSE pg_get_userbyid(f.proowner) END)
    ) AS fact (kind, definition)
    UNION ALL
    SELECT o.type, o.identity, ''
    FROM schema s JOIN pg_depend d ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = s.oid,
        pg_identify_object(d.classid, d.objid, 0) o
    WHERE d.classid NOT IN ('pg_class'::regclass, 'pg_proc'::regclass)
    UNION ALL
    SELECT 'rights of ' || CASE WHEN g.grantee = g.owner THEN '{OWNER}' WHEN g.grantee = 0 THEN '{PUBLIC}'
            WHEN pg_get_userbyid(g.grantee) = :schema THEN '{ROLE}' ELSE pg_get_userbyid(g.grantee) END || ' on',
        g.name, string_agg(
            DISTINCT g.privilege_type || CASE WHEN g.is_grantable AND g.grantee <> g.owner
                THEN ' WITH GRANT OPTION' ELSE '' END, ', '
        )
    FROM granted g GROUP BY 1, 2
    """  # noqa: S608 -- a text of our own
)
# By the statements that make them, so that a history that is edited gives others.
_known: dict[str, Catalogue] = {}


def table_statements(revision: str, history: Path) -> list[str]:
    """Write the statements for a school's tables at a revision; migrations may insert rows among them."""
    at_head = revision == head(history)
    return baseline_statements(history) if at_head else upgrade_statements(None, revision, history)


def read_catalogue(connection: Connection, schema: str, *, owner: str | None = None) -> Catalogue:
    """Read a schema, each thing in it by kind and name; the schema's own name does not appear in it.

    `owner` is the one to be expected, which is not named either: without it the schema's.
    """
    prefix = f"{schema}."
    rows = connection.execute(CATALOGUE, {"schema": schema, "owner": owner})
    return {
        (kind, name.replace(prefix, "")): _without_shards(kind, definition.replace(prefix, ""))
        for kind, name, definition in rows
    }


def catalogue_of_revision(tenancy: Tenancy, revision: str) -> Catalogue:
    """Give the catalogue of a school created at a revision: its migrations' schema, and the rights of its role."""
    statements = ";\n".join(table_statements(revision, tenancy.history))
    if statements not in _known:
        _known[statements] = _rehearse(tenancy, statements)
    return _known[statements]


def differences(expected: Catalogue, actual: Catalogue) -> list[tuple[str, str]]:
    """List by kind the objects of a schema that are missing, too many, or other than expected; equal faults together.

    Of a table that is missing or too much its columns and constraints are not said as well.
    """
    odd = {
        key
        for key in expected.keys() | actual.keys()
        if _normal(key[0], expected.get(key)) != _normal(key[0], actual.get(key))
    }
    whole = {key for key in odd if key[0] in _PARTS and (key not in expected or key not in actual)}
    names = {name for _, name in whole}
    alike: dict[tuple[str, str | None, str | None], list[str]] = {}
    for kind, name in sorted(odd):
        if name.partition(".")[0] not in names - {name} and ((kind, name) in whole or name not in names):
            alike.setdefault((kind, expected.get((kind, name)), actual.get((kind, name))), []).append(name)
    return [(kind, _sentence(kind, these, *both)) for (kind, *both), these in alike.items()]


def _normal(kind: str, definition: str | None) -> str | None:
    return definition and _REREAD.sub("", definition) if kind in _CONDITIONS else definition


def _rehearse(tenancy: Tenancy, statements: str) -> Catalogue:
    schema = f"rehearsal_{uuid4().hex}"
    name = quote_identifier(schema)
    with tenancy.admin.connect() as connection, connection.begin() as transaction:
        tenancy.placement.stay_here(connection)
        execute_script(
            connection, f"CREATE SCHEMA {name};\nSET LOCAL search_path TO {name}, pg_temp;\n{statements}"
        )
        catalogue = read_catalogue(connection, schema)
        transaction.rollback()
    own = {key: definition for key, definition in catalogue.items() if _is_own(*key)}
    return own | {(RIGHTS.format(ROLE), SCHEMA): "USAGE"} | dict(_rights_of_role(catalogue))


def _is_own(kind: str, name: str) -> bool:
    """Tell a school's own from rights given by default privileges: of rights it has its owner's, and EXECUTE."""
    if not kind.startswith("rights of "):
        return True
    return kind == RIGHTS.format(OWNER) or (kind == RIGHTS.format(PUBLIC) and name.endswith(")"))


def _rights_of_role(catalogue: Catalogue) -> Iterator[tuple[tuple[str, str], str]]:
    for kind, name in catalogue:
        if kind == "table":
            rights = "INSERT, SELECT" if name in APPEND_ONLY else "DELETE, INSERT, SELECT, UPDATE"
            yield (RIGHTS.format(ROLE), name), rights
            if name in CHANGED_COLUMNS:
                yield (RIGHTS.format(ROLE), f"{name}.{CHANGED_COLUMNS[name]}"), "UPDATE"


def _without_shards(kind: str, definition: str) -> str:
    return _SHARD.sub("", definition) if kind == "function" else definition


def _sentence(kind: str, names: list[str], expected: str | None, actual: str | None) -> str:
    things, verb = f"{kind} {some(names)}", "is" if len(names) == 1 else "are"
    if actual is None:
        return f"{things} {verb} missing"
    if expected is None:
        return f"{things} should not be there{f': {actual}' if _is_short(actual) else ''}"
    if not (_is_short(expected) and _is_short(actual)):
        return f"{things} {verb} defined otherwise than in a new school"
    return f"{things}: {actual}, and should be {expected}"


def _is_short(definition: str) -> bool:
    return 0 < len(definition) <= _LONGEST and "\n" not in definition
