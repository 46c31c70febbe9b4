"""The graph of imports, whose order is in setup.cfg: no way through it is a circle."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp

PACKAGES = ("school_service", "tenants", "migrations", "tests", "benchmarks")


def test_no_import_leads_back_to_its_own_module():
    # Imports for types alone and imports within a function count: a reader follows them as well.
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    # Its error names the modules of a circle, each before one that imports it.
    TopologicalSorter(imports).prepare()
