"""PostgreSQL's catalogue of a schema: to compare two, and to judge one by a school's rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, text

from tenants.catalogue import read_catalogue as read_everything

Catalogue = dict[str, str]


def read_catalogue(connection: Connection, schema: str) -> Catalogue:
    """Read the objects of a schema, each by kind and name, but not their owners and the rights on them."""
    return {
        f"{kind} {name}": definition
        for (kind, name), definition in read_everything(connection, schema).items()
        if not kind.startswith(("owner of", "rights of"))
    }


def drift(first: Catalogue, other: Catalogue) -> list[str]:
    """List the differences of two schemas."""
    return [
        f"{name}: {first.get(name, 'missing')} | {other.get(name, 'missing')}"
        for name in sorted(first.keys() | other.keys())
        if first.get(name) != other.get(name)
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
        -- The first columns of the index, in any order, are the columns of the reference.
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
    """List the violations of the rules of a school's schema (docs/architecture.md)."""
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
            f"{name}: {state}"
            for name, state in catalogue.items()
            for about, allowed in _STATES.items()
            if name.startswith(about) and not re.fullmatch(allowed, state)
        ),
    ]


_STATES = {
    "storage of": "logged",
    "row-level security of": "off",
    "parents of": "none",
    # The filling of its pages is a table's own affair.
    "options of": r"none|fillfactor=\d+",
}
# The one function there may be: as it is, and as a release before calls it.
CALLER_STATE = {
    "function caller_state(uuid)",
    "function caller_state(uuid, timestamp with time zone, boolean, uuid, text, text)",
}


def of_caller_state(difference: str) -> bool:
    """Tell whether a difference is of that function, which the metadata does not know."""
    return any(name in difference for name in CALLER_STATE)


_FORBIDDEN = {
    *("sequence", "type", "view", "materialized", "foreign", "partitioned"),
    *("function", "trigger", "disabled", "rule", "policy", "statistics"),
}


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
        # The name has the columns, but the name of a CHECK or an expression its subject.
        about = row.kind in {"c", "x"} or None in row.columns
        expected = start if row.kind == "p" else f"{start}_{'' if about else '_'.join(row.columns)}"
        if (
            not (row.name.startswith(expected) if about else row.name == expected)
            or len(expected) > _MAX_NAME_BYTES
        ):
            yield f"{row.kind} {row.table}.{row.name}: its name should be {expected}"


_COLUMN_RULES: tuple[tuple[str, Callable[[str, str], Any]], ...] = (
    (
        "is generated by a sequence",
        lambda name, definition: definition == "identity" or "nextval" in definition,
    ),
    (
        "has a default that PostgreSQL computes",
        lambda name, definition: name.startswith("default of") and "(" in definition,
    ),
    (
        "is a school's id, which the schema says",
        lambda name, _definition: name.startswith("column ") and name.endswith(".school_id"),
    ),
)


def _columns(catalogue: Catalogue) -> Iterator[str]:
    for name, definition in catalogue.items():
        yield from (f"{name}: {what}" for what, broken in _COLUMN_RULES if broken(name, definition))


def _query(connection: Connection, schema: str, query: str) -> list[Any]:
    schema_oid = connection.execute(
        text("SELECT oid FROM pg_namespace WHERE nspname = :name"), {"name": schema}
    )
    return list(connection.exec_driver_sql(query.replace("{schema}", str(schema_oid.scalar_one()))))
