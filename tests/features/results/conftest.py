"""Fixtures of the tests of results."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import pytest
from flask import Flask

from school_service.config import Settings
from tenants.tenancy import Tenancy
from tests.factories import Factory
from tests.features.results.publications.arms import Arms
from tests.watched_messages import Between, watched_messages


@pytest.fixture
def between(app: Flask, tenancy: Tenancy, settings: Settings, committing: Factory) -> Iterator[Between]:
    """Acts between two messages of a request of `committing`."""
    between = Between()
    with watched_messages(app, tenancy, settings, between.look):
        # The first connection is asked for the server's settings.
        committing.api.ok(committing.api.get("/result-settings"))
        yield between


@pytest.fixture
def arms(rehearsed: object, made_arms: Arms) -> Arms:
    """The class of the module, `made_arms`, for one test."""
    return deepcopy(made_arms)


@pytest.fixture
def unmarked(make: Factory) -> Arms:
    """A class without marks, where the module's class has them."""
    return Arms(make)
