"""Writes the facts of people's columns in docs and document, from the `info` of the columns.

    python docs/write_facts.py

The table of docs/privacy.md and its list of OneRoster's columns, and the words of properties in
school_service/web/documentation/properties.json. A test checks that they are as this script writes them.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from sqlalchemy import Table

import school_service.app  # noqa: F401 (imports the models of all areas)
from school_service.core.database import db
from school_service.core.facts import Fact, fact_of, stored_in
from school_service.features.people.models import EVERYBODY

PRIVACY = Path(__file__).with_name("privacy.md")
PROPERTIES = Path(__file__).parents[1] / "school_service" / "web" / "documentation" / "properties.json"

_GROUPS = (EVERYBODY, "students", "guardians", "employees", "actors, and people of the records")
_HEAD = "|---|---|---|---|---|\n"
_EXPORTED = "**OneRoster's files** have of people"


def tables() -> list[Table]:
    """List the tables of people: of everybody, of students and so on; tables that refer to others come after these."""
    tables = [table for table in db.metadata.sorted_tables if stored_in(table)]
    return sorted(tables, key=lambda table: _GROUPS.index(stored_in(table).of))


def _facts(table: Table) -> list[tuple[str, Fact]]:
    """Give the facts of a table's columns, by their names. Raises LookupError for a column without."""
    facts = {column.name: fact_of(column) for column in table.columns}
    for name, said in facts.items():
        if said is None:
            raise LookupError(f"{table.name}.{name} says in no info what it is (school_service.core.facts).")
    return [(name, said) for name, said in facts.items() if said is not None]


def _what(table: Table) -> str:
    """Describe the contents of a table: the words of its columns, each once."""
    words = (said.words for _, said in _facts(table))
    return ", ".join(dict.fromkeys(filter(None, words)))


def _rows() -> Iterator[str]:
    """Write the rows of the table; tables with the same words have one row together."""
    by_words: dict[tuple[str, str], list[Table]] = {}
    for table in tables():
        by_words.setdefault((stored_in(table).of, _what(table)), []).append(table)
    for of, rows in groupby(by_words.items(), key=lambda row: row[0][0]):
        shown = of
        for (_, what), same in rows:
            about = stored_in(same[0])
            names = ", ".join(f"`{table.name}`" for table in same)
            permissions = ", ".join(f"`{permission}`" for permission in about.read_with.split(", "))
            yield f"| {shown} | {what} | {names} | {about.why} | {permissions} |\n".replace("|  |", "| |")
            shown = ""


def _exported() -> str:
    """Say which columns of people OneRoster gets."""
    columns = {
        table.name: [f"`{name}`" for name, said in _facts(table) if said.exported] for table in tables()
    }
    parts = [f"of `{name}` {', '.join(names)}" for name, names in columns.items() if names]
    text = f"{_EXPORTED}, beside classes and results, these columns: {'; '.join(parts)}."
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def privacy(page: str) -> str:
    """Write the page anew: its table, and the list of OneRoster's columns."""
    before, head, rest = page.partition(_HEAD)
    _, end, after = rest.partition("\n\n")
    written = f"{before}{head}{''.join(_rows()).rstrip()}{end}{after}"
    return re.sub(rf"^{re.escape(_EXPORTED)}.*?(?=\n\n)", lambda _: _exported(), written, flags=re.M | re.S)


def properties(texts: dict[str, str]) -> dict[str, str]:
    """Give all words of properties: the words of people's columns anew, in their places, and new ones at the end.

    Schemas share them by the name of the column. Where a column of a later table says otherwise, its own schemas do.
    """
    said: dict[str, str] = {}
    models = {mapper.local_table: mapper.class_.__name__ for mapper in db.Model.registry.mappers}
    for table in tables():
        model = models[table]
        for name, of in _facts(table):
            says = of.says
            if says is not None and said.setdefault(name, says) != says:
                said |= {f"{model}.{name}": says, f"Stored{model}.{name}": says}
    return texts | said


def as_json(texts: dict[str, str]) -> str:
    """Write words of properties as their file has them."""
    return json.dumps(texts, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write both files anew."""
    PRIVACY.write_text(privacy(PRIVACY.read_text(encoding="utf-8")), encoding="utf-8")
    texts: dict[str, str] = json.loads(PROPERTIES.read_text(encoding="utf-8"))
    PROPERTIES.write_text(as_json(properties(texts)), encoding="utf-8")


if __name__ == "__main__":
    main()
