"""docs/api.md is as its script writes it."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from tests.operations import STORED

DOCS = Path(__file__).parents[2] / "docs"


def test_the_guide_shows_the_answers_of_the_service(without_address, tenancy, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    spec = spec_from_file_location("write_api_guide", DOCS / "write_api_guide.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)

    page = script.Page(without_address)

    written = script.write(without_address, tenancy, page)

    assert (DOCS / "api.md").read_text(encoding="utf-8") == written, "run: python docs/write_api_guide.py"
    shown = script.SHOWN_PAGE.read_text(encoding="utf-8")
    assert shown == script.as_html(page), "run: python docs/write_api_guide.py"
    document = without_address.test_client().get("/openapi.json").get_json()
    operations = {operation["operationId"] for _, _, operation in script.operations_in(document)}
    linked = {*re.findall(r'href="\.\./docs#/[\w-]+/(\w+)"', shown)}
    assert sorted(operations - linked) == [], "operations that the guide neither has nor lists"
    assert linked <= operations


def test_the_guide_names_the_posts_whose_answer_is_not_stored():
    guide = (DOCS / "api.md").read_text(encoding="utf-8")
    repeated = guide.partition("## Send again safely")[2].partition("\n## ")[0]
    named = {*re.findall(r"`(?:POST )?(/[\w/-]+)`", repeated)}

    answering = {
        name.removeprefix("POST ") for name, row in STORED.items() if row.get("run") == "ANSWERS_TOKEN"
    }
    assert named == answering | {"/auth/oauth/token"}
