"""Docstrings are in plain words: a package has at most 3 relative pronouns in 100 words of them."""

from __future__ import annotations

from tests import measures
from tests.measures import PROGRAM, modules, pronouns_by_package

MOST = 3  # in 100 words, in the average of a package


def test_docstrings_have_few_relative_pronouns():
    found = pronouns_by_package(modules(*PROGRAM))

    assert found.keys() >= {"school_service", "school_service/features/people", "tenants"}
    assert {package: round(count, 2) for package, count in found.items() if count > MOST} == {}


SOURCE = '''"""What a pupil has: the letters of thatcher are none."""

LIMIT = "that which who"  # what is no docstring
"""Whose, below a name."""


class Pupil:
    """A pupil, WHOEVER."""

    name: str
    """Which."""

    def show(self):
        """Show whatever."""
        return """who"""
'''


def test_pronouns_of_every_docstring_count_and_of_no_other_text(tmp_path, monkeypatch):
    monkeypatch.setattr(measures, "ROOT", tmp_path)
    sources = {
        "tenants/names.py": SOURCE,
        "tenants/registry/empty.py": "",
        "school_service/features/people/models.py": '"""A b c d that."""',
        "school_service/features/people/users/models.py": '"""E f g h i."""',
        "school_service/app.py": '"""A b c d."""',
    }
    for name, source in sources.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")

    assert pronouns_by_package(modules(*PROGRAM)) == {
        "tenants": 100 * 5 / 20,
        "school_service/features/people": 10,
        "school_service": 0,
    }
