"""JSON that is written as text is what PostgreSQL's own functions write, byte for byte."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from sqlalchemy import (
    Boolean,
    Date,
    DateTime,
    Integer,
    Numeric,
    Text,
    Uuid,
    cast,
    column,
    func,
    literal,
    null,
    select,
    values,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from school_service.core.database import db
from school_service.core.json_texts import (
    JsonText,
    array_of,
    as_json,
    jsonb_members_of,
    jsonb_object_of,
    object_of,
    whole_object_of,
)
from school_service.web.request_scope import in_transaction
from tenants.connections.binding import SchoolBinding

HOSTILE = 'Ọlá "quoted" \\ back \\u0000 \t\n\x01 \u2028 😀 </script> 100% :name'


COLUMNS = {
    "text": cast(HOSTILE, Text),
    "empty": cast("", Text),
    "number": cast(Decimal("12.50"), Numeric),
    "count": cast(-3, Integer),
    "yes": cast(True, Boolean),
    "no": cast(False, Boolean),
    "id": cast(UUID(int=7), Uuid),
    "day": cast(date(2026, 11, 23), Date),
    "moment": cast(
        literal(datetime(2026, 11, 23, 10, 40, 0, 5, UTC), DateTime(timezone=True)),
        DateTime(timezone=True),
    ),
    "json": cast(literal('{"b": [1.50, null], "a": "x"}', Text), JSONB),
    "untyped": func.json_build_object("k", literal("v", Text)),
    **{f"no {kind.__name__}": cast(null(), kind) for kind in (Text, Numeric, Boolean, Uuid, JSONB)},
}


@pytest.fixture(autouse=True)
def in_school(api):
    """A transaction in a school."""
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        yield


def test_an_object_without_nulls_is_that_of_json_build_object():
    columns = {name: value for name, value in COLUMNS.items() if not name.startswith("no ")}

    for chosen in (columns, {"id": columns["id"]}, {"count": columns["count"]}):
        members = [part for name, value in chosen.items() for part in (literal(name, Text), value)]
        written, built = db.session.execute(
            select(whole_object_of(**chosen), cast(func.json_build_object(*members), Text))
        ).one()

        assert written == built


def test_an_object_is_that_of_json_build_object():
    inner = object_of(**COLUMNS)
    of_postgresql = func.json_build_object(*(part for member in COLUMNS.items() for part in member))
    written, expected, nested, nested_expected, begun, begun_expected = db.session.execute(
        select(
            inner,
            cast(of_postgresql, Text),
            object_of(before=literal(1, Integer), inner=inner, after=cast("z", Text)),
            cast(func.json_build_object("before", 1, "inner", of_postgresql, "after", cast("z", Text)), Text),
            object_of(of_postgresql, more=literal(2, Integer)),
            func.left(cast(of_postgresql, Text), -1) + ', "more" : 2}',
        )
    ).one()

    assert written == expected
    assert nested == nested_expected
    assert begun == begun_expected
    kept, as_it_was = db.session.execute(select(as_json(inner), as_json(literal(5, Integer)))).one()
    assert (kept["text"], kept["number"], as_it_was) == (HOSTILE, 12.5, 5)


def test_what_is_read_as_jsonb_says_the_same_in_the_order_of_jsonb():
    more = {"ọ": cast(HOSTILE, Text), "longest of all names": cast(1, Integer)}
    whole = {**COLUMNS, **more}
    of_postgresql = func.jsonb_build_object(
        *(part for member in whole.items() for part in member), type_=JSONB
    )
    members = jsonb_members_of(**more)

    written, expected, alone, text = db.session.execute(
        select(
            cast(jsonb_object_of(members, inner=jsonb_object_of(members, **COLUMNS)), JSONB)["inner"],
            of_postgresql,
            jsonb_object_of(b=cast(1, Integer), aa=cast("x", Text), a=cast(null(), Text)),
            jsonb_object_of(**whole),
        )
    ).one()
    names = db.session.scalars(select(func.jsonb_object_keys(of_postgresql))).all()

    assert written == expected
    assert alone == '{"a":null,"b":1,"aa":"x"}'
    assert list(json.loads(text)) == names


def test_an_array_is_that_of_json_agg_in_order():
    rows = values(column("name", Text), column("number", Integer), name="rows").data(
        [("b", 2), ("a", 1), (HOSTILE, None)]
    )
    document = object_of(name=rows.c.name, number=rows.c.number)
    of_postgresql = func.json_agg(
        aggregate_order_by(
            func.json_build_object("name", rows.c.name, "number", rows.c.number), rows.c.number
        )
    )

    written, expected = db.session.execute(
        select(array_of(document, rows.c.number), cast(of_postgresql, Text))
    ).one()

    assert written == expected
    assert isinstance(array_of(document, rows.c.number).type, JsonText)
    nothing = select(array_of(document, rows.c.number)).where(rows.c.name == "nobody")
    assert db.session.scalar(nothing) is None
