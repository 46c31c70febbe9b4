"""Machine clients, as in the tests of tokens."""

from __future__ import annotations

from tests.auth.conftest import grant as grant
