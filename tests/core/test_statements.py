"""Statements that go out together: in one message, in their order, each with its own values."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from school_service.core import statements
from school_service.core.read_models import fetch_row, read_model
from school_service.core.statements import (
    NewRows,
    execute,
    in_one_round_trip,
    insert_row,
    new_row,
    put_row,
    statement,
)
from school_service.features.people.models import CREATED, User
from school_service.features.school.models import Classroom, Subject
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding


@pytest.fixture
def in_school(api):
    with in_transaction(SchoolBinding(api.school)):
        yield


@read_model
def level_of(classroom_id: UUID) -> Any:
    return select(Classroom.level).where(Classroom.id == classroom_id)


@statement
def rename(old: str, new: str) -> Any:
    # A constant of its own: SQLAlchemy makes a parameter of it with a name that others have too.
    return update(Classroom).where(Classroom.name == old, Classroom.level != "none").values(name=new)


@statement
def raise_level(name: str) -> Any:
    raised = update(Classroom).where(Classroom.name == name, Classroom.level != "Senior %(x)s 100%")
    return raised.values(level=Classroom.level + " 2").returning(Classroom.id, Classroom.level)


def test_statements_are_one_message_and_see_the_rows_of_those_before(in_school, messages):
    with messages() as sent:
        row = execute(
            new_row(Classroom, name="A", level="Junior 100% %(x)s"), rename("A", "B"), raise_level("B")
        )

    assert len(sent) == 1
    assert row is not None
    assert row["level"] == "Junior 100% %(x)s 2"
    assert isinstance(row["id"], UUID)


def test_rows_have_values_of_their_own(in_school):
    rows = [new_row(Classroom, name=f"JSS {level}", level=level) for level in ("1", "2", "3")]

    assert execute(*rows) is None

    assert [fetch_row(level_of(row.id)) for row in rows] == [{"level": "1"}, {"level": "2"}, {"level": "3"}]


def test_rows_of_one_table_are_one_statement(in_school, messages):
    rows = [new_row(Classroom, name=f"JSS {level}", level=level) for level in ("1 %s", "2", "3")]

    with messages() as sent:
        execute(NewRows(rows))

    assert [message.count("INSERT") for message in sent] == [1]
    assert [fetch_row(level_of(row.id)) for row in rows] == [
        {"level": "1 %s"},
        {"level": "2"},
        {"level": "3"},
    ]


def test_a_column_without_a_value_has_the_models_default_else_null(in_school):
    user = insert_row(
        User, username="a", username_key="a", first_name="Adaeze", last_name="Okàfor", gender=""
    )

    assert user.values["session_number"] == CREATED
    assert user.values["created_at"] is not None
    assert user.values["deleted_at"] is None
    stored = {column.name for column in User.__table__.columns}
    assert user.values.keys() == stored - {"name_sort_key", "username_sort_key"}


def test_a_column_that_there_is_not_is_named():
    with pytest.raises(TypeError, match="Classroom has no column seats"):
        new_row(Classroom, name="A", level="x", seats=1)


def test_the_violation_names_the_first_statement_at_fault(api):
    user = {"username": "a", "username_key": "a", "first_name": "A", "last_name": "B", "gender": ""}
    rows = [lambda: new_row(User, **user), lambda: new_row(Classroom, name="A", level="x")]
    with in_transaction(SchoolBinding(api.school)):
        execute(*(make() for make in rows))

    for order, violated in ((rows, "uq_users_username"), (rows[::-1], "uq_classrooms_name")):
        with pytest.raises(IntegrityError, match=violated), in_transaction(SchoolBinding(api.school)):
            execute(*(make() for make in order))


def test_until_it_is_read_nothing_is_written(in_school, messages):
    room = new_row(Classroom, name="A", level="x")
    with messages() as sent:
        reading = in_one_round_trip(room, read=level_of(room.id))
    assert sent == []
    assert fetch_row(level_of(room.id)) is None

    with messages() as sent:
        assert fetch_row(reading) == {"level": "x"}

    assert len(sent) == 1


def test_the_other_school_has_nothing_of_it(api, other_api):
    with in_transaction(SchoolBinding(api.school)):
        room = insert_row(Classroom, name="A", level="x")

    with in_transaction(SchoolBinding(other_api.school)):
        assert fetch_row(level_of(room.id)) is None
    with in_transaction(SchoolBinding(api.school)):
        assert fetch_row(level_of(room.id)) == {"level": "x"}


def test_a_row_is_inserted_into_the_shard_on_a_node(monkeypatch):
    row, put = new_row(Subject, name="x", code="x"), put_row(Subject, "code", name="x", code="x")
    plain = row.batch()[0], put.batch()[0]
    monkeypatch.setattr(statements, "table_names", lambda tables, school_id: {"subjects": "subjects_8"})

    assert all(sql.startswith("INSERT INTO subjects (") for sql in plain)
    assert (row.batch()[0], put.batch()[0]) == tuple(
        sql.replace("INTO subjects ", "INTO subjects_8 ") for sql in plain
    )
