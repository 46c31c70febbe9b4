"""Reading SQL text as PostgreSQL's scanner does: tokens, and the statements they form.

Enough to tell a keyword from the same word within a literal, a quoted name or a comment, and the end of a
statement from a semicolon there. `standard_conforming_strings` is taken to be on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    |(?P<comment>--[^\n]*)
    |(?P<block>/\*)
    |(?P<literal>[eE]'(?:[^'\\]|\\.|'')*'
        |(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*'
        |\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$
        |\d[\w.]*)
    |(?P<name>(?:[uU]&)?"(?:[^"]|"")+")
    |(?P<word>[^\W\d][\w$]*)
    |(?P<symbol>::|[^'"])
    """,
    re.DOTALL | re.VERBOSE,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_LINE_END = re.compile(r"[^\S\n]+(?=\n)")


@dataclass(frozen=True, slots=True)
class Token:
    """A word (folded to upper case), a name (quoted, so taken as it is), a literal or a symbol."""

    kind: str
    text: str

    @property
    def is_name(self) -> bool:
        """Whether it can name something; a keyword can, as far as a scanner knows."""
        return self.kind in {"word", "name"}

    @property
    def name(self) -> str:
        """The name in lower case if it is a word, as it stands if it is quoted."""
        return self.text.lower() if self.kind == "word" else self.text


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement: its text from its first token to its last, without blanks at its lines' ends; its tokens."""

    text: str
    tokens: tuple[Token, ...]


def statements(sql: str) -> list[Statement]:
    """Read SQL text; raises ValueError if a literal, name or comment has no end."""
    parsed: list[Statement] = []
    text, between, depth = "", "", 0
    tokens: list[Token] = []
    for kind, lexeme in [*_lexemes(sql), ("symbol", ";")]:
        if kind in {"space", "comment"}:
            between += _LINE_END.sub("", lexeme)
            continue
        depth += (lexeme == "(") - (lexeme == ")")
        if lexeme == ";" and depth <= 0:
            parsed += [Statement(text, tuple(tokens))] if tokens else []
            text, between, depth, tokens = "", "", 0, []
            continue
        # Space before the first token, or after the last, is none of the statement's.
        text += between + lexeme if tokens else lexeme
        between = ""
        tokens.append(_token(kind, lexeme))
    return parsed


def _token(kind: str, lexeme: str) -> Token:
    if kind == "name":
        return Token("name", lexeme[lexeme.index('"') + 1 : -1].replace('""', '"'))
    return Token(kind, lexeme.upper() if kind == "word" else lexeme)


def _lexemes(sql: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        if match is None:
            raise ValueError(f"No end of: {sql[position : position + 40]}")
        kind, start = str(match.lastgroup), position
        if kind == "tag":
            kind = "literal"
        position = match.end()
        if kind == "block":
            kind, position = "comment", _comment_end(sql, position)
        yield kind, sql[start:position]


def _comment_end(sql: str, position: int) -> int:
    """Find the end of a comment, which may hold others."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(sql, position):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise ValueError(f"No end of: /*{sql[position : position + 40]}")
