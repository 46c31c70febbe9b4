"""The Blueprint's decorators: pages and checks of filters work in whichever order they stand."""

from __future__ import annotations

from typing import Any

import pytest
from flask.views import MethodView
from marshmallow import fields

from school_service.app import create_app
from school_service.core.errors import Invalid
from school_service.features.school.classrooms.service import classroom, classrooms
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Id, Text
from school_service.web.schemas import RecordSchema, Schema
from tests.conftest import dispose

UNKNOWN = "00000000-0000-4000-8000-000000000000"


class NameSchema(RecordSchema):
    """A record with a name."""

    name = fields.String()


class FilterSchema(Schema):
    """Filters: one has another name in the query, and one may be left out."""

    record_id = Id(data_key="recordId")
    note = Text(required=False)


def check(**arguments: Any) -> None:
    """Refuse any arguments, and tell them."""
    raise Invalid("checked", {name: [str(value)] for name, value in sorted(arguments.items())})


def _blueprint() -> Blueprint:
    blp = Blueprint("orders", __name__, description="Decorators in several orders.")

    @blp.route("/orders/page-first/<uuid:id>")
    class PageFirst(MethodView):
        @blp.requires(None)
        @blp.returns_page(NameSchema, if_empty=check)
        @blp.arguments(FilterSchema, location="query")
        def get(self, filters: dict[str, Any], id: Any) -> Any:
            """List."""
            return classroom(filters["record_id"])

    @blp.route("/orders/page-last/<uuid:id>")
    class PageLast(MethodView):
        @blp.requires(None)
        @blp.arguments(FilterSchema, location="query")
        @blp.returns_page(NameSchema, if_empty=check)
        def get(self, filters: dict[str, Any], id: Any) -> Any:
            """List."""
            return classroom(filters["record_id"])

    @blp.route("/orders/list/<uuid:id>")
    class OfList(MethodView):
        @blp.requires(None)
        @blp.returns_list(NameSchema, if_empty=check)
        @blp.arguments(FilterSchema, location="query")
        def get(self, filters: dict[str, Any], id: Any) -> Any:
            """List."""
            return classroom(filters["record_id"])

    @blp.route("/orders/bare")
    class Bare(MethodView):
        @blp.requires(None)
        @blp.returns_page(NameSchema, bare=True)
        def get(self) -> Any:
            """List."""
            return classrooms()

    return blp


@pytest.fixture(scope="module")
def client(settings, tenancy, place):
    """A client of an application with these views, at the school."""
    app = create_app(settings)
    app.extensions["flask-smorest"]["apis"][""]["ext_obj"].register_blueprint(_blueprint())
    headers = {"Authorization": f"Bearer {place.admin_token}", "X-SCHOOL-ID": str(place.id)}
    client = app.test_client()
    yield lambda path, **query: client.get(path, headers=headers, query_string=query)
    dispose(app)


@pytest.mark.parametrize("path", ["page-first", "page-last", "list"])
def test_a_check_of_filters_gets_the_views_own_arguments_by_name(client, path):
    answer = client(f"/orders/{path}/{UNKNOWN}", recordId=UNKNOWN, note="x")

    assert answer.status_code == 422
    assert answer.get_json()["errors"]["query"] == {"id": [UNKNOWN], "note": ["x"], "record_id": [UNKNOWN]}


@pytest.mark.parametrize("path", ["page-first", "page-last"])
def test_filters_of_another_request_are_not_among_those_checked(client, path):
    client(f"/orders/{path}/{UNKNOWN}", recordId=UNKNOWN, note="x")

    answer = client(f"/orders/{path}/{UNKNOWN}", recordId=UNKNOWN)

    assert set(answer.get_json()["errors"]["query"]) == {"id", "record_id"}


@pytest.mark.parametrize("path", ["page-first", "page-last"])
def test_page_and_filters_are_both_validated_in_either_order(client, path):
    for query in ({"pageSize": "0", "recordId": UNKNOWN}, {"recordId": "x"}):
        assert client(f"/orders/{path}/{UNKNOWN}", **query).status_code == 422
    assert (
        client(f"/orders/{path}/{UNKNOWN}", recordId=UNKNOWN, pageSize="1").get_json()["message"] == "checked"
    )


def test_both_orders_are_documented_alike(client):
    paths = client("/openapi.json").get_json()["paths"]
    names = [
        [parameter["name"] for parameter in paths[f"/orders/{order}/{{id}}"]["get"]["parameters"]]
        for order in ("page-first", "page-last")
    ]

    assert set(names[0]) == set(names[1]) == {"pageNumber", "pageSize", "recordId", "note", "X-SCHOOL-ID"}


def test_a_bare_page_takes_page_and_size(client):
    assert client("/orders/bare", page="0", size="1").status_code == 200
    assert client("/orders/bare", size="0").status_code == 422
