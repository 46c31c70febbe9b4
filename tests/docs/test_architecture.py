"""docs/architecture.md names each package, and the features in the order of their contract."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def packages(folder):
    """List the packages of a folder."""
    return {path.parent.name for path in (ROOT / folder).glob("*/__init__.py")}


def described():
    """List the features in the order of the page's table."""
    table = PAGE.partition("### The features\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \| \w", table, re.M)


@pytest.mark.parametrize("folder", ["school_service", "tenants"])
def test_each_package_is_in_the_layout(folder):
    named = set(re.findall(rf"^\| .*?`{folder}/(\w+)/`", PAGE, re.M))

    assert named == packages(folder)


def test_each_feature_is_described():
    assert len(described()) == len(set(described()))
    assert set(described()) == packages("school_service/features")


def test_the_features_stand_in_the_order_in_which_they_may_import():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    layers = setup["importlinter:contract:features"]["layers"].split("\n")[1:]
    storeys = [set(re.findall(r"\w+", layer)) for layer in reversed(layers)]
    storey_of = {name: number for number, names in enumerate(storeys) for name in names}

    order = [storey_of[name] for name in described()]

    assert order == sorted(order)
