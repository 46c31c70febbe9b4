"""The short way of a request through Flask: the steps left out change no answer."""

from __future__ import annotations

from uuid import uuid4

import pytest
from flask import Flask, Response
from flask.signals import request_finished, request_tearing_down
from flask.views import MethodView

from school_service.core.database import db
from school_service.web.application import Service
from school_service.web.rendering import JsonAnswer

LISTS = ("/classrooms", "/users?pageSize=2", "/graduates")


def fields_of(answer):
    return {name: value for name, value in answer.headers if name != "X-Request-ID"}


@pytest.fixture
def looking(rehearsed):
    """The answers seen by an observer of the application."""
    seen = []

    def look(_app, response, **_rest):
        seen.append(response)

    with request_finished.connected_to(look, rehearsed):
        yield seen


@pytest.mark.parametrize("path", LISTS)
def test_an_answer_is_the_same_where_nobody_looks_at_it(api, make, rehearsed, path):
    make.classroom()
    short = api.get(path)
    seen = []

    def look(_app, response, **_rest):
        seen.append(response)

    with request_finished.connected_to(look, rehearsed):
        long = api.get(path)

    assert [type(response) for response in seen] == [Response]
    assert (short.status_code, short.data) == (long.status_code, long.data) == (200, short.data)
    assert fields_of(short) == fields_of(long)
    assert fields_of(short)["Content-Length"] == str(len(short.data))
    assert short.headers["X-Request-ID"] != long.headers["X-Request-ID"]


def test_a_post_is_answered_so_too(api, looking):
    answer = api.post("/classrooms", {"name": "JSS 9", "level": "Junior"})

    assert answer.status_code == 200
    assert [response.get_json() for response in looking] == [answer.get_json()]


@pytest.mark.parametrize("path", LISTS)
def test_head_has_the_fields_of_get_and_no_body(api, path):
    get, head = api.get(path), api.request("HEAD", path)

    assert (head.status_code, head.data) == (200, b"")
    assert fields_of(head) == fields_of(get)


def test_a_function_for_each_answer_of_a_blueprint_sees_a_response(api, rehearsed, monkeypatch):
    seen = []

    def look(response):
        seen.append(type(response))
        response.headers["X-Looked-At"] = "yes"
        return response

    monkeypatch.setattr(rehearsed, "_looked_at", {})
    monkeypatch.setitem(rehearsed.after_request_funcs, "classrooms", [look])

    assert api.get("/classrooms").headers["X-Looked-At"] == "yes"
    assert "X-Looked-At" not in api.get("/subjects").headers
    assert seen == [Response]


def test_many_portions_are_one_answer():
    body = [b"[1", b", 2", b"]"]
    answer = JsonAnswer(body)

    assert dict(answer.fields) == {"Content-Type": "application/json", "Content-Length": "6"}
    assert answer.to_response().get_data() == b"".join(answer.portions) == b"[1, 2]"


# Routes.


def test_routes_without_parameters_are_remembered_and_no_others(api, make, rehearsed):
    classroom = make.classroom()
    rehearsed._known_routes.clear()
    unknown = [
        f"/{uuid4()}",
        "/classrooms/",
        "/Classrooms",
        "/classrooms/x",
        "//classrooms",
        "/classrooms%00",
    ]
    for path in ("/classrooms", f"/classrooms/{classroom['id']}", *unknown):
        for method in ("GET", "DELETE", "NONSENSE"):
            api.request(method, path)

    assert set(rehearsed._known_routes) == {("GET", "/classrooms")}


def test_a_remembered_route_answers_as_it_did(api, rehearsed):
    rehearsed._known_routes.clear()
    for _ in range(2):
        assert api.get("/classrooms").status_code == 200
        assert api.get("/classrooms/").status_code == 404
        refused = api.request("DELETE", "/classrooms")
        assert (refused.status_code, "GET" in refused.headers["Allow"]) == (405, True)
        assert api.request("OPTIONS", "/classrooms").status_code == 200


# Views, in an application of their own.


class Named(MethodView):
    """Answers with its own name."""

    def get(self):
        return "got"


class Numbered(MethodView):
    """Is made with a number."""

    def __init__(self, number):
        self.number = number

    def get(self):
        return str(self.number)


class Decorated(MethodView):
    """Has a decorator of all its methods."""

    decorators = [lambda view: lambda **parameters: view(**parameters) + " and seen"]

    def get(self):
        return "got"


@pytest.fixture
def small():
    app = Service("small")
    app.add_url_rule("/named", view_func=Named.as_view("named"))
    app.add_url_rule("/numbered", view_func=Numbered.as_view("numbered", 7))
    app.add_url_rule("/decorated", view_func=Decorated.as_view("decorated"))
    app.add_url_rule("/function/<int:n>", "function", lambda n: str(n + 1))
    return app


@pytest.mark.parametrize(
    ("path", "said"),
    [("/named", "got"), ("/numbered", "7"), ("/decorated", "got and seen"), ("/function/4", "5")],
)
def test_every_kind_of_view_is_called_as_flask_calls_it(small, monkeypatch, path, said):
    monkeypatch.setattr(small, "process_response", lambda response: Flask.process_response(small, response))
    client = small.test_client()

    for _ in range(2):
        assert client.get(path).text == said
    assert client.post(path).status_code == 405


def test_functions_before_and_after_requests_are_called(small, monkeypatch):
    monkeypatch.setattr(small, "process_response", lambda response: Flask.process_response(small, response))
    called = []
    small.before_request(lambda: called.append("before"))
    small.teardown_request(lambda _error: called.append("torn down"))
    with request_tearing_down.connected_to(lambda _app, **_rest: called.append("told"), small):
        small.test_client().get("/named")

    assert called == ["before", "torn down", "told"]


def test_each_request_has_a_session_of_the_database_of_its_own(app, document, place):
    # The application context, and with it the session, ends with the request.
    client = app.test_client()
    headers = {"Authorization": f"Bearer {place.admin_token}", "X-SCHOOL-ID": str(place.id)}

    assert client.get("/classrooms", headers=headers).status_code == 200
    assert not db.session.registry.registry
