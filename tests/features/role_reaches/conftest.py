from tests.features.reach.conftest import arms, own

__all__ = ["arms", "own"]
