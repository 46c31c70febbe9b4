"""The registry on every node: its tables are reference tables, its functions are everywhere."""

from __future__ import annotations

from sqlalchemy import Connection, MetaData, Table, text

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

# Written while a worker is away, too: the coordinator alone has its rows.
_OF_COORDINATOR = "backups"
_FOREIGN_KEY_OF_REFERENCE_TABLE = text(
    """
    SELECT k.conname AS name, pg_get_constraintdef(k.oid) AS definition
    FROM pg_dist_partition p JOIN pg_constraint k ON k.conrelid = p.logicalrelid
    WHERE p.logicalrelid = CAST(:table AS regclass) AND p.repmodel = 't' AND k.contype = 'f'
    """
)

_SHARD = text("SELECT shardid FROM pg_dist_shard WHERE logicalrelid = CAST(:table AS regclass)")

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
# A function that reads a table of Citus's has its statements planned anew at each call, and twice: by Citus and for the
# shard. One that reads the shard itself has its plans remembered, as on PostgreSQL alone. Shards have the same names on
# every node, and are moved with the tables. A school on another node is not found there.
_READ_SHARDS = r"""
CREATE OR REPLACE FUNCTION registry.read_shards(schema_name text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    function oid;
    definition text;
    changed text;
    shard record;
BEGIN
    FOR function IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = to_regnamespace(schema_name) LOOP
        definition := pg_get_functiondef(function);
        changed := definition;
        FOR shard IN
            SELECT c.relname AS shell, c.relname || '_' || s.shardid AS name
            FROM pg_class c JOIN pg_dist_shard s ON s.logicalrelid = c.oid
            WHERE c.relnamespace = to_regnamespace(schema_name)
        LOOP
            changed := regexp_replace(
                changed, '\m(FROM|JOIN)(\s+(?:registry\.)?)' || shard.shell || '(?:_\d+)?\M', '\1\2' || shard.name, 'g'
            );
        END LOOP;
        IF changed <> definition THEN
            EXECUTE changed;
        END IF;
    END LOOP;
END
$body$
"""
# set_config takes no effect in a query that names a reference table: the role is switched beside this function. Made
# anew, as its result may have had other columns before.
CLIENT_GRANT = """
DROP FUNCTION IF EXISTS registry.client_grant(text);
CREATE FUNCTION registry.client_grant(
    client text,
    OUT all_permissions boolean, OUT permissions text[], OUT session_number integer, OUT tells_addresses boolean,
    OUT is_public boolean, OUT user_permissions text[]
) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT c.all_permissions, c.permissions, c.session_number, c.tells_addresses, c.is_public, c.user_permissions
    INTO all_permissions, permissions, session_number, tells_addresses, is_public, user_permissions
    FROM registry.clients c WHERE c.id = client AND c.revoked_at IS NULL;
END
$$
"""


def check_distributed_registry(connection: Connection) -> None:
    """See that the registry is on every node as this program needs it; raises NotInstalled."""
    if connection.execute(text("SELECT to_regprocedure('registry.enter_node(bigint)')")).scalar_one() is None:
        raise NotInstalled(
            "TENANT_DISTRIBUTED is on, and the registry is not on the nodes. Run: school-service tenants init"
        )


def distribute_registry(connection: Connection) -> None:
    """Put the registry on every node, within the connection's transaction; again, its new parts."""
    execute_script(connection, SEQUENTIAL)
    for table in connection.execute(_LOCAL_TABLES).scalars().all():
        if table != _OF_COORDINATOR:
            connection.execute(text("SELECT create_reference_table(:table)"), {"table": f"registry.{table}"})
    _take_back(connection, f"registry.{_OF_COORDINATOR}")
    for function in (_ENTER_NODE, CLIENT_GRANT, _READ_SHARDS):
        execute_script(connection, function)
    execute_script(connection, read_shards_statement("registry"))


def _take_back(connection: Connection, table: str) -> None:
    """Leave a table to the coordinator, with its foreign key, where it is a reference table, as it was once."""
    key = connection.execute(_FOREIGN_KEY_OF_REFERENCE_TABLE, {"table": table}).one_or_none()
    if key is not None:
        execute_script(connection, f"ALTER TABLE {table} DROP CONSTRAINT {key.name}")
        connection.execute(text("SELECT undistribute_table(:table)"), {"table": table})
        execute_script(connection, f"ALTER TABLE {table} ADD CONSTRAINT {key.name} {key.definition}")


def distribute_statements(schema: str) -> list[str]:
    """Write the statements giving a school's schema to Citus, to choose the node; its tables are all there.

    Before them the schema is an ordinary one of the coordinator's. A statement to make an index, in a message together
    with others, fails on a schema already given to Citus.
    """
    return [f"SELECT citus_schema_distribute('{schema}')", read_shards_statement(schema)]


def read_shards_statement(schema: str) -> str:
    """Write the statement letting the functions of a schema read the shards of its tables; again after a change."""
    return f"SELECT registry.read_shards('{schema}')"


def own_copy(connection: Connection, table: Table) -> Table:
    """Give the coordinator's own copy of a table of the registry: its shard on the coordinator."""
    number = connection.execute(_SHARD, {"table": table.fullname}).scalar_one()
    return table.to_metadata(MetaData(), name=f"{table.name}_{number}")
