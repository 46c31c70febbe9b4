"""Print the findings of verbs: a record, or a table of records; by --json as JSON."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def show(record: dict[str, Any], as_json: bool) -> None:
    """Print a record: a line for each member, or JSON."""
    if as_json:
        click.echo(json.dumps(record, ensure_ascii=False))
        return
    width = max(map(len, record))
    for key, value in record.items():
        click.echo(f"{key.ljust(width)}  {'' if value is None else _cell(value)}")


def show_table(records: Sequence[dict[str, Any]], columns: Sequence[str], as_json: bool) -> None:
    """Print records as a table with a header, or as a JSON array."""
    if as_json:
        click.echo(json.dumps(list(records), ensure_ascii=False))
        return
    rows = [list(columns), *[[_cell(record[column]) for column in columns] for record in records]]
    widths = [max(_width(row[index]) for row in rows) for index in range(len(columns))]
    for row in rows:
        cells = (cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def _width(text: str) -> int:
    """Count the columns of a text in a terminal: a mark stands above or below the letter before it."""
    return sum(not unicodedata.combining(letter) for letter in text)
