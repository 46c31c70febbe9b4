"""Metrics: counters, gauges read when they are asked for, and no wait for a silent database."""

from __future__ import annotations

import socket
import threading
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import delete, insert
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from school_service.app import create_app
from school_service.core.database import db
from school_service.core.errors import Busy
from school_service.core.shares import Shares
from school_service.printing.printers import NotPrinted
from school_service.serving import ServingError, monitoring, scraping
from school_service.serving.monitoring import (
    BUSIEST,
    SCHOOLS_COUNTED,
    STALE_AFTER,
    WINDOW,
    BusiestSchools,
    DatabaseState,
)
from school_service.serving.scraping import serve_metrics
from school_service.web.error_responses import ALL_CAUSES
from school_service.web.request_log import WAITED, Answered
from tenants.migrations.migration_sql import head, revisions
from tenants.registry.schools import backups, change_school, failed_migrations, record_backup
from tests.client import ApiClient, Document
from tests.conftest import PASSWORD, dispose, make_place
from tests.threads import run_concurrently

ROOT = Path(__file__).parents[2]


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope="module")
def measured_app(settings, tenancy):
    """An application with metrics, on the tests' database."""
    app = create_app(replace(settings, pool_size=1))
    yield app
    dispose(app)


@pytest.fixture
def metrics(measured_app):
    return measured_app.extensions["metrics"]


@pytest.fixture(scope="module")
def own_place(app, tenancy):
    """A school of this module: its requests commit."""
    return make_place(app, tenancy, "Barewa College, Zaria")


@pytest.fixture
def caller(measured_app, document, own_place):
    return ApiClient(measured_app, document, own_place.admin_token, own_place.id)


def read(metrics):
    """Read the metrics as a scrape does: by name, then labels, which are in alphabetical order."""
    figures = {}
    for family in text_string_to_metric_families(generate_latest(metrics.registry).decode()):
        for sample in family.samples:
            name = sample.name.removeprefix("school_service_")
            figures.setdefault(name, {})[tuple(sample.labels.values())] = sample.value
    return figures


@contextmanager
def counting(metrics):
    """Yield the additions of the block to the counters."""
    before, added = read(metrics), {}
    yield added
    for name, samples in read(metrics).items():
        for labels, value in samples.items():
            more = value - before.get(name, {}).get(labels, 0)
            if more:
                added.setdefault(name, {})[labels] = more


# Requests


def test_requests_are_counted_by_route_method_and_status(caller, metrics):
    with counting(metrics) as added:
        caller.get("/classrooms")
        caller.get(f"/users/{uuid4()}")
        caller.get(f"/users/{uuid4()}")
        caller.post("/classrooms", {})
        caller.get("/nothing/at/all")
        caller.using(token=None).get("/classrooms")
        caller.request("BREW", "/classrooms")

    assert added["request_seconds_count"] == {
        ("GET", "/classrooms", "200"): 1,
        ("GET", "/users/{id}", "404"): 2,
        ("POST", "/classrooms", "422"): 1,
        ("GET", "none", "404"): 1,
        ("GET", "/classrooms", "401"): 1,
        # Anybody can make up a method.
        ("other", "none", "405"): 1,
    }
    assert 0 < added["request_seconds_sum"]["GET", "/classrooms", "200"] < 60
    assert added["queue_seconds_count"] == {(): 7}


def test_the_time_in_the_queue_comes_from_the_server(caller, metrics):
    with counting(metrics) as added:
        caller.get("/health/live", environ_base={WAITED: 2.0})

    assert added["queue_seconds_sum"] == {(): 2.0}
    assert added["queue_seconds_bucket"] == {("2.5",): 1, ("5.0",): 1, ("10.0",): 1, ("+Inf",): 1}


def test_the_causes_of_503_are_counted(caller, metrics, monkeypatch):
    def busy(_school):
        raise Busy

    with counting(metrics) as added, monkeypatch.context() as patch:
        patch.setattr(caller.app.extensions["school-service"].shares, "of", busy)
        assert caller.get("/classrooms").status_code == 503
        metrics.observe(Answered(503, waited=0.5, cause="queue_full"))
        metrics.observe(Answered(413, waited=0.5))

    assert added["unavailable_total"] == {("school_share",): 1, ("queue_full",): 1}
    assert added["request_seconds_count"] == {
        ("GET", "/classrooms", "503"): 1,
        ("other", "none", "503"): 1,
        ("other", "none", "413"): 1,
    }


def test_attempts_to_sign_in_are_counted_by_their_outcome(caller, metrics):
    def sign_in(username, password):
        return caller.post("/users/login", {"username": username, "password": password}).status_code

    credentials = {
        "client_id": str(uuid4()),
        "client_secret": "wrong",
        "audience": "school-service",
        "grant_type": "client_credentials",
    }
    stranger = f"nobody {uuid4()}"
    with counting(metrics) as added:
        assert sign_in("admin", PASSWORD) == 200
        assert [sign_in(stranger, "wrong") for _ in range(11)] == [401] * 10 + [429]
        assert caller.using(token=None).post("/auth/oauth/token", credentials).status_code == 401
        # No attempts: they say no name, or come with no token.
        assert caller.post("/users/login", {}).status_code == 422
        assert caller.using(token=None).post("/users/login", {}).status_code == 401

    assert added["sign_ins_total"] == {
        ("user", "succeeded"): 1,
        ("user", "wrong"): 10,
        ("user", "too_many"): 1,
        ("client", "wrong"): 1,
    }


# Gauges


def test_waiting_requests_are_counted(metrics, monkeypatch):
    assert read(metrics)["queue_length"] == {(): 0}

    monkeypatch.setattr(Shares, "count_waiting", lambda _self: 2)
    monkeypatch.setattr(metrics, "queue", type("Waiting", (), {"count_waiting": lambda _self: 3})())

    assert read(metrics)["queue_length"] == {(): 5}


def test_the_use_of_the_pools_and_requests_waiting_for_a_connection(caller, metrics, measured_app):
    caller.get("/classrooms")
    with measured_app.app_context():
        engine = db.engines[None]
    taken = threading.Event()
    with counting(metrics) as added:
        connection = engine.raw_connection()
        used = read(metrics)

        def look():
            while not engine.pool.connections.waits.waiting:
                pass
            waiting = read(metrics)["pool_waiting"]
            taken.set()
            connection.close()
            return waiting

        answers = run_concurrently(
            2, lambda number: look() if number else caller.using().get("/classrooms").status_code
        )

    assert taken.is_set()
    assert (used["pool_connections"]["schools", "in_use"], used["pool_connections"]["schools", "idle"]) == (
        1,
        0,
    )
    assert used["pool_waiting"] == {("schools",): 0}
    assert answers == [200, {("schools",): 1}]
    assert added["pool_wait_seconds_count"] == {("schools",): 1}
    assert 0 < added["pool_wait_seconds_sum"][("schools",)] < 60
    idle = read(metrics)
    assert (idle["pool_connections"]["schools", "in_use"], idle["pool_waiting"]) == (0, {("schools",): 0})
    assert {pool for pool, _ in idle["pool_connections"]} == {"schools", "registry", "health", "metrics"}


def test_schools_are_counted_by_how_far_they_are(metrics, tenancy, own_place):
    def count(revision):
        with tenancy.admin.begin() as connection:
            change_school(connection, own_place.id, revision=revision)
        metrics.database._begun = None
        figures = read(metrics)
        assert figures["database_up"] == {(): 1}
        return {state: value for (state,), value in figures["schools"].items()}

    before = count(head())  # other tests have schools of other revisions
    fewer = {**before, "current": before["current"] - 1}
    try:
        assert count(revisions()[-2]) == {**fewer, "behind": before["behind"] + 1}
        assert count("t9999") == {**fewer, "newer": before["newer"] + 1}
    finally:
        assert count(head()) == before


def test_failed_migrations_and_the_age_of_backups_are_read_from_the_registry(
    metrics, tenancy, own_place, monkeypatch
):
    # However many schools other tests have made here.
    monkeypatch.setattr(monitoring, "BACKUPS_NAMED", 10**6)
    school = (str(own_place.id),)

    def look():
        metrics.database._begun = None
        return read(metrics)

    before = look()
    # Without a backup a school is as old as it is.
    assert 0 < before["backup_age_seconds"][school] < 3600
    with tenancy.admin.begin() as connection:
        record_backup(connection, own_place.id, datetime.now(UTC) - timedelta(hours=40), "0" * 64)
        connection.execute(
            insert(failed_migrations).values(
                school_id=own_place.id, revision=head(), error="no", failed_at=datetime.now(UTC)
            )
        )
    try:
        after = look()
        assert 40 * 3600 <= after["backup_age_seconds"][school] < 41 * 3600
        assert after["failed_migrations"][()] == before["failed_migrations"][()] + 1
        with tenancy.admin.begin() as connection:
            record_backup(connection, own_place.id, datetime.now(UTC), "1" * 64)
        assert look()["backup_age_seconds"][school] < 3600
    finally:
        with tenancy.admin.begin() as connection:
            for table in (failed_migrations, backups):
                connection.execute(delete(table).where(table.c.school_id == own_place.id))


def test_refusals_of_shares_and_outcomes_of_printers_are_counted(metrics, measured_app, monkeypatch):
    printers = measured_app.extensions["printers"]
    nobody = Shares(1, waiting=0, patience=0, name="printers")
    with counting(metrics) as added:
        monkeypatch.setattr(printers, "_turns", nobody)
        with nobody.of("a"), pytest.raises(Busy):
            printers.print({}, "a")
        for error, outcome in ((None, "printed"), (Busy, "too_slow"), (NotPrinted, "failed")):

            def run(_task, error=error):
                if error:
                    raise error
                return b"file"

            monkeypatch.setattr(printers, "_run", run)
            with suppress(Busy, NotPrinted):
                assert (printers.print({}, "b"), outcome) == (b"file", "printed")

    assert added["refused_by_shares_total"] == {("printers",): 1}
    assert added["prints_total"] == {("printed",): 1, ("too_slow",): 1, ("failed",): 1}
    assert read(metrics)["printers_waiting"] == {(): 0}


def test_the_age_of_the_providers_keys(settings, tenancy, metrics):
    assert "provider_keys_age_seconds" not in read(metrics)

    app = create_app(replace(settings, auth_url="https://login.example.org"))
    outside = app.extensions["metrics"]
    keys = app.extensions["school-service"].verifier.outside_keys
    try:
        assert read(outside)["provider_keys_age_seconds"] == {(): float("inf")}
        keys._fetched_at = keys._clock() - 100
        assert 100 <= read(outside)["provider_keys_age_seconds"][()] < 200
    finally:
        dispose(app)


def test_without_a_port_there_are_no_metrics(settings):
    app = create_app(replace(settings, metrics_port=None))

    assert app.observe is None
    with app.app_context():
        assert "metrics" not in db.engines


# The database


def counts():
    return {"t0001": 3}


def test_the_database_is_asked_at_most_so_often(clock):
    asked = []

    def ask():
        asked.append(clock.now)
        return counts()

    state = DatabaseState(ask, clock)
    for _ in range(3):
        state.refresh()
    assert (asked, state.read()) == ([1000.0], (True, counts()))

    clock.now += monitoring.ASK_AFTER
    state.refresh()
    assert len(asked) == 2


@pytest.mark.parametrize("error", [OperationalError("SELECT", {}, Exception("it is away")), PoolTimeout()])
def test_a_failing_database_is_down_and_its_counts_are_forgotten_after_a_while(clock, logs, error):
    answers = [counts, counts]

    def ask():
        if answers:
            return answers.pop()()
        raise error

    state = DatabaseState(ask, clock)
    state.refresh()
    clock.now += STALE_AFTER
    state.refresh()
    assert state.read() == (True, counts())
    clock.now += STALE_AFTER
    state.refresh()
    assert state.read() == (False, counts())
    clock.now += 1
    assert state.read() == (False, None)
    assert "the schools can't be counted for the metrics" in [line["message"] for line in logs()]


def test_nobody_waits_for_a_database_that_is_silent_and_one_thread_alone_asks(clock, monkeypatch):
    monkeypatch.setattr(monitoring, "PATIENCE", 0.01)
    go, begun, asked = threading.Event(), threading.Event(), []

    def ask():
        asked.append(1)
        begun.set()
        assert go.wait(60)
        return counts()

    state = DatabaseState(ask, clock)
    for _ in range(5):
        state.refresh()
        clock.now += monitoring.ASK_AFTER
    assert begun.wait(60)
    assert (len(asked), state.read()) == (1, (False, None))

    asking = state._asking
    go.set()
    asking.join(60)
    assert state.read() == (True, counts())


# The busiest schools


def test_the_busiest_schools_of_the_last_window_are_named(clock):
    busiest = BusiestSchools(clock)
    for number in range(BUSIEST + 5):
        for _ in range(number + 1):
            busiest.count(f"school {number:02}")
    assert busiest.top() == []

    clock.now += WINDOW
    assert busiest.top() == [(f"school {number:02}", number + 1) for number in range(14, 4, -1)]
    busiest.count("another")
    clock.now += WINDOW
    assert busiest.top() == [("another", 1)]
    clock.now += WINDOW
    assert busiest.top() == []
    busiest.count("another")
    clock.now += 5 * WINDOW
    assert busiest.top() == []


def test_as_many_schools_as_there_may_be_take_no_more_room(clock):
    busiest = BusiestSchools(clock)
    for number in range(SCHOOLS_COUNTED + 100):
        busiest.count(str(number))
    busiest.count("0")
    assert len(busiest._counts) == SCHOOLS_COUNTED

    clock.now += WINDOW
    assert busiest.top()[0] == ("0", 2)


def test_only_requests_of_admitted_callers_count_for_a_school(
    measured_app, caller, own_place, other_place, monkeypatch, clock
):
    busiest = BusiestSchools(clock)
    monkeypatch.setattr(measured_app.extensions["metrics"], "busiest", busiest)
    caller.get("/classrooms")
    caller.using(school=str(own_place.id).upper()).get("/classrooms")
    caller.using(school=None).get("/roles")
    caller.using(school=other_place.id).get("/classrooms")
    caller.using(token="nonsense", school=other_place.id).get("/classrooms")
    caller.using(token=None, school=other_place.id).get("/health")
    clock.now += WINDOW

    assert busiest.top() == [(str(own_place.id), 3)]


# Over HTTP


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_metrics_are_served_on_an_address_of_their_own(metrics, caller):
    caller.get("/classrooms")
    with serve_metrics(metrics, "127.0.0.1", 0) as url:
        status, kind, text = get(url)

    assert (status, kind.startswith("text/plain; version=")) == (200, True)
    assert 'school_service_request_seconds_count{method="GET",route="/classrooms",status="200"}' in text
    assert "process_resident_memory_bytes" in text
    assert "python_gc" not in text


def test_connections_that_say_nothing_keep_nobody_out_for_long(metrics, monkeypatch):
    monkeypatch.setattr(scraping._Handler, "timeout", 0.05)
    with serve_metrics(metrics, "127.0.0.1", 0) as url:
        host, port = url.removeprefix("http://").removesuffix("/metrics").split(":")
        silent = [socket.create_connection((host, int(port)), timeout=60) for _ in range(10)]
        try:
            for connection in silent:
                assert connection.recv(1) == b""
            assert get(url)[0] == 200
        finally:
            for connection in silent:
                connection.close()


def test_a_port_that_is_taken_is_an_error_of_the_start_and_elsewhere_a_warning(metrics, logs):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(ServingError, match=f"METRICS_PORT {port} of 127.0.0.1 can't be taken: address"),
            serve_metrics(metrics, "127.0.0.1", port),
        ):
            pass
        scraping.serve_in_background(metrics, "127.0.0.1", port)

    (warning,) = [line for line in logs() if line["message"] == "the metrics of this process are not served"]
    assert warning["port"] == port


def test_metrics_do_not_change_the_document(settings, document):
    assert Document(create_app(replace(settings, metrics_port=None))).spec == document.spec


def test_each_metric_and_each_cause_is_in_the_page_of_operators(metrics):
    page = (ROOT / "docs/operators.md").read_text(encoding="utf-8")
    families = text_string_to_metric_families(generate_latest(metrics.registry).decode())
    # The parser takes the ending of a counter from its name.
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}

    own = {name for name in names if name.startswith("school_service_")}
    assert len(own) >= 10
    assert {name for name in own if f"`{name}`" not in page} == set()
    assert {cause for cause in ALL_CAUSES if f"`{cause}`" not in page} == set()


def test_every_cause_and_outcome_is_there_from_the_start(settings):
    app = create_app(settings)
    metrics = app.extensions["metrics"]
    samples = {}
    for family in text_string_to_metric_families(generate_latest(metrics.registry).decode()):
        samples[family.name] = [(tuple(sample.labels.values()), sample.value) for sample in family.samples]

    assert dict(samples["school_service_unavailable"]) == dict.fromkeys(((cause,) for cause in ALL_CAUSES), 0)
    assert len(samples["school_service_sign_ins"]) == 10
    dispose(app)
