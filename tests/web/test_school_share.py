"""A school's share: how a request's school is known before its turn, the answers beyond it, and the timeouts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text

from school_service.app import create_app
from school_service.core.database import db
from school_service.web.app_state import app_state
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.registry.schools import change_school
from tests.client import ApiClient
from tests.conftest import dispose, make_place


@pytest.fixture
def own(settings, tenancy):
    """An application of its own with a share of two requests, and two schools."""
    app = create_app(replace(settings, school_requests=2, statement_timeout=3))
    yield app, [make_place(app, tenancy, name) for name in ("Comprehensive High School", "Edo College")]
    dispose(app)


def test_the_school_of_a_request_is_known_once_its_token_was_verified(own, document):
    app, (place, other) = own
    caller = ApiClient(app, document, place.admin_token, place.id)
    bearer = f"Bearer {place.admin_token}"
    with app.app_context():
        known = app_state().known_school

        assert known(bearer, str(place.id)) is None
        caller.ok(caller.get("/classrooms"))
        assert known(bearer, str(place.id)) == known(bearer, None) == str(place.id)
        assert known(bearer, str(other.id)) is None
        assert known(bearer, "nonsense") is None
        assert known(f"Basic {place.admin_token}", str(place.id)) is None
        assert known("Bearer nonsense", str(place.id)) is None
        assert known("", str(place.id)) is None


def test_beyond_its_share_a_school_is_503_and_the_other_is_not(own, document):
    app, (place, other) = own
    caller = ApiClient(app, document, place.admin_token, place.id)
    neighbour = ApiClient(app, document, other.admin_token, other.id)
    shares = app.extensions["school-service"].shares
    shares.patience = 0.2
    with shares.of(place.id), shares.of(place.id):
        with ThreadPoolExecutor(3) as threads:
            refused = list(threads.map(lambda _: caller.using().get("/classrooms"), range(3)))
        assert neighbour.get("/classrooms").status_code == 200
        assert caller.using(token="nonsense").get("/classrooms").status_code == 401
        assert caller.get("/health").status_code == 200

    assert [answer.status_code for answer in refused] == [503] * 3
    assert {answer.headers["Retry-After"] for answer in refused} == {"2"}
    assert caller.get("/classrooms").status_code == 200


def test_the_name_of_a_school_is_known_for_five_seconds(own, tenancy):
    app, (place, _) = own
    with app.app_context():
        state = app_state()
        before = state.school(place.id).name
        with tenancy.admin.begin() as connection:
            change_school(connection, place.id, name="Renamed High School")

        assert state.school(place.id).name == before
        assert state._schools._fresh._values.ttl == 5
        state._schools._fresh._values.clear()
        assert state.school(place.id).name == "Renamed High School"


def test_a_transaction_has_its_timeouts_and_leaves_none_on_the_connection(own):
    app, (place, _) = own
    with app.app_context():
        with in_transaction(SchoolBinding(place.id)):
            for name in ("statement_timeout", "lock_timeout"):
                assert db.session.execute(text(f"SHOW {name}")).scalar_one() == "3s"
        with db.engine.raw_connection().cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            assert cursor.fetchone() == ("1min",)  # the login's own
