"""The owner of a school's tables, and the limits of the serving login: above all at the audit log."""

from __future__ import annotations

import json
from contextlib import contextmanager
from uuid import uuid4

import psycopg2
import pytest
from psycopg2 import errors
from sqlalchemy import event

from migrations.tenant import APPEND_ONLY
from tenants.connections.binding import SchoolBinding
from tenants.connections.engines import serving_engine
from tenants.exceptions import UnfitLogin
from tenants.migrations.migrate import LockRetry, list_migration_states, migrate_schools
from tenants.provisioning.create import create_school
from tenants.provisioning.delete import delete_school
from tenants.provisioning.ownership import table_grants
from tenants.registry.installation import install
from tests.postgres import at_schools, on_citus, on_postgresql_alone
from tests.tenants.installations import (
    ADMINISTRATOR,
    binding_options,
    bound_sessions,
    execute,
    installation,
    working,
)
from tests.tenants.migrations.upgrades import locked
from tests.tenants.test_operator_log import invoke

INSERT = (
    "INSERT INTO {schema}.audit_entries (id, at, actor, actor_name, action, entity, entity_id) "
    "VALUES (gen_random_uuid(), now(), 'a', 'a', 'create', 'user', gen_random_uuid())"
)
CHANGES = {
    "update": "UPDATE {schema}.audit_entries SET actor = 'somebody else'",
    "delete": "DELETE FROM {schema}.audit_entries",
    "change a set": "UPDATE {schema}.change_sets SET at = at",
    "delete a set": "DELETE FROM {schema}.change_sets",
    "truncate": "TRUNCATE {schema}.audit_entries",
    "alter": "ALTER TABLE {schema}.audit_entries ALTER COLUMN actor DROP NOT NULL",
    "own": "ALTER TABLE {schema}.audit_entries OWNER TO CURRENT_USER",
    "disable triggers": "ALTER TABLE {schema}.audit_entries DISABLE TRIGGER ALL",
    "rule": "CREATE RULE nothing AS ON INSERT TO {schema}.audit_entries DO INSTEAD NOTHING",
    "policy": "ALTER TABLE {schema}.audit_entries ENABLE ROW LEVEL SECURITY",
    "rename": "ALTER TABLE {schema}.audit_entries RENAME TO gone",
    "drop": "DROP TABLE {schema}.audit_entries",
    "drop the schema": "DROP SCHEMA {schema} CASCADE",
    "rename the schema": "ALTER SCHEMA {schema} RENAME TO gone",
    "make a table": "CREATE TABLE {schema}.mine (id uuid)",
    "skip triggers": "SET session_replication_role TO replica",
    "become the owner": 'SET ROLE "{owner}"',
}
# A node of Citus leaves it to the coordinator to change tables, or signs in there as the role, which can't.
REFUSED = (
    (errors.InsufficientPrivilege, errors.InternalError_, errors.ConnectionFailure)
    if on_citus()
    else errors.InsufficientPrivilege
)


def create(tenancy, name="A school"):
    return create_school(tenancy, name=name, administrator=ADMINISTRATOR)


@contextmanager
def by_hand(url, role=None):
    """Connect with psycopg2 alone, and run statements in transactions that are undone."""
    connection = psycopg2.connect(url.set(drivername="postgresql").render_as_string(hide_password=False))
    try:

        def run(sql):
            with connection.cursor() as cursor:
                try:
                    if role is not None:
                        cursor.execute(f'SET ROLE "{role}"')
                    cursor.execute(sql)
                    return cursor.rowcount
                finally:
                    connection.rollback()

        yield run
    finally:
        connection.close()


def written(sql, tenancy, school):
    return sql.format(schema=f'"{school.schema}"', owner=tenancy.owner)


def owners(tenancy, school):
    """The owners of the schema and of the tables."""
    return execute(
        tenancy.admin_url,
        "SELECT nspowner::regrole::text, array_agg(DISTINCT relowner::regrole::text) "
        "FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid "
        "WHERE nspname = %s GROUP BY nspowner",
        (school.schema,),
    )


def make_old(tenancy, school):
    """Give a school back to its own role, as an earlier release created it."""
    tables = execute(
        tenancy.admin_url,
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'",
        (school.schema,),
    )
    role, owner = f'"{school.schema}"', f'"{tenancy.owner}"'
    # Rights that a superuser has anyway, and another provisioning login has not.
    roles = [role] if tenancy.one_login else [role, owner]
    execute(
        tenancy.admin_url,
        "".join(f"GRANT {role} TO CURRENT_USER WITH INHERIT TRUE;" for role in roles)
        + f"GRANT CREATE ON SCHEMA {role} TO {role};"
        + "".join(f'ALTER TABLE {role}."{name}" OWNER TO {role};' for (name,) in tables)
        + f"ALTER SCHEMA {role} OWNER TO {role};"
        + f"REVOKE ALL ON SCHEMA {role} FROM {owner};"
        + "".join(f"GRANT {role} TO CURRENT_USER WITH INHERIT FALSE;" for role in roles),
    )
    assert owners(tenancy, school) == [(school.schema, [school.schema])]


def in_use(tenancy, school):
    """Lock a table as a request that reads it does, until the block ends."""
    return locked(
        tenancy, f'SET ROLE "{school.schema}"; LOCK TABLE "{school.schema}".users IN ACCESS SHARE MODE'
    )


def state_of(tenancy, school):
    with tenancy.admin.connect() as connection:
        (state,) = [row for row in list_migration_states(connection, tenancy) if row.id == school.id]
    return state.state, state.old_owner


def write_and_read(tenancy, school):
    """Work in a school as a request does: with foreign keys on both sides, and a lock of a table."""
    engine = serving_engine(at_schools(tenancy.serving_url), pool_size=1)
    try:
        with working(bound_sessions(engine, binding_options(tenancy)), SchoolBinding(school.id)) as session:
            run = session.connection().exec_driver_sql
            if not on_citus():
                # There it is a lock on every node, and no request takes one.
                run("LOCK TABLE classrooms IN SHARE ROW EXCLUSIVE MODE")
            user = run("SELECT id FROM users LIMIT 1").scalar_one()
            run(
                "INSERT INTO contacts (id, owner_id, email_address, phone_number, physical_address, created_at) "
                "VALUES (gen_random_uuid(), %s, %s, 'x', 'x', now())",
                (str(user), f"{uuid4()}@example.com"),
            )
            run("SELECT FROM users FOR UPDATE")
            run("SELECT FROM roles FOR SHARE")
            run("DELETE FROM contacts")
            run("UPDATE users SET gender = 'x'")
            run(INSERT.format(schema=f'"{school.schema}"'))
            return run("SELECT count(*) FROM audit_entries").scalar_one()
    finally:
        engine.dispose()


@pytest.fixture(scope="module")
def here(server):
    """An installation whose provisioning login is no superuser where it need not be one: it can do least."""
    with installation(server, superuser=on_citus()) as tenancy:
        yield tenancy


@pytest.fixture(scope="module")
def schools(here):
    made = create(here), create(here)
    for school in made:
        write_and_read(here, school)
    return made


# Refusals to the serving login, connected to by hand.


@pytest.mark.parametrize("change", CHANGES)
def test_the_serving_login_can_not_change_the_audit_log_of_any_school(here, schools, change):
    mine, other = schools
    with by_hand(at_schools(here.serving_url)) as run:
        for school in schools:
            with pytest.raises(REFUSED):
                run(written(CHANGES[change], here, school))
    with by_hand(at_schools(here.serving_url), role=mine.schema) as run:
        # A control: the rights that a request needs are granted, in its own school.
        assert run(INSERT.format(schema=f'"{mine.schema}"')) == 1
        assert run(f'SELECT FROM "{mine.schema}".audit_entries') >= 1
        for school in schools:
            with pytest.raises(REFUSED):
                run(written(CHANGES[change], here, school))
        with pytest.raises(errors.InsufficientPrivilege):
            run(INSERT.format(schema=f'"{other.schema}"'))


@on_postgresql_alone
@pytest.mark.parametrize(
    "change", sorted(CHANGES.keys() - {"own", "rule", "skip triggers", "become the owner"})
)
def test_the_owner_can(here, schools, change):
    with by_hand(here.admin_url, role=here.owner) as run:
        if change == "rename the schema":
            pytest.skip("renaming a schema takes CREATE on the database, which the owner lacks")
        run(written(CHANGES[change], here, schools[0]))


def test_change_sets_can_be_added_and_numbered(here, schools):
    schema = f'"{schools[0].schema}"'
    with by_hand(at_schools(here.serving_url), role=schools[0].schema) as run:
        assert run(f"INSERT INTO {schema}.change_sets (id, at) VALUES (gen_random_uuid(), now())") == 1
        assert run(f"UPDATE {schema}.change_sets SET number = 2") == 1


def test_other_tables_can_be_written_and_not_altered(here, schools):
    with by_hand(at_schools(here.serving_url), role=schools[0].schema) as run:
        assert run(f"UPDATE \"{schools[0].schema}\".users SET gender = 'x'") == 1
        assert run(f'DELETE FROM "{schools[0].schema}".counters') > 0
        for change in ("TRUNCATE {}", "ALTER TABLE {} ADD COLUMN x text", "DROP TABLE {} CASCADE"):
            with pytest.raises(REFUSED):
                run(change.format(f'"{schools[0].schema}".users'))


@on_postgresql_alone
def test_the_owner_is_nobodys_login_and_has_no_powers(here):
    assert execute(
        here.admin_url,
        "SELECT rolcanlogin, rolinherit, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls "
        "FROM pg_roles WHERE rolname = %s",
        (here.owner,),
    ) == [(False,) * 7]
    members = execute(
        here.admin_url,
        "SELECT DISTINCT member::regrole::text FROM pg_auth_members WHERE roleid = %s::regrole",
        (here.owner,),
    )
    assert members == [(here.admin_url.username,)]


# Installing.


@on_postgresql_alone
def test_installing_refuses_an_owner_with_powers_and_one_that_the_serving_login_may_become(server):
    with installation(server, installed=False) as tenancy:
        execute(tenancy.admin_url, f'CREATE ROLE "{tenancy.owner}" LOGIN CREATEDB')
        with pytest.raises(UnfitLogin, match="has CREATEDB and LOGIN"):
            install(tenancy)
        execute(tenancy.admin_url, f'ALTER ROLE "{tenancy.owner}" NOLOGIN NOCREATEDB')
        install(tenancy)

        execute(tenancy.admin_url, f'GRANT "{tenancy.owner}" TO "{tenancy.placement.login}"')
        with pytest.raises(UnfitLogin, match="may become the role"):
            install(tenancy)
        execute(tenancy.admin_url, f'REVOKE "{tenancy.owner}" FROM "{tenancy.placement.login}"')
        install(tenancy)


# Schools that an earlier release created.


@pytest.fixture(scope="module", params=[True, False], ids=["superuser", "creator"])
def updated(server, request):
    """An installation with two schools."""
    if on_citus():
        pytest.skip("no earlier release created schools on Citus")
    with installation(server, superuser=request.param) as tenancy:
        yield tenancy, create(tenancy), create(tenancy)


@pytest.fixture
def old(server, updated):
    """An installation with a school owned by its own role, and one owned by the owner of all."""
    tenancy, first, _ = updated
    make_old(tenancy, first)
    database = server.set(database=tenancy.admin_url.database)
    execute(database, f'DELETE FROM "{first.schema}".audit_entries; DELETE FROM registry.failed_migrations')
    return updated


def test_a_school_of_old_ownership_serves_and_is_told(old):
    tenancy, first, second = old

    assert write_and_read(tenancy, first) == 1
    assert state_of(tenancy, first) == ("behind", True)
    assert state_of(tenancy, second) == ("current", False)


def test_status_counts_it(old):
    tenancy, _, _ = old

    said = invoke(tenancy, "status")
    assert "2 schools" in said.output
    assert "owner of the tables of 1 school," in said.output
    listed = json.loads(invoke(tenancy, "status", "--json").output)
    assert sorted((school["state"], school["old_owner"]) for school in listed) == [
        ("behind", True),
        ("current", False),
    ]

    migrate_schools(tenancy)
    assert "Note" not in invoke(tenancy, "status").output


def test_migrating_moves_it_and_leaves_it_as_one_that_is_new(old):
    tenancy, first, second = old

    report = migrate_schools(tenancy)

    assert [school.id for school in report.migrated] == [first.id]
    assert report.complete
    assert owners(tenancy, first) == owners(tenancy, second) == [(tenancy.owner, [tenancy.owner])]
    assert rights(tenancy, first) == rights(tenancy, second)
    assert state_of(tenancy, first) == ("current", False)
    assert write_and_read(tenancy, first) == 1
    with by_hand(at_schools(tenancy.serving_url), role=first.schema) as run:
        assert run(f'SELECT FROM "{first.schema}".audit_entries') == 1
        for change in ("update", "delete", "truncate", "drop"):
            with pytest.raises(errors.InsufficientPrivilege):
                run(written(CHANGES[change], tenancy, first))
    assert inheriting(tenancy) == []
    # And once is enough.
    assert migrate_schools(tenancy).migrated == []


def rights(tenancy, school):
    rows = execute(
        tenancy.admin_url,
        "SELECT relname::text, coalesce(relacl::text, '') FROM pg_class "
        "WHERE relnamespace = to_regnamespace(%(name)s) AND relkind = 'r' "
        "UNION ALL SELECT 'schema', nspacl::text FROM pg_namespace WHERE nspname = %(name)s ORDER BY 1",
        {"name": school.schema},
    )
    return [(name, acl.replace(school.schema, "school")) for name, acl in rows]


def inheriting(tenancy):
    """The roles of schools, and of their owner, whose rights the provisioning login has without switching."""
    return execute(
        tenancy.admin_url,
        "SELECT roleid::regrole::text FROM pg_auth_members WHERE inherit_option "
        "AND member = current_user::regrole AND NOT roleid::regrole::text LIKE 'pg_%%'",
    )


def test_a_school_serves_between_the_transactions_that_move_it(old):
    tenancy, first, _ = old
    seen = []

    def serve(connection):
        seen.append((owners(tenancy, first), write_and_read(tenancy, first)))

    event.listen(tenancy.admin, "begin", serve)
    migrate_schools(tenancy)
    event.remove(tenancy.admin, "begin", serve)

    mixed = [rows for rows, _ in seen if len(rows[0][1]) == 2]
    assert mixed, seen
    assert {rows[0][0] for rows in mixed} == {first.schema}
    assert [count for _, count in seen] == list(range(1, len(seen) + 1))


def test_no_transaction_takes_more_locks_than_it_may(old):
    tenancy, _, _ = old
    locks = []

    def count(connection):
        with connection.connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*), count(*) FILTER (WHERE mode = 'AccessExclusiveLock') "
                "FROM pg_locks WHERE pid = pg_backend_pid()"
            )
            locks.append(cursor.fetchone())

    event.listen(tenancy.admin, "commit", count)
    migrate_schools(tenancy)
    event.remove(tenancy.admin, "commit", count)

    assert len(locks) > 3
    # Of tables and their indexes; the others are of the catalogue, and the same however many tables there are.
    assert max(exclusive for _, exclusive in locks) <= 64, locks
    assert max(total for total, _ in locks) <= 64 + 40, locks


def test_a_move_waits_for_a_request_and_goes_on_when_it_has_ended(old):
    tenancy, first, _ = old
    hasty = LockRetry(lock_timeout=0.1, pauses=(0.1,))
    with in_use(tenancy, first):
        report = migrate_schools(tenancy, retry=hasty)

    assert [school.id for school, _ in report.failed] == [first.id]
    assert state_of(tenancy, first) == ("failed", True)
    assert write_and_read(tenancy, first) == 1
    assert migrate_schools(tenancy, retry=hasty).complete
    assert state_of(tenancy, first) == ("current", False)


def test_a_school_of_old_or_half_moved_ownership_can_be_deleted(updated):
    tenancy, *_ = updated
    first = create(tenancy)
    make_old(tenancy, first)
    with in_use(tenancy, first):
        migrate_schools(tenancy, retry=LockRetry(lock_timeout=0.1, pauses=()))
    assert owners(tenancy, first) == [(first.schema, sorted([first.schema, tenancy.owner]))]

    delete_school(tenancy, first.id, backup_folder=None)

    assert owners(tenancy, first) == []


@on_postgresql_alone
def test_from_one_login_to_two_the_schools_leave_the_login_that_now_serves(server):
    with installation(server) as tenancy:
        school = create(tenancy)
        serving = tenancy.placement.login
        execute(
            tenancy.admin_url,
            f'REASSIGN OWNED BY "{tenancy.owner}" TO "{serving}"; GRANT USAGE, CREATE ON SCHEMA "{school.schema}" '
            f'TO "{serving}"',
        )
        assert owners(tenancy, school) == [(serving, [serving])]
        assert state_of(tenancy, school) == ("behind", True)

        assert migrate_schools(tenancy).complete

        assert owners(tenancy, school) == [(tenancy.owner, [tenancy.owner])]
        assert write_and_read(tenancy, school) == 1


@on_postgresql_alone
@pytest.mark.parametrize("superuser", [True, False], ids=["superuser", "creator"])
def test_where_one_login_does_both_it_becomes_the_owner_and_requests_have_not_its_rights(server, superuser):
    with installation(server, one_login=True, superuser=superuser) as tenancy:
        school = create(tenancy)
        with by_hand(at_schools(tenancy.serving_url), role=school.schema) as run:
            assert run(INSERT.format(schema=f'"{school.schema}"')) == 1
            with pytest.raises(errors.InsufficientPrivilege):
                run(written(CHANGES["delete"], tenancy, school))
        make_old(tenancy, school)
        assert state_of(tenancy, school) == ("behind", True)

        assert migrate_schools(tenancy).complete

        assert owners(tenancy, school) == [(tenancy.placement.login, [tenancy.placement.login])]
        assert state_of(tenancy, school) == ("current", False)
        assert write_and_read(tenancy, school) == 1


def test_the_statements_name_every_table_that_is_append_only(schools):
    revoking = [grant for grant in table_grants(schools[0].schema) if "REVOKE" in grant]
    assert len(revoking) == len(APPEND_ONLY)
    for table, statement in zip(APPEND_ONLY, revoking, strict=True):
        assert (
            f'REVOKE UPDATE, DELETE ON "{schools[0].schema}".{table} FROM "{schools[0].schema}"' in statement
        )
