"""Errors end: a list is counted before it is read, and no answer of an error is larger than 64 KiB.

The bodies are the dearest to refuse, for every operation that takes JSON.
"""

from __future__ import annotations

import gc
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from school_service.core.errors import ANSWER_LIMIT, Conflict, Invalid, InvalidRows
from school_service.sheets.row_errors import RowError, raise_row_errors
from school_service.web.error_responses import handle

BODY = 990_000  # bytes, of the 1 MiB that JSON may have
SECONDS = 0.5  # of a processor, which no refusal takes
DEEP = json.loads("[" * 20 + "]" * 20)
CONTROLS = "\x01" * 200
FACES = "\U0001f600" * 200
LONE = "\ud83d" * 200

Wrap = Callable[[Any], Any]


def resolved(document, schema):
    """Follow the references of a schema."""
    while "$ref" in schema or "allOf" in schema:
        if "allOf" in schema:
            (schema,) = schema["allOf"]
        else:
            schema = document.spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def arrays(document, schema, wrap: Wrap = lambda members: members) -> Iterator[tuple[dict[str, Any], Wrap]]:
    """Find the arrays in the schema of a body, each with the function that makes a body of its members."""
    schema = resolved(document, schema)
    if schema.get("type") == "array":
        yield schema, wrap
        yield from arrays(document, schema["items"], lambda member: wrap([member]))
    for name, part in schema.get("properties", {}).items():
        yield from arrays(document, part, lambda member, name=name: wrap({name: member}))


def objects(document, schema, wrap: Wrap = lambda members: members) -> Iterator[Wrap]:
    """Find the objects in the schema of a body, each with the function that makes a body of it."""
    schema = resolved(document, schema)
    if schema.get("type") == "array":
        yield from objects(document, schema["items"], lambda member: wrap([member]))
    elif "properties" in schema:
        yield wrap
    for name, part in schema.get("properties", {}).items():
        yield from objects(document, part, lambda member, name=name: wrap({name: member}))


def value_of(schema):
    """Make the value of a parameter."""
    if "enum" in schema:
        return schema["enum"][0]
    return {"uuid": str(uuid4()), "date": "2026-01-05"}.get(schema.get("format"), "1")


@pytest.fixture
def taking_json(document):
    """Every operation that takes JSON: its method, its address with all that it must have, and its body's schema."""
    operations = []
    for (method, path), operation in document.operations().items():
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" not in content:
            continue
        query = "&".join(
            f"{parameter['name']}={value_of(resolved(document, parameter['schema']))}"
            for parameter in operation.get("parameters", ())
            if parameter.get("in") == "query" and parameter.get("required")
        )
        address = re.sub(r"{\w+}", str(uuid4()), path)
        operations.append((method, f"{address}?{query}", content["application/json"]["schema"]))
    assert len(operations) > 80
    return operations


def repeated(member, most: int | None = None):
    """Repeat a member as often as a body has room for, or `most` times."""
    times = BODY // (len(json.dumps(member, separators=(",", ":"))) + 1)
    return [member] * min(times, most or times)


def names(shown: str, number: int):
    return {f"{shown}{place}": None for place in range(number)}


def messages_of(errors) -> Iterator[str]:
    if isinstance(errors, dict):
        for part in errors.values():
            yield from messages_of(part)
    elif isinstance(errors, list):
        for part in errors:
            yield from messages_of(part)
    elif isinstance(errors, str):
        yield errors


def names_of(errors) -> Iterator[str]:
    if isinstance(errors, dict):
        yield from errors
        for part in errors.values():
            yield from names_of(part)


def refused(api, method, address, body):
    """Send a body, and assert that its refusal is within all bounds; returns the errors."""
    written = json.dumps(body, separators=(",", ":"))

    def send():
        began = time.thread_time()
        answer = api.request(method, address, data=written, content_type="application/json")
        return answer, time.thread_time() - began

    answer, took = send()
    if took >= SECONDS:
        # Python may have collected the garbage of the whole run meanwhile: a dear body is dear again.
        took = min(took, send()[1])
    content = answer.get_data()
    whole = json.loads(content.decode())
    about = f"{method} {address} {written[:100]}: {content[:500].decode(errors='replace')}"
    assert answer.status_code >= 400, about
    assert len(content) <= ANSWER_LIMIT, about
    assert len(whole["message"]) <= 300, about
    assert took < SECONDS, (took, about)
    errors = whole.get("errors", {})
    told = errors.get("json", {})
    assert all(len(message) <= 300 for message in messages_of(errors)), about
    assert all(len(name) <= 60 for name in names_of(told)), about
    # 100, and the problems of the last member beside: it is told whole.
    assert len(list(messages_of(told))) < 300, about
    assert errors.get("left_out", 1) > 0, about
    return errors


def test_lists_and_objects_named_by_the_sender_have_a_maximum(taking_json, document):
    def lacking(schema):
        schema = resolved(document, schema)
        if schema.get("type") == "array":
            return ["maxItems"] * ("maxItems" not in schema) + lacking(schema["items"])
        if schema.get("type") == "object" and "properties" not in schema:
            return ["maxProperties"] * ("maxProperties" not in schema)
        return [
            (name, *missing)
            for name, part in schema.get("properties", {}).items()
            if (missing := lacking(part))
        ]

    assert [operation for operation in taking_json if lacking(operation[2])] == []


@pytest.mark.parametrize(
    "most", [pytest.param(30_000, id="90 KB"), pytest.param(None, id="990 KB", marks=pytest.mark.release)]
)
def test_a_list_that_is_too_long_says_that_alone(api, taking_json, document, most):
    for method, address, schema in taking_json:
        for array, body in arrays(document, schema):
            errors = refused(api, method, address, body(repeated({}, most)))
            told = [message for message in messages_of(errors) if "ength" in message]
            assert len(told) == 1, (method, address, errors)
            assert f"{array['maxItems']}." in told[0], (method, address, errors)
            assert "left_out" not in errors, (method, address, errors)


# Each kind goes to a part of all that takes it, the next to the next part; a release sends all to all.
in_parts = pytest.mark.parametrize(
    "parts", [pytest.param(4, id="a fourth"), pytest.param(1, id="all", marks=pytest.mark.release)]
)
NO_MEMBERS = {
    "empty": {},
    "nested": {"x": DEEP},
    "number": 1,
    "text": "",
    "array": DEEP,
    "faces": names(FACES, 99),
    "controls": names(CONTROLS, 99),
    "lone surrogates": names(LONE, 99),
}
NO_NAMES = {"short": "a", "long": "a" * 200, "faces": FACES, "controls": CONTROLS, "lone": LONE}


@in_parts
@pytest.mark.parametrize("kind", NO_MEMBERS)
def test_a_list_of_values_that_are_no_members_is_refused_in_few_words(
    api, taking_json, document, kind, parts
):
    bodies = [
        (method, address, body(repeated(NO_MEMBERS[kind], array["maxItems"])))
        for method, address, schema in taking_json
        for array, body in arrays(document, schema)
    ]
    for method, address, body in bodies[[*NO_MEMBERS].index(kind) % parts :: parts]:
        refused(api, method, address, body)


@in_parts
@pytest.mark.parametrize("kind", NO_NAMES)
def test_members_that_nobody_knows_are_told_by_the_first_100(api, taking_json, document, kind, parts):
    bodies = [
        (method, address, body(names(NO_NAMES[kind], 400)))
        for method, address, schema in taking_json
        for body in objects(document, schema)
    ]
    for method, address, body in bodies[[*NO_NAMES].index(kind) % parts :: parts]:
        errors = refused(api, method, address, body)
        assert errors["left_out"] >= 300, (method, address, errors)


def test_a_list_that_fills_the_body_says_that_alone(api):
    errors = refused(api, "PUT", f"/metrics?batch={uuid4()}&term=FIRST", repeated({}))

    assert errors == {"json": {"metrics": ["Length must be between 1 and 500."]}}


@pytest.mark.parametrize(("number", "told"), [(1000, ["Length must be between 1 and 200."]), (2, None)])
def test_a_list_in_a_query_is_counted_first(api, number, told):
    query = {"batch": str(uuid4()), "term": "FIRST", "students": ["nobody"] * number}

    errors = api.get("/report-cards", query_string=query).get_json()["errors"]

    expected = told or {str(place): ["Not a valid UUID."] for place in range(number)}
    assert errors == {"query": {"students": expected}}


def test_as_many_members_as_a_body_holds_are_told_by_the_first_100(api):
    number = BODY // 14

    errors = refused(api, "POST", "/classrooms", names("a", number))

    assert len(errors["json"]) == 100
    assert errors["left_out"] == number + 2 - 100  # with the name and the level, which are missing


def test_errors_end_after_the_member_with_which_100_messages_are_reached(api):
    errors = refused(api, "PUT", f"/metrics?batch={uuid4()}&term=FIRST", [{}] * 500)

    told = errors["json"]["metrics"]
    assert list(map(int, told)) == [*range(34)]
    assert {len(of_member) for of_member in told.values()} == {3}
    assert errors["left_out"] == 500 - 34


def test_where_all_is_told_nothing_is_left_out(api):
    address = f"/metrics?batch={uuid4()}&term=FIRST"

    assert "left_out" not in refused(api, "PUT", address, [{}] * 34)
    assert refused(api, "PUT", address, [{}] * 35)["left_out"] == 1


@pytest.fixture(scope="module")
def _little_to_look_through():
    """Take objects of the tests before out of the collector's sight: to look through them is most of the work."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("_little_to_look_through")
@pytest.mark.parametrize(
    ("member", "times"),
    [
        ({}, 400),
        ({"student": {}}, 400),
        (1, 400),
        # Of a list that is too long no member is looked at.
        (1, 1100),
        pytest.param({}, 1100, marks=pytest.mark.release),
        pytest.param({"student": {}}, 1100, marks=pytest.mark.release),
    ],
)
def test_nothing_of_a_refused_body_stays_until_the_garbage_collector_looks(
    api, document, taking_json, member, times
):
    def left():
        return sum(type(value) is list and len(value) == times for value in gc.get_objects())

    gc.collect()
    before = left()
    gc.disable()
    try:
        for method, address, schema in taking_json:
            for _, body in arrays(document, schema):
                refused(api, method, address, body([member] * times))
        assert left() == before
    finally:
        gc.enable()


# Errors that services raise


@pytest.fixture
def answered(app):
    """Answers an error as a request with a JSON body would."""

    def answer(error):
        with app.test_request_context("/", method="PUT", json={}):
            content = handle(error).get_data()
        assert len(content) <= ANSWER_LIMIT
        return json.loads(content)

    return answer


def test_a_message_has_300_characters_at_most(answered):
    ids = ", ".join(str(uuid4()) for _ in range(1000))

    answer = answered(Invalid.field("students", f"no such students: {ids}"))

    (told,) = answer["errors"]["json"]["students"]
    assert (len(answer["message"]), len(told)) == (300, 300)
    assert told == f"no such students: {ids}"[:299] + "…"
    assert "left_out" not in answer["errors"]


def test_fields_that_a_service_names_end_too(answered):
    answer = answered(
        Invalid.fields({f"days.{place}.part": "is none of the school's" for place in range(400)})
    )

    assert list(answer["errors"]["json"]) == [f"days.{place}.part" for place in range(100)]
    assert answer["errors"]["left_out"] == 300


def test_admission_numbers_of_blanks_keep_their_200(answered):
    blanks = [
        {"assessment": str(uuid4()), "students": [f"QAC/2022/{place:03}" for place in range(100)]}
        for _ in range(2)
    ]

    assert answered(Conflict("There are 200 blanks.", {"blanks": blanks}))["errors"]["json"] == {
        "blanks": blanks
    }


def test_a_list_without_room_ends_and_members_beside_it_stay(answered):
    marks = [{"student": str(uuid4()), "note": FACES} for _ in range(200)]

    errors = answered(Conflict("Marks have changed.", {"marks": marks, "version": 3}))["errors"]

    told = errors["json"]["marks"]
    assert told == marks[: len(told)]
    assert errors["json"]["version"] == 3
    assert errors["left_out"] == 200 - len(told) > 0


def test_one_member_without_room_is_told_in_part(answered):
    wrong = {"bank_details": {f"{place}{CONTROLS[:50]}": ["Unknown field."] for place in range(250)}}

    errors = answered(Conflict("Something is wrong.", wrong))["errors"]

    told = errors["json"]["bank_details"]
    assert list(told) == list(wrong["bank_details"])[: len(told)]
    assert errors["left_out"] == 250 - len(told) > 0


def rows(bad, columns):
    problem = "is no score, and here much is said of what is one"
    return [
        RowError(row, f"trait {column}", "invalid", problem)
        for row in range(bad)
        for column in range(columns)
    ]


@pytest.mark.parametrize("member", [None, "metrics"])
@pytest.mark.parametrize(("bad", "columns"), [(1, 1), (200, 1), (500, 1), (500, 40), (1, 300), (3, 120)])
def test_rows_end_with_the_last_that_has_room(answered, bad, columns, member):
    with pytest.raises(InvalidRows) as raised:
        raise_row_errors(rows(bad, columns), member=member)

    errors = answered(raised.value)["errors"]

    told = {row["row"] for row in errors["rows"]}
    assert told == {*range(len(told))}
    assert len(told) == min(bad, 200) or len(errors["rows"]) > 100
    assert errors.get("left_out", 0) == bad - len(told)
    places = errors["json"][member] if member else {}
    assert told >= {*map(int, places)}
    if member:
        # By their place 100 are told, and the problems of the last record beside.
        first = {row["row"] for row in errors["rows"][:100]}
        assert {*map(int, places)} == first
