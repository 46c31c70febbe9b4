import pytest

from tests.features.reach.conftest import make_arms, own

__all__ = ["arms", "own"]


@pytest.fixture
def arms(make):
    """The arms, made for each test: some delete roles that students would have from before."""
    return make_arms(make)
