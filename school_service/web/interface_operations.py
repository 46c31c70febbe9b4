"""The operations of the interface; all others are extensions of this service (docs/rules/)."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import cache

from flask import g, request
from flask_smorest import abort

from school_service.core.errors import SAID_BACK

INTERFACE = frozenset(
    {
        "GET /assessments",
        "POST /assessments",
        "DELETE /assessments/{}",
        "GET /assessments/{}",
        "GET /assessments/{}/download-sheet",
        "POST /assessments/{}/scoresheet",
        "GET /classrooms",
        "POST /classrooms",
        "GET /classrooms/{}",
        "GET /cohort-subjects",
        "POST /cohort-subjects",
        "GET /cohort-subjects/{}",
        "PATCH /cohort-subjects/{}/students",
        "DELETE /cohort-subjects/{}/students/{}",
        "GET /cohorts",
        "POST /cohorts",
        "GET /cohorts/{}",
        "PATCH /cohorts/{}",
        "POST /cohorts/{}/enrollment",
        "PATCH /cohorts/{}/remove_students",
        "GET /cohorts/{}/students",
        "GET /contacts",
        "POST /contacts",
        "GET /departments",
        "POST /departments",
        "GET /employee-categories",
        "GET /employees",
        "POST /employees",
        "DELETE /employees/{}",
        "GET /employees/{}",
        "GET /employees/{}/bank-account",
        "GET /employees/{}/nextofkin",
        "GET /grade-configs",
        "GET /gradebooks",
        "POST /gradebooks",
        "DELETE /gradebooks/{}",
        "GET /gradebooks/{}",
        "GET /graduates",
        "POST /graduates",
        "GET /health",
        "GET /metrics",
        "GET /metrics/download-sheet",
        "POST /metrics/upload-sheet",
        "GET /permissions",
        "POST /permissions",
        "GET /positions",
        "GET /roles",
        "POST /roles",
        "GET /roles/{}",
        "PATCH /roles/{}/permissions",
        "GET /scoresheets/{}/scoresheet",
        "GET /teachers/{}",
        "PATCH /teachers/{}/add_to_batch",
        "DELETE /teachers/{}/teachers/{}",
        "GET /templates",
        "POST /templates",
        "DELETE /templates/{}",
        "POST /terms",
        "GET /terms/{}",
        "GET /users",
        "POST /users",
        "POST /users/login",
        "GET /users/{}",
        "DELETE /users/{}/delete",
        "PUT /users/{}/restore",
        "PUT /users/{}/roles",
    }
)
"""Method and path of each, with `{}` for an id."""


MOST_NAMES = 10  # in the log
LONGEST_NAME = 40  # characters of a name there


def check_query_names(known: Set[str]) -> None:
    """Refuse the request's unknown parameters with 422, or note their names for the log."""
    names = [name for name in request.args if name not in known]
    if not names:
        return
    rule = request.url_rule.rule if request.url_rule else ""
    if is_extension("GET" if request.method == "HEAD" else request.method, rule):
        errors = {name[:SAID_BACK]: ["Unknown parameter."] for name in names}
        abort(422, message="The query has parameters that are not known here.", errors={"query": errors})
    g.unknown_parameters = [name[:LONGEST_NAME] for name in names[:MOST_NAMES]]


@cache
def is_extension(method: str, path: str) -> bool:
    """Tell whether an operation is none of the interface, by its path as Flask or OpenAPI writes it."""
    return f"{method} {re.sub('<[^<>]*+>|{[^{}]*+}', '{}', path)}" not in INTERFACE
