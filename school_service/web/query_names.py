"""Parameters of a query that an operation does not know.

An extension refuses them, so that a misspelt filter does not list everything. The interface says nothing of them: its
operations ignore them, and the log line of the request names them.
"""

from __future__ import annotations

import re
from collections.abc import Set
from functools import cache

from flask import g, request
from flask_smorest import abort

from school_service.web.interface_operations import INTERFACE

MOST_NAMES = 10
LONGEST_NAME = 40  # characters of a name that is repeated


def check_query_names(known: Set[str]) -> None:
    """Refuse the request's unknown parameters with 422, or note their names for the log."""
    names = list(dict.fromkeys(name for name in request.args if name not in known))[:MOST_NAMES]
    if not names:
        return
    shown = [name[:LONGEST_NAME] for name in names]
    rule = request.url_rule.rule if request.url_rule else ""
    if is_extension("GET" if request.method == "HEAD" else request.method, rule):
        errors = {name: ["Unknown parameter."] for name in shown}
        abort(422, message="The query has parameters that are not known here.", errors={"query": errors})
    g.unknown_parameters = shown


@cache
def is_extension(method: str, path: str) -> bool:
    """Tell whether an operation is none of the interface, by its path as Flask or OpenAPI writes it."""
    return f"{method} {re.sub('<[^<>]*>|{[^{}]*}', '{}', path)}" not in INTERFACE
