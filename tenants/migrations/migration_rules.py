"""Checking the migrations of schools' schemas: statements taken by PostgreSQL, but not by this project.

Their SQL is read as text, revision by revision, without a database. The permitted statements are listed, and all else
refused; then come the rules on their contents. The facts behind them: docs/scaling.md, docs/architecture.md
("Tenancy").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import migrations.tenant
from tenants.driver_errors import first_line
from tenants.migrations.migration_sql import (
    TENANT,
    baseline_file,
    changes_rows,
    migration_scripts,
    script_statements,
    write_baseline,
)
from tenants.sql_scanner import Token, statements

# Statements by their first words. Others do not belong in a school's schema.
_ALLOWED = re.compile(
    r"CREATE TABLE\b|CREATE (UNIQUE )?INDEX\b|ALTER TABLE\b|DROP (TABLE|INDEX)\b|COMMENT ON\b"
    r"|INSERT INTO\b|UPDATE\b|DELETE FROM\b|WITH\b|(CREATE|CREATE OR REPLACE|DROP) FUNCTION CALLER_STATE\b"
)
_FORBIDDEN = (
    ("trigger", r"CREATE (OR REPLACE )?(CONSTRAINT |EVENT )?TRIGGER\b"),
    ("function", r"CREATE (OR REPLACE )?(FUNCTION|PROCEDURE|AGGREGATE|OPERATOR|CAST)\b|DO\b|CALL\b"),
    ("sequence", r"(CREATE|ALTER) ((TEMP|TEMPORARY|UNLOGGED) )?SEQUENCE\b"),
    ("type", r"(CREATE|ALTER) (TYPE|DOMAIN)\b"),
    ("view", r"CREATE (OR REPLACE )?((TEMP|TEMPORARY|RECURSIVE|MATERIALIZED) )*VIEW\b"),
    ("extension", r"(CREATE|ALTER) EXTENSION\b"),
    ("transaction", r"(BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|PREPARE|SET|RESET)\b"),
    ("merge", r"MERGE\b"),
)
_WHY = {
    "trigger": "a school's schema has no triggers",
    "function": "a school's schema has no function but caller_state, and a migration runs none of its own",
    "sequence": "a school's schema has no sequences: numbers come from its row of counters",
    "identity": "a school's schema has no sequences, serial or identity columns",
    "type": "a school's schema has no types of its own: text and a CHECK do",
    "view": "a school's schema has no views",
    "extension": "extensions belong to the database, not to a school",
    "transaction": "a migration runs within the one transaction of its school, whose settings stand",
    "merge": "rows are changed by INSERT, UPDATE and DELETE, not by MERGE",
    "statement": "a migration is made of CREATE, ALTER and DROP of tables and indexes, INSERT, UPDATE, DELETE",
    "primary-key": "every table has a primary key",
    "schema": "no name says its schema: the search path does",
    "plain-table": "no table inherits, is partitioned, temporary, unlogged, foreign or made from a query",
    "unnamed": "every constraint and index has a name",
    "rename-constraint": "a constraint keeps its name",
    "set-schema": "a table stays in its school's schema",
    "column-check": "add the column, then its constraint: two statements",
    "not-null": "a column that is added NOT NULL needs a default, for the rows that are there",
    "volatile": "UPDATE, DELETE, upserts and RETURNING call no function whose value changes or depends on settings",
    "stable": "INSERT … SELECT calls no function that depends on settings or on the moment",
    "default": "PostgreSQL computes no defaults: ids and times are bound by the program",
    "concurrently": "an index can't be made CONCURRENTLY within a transaction",
    "insert-values": "rows are inserted from rows that are there: a school being created has none, and is seeded",
    "expand": "programs of the release before serve it (SERVED_BY_EARLIER): it only adds, and writes no table anew",
    "offline": "the SQL can't be written without a database",
    "unreadable": "the SQL can't be read",
    "baseline": "baseline.sql is not what the migrations amount to; run: school-service tenants baseline",
}

# Changes that programs of the release before would notice; a table written anew is empty to a function waiting for it.
_NARROWS = re.compile(
    r"\bDROP (TABLE|COLUMN|FUNCTION)\b|\bRENAME\b|\bSET NOT NULL\b|\bADD CONSTRAINT\b|\bCREATE UNIQUE INDEX\b"
    r"|\bALTER (COLUMN )?\S+ (SET DATA )?TYPE\b|\bADD (COLUMN )?.*\bGENERATED ALWAYS AS\b"
)

_CONSTRAINT_WORDS = {"PRIMARY", "UNIQUE", "CHECK", "REFERENCES", "FOREIGN", "EXCLUDE"}
_SERIAL = {"SERIAL", "BIGSERIAL", "SMALLSERIAL", "SERIAL2", "SERIAL4", "SERIAL8"}
_MOMENTS = {"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP"}
_VOLATILE = {
    *(
        "clock_timestamp",
        "timeofday",
        "random",
        "random_normal",
        "nextval",
        "currval",
        "setval",
        "set_config",
    ),
    *("gen_random_uuid", "uuidv4", "uuidv7"),
    *("uuid_generate_v1", "uuid_generate_v1mc", "uuid_generate_v4"),
}
# The same within a statement: they depend on settings, such as the time zone, or on the moment.
_STABLE = {
    *("now", "statement_timestamp", "transaction_timestamp", "age", "current_setting"),
    *("to_char", "to_timestamp", "to_date", "to_json", "to_jsonb", "row_to_json", "json_build_object"),
    *("jsonb_build_object", "json_build_array", "jsonb_build_array", "concat", "concat_ws", "format"),
    *("date_trunc", "make_timestamptz"),
}
_TIMES = {"DATE", "TIME", "TIMETZ", "TIMESTAMP", "TIMESTAMPTZ"}


Tokens = Sequence[Token]


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule broken by a statement of a revision; `statement` is its first line."""

    revision: str
    rule: str
    statement: str

    def as_record(self) -> dict[str, str]:
        """The finding, ready for JSON."""
        return {
            "revision": self.revision,
            "rule": self.rule,
            "statement": self.statement,
            "why": self.why,
        }

    @property
    def why(self) -> str:
        """The words of the rule."""
        return _WHY[self.rule]


_VALUES_OF = re.compile(r"CONSTRAINT (\w+) CHECK \(\w+ IN \(([^()]*)\)\)")


def _narrowing(revision: str, texts: Sequence[str], before: Sequence[str]) -> Iterator[BrokenRule]:
    """Find the changes forbidden to a migration that only adds, after those `before`.

    Of its own new tables it may do anything; and a CHECK with the values of a column may be replaced by one with more.
    """
    made: set[str] = set()
    allowed = {name: values for text in before for name, values in _VALUES_OF.findall(text)}
    for text in texts:
        words = " ".join(text.split())
        name = re.match(r'(?:CREATE TABLE|ALTER TABLE|CREATE UNIQUE INDEX \S+ ON) "?(\w+)', words, re.I)
        if name and words.upper().startswith("CREATE TABLE"):
            made.add(name[1])
        elif any(_widens(allowed.get(check, ""), values) for check, values in _VALUES_OF.findall(words)):
            continue
        elif _NARROWS.search(words.upper()) and not (name and name[1] in made):
            yield BrokenRule(revision, "expand", first_line(text))


def _widens(old: str, new: str) -> bool:
    """Tell whether a list of values has all of the old list, and more."""
    return bool(old) and set(old.split(", ")) < set(new.split(", "))


def check_migrations(folder: Path = TENANT) -> list[BrokenRule]:
    """Judge every revision of a history, and its baseline; needs no database."""
    findings: list[BrokenRule] = []
    written: list[str] = []
    tables: set[str] = set()
    expands = False
    for step in migration_scripts(folder=folder):
        try:
            texts = script_statements(step)
        except Exception as error:  # a migration is a program: any error of it is the finding
            rule = "unreadable" if isinstance(error, ValueError) else "offline"
            findings.append(BrokenRule(step.revision, rule, first_line(f"{type(error).__name__}: {error}")))
        else:
            findings += _findings(step.revision, texts, tables)
            if expands:
                findings += _narrowing(step.revision, texts, written)
            expands = expands or step.revision in migrations.tenant.SERVED_BY_EARLIER
            written += texts
    is_written = not any(finding.rule in {"unreadable", "offline"} for finding in findings)
    return [*findings, *_baseline_findings(folder, written, tables, comparable=is_written)]


def _baseline_findings(
    folder: Path, written: Sequence[str], tables: set[str], *, comparable: bool
) -> Iterator[BrokenRule]:
    """Judge the baseline's statements beyond the migrations, and whether it agrees with them."""
    try:
        text = baseline_file(folder).read_text(encoding="utf-8")
        texts = [statement.text for statement in statements(text)]
    except (OSError, ValueError) as error:
        yield BrokenRule("baseline", "unreadable", first_line(str(error)))
        return
    extra = [text for text in texts if text not in written]
    yield from _findings("baseline", extra, tables)
    if comparable and text != write_baseline(folder):
        missing = [text for text in written if text not in texts and not changes_rows(text)]
        yield BrokenRule("baseline", "baseline", first_line([*extra, *missing, text][0]))


def _findings(revision: str, texts: Sequence[str], tables: set[str]) -> Iterator[BrokenRule]:
    for statement in (parsed for text in texts for parsed in statements(text)):
        for rule in dict.fromkeys(_broken(statement.tokens, tables)):
            yield BrokenRule(revision, rule, first_line(statement.text))


def _broken(tokens: Tokens, tables: set[str]) -> Iterator[str]:
    """Name the rules broken by a statement; its new tables are added to the known ones."""
    first = _words(tokens[:6])
    if not _ALLOWED.match(first):
        is_table = re.match(r"(CREATE|ALTER) (\w+ )*TABLE\b", first)
        forbidden = (rule for rule, pattern in _FORBIDDEN if re.match(pattern, first))
        yield next(forbidden, "plain-table" if is_table else "statement")
    elif tokens[0].text in {"INSERT", "UPDATE", "DELETE", "WITH"}:
        yield from _broken_by_change(tokens, tables)
    elif tokens[0].text == "COMMENT":
        if _names_a_schema(tokens, tables):
            yield "schema"
    else:
        if any(dot.text == "." and name.is_name for name, dot in pairwise(tokens)):
            yield "schema"
        if re.match(r"(CREATE|DROP) (UNIQUE )?INDEX\b", first):
            yield from _broken_by_index(tokens)
        elif first.startswith("CREATE TABLE"):
            yield from _broken_by_table(tokens, tables)
        elif first.startswith("ALTER TABLE"):
            yield from _broken_by_alteration(tokens, tables)


def _words(tokens: Tokens) -> str:
    """Write tokens for a search of keywords: each token but a word is a question mark."""
    return " ".join(token.text if token.kind == "word" else "?" for token in tokens)


def _broken_by_index(tokens: Tokens) -> Iterator[str]:
    words = _words(tokens)
    if re.match(r"(CREATE (UNIQUE )?|DROP )INDEX CONCURRENTLY\b", words):
        yield "concurrently"
    if re.match(r"CREATE (UNIQUE )?INDEX (CONCURRENTLY )?ON\b", words):
        yield "unnamed"


def _broken_by_table(tokens: Tokens, tables: set[str]) -> Iterator[str]:
    position = _name_at(tokens)
    tables.add(tokens[position].name)
    items, rest = _items(tokens[position + 1 :])
    if not items or re.search(r"\b(INHERITS|PARTITION|AS)\b", _words(rest)):
        yield "plain-table"
        return
    if any(item[0].text == "LIKE" for item in items):
        yield "plain-table"
        return
    for item in items:
        yield from _broken_by_item(item)
    if not any("PRIMARY" in _keywords(item) for item in items):
        yield "primary-key"


def _broken_by_alteration(tokens: Tokens, tables: set[str]) -> Iterator[str]:
    position = _name_at(tokens)
    actions = _split(tokens[position + 1 :])
    added = set()
    for action in actions:
        words = _words(action)
        yield from _broken_by_item(action)
        for rule, pattern in _ALTERATIONS:
            if re.match(pattern, words):
                yield rule
        if re.match(r"ADD (?!(CONSTRAINT|PRIMARY|UNIQUE|CHECK|FOREIGN|EXCLUDE)\b)", words):
            added.add("column")
            keywords = _keywords(action)
            if keywords & _CONSTRAINT_WORDS:
                yield "column-check"
            if re.search(r"\bNOT NULL\b", words) and not keywords & {"DEFAULT", "GENERATED"}:
                yield "not-null"
        elif words.startswith("ADD "):
            added.add("constraint")
        if words.startswith("RENAME TO "):
            tables.add(action[2].name)
    if len(added) == 2:
        yield "column-check"


_ALTERATIONS = (
    ("rename-constraint", r"RENAME CONSTRAINT\b"),
    ("set-schema", r"SET SCHEMA\b"),
    ("plain-table", r"(NO )?INHERIT\b|(ATTACH|DETACH) PARTITION\b|SET (UN)?LOGGED\b"),
    ("statement", r"(?!(ADD|DROP|ALTER|RENAME|VALIDATE|SET|RESET|INHERIT|NO|ATTACH|DETACH)\b)"),
)


def _broken_by_item(item: Tokens) -> Iterator[str]:
    """Judge a column or constraint of a table, or an alteration."""
    words = _words(item)
    keywords = _keywords(item)
    if keywords & _SERIAL or "IDENTITY" in keywords:
        yield "identity"
    if _is_unnamed(item):
        yield "unnamed"
    match = re.search(r"\bDEFAULT\b", words)
    if match and _is_computed(item[len(words[: match.start()].split()) + 1 :]):
        yield "default"


def _is_unnamed(item: Tokens) -> bool:
    """Tell whether a constraint of a column, a table or an alteration has no name."""
    flat = _flat(item)
    is_foreign_key = False
    for position, token in enumerate(flat):
        if token.kind != "word" or token.text not in _CONSTRAINT_WORDS:
            continue
        if token.text == "EXCLUDE" and _words(flat[position + 1 : position + 2]) not in {"USING", "?"}:
            continue  # a column of that name
        if token.text == "REFERENCES" and is_foreign_key:
            continue
        is_foreign_key |= token.text == "FOREIGN"
        if position < 2 or flat[position - 2] != Token("word", "CONSTRAINT"):
            return True
    return False


def _is_computed(expression: Tokens) -> bool:
    """Tell whether a default is more than a literal and its cast."""
    for position, token in enumerate(expression):
        if token.kind == "word" and token.text in _AFTER_DEFAULT:
            return False
        is_cast = position >= 2 and expression[position - 2].text == "::"
        if (token.text == "(" and not is_cast) or (token.kind == "word" and token.text in _MOMENTS):
            return True
    return False


_AFTER_DEFAULT = {"CONSTRAINT", "NOT", "NULL", "GENERATED", "COLLATE", *_CONSTRAINT_WORDS}


def _broken_by_change(tokens: Tokens, tables: set[str]) -> Iterator[str]:
    flat = _keywords(tokens)
    words = _words(tokens)
    if "MERGE" in flat:
        yield "merge"
    elif not flat & {"INSERT", "UPDATE", "DELETE"}:
        yield "statement"
    if "INSERT" in flat and ("VALUES" in flat or not re.search(r"\bFROM\b", words)):
        yield "insert-values"
    if _names_a_schema(tokens, tables):
        yield "schema"
    if re.search(r"(?<!FOR )(?<!KEY )\bUPDATE\b|\bDELETE\b|\bRETURNING\b", words):
        if _is_mutable(tokens, _VOLATILE | _STABLE):
            yield "volatile"
    elif "INSERT" in flat and _is_mutable(tokens, _STABLE) and not _calls(tokens, _VOLATILE):
        # With one that is volatile, rows may be selected first and then inserted, by two statements.
        yield "stable"


def _names_a_schema(tokens: Tokens, tables: set[str]) -> bool:
    """Tell whether a name is qualified by anything but a table, or a name given in the statement."""
    given = {"excluded", *tables}
    for first, second in pairwise(tokens):
        if second.is_name and (first.text in {"AS", ")"} or first.name in tables):
            given.add(second.name)
        elif first.is_name and second.text == "AS":
            given.add(first.name)
    return any(
        token.text == "."
        and tokens[position - 1].is_name
        and (tokens[position - 1].name not in given or tokens[position + 2 : position + 3] == (token,))
        for position, token in enumerate(tokens)
        if position
    )


def _calls(tokens: Tokens, functions: set[str]) -> bool:
    return any(
        token.kind == "word" and token.name in functions and following == Token("symbol", "(")
        for token, following in pairwise(tokens)
    )


def _is_mutable(tokens: Tokens, functions: set[str]) -> bool:
    """Tell whether a statement calls one of these functions, asks for the moment, or casts by the time zone."""
    if _calls(tokens, functions):
        return True
    for position, token in enumerate(tokens):
        if token.kind != "word":
            continue
        if token.text in _MOMENTS:
            return True
        before = tokens[max(position - 2, 0) : position]
        is_cast = len(before) == 2 and before[1].text in {"::", "AS"} and token.text in _TIMES
        if is_cast and before[0].kind != "literal":
            return True
    return False


def _name_at(tokens: Tokens) -> int:
    """Find the position of the name in CREATE TABLE or ALTER TABLE."""
    position = 2
    while tokens[position].kind == "word" and tokens[position].text in {"IF", "NOT", "EXISTS", "ONLY"}:
        position += 1
    while tokens[position + 1 : position + 2] == (Token("symbol", "."),):
        position += 2
    return position


def _items(tokens: Tokens) -> tuple[list[Tokens], Tokens]:
    """Read a list in parentheses: its items, and the tokens after it."""
    if not tokens or tokens[0].text != "(":
        return [], tokens
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return _split(tokens[1:position]), tokens[position + 1 :]
    return [], tokens


def _split(tokens: Tokens) -> list[Tokens]:
    """Split at the commas outside of parentheses."""
    groups: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and depth == 0:
            groups.append([])
        else:
            groups[-1].append(token)
    return [item for item in groups if item]


def _flat(tokens: Tokens) -> list[Token]:
    """Leave out the contents and the ends of parentheses, but not their beginnings."""
    flat = []
    depth = 0
    for token in tokens:
        depth -= token.text == ")"
        if depth == 0 and token.text != ")":
            flat.append(token)
        depth += token.text == "("
    return flat


def _keywords(tokens: Tokens) -> set[str]:
    """Gather the words outside of parentheses."""
    return {token.text for token in _flat(tokens) if token.kind == "word"}
