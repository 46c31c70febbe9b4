"""Health: its answers, and that a silent database holds one thread alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from school_service import __version__
from school_service.features.health.service import Check
from tenants.migrations.migration_sql import registry_head, served_revisions

WELL = {
    "status": "ok",
    "version": __version__,
    "commit": None,  # of a work tree
    "revisions": {"registry": registry_head(), "schools": list(served_revisions())},
    "database": "ok",
}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/health", WELL),
        ("/health/ready", {**WELL, "login_counts": "ok"}),
        ("/health/live", {"status": "ok", "version": __version__}),
    ],
)
def test_a_service_that_is_well_says_so_to_anybody(api, path, body):
    stranger = api.using(token=None, school=None)

    assert stranger.ok(stranger.get(path)) == body
    assert stranger.using(token="nonsense", school="nonsense").get(path).status_code == 200
    assert stranger.post(path, {}).status_code == 405


def test_the_process_is_alive_while_the_database_is_not(api, app, monkeypatch):
    monkeypatch.setitem(app.extensions, "health", Check(lambda: False))
    stranger = api.using(token=None, school=None)

    for path, more in (("/health", {}), ("/health/ready", {"login_counts": "ok"})):
        answer = stranger.get(path)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert answer.get_json() == {**WELL, "status": "unavailable", "database": "unreachable", **more}
    assert stranger.get("/health/live").status_code == 200


def test_a_check_holds_one_thread_and_the_others_get_the_last_result():
    begun, go = Event(), Event()
    states = iter([True, False])

    def passes():
        begun.set()
        assert go.wait(60)
        return next(states)

    check = Check(passes)
    with ThreadPoolExecutor(1) as threads:
        for before, after in ((False, True), (True, False)):
            under_way = threads.submit(check)
            assert begun.wait(60)
            assert check() is before
            go.set()
            assert under_way.result(10) is after
            begun.clear()
            go.clear()


def test_a_check_that_fails_unforeseen_lets_the_next_one_try():
    outcomes = iter([RuntimeError("out of order"), True])

    def passes():
        first = next(outcomes)
        if isinstance(first, Exception):
            raise first
        return first

    check = Check(passes)
    with pytest.raises(RuntimeError):
        check()

    assert check() is True
