"""The database away, busy or of another version: 503 with Retry-After, and the process recovers by itself."""

from __future__ import annotations

import errno
import json
import os
import socket
from contextlib import contextmanager
from dataclasses import replace
from tempfile import gettempdir
from uuid import uuid4

import pytest
from flask.views import MethodView
from sqlalchemy import URL, text

from school_service.app import create_app
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_user_token, own_issuer
from school_service.core.database import db
from school_service.web.blueprint import Blueprint
from tenants.registry.schools import change_school, schema_name
from tests.client import ApiClient, Document
from tests.conftest import dispose, make_place
from tests.postgres import at_schools, on_postgresql_alone
from tests.tenants.installations import end_connections
from tests.threads import run_concurrently
from tests.web.conftest import TakenSchema

AWAY = "The database can't be reached. Try again shortly."
BUSY = "The service is overloaded. Try again shortly."


def assert_away(answer, message):
    body = answer.get_json()
    assert (answer.status_code, body["message"]) == (503, message), body
    assert body["type"] == ("overloaded" if message == BUSY else "unavailable")
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert 1 <= int(answer.headers["Retry-After"]) <= 60


@contextmanager
def running(settings):
    app = create_app(settings)
    try:
        yield app
    finally:
        dispose(app)


def terminate_backends(tenancy):
    """End every connection of the login that serves, and see them end."""
    servers = {tenancy.admin_url, at_schools(tenancy.admin_url)}
    assert sum(end_connections(server, tenancy.placement.login) for server in servers)


@pytest.fixture(scope="module")
def own_place(app, tenancy):
    return make_place(app, tenancy, "Abeokuta Grammar School")


@pytest.fixture
def caller(app, document, own_place):
    """The administrator of a school of this module, whose requests commit, with a connection in the pool."""
    caller = ApiClient(app, document, own_place.admin_token, own_place.id)
    caller.ok(caller.get("/classrooms"))
    return caller


# Nobody at the address


@pytest.fixture(scope="module")
def away(settings):
    """An application whose database is at a closed port."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    address = URL.create("postgresql", "serving", "secret", "127.0.0.1", port, "school")
    with running(replace(settings, database_url=address)) as away:
        yield away


@pytest.fixture
def lost(settings, app, away, document):
    """A client of that application."""
    school = uuid4()
    with app.app_context():
        key = SigningKey.from_pem(settings.signing_key)
        token = issue_user_token(key, uuid4(), school, 1)["access_token"]
        # A server has read it at its start.
        away.config["JWT_ENCODE_ISSUER"] = own_issuer()
    return ApiClient(away, document, token, school)


@pytest.mark.parametrize("path", ["/classrooms", "/users", "/lgas", "/roles"])
def test_while_the_database_is_away_reading_is_503(lost, path):
    assert_away(lost.get(path), AWAY)


def test_while_the_database_is_away_writing_is_503(lost):
    assert_away(lost.post("/classrooms", {"name": "JSS 1", "level": "Junior"}), AWAY)


def test_while_the_database_is_away_machines_get_no_token(lost):
    credentials = {
        "client_id": "a",
        "client_secret": "b",
        "audience": "school-service",
        "grant_type": "client_credentials",
    }
    assert_away(lost.using(token=None, school=None).post("/auth/oauth/token", credentials), AWAY)


def test_the_log_has_the_reason_and_cause_of_a_database_that_can_not_be_used(lost, logs):
    assert_away(lost.get("/classrooms"), AWAY)
    lost.using(token=None, school=None).get("/health")

    lines = logs()
    (failed,) = [line for line in lines if line["message"] == "database not available"]
    (checked,) = [line for line in lines if line["message"] == "the database does not answer"]
    assert failed["cause"] == "database_away"
    assert failed["reason"].startswith("OperationalError: connection to server at")
    assert checked["reason"].startswith("OperationalError: connection to server at")
    asked, health = [line for line in lines if line["logger"] == "school_service.access"]
    assert (asked["status"], asked["cause"]) == (503, "database_away")
    assert (health["status"], "cause" in health) == (503, False)
    assert "secret" not in json.dumps(lines)


@pytest.mark.parametrize("path", ["/health", "/health/ready"])
def test_while_the_database_is_away_health_says_so(lost, path):
    answer = lost.using(token=None, school=None).get(path)

    assert (answer.status_code, answer.get_json()["database"]) == (503, "unreachable")
    assert int(answer.headers["Retry-After"]) >= 1


def test_until_the_database_was_reached_once_no_token_is_judged(lost):
    lost.app.config["JWT_ENCODE_ISSUER"] = None

    assert_away(lost.get("/classrooms"), AWAY)
    assert lost.using(token="nonsense").get("/classrooms").status_code == 401


def test_while_the_database_is_away_tokens_are_still_judged_and_pages_shown(lost):
    assert lost.using(token="nonsense").get("/classrooms").status_code == 401
    assert lost.using(school=None).get("/classrooms").status_code == 400
    assert lost.get("/docs").status_code == 200
    assert lost.get("/nothing").status_code == 404


# Connections that die


@pytest.mark.parametrize(
    "path",
    [
        "/classrooms",
        "/states",
        "/users",
        # On Citus the service does not ask the registry's server for them.
        *(pytest.param(path, marks=on_postgresql_alone) for path in ("/health", "/health/ready")),
    ],
)
def test_after_a_restart_of_the_database_reading_simply_works(caller, tenancy, path):
    for _ in range(2):
        terminate_backends(tenancy)
        assert caller.get(path).status_code == 200


def test_after_a_restart_of_the_database_writing_simply_works_and_happens_once(caller, tenancy):
    terminate_backends(tenancy)
    name = f"Room {uuid4()}"

    made = caller.ok(caller.post("/classrooms", {"name": name, "level": "Junior"}))

    assert [room for room in caller.ok(caller.get("/classrooms")) if room["name"] == name] == [made]


def test_after_a_restart_of_the_database_every_connection_of_the_pool_recovers(caller, tenancy):
    def ask(_number):
        return caller.using().get("/classrooms").status_code

    assert run_concurrently(6, ask) == [200] * 6
    terminate_backends(tenancy)
    assert run_concurrently(6, ask) == [200] * 6


@pytest.fixture(scope="module")
def middle(settings, tenancy, own_place):
    """A client of an application with an operation in whose middle something happens: `app.config["MIDDLE"]()`."""
    with running(settings) as app:
        probe = Blueprint("middle", __name__, description="Fails in the middle.")

        @probe.route("/middle")
        class Middle(MethodView):
            @probe.requires(None)
            @probe.returns(TakenSchema)
            def post(self):
                """Work, let something happen, work again."""
                db.session.execute(text("SELECT 1"))
                app.config["MIDDLE"]()
                return {"taken": {"two": str(db.session.execute(text("SELECT 2")).scalar_one())}}

        app.extensions["flask-smorest"]["apis"][""]["ext_obj"].register_blueprint(probe)
        yield ApiClient(app, Document(app), own_place.admin_token, own_place.id)


def test_a_connection_that_dies_within_a_request_is_503_and_the_next_works(middle, tenancy):
    middle.app.config["MIDDLE"] = lambda: terminate_backends(tenancy)

    assert_away(middle.post("/middle"), AWAY)

    middle.app.config["MIDDLE"] = lambda: None
    assert middle.ok(middle.post("/middle")) == {"taken": {"two": "2"}}


@pytest.mark.parametrize(
    ("statement", "state", "cause"),
    [
        ("SET LOCAL statement_timeout TO 1; SELECT pg_sleep(10)", "57014", "statement_timeout"),
        ("SET LOCAL lock_timeout TO 1; SELECT * FROM classrooms FOR UPDATE", "55P03", "lock_timeout"),
    ],
)
def test_a_statement_that_takes_too_long_is_503(
    middle, caller, tenancy, own_place, logs, statement, state, cause
):
    caller.ok(caller.post("/classrooms", {"name": f"Room {uuid4()}", "level": "Junior"}))
    middle.app.config["MIDDLE"] = lambda: db.session.execute(text(statement))

    with tenancy.admin.begin() as holding:
        schema = f"school_{own_place.id.hex}"
        holding.execute(text(f'LOCK TABLE "{schema}".classrooms'))
        answer = middle.post("/middle")

    assert_away(answer, BUSY)
    lines = logs()
    (failed,) = [line for line in lines if line["message"] == "database not available"]
    assert (failed["sqlstate"], failed["cause"]) == (state, cause)
    assert f": {state}: canceling statement due to " in failed["reason"]
    assert lines[-1]["cause"] == cause


# No connection to be had


@on_postgresql_alone
def test_when_every_connection_is_taken_the_answer_is_503_and_then_it_works(settings, document, own_place):
    with running(replace(settings, pool_size=1)) as app:
        caller = ApiClient(app, document, own_place.admin_token, own_place.id)
        with app.app_context():
            engine = db.engine
        # Nobody who runs the tests has to wait as long as a request does.
        engine.pool.connections.timeout = 0.05
        with engine.connect():
            assert_away(caller.get("/classrooms"), BUSY)
            assert caller.get("/health").status_code == 200
        assert caller.get("/classrooms").status_code == 200


def test_when_the_database_takes_no_more_connections_the_answer_is_503(
    settings, tenancy, document, own_place
):
    login = f'"{tenancy.placement.login}"'
    with running(settings) as app:
        caller = ApiClient(app, document, own_place.admin_token, own_place.id)
        with tenancy.admin.begin() as connection:
            connection.execute(text(f"ALTER ROLE {login} CONNECTION LIMIT 0"))
        try:
            assert_away(caller.get("/classrooms"), AWAY)
        finally:
            with tenancy.admin.begin() as connection:
                connection.execute(text(f"ALTER ROLE {login} CONNECTION LIMIT -1"))
        assert caller.get("/classrooms").status_code == 200


@on_postgresql_alone
def test_connections_that_are_exhausted_are_told_from_a_database_that_is_away(
    settings, tenancy, document, own_place, logs
):
    """A caller with a connection is served, and health says so: nobody would be helped by another process."""
    login = f'"{tenancy.placement.login}"'
    with running(settings) as app:
        caller = ApiClient(app, document, own_place.admin_token, own_place.id)
        with tenancy.admin.begin() as connection:
            connection.execute(text(f"ALTER ROLE {login} CONNECTION LIMIT 0"))
        try:
            assert_away(caller.get("/classrooms"), AWAY)
            (line,) = [line for line in logs() if line["message"] == "database not available"]
            assert (line["sqlstate"], line["cause"]) == ("53300", "connections_exhausted")
            # No connection, so nobody is served.
            assert caller.get("/health/ready").status_code == 503
            with tenancy.admin.begin() as connection:
                connection.execute(text(f"ALTER ROLE {login} CONNECTION LIMIT -1"))
            assert caller.get("/classrooms").status_code == 200
            with tenancy.admin.begin() as connection:
                connection.execute(text(f"ALTER ROLE {login} CONNECTION LIMIT 0"))
            assert caller.get("/classrooms").status_code == 200
            assert caller.get("/health/ready").status_code == 200
            said = [line["message"] for line in logs()]
            assert said.count("the database takes no more connections") == 1
        finally:
            with tenancy.admin.begin() as connection:
                connection.execute(text(f"ALTER ROLE {login} CONNECTION LIMIT -1"))


@pytest.fixture
def without_its_role(tenancy, own_place):
    """The school as it is where a database was restored without the server's roles."""
    role = schema_name(own_place.id)
    for name, other in ((role, f"{role}_away"), (f"{role}_away", role)):
        with tenancy.admin.begin() as connection:
            connection.execute(text(f'ALTER ROLE "{name}" RENAME TO "{other}"'))
        if name == role:
            yield


def test_a_school_whose_role_is_not_there_is_503_with_its_cause_in_the_log(caller, without_its_role, logs):
    answers = [caller.get("/classrooms"), caller.post("/classrooms", {"name": "JSS 9", "level": "Junior"})]

    for answer in answers:
        assert_away(answer, "This school can't be entered just now. Try again shortly.")
    lines = logs()
    asked = [line for line in lines if line["logger"] == "school_service.access"]
    assert [line["cause"] for line in asked] == ["school_role_unknown"] * 2
    warned = [line for line in lines if line["level"] == "WARNING"]
    assert all("restored without the server's roles" in line["message"] for line in warned)
    assert len(warned) == 2


# No room for files


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_where_there_is_no_room_for_temporary_files_it_is_503(middle, logs, number):
    def fill():
        raise OSError(number, os.strerror(number))

    middle.app.config["MIDDLE"] = fill

    assert_away(middle.post("/middle"), "There is no room for files just now. Try again shortly.")

    lines = logs()
    assert lines[-1]["cause"] == "temporary_files"
    (failed,) = [line for line in lines if line["level"] == "ERROR"]
    assert failed["message"] == "there is no room for temporary files"
    assert failed["folder"] == gettempdir()


# Schools that are closed


def test_a_suspended_school_is_403_until_it_is_opened_again(caller, tenancy, own_place):
    with tenancy.admin.begin() as connection:
        change_school(connection, own_place.id, status="suspended")

    refused = [caller.get("/classrooms"), caller.post("/classrooms", {})]

    with tenancy.admin.begin() as connection:
        change_school(connection, own_place.id, status="active")
    for answer in refused:
        assert (answer.status_code, answer.get_json()["message"]) == (403, "This school is suspended.")
        assert answer.get_json()["type"] == "school-suspended"
    assert caller.get("/classrooms").status_code == 200


def test_a_school_at_a_revision_that_the_code_can_not_serve_is_503_until_it_is_upgraded(
    caller, tenancy, own_place
):
    with tenancy.admin.begin() as connection:
        revision = connection.execute(
            text("SELECT revision FROM registry.schools WHERE id = :id"), {"id": own_place.id}
        ).scalar_one()
        change_school(connection, own_place.id, revision="t9999")

    refused = [caller.get("/classrooms"), caller.post("/classrooms", {})]

    with tenancy.admin.begin() as connection:
        change_school(connection, own_place.id, revision=revision)
    for answer in refused:
        assert_away(answer, "This school is being upgraded. Try again shortly.")
        assert "t9999" not in answer.get_data(as_text=True)
    assert caller.get("/classrooms").status_code == 200
