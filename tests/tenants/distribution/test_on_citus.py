"""Schools on a cluster of Citus: made, reached, moved, backed up and deleted, without leaks and remains."""

from __future__ import annotations

from uuid import uuid4

import psycopg2
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from tenants.backups.backup import back_up
from tenants.backups.restore import restore
from tenants.connections.binding import SchoolBinding
from tenants.connections.engines import execute_script, registry_url, serving_engine
from tenants.connections.sessions import transaction
from tenants.distribution.moving import MoveRefused, move_school
from tenants.distribution.nodes import UnknownNode, list_nodes, locate_school
from tenants.exceptions import AlreadyExists, SchoolBusy, SchoolElsewhere, UnknownSchool
from tenants.provisioning.create import create_school
from tenants.provisioning.delete import delete_school
from tenants.registry.installation import install
from tenants.registry.schools import change_school, lock_school, schema_name
from tenants.tenancy import Administrator
from tests.postgres import nodes_of, on_citus_alone
from tests.tenants.conftest import tagged_school
from tests.tenants.installations import (
    ADMINISTRATOR,
    binding_options,
    bound_sessions,
    execute,
    installation,
    working,
)
from tests.threads import run_concurrently

pytestmark = on_citus_alone


@pytest.fixture(scope="module")
def here(server):
    """An installation whose schools are placed on every worker."""
    with installation(server) as tenancy:
        for node in workers(tenancy):
            execute(
                tenancy.admin_url,
                "SELECT citus_set_node_property(%s, %s, 'shouldhaveshards', true)",
                (node.host, node.port),
            )
        yield tenancy


@pytest.fixture
def school(here):
    """A school with two classrooms."""
    return tagged_school(here)


def servers(tenancy):
    return nodes_of(tenancy.admin_url)


def workers(tenancy):
    return servers(tenancy)[1:]


def node_of(tenancy, school_id):
    with tenancy.admin.connect() as connection:
        location = locate_school(connection, school_id)
    return location and location.node


def other_node(tenancy, school_id):
    with tenancy.admin.connect() as connection:
        nodes = [state.node for state in list_nodes(connection) if state.takes_schools]
    return next(node for node in nodes if node != node_of(tenancy, school_id))


def sessions_on(tenancy, node):
    engine = serving_engine(node.at(tenancy.serving_url), pool_size=1)
    return bound_sessions(engine, binding_options(tenancy))


def rooms(tenancy, school):
    names = f'SELECT name FROM "{school.schema}".classrooms ORDER BY name'
    return [name for (name,) in execute(tenancy.admin_url, names)]


def traces(tenancy, school_id):
    """List the traces of a school on each server: its role, tables (shards too) and functions."""
    count = """
        SELECT (SELECT count(*) FROM pg_roles WHERE rolname = %(name)s)
            + (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%(name)s))
            + (SELECT count(*) FROM pg_proc WHERE pronamespace = to_regnamespace(%(name)s))
    """
    name = {"name": schema_name(school_id)}
    shown = f"SET citus.override_table_visibility TO off; {count}"
    return [execute(server, shown, name) for server in servers(tenancy)]


def test_schools_are_spread_and_each_is_served_on_its_node_alone(here):
    schools = [tagged_school(here) for _ in range(2)]

    nodes = [node_of(here, school.id) for school in schools]
    assert set(map(str, nodes)) == {f"{url.host}:{url.port}" for url in workers(here)}
    for school, node, elsewhere in zip(schools, nodes, reversed(nodes), strict=True):
        with working(sessions_on(here, node), SchoolBinding(school.id)) as session:
            assert session.scalars(text("SELECT name FROM classrooms WHERE level = 'tag'")).all()
            assert session.scalar(text("SELECT current_user")) == school.schema
        with pytest.raises(SchoolElsewhere), working(sessions_on(here, elsewhere), SchoolBinding(school.id)):
            pass


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM {other}.classrooms",
        "INSERT INTO {other}.classrooms (id, name, level) VALUES (gen_random_uuid(), 'x', 'x')",
        "SELECT * FROM {other}.{shard}",
        "SELECT * FROM registry.schools",
        "UPDATE audit_entries SET actor = 'nobody'",
        "DELETE FROM audit_entries",
        "SELECT registry.enter_node(1)",
    ],
)
def test_a_school_reaches_nothing_but_its_own_on_its_node(here, school, statement):
    node = node_of(here, school.id)
    other = tagged_school(here)
    if node_of(here, other.id) != node:
        move_school(here, other.id, str(node))
    [(shard,)] = execute(
        node.at(here.admin_url),
        "SET citus.override_table_visibility TO off;"
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relname ~ '^classrooms_[0-9]+$'",
        (other.schema,),
    )
    sql = statement.format(other=f'"{other.schema}"', shard=shard)

    with working(sessions_on(here, node), SchoolBinding(school.id)) as session:
        with pytest.raises(Exception, match="permission denied") as caught:
            session.execute(text(sql))
        assert caught.value.orig.pgcode == "42501"
        session.rollback()


def test_a_schools_role_has_the_rights_it_needs_on_the_tables_of_every_node_and_on_their_shards(here, school):
    granted = """
        SET citus.override_table_visibility TO off;
        SELECT appended, privileges, count(*)
        FROM (
            SELECT c.relname ~ '^(audit_entries|change_sets)(_[0-9]+)?$' AS appended,
                (SELECT string_agg(a.privilege_type, ' ' ORDER BY a.privilege_type) FROM aclexplode(c.relacl) a
                 WHERE a.grantee = to_regrole(%(name)s)) AS privileges
            FROM pg_class c WHERE c.relnamespace = to_regnamespace(%(name)s) AND c.relkind = 'r'
        ) AS tables
        GROUP BY appended, privileges
    """
    rights = {}
    for server in servers(here):
        for appended, privileges, tables in execute(server, granted, {"name": school.schema}):
            rights.setdefault((appended, privileges), []).append(tables)

    # On the coordinator, the school's node and the other: the tables everywhere, the shards on the school's node.
    few, many = rights.pop((True, "INSERT SELECT")), rights.pop((False, "DELETE INSERT SELECT UPDATE"))
    assert rights == {}
    assert sorted(few) == [2, 2, 4]
    assert sorted(many) == [min(many), min(many), 2 * min(many)]


def test_a_creation_that_fails_half_way_leaves_nothing_on_any_node(here):
    school_id = uuid4()
    too_long = Administrator("a" * 2000, "a password")

    with pytest.raises(Exception, match="value too long"):
        create_school(here, name="x", administrator=too_long, school_id=school_id)

    assert traces(here, school_id) == [[(0,)]] * len(servers(here))
    assert create_school(here, name="x", administrator=ADMINISTRATOR, school_id=school_id).id == school_id
    with pytest.raises(AlreadyExists):
        create_school(here, name="x", administrator=ADMINISTRATOR, school_id=school_id)


@pytest.mark.parametrize("shared", [True, False], ids=["backed up", "migrated"])
def test_a_school_that_is_locked_holds_up_its_own_changes_alone(here, school, shared):
    other = tagged_school(here)

    def change(school_id):
        with here.admin.begin() as connection:
            execute_script(connection, here.placement.limit_waiting(1))
            return change_school(connection, school_id, address="Yaba").address

    with here.admin.begin() as locking:
        lock_school(locking, school.id, shared=shared)
        assert change(other.id) == "Yaba"
        assert create_school(here, name="Meanwhile", administrator=ADMINISTRATOR)
        with pytest.raises(OperationalError, match="lock timeout"):
            change(school.id)
    assert change(school.id) == "Yaba"


def test_several_are_created_at_the_same_time(here):
    made = run_concurrently(
        3, lambda number: create_school(here, name=f"School {number}", administrator=ADMINISTRATOR)
    )

    assert all(node_of(here, school.id) for school in made)


def test_moving_takes_every_row_along_and_says_so_in_the_audit_log(here, school):
    before, target = rooms(here, school), other_node(here, school.id)
    steps = []

    class Steps:
        def __init__(self, length):
            self.length = length

        def __enter__(self):
            return steps.append

        def __exit__(self, *_):
            assert sum(steps) == self.length

    moved = move_school(here, school.id, str(target), progress=Steps)

    assert (moved.moved, moved.target, node_of(here, school.id)) == (True, str(target), target)
    assert rooms(here, school) == before
    entries = f'SELECT new FROM "{school.schema}".audit_entries WHERE entity = %s'
    assert execute(here.admin_url, entries, ("school",)) == [({"node": str(target)},)]
    assert move_school(here, school.id, str(target)).moved is False


def test_a_request_under_way_is_waited_for_and_where_it_does_not_end_the_school_stays(here, school):
    node, target = node_of(here, school.id), other_node(here, school.id)
    sessions = sessions_on(here, node)
    with sessions() as session:
        transaction(session, SchoolBinding(school.id))

        with pytest.raises(MoveRefused, match="stays where it is: canceling statement due to lock timeout"):
            move_school(here, school.id, str(target), lock_timeout=0.5)

        # It goes on, where it began.
        session.execute(text("UPDATE classrooms SET level = 'moved'"))
        session.commit()
    assert node_of(here, school.id) == node
    move_school(here, school.id, str(target))
    levels = execute(here.admin_url, f'SELECT DISTINCT level FROM "{school.schema}".classrooms')
    assert levels == [("moved",)]


def test_a_school_that_is_backed_up_is_not_moved(here, school):
    engine = create_engine(registry_url(here.admin_url))
    with engine.begin() as connection:
        here.placement.keep_in_place(connection, school.id)
        with pytest.raises(SchoolBusy):
            move_school(here, school.id, str(other_node(here, school.id)))
    engine.dispose()


def test_a_move_to_nowhere_is_refused(here, school):
    with pytest.raises(UnknownNode, match="There is no node nowhere:1"):
        move_school(here, school.id, "nowhere:1")
    coordinator = f"{servers(here)[0].host}:{servers(here)[0].port}"
    with pytest.raises(MoveRefused, match="takes no schools"):
        move_school(here, school.id, coordinator)
    with pytest.raises(UnknownSchool):
        move_school(here, uuid4(), str(other_node(here, school.id)))


@pytest.mark.parametrize("first", ["create", "restore", "move", "install"])
def test_a_node_that_joins_gets_the_registry_with_the_first_that_is_done(server, tmp_path, first):
    with installation(server, installed=False) as tenancy:
        new = workers(tenancy)[1]
        address = (new.host, new.port)
        execute(tenancy.admin_url, "SELECT citus_remove_node(%s, %s)", address)
        install(tenancy)
        school = tagged_school(tenancy)
        back_up(tenancy, school.id, tmp_path / "school.zip")
        execute(tenancy.admin_url, "SELECT citus_add_node(%s, %s)", address)

        acts = {
            "create": lambda: create_school(tenancy, name="x", administrator=ADMINISTRATOR),
            "restore": lambda: restore(tenancy, tmp_path / "school.zip", school_id=uuid4()),
            "move": lambda: move_school(tenancy, school.id, f"{new.host}:{new.port}"),
            "install": lambda: install(tenancy),
        }
        acts[first]()
        if first != "move":
            acts["move"]()

        assert node_of(tenancy, school.id).at(new) == new
        with working(sessions_on(tenancy, node_of(tenancy, school.id)), SchoolBinding(school.id)) as session:
            assert session.scalar(text("SELECT count(*) FROM classrooms")) == 2


def test_the_nodes_are_listed_with_their_schools(here, school):
    with here.admin.connect() as connection:
        nodes = list_nodes(connection)
        [(count,)] = connection.exec_driver_sql("SELECT count(*) FROM registry.schools").all()

    assert (nodes[0].coordinator, nodes[0].takes_schools) == (True, False)
    assert [str(state.node) for state in nodes[1:]] == [f"{url.host}:{url.port}" for url in workers(here)]
    assert sum(state.schools for state in nodes) == count


def test_a_backup_is_of_one_moment_and_comes_back_beside_the_original(here, school, tmp_path):
    manifest = back_up(here, school.id, tmp_path / "school.zip")

    restored = restore(here, tmp_path / "school.zip", school_id=uuid4(), name="Again")

    assert manifest.format == 2
    assert rooms(here, restored) == rooms(here, school)
    again = back_up(here, restored.id, tmp_path / "again.zip")
    differing = {name for name in manifest.tables if manifest.tables[name] != again.tables[name]}
    # Changes since then are in its audit log.
    assert differing <= {"audit_entries"}
    node = node_of(here, restored.id)
    with working(sessions_on(here, node), SchoolBinding(restored.id)) as session:
        assert session.scalar(text("SELECT count(*) FROM classrooms")) == 2


def test_backups_are_remembered_by_the_coordinator_alone(here, school, tmp_path):
    """Else a school could not be backed up while any other node is away."""
    repmodel = "SELECT repmodel FROM pg_dist_partition WHERE logicalrelid = 'registry.backups'::regclass"
    assert execute(here.admin_url, repmodel) == [("s",)]
    # Earlier releases had them on each node.
    execute(here.admin_url, "ALTER TABLE registry.backups DROP CONSTRAINT fk_backups_school_id")
    execute(here.admin_url, "SELECT create_reference_table('registry.backups')")
    execute(
        here.admin_url,
        "ALTER TABLE registry.backups ADD CONSTRAINT fk_backups_school_id FOREIGN KEY (school_id)"
        " REFERENCES registry.schools (id) ON DELETE CASCADE",
    )
    assert execute(here.admin_url, repmodel) == [("t",)]
    back_up(here, school.id, tmp_path / "school.zip")

    install(here)

    assert execute(here.admin_url, repmodel) == [("s",)]
    backed_up = "SELECT school_id::text FROM registry.backups"
    assert (str(school.id),) in execute(here.admin_url, backed_up)
    delete_school(here, school.id, backup_folder=tmp_path)
    assert (str(school.id),) not in execute(here.admin_url, backed_up)


def test_a_deleted_school_leaves_nothing_on_any_node(here, school, tmp_path):
    deleted = delete_school(here, school.id, backup_folder=tmp_path)

    assert deleted.backup
    assert traces(here, school.id) == [[(0,)]] * len(servers(here))
    assert node_of(here, school.id) is None


def test_a_login_can_sign_in_at_every_node_and_make_nothing_there(here):
    for server in servers(here):
        url = here.serving_url.set(host=server.host, port=server.port)
        assert execute(url, "SHOW search_path") == [('""',)]
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            execute(url, "CREATE TEMPORARY TABLE mine (id uuid)")
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            execute(url, "SELECT secret_hash FROM registry.clients")
