"""The registry on every node: its tables are reference tables, its functions are everywhere."""

from __future__ import annotations

from sqlalchemy import Connection, text

from tenants.connections.engines import execute_script
from tenants.exceptions import NotInstalled

# Roles, functions and tables in one transaction: Citus does that one by one, not on many connections at once.
SEQUENTIAL = "SET LOCAL citus.multi_shard_modify_mode TO 'sequential'"

# Tables that others refer to come first, since a foreign key may not lead out of the reference tables.
_LOCAL_TABLES = text(
    """
    SELECT c.relname FROM pg_class c
    WHERE c.relnamespace = 'registry'::regnamespace AND c.relkind = 'r'
        AND NOT EXISTS (SELECT FROM pg_dist_partition p WHERE p.logicalrelid = c.oid)
    ORDER BY (SELECT count(*) FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f'), c.relname
    """
)

# At its end, moving a school takes the locks of its shards on every node, in exclusive mode and in the order of their
# numbers, and commits where they are now together with releasing them. So a school stays where it is for a transaction
# that shares the lock of its first shard, and one that has waited for a move reads where it is now. STRICT: nothing is
# asked of a school that Citus does not have.
_ENTER_NODE = """
CREATE OR REPLACE FUNCTION registry.enter_node(first_shard bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM lock_shard_metadata(5, ARRAY[first_shard]);
    PERFORM FROM pg_dist_placement l JOIN pg_dist_local_group USING (groupid) WHERE l.shardid = first_shard;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the school is on another node' USING ERRCODE = 'SC421';
    END IF;
END
$$
"""
# set_config takes no effect in a query that names a reference table: the role is switched beside this function.
CLIENT_GRANT = """
CREATE OR REPLACE FUNCTION registry.client_grant(client text, OUT all_permissions boolean, OUT permissions text[])
LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT c.all_permissions, c.permissions INTO all_permissions, permissions
    FROM registry.clients c WHERE c.id = client AND c.revoked_at IS NULL;
END
$$
"""


def check_registry_distributed(connection: Connection) -> None:
    """See that the registry is on every node as this program needs it; raises NotInstalled."""
    if connection.execute(text("SELECT to_regprocedure('registry.enter_node(bigint)')")).scalar_one() is None:
        raise NotInstalled(
            "TENANT_DISTRIBUTED is on, and the registry is not on the nodes. Run: school-service tenants init"
        )


def distribute_registry(connection: Connection) -> None:
    """Put the registry on every node, within the connection's transaction; again, what is new of it."""
    execute_script(connection, SEQUENTIAL)
    for table in connection.execute(_LOCAL_TABLES).scalars().all():
        connection.execute(text("SELECT create_reference_table(:table)"), {"table": f"registry.{table}"})
    for function in (_ENTER_NODE, CLIENT_GRANT):
        execute_script(connection, function)
