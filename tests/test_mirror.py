"""Each package of the program has its tests in the folder of the same name, or this module says where they are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    "school_service/features/results/computing/class_term": "tests/features/results/computing",
    "school_service/seed": "tests/cli/test_account_commands.py",
    "tenants/commands": "tests/cli",
}
"""Packages that are tested by their users."""


def packages():
    """List the folders with modules of the program."""
    paths = {
        path.parent
        for top in ("school_service", "tenants")
        for path in (ROOT / top).rglob("*.py")
        if path.name != "__init__.py"
    }
    return sorted(str(path.relative_to(ROOT)) for path in paths)


def folder_of(package):
    """Name the folder of a package's tests."""
    return (
        f"tests/{package}" if package.startswith("tenants") else package.replace("school_service", "tests", 1)
    )


def is_tested(package):
    return any((ROOT / folder_of(package)).rglob("test_*.py"))


def test_each_package_has_its_tests_in_the_folder_of_its_name():
    assert len(packages()) > 60
    assert [package for package in packages() if not is_tested(package)] == sorted(ELSEWHERE)


def test_the_places_of_tests_elsewhere_are_there():
    assert [place for place in ELSEWHERE.values() if not (ROOT / place).exists()] == []
