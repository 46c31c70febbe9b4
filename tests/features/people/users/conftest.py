"""Machine clients among the users."""

from tests.auth.conftest import grant

__all__ = ["grant"]
