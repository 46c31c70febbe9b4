"""Docs and document describe people's columns as the columns describe themselves."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from school_service.core.database import db
from school_service.core.facts import STAYS, fact

DOCS = Path(__file__).parents[2] / "docs"
AGAIN = "run: python docs/write_facts.py"


@pytest.fixture(scope="module")
def script():
    spec = spec_from_file_location("write_facts", DOCS / "write_facts.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_privacy_md_has_the_words_of_every_column_of_a_person(script):
    page = script.PRIVACY.read_text(encoding="utf-8")

    assert page == script.privacy(page), AGAIN


def test_properties_have_the_words_of_the_columns(script):
    written = script.PROPERTIES.read_text(encoding="utf-8")

    assert written == script.as_json(script.properties(json.loads(written))), AGAIN


def test_the_facts_of_a_column_are_written_in_each_place(script, monkeypatch):
    column = db.metadata.tables["students"].c.number
    says = "A number, which is the student's club."
    monkeypatch.setattr(column, "info", fact("club", STAYS, own="", says=says, exported=True))

    page = script.privacy(script.PRIVACY.read_text(encoding="utf-8"))
    texts = script.properties({"number": "A number.", "Student.id": "The id."})

    assert "| students | club, admission number, middle name, date of birth, " in page
    assert "`students` `id`, `number`," in " ".join(page.split())
    assert (texts["number"], texts["Student.id"], texts["Employee.status"]) == (
        says, "The id.", "The employee's status, as the school writes it.",
    )  # fmt: skip
