"""Finding the relations of a schema, at the same cost however many schemas there are.

PostgreSQL's catalogue of relations has no index by schema alone: a query by `relnamespace`, and ALL TABLES IN SCHEMA,
read all of it, 2.5 million rows with 10,000 schools. But the relations of a schema depend on it, and dependencies have
an index.
"""

from __future__ import annotations

# Of a query whose parameter `schema` is the schema's name, quoted where it needs to be: `c` is each of its relations
# but indexes and TOAST tables, which depend on their tables.
RELATIONS_OF_SCHEMA = """
    pg_depend in_schema JOIN pg_class c
        ON in_schema.refclassid = 'pg_namespace'::regclass
        AND in_schema.refobjid = to_regnamespace(:schema)::oid
        AND in_schema.classid = 'pg_class'::regclass AND in_schema.objid = c.oid
"""
