"""Read models: built once for each combination of filters, and compiled once for each way of rendering them."""

from __future__ import annotations

import threading
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, exists, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import aliased

from school_service.core import read_models
from school_service.core.read_models import BoundQuery, CompiledStatement, Query, read_model
from school_service.features.school.models import Classroom, Subject
from tests.threads import run_concurrently


def one_way(query: Query) -> Query:
    """Wrap a query."""
    return select(func.count()).select_from(query.subquery())


@pytest.fixture
def model():
    """A read model that counts how often it is built."""

    @read_model
    def classrooms(classroom_id: UUID | None = None, name: str | None = None) -> Query:
        classrooms.built += 1
        query = select(Classroom.id, Classroom.name)
        if classroom_id is not None:
            query = query.where(Classroom.id == classroom_id)
        return query if name is None else query.where(Classroom.name == name)

    classrooms.built = 0
    return classrooms


def test_a_select_is_built_once_for_each_combination_of_filters(model):
    for _ in range(3):
        model()
        model(uuid4())
        model(name="JSS 1")
        model(uuid4(), "JSS 1")

    assert model.built == 4


def test_threads_that_need_one_at_once_build_and_compile_it_once():
    under_way, wrapped = [], []
    built = threading.Event()

    @read_model
    def classrooms() -> Query:
        under_way.append("built")
        built.wait(0.05)
        return select(Classroom.id)

    def wrap(query):
        wrapped.append(query)
        built.wait(0.05)
        return one_way(query)

    statements = run_concurrently(4, lambda _: classrooms().template.statement(wrap))

    assert (len(set(statements)), len(under_way), len(wrapped)) == (1, 1, 1)


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

    first, second, template = make(1), make(2), model().template

    assert template.statement(first) is template.statement(first)
    assert template.statement(first) is not template.statement(second)


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


ROOM, OTHER = Classroom, aliased(Classroom, name="other")
REMOVED = delete(Classroom).returning(Classroom.name).cte("removed")
ADDED = (
    insert(Subject)
    .from_select(["name"], select(Classroom.name), include_defaults=False)
    .returning(Subject.name)
    .cte("added")
)


@pytest.mark.parametrize(
    ("statement", "on_a_node"),
    [
        (select(ROOM.name), "SELECT classrooms.name FROM classrooms_7 AS classrooms"),
        (select(OTHER.name), "SELECT other.name FROM classrooms_7 AS other"),
        (
            select(ROOM.id).join(OTHER, OTHER.id == ROOM.id).with_for_update(of=ROOM, read=True),
            "SELECT classrooms.id FROM classrooms_7 AS classrooms "
            "JOIN classrooms_7 AS other ON other.id = classrooms.id FOR SHARE OF classrooms",
        ),
        (
            select(select(Subject.id).where(Subject.name == ROOM.name).lateral("l").c.id).select_from(ROOM),
            "SELECT l.id FROM classrooms_7 AS classrooms, "
            "LATERAL (SELECT subjects.id AS id FROM subjects_8 AS subjects "
            "WHERE subjects.name = classrooms.name) AS l",
        ),
        (
            insert(Subject).from_select(
                ["name"], select(ROOM.name).where(~exists(select(Subject.id))), include_defaults=False
            ),
            "INSERT INTO subjects_8 AS subjects (name) SELECT classrooms.name FROM classrooms_7 AS classrooms "
            "WHERE NOT (EXISTS (SELECT subjects.id FROM subjects_8 AS subjects))",
        ),
        (
            select(select(ROOM.name).cte("rooms").c.name),
            "WITH rooms AS (SELECT classrooms.name AS name FROM classrooms_7 AS classrooms) "
            "SELECT rooms.name FROM rooms",
        ),
        (
            update(Subject).values(name="x").where(Subject.name.in_(select(ROOM.name))),
            "UPDATE subjects_8 AS subjects SET name=%s WHERE subjects.name IN "
            "(SELECT classrooms.name FROM classrooms_7 AS classrooms)",
        ),
        (
            update(Subject).values(name=ROOM.name).where(Subject.id == ROOM.id),
            "UPDATE subjects_8 AS subjects SET name=classrooms.name FROM classrooms_7 AS classrooms "
            "WHERE subjects.id = classrooms.id",
        ),
        (
            insert(Subject).from_select(["name"], select(REMOVED.c.name), include_defaults=False),
            "WITH removed AS (DELETE FROM classrooms_7 AS classrooms RETURNING classrooms.name) "
            "INSERT INTO subjects_8 AS subjects (name) SELECT removed.name FROM removed",
        ),
        (
            insert(Subject).from_select(["name"], select(ADDED.c.name), include_defaults=False),
            "WITH added AS (INSERT INTO subjects_8 AS subjects (name) SELECT classrooms.name AS name "
            "FROM classrooms_7 AS classrooms RETURNING subjects.name) "
            "INSERT INTO subjects_8 AS subjects (name) SELECT added.name FROM added",
        ),
        (
            upsert(Subject).values(name="x").on_conflict_do_nothing(index_elements=["name"]),
            "INSERT INTO subjects_8 AS subjects (id, name) VALUES (%s::UUID, %s) ON CONFLICT (name) DO NOTHING",
        ),
    ],
)
def test_on_a_node_a_statement_reads_changes_and_locks_the_shards(statement, on_a_node, monkeypatch):
    compiled = CompiledStatement(statement)
    plain = " ".join(compiled.sql.split())
    numbers = {"classrooms": 7, "subjects": 8}
    monkeypatch.setattr(
        read_models, "table_names", lambda tables: {table: f"{table}_{numbers[table]}" for table in tables}
    )

    assert " ".join(compiled.sql.split()) == on_a_node
    assert plain == on_a_node.replace("_7 AS classrooms", "").replace("_8 AS subjects", "").replace("_7", "")


def test_a_constraint_named_by_on_conflict_is_refused_before_it_is_sent():
    given = upsert(Subject).values(name="x")
    CompiledStatement(given.on_conflict_do_nothing(index_elements=["name"]))

    with pytest.raises(TypeError, match="names columns"):
        CompiledStatement(given.on_conflict_do_nothing(constraint="uq_subjects_name"))
