"""The graph of imports, whose order is in setup.cfg: no way through it is a circle, and none leads nowhere."""

from __future__ import annotations

from graphlib import TopologicalSorter
from importlib import import_module
from pkgutil import iter_modules

import grimp
import pytest

import benchmarks

PACKAGES = ("school_service", "tenants", "migrations", "tests", "benchmarks")


def test_no_import_leads_back_to_its_own_module():
    # Imports for types alone and imports within a function count: a reader follows them as well.
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    # Its error names the modules of a circle, each before one that imports it.
    TopologicalSorter(imports).prepare()


# Of the wheel with PostgreSQL, when it is imported.
@pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR")
def test_benchmarks_find_the_names_that_they_import():
    modules = [import_module(f"benchmarks.{module.name}") for module in iter_modules(benchmarks.__path__)]

    assert all(module.__doc__ for module in modules)
