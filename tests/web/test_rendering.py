"""Lists that PostgreSQL renders row by row: byte for byte as one array would be, and once in memory."""

from __future__ import annotations

import gc
import tracemalloc
from uuid import UUID

import pytest
from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table, Text, cast, select, text

from school_service.core.database import db
from school_service.features.people.students.reads import students
from school_service.features.school.classrooms import service
from school_service.web import rendering
from school_service.web.rendering import json_response, render_list
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.connections.dialect import psycopg2_dialect
from tenants.connections.engines import serving_engine
from tenants.connections.statements import TEXTS_AT_ONCE
from tests.postgres import on_postgresql_alone

# Characters that JSON escapes, others, and texts that look like the end of an element.
NAMES = [
    '"',
    "\\",
    "\\n",
    "\n\t",
    ", ",
    "}, {",
    "]",
    "Ọ̀ṣun",
    "漢字",
    "😀",
    "%s %(x)s",
    "\x7f",
    "</script>",
    "\u2028",
]


def fill(rows):
    db.session.execute(
        text(
            "INSERT INTO classrooms (id, name, level) SELECT gen_random_uuid(), "
            "(CAST(:names AS text[]))[1 + number % :kinds] || number, 'Junior' FROM generate_series(1, :rows) AS number"
        ),
        {"names": NAMES, "kinds": len(NAMES), "rows": rows},
    )


def as_one_array():
    array = select(cast(rendering._rows_as_json(), Text))
    return db.session.scalars(array.select_from(service.classrooms.query().subquery("answer"))).one()


@pytest.mark.parametrize("rows", [0, 1, 2, TEXTS_AT_ONCE - 1, TEXTS_AT_ONCE, TEXTS_AT_ONCE + 1, 3333])
def test_a_list_is_byte_for_byte_one_array(api, place, messages, rows):
    with in_transaction(SchoolBinding(place.id)):
        fill(rows)
        expected = as_one_array()

    with messages() as few:
        answer = api.get("/classrooms")

    assert answer.get_data() == expected.encode()
    assert len(answer.get_json()) == rows
    assert answer.content_length == len(answer.get_data())
    # However many rows: those before the statement, the statement, and the end.
    with messages() as many:
        api.get("/roles")
    assert len(few) == len(many)


def test_another_school_sees_none_of_it(api, other_api, place):
    with in_transaction(SchoolBinding(place.id)):
        fill(2000)

    assert len(api.ok(api.get("/classrooms"))) == 2000
    assert other_api.ok(other_api.get("/classrooms")) == []


def test_a_list_is_once_in_memory(rehearsed, place):
    with in_transaction(SchoolBinding(place.id)):
        fill(20_000)
        render_list(service.classrooms())  # objects of the first use stay
        gc.collect()
        tracemalloc.start()
        try:
            answer = json_response(render_list(service.classrooms()).body)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    length = len(answer.get_data())
    assert length > 2_000_000
    assert peak < 1.5 * length


def test_the_bytes_are_utf_8_in_any_environment(settings, monkeypatch):
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    engine = serving_engine(settings.database_url)
    connection = engine.raw_connection()
    try:
        assert connection.driver_connection.encoding == "UTF8"
    finally:
        connection.close()
        engine.dispose()


def test_a_subquery_that_gives_several_columns_is_run_once_for_a_page(place, make):
    """Each column is as it is in the read model itself."""
    cohort = make.cohort()
    make.enrolled(cohort)
    make.student()
    query = students.query()
    with in_transaction(SchoolBinding(place.id)):
        page = rendering._page_of(query)
        values = {"page_size": 10, "page_offset": 0}
        rows = db.session.execute(select(page), values).mappings().all()
        assert rows == db.session.execute(query).mappings().all()
        assert {row["cohort"] for row in rows} >= {UUID(cohort["id"]), None}

    assert str(query).count("FROM enrollments") == 2
    assert str(page.compile(dialect=psycopg2_dialect())).count("FROM enrollments") == 1


@on_postgresql_alone
def test_a_total_is_counted_without_joins_that_serve_only_columns(place, make):
    make.student()
    source = students.query().get_final_froms()[0]
    counted = select(text("count(*)")).select_from(rendering._as_counted(source))
    with in_transaction(SchoolBinding(place.id)):
        total = db.session.scalar(counted)
        assert total == len(db.session.execute(students.query()).all()) > 0
        plan = "\n".join(db.session.scalars(text(f"EXPLAIN {counted.compile(dialect=psycopg2_dialect())}")))

    assert "on students" in plan
    assert "users" not in plan


def test_a_join_that_may_find_no_row_or_several_counts_as_it_is():
    tables = MetaData()
    parents = Table("parents", tables, Column("id", Integer, primary_key=True))
    children = Table(
        "children",
        tables,
        Column("id", Integer, primary_key=True),
        Column("parent_id", ForeignKey("parents.id"), nullable=False),
        Column("sponsor_id", ForeignKey("parents.id")),
    )
    parent, sponsor = parents.alias("parent"), parents.alias("sponsor")
    toys = Table("toys", tables, Column("child_id", ForeignKey("children.id"), nullable=False))
    # Some of the parents: of the others there is none.
    living = select(parents).where(parents.c.id > 1).subquery("living")
    joined = (
        children.join(parent, parent.c.id == children.c.parent_id)
        .join(sponsor, sponsor.c.id == children.c.sponsor_id)
        .join(toys, toys.c.child_id == children.c.id)
        .join(living, living.c.id == children.c.parent_id)
    )

    assert " ".join(str(rendering._as_counted(joined)).split()) == (
        "children LEFT OUTER JOIN parents AS parent ON parent.id = children.parent_id "
        "JOIN parents AS sponsor ON sponsor.id = children.sponsor_id "
        "JOIN toys ON toys.child_id = children.id "
        "JOIN (SELECT parents.id AS id FROM parents WHERE parents.id > :id_1) AS living "
        "ON living.id = children.parent_id"
    )
