"""The first records of every test of a module: made once, and a copy of them for each test."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.factories import Factory


def prepared_for_each(build: Callable[[Factory], Any]) -> tuple[Any, Any]:
    """Make two fixtures: `original`, made by `build` before the module's first test, and its copy for each test.

    The module has to name the first one `original`.
    """

    @pytest.fixture(scope="module", autouse=True)
    def original(prepared: Callable[[Callable[[Factory], Any]], Any]) -> Any:
        return prepared(build)

    @pytest.fixture
    def copied(rehearsed: Any, original: Any) -> Any:
        return deepcopy(original)

    return original, copied
