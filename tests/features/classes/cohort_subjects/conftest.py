from tests.features.reach.conftest import arms, made_arms, own

__all__ = ["arms", "made_arms", "own"]
