"""Two schools whose logs are empty: other tests sign in to the schools of all tests, and that is on record."""

from __future__ import annotations

import pytest
from flask import Flask

from tenants.tenancy import Tenancy
from tests.conftest import Place, make_place


@pytest.fixture(scope="package")
def place(app: Flask, tenancy: Tenancy) -> Place:
    """The school."""
    return make_place(app, tenancy, "Ansar-Ud-Deen College, Isolo")


@pytest.fixture(scope="package")
def other_place(app: Flask, tenancy: Tenancy) -> Place:
    """The other school."""
    return make_place(app, tenancy, "Holy Ghost College, Owerri")
