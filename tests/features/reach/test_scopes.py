"""Each read model that takes a reach is narrowed by it, and by nothing for a caller who reaches the whole school."""

from __future__ import annotations

import sys

import pytest

from school_service import app
from school_service.core.database import Model
from school_service.core.reach import RELATIONS, SCOPES, Reach
from school_service.core.read_models import ReadModel, unwrapped

assert app

NARROWED = {
    f"{name}.{member}": model
    for name, module in sorted(sys.modules.items())
    if name.startswith("school_service.features.")
    for member, model in vars(module).items()
    if isinstance(model, ReadModel)
    and model._reaches
    and model.query.__module__ == name != "school_service.features.me.reads"
}


def test_many_read_models_take_a_reach():
    assert len(NARROWED) > 40


@pytest.mark.parametrize("name", NARROWED)
def test_a_read_model_with_a_reach_reads_the_callers_relations(name):
    model = NARROWED[name]
    template = model._make(frozenset(model._names))

    whole = template.statement(unwrapped)._text
    narrowed = template.within(Reach("".join(RELATIONS))).statement(unwrapped)._text
    of_nobody = template.within(Reach("M")).statement(unwrapped)._text

    assert "caller" not in whole
    assert "caller" in narrowed
    assert "caller." in of_nobody or "false" in of_nobody


def test_scopes_are_of_tables():
    assert SCOPES.keys() <= Model.metadata.tables.keys()
