"""The script that pg_restore writes: read as it comes, judged, and put into another schema.

A backup is a file from somewhere. What runs of it is what makes up a school's schema and nothing else: tables,
indexes, constraints, rows. Whatever names another schema is refused, and whatever calls a function that is not
known to be harmless: PostgreSQL judges a change of role by the login, which is the operator's here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import IO

from tenants.exceptions import BackupRefused
from tenants.sql_scanner import Statement, Token, statements

_MAX_STATEMENT_LENGTH = 1 << 20  # characters
_META_COMMAND = re.compile(rb"\\(un)?restrict [0-9A-Za-z]+\s*")
_END_OF_ROWS = b"\\."

# Statements in outline: words in capitals, "n" a quoted name, "l" a literal; what stands in parentheses left out.
_SKIPPED = re.compile(r"SET .*|SELECT PG_CATALOG \. SET_CONFIG \( \)|CREATE SCHEMA \S+")
_ROWS = re.compile(r"COPY \S+ \. \S+ \( \) FROM STDIN")
_ACCEPTED = re.compile(
    r"CREATE TABLE \S+ \. \S+ \( \)( WITH \( \))?"
    r"|ALTER TABLE (ONLY )?\S+ \. \S+ ADD CONSTRAINT \S+ (CHECK|UNIQUE|PRIMARY KEY|FOREIGN KEY|EXCLUDE) [^,]*"
    r"|ALTER TABLE (ONLY )?\S+ \. \S+ ALTER COLUMN \S+ SET (STATISTICS|STORAGE|COMPRESSION) \S+"
    r"|CREATE (UNIQUE )?INDEX \S+ ON \S+ \. \S+ USING \S+ \( \)[^,]*"
)
_ODD = tuple(map(re.compile, ("--", r"/\*", r"[^ -~\n]", r"[$\\\\]")))
# Words before a parenthesis that do no harm: the grammar's own, types, index methods, functions of values alone.
_CALLED = frozenset(
    """
    all and any as between case check default distinct else exclude filter in include is key like not null or
    then unique when where with
    bit char character decimal interval numeric time timestamp varchar varying
    brin btree gin gist hash
    abs array_length btrim cardinality ceil ceiling char_length character_length coalesce date_part daterange
    extract floor greatest int4range jsonb_array_length jsonb_typeof least left length lower ltrim mod nullif
    num_nonnulls num_nulls numrange octet_length position right round rtrim starts_with substr substring trim
    trunc tstzrange upper
    """.split()  # noqa: SIM905 -- to be read
)


@dataclass(frozen=True, slots=True)
class Step:
    """A statement to send; with `rows`, a COPY that takes these."""

    sql: str
    rows: CopyRows | None


class CopyRows:
    """The rows of a COPY as the script holds them, for the driver to read."""

    def __init__(self, script: IO[bytes]) -> None:
        self._script = script
        self._ended = False
        self.error: BackupRefused | None = None

    def read(self, size: int) -> bytes:
        """Read whole rows, about so many bytes; none at the end.

        Raises BackupRefused where the end is missing, and keeps it in `error`, as the driver hides it.
        """
        rows: list[bytes] = []
        while not self._ended and size > 0:
            row = self._script.readline()
            if not row.endswith(b"\n"):
                self.error = BackupRefused("The backup is damaged: its dump ends within a table.")
                raise self.error
            self._ended = row.rstrip(b"\r\n") == _END_OF_ROWS
            if not self._ended:
                rows.append(row)
                size -= len(row)
        return b"".join(rows)


def steps(script: IO[bytes], old: str, new: str) -> Iterator[Step]:
    """Read the script of a dump of the schema `old` as steps that put it into the schema `new`, which exists.

    The rows of a step have to be read before the next step. Raises BackupRefused.
    """
    qualifier = re.compile(rf'(?<![\w$"]){re.escape(old)}(?=\.)|"{re.escape(old)}"(?=\.)')
    for text in _texts(script):
        sql = qualifier.sub(f'"{new}"', text)
        found = statements(sql)
        if len(found) != 1:
            raise _refused(sql)
        outline = _outline(found[0])
        if _SKIPPED.fullmatch(outline):
            continue
        takes_rows = _ROWS.fullmatch(outline) is not None
        if not takes_rows and not _ACCEPTED.fullmatch(outline):
            raise _refused(sql)
        if not _is_harmless(found[0], new):
            raise _refused(sql)
        yield Step(found[0].text, CopyRows(script) if takes_rows else None)


def _texts(script: IO[bytes]) -> Iterator[str]:
    """Read the text of one statement after the other."""
    text = ""
    for line in iter(script.readline, b""):
        if not text and (not line.strip() or line.startswith(b"--") or _META_COMMAND.fullmatch(line)):
            continue
        try:
            text += line.decode()
        except UnicodeDecodeError:
            raise _refused(text or repr(line)) from None
        if len(text) > _MAX_STATEMENT_LENGTH:
            raise _refused(text)
        if text.rstrip().endswith(";") and _has_ended(text):
            yield text
            text = ""
    if text:
        raise BackupRefused("The backup is damaged: its dump ends within a statement.")


def _has_ended(text: str) -> bool:
    """Tell whether the semicolon at the end of a text ends a statement."""
    try:
        found = statements(text)
    except ValueError:
        # It stands within a literal or a name that goes on in the next line.
        return False
    return not found or not found[-1].text.endswith(";")


def _outline(statement: Statement) -> str:
    depth, parts = 0, []
    for token in statement.tokens:
        depth -= token.text == ")" and token.kind == "symbol"
        if depth <= 0:
            parts.append({"name": "n", "literal": "l"}.get(token.kind, token.text))
        depth += token.text == "(" and token.kind == "symbol"
    return " ".join(parts)


def _is_harmless(statement: Statement, schema: str) -> bool:
    tokens = statement.tokens
    qualifiers = [before.name for before, token in pairwise(tokens) if _is_symbol(token, ".")]
    return (
        _is_plain(statement)
        and not any(_is_symbol(token, ";") for token in tokens)
        and qualifiers[0] == schema
        and set(qualifiers) <= {schema, "pg_catalog"}
        and all(_is_harmless_call(tokens, position, schema) for position in range(1, len(tokens)))
        # PostgreSQL joins literals of two lines, and then reads the second as it does the first.
        and not any(before.kind == token.kind == "literal" for before, token in pairwise(tokens))
    )


def _is_plain(statement: Statement) -> bool:
    """Tell whether a statement is free of what scanners may take differently: comments, dollars, odd letters."""
    quoted = [token.text for token in statement.tokens if token.kind in {"literal", "name"}]
    return not any(text.startswith("$") for text in quoted) and all(
        len(found.findall(statement.text)) == sum(len(found.findall(text)) for text in quoted)
        for found in _ODD
    )


def _is_harmless_call(tokens: tuple[Token, ...], position: int, schema: str) -> bool:
    """Tell whether a parenthesis opens nothing of harm: it may follow a word, which may be a function's name."""
    called = tokens[position - 1]
    if not _is_symbol(tokens[position], "(") or not called.is_name:
        return True
    is_table = position >= 3 and _is_symbol(tokens[position - 2], ".") and tokens[position - 3].name == schema
    return is_table or called.name in _CALLED


def _is_symbol(token: Token, text: str) -> bool:
    return token.kind == "symbol" and token.text == text


def _refused(sql: str) -> BackupRefused:
    return BackupRefused(f"The backup holds what no school's schema needs: {' '.join(sql.split())[:120]}")
