"""No request takes half a second of a processor more than the same one with a short text: nothing works on a long one.

Of each kind of field, in each place of a request, one is sent each kind of the worst texts; and so is each place of a
request that is no field. Before a release it is every field of every operation.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import marshmallow as ma
import pytest
from flask import Flask
from marshmallow import fields

from school_service.config import JSON_LIMIT
from school_service.features.auth_provider.token_form import FORM, FORM_LIMIT
from school_service.serving.parser import HEADER_LIMIT
from school_service.web.fields import MAX_IDS
from tests.factories import UNKNOWN_ID
from tests.long_texts import KINDS, MIB, SHORT, TEXTS, Stopwatch

Trail = tuple[str | int, ...]
KEY = "*"  # stands in a trail for the name of a member that the client chooses
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
TOKEN = "/auth/oauth/token"
MOST_TYPED = 4  # times a text's length that it may have before it is too long to be looked at

# JSON beside texts, and other ways to write these.
LITERALS: dict[str, Callable[[int], str]] = {
    "escaped marks": lambda size: '"a' + r"\u0301" * (size // 12) + r"\u0316" * (size // 12) + '"',
    "surrogates": lambda size: '"' + r"\ud800" * (size // 6) + '"',
    "NULs": lambda size: '"' + r"\u0000" * (size // 6) + '"',
    "brackets of JSON": lambda size: '"' + "[{" * (size // 2 - 1) + '"',
    "whole number": lambda size: "1" * size,
    "decimals": lambda size: "1." + "1" * (size - 2),
    "exponent": lambda size: "1e" + "9" * 9,
    "exponent below": lambda size: "1e-" + "9" * 9,
}


@dataclass(frozen=True)
class Place:
    """A field of the input of an operation: its place, and the members that lead to it in a body."""

    method: str
    path: str
    location: str
    trail: Trail
    kind: str
    most: int | None
    """The characters of a text; None for another value."""

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.location} {'.'.join(map(str, self.trail))} ({self.kind})"


def places(app: Flask) -> Iterator[Place]:
    """Go through the fields of the input of all operations, those within others too."""
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        view_class: Any = getattr(app.view_functions[rule.endpoint], "view_class", None)
        address = rule.rule
        for argument in rule.arguments:
            address = address.replace(f"<uuid:{argument}>", UNKNOWN_ID)
        for method in METHODS:
            function = getattr(view_class, method.lower(), None)
            taken = getattr(function, "_apidoc", {}).get("arguments", {}).get("parameters", [])
            for parameter in taken:
                for trail, field in _of_argument(parameter["schema"]):
                    yield Place(method, address, parameter["in"], trail, _kind(trail, field), _most(field))


def _of_argument(schema: Any) -> Iterator[tuple[Trail, fields.Field[Any]]]:
    if isinstance(schema, dict):
        items = schema["items"]
        inner = _of_schema(items()) if isinstance(items, type) else [((), fields.UUID())]
        yield from (((0, *trail), field) for trail, field in inner)
    else:
        yield from _of_schema(schema() if isinstance(schema, type) else schema)


def _of_schema(schema: ma.Schema) -> Iterator[tuple[Trail, fields.Field[Any]]]:
    for name, field in schema.fields.items():
        for trail, each in _of_field(field):
            yield (field.data_key or name, *trail), each


def _of_field(field: fields.Field[Any]) -> Iterator[tuple[Trail, fields.Field[Any]]]:
    yield (), field
    if isinstance(field, fields.Nested):
        yield from _of_schema(field.schema)
    elif isinstance(field, fields.List):
        yield from (((0, *trail), each) for trail, each in _of_field(field.inner))
    elif isinstance(field, fields.Dict):
        assert field.key_field is not None
        assert field.value_field is not None
        yield (KEY,), field.key_field
        yield ("a",), field.value_field


def _kind(trail: Trail, field: fields.Field[Any]) -> str:
    """Name a kind of field: its class, and whether it names a member."""
    return f"{'name: ' * (KEY in trail)}{type(field).__name__}"


def _most(field: fields.Field[Any]) -> int | None:
    longest = [each.max for each in field.validators if isinstance(each, ma.validate.Length)]
    return longest[0] if longest and isinstance(field, fields.String) else None


def body_around(trail: Trail, literal: str) -> str:
    """Write the JSON of a body that has a literal at a place, and nothing else."""
    for step in reversed(trail):
        if step == KEY:
            literal = f"{{{literal}: 1}}"
        else:
            literal = f"[{literal}]" if step == 0 else f"{{{json.dumps(step)}: {literal}}}"
    return literal


def filled_list(place: Place) -> str | None:
    """Write a body whose list is full of texts that are just short enough to be looked at; None without such a list."""
    if 0 not in place.trail or place.most is None:
        return None
    at = place.trail.index(0)
    text = json.dumps(TEXTS["marks"](2 * MOST_TYPED * place.most - 4), ensure_ascii=False)
    item = body_around(place.trail[at + 1 :], text)
    count = min(MAX_IDS, (JSON_LIMIT - 1000) // (len(item.encode()) + 1))
    return body_around(place.trail[:at], f"[{','.join([item] * count)}]")


@dataclass
class Sender:
    """Sends requests as the school's administrator, and sees that none is answered by a fault of ours."""

    api: Any

    def __call__(self, method: str, path: str, **options: Any) -> None:
        answer = self.api.send(method, path, **options)
        assert answer.status_code < 500, answer.get_data(as_text=True)
        answer.close()

    def json(self, method: str, path: str, body: str) -> None:
        """Send a body of JSON, as large as JSON may be at most."""
        content = body.encode("utf-8", "surrogatepass")
        assert len(content) <= JSON_LIMIT
        self(method, path, data=content, content_type="application/json")

    def form(self, path: str, text: str) -> None:
        """Send a form."""
        self("POST", path, data=text, content_type=FORM)


@pytest.fixture
def send(api: Any) -> Sender:
    return Sender(api)


def judge_body(send: Sender, place: Place, literals: dict[str, Callable[[int], str]]) -> None:
    def sent(literal: str) -> Callable[[], None]:
        return lambda: send.json(place.method, place.path, body_around(place.trail, literal))

    watch = Stopwatch(sent('"a"'))
    room = JSON_LIMIT - len(body_around(place.trail, '""')) - 4
    for name, write in literals.items():
        literal = write(room)
        if KEY not in place.trail or literal.startswith('"'):
            watch.judge(f"{place}: {name}", sent(literal))


def judge_full_list(send: Sender, place: Place) -> None:
    filled = filled_list(place)
    if filled is not None:
        watch = Stopwatch(lambda: send.json(place.method, place.path, body_around(place.trail, '"a"')))
        watch.judge(f"{place}: a full list", lambda: send.json(place.method, place.path, filled))


def judge_query(send: Sender, place: Place, texts: dict[str, Callable[[int], str]]) -> None:
    name = str(place.trail[0])

    def sent(text: str) -> Callable[[], None]:
        # Written here and not by the client, whose time would count.
        query = f"{name}={quote(text, safe='')}"
        return lambda: send(place.method, f"{place.path}?{query}")

    watch = Stopwatch(sent(SHORT))
    for kind, write in texts.items():
        watch.judge(f"{place}: {kind}", sent(write(HEADER_LIMIT // 3)))


def _written(write: Callable[[int], str]) -> Callable[[int], str]:
    return lambda size: json.dumps(write(size), ensure_ascii=False)


ALL_LITERALS = {**{name: _written(write) for name, write in TEXTS.items()}, **LITERALS}
# For fields that take no text.
OF_OTHERS = {
    name: ALL_LITERALS[name] for name in ("marks", "spaces", "digits", "dots", "whole number", "decimals")
}


def one_of_each_kind(app: Flask) -> list[Place]:
    """Choose a field of each kind, by where it is and whether in a list, in the order of the operations' paths."""
    chosen: dict[tuple[str, str, bool], Place] = {}
    for place in places(app):
        chosen.setdefault((place.location, place.kind, 0 in place.trail), place)
    return [*chosen.values()]


def test_each_kind_of_field_is_found(app: Flask) -> None:
    kinds = {(place.location, place.kind, 0 in place.trail) for place in one_of_each_kind(app)}

    assert {
        ("json", "Text", False),
        ("json", "Text", True),
        ("json", "name: Text", True),
        ("json", "Email", True),
        ("json", "TypedUsername", False),
        ("json", "Moment", False),
        ("json", "ScoreOrAbsence", True),
        ("query", "Text", False),
        ("query", "NumberOrId", False),
        ("files", "File", False),
    } <= kinds


def test_no_kind_of_field_in_a_body_works_on_a_long_text(app: Flask, send: Sender) -> None:
    kinds = {place.kind: place for place in reversed(one_of_each_kind(app)) if place.location == "json"}

    for place in kinds.values():
        judge_body(send, place, OF_OTHERS if place.most is None else ALL_LITERALS)


def test_no_kind_of_field_works_long_on_a_list_of_texts(app: Flask, send: Sender) -> None:
    for place in one_of_each_kind(app):
        if place.location == "json":
            judge_full_list(send, place)


def test_no_kind_of_parameter_works_on_a_long_text(app: Flask, send: Sender) -> None:
    for place in one_of_each_kind(app):
        if place.location == "query":
            judge_query(send, place, TEXTS)


# Places that are no fields.

HEADERS = (
    *(
        "Authorization",
        "X-SCHOOL-ID",
        "X-Request-ID",
        "Idempotency-Key",
        "X-End-User-Address",
        "X-Forwarded-For",
    ),
    *(
        "If-Match",
        "If-None-Match",
        "Accept",
        "Accept-Encoding",
        "Content-Type",
        "Origin",
        "User-Agent",
        "Cookie",
    ),
)
BEFORE = {
    "Authorization": "Bearer ",
    "If-Match": '"',
    "If-None-Match": '"',
    "Content-Type": "application/json; a=",
}


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("name", HEADERS)
def test_no_header_field_is_worked_on_where_it_is_long(send: Sender, name: str, kinds: Iterable[str]) -> None:
    def sent(text: str) -> Callable[[], None]:
        # As a server hands over letters beyond ASCII.
        headers = {name: BEFORE.get(name, "") + text.encode().decode("latin-1")}

        def sending() -> None:
            send("PATCH", f"/classrooms/{UNKNOWN_ID}", data=b'{"level": "a"}', headers=headers)
            # A page for a browser or JSON, as the header prefers.
            send("GET", f"/verify/{UNKNOWN_ID}/{UNKNOWN_ID}", headers=headers)

        return sending

    watch = Stopwatch(sent(SHORT))
    watch.judge(f"{name}: commas", sent("a," * (HEADER_LIMIT // 2)))
    for kind in kinds:
        watch.judge(f"{name}: {kind}", sent(TEXTS[kind](HEADER_LIMIT)))


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("written", ["raw", "percent"])
@pytest.mark.parametrize("name", ["client_id", "client_secret", "grant_type", "audience", "scope", "unknown"])
def test_no_parameter_of_a_token_form_is_worked_on_where_it_is_long(
    send: Sender, name: str, written: str, kinds: Iterable[str]
) -> None:
    of_form = {"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"}

    def sent(text: str) -> Callable[[], None]:
        others = urlencode({key: value for key, value in of_form.items() if key != name})
        value = text.replace("&", "") if written == "raw" else quote(text, safe="")
        form = f"{others}&{name}={value}"
        assert len(form.encode()) <= FORM_LIMIT
        return lambda: send.form(TOKEN, form)

    watch = Stopwatch(sent(SHORT))
    room = FORM_LIMIT - 200
    for kind in kinds:
        watch.judge(f"{name}: {kind}", sent(TEXTS[kind](room if written == "raw" else room // 3)))


@pytest.mark.parametrize("separator", [":", "%3A", "", "::"])
def test_no_credentials_of_http_basic_are_worked_on_where_they_are_long(send: Sender, separator: str) -> None:
    def sent(text: str) -> Callable[[], None]:
        credentials = b64encode(f"{text}{separator}secret".encode()).decode()
        return lambda: send(
            "POST",
            TOKEN,
            data="grant_type=client_credentials",
            content_type=FORM,
            headers={"Authorization": f"Basic {credentials}"},
        )

    watch = Stopwatch(sent(SHORT))
    for kind, write in TEXTS.items():
        watch.judge(kind, sent(write(HEADER_LIMIT // 4 * 3 - 20)))


def test_no_name_of_a_member_is_worked_on_where_it_is_long(send: Sender) -> None:
    def sent(literal: str) -> Callable[[], None]:
        return lambda: send.json("POST", "/classrooms", f'{{{literal}: 1, {literal[:20]}": 2}}')

    watch = Stopwatch(sent('"a"'))
    for kind, write in ALL_LITERALS.items():
        literal = write(JSON_LIMIT - 100)
        if literal.startswith('"'):
            watch.judge(kind, sent(literal))


def test_no_name_of_a_parameter_is_worked_on_where_it_is_long(send: Sender) -> None:
    def sent(text: str) -> Callable[[], None]:
        return lambda: send("GET", f"/classrooms?{quote(text, safe='')}=1")

    watch = Stopwatch(sent(SHORT))
    for kind, write in TEXTS.items():
        watch.judge(kind, sent(write(HEADER_LIMIT // 3)))


@pytest.mark.parametrize("path", ["/classrooms/", "/verify/", "/students/", "/"])
def test_no_path_is_worked_on_where_it_is_long(send: Sender, path: str) -> None:
    def sent(text: str) -> Callable[[], None]:
        return lambda: send("GET", f"{path}{quote(text, safe='/')}")

    watch = Stopwatch(sent(SHORT))
    for kind, write in {**TEXTS, "slashes": lambda size: "a/" * (size // 2)}.items():
        watch.judge(kind, sent(write(HEADER_LIMIT // 3)))


def test_no_name_of_a_file_is_worked_on_where_it_is_long(send: Sender) -> None:
    def sent(name: str) -> Callable[[], None]:
        written = name.replace("\\", "\\\\").replace('"', '\\"')
        form = (
            f'--x\r\nContent-Disposition: form-data; name="sheet"; filename="{written}"\r\n\r\n'
            "first_name,last_name\r\n\r\n--x--\r\n"
        )
        return lambda: send(
            "POST",
            "/students/import-sheet",
            data=form.encode(),
            content_type="multipart/form-data; boundary=x",
        )

    watch = Stopwatch(sent(SHORT))
    for kind, write in {**TEXTS, "folders": lambda size: "../" * (size // 3)}.items():
        watch.judge(kind, sent(write(MIB // 2)))


@pytest.mark.release
def test_no_field_of_any_operation_works_on_a_long_text(app: Flask, send: Sender) -> None:
    for place in places(app):
        if place.location == "json":
            judge_body(send, place, ALL_LITERALS)
            judge_full_list(send, place)
        elif place.location == "query":
            judge_query(send, place, TEXTS)
