"""Reading bodies and queries: exact numbers, bounded size and nesting, and a clear refusal of anything else."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import marshmallow as ma
from flask import Request, request
from flask_smorest import abort
from webargs.flaskparser import FlaskParser

from school_service.config import JSON_LIMIT
from school_service.core.errors import SAID_BACK

LONGEST_WHOLE = 20  # characters
NESTING_LIMIT = 32  # arrays and objects within each other
QUERIES_REMEMBERED = 1000
LONGEST_QUERY_REMEMBERED = 200  # characters


class BodyParser(FlaskParser):
    """webargs' parser, reading JSON and forms as the API documents them.

    The results for queries are cached: a front end asks for the same pages again and again, and reading the query would
    take most of such a request's time.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._queries: dict[tuple[ma.Schema, str], dict[str, Any]] = {}

    def parse(
        self, argmap: Any, req: Request | None = None, *, location: str | None = None, **options: Any
    ) -> Any:
        """Read and validate the input in one place of a request."""
        if location != "query" or not isinstance(argmap, ma.Schema):
            return super().parse(argmap, req, location=location, **options)
        key = (argmap, request.environ.get("QUERY_STRING", ""))
        known = self._queries.get(key)
        if known is None:
            known = super().parse(argmap, req, location=location, **options)
            if len(key[1]) > LONGEST_QUERY_REMEMBERED or any(
                isinstance(v, list | dict) for v in known.values()
            ):
                return known
            if len(self._queries) >= QUERIES_REMEMBERED:
                self._queries.clear()
            self._queries[key] = known
        return dict(known)

    def load_json(self, req: Request, schema: Any) -> Any:
        """Read the body as JSON, its decimals exactly.

        415, 413 or 400 if it is something else; 422 if an object has two members of one name: other readers may see
        another one than we do (RFC 8259, section 4).
        """
        if not req.is_json:
            if req.mimetype:
                abort(415, message=f"The body must be application/json, not {req.mimetype[:SAID_BACK]}.")
            if req.content_length:
                abort(415, message="The body must be application/json; the request names no Content-Type.")
        limit_json(req)
        body = req.get_data(cache=False)
        if len(body) > JSON_LIMIT:
            abort(413)
        if _depth(body) > NESTING_LIMIT:
            abort(400, message=f"The body is nested more than {NESTING_LIMIT} levels deep.")
        try:
            # The standard library's reader keeps every digit of a decimal. It passes on NaN, infinities and lone
            # surrogates, which validation then refuses by the name of their field.
            return json.loads(
                body.decode("utf-8"), parse_float=_exactly, parse_int=_whole, object_pairs_hook=_members
            )
        except _GivenTwice as twice:
            abort(
                422,
                message=f'The body gives the member "{twice.name[:SAID_BACK]}" more than once in one object.',
                errors={"json": {twice.name[:SAID_BACK]: ["Given more than once."]}},
            )
        except (ValueError, RecursionError):
            abort(400, message="The body is not JSON.")

    def load_files(self, req: Request, schema: Any) -> Any:
        """Read the files of a form; 415 if the body is no form."""
        if req.mimetype != "multipart/form-data":
            abort(415, message="The body must be multipart/form-data.")
        return super().load_files(req, schema)


def limit_json(req: Request) -> None:
    """Let no more of a body be read than JSON may have."""
    # One byte more, so that a body that names no length is seen to be too large and not cut off at the limit.
    req.max_content_length = JSON_LIMIT + 1


class _GivenTwice(Exception):
    """An object has two members of one name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members; raises _GivenTwice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _GivenTwice(name)
            seen.add(name)
    return members


def _exactly(number: str) -> Decimal:
    """Read a decimal with all its digits; one beyond every exponent is handed on as NaN, refused by every field."""
    try:
        return Decimal(number)
    except InvalidOperation:
        return Decimal("NaN")


def _whole(number: str) -> int | Decimal:
    """Read a whole number; one longer than any stored number as a decimal, at a lower cost and without limit."""
    return int(number) if len(number) <= LONGEST_WHOLE else _exactly(number)


def _depth(body: bytes) -> int:
    """Count how deep the body nests; brackets within strings do not count."""
    if body.count(b"[") + body.count(b"{") <= NESTING_LIMIT:
        return 0
    depth = deepest = 0
    for byte in _STRING.sub(b"", body):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > NESTING_LIMIT:
                return deepest
        elif byte in b"]}":
            depth -= 1
    return deepest


# One that never ends goes on to the end of the body.
_STRING = re.compile(rb'"(?>(?:[^"\\]++|\\.)*)"?', re.DOTALL)
