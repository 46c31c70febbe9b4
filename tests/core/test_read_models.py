"""Read models: built once for each combination of filters, and compiled once for each way of rendering them."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, literal, select

from school_service.core.read_models import BoundQuery, Query, read_model
from school_service.features.classrooms.models import Classroom


def one_way(query: Query) -> Query:
    """Wrap a query."""
    return select(func.count()).select_from(query.subquery())


@pytest.fixture
def model():
    """A read model that counts how often it is built."""

    @read_model
    def classrooms(classroom_id: UUID | None = None, name: str | None = None) -> Query:
        classrooms.built += 1
        found = select(Classroom.id, Classroom.name)
        if classroom_id is not None:
            found = found.where(Classroom.id == classroom_id)
        return found if name is None else found.where(Classroom.name == name)

    classrooms.built = 0
    return classrooms


def test_it_is_built_once_for_each_combination_of_filters(model):
    for _ in range(3):
        model()
        model(uuid4())
        model(name="JSS 1")
        model(uuid4(), "JSS 1")

    assert model.built == 4


def test_a_filter_has_its_value_from_each_call(model):
    first, second = model(name="JSS 1"), model(name="JSS 2")

    assert isinstance(first, BoundQuery)
    assert first.template is second.template
    statement = first.template.statement(one_way)
    assert "JSS 1" in statement.parameters(first.values)
    assert "JSS 2" in statement.parameters(second.values)


def test_a_statement_is_compiled_once_for_each_function_that_wraps_it(model):
    def make(number):
        # Two functions of one name are two ways of rendering.
        def wrap(query):
            return select(literal(number)).select_from(query.subquery())

        return wrap

    one, two, template = make(1), make(2), model().template

    assert template.statement(one) is template.statement(one)
    assert template.statement(one) is not template.statement(two)


def test_its_plain_function_takes_values_for_use_within_another_statement(model):
    made = str(model.query(name="JSS 1").compile(compile_kwargs={"literal_binds": True}))

    assert made.endswith("WHERE classrooms.name = 'JSS 1'")


def test_a_list_of_values_is_refused_before_it_is_sent():
    @read_model
    def some(classroom_ids: list[UUID]) -> Query:
        return select(Classroom.id).where(Classroom.id.in_([uuid4(), uuid4()]))

    with pytest.raises(TypeError, match="any_"):
        some([uuid4()]).template.statement(one_way)


@pytest.mark.parametrize(("arguments", "named"), [((1, 2, 3), {}), ((), {"level": "x"})])
def test_a_filter_that_it_has_not_is_refused(model, arguments, named):
    with pytest.raises(TypeError, match="takes the filters classroom_id, name"):
        model(*arguments, **named)
