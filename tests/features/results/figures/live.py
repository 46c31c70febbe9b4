"""The term results of everyone in a batch, live, as publishing freezes them."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Made, Query, read_model
from school_service.features.results.computing.cards import term_result
from school_service.features.results.computing.class_term.entered import class_term
from school_service.features.results.computing.class_term.loaded import Loaded
from school_service.features.results.computing.class_term.scopes import scope_of_batch
from school_service.features.results.computing.compute import compute

PROVISIONAL = {"state": "PROVISIONAL", "version": None, "published_at": None}


def term_results(batch_id: UUID, term: str) -> Made:
    """Make them by name; `term` is the id of a term or its name in the batch's session."""
    return Made(_class_in_term(batch_id, term), partial(_of_batch, str(batch_id)))


@read_model
def _class_in_term(batch_id: UUID, term: str) -> Query:
    return select(*class_term(scope_of_batch(batch_id, term)).columns())


def _of_batch(batch: str, row: Any, _reach: Any) -> list[dict[str, Any]]:
    loaded = Loaded.of(row)
    if loaded is None:
        return []
    loaded = loaded.shown_to(None)
    computed = compute(loaded.entered)
    return [
        {
            "student": person.student,
            **loaded.head(batch, loaded.scope["batch_name"]),
            **PROVISIONAL,
            **term_result(loaded, computed, person),
        }
        for person in loaded.people
        if person.batch == batch
    ]
