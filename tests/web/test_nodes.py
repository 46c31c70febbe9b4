"""Requests of schools that are placed on nodes: where they go, and how they end when a school is moved.

The nodes are two names of one server, and the function that a node admits a transaction by has its answer from a
test. Tests of Citus itself are in tests/tenants/distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, make_url

from school_service.app import create_app
from school_service.auth.tokens import issue_client_token
from school_service.core.database import HEALTH_BIND, Model, db
from tenants.distribution.nodes import Location, Node, Shards
from tenants.distribution.registry import CLIENT_GRANT
from tenants.exceptions import RegistrySilent
from tenants.registry.clients import create_client, revoke_client
from tenants.registry.schools import schema_name
from tests.client import ApiClient
from tests.conftest import PASSWORD, dispose, make_place
from tests.postgres import on_postgresql_alone
from tests.tenants.installations import execute

pytestmark = on_postgresql_alone

# A school is on the node that has the shard named by the table.
ENTER_NODE = """
CREATE FUNCTION registry.enter_node(first_shard bigint) RETURNS void LANGUAGE plpgsql STRICT AS $$
BEGIN
    IF first_shard NOT IN (SELECT shard FROM registry.shards) THEN
        RAISE EXCEPTION 'the school is on another node' USING ERRCODE = 'SC421';
    END IF;
END
$$
"""


TABLES = sorted(Model.metadata.tables)


def shards_of(number):
    """Give each table of a school its shard of this number: here, a view of it."""
    return Shards(TABLES, [number] * len(TABLES))


@dataclass
class Cluster:
    """The true place of the tests' school, the coordinator's answer, and the number of questions."""

    url: object
    nodes: dict
    said: dict = field(default_factory=dict)
    asked: int = 0

    def locate(self, school_id):
        self.asked += 1
        return self.said.get(school_id)

    def move(self, place, shard, *, said=None):
        """Let a node, and no other, have the school; the coordinator may say another."""
        execute(self.url, "DELETE FROM registry.shards; INSERT INTO registry.shards VALUES (%s)", (shard,))
        self.said[place.id] = Location(self.nodes[said or shard], shards_of(said or shard))


@pytest.fixture(scope="module")
def functions(tenancy):
    """The functions of a node's registry."""
    login = tenancy.placement.login
    execute(
        tenancy.admin_url,
        f"CREATE TABLE registry.shards (shard bigint); {ENTER_NODE}; {CLIENT_GRANT};"
        f'GRANT SELECT ON registry.shards TO "{login}";'
        f'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA registry TO "{login}"',
    )
    yield
    execute(
        tenancy.admin_url,
        "DROP FUNCTION registry.enter_node, registry.client_grant; DROP TABLE registry.shards",
    )


@pytest.fixture(scope="module")
def placed(settings, tenancy, functions):
    """An application whose schools are on nodes."""
    app = create_app(replace(settings, tenant_distributed=True))
    yield app
    dispose(app)


@pytest.fixture(scope="module")
def place(app, tenancy):
    """A school of these tests alone, since writes to a node are committed."""
    place = make_place(app, tenancy, "Barewa College, Zaria")
    make_shards(tenancy, place)
    return place


@pytest.fixture(scope="module")
def second(app, tenancy):
    """Another school of these tests."""
    place = make_place(app, tenancy, "Government College, Ughelli")
    make_shards(tenancy, place)
    return place


def make_shards(tenancy, place):
    """Make the shards of a school, as nodes have them: a table's on the first and on the second are the same rows."""
    schema = schema_name(place.id)
    views = [
        f'CREATE VIEW "{schema}".{table}_{number} AS SELECT * FROM "{schema}".{table};'
        f'GRANT SELECT, INSERT, UPDATE, DELETE ON "{schema}".{table}_{number} TO "{schema}"'
        for table in TABLES
        for number in (1, 2)
    ]
    execute(tenancy.admin_url, ";".join(views))


@pytest.fixture
def cluster(placed, tenancy, place, monkeypatch):
    """The cluster, with the school on its first node."""
    cluster = Cluster(tenancy.admin_url, {1: Node("one", 5432), 2: Node("two", 5432)})
    cluster.move(place, 1)
    nodes = placed.extensions["placement"]
    on_its_own = nodes.make_engine
    # Both names are of the tests' server; any other is of nobody's.
    monkeypatch.setattr(
        nodes,
        "make_engine",
        lambda node, login: on_its_own(None if node in cluster.nodes.values() else node, login),
    )
    monkeypatch.setattr(nodes, "locate", cluster.locate)
    nodes.forget(place.id)
    return cluster


@pytest.fixture
def there(placed, document, place):
    """The school's administrator at the application on nodes."""
    return ApiClient(placed, document, place.admin_token, place.id)


def test_the_coordinator_is_asked_once_where_a_school_is(cluster, there):
    for _ in range(3):
        there.ok(there.get("/classrooms"))

    assert cluster.asked == 1


@pytest.mark.parametrize("write", [False, True])
def test_a_school_that_was_moved_is_found_on_its_new_node_and_nothing_is_done_twice(
    cluster, there, place, write
):
    name = uuid4().hex
    there.ok(there.get("/classrooms"))
    cluster.move(place, 2)

    if write:
        there.ok(there.post("/classrooms", {"name": name, "level": "x"}))
        named = [room["name"] for room in there.ok(there.get("/classrooms"))]
        assert named.count(name) == 1
    else:
        there.ok(there.get("/classrooms"))
    assert cluster.asked == 2
    there.ok(there.get("/classrooms"))
    assert cluster.asked == 2


def test_a_workbook_of_a_school_that_was_moved_is_read_on_its_new_node(cluster, there, place):
    there.ok(there.get("/classrooms"))
    cluster.move(place, 2)

    assert there.get("/students/import-template").status_code == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_while_nobody_knows_where_a_school_is_it_is_503(cluster, there, place, method):
    cluster.move(place, 2, said=1)

    answer = (
        there.get("/classrooms")
        if method == "GET"
        else there.post("/classrooms", {"name": "x", "level": "x"})
    )

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "2"
    assert answer.get_json()["message"] == "This school is being moved. Try again shortly."
    # The next one asks again.
    cluster.move(place, 1)
    there.ok(there.get("/classrooms"))


def test_a_node_that_is_away_costs_its_schools_alone_and_is_asked_for_again(
    cluster, placed, there, document, place, second
):
    cluster.said[second.id] = Location(cluster.nodes[1], shards_of(1))
    nodes = placed.extensions["placement"]
    other = ApiClient(placed, document, second.admin_token, second.id)
    other.ok(other.get("/classrooms"))
    cluster.said[place.id] = Location(Node("127.0.0.1", 1), shards_of(1))
    nodes.forget(place.id)

    away = there.get("/classrooms")

    assert away.status_code == 503
    assert away.get_json()["message"] == "The database can't be reached. Try again shortly."
    other.ok(other.get("/classrooms"))
    cluster.move(place, 1)
    there.ok(there.get("/classrooms"))


@pytest.fixture
def no_registry(cluster, placed, monkeypatch):
    """Takes the coordinator away: nobody is told where a school is, and nothing of the registry is read."""

    def away(_school_id=None):
        raise RegistrySilent

    def take():
        monkeypatch.setattr(cluster, "locate", away)
        monkeypatch.setattr(placed.extensions["placement"], "locate", away)
        monkeypatch.setattr(placed.extensions["registry"], "connect", away)

    return take


def test_while_the_coordinator_is_away_schools_are_where_they_were_last(
    cluster, placed, there, place, no_registry
):
    """Also after an answer that needed the registry, and failed; and users sign in."""
    credentials = {"username": "admin", "password": PASSWORD}
    there.ok(there.post("/users/login", credentials))
    no_registry()
    placed.extensions["school-service"]._schools._fresh._values.clear()

    lgas = there.get("/lgas")
    placed.extensions["placement"].forget(place.id)  # as any server does that can't be reached

    assert (lgas.status_code, lgas.headers["Retry-After"]) == (503, "5")
    for _ in range(2):
        there.ok(there.get("/classrooms"))
        there.ok(there.post("/classrooms", {"name": uuid4().hex, "level": "x"}))
        signed_in = there.ok(there.post("/users/login", credentials))
        assert signed_in["user"]["school"]["name"] == "Barewa College, Zaria"


def test_while_the_coordinator_is_away_a_school_that_was_moved_is_503_and_no_other_schools_rows(
    cluster, placed, there, place, no_registry
):
    there.ok(there.get("/classrooms"))
    no_registry()
    cluster.move(place, 2)

    assert there.get("/classrooms").status_code == 503
    assert there.post("/classrooms", {"name": uuid4().hex, "level": "x"}).status_code == 503


def test_while_the_coordinator_is_away_a_school_that_nobody_asked_for_before_is_503(
    placed, document, cluster, second, no_registry
):
    placed.extensions["placement"]._locations.pop(second.id, None)
    no_registry()

    answer = ApiClient(placed, document, second.admin_token, second.id).get("/classrooms")

    assert (answer.status_code, answer.get_json()["message"]) == (
        503,
        "The database can't be reached. Try again shortly.",
    )


def test_a_request_that_the_registry_fails_says_so_in_the_log(placed, there, no_registry, logs):
    there.ok(there.get("/classrooms"))
    no_registry()

    assert there.get("/lgas").status_code == 503

    assert logs()[-1]["cause"] == "registry_silent"


def test_health_stays_ready_while_nodes_answer_and_the_coordinator_does_not(cluster, placed, there, logs):
    there.ok(there.get("/classrooms"))
    stranger = there.using(token=None, school=None)
    assert stranger.get("/health/ready").status_code == 200
    with placed.app_context():
        engines = db.engines
    nobody = create_engine("postgresql+psycopg2://x:y@127.0.0.1:1/x")
    health, engines[HEALTH_BIND] = engines[HEALTH_BIND], nobody
    try:
        assert stranger.get("/health/ready").status_code == 200
        assert "the database does not answer" not in [line["message"] for line in logs()]
    finally:
        engines[HEALTH_BIND] = health


def test_a_school_that_is_on_no_node_is_asked_for_each_time_at_the_coordinator(cluster, placed):
    nodes, nobody = placed.extensions["placement"], uuid4()

    engines = {nodes.engine_of(nobody) for _ in range(3)}

    assert engines == {nodes.engines_by_server()["coordinator"]}
    assert (cluster.asked, nodes.server_of(nobody), nodes.first_shard(nobody)) == (3, None, None)


def test_both_reads_and_writes_say_in_their_one_message_which_shard_is_meant(cluster, placed, there, place):
    options = placed.extensions["school-service"].binding_options

    assert options.entry.location(place.id) == 1
    cluster.move(place, 2)
    assert options.entry.location(place.id) == 1
    placed.extensions["placement"].forget(place.id)
    assert options.entry.location(place.id) == 2
    assert options.entry.location(uuid4()) is None


def test_a_node_is_reached_by_its_own_address_alone():
    url = make_url("postgresql://login:secret@coordinator:1/schools?host=other&port=2&sslmode=require")

    assert Node("worker", 3).at(url) == make_url("postgresql://login:secret@worker:3/schools?sslmode=require")
    assert (str(Node("worker", 3)), str(Node("::1", 3))) == ("worker:3", "[::1]:3")


def test_the_pools_of_nodes_are_named_by_node_and_login(cluster, placed, there):
    there.ok(there.get("/classrooms"))

    assert "one:5432" in placed.extensions["placement"].engines_by_server()


def test_a_clients_grant_is_read_beside_the_switch_of_the_role(
    cluster, placed, tenancy, there, place, second
):
    client = f"robot {uuid4()}"
    with tenancy.admin.begin() as connection:
        create_client(connection, client_id=client, school_ids=[place.id], permissions=["read:classrooms"])
    key = placed.extensions["school-service"].verifier.key
    with placed.app_context():
        token = issue_client_token(key, client, [place.id, second.id])["access_token"]
    robot = there.using(token=token)

    robot.ok(robot.get("/classrooms"))
    assert robot.post("/classrooms", {"name": uuid4().hex, "level": "x"}).status_code == 403
    cluster.move(place, 2)
    robot.ok(robot.get("/classrooms"))
    cluster.said[second.id] = Location(cluster.nodes[2], shards_of(2))
    elsewhere = robot.using(school=second.id)
    assert elsewhere.get("/classrooms").status_code == 403
    with tenancy.admin.begin() as connection:
        revoke_client(connection, client)
    assert robot.get("/classrooms").status_code == 401


def know(cluster, placed, place, *, number=1, but=()):
    """Let the application know the shards of this number, but of some tables."""
    tables = [table for table in TABLES if table not in but]
    execute(cluster.url, "INSERT INTO registry.shards VALUES (%s)", (number,))
    cluster.said[place.id] = Location(cluster.nodes[1], Shards(tables, [number] * len(tables)))
    placed.extensions["placement"].forget(place.id)


@pytest.mark.parametrize("own", [False, True])
def test_the_shards_are_read_and_where_they_were_made_anew_the_next_request_finds_them(
    cluster, placed, there, place, own
):
    path, status = (f"/students/{uuid4()}/results?term=FIRST", 404) if own else ("/classrooms", 200)
    know(cluster, placed, place, number=3)

    assert there.get(path).status_code == 500

    cluster.move(place, 1)
    assert there.get(path).status_code == status


def test_a_school_whose_tables_are_dropped_is_asked_for_again(cluster, tenancy, there, place):
    there.ok(there.get("/classrooms"))
    says = "could not find valid entry for shard 1"
    gone = ENTER_NODE.replace("the school is on another node", says).replace("SC421", "XX000")
    execute(tenancy.admin_url, gone.replace("CREATE", "CREATE OR REPLACE", 1))
    try:
        cluster.move(place, 2)
        asked = cluster.asked
        there.ok(there.get("/classrooms"))
        assert cluster.asked == asked + 1
    finally:
        execute(tenancy.admin_url, ENTER_NODE.replace("CREATE", "CREATE OR REPLACE", 1))
        cluster.move(place, 1)


def test_a_write_is_answered_of_the_shards(cluster, placed, there, place):
    name = uuid4().hex

    room = there.ok(there.post("/classrooms", {"name": name, "level": "x"}))

    assert room in there.ok(there.get("/classrooms"))
    know(cluster, placed, place, number=3)
    assert there.post("/classrooms", {"name": f"{name} again", "level": "x"}).status_code == 500
    cluster.move(place, 1)
    assert f"{name} again" not in {room["name"] for room in there.ok(there.get("/classrooms"))}


def test_a_table_that_came_since_is_asked_for_once(cluster, placed, there, place):
    know(cluster, placed, place, but=["users"])
    there.ok(there.get("/classrooms"))
    cluster.move(place, 1)
    asked = cluster.asked

    for _ in range(2):
        there.ok(there.get("/users"))

    assert cluster.asked == asked + 1


def test_a_table_that_citus_does_not_have_is_read_by_its_name(cluster, placed, place, there):
    know(cluster, placed, place, but=["users"])

    assert there.ok(there.get("/users"))["total"] == 1
