"""The house Blueprint: what every view is wrapped in, and how that appears in the OpenAPI document."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache, wraps
from os import SEEK_END
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

import flask_smorest
import marshmallow as ma
from flask import Response
from marshmallow import fields

from school_service.auth.principal import Principal
from school_service.core.errors import NotFound, TooLarge
from school_service.core.permissions import Permission
from school_service.core.read_models import Reading
from school_service.web.body_parser import BodyParser
from school_service.web.fields import DeletedSchema, File, IdArray, QueryWhole, Schema, plain_file_name
from school_service.web.openapi import component
from school_service.web.rendering import (
    NO_ROWS,
    READS,
    json_response,
    object_response,
    render_list,
    render_one,
    render_page,
    render_part_of_list,
)
from school_service.web.request_scope import house, live

View = TypeVar("View", bound=Callable[..., Any])

LARGEST_PAGE = 1000
DEFAULT_PAGE = 50
LAST_PAGE = 2**31 - 1
SPREADSHEET = "application/octet-stream"

_SCHOOL_HEADER = {
    "in": "header",
    "name": "X-SCHOOL-ID",
    "schema": {"type": "string", "format": "uuid"},
}
_SCHOOL_REQUIRED = "The school to work in."
_SCHOOL_OPTIONAL = "The school to work in; may be left out where the token names exactly one."


def _page_number() -> QueryWhole:
    says = {"description": "Zero-indexed."}
    return QueryWhole(0, LAST_PAGE, attribute="number", load_default=0, metadata=says)


def _page_size() -> QueryWhole:
    says = {"description": "How many records a page holds."}
    return QueryWhole(1, LARGEST_PAGE, attribute="size", load_default=DEFAULT_PAGE, metadata=says)


class PageSchema(Schema):
    """Which page of a list: zero-indexed."""

    pageNumber = _page_number()  # noqa: N815
    pageSize = _page_size()  # noqa: N815


class BarePageSchema(Schema):
    """Which page of a list that has no envelope: zero-indexed."""

    page = _page_number()
    size = _page_size()


class Blueprint(flask_smorest.Blueprint):
    """A blueprint whose decorators hold the conventions: 200 only, one envelope, one commit, documented by itself.

    `school_required`: whether X-SCHOOL-ID is required on its operations, or may come from the token.
    """

    ARGUMENTS_PARSER = BodyParser()

    def __init__(self, name: str, import_name: str, *, school_required: bool = True, **options: Any) -> None:
        super().__init__(name, import_name, **options)
        self._school_required = school_required
        self._prepare_doc_cbks.append(_document)

    def requires(
        self,
        permission: Permission | None,
        *,
        school_required: bool | None = None,
        own: str | None = None,
    ) -> Callable[[View], View]:
        """Demand a token, a school and a permission (None: any token of the school will do).

        Outermost of a view's decorators: the order token, school, permission, validation, work is fixed here. `own`
        names a path parameter: a user whose id it is needs no permission.
        """
        needs_school = self._school_required if school_required is None else school_required

        def decorate(view: View) -> View:
            @wraps(view)
            def lived(*arguments: Any, **parameters: Any) -> Any:
                def check(principal: Principal) -> None:
                    if permission is None or (own and parameters[own] == principal.user_id):
                        return
                    if not principal.holds(permission):
                        principal.demand([permission])

                return live(lambda: view(*arguments, **parameters), school_required=needs_school, check=check)

            _note(lived, access={"permission": permission, "school_required": needs_school})
            return lived  # type: ignore[return-value]

        return decorate

    def arguments(
        self, schema: type[ma.Schema] | ma.Schema, *, location: str = "json", **options: Any
    ) -> Callable[[View], View]:
        """Validate the body or the query; what is valid becomes the view's next argument."""
        made = schema() if isinstance(schema, type) else schema
        documented = super().arguments(made, location=location, **options)

        def decorate(view: View) -> View:
            checked = documented(view)
            _note(checked, places={location, *_noted(checked).get("places", ())})
            return checked  # type: ignore[no-any-return]

        return decorate

    def takes_file(self, name: str) -> Callable[[View], View]:
        """Take one uploaded file, named `name` in the form; it becomes the view's next argument, a FileStorage.

        A file of more than MAX_UPLOAD_BYTES is refused: the limit of the request allows for the form around it.
        """
        documented = self.arguments(_upload(name), location="files", content_type="multipart/form-data")

        def decorate(view: View) -> View:
            @wraps(view)
            def with_file(*arguments: Any, **parameters: Any) -> Any:
                *before, files = arguments
                size, most = files[name].stream.seek(0, SEEK_END), house().settings.max_upload_bytes
                if size > most:
                    raise TooLarge(f"The file has {size:,} bytes; {most:,} are allowed.")
                files[name].stream.seek(0)
                return view(*before, files[name], **parameters)

            return documented(with_file)  # type: ignore[return-value]

        return decorate

    def takes_ids(self) -> Callable[[View], View]:
        """Take a body that is a bare array of uuids; it becomes the view's next argument, a list."""
        documented = self.arguments(IdArray())

        def decorate(view: View) -> View:
            checked = documented(view)
            for parameter in checked._apidoc["arguments"]["parameters"]:  # type: ignore[attr-defined]
                if isinstance(parameter["schema"], IdArray):
                    parameter["schema"] = IdArray.DOCUMENTED
            return checked

        return decorate

    def returns(
        self, schema: type[ma.Schema], *, if_empty: Callable[..., None] | None = None
    ) -> Callable[[View], View]:
        """Answer one record: the row of the select() that the view returns (404 where there is none), or an object.

        `if_empty` as in `returns_list`, asked before the 404.
        """

        def render(result: Any) -> Response:
            if isinstance(result, Response):
                return result
            if isinstance(result, READS):
                body = render_one(result)
                if body is None:
                    if if_empty and isinstance(result, Reading):
                        if_empty(**result.values)
                    raise NotFound(f"No such {_kind(schema)}.")
                return json_response(body)
            return object_response(dumper.dump(result))

        dumper = schema()
        return self._answers(schema, render)

    def returns_list(
        self,
        schema: type[ma.Schema],
        *,
        if_empty: Callable[..., None] | None = None,
    ) -> Callable[[View], View]:
        """Answer a bare array: the rows of the select() that the view returns, or a list of objects.

        `if_empty` judges the filters of a read model that has no rows, by their names: it raises where one of them
        names what there is not. Asked then alone, so that a list with something in it costs one question to the
        database.
        """

        def render(result: Any) -> Response:
            if isinstance(result, READS):
                body = render_list(result)
                if if_empty and body == NO_ROWS and isinstance(result, Reading):
                    if_empty(**result.values)
                return json_response(body)
            return object_response(dumper.dump(result))

        dumper = schema(many=True)
        return self._answers(dumper, render)

    def returns_page(
        self,
        schema: type[ma.Schema],
        *,
        bare: bool = False,
        if_empty: Callable[..., None] | None = None,
    ) -> Callable[[View], View]:
        """Answer a page of the select() that the view returns, in the paged envelope; takes pageNumber and pageSize.

        `bare`: as a bare array; takes page and size. `if_empty` as in `returns_list`.
        """
        answer = schema(many=True) if bare else _envelope(schema)
        render = render_part_of_list if bare else render_page

        def decorate(view: View) -> View:
            @wraps(view)
            def paged(*arguments: Any, **parameters: Any) -> Response:
                # The page is the first argument taken, so it stands right after the view's `self`.
                owner, page, *rest = arguments
                query = view(owner, *rest, **parameters)
                body = render(query, **page)
                if if_empty and body.removesuffix("}").endswith(NO_ROWS):
                    if_empty(**query.values)
                return json_response(body)

            takes = BarePageSchema if bare else PageSchema
            return self.arguments(takes, location="query")(_answering(paged, self, answer))  # type: ignore[return-value]

        return decorate

    def returns_deleted(self) -> Callable[[View], View]:
        """Answer `{"id": …, "deleted": true}` with the id that the view returns."""

        def render(result: UUID) -> Response:
            return object_response({"id": str(result), "deleted": True})

        return self._answers(DeletedSchema, render)

    def returns_file(self) -> Callable[[View], View]:
        """Answer a file: the view returns its name, which may be any text, and its bytes."""

        def decorate(view: View) -> View:
            @wraps(view)
            def sent(*arguments: Any, **parameters: Any) -> Response:
                name, content = view(*arguments, **parameters)
                response = Response(content, mimetype=SPREADSHEET)
                response.headers["Content-Disposition"] = _attachment(plain_file_name(name))
                response.headers["X-Content-Type-Options"] = "nosniff"
                return response

            return self.response(  # type: ignore[no-any-return]
                200, {"type": "string", "format": "binary"}, content_type=SPREADSHEET
            )(sent)

        return decorate

    def public(self, view: View) -> View:
        """Mark a view that needs no token."""
        _note(view, access=None)
        return view

    def answers(self, *statuses: int) -> Callable[[View], View]:
        """Name further statuses that the operation answers, for the document."""

        def decorate(view: View) -> View:
            _note(view, statuses=statuses)
            return view

        return decorate

    def summary(self, words: str) -> Callable[[View], View]:
        """Say what the operation does, for the document, where the view serves several kinds of record."""
        return self.doc(summary=words)  # type: ignore[no-any-return]

    def _answers(self, schema: Any, render: Callable[[Any], Response]) -> Callable[[View], View]:
        def decorate(view: View) -> View:
            @wraps(view)
            def rendered(*arguments: Any, **parameters: Any) -> Response:
                return render(view(*arguments, **parameters))

            return _answering(rendered, self, schema)  # type: ignore[return-value]

        return decorate


def _answering(view: Callable[..., Response], blueprint: Blueprint, schema: Any) -> Callable[..., Response]:
    """Document the answer as flask-smorest does, without its wrapper: the view answers a Response already."""
    view._apidoc = flask_smorest.Blueprint.response(blueprint, 200, schema)(view)._apidoc  # type: ignore[attr-defined]
    return view


def _kind(schema: type[ma.Schema]) -> str:
    words = schema.__name__.removesuffix("Schema")
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in words).strip()


def _attachment(name: str) -> str:
    """Name a file to be saved, in ASCII and, where that is not all of it, in UTF-8 too (RFC 6266)."""
    plain = plain_file_name(unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode())
    words = f'attachment; filename="{plain}"'
    return words if plain == name else f"{words}; filename*=UTF-8''{quote(name, safe='')}"


# Made once for each name, since the document knows a schema by its name.


@cache
def _upload(name: str) -> type[ma.Schema]:
    return Schema.from_dict({name: File(required=True)}, name=f"{name.title().replace('_', '')}Upload")


@cache
def _envelope(schema: type[ma.Schema]) -> type[ma.Schema]:
    members: dict[str, fields.Field[Any]] = {
        "page_number": fields.Integer(required=True, metadata={"description": "Zero-indexed."}),
        "page_size": fields.Integer(required=True),
        "total_pages": fields.Integer(required=True),
        "total": fields.Integer(required=True, metadata={"description": "All matching records."}),
        "data": fields.List(fields.Nested(schema), required=True),
    }
    return Schema.from_dict(members, name=f"{schema.__name__.removesuffix('Schema')}PageSchema")


# How the conventions appear in the OpenAPI document. What the decorators note is turned into the operation's
# members by `_document`, which flask-smorest calls for each.


def _noted(view: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = getattr(view, "_apidoc", {}).get("house", {})
    return found


def _note(view: Callable[..., Any], **notes: Any) -> None:
    documented = deepcopy(getattr(view, "_apidoc", {}))
    documented.setdefault("house", {}).update(notes)
    view._apidoc = documented  # type: ignore[attr-defined]


def _document(
    doc: dict[str, Any], doc_info: Mapping[str, Any], *, method: str, **_context: Any
) -> dict[str, Any]:
    notes = doc_info.get("house", {})
    access, places = notes.get("access"), notes.get("places", set())
    statuses = {500, 503, *notes.get("statuses", ())}
    if access is None:
        doc["security"] = []
    else:
        statuses |= {400, 401, 403, 404}
        doc["security"] = [{"bearer": []}]
        required = access["school_required"]
        header = {"required": required, "description": _SCHOOL_REQUIRED if required else _SCHOOL_OPTIONAL}
        doc.setdefault("parameters", []).append({**_SCHOOL_HEADER, **header})
        permission = access["permission"]
        doc["x-permission"] = str(permission) if permission else None
        if method in {"post", "put", "patch", "delete"}:
            statuses.add(409)
    if places:
        statuses.add(422)
    if places & {"json", "files"}:
        statuses |= {400, 413, 415}
    responses: dict[int, Any] = {status: component(status) for status in statuses}
    for status, says in doc.get("responses", {}).items():
        # A mere name is flask-smorest's own for an error; what a view describes stands.
        if isinstance(says, Mapping):
            responses[int(status)] = says
    doc["responses"] = {str(status): responses[status] for status in sorted(responses)}
    return doc
