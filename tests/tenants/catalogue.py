"""What PostgreSQL's catalogue says of a schema: to compare two, and to judge one by a school's rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, text

Catalogue = dict[str, str]

_TABLES = """
SELECT 'table ' || c.relname,
    concat_ws(' ', c.relpersistence, c.relkind, c.reloptions::text,
        CASE WHEN c.relrowsecurity THEN 'policies' END,
        (SELECT 'inherits' FROM pg_inherits i WHERE i.inhrelid = c.oid LIMIT 1))
FROM pg_class c WHERE c.relnamespace = {schema} AND c.relkind IN ('r', 'p', 'f')
"""
_COLUMNS = """
SELECT 'column ' || c.relname || '.' || a.attname,
    concat_ws(' ', format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END,
        'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), 'IDENTITY ' || nullif(a.attidentity::text, ''),
        'GENERATED ' || nullif(a.attgenerated::text, ''),
        CASE WHEN a.attcollation <> t.typcollation THEN 'COLLATE ' || a.attcollation::regcollation::text END)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = {schema} AND c.relkind IN ('r', 'p', 'f') AND a.attnum > 0 AND NOT a.attisdropped
"""
# NOT NULL belongs to the description of a column; since PostgreSQL 18 it is a constraint, too, with a name
# that PostgreSQL makes up.
_CONSTRAINTS = """
SELECT 'constraint ' || c.relname || '.' || k.conname, pg_get_constraintdef(k.oid)
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE k.connamespace = {schema} AND k.contype <> 'n'
"""
_INDEXES = """
SELECT 'index ' || t.relname || '.' || c.relname, pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
WHERE c.relnamespace = {schema}
"""
# What a school's schema never holds.
_OTHERS = """
SELECT CASE relkind WHEN 'S' THEN 'sequence ' WHEN 'c' THEN 'type ' ELSE 'view ' END || relname, relkind::text
FROM pg_class WHERE relnamespace = {schema} AND relkind NOT IN ('r', 'p', 'f', 'i', 'I')
UNION ALL SELECT 'function ' || oid::regprocedure::text,
        md5(regexp_replace(prosrc, 'school_[0-9a-f]{32}|_[0-9]{6,}', '', 'g'))  -- Citus: its schema and shards
    FROM pg_proc WHERE pronamespace = {schema}
UNION ALL SELECT 'type ' || typname, typtype::text FROM pg_type
    WHERE typnamespace = {schema} AND typtype IN ('e', 'd', 'r', 'm')
UNION ALL SELECT 'trigger ' || c.relname || '.' || t.tgname, pg_get_triggerdef(t.oid)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = {schema} AND NOT t.tgisinternal
UNION ALL SELECT 'rule ' || c.relname || '.' || r.rulename, pg_get_ruledef(r.oid)
    FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
    WHERE c.relnamespace = {schema} AND c.relkind IN ('r', 'p')
UNION ALL SELECT 'policy ' || c.relname || '.' || p.polname, ''
    FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE c.relnamespace = {schema}
UNION ALL SELECT 'statistics ' || stxname, '' FROM pg_statistic_ext WHERE stxnamespace = {schema}
"""


def read_catalogue(connection: Connection, schema: str) -> Catalogue:
    """Read what a schema holds, each thing by kind and name; the schema's own name does not appear in it."""
    found: Catalogue = {}
    for query in (_TABLES, _COLUMNS, _CONSTRAINTS, _INDEXES, _OTHERS):
        for name, description in _query(connection, schema, query):
            found[name.replace(f"{schema}.", "")] = description.replace(f"{schema}.", "")
    return found


def drift(one: Catalogue, other: Catalogue) -> list[str]:
    """List what differs between two schemas."""
    return [
        f"{name}: {one.get(name, 'missing')} | {other.get(name, 'missing')}"
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]


_KEYS = """
SELECT c.relname AS table,
    coalesce(array_agg(format_type(a.atttypid, null)) FILTER (WHERE a.attnum IS NOT NULL), '{}') AS types
FROM pg_class c
LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (k.conkey)
WHERE c.relnamespace = {schema} AND c.relkind IN ('r', 'p') GROUP BY c.relname
"""
_REFERENCES = """
SELECT c.relname || '.' || k.conname AS name,
    EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indpred IS NULL
        -- The first columns of the index, in whatever order, are those of the reference.
        AND (SELECT array_agg(n ORDER BY n) FROM unnest((i.indkey::int2[])[0:cardinality(k.conkey) - 1]) AS n)
            = (SELECT array_agg(n ORDER BY n) FROM unnest(k.conkey) AS n)
    ) AS indexed,
    f.relnamespace = k.connamespace AS inside
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class f ON f.oid = k.confrelid
WHERE k.connamespace = {schema} AND k.contype = 'f'
"""
_NAMES = """
SELECT c.relname AS table, k.conname AS name, k.contype::text AS kind, ARRAY(
    SELECT a.attname FROM unnest(k.conkey) WITH ORDINALITY AS n (number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = n.number ORDER BY n.place
)::text[] AS columns
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE k.connamespace = {schema} AND k.contype <> 'n'
UNION ALL
SELECT t.relname, c.relname, CASE WHEN i.indisunique THEN 'unique index' ELSE 'index' END, ARRAY(
    SELECT a.attname FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS n (number, place)
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = n.number ORDER BY n.place
)::text[]
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
WHERE c.relnamespace = {schema}
    AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid AND k.contype <> 'f')
"""
_PREFIXES = {"p": "pk", "u": "uq", "f": "fk", "c": "ck", "x": "ex", "unique index": "uq", "index": "ix"}
_MAX_NAME_BYTES = 63


def violations(connection: Connection, schema: str) -> list[str]:
    """List what breaks the rules of a school's schema (design, "Tenancy rules")."""
    catalogue = read_catalogue(connection, schema)
    return [
        *_keys(connection, schema),
        *_references(connection, schema),
        *_names(connection, schema),
        *_columns(catalogue),
        *(
            f"{name}: a school's schema holds none"
            for name in catalogue
            if name.split()[0] in _FORBIDDEN and name not in CALLER_STATE
        ),
        *(
            f"{name}: {kind}"
            for name, kind in catalogue.items()
            # How full its pages are is a table's own affair.
            if name.startswith("table ") and not re.fullmatch(r"p r( \{fillfactor=\d+\})?", kind)
        ),
    ]


# The one function there may be: as it is, and as a release before calls it.
CALLER_STATE = {
    "function caller_state(uuid)",
    "function caller_state(uuid,timestamp with time zone,boolean,uuid,text,text)",
}


def of_caller_state(difference: str) -> bool:
    """Tell whether a difference is of that function, which the metadata does not know."""
    return any(name in difference for name in CALLER_STATE)


_FORBIDDEN = {"sequence", "type", "view", "function", "trigger", "rule", "policy", "statistics"}


def _keys(connection: Connection, schema: str) -> Iterator[str]:
    for row in _query(connection, schema, _KEYS):
        if set(row.types) != {"uuid"}:
            yield f"table {row.table}: its primary key is of {row.types or 'nothing'}, not of uuid"


def _references(connection: Connection, schema: str) -> Iterator[str]:
    for row in _query(connection, schema, _REFERENCES):
        if not row.inside:
            yield f"{row.name}: refers to a table outside of the schema"
        if not row.indexed:
            yield f"{row.name}: has no index"


def _names(connection: Connection, schema: str) -> Iterator[str]:
    for row in _query(connection, schema, _NAMES):
        start = f"{_PREFIXES[row.kind]}_{row.table}"
        # The name says the columns, but a CHECK's or an expression's says what it is about.
        about = row.kind in {"c", "x"} or None in row.columns
        expected = start if row.kind == "p" else f"{start}_{'' if about else '_'.join(row.columns)}"
        if (
            not (row.name.startswith(expected) if about else row.name == expected)
            or len(expected) > _MAX_NAME_BYTES
        ):
            yield f"{row.kind} {row.table}.{row.name}: its name should be {expected}"


# A column that is computed of others of its row: the same wherever the row is.
_GENERATED = ("GENERATED s", 'GENERATED s COLLATE "C"')
_COLUMN_RULES: tuple[tuple[str, Callable[[str, str], Any]], ...] = (
    ("is generated by a sequence", lambda _name, kind: "IDENTITY" in kind or "nextval" in kind),
    (
        "has a default that PostgreSQL computes",
        lambda _name, kind: re.search(r"DEFAULT .*\(", kind) and not kind.endswith(_GENERATED),
    ),
    ("is a school's id, which the schema says", lambda name, _kind: name.endswith(".school_id")),
)


def _columns(catalogue: Catalogue) -> Iterator[str]:
    for name, kind in catalogue.items():
        if name.startswith("column "):
            yield from (f"{name}: {what}" for what, broken in _COLUMN_RULES if broken(name, kind))


def _query(connection: Connection, schema: str, query: str) -> list[Any]:
    found = connection.execute(text("SELECT oid FROM pg_namespace WHERE nspname = :name"), {"name": schema})
    return list(connection.exec_driver_sql(query.replace("{schema}", str(found.scalar_one()))))
