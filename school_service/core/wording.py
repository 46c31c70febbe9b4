"""What records are called in messages, made of the names of their tables."""

from __future__ import annotations

from sqlalchemy import FromClause


def record_name(table: FromClause) -> str:
    """Name one record of a table: `cohort subject` for `cohort_subjects`."""
    return singular(table.description.replace("_", " "))


def singular(words: str) -> str:
    """Name one of what the words name many of: `cohort subject` for `cohort subjects`."""
    for plural, one in (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("s", "")):
        if words.endswith(plural):
            return words.removesuffix(plural) + one
    return words
