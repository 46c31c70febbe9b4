"""The request context: the request that a transaction serves, and nothing outside of one."""

from __future__ import annotations

import pytest

from school_service.core.database import current_school, request_context
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding


def test_the_request_context_names_the_school_of_the_transaction(app, place, other_place):
    with app.app_context():
        for school in (place, other_place):
            with in_transaction(SchoolBinding(school.id, read_only=True)):
                assert request_context().school_id == school.id
                assert current_school().name == school.name
                assert (request_context().principal, request_context().request_id) == (None, None)


def test_no_request_context_is_there_outside_of_a_transaction(app, place):
    with app.app_context():
        with in_transaction(SchoolBinding(place.id, read_only=True)):
            pass

        with pytest.raises(RuntimeError, match="No transaction"):
            request_context()


def test_a_failure_leaves_none_behind(app, place):
    with app.app_context():
        with pytest.raises(ZeroDivisionError), in_transaction(SchoolBinding(place.id, read_only=True)):
            raise ZeroDivisionError

        with pytest.raises(RuntimeError, match="No transaction"):
            request_context()
