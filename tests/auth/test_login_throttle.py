"""The counts of wrong passwords: in the process, or in a Redis that several processes share."""

from __future__ import annotations

import logging
import shutil
import socket
import subprocess
import sys

import pytest

from school_service.config import ConfigError
from school_service.serving.checks import examine
from tests.client import ApiClient
from tests.conftest import PASSWORD, make_place


def sign_in(api, password):
    return api.post("/users/login", {"username": "admin", "password": password})


@pytest.fixture(scope="module")
def own_place(app, tenancy):
    """A school whose administrator mistypes the password."""
    return make_place(app, tenancy, "Mayflower School, Ikenne")


@pytest.fixture
def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


@pytest.fixture
def redis_address(tmp_path, free_port):
    """The address of a Redis of this test alone."""
    redis = pytest.importorskip("redis", reason="the extra [redis] is not installed")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server is installed")
    command = [program, "--port", str(free_port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            address = f"redis://127.0.0.1:{free_port}"
            retry = redis.retry.Retry(redis.backoff.ConstantBackoff(0.05), 200)
            with redis.from_url(address, retry=retry, retry_on_error=[redis.ConnectionError]) as client:
                client.ping()
            yield address
        finally:
            server.terminate()


@pytest.mark.program
@pytest.mark.operate
def test_processes_that_share_a_redis_count_together(start, document, own_place, redis_address):
    apps = [start(RATE_LIMIT_STORAGE=redis_address) for _ in range(2)]
    apis = [ApiClient(app, document, own_place.admin_token, own_place.id) for app in apps]

    answers = [sign_in(apis[number % 2], f"wrong {number}") for number in range(10)]

    assert [answer.status_code for answer in answers] == [401] * 10
    for api in apis:
        refused = sign_in(api, PASSWORD)
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 60


def test_processes_without_one_count_by_themselves(start, document, own_place):
    apps = [start() for _ in range(2)]
    apis = [ApiClient(app, document, own_place.admin_token, own_place.id) for app in apps]
    for number in range(10):
        assert sign_in(apis[0], f"wrong {number}").status_code == 401

    assert sign_in(apis[0], PASSWORD).status_code == 429
    assert sign_in(apis[1], PASSWORD).status_code == 200


def test_nobody_signs_in_while_the_redis_is_away(start, document, own_place, free_port):
    pytest.importorskip("redis", reason="the extra [redis] is not installed")
    app = start(RATE_LIMIT_STORAGE=f"redis://127.0.0.1:{free_port}")
    api = ApiClient(app, document, own_place.admin_token, own_place.id)

    answer = sign_in(api, PASSWORD)

    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "redis" not in answer.get_data(as_text=True).lower()
    assert api.get("/roles").status_code == 200


@pytest.mark.program
@pytest.mark.operate
def test_a_process_that_its_redis_does_not_let_in_says_so_and_is_not_ready(
    start, document, own_place, redis_address
):
    redis = pytest.importorskip("redis")
    with redis.from_url(redis_address) as client:
        client.config_set("requirepass", "right")
        app = start(RATE_LIMIT_STORAGE=redis_address.replace("//", "//:mistyped@"))
        stranger = ApiClient(app, document)

        (advice,) = [
            advice
            for advice in examine(app, app.extensions["school-service"].settings, threads=1)
            if advice.sentence.startswith("RATE_LIMIT_STORAGE does not let this process in")
        ]
        assert advice.level == logging.ERROR
        assert "mistyped" not in str(advice)
        answer = stranger.get("/health/ready")
        assert (answer.status_code, int(answer.headers["Retry-After"])) == (503, 5)
        health = answer.get_json()
        assert (health["status"], health["database"], health["login_counts"]) == (
            "unavailable",
            "ok",
            "refused",
        )
        assert [stranger.get(path).status_code for path in ("/health", "/health/live")] == [200, 200]

        client.config_set("requirepass", "mistyped")
        assert stranger.ok(stranger.get("/health/ready"))["login_counts"] == "ok"
        # From now on a Redis that refuses is of signing in alone.
        client.config_set("requirepass", "another")
        app.extensions["limiter"].storage.storage.connection_pool.disconnect()
        caller = stranger.using(token=own_place.admin_token, school=own_place.id)
        assert sign_in(caller, PASSWORD).status_code == 503
        assert stranger.get("/health/ready").status_code == 200


def test_a_process_whose_redis_is_away_says_so_and_serves_the_others(start, document, free_port):
    pytest.importorskip("redis", reason="the extra [redis] is not installed")
    app = start(RATE_LIMIT_STORAGE=f"redis://127.0.0.1:{free_port}")
    stranger = ApiClient(app, document)

    told = examine(app, app.extensions["school-service"].settings, threads=1)

    assert any(advice.sentence.startswith("RATE_LIMIT_STORAGE does not answer") for advice in told)
    assert stranger.ok(stranger.get("/health/ready"))["login_counts"] == "ok"


def test_a_redis_without_its_package_stops_the_start(start, monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)

    with pytest.raises(ConfigError, match=r"RATE_LIMIT_STORAGE can't be used: .*'redis'"):
        start(RATE_LIMIT_STORAGE="redis://127.0.0.1")
